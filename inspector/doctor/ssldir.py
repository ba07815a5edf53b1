"""Check an agent's ssldir for what keeps the agent from a run (docs/protocol.md#the-ssldir-of-an-agent).

``read`` reads the directory and changes nothing. ``examine`` returns what is wrong with it at a given time. Neither
asks a master or a CA: ``inspector.doctor.cross_check`` compares with a CA's directory.
"""

from __future__ import annotations

import itertools
import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.clocks import DAY
from inspector.doctor import findings, puppet_dir
from inspector.doctor.findings import CA_FILES, SOON, expiring, key_text, listed
from inspector.doctor.puppet_dir import Folder, KeyFile
from inspector.errors import InspectorError
from inspector.rules.fixes import advice, group, on_ca, on_master, on_node
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inspector.doctor.findings import Diagnosis, Generation
    from inspector.protocol import x509
    from inspector.protocol.ca_service import CaService
    from inspector.protocol.certificates import Certificate, CertificateRequest, RevocationList
    from inspector.rules.fixes import Fix, Step

CA = "certs/ca.pem"
CRL = "crl.pem"
_DIRECTORIES = ("certs", "private_keys", "certificate_requests", "public_keys", "private")
_KNOWN = frozenset({*_DIRECTORIES, CRL, "ca", "ssl.lock"})
_FETCH_CA = (
    on_node(
        "fetch it again", 'rm -f "$(puppet config print localcacert)"; puppet agent -t', destroys="the damaged file"
    ),
)
_FETCH_CRL = (
    on_node("fetch it again", 'rm -f "$(puppet config print hostcrl)"; puppet agent -t', destroys="the damaged file"),
)
_RUN = (on_node("run the agent", "puppet agent -t"),)
_ENROL_WITHOUT_BACKUP = group("enrol", only_if="there is no backup")
_CLOCK = (on_node("see its clock, and correct it", "timedatectl"),)
_MARKS = ("certs", "private_keys", "certificate_requests", CRL)


@dataclass(frozen=True, slots=True)
class SslDir:
    """The contents of an agent's directory; the fields that are compared with a CA or a capture come first."""

    certname: str | None
    """None: no agent has been enrolled here."""
    key: str | None = None
    """The digest of the agent's key, as in ``Certificate.key``."""
    csr_key: str | None = None
    """The digest of the key in the stored signing request."""
    certificate: Certificate | None = None
    authorities: tuple[Certificate, ...] = ()
    crls: tuple[RevocationList, ...] = ()
    generation: Generation = "modern"
    """Derived from the files; ``modern`` if they do not decide."""
    folder: Folder = field(default_factory=lambda: Folder(Path()))
    private: KeyFile | None = None
    public: str | None = None
    """The digest of the key in public_keys/."""
    request: CertificateRequest | None = None
    own_ca: tuple[Certificate, ...] = ()
    """Certificates of a CA in this directory's ca/."""
    lock: str = ""
    """The process id in ssl.lock."""
    ca_service: CaService | None = None
    """The program of its CA; None: one of Puppet's own, or it is not known."""

    def file(self, directory: str) -> str:
        """Return the agent's file in a directory: ``certs/NAME.pem``."""
        return f"{directory}/{self.certname}.pem"

    def missing(self, directory: str) -> bool:
        return self.folder.missing(self.file(directory))

    def path(self, *names: str) -> str:
        """Return the absolute paths of files, quoted for a shell."""
        return " ".join(shlex.quote(str(self.folder.path.absolute() / name)) for name in names)

    def steps(self, *fix: Step) -> Fix:
        """Return a fix with the commands for this agent."""
        return findings.steps(fix, self.certname, self.generation, self.ca_service)

    def fetch(self, *files: str, only_if: str = "") -> Fix:
        """Return how the agent gets files anew."""
        return (
            on_node(
                "fetch it anew" if len(files) == 1 else "fetch them anew",
                f"rm {self.path(*files)}; puppet agent -t",
                only_if=only_if,
                destroys="the old file" if len(files) == 1 else "the old files",
            ),
        )


def read(path: Path, certname: str | None = None, generation: Generation | None = None) -> SslDir:
    """Read an ssldir.

    ``certname`` is needed only if the directory contains several agents' files. ``generation`` overrides the one that
    is derived from the files.
    Raises InspectorError if the directory is not an ssldir, or has several agents' files, or none of ``certname``.
    """
    folder = Folder(path)
    names = list(folder.top())
    if not any(mark in names for mark in _MARKS) and not folder.hidden:
        raise _no_ssldir(path, names)
    names_in = {directory: _names(folder, directory) for directory in _DIRECTORIES}
    if {"certs", "private_keys"} <= folder.hidden:
        raise InspectorError(f"Cannot read the directories in {path}: permission denied.", "Run this as root.")
    name = certname or _certname(path, names_in)
    if certname and not folder.hidden:
        _expect(path, certname, names_in)
    if "ca" in names and not folder.entries["ca"].link:
        folder.list("ca")
    own_ca = folder.certificates("ca/ca_crt.pem") if "ca/ca_crt.pem" in folder.entries else ()
    lock = (folder.read("ssl.lock") or b"")[:20].decode("ascii", "replace").strip()
    shared = SslDir(
        name,
        generation=generation or (_generation(name, names_in) if name else "modern"),
        authorities=folder.certificates(CA, _FETCH_CA),
        crls=folder.crls(CRL, _FETCH_CRL),
        folder=folder,
        own_ca=own_ca,
        lock=lock,
    )
    if name is None:
        return shared
    key_file, cert_file, csr_file = map(shared.file, ("private_keys", "certs", "certificate_requests"))
    restored = shared.steps(advice("restore it", only_if="there is a backup"), _ENROL_WITHOUT_BACKUP)
    private = folder.key(key_file, "private/password", restored)
    request = folder.request(csr_file, shared.fetch(csr_file))
    return replace(
        shared,
        key=private.key if private else None,
        csr_key=request.key if request else None,
        certificate=next(iter(folder.certificates(cert_file, shared.fetch(cert_file))), None),
        private=private,
        public=folder.public_key(shared.file("public_keys")),
        request=request,
    )


def examine(ssldir: SslDir, now: float, revocation: x509.Revocation = "chain") -> list[Diagnosis]:
    """Return what is wrong with an ssldir at a given time, worst first.

    ``revocation`` is the agent's setting certificate_revocation.
    """
    diagnoses = list(ssldir.folder.problems)
    if ssldir.certname is None and not ssldir.folder.hidden:
        detail = "the directory contains no key and no certificate"
        diagnoses.append(findings.notice("not enrolled", detail, _RUN))
    elif ssldir.certname is not None:
        diagnoses += _belonging(ssldir)
        diagnoses += _waiting(ssldir)
    diagnoses += _trust(ssldir, now, revocation)
    diagnoses += _dates(ssldir, now)
    diagnoses += _leftovers(ssldir)
    diagnoses += _rights(ssldir)
    return findings.worst_first(map(findings.proved, diagnoses))


# -- reading ------------------------------------------------------------------------------------------


def _no_ssldir(path: Path, names: Sequence[str]) -> InspectorError:
    if not path.is_dir():
        return InspectorError(
            f"There is no directory {path}.",
            "`puppet config print ssldir` prints the one in use; the first `puppet agent -t` creates it.",
        )
    if not names:
        return InspectorError(
            f"{path} is empty: no agent has run here as this user.", "The first `puppet agent -t` creates its files."
        )
    if any(name in names for name in CA_FILES):
        return InspectorError(f"{path} is a CA's directory, not an agent's.", "Pass it with --cadir.")
    return InspectorError(
        f"{path} is not an ssldir: it contains none of {', '.join(_MARKS)}.",
        "Use the directory that `puppet config print ssldir` prints.",
    )


def _names(folder: Folder, directory: str) -> list[str]:
    """Return the certnames of the files in a directory, without the CA's."""
    return [name[:-4] for name in folder.list(directory) if name.endswith(".pem") and name != "ca.pem"]


def _certname(path: Path, names_in: dict[str, list[str]]) -> str | None:
    for directory in ("private_keys", "certs", "certificate_requests"):
        names = names_in[directory]
        if len(names) > 1:
            found = clean(listed(names))
            raise InspectorError(f"{path}/{directory} has files of {found}.", "Choose one: --certname NAME")
        if names:
            return names[0]
    return None


def _expect(path: Path, certname: str, names_in: dict[str, list[str]]) -> None:
    names = dict.fromkeys(itertools.chain.from_iterable(names_in.values()))
    if names and certname not in names:
        raise InspectorError(
            f"{path} has no files of {clean(certname)}.", f"It has files of {clean(listed([*names]))}."
        )


def _generation(name: str, names_in: dict[str, list[str]]) -> Generation:
    """Derive the generation: 6.4 and later delete their request with the certificate, and store no public key."""
    requested = name in names_in["certificate_requests"]
    return "legacy" if requested and (name in names_in["certs"] or name in names_in["public_keys"]) else "modern"


# -- judging ------------------------------------------------------------------------------------------


def _belonging(ssldir: SslDir) -> Iterator[Diagnosis]:
    """Check that key, certificate and request exist, are for this certname, and are for the same key."""
    name, certificate, private = ssldir.certname, ssldir.certificate, ssldir.private
    key_file, cert_file = ssldir.file("private_keys"), ssldir.file("certs")
    enrol = ssldir.steps(group("enrol"))
    if private and private.key is None:
        detail = f"{key_file} is encrypted, and private/password is missing or holds a wrong password"
        fix = ssldir.steps(advice("restore private/password", only_if="there is a backup"), _ENROL_WITHOUT_BACKUP)
        yield findings.error("the private key cannot be decrypted", detail, fix)
    elif private and private.size and private.size < 2048:
        yield findings.warning(
            "weak key",
            f"{key_file} is an RSA key of {private.size} bits; OpenSSL refuses fewer than 2048",
            (on_node("make longer keys", "puppet config set keylength 4096 --section agent"), *enrol),
        )
    if certificate is None:
        return
    if ssldir.missing("private_keys"):
        detail = (
            f"{cert_file} ({certificate.fingerprint}) exists, {key_file} does not; the agent would make a new key that "
            f"does not match the certificate, and a puppetserver on this host would not start"
        )
        fix = ssldir.steps(advice("restore the key", only_if="there is a backup"), _ENROL_WITHOUT_BACKUP)
        yield findings.error("certificate without its private key", detail, fix)
    if ssldir.key and certificate.key != ssldir.key:
        detail = (
            f"The certificate for '{certificate.subject}' does not match its private key: {cert_file} is for "
            f"{key_text(certificate.key)}, {key_file} holds {key_text(ssldir.key)}"
        )
        yield findings.error("certificate and key do not match", detail, enrol, "B22")
    own = [alt_name.partition(":")[2] for alt_name in certificate.alt_names]
    if certificate.common_name != name and name not in own:
        yield findings.error("certificate for another name", f"{cert_file} is for {certificate.subject}", enrol)
    if ssldir.public and ssldir.key and ssldir.public != ssldir.key:
        detail = (
            f"{ssldir.file('public_keys')} holds {key_text(ssldir.public)}, {key_file} holds {key_text(ssldir.key)}"
        )
        remove = on_node("remove it", f"rm {ssldir.path(ssldir.file('public_keys'))}", destroys="the public key")
        yield findings.notice("stale public key", detail, (remove,))
    if ssldir.csr_key and ssldir.csr_key != certificate.key:
        csr_file = ssldir.file("certificate_requests")
        detail = f"{csr_file} is for {key_text(ssldir.csr_key)}, {cert_file} for {key_text(certificate.key)}"
        remove = on_node("remove it", f"rm {ssldir.path(csr_file)}", destroys="the request")
        yield findings.notice("stale signing request", detail, (remove,))


def _waiting(ssldir: SslDir) -> Iterator[Diagnosis]:
    """Check what an agent without a certificate has, and whether that blocks its bootstrap."""
    if not ssldir.missing("certs"):
        return
    name, request = ssldir.certname or "", ssldir.request
    csr_file, key_file = ssldir.file("certificate_requests"), ssldir.file("private_keys")
    if name != name.lower():
        yield findings.error(
            "certname with upper-case letters",
            f"The CA refuses {name}: certificate names must be lower case",
            (
                on_node(
                    "write the name in lower case",
                    f"puppet config set certname {shlex.quote(name.lower())} --section main",
                ),
                *ssldir.steps(on_node("enrol under this name", "{reset}", destroys="its key and its certificate")),
            ),
        )
    if request is None:
        if ssldir.missing("certificate_requests"):
            key = f"{key_file} is missing" if ssldir.missing("private_keys") else f"{key_file} cannot be used"
            if ssldir.key:
                key = f"{key_file} exists ({key_text(ssldir.key)})"
            detail = f"{key}; there is no signing request and no certificate"
            yield findings.notice("no certificate yet", detail, _RUN)
        return
    if ssldir.key and request.key != ssldir.key:
        detail = f"{csr_file} is for {key_text(request.key)}, {key_file} holds {key_text(ssldir.key)}"
        title = "signing request for another key"
        if ssldir.generation == "legacy":
            yield findings.error(
                title,
                f"{detail}; the agent would not send it again, and its certificate would not match",
                ssldir.steps(group("enrol")),
                "B20",
            )
        else:
            yield findings.notice(title, f"{detail}; the agent makes a new request with its key", _RUN)
        return
    pending = f"{csr_file} (SHA256) {request.fingerprint}, {key_text(request.key)}; there is no certificate"
    compare = ssldir.steps(
        on_ca("compare the fingerprint with that of the name", "{list}"),
        on_ca("sign the request", "{sign}", only_if="they are the same"),
    )
    if ssldir.generation == "legacy":
        blocks = (
            f"{pending}. While this file exists the agent does not send it again: if the CA lost the request, the "
            f"agent waits forever"
        )
        again = on_node(
            "send it again",
            f"rm {ssldir.path(csr_file)}; puppet agent -t",
            only_if="the CA has no request",
            destroys="the request",
        )
        yield findings.warning("a local signing request", blocks, (*compare, again))
    else:
        yield findings.notice("waiting for the certificate", pending, compare)


def _trust(ssldir: SslDir, now: float, revocation: x509.Revocation) -> Iterator[Diagnosis]:
    """Check the CA bundle and the CRLs, and verify the agent's own certificate with them."""
    certificate, folder = ssldir.certificate, ssldir.folder
    if folder.missing(CA):
        detail = f"{CA} is missing: the next run downloads it without verifying the server"
        if certificate:
            detail += "; a puppetserver on this host would not start"
            fix = (
                advice("copy it from the CA"),
                on_node("download it", "puppet agent -t", only_if="it cannot be copied"),
            )
            yield findings.warning("no CA certificate", detail, fix, "B01")
        elif ssldir.certname:
            yield findings.notice("no CA certificate", detail, _RUN, "B01")
        return
    if folder.missing(CRL):
        if certificate and revocation != "none":
            yield findings.notice("no CRL", f"{CRL} is missing: the next run downloads it", _RUN, "B07")
        revocation = "none"
    elif not ssldir.crls:  # the file has a diagnosis already
        revocation = "none"
    if not ssldir.authorities:
        return
    for stray in (authority for authority in ssldir.authorities if not authority.is_ca):
        yield findings.error("not a CA", f"{CA} contains {stray.subject}, which is not a CA", ssldir.fetch(CA))
    problems = []
    if certificate:
        problems = findings.verified(certificate, (), ssldir.authorities, ssldir.crls, now, revocation)
    elif revocation != "none":
        problems = findings.crl_problems(ssldir.authorities, ssldir.crls, now)
    for problem in problems:
        yield _refused(ssldir, problem)


def _refused(ssldir: SslDir, problem: x509.Problem) -> Diagnosis:
    """Return a verification error of OpenSSL's as a diagnosis."""
    if problem.code == 20 and any(crl.issuer == problem.issuer for crl in ssldir.crls):
        detail = f"{_no_issuer(problem)}: {CA} lacks this CA, {CRL} has its CRL. The agent goes on; runs work if the "
        detail += "master sends its certificate with its own"
        return findings.warning("the CA bundle lacks an intermediate CA", detail, ssldir.fetch(CA))
    fetch, enrol = ssldir.fetch(CRL), ssldir.steps(group("enrol"))
    renew = (advice("renew the CA's certificate"), advice("distribute the new ca.pem"))
    revoked = ssldir.steps(group("revoked"))
    own = ssldir.certificate is not None and problem.subject == ssldir.certificate.subject
    by_code: dict[int, tuple[str, Fix, str | None]] = {
        3: (
            "the agent's CRLs do not cover the chain",
            (*fetch, *ssldir.steps(group("missing_crl", only_if="the CA sends the same again"))),
            "B13",
        ),
        7: ("invalid signature", ssldir.fetch(CA, CRL), None),
        8: ("invalid signature on the agent's CRL", fetch, None),
        9: ("certificate not yet valid", _CLOCK, "B35"),
        10: ("certificate expired", enrol if own else renew, "B33"),
        11: ("the agent's CRL is not yet valid", _CLOCK, "B12"),
        12: ("the agent's CRL has expired", ssldir.fetch(CRL, only_if="the CA has issued a new one"), "B10"),
        23: ("certificate revoked", revoked, "T05"),
    }
    another = (
        *ssldir.fetch(CA, CRL, only_if=f"{CA} is out of date"),
        *ssldir.steps(group("enrol", only_if="the certificate is out of date")),
    )
    title, fix, rule = by_code.get(problem.code, ("certificate from another CA", another, None))
    detail = _no_issuer(problem) if problem.code == 20 else str(problem)
    if problem.code not in (3, 8, 9, 10, 11, 12, 23):
        detail += f"; {CA} contains {listed([authority.subject for authority in ssldir.authorities])}"
    return findings.error(title, detail, fix, rule)


def _no_issuer(problem: x509.Problem) -> str:
    """Return the agent's warning about its own certificate; about a server's it has other words."""
    return f"The issuer '{problem.issuer}' of certificate '{problem.subject}' cannot be found locally"


def _dates(ssldir: SslDir, now: float) -> Iterator[Diagnosis]:
    """Report what expires soon. Agents before 8 never download a new CRL by themselves."""
    certificate, enrol = ssldir.certificate, ssldir.steps(group("enrol"))
    if certificate:
        own = [(ssldir.file("certs"), certificate.not_after)]
        if soon := expiring(own, now):
            yield findings.warning("certificate expires soon", soon[0], enrol, "B34")
        elif certificate.not_after - certificate.not_before > 365 * DAY and (later := expiring(own, now, 3 * SOON)):
            yield findings.notice("certificate expires within three months", later[0], enrol)
    authorities = [(f"{CA}: {authority.subject}", authority.not_after) for authority in ssldir.authorities]
    if soon := expiring(authorities, now, 3 * SOON):
        yield findings.warning(
            "the CA certificate expires soon", "; ".join(soon), (advice("renew it on the CA's host"),), "B34"
        )
    if soon := findings.expiring_crls(f"{CRL}:", ssldir.crls, now):
        fix = ssldir.fetch(CRL, only_if="the CA has issued a new one")
        yield findings.warning("the agent's CRL expires soon", "; ".join(soon), fix, "B11")


def _leftovers(ssldir: SslDir) -> Iterator[Diagnosis]:
    folder = ssldir.folder
    yield from _own_ca(ssldir)
    if ssldir.lock:
        detail = f"ssl.lock names process {ssldir.lock}: an agent is in its bootstrap, or was killed during it"
        process = on_node("see whether this process is an agent", f"ps -p {shlex.quote(ssldir.lock)}")
        yield findings.notice("locked", detail, (process,))
    own = {ssldir.file(directory) for directory in _DIRECTORIES} | {CA, "private/password"}
    stray = [name for name in folder.entries if name != "." and not name.startswith("ca/")]
    stray = [name for name in stray if name not in own and name not in _KNOWN]
    if stray:
        detail = f"{listed(stray)}: files that the agent {ssldir.certname or ''} does not use".replace("  ", " ")
        yield findings.notice("other files", detail, (advice("see whether another certname of this host uses them"),))


def _own_ca(ssldir: SslDir) -> Iterator[Diagnosis]:
    """Check a CA in the ssldir: up to Puppet 6 its place on the CA's host; on other masters it blocks the start."""
    folder = ssldir.folder
    present = [name for name in CA_FILES if f"ca/{name}" in folder.entries]
    missing = [name for name in CA_FILES if folder.missing(f"ca/{name}")]
    if not present or folder.entries["ca"].link:
        return
    other = "this master is not the CA"
    off = advice("disable the CA service in services.d/ca.cfg", only_if=other)
    if ssldir.generation == "legacy":
        off = on_master("turn the CA off", "puppet config set ca false --section master", only_if=other)
    move = (
        off,
        on_master("move its files away", f"mv {ssldir.path('ca')} {ssldir.path('ca.old')}", only_if=other),
    )
    if missing:
        detail = (
            f"ca/ has {', '.join(present)}, not {', '.join(missing)}; the CA service needs all or none of "
            f"them, and does not start"
        )
        restored = advice("restore the missing files", only_if="this master is the CA")
        yield findings.error("half-initialised CA", detail, (*move, restored))
    trusted = {authority.key for authority in ssldir.authorities}
    if ssldir.own_ca and trusted and ssldir.own_ca[0].key not in trusted:
        local, trusted_ca = ssldir.own_ca[0], ssldir.authorities[0]
        detail = (
            f"ca/ca_crt.pem is {local.subject} ({local.fingerprint}), {CA} contains {trusted_ca.subject} "
            f"({trusted_ca.fingerprint}): its agents do not accept certificates that are signed here"
        )
        yield findings.warning("a second CA", detail, move)


def _rights(ssldir: SslDir) -> Iterator[Diagnosis]:
    folder = ssldir.folder
    yield from puppet_dir.open_to_all(folder, [name for name in folder.entries if name.startswith("private_keys/")])
    wanted = ["private_keys", "certs", ssldir.file("private_keys"), ssldir.file("certs"), CA, CRL]
    if unreadable := puppet_dir.unreadable_for_owner(folder, wanted):
        user = puppet_dir.owner(folder)
        detail = (
            f"{', '.join(unreadable)}; the owner of the directory ({user}) cannot read this (was the agent run as "
            f"another user?)"
        )
        fix = (on_node("correct the owner", f"chown -R {user}: {ssldir.path('.')}"),)
        yield findings.warning("wrong owner", detail, fix)
