"""A CA's directory: whether it can start, sign and revoke, and whether its records agree with one another.

``read`` looks and changes nothing; ``examine`` judges what was read at a given time (files and formats as of
puppetserver 7.9.5 and the Ruby CA, which share them: docs/protocol.md#the-directory-of-a-ca).
"""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.doctor import findings, puppet_dir
from inspector.doctor.findings import CA_FILES, SOON, advise, ending, key_text, listed
from inspector.doctor.puppet_dir import Folder, PrivateKey
from inspector.errors import InspectorError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from inspector.doctor.findings import Diagnosis, Generation
    from inspector.protocol import x509
    from inspector.protocol.certificates import Certificate, CertificateRequest, RevocationList

COUNTED = 1 << 31
"""Serials that a CA counts are below this (it reads its file as a Java int); others come from elsewhere."""

_RESTORE = "Restore it from a backup"
_ENTRY = re.compile(r"(?:0x)?([0-9A-Fa-f]+)\s+(\S+)\s+(\S+)\s+(.*\S)")
_CN = re.compile(r"(?:^|[/,])CN=([^/,]+)")


@dataclass(frozen=True, slots=True)
class Issued:
    """One line of inventory.txt."""

    serial: int
    not_before: str
    not_after: str
    """As they stand there: ``2041-11-17T14:11:12UTC``."""
    subject: str

    @property
    def name(self) -> str:
        found = _CN.search(self.subject)
        return found[1] if found else self.subject


@dataclass(frozen=True, slots=True)
class CaDir:
    """What a CA's directory holds; what joins it with an agent or a capture comes first."""

    signed: Mapping[str, Certificate] = field(default_factory=dict)
    """By the names of their files."""
    requests: Mapping[str, CertificateRequest] = field(default_factory=dict)
    """Those that wait, by the names of their files."""
    serial: int | None = None
    """The next one."""
    inventory: tuple[Issued, ...] = ()
    revoked: frozenset[int] = frozenset()
    """Serials on the signing CA's own CRL."""
    authorities: tuple[Certificate, ...] = ()
    crls: tuple[RevocationList, ...] = ()
    private: PrivateKey | None = None
    public: str | None = None
    infra_crls: tuple[RevocationList, ...] = ()
    generation: Generation = "modern"
    folder: Folder = field(default_factory=lambda: Folder(Path()))

    @property
    def signing(self) -> Certificate | None:
        """The CA certificate that belongs to ca_key.pem; the first if that can't be told."""
        key = self.private.key if self.private else None
        first = self.authorities[0] if self.authorities else None
        return next((each for each in self.authorities if each.key == key), first)

    def advise(self, remedy: str, certname: str | None = None) -> str:
        return advise(remedy, certname, self.generation)

    def path(self, name: str) -> str:
        """Absolute, quoted for a shell."""
        return shlex.quote(str(self.folder.path.absolute() / name))


def read(path: Path, generation: Generation | None = None) -> CaDir:
    """What lies in a cadir. Raises InspectorError if it is none."""
    there = Folder(path)
    names = there.list()
    if not any(name in names for name in (*CA_FILES, "signed")) and not there.hidden:
        raise _no_cadir(path, names)
    authorities, crls = there.certificates("ca_crt.pem", _RESTORE), there.crls("ca_crl.pem", _RESTORE)
    private = there.key("ca_key.pem", "private/ca.pass", _RESTORE)
    there.list("private")
    issuer = next((each for each in authorities if private and each.key == private.key), None)
    issuer = issuer or (authorities[0] if authorities else None)
    own = [crl for crl in crls if issuer and crl.issuer == issuer.subject]
    signed = {name: each[0] for name in _names(there, "signed") if (each := there.certificates(f"signed/{name}.pem"))}
    requests = {name: csr for name in _names(there, "requests") if (csr := there.request(f"requests/{name}.pem"))}
    return CaDir(
        signed=signed,
        requests=requests,
        serial=_serial(there),
        inventory=tuple(_inventory(there)),
        revoked=frozenset(serial for crl in own for serial in crl.revoked),
        authorities=authorities,
        crls=crls,
        private=private,
        public=there.public_key("ca_pub.pem"),
        infra_crls=there.crls("infra_crl.pem"),
        generation=generation or ("legacy" if "private/ca.pass" in there.entries else "modern"),
        folder=there,
    )


def examine(cadir: CaDir, now: float) -> list[Diagnosis]:
    """What is wrong in a cadir at a time, worst first."""
    own = {name: each for name, each in cadir.signed.items() if _own(cadir, each)}
    found = list(cadir.folder.troubles)
    found += _complete(cadir)
    found += _authority(cadir)
    found += _trust(cadir, now)
    found += _serials(cadir, own)
    found += _records(cadir, own)
    found += _signed(cadir, own, now)
    found += _requests(cadir)
    found += _rights(cadir)
    return findings.worst_first(found)


# -- reading ------------------------------------------------------------------------------------------


def _no_cadir(path: Path, names: Sequence[str]) -> InspectorError:
    hint = "Name the one that `puppet config print cadir --section server` prints."
    if not path.is_dir():
        return InspectorError(f"There is no directory {path}.", hint)
    if "private_keys" in names:
        return InspectorError(f"{path} is an agent's directory, not a CA's.", "Give it with --ssldir.")
    return InspectorError(f"{path} is no cadir: it has none of {', '.join(CA_FILES)}.", hint)


def _names(there: Folder, directory: str) -> list[str]:
    return [name[:-4] for name in there.list(directory) if name.endswith(".pem")]


def _serial(there: Folder) -> int | None:
    data = there.read("serial")
    if data is None:
        return None
    try:
        return int(data[:100].decode("ascii").strip(), 16)
    except ValueError:
        detail = "serial holds no hexadecimal number; the CA can sign nothing"
        remedy = "Write the number after the last one of inventory.txt into it"
        there.troubles.append(findings.error("serial can't be used", detail, remedy))
        return None


def _inventory(there: Folder) -> Iterator[Issued]:
    data = there.read("inventory.txt") or b""
    strange = 0
    for line in data.decode("utf-8", "replace").splitlines():
        if entry := _ENTRY.fullmatch(line.strip()):
            yield Issued(int(entry[1], 16), entry[2], entry[3], entry[4])
        elif line.strip() and not line.startswith("#"):
            strange += 1
    if strange:
        there.troubles.append(
            findings.notice("strange lines", f"inventory.txt has {strange} lines that are no entries")
        )


# -- judging ------------------------------------------------------------------------------------------


def _complete(cadir: CaDir) -> Iterator[Diagnosis]:
    lacking = [name for name in CA_FILES if cadir.folder.missing(name)]
    if lacking:
        had = [name for name in CA_FILES if name not in lacking]
        detail = f"missing: {', '.join(lacking)}; found: {', '.join(had) or 'none'}. The CA service wants all or none"
        yield findings.error("half-initialised CA", f"{detail}, and does not start", "Restore them from a backup")


def _authority(cadir: CaDir) -> Iterator[Diagnosis]:
    """The CA's key, and what it must belong to."""
    private = cadir.private
    if private is None:
        return
    if private.key is None:
        detail = "ca_key.pem is encrypted, and private/ca.pass does not open it"
        yield findings.error("the CA's key can't be opened", detail, "Restore private/ca.pass from a backup")
        return
    keys = [each.key for each in cadir.authorities]
    if keys and private.key not in keys:
        detail = f"ca_key.pem is {key_text(private.key)}, ca_crt.pem is for {', '.join(key_text(key) for key in keys)}"
        yield findings.error(
            "the CA's key and certificate do not belong together", detail, "Restore both from the same backup"
        )
    elif keys and keys[0] != private.key and cadir.signing:
        detail = f"ca_crt.pem begins with {cadir.authorities[0].subject}, ca_key.pem belongs to {cadir.signing.subject}"
        yield findings.warning("wrong order", detail, "Put the signing CA's certificate first in ca_crt.pem")
    if cadir.public and cadir.public != private.key:
        detail = f"ca_pub.pem is {key_text(cadir.public)}, ca_key.pem is {key_text(private.key)}"
        remedy = f"`openssl pkey -in {cadir.path('ca_key.pem')} -pubout -out {cadir.path('ca_pub.pem')}`"
        yield findings.notice("stale public key", detail, remedy)
    if private.encrypted and cadir.generation == "modern":
        detail = "ca_key.pem is encrypted; puppetserver reads plain keys only"
        yield findings.error("the CA's key is encrypted", detail, "Take the password off, and keep the mode 0640")


def _trust(cadir: CaDir, now: float) -> Iterator[Diagnosis]:
    """The CA's own chain and CRLs, which are those that agents get."""
    signing = cadir.signing
    if signing is None:
        return
    problems = findings.verified(signing, (), cadir.authorities, (), now, "none")
    if cadir.crls:
        problems += findings.crl_problems(cadir.authorities, cadir.crls, now)
    for problem in problems:
        yield _problem(cadir, problem)
    if cadir.crls and cadir.crls[0].issuer != signing.subject:
        detail = f"ca_crl.pem begins with the CRL of {cadir.crls[0].issuer}; the CA takes the first for its own"
        yield findings.error("wrong order of the CRLs", detail, f"Put the CRL of {signing.subject} first in ca_crl.pem")
    if cadir.infra_crls and (bad := findings.crl_problems(cadir.authorities, cadir.infra_crls, now)):
        detail = f"infra_crl.pem: {'; '.join(map(str, bad))}"
        yield findings.notice("infra CRL", detail, "It matters only with enable-infra-crl: true")
    ends = [(f"ca_crt.pem: {each.subject}", each.not_after) for each in cadir.authorities]
    if soon := ending(ends, now, 3 * SOON):
        yield findings.warning("CA ends soon", "; ".join(soon), "Renew it, then give every agent the new ca.pem")
    if soon := ending([(f"ca_crl.pem: {each.issuer}", each.next_update) for each in cadir.crls], now):
        yield findings.warning("the CA's CRL ends soon", "; ".join(soon), _new_crl(cadir))


def _new_crl(cadir: CaDir) -> str:
    return cadir.advise("{new_crl}. An external CA must issue the list itself: put it into ca_crl.pem")


def _problem(cadir: CaDir, problem: x509.Problem) -> Diagnosis:
    what, remedy, rule = {
        3: ("the CA's CRLs do not cover the chain", "Add that CA's CRL to ca_crl.pem", "B13"),
        8: ("bad signature of the CA's CRL", "Restore ca_crl.pem from a backup", None),
        9: ("CA not yet valid", "Set this host's clock: `timedatectl`", None),
        10: ("CA expired", "Renew it, then give every agent the new ca.pem", None),
        11: ("the CA's CRL is not yet valid", "Set this host's clock: `timedatectl`", None),
        12: ("the CA's CRL expired", _new_crl(cadir), "B10"),
    }.get(problem.code, ("the CA's chain is broken", "Put every CA up to the root into ca_crt.pem", None))
    return findings.error(what, str(problem), remedy, rule)


def _serials(cadir: CaDir, own: Mapping[str, Certificate]) -> Iterator[Diagnosis]:
    """The counter against what was given out, and every serial against its one subject."""
    given = {each.serial: each.name for each in cadir.inventory}
    given |= {each.serial: name for name, each in own.items()}
    counted = {serial: name for serial, name in given.items() if serial < COUNTED}
    last = max(counted, default=0)
    if cadir.serial is not None and cadir.serial <= last:
        detail = f"serial gives {cadir.serial:04X} next, but {last:04X} was given already, to {counted[last]}"
        yield findings.error(
            "the CA would give a serial twice",
            detail + "; revoking one would revoke both",
            f"Stop the CA, then `echo {last + 1:04X} > {cadir.path('serial')}`",
        )
    holders: dict[int, set[str]] = defaultdict(set)
    for entry in cadir.inventory:
        holders[entry.serial].add(entry.name)
    for name, each in own.items():
        holders[each.serial].add(each.common_name or name)
    twice = [f"{serial:04X} ({', '.join(sorted(names))})" for serial, names in holders.items() if len(names) > 1]
    if twice:
        detail = f"given more than once: {listed(twice)}; revoking one revokes the others"
        yield findings.error(
            "one serial, several certificates", detail, "Issue all but one anew: " + cadir.advise("{enrol}")
        )


def _records(cadir: CaDir, own: Mapping[str, Certificate]) -> Iterator[Diagnosis]:
    """inventory.txt, signed/ and the CRL against one another."""
    known = {each.serial for each in cadir.inventory}
    if cadir.inventory and (unlisted := [name for name, each in own.items() if each.serial not in known]):
        detail = f"in signed/ but not in inventory.txt: {listed(unlisted)}"
        yield findings.warning(
            "certificates that the inventory does not know",
            detail,
            "Was one of the two restored from a backup? Restore both together",
        )
    if known and (never := sorted(cadir.revoked - known)):
        detail = f"revoked, but not in inventory.txt: {listed([f'{serial:04X}' for serial in never])}"
        yield findings.notice("revoked serials that were never issued", detail)
    latest = {each.name: each.serial for each in cadir.inventory}
    old = [name for name, each in own.items() if each.serial in known and each.serial != latest.get(name, each.serial)]
    if old:
        detail = f"inventory.txt has newer ones than signed/ for {listed(old)}"
        yield findings.notice("older certificates are served", detail, "A renewal, or a restored file")
    revoked = [name for name, each in own.items() if each.serial in cadir.revoked]
    if revoked:
        detail = f"revoked, and still in signed/: {listed(revoked)}; a new signing request of theirs is refused"
        yield findings.notice("revoked but not cleaned", detail, cadir.advise("{clean}", revoked[0]))


def _signed(cadir: CaDir, own: Mapping[str, Certificate], now: float) -> Iterator[Diagnosis]:
    foreign = [name for name in cadir.signed if name not in own]
    if foreign and cadir.signing:
        first = cadir.signed[foreign[0]]
        detail = f"{cadir.signing.subject} did not sign {listed(foreign)}; the first is by {first.issuer}"
        yield findings.warning("certificates of a second CA", detail, cadir.advise("For each: {enrol_ca}", foreign[0]))
    misnamed = [f"{name}.pem is for {each.subject}" for name, each in cadir.signed.items() if each.common_name != name]
    if misnamed:
        yield findings.warning("certificates under a wrong name", f"signed/: {listed(misnamed)}")
    expired = [name for name, each in cadir.signed.items() if each.not_after < now]
    if expired:
        yield findings.notice(
            "expired certificates", f"signed/: {listed(expired)}", cadir.advise("{clean}", expired[0])
        )
    if soon := ending([(name, each.not_after) for name, each in cadir.signed.items()], now):
        yield findings.notice(
            "certificates end soon", listed(soon), cadir.advise("Renew them on their agents, or for each: {enrol}")
        )
    holders: dict[str, set[str]] = defaultdict(set)
    for name, key in [(n, c.key) for n, c in cadir.signed.items()] + [(n, r.key) for n, r in cadir.requests.items()]:
        holders[key].add(name)
    shared = [f"{', '.join(sorted(names))} ({key_text(key)})" for key, names in holders.items() if len(names) > 1]
    if shared:
        detail = f"one key under several names: {listed(shared)}; a cloned machine?"
        yield findings.warning(
            "a key that several agents have",
            detail,
            cadir.advise("For each clone, with a certname of its own: {enrol}"),
        )


def _requests(cadir: CaDir) -> Iterator[Diagnosis]:
    waiting = []
    for name, request in cadir.requests.items():
        signed = cadir.signed.get(name)
        if request.common_name != name:
            yield findings.error(
                "signing request under a wrong name",
                f"requests/{name}.pem is for {request.subject}",
                f"`rm {cadir.path(f'requests/{name}.pem')}`",
            )
        elif signed and signed.key != request.key:
            detail = f"{name}: the certificate is for {key_text(signed.key)}, the request for {key_text(request.key)}"
            remedy = cadir.advise(
                "Compare with {fingerprint} on the agent; if it is that node's request: {enrol}", name
            )
            yield findings.warning("request with another key for a signed name", detail, remedy, "B18")
        elif signed:
            yield findings.notice("request for a signed name", f"{name}: requests/ and signed/ have the same key")
        else:
            waiting.append(name)
        if refusal := _refusal(cadir, request):
            yield findings.notice("request that the CA will not sign", f"{name}: {refusal[0]}", refusal[1])
    if waiting:
        single = len(waiting) == 1
        remedy = "Compare with {fingerprint} on the agent, then " + ("{sign}" if single else "{list}")
        detail = listed([f"{name} (SHA256) {cadir.requests[name].fingerprint}" for name in waiting], 20)
        yield findings.notice("waiting to be signed", detail, cadir.advise(remedy, waiting[0] if single else None))


def _refusal(cadir: CaDir, request: CertificateRequest) -> tuple[str, str] | None:
    """Why the CA's defaults refuse a request, and what allows it (docs/protocol.md#checks-of-a-signing-request)."""
    if request.signature_valid is False:
        return "it is not signed with its own key", ""
    extra = [name for name in request.alt_names if name != f"DNS:{request.common_name}"]
    if extra:
        allow = "`allow-subject-alt-names: true` in ca.conf, and a restart"
        if cadir.generation == "legacy":
            allow = f"`puppet cert --allow-dns-alt-names sign {shlex.quote(request.common_name or '')}`"
        return f"it asks for the alternative names {listed(extra)}", allow
    if request.authorizations:
        return (
            f"it asks for {listed(list(request.authorizations))}",
            "`allow-authorization-extensions: true` in ca.conf",
        )
    return None


def _rights(cadir: CaDir) -> Iterator[Diagnosis]:
    there = cadir.folder
    keys = [name for name in there.entries if name in ("ca_key.pem", "root_key.pem", "private/ca.pass")]
    yield from puppet_dir.open_to_all(there, keys)
    if bad := puppet_dir.owner_troubles(there, [*CA_FILES, "signed", "requests"]):
        user = puppet_dir.owner(there)
        detail = f"{', '.join(bad)}; {user}, who owns the directory, can't read that"
        yield findings.error("wrong owner", detail, f"`chown -R {user}: {cadir.path('.')}`")
    home, key = there.entries.get("."), there.entries.get("ca_key.pem")
    if home and key and home.uid == 0 == key.uid:
        detail = f"ca_key.pem is {key.rights}: a puppetserver that runs as another user can't read it"
        yield findings.notice(
            "the CA belongs to root", detail, f"If it runs as puppet: `chown -R puppet: {cadir.path('.')}`"
        )


def _own(cadir: CaDir, certificate: Certificate) -> bool:
    """Whether this CA's key signed it."""
    signing = cadir.signing
    return signing is None or (certificate.issuer == signing.subject and findings.signed_by(certificate, signing))
