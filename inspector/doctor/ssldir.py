"""An agent's ssldir: what it holds, and what keeps its agent from a run (docs/protocol.md#the-ssldir-of-an-agent).

``read`` looks and changes nothing; ``examine`` judges what was read at a given time. It asks no master and no
CA: ``inspector.doctor.cross_check`` compares with those.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.doctor import findings, puppet_dir
from inspector.doctor.findings import CA_FILES, DAY, SOON, advise, ending, key_text, listed
from inspector.doctor.puppet_dir import Folder, PrivateKey
from inspector.errors import InspectorError
from inspector.summaries import wording

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inspector.doctor.findings import Diagnosis, Generation
    from inspector.protocol import x509
    from inspector.protocol.certificates import Certificate, CertificateRequest, RevocationList

CA = "certs/ca.pem"
CRL = "crl.pem"
_DIRECTORIES = ("certs", "private_keys", "certificate_requests", "public_keys", "private")
_KNOWN = frozenset({*_DIRECTORIES, CRL, "ca", "ssl.lock"})
_FETCH_CA = '`rm -f "$(puppet config print localcacert)"; puppet agent -t`'
_FETCH_CRL = '`rm -f "$(puppet config print hostcrl)"; puppet agent -t`'
_MARKS = ("certs", "private_keys", "certificate_requests", CRL)


@dataclass(frozen=True, slots=True)
class SslDir:
    """What an agent's directory holds; what joins it with a CA or a capture comes first."""

    certname: str | None
    """None: no agent was ever enrolled here."""
    key: str | None = None
    """Of the agent's own key, as ``Certificate.key``."""
    csr_key: str | None = None
    """Of the signing request that lies here."""
    certificate: Certificate | None = None
    authorities: tuple[Certificate, ...] = ()
    crls: tuple[RevocationList, ...] = ()
    generation: Generation = "modern"
    """As told by what lies here; newer if nothing tells."""
    folder: Folder = field(default_factory=lambda: Folder(Path()))
    private: PrivateKey | None = None
    public: str | None = None
    """Of the file in public_keys/."""
    request: CertificateRequest | None = None
    own_ca: tuple[Certificate, ...] = ()
    """Certificates of a CA that lies within this very directory."""
    lock: str = ""
    """The process that ssl.lock names."""

    def file(self, directory: str) -> str:
        """``certs/NAME.pem`` and the like."""
        return f"{directory}/{self.certname}.pem"

    def missing(self, directory: str) -> bool:
        return self.folder.missing(self.file(directory))

    def path(self, *names: str) -> str:
        """Absolute, quoted for a shell."""
        return " ".join(shlex.quote(str(self.folder.path.absolute() / name)) for name in names)

    def advise(self, remedy: str) -> str:
        return advise(remedy, self.certname, self.generation)


def read(path: Path, certname: str | None = None, generation: Generation | None = None) -> SslDir:
    """What lies in an ssldir. Raises InspectorError if it is none, if it holds several agents' keys, or nothing of the
    one that is asked for.

    ``certname`` is needed only where it holds several; ``generation`` if it is known better than the directory tells.
    """
    there = Folder(path)
    names = there.list()
    if not any(mark in names for mark in _MARKS) and not there.hidden:
        raise _no_ssldir(path, names)
    held = {directory: _names(there, directory) for directory in _DIRECTORIES}
    name = certname or _certname(path, held)
    if certname and not there.hidden:
        _expect(path, certname, held)
    if "ca" in names and not there.entries["ca"].link:
        there.list("ca")
    own_ca = there.certificates("ca/ca_crt.pem") if "ca/ca_crt.pem" in there.entries else ()
    lock = (there.read("ssl.lock") or b"")[:20].decode("ascii", "replace").strip()
    shared = SslDir(
        name,
        generation=generation or (_generation(name, held) if name else "modern"),
        authorities=there.certificates(CA, _FETCH_CA),
        crls=there.crls(CRL, _FETCH_CRL),
        folder=there,
        own_ca=own_ca,
        lock=lock,
    )
    if name is None:
        return shared
    key_file, cert_file, csr_file = map(shared.file, ("private_keys", "certs", "certificate_requests"))
    anew = shared.advise("Restore it, or start anew: {enrol}")
    private = there.key(key_file, "private/password", anew)
    request = there.request(csr_file, _fetch(shared, csr_file))
    return SslDir(
        name,
        key=private.key if private else None,
        csr_key=request.key if request else None,
        certificate=next(iter(there.certificates(cert_file, _fetch(shared, cert_file))), None),
        authorities=shared.authorities,
        crls=shared.crls,
        generation=shared.generation,
        folder=there,
        private=private,
        public=there.public_key(shared.file("public_keys")),
        request=request,
        own_ca=own_ca,
        lock=lock,
    )


def examine(ssldir: SslDir, now: float, revocation: x509.Revocation = "chain") -> list[Diagnosis]:
    """What is wrong in an ssldir at a time, worst first; ``revocation`` is the agent's certificate_revocation."""
    found = list(ssldir.folder.troubles)
    if ssldir.certname is None and not ssldir.folder.hidden:
        found.append(findings.notice("not enrolled", "there is no key and no certificate here", "`puppet agent -t`"))
    elif ssldir.certname is not None:
        found += _belonging(ssldir)
        found += _waiting(ssldir)
    found += _trust(ssldir, now, revocation)
    found += _dates(ssldir, now)
    found += _leftovers(ssldir)
    found += _rights(ssldir)
    return findings.worst_first(found)


# -- reading ------------------------------------------------------------------------------------------


def _no_ssldir(path: Path, names: Sequence[str]) -> InspectorError:
    if not path.is_dir():
        return InspectorError(
            f"There is no directory {path}.",
            "`puppet config print ssldir` prints the one in use; the first `puppet agent -t` makes it.",
        )
    if not names:
        return InspectorError(f"{path} is empty: no agent has run here as this user.", "`puppet agent -t` fills it.")
    if any(name in names for name in CA_FILES):
        return InspectorError(f"{path} is a CA's directory, not an agent's.", "Give it with --cadir.")
    return InspectorError(
        f"{path} is no ssldir: it has none of {', '.join(_MARKS)}.",
        "Name the one that `puppet config print ssldir` prints.",
    )


def _names(there: Folder, directory: str) -> list[str]:
    """Whose files lie in a directory, the CA's own left out."""
    return [name[:-4] for name in there.list(directory) if name.endswith(".pem") and name != "ca.pem"]


def _certname(path: Path, held: dict[str, list[str]]) -> str | None:
    for directory in ("private_keys", "certs", "certificate_requests"):
        names = held[directory]
        if len(names) > 1:
            held_by = wording.clean(listed(names))
            raise InspectorError(f"{path}/{directory} holds {held_by}.", "Say whose: --certname NAME")
        if names:
            return names[0]
    return None


def _expect(path: Path, certname: str, held: dict[str, list[str]]) -> None:
    names = dict.fromkeys(name for each in held.values() for name in each)
    if names and certname not in names:
        raise InspectorError(
            f"There is nothing of {wording.clean(certname)} in {path}.", f"It holds {wording.clean(listed([*names]))}."
        )


def _generation(name: str, held: dict[str, list[str]]) -> Generation:
    """6.4 and later delete their request with the certificate's arrival and write no public key."""
    requested = name in held["certificate_requests"]
    return "legacy" if requested and (name in held["certs"] or name in held["public_keys"]) else "modern"


# -- judging ------------------------------------------------------------------------------------------


def _belonging(ssldir: SslDir) -> Iterator[Diagnosis]:
    """Key, certificate and request: whether they are there, are this name's, and are for one key."""
    name, certificate, private = ssldir.certname, ssldir.certificate, ssldir.private
    key_file, cert_file = ssldir.file("private_keys"), ssldir.file("certs")
    again = ssldir.advise("{enrol}")
    if private and private.key is None:
        detail = f"{key_file} is encrypted, and private/password does not open it"
        yield findings.error(
            "the private key can't be opened", detail, "Restore private/password, or start anew: " + again
        )
    elif private and private.size and private.size < 2048:
        yield findings.warning(
            "weak key",
            f"{key_file} has {private.size} bits (RSA); OpenSSL refuses less than 2048",
            "`puppet config set keylength 4096 --section agent`, then " + again,
        )
    if certificate is None:
        return
    if ssldir.missing("private_keys"):
        detail = (
            f"{cert_file} ({certificate.fingerprint}) is there, {key_file} is not; the agent would make a new key, "
            f"which the certificate does not fit, and a puppetserver here would not start"
        )
        yield findings.error(
            "certificate without its private key", detail, f"Restore {key_file}, or start anew: {again}"
        )
    if ssldir.key and certificate.key != ssldir.key:
        detail = (
            f"The certificate for '{certificate.subject}' does not match its private key: {cert_file} is for "
            f"{key_text(certificate.key)}, {key_file} is {key_text(ssldir.key)}"
        )
        yield findings.error("certificate and key do not belong together", detail, again, "B22")
    own = [each.partition(":")[2] for each in certificate.alt_names]
    if certificate.common_name != name and name not in own:
        yield findings.error("certificate of another name", f"{cert_file} is for {certificate.subject}", again)
    if ssldir.public and ssldir.key and ssldir.public != ssldir.key:
        detail = f"{ssldir.file('public_keys')} is {key_text(ssldir.public)}, {key_file} is {key_text(ssldir.key)}"
        yield findings.notice("stale public key", detail, f"`rm {ssldir.path(ssldir.file('public_keys'))}`")
    if ssldir.csr_key and ssldir.csr_key != certificate.key:
        csr_file = ssldir.file("certificate_requests")
        detail = f"{csr_file} is for {key_text(ssldir.csr_key)}, {cert_file} for {key_text(certificate.key)}"
        yield findings.notice("stale signing request", detail, f"`rm {ssldir.path(csr_file)}`")


def _waiting(ssldir: SslDir) -> Iterator[Diagnosis]:
    """An agent without a certificate: what it has, and whether that holds it up."""
    if not ssldir.missing("certs"):
        return
    name, request = ssldir.certname or "", ssldir.request
    csr_file, key_file = ssldir.file("certificate_requests"), ssldir.file("private_keys")
    if name != name.lower():
        yield findings.error(
            "certname in upper case",
            f"The CA refuses {name}: certificate names must be lower case",
            f"`puppet config set certname {shlex.quote(name.lower())} --section main`, then "
            + ssldir.advise("{reset}"),
        )
    if request is None:
        if ssldir.missing("certificate_requests"):
            key = f"{key_file} is missing" if ssldir.missing("private_keys") else f"{key_file} can't be used"
            if ssldir.key:
                key = f"{key_file} is there ({key_text(ssldir.key)})"
            detail = f"{key}; there is no signing request and no certificate"
            yield findings.notice("no certificate yet", detail, "`puppet agent -t`")
        return
    if ssldir.key and request.key != ssldir.key:
        detail = f"{csr_file} is for {key_text(request.key)}, {key_file} is {key_text(ssldir.key)}"
        what = "signing request of another key"
        if ssldir.generation == "legacy":
            yield findings.error(
                what,
                f"{detail}; it would be sent no more, and its certificate not fit",
                ssldir.advise("{enrol}"),
                "B20",
            )
        else:
            yield findings.notice(what, f"{detail}; the agent makes a new one from its key", "`puppet agent -t`")
        return
    asked = f"{csr_file} (SHA256) {request.fingerprint}, {key_text(request.key)}; there is no certificate"
    compare = ssldir.advise("Compare with {list} on the CA, then {sign}")
    if ssldir.generation == "legacy":
        blocks = (
            f"{asked}. While it lies here the agent sends it no more: if the CA has lost it, the agent waits for ever"
        )
        remedy = f"{compare}; if the CA has none: {_fetch(ssldir, csr_file)}"
        yield findings.warning("a local signing request", blocks, remedy)
    else:
        yield findings.notice("waiting for its certificate", asked, compare)


def _trust(ssldir: SslDir, now: float, revocation: x509.Revocation) -> Iterator[Diagnosis]:
    """The CA bundle and the CRLs, and what the agent says when it checks its own certificate with them."""
    certificate, there = ssldir.certificate, ssldir.folder
    if there.missing(CA):
        detail = f"{CA} is missing: the next run fetches it without verifying whom from"
        if certificate:
            detail += "; a puppetserver here would not start"
            yield findings.warning("no CA certificate", detail, "Copy it from the CA, or `puppet agent -t`", "B01")
        elif ssldir.certname:
            yield findings.notice("no CA certificate", detail, "`puppet agent -t`", "B01")
        return
    if there.missing(CRL):
        if certificate and revocation != "none":
            yield findings.notice("no CRL", f"{CRL} is missing: the next run fetches it", "`puppet agent -t`", "B07")
        revocation = "none"
    elif not ssldir.crls:  # said already, of the file
        revocation = "none"
    if not ssldir.authorities:
        return
    for stray in (each for each in ssldir.authorities if not each.is_ca):
        yield findings.error("no CA certificate", f"{CA} holds {stray.subject}, which is no CA", _fetch(ssldir, CA))
    problems = []
    if certificate:
        problems = findings.verified(certificate, (), ssldir.authorities, ssldir.crls, now, revocation)
    elif revocation != "none":
        problems = findings.crl_problems(ssldir.authorities, ssldir.crls, now)
    for problem in problems:
        yield _refused(ssldir, problem)


def _fetch(ssldir: SslDir, *files: str) -> str:
    return f"`rm {ssldir.path(*files)}; puppet agent -t`"


def _refused(ssldir: SslDir, problem: x509.Problem) -> Diagnosis:
    """One reason of OpenSSL's as a diagnosis."""
    fetched, again = _fetch(ssldir, CRL), ssldir.advise("{enrol}")
    own = ssldir.certificate is not None and problem.subject == ssldir.certificate.subject
    what, remedy, rule = {
        3: ("the agent's CRLs do not cover the chain", f"Fetch them again: {fetched}", "B13"),
        7: ("bad signature", f"{CA} is not the CA that signed it. Fetch it again: {_fetch(ssldir, CA, CRL)}", None),
        8: ("bad signature of the agent's CRL", f"Fetch it again: {fetched}", None),
        9: ("certificate not yet valid", "Set this host's clock: `timedatectl`", None),
        10: ("certificate expired", again if own else "Renew the CA, then give agents the new ca.pem", None),
        11: ("the agent's CRL is not yet valid", "Set this host's clock: `timedatectl`", None),
        12: ("the agent's CRL expired", f"Once the CA has made a new one: {fetched}", "B10"),
        23: ("certificate revoked", again, None),
    }.get(
        problem.code,
        (
            "certificate of another CA",
            f"If {CA} is the old one: {_fetch(ssldir, CA, CRL)}; if the certificate is: {again}",
            None,
        ),
    )
    detail = str(problem)
    if problem.code not in (3, 8, 9, 10, 11, 12, 23):
        detail += f"; {CA} holds {listed([each.subject for each in ssldir.authorities])}"
    return findings.error(what, detail, remedy, rule)


def _dates(ssldir: SslDir, now: float) -> Iterator[Diagnosis]:
    """What ends soon. Agents before 8 never fetch a new CRL by themselves."""
    certificate, again = ssldir.certificate, ssldir.advise("{enrol}")
    if certificate:
        own = [(ssldir.file("certs"), certificate.not_after)]
        if soon := ending(own, now):
            yield findings.warning("certificate ends soon", soon[0], again)
        elif certificate.not_after - certificate.not_before > 365 * DAY and (later := ending(own, now, 3 * SOON)):
            yield findings.notice("certificate ends in the next three months", later[0], again)
    authorities = [(f"{CA}: {each.subject}", each.not_after) for each in ssldir.authorities]
    if soon := ending(authorities, now, 3 * SOON):
        yield findings.warning("CA ends soon", "; ".join(soon), "Renew the CA on its host")
    if soon := ending([(f"{CRL}: {each.issuer}", each.next_update) for each in ssldir.crls], now):
        yield findings.warning(
            "the agent's CRL ends soon", "; ".join(soon), f"Once the CA has made a new one: {_fetch(ssldir, CRL)}"
        )


def _leftovers(ssldir: SslDir) -> Iterator[Diagnosis]:
    there = ssldir.folder
    yield from _own_ca(ssldir)
    if ssldir.lock:
        detail = f"ssl.lock names process {ssldir.lock}: an agent is at its bootstrap, or died in it"
        yield findings.notice("locked", detail, f"`ps -p {shlex.quote(ssldir.lock)}`")
    own = {ssldir.file(each) for each in _DIRECTORIES} | {CA, "private/password"}
    stray = [name for name in there.entries if name != "." and not name.startswith("ca/")]
    stray = [name for name in stray if name not in own and name not in _KNOWN]
    if stray:
        detail = f"{listed(stray)}: files that the agent {ssldir.certname or ''} does not read".replace("  ", " ")
        yield findings.notice("other files", detail, "They may belong to another certname of this host.")


def _own_ca(ssldir: SslDir) -> Iterator[Diagnosis]:
    """A CA within the ssldir: on the CA's host up to 6 it belongs there, on other masters it blocks."""
    there = ssldir.folder
    had = [name for name in CA_FILES if f"ca/{name}" in there.entries]
    lacking = [name for name in CA_FILES if there.missing(f"ca/{name}")]
    if not had or there.entries["ca"].link:
        return
    off = "`puppet config set ca false --section master`"
    if ssldir.generation == "modern":
        off = "the CA service off in services.d/ca.cfg"
    away = f"On a master that is no CA: {off}, then `mv {ssldir.path('ca')} {ssldir.path('ca.old')}`"
    if lacking:
        detail = (
            f"ca/ has {', '.join(had)}, not {', '.join(lacking)}; a CA service wants all or none, else does not start"
        )
        yield findings.error("half-initialised CA", detail, f"{away}; on the CA itself restore the missing files")
    trusted = {each.key for each in ssldir.authorities}
    if ssldir.own_ca and trusted and ssldir.own_ca[0].key not in trusted:
        mine, theirs = ssldir.own_ca[0], ssldir.authorities[0]
        detail = (
            f"ca/ca_crt.pem is {mine.subject} ({mine.fingerprint}), {CA} holds {theirs.subject} "
            f"({theirs.fingerprint}): what is signed here no agent of that CA accepts"
        )
        yield findings.warning("a second CA", detail, away)


def _rights(ssldir: SslDir) -> Iterator[Diagnosis]:
    there = ssldir.folder
    yield from puppet_dir.open_to_all(there, [name for name in there.entries if name.startswith("private_keys/")])
    wanted = [ssldir.file("private_keys"), ssldir.file("certs"), CA, CRL]
    if bad := puppet_dir.owner_troubles(there, wanted):
        user = puppet_dir.owner(there)
        detail = (
            f"{', '.join(bad)}; {user}, who owns the directory, can't read that (was the agent run as another user?)"
        )
        yield findings.warning("wrong owner", detail, f"`chown -R {user}: {ssldir.path('.')}`")
