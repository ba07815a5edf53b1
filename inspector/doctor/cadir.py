"""Check a CA's directory: whether the CA can start, sign and revoke, and whether its records are consistent.

``read`` reads the directory and changes nothing. ``examine`` returns what is wrong with it at a given time. Files and
formats are those of puppetserver 7.9.5 and the Ruby CA, which share them (docs/protocol.md#the-directory-of-a-ca), or
of an openvox-ca (docs/protocol.md#openvox-ca).
"""

from __future__ import annotations

import hmac
import shlex
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from inspector import regex
from inspector.doctor import findings, puppet_dir
from inspector.doctor.ca_programs import OPENVOX, PUPPET
from inspector.doctor.findings import CA_FILES, SOON, expiring, key_text, listed
from inspector.doctor.puppet_dir import Folder, KeyFile
from inspector.errors import InspectorError
from inspector.host.crls import KEYS
from inspector.model import Severity
from inspector.progress import unwatched, watched
from inspector.protocol.signatures import signed_by
from inspector.rules.fixes import advice, group, on_ca, on_node
from inspector.rules.puppet_commands import CADIRS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from inspector.doctor.ca_programs import CaProgram
    from inspector.doctor.findings import Diagnosis, Generation
    from inspector.progress import Watch
    from inspector.protocol import x509
    from inspector.protocol.certificates import Certificate, CertificateRequest, RevocationList
    from inspector.rules.fixes import Fix, Step

COUNTED = 1 << 31
"""Upper bound of the serial numbers that a CA counts: it reads its file as a Java int. Larger ones are random."""

_RESTORE = (advice("restore it from a backup"),)
_RENEW = (advice("renew the CA's certificate"), advice("distribute the new ca.pem to every agent"))
_INFRA_CRL = (advice("correct it", only_if="ca.conf has `enable-infra-crl: true`"),)
_CLOCK = (on_ca("see its clock, and correct it", "timedatectl"),)
_CLEAN = on_ca("remove it", "{clean}", destroys="the certificate, and revokes it")
_ENTRY = regex.compile(r"(?:0x)?([0-9A-Fa-f]+)\s+(\S+)\s+(\S+)\s+(.*\S)")
_CN = regex.compile(r"(?:^|[/,])CN=([^/,]+)")


@dataclass(frozen=True, slots=True)
class InventoryEntry:
    """A line of inventory.txt."""

    serial: int
    not_before: str
    not_after: str
    """Both dates as written in the file: ``2041-11-17T14:11:12UTC``."""
    subject: str

    @property
    def name(self) -> str:
        common_name = _CN.search(self.subject)
        return common_name[1] if common_name else self.subject.removeprefix("/")  # openvox-ca: ``/NAME``


@dataclass(frozen=True, slots=True)
class CaDir:
    """The contents of a CA's directory; the fields that are compared with an agent or a capture come first."""

    signed: Mapping[str, Certificate] = field(default_factory=dict)
    """Issued certificates by file name."""
    requests: Mapping[str, CertificateRequest] = field(default_factory=dict)
    """Pending requests by file name."""
    serial: int | None = None
    """The next serial number."""
    inventory: tuple[InventoryEntry, ...] = ()
    revoked: frozenset[int] = frozenset()
    """Serial numbers on the signing CA's own CRL."""
    authorities: tuple[Certificate, ...] = ()
    crls: tuple[RevocationList, ...] = ()
    private: KeyFile | None = None
    public: str | None = None
    infra_crls: tuple[RevocationList, ...] = ()
    generation: Generation = "modern"
    folder: Folder = field(default_factory=lambda: Folder(Path()))
    program: CaProgram = PUPPET
    """The program whose directory it is."""

    @property
    def signing(self) -> Certificate | None:
        """The CA certificate that matches ca_key.pem; the first one if none is known to match."""
        key = self.private.key if self.private else None
        first = self.authorities[0] if self.authorities else None
        return next((authority for authority in self.authorities if authority.key == key), first)

    def steps(self, *fix: Step, certname: str | None = None) -> Fix:
        """Return a fix with the commands for this CA and an agent."""
        filled = findings.steps(fix, certname, self.generation, self.program.service)
        path = self.path(".")
        for blank in CADIRS:
            filled = tuple(msgspec.structs.replace(step, command=step.command.replace(blank, path)) for step in filled)
        return filled

    def path(self, name: str) -> str:
        """Return the absolute path of a file, quoted for a shell."""
        return shlex.quote(str(self.folder.path.absolute() / name))


def read(
    path: Path,
    generation: Generation | None = None,
    *,
    known: dict[bytes, object] | None = None,
    watch: Watch = unwatched,
) -> CaDir:
    """Read a cadir. ``known`` is what was parsed of another one (``Folder``).

    Raises InspectorError if the directory is not a cadir.
    """
    folder = Folder(path, known)
    names = list(folder.top())
    if not any(name in names for name in (*CA_FILES, "signed")) and not folder.hidden:
        raise _no_cadir(path, names)
    authorities, crls = folder.certificates("ca_crt.pem", _RESTORE), folder.crls("ca_crl.pem", _RESTORE)
    program = _program(folder)
    private = folder.key(program.key_file, program.password, _RESTORE)
    if program.mac:
        _check_inventory(folder, *program.mac)
    issuer = next((authority for authority in authorities if private and authority.key == private.key), None)
    issuer = issuer or (authorities[0] if authorities else None)
    own = [crl for crl in crls if issuer and crl.issuer == issuer.subject]
    names = _names(folder, "signed")
    signed = {
        name: certificates[0]
        for name in watched(names, watch, len(names), "reading certificate")
        if (certificates := folder.certificates(f"signed/{name}.pem"))
    }
    requests = {name: csr for name in _names(folder, "requests") if (csr := folder.request(f"requests/{name}.pem"))}
    return CaDir(
        signed=signed,
        requests=requests,
        serial=_serial(folder) if "serial" in program.needed else None,
        inventory=tuple(_inventory(folder)),
        revoked=frozenset(serial for crl in own for serial in crl.revoked),
        authorities=authorities,
        crls=crls,
        private=private,
        public=folder.public_key("ca_pub.pem"),
        infra_crls=_infra_crls(folder),
        generation=generation or ("legacy" if "private/ca.pass" in folder.entries else "modern"),
        folder=folder,
        program=program,
    )


def examine(cadir: CaDir, now: float) -> list[Diagnosis]:
    """Return what is wrong with a cadir at a given time, worst first."""
    own = {name: certificate for name, certificate in cadir.signed.items() if _own(cadir, certificate)}
    diagnoses = list(cadir.folder.problems)
    if cadir.program.service:
        diagnoses.append(findings.notice("CA", cadir.program.service))
    diagnoses += [*_complete(cadir), *_authority(cadir), *_trust(cadir, now), *_serials(cadir, own)]
    diagnoses += [*_records(cadir, own), *_signed(cadir, own, now), *_requests(cadir), *_rights(cadir)]
    return findings.worst_first(diagnoses)


# -- reading ------------------------------------------------------------------------------------------


def _no_cadir(path: Path, names: Sequence[str]) -> InspectorError:
    hint = "Use the directory that `puppet config print cadir --section server` prints."
    if not path.is_dir():
        return InspectorError(f"There is no directory {path}.", hint)
    if "private_keys" in names:
        return InspectorError(f"{path} is an agent's directory, not a CA's.", "Pass it with --ssldir.")
    return InspectorError(f"{path} is not a cadir: it contains none of {', '.join(CA_FILES)}.", hint)


def _infra_crls(folder: Folder) -> tuple[RevocationList, ...]:
    """Return the CRLs of the masters. A file without any is no error: a CA that does not serve it does not read it."""
    before = len(folder.problems)
    found = folder.crls("infra_crl.pem")
    folder.problems[before:] = [
        findings.notice("infra CRL", problem.detail, _INFRA_CRL) if problem.severity is Severity.ERROR else problem
        for problem in folder.problems[before:]
    ]
    return found


def _names(folder: Folder, directory: str) -> list[str]:
    return [name[:-4] for name in folder.list(directory) if name.endswith(".pem")]


def _program(folder: Folder) -> CaProgram:
    """Return the program whose directory it is: an openvox-ca's has the key, or at least the HMAC, in another place."""
    folder.list("private")
    marks = PUPPET.key_file, OPENVOX.key_file, *(OPENVOX.mac or ())[:1]
    own, *others = (name in folder.entries for name in marks)
    return OPENVOX if any(others) and not own else PUPPET


def _check_inventory(folder: Folder, mac_file: str, key_file: str) -> None:
    """Compare the inventory with its HMAC; a second time if it was written between the two."""
    for _ in range(2):
        key, mac, inventory = (folder.read(name) for name in (key_file, mac_file, "inventory.txt"))
        # Without its key the CA makes another one, which does not fit.
        known = key if key or not folder.missing(key_file) else b"another"
        if not known or mac is None or inventory is None:
            return
        if hmac.compare_digest(hmac.digest(known, inventory, "sha256"), mac):
            return
    path = shlex.quote(str(folder.path.absolute() / mac_file))
    detail = f"inventory.txt and its HMAC ({mac_file}, with {key_file}) do not match: the CA does not start"
    fix = (
        advice("restore all three from the same backup, or see what was changed in inventory.txt"),
        on_ca("let the CA take it as it is", f"rm {path}", only_if="you know who changed it, and it is right",
              destroys="the CA's record of what it wrote"),
    )  # fmt: skip
    folder.problems.append(findings.error("the inventory was changed", detail, fix))


def _serial(folder: Folder) -> int | None:
    data = folder.read("serial")
    if data is None:
        return None
    try:
        return int(data[:100].decode("ascii").strip(), 16)
    except ValueError:
        detail = "serial does not contain a hexadecimal number, so the CA cannot sign anything"
        fix = (advice("write the number that follows the last serial number in inventory.txt into the file"),)
        folder.problems.append(findings.error("unusable serial file", detail, fix))
        return None


def _inventory(folder: Folder) -> Iterator[InventoryEntry]:
    data = folder.read("inventory.txt") or b""
    malformed = 0
    for line in data.decode("utf-8", "replace").splitlines():
        if entry := _ENTRY.fullmatch(line.strip()):
            yield InventoryEntry(int(entry[1], 16), entry[2], entry[3], entry[4])
        elif line.strip() and not line.startswith("#"):
            malformed += 1
    if malformed:
        detail = f"inventory.txt has {malformed} lines that are not entries"
        folder.problems.append(findings.notice("malformed inventory", detail))


# -- judging ------------------------------------------------------------------------------------------


def _complete(cadir: CaDir) -> Iterator[Diagnosis]:
    program, folder = cadir.program, cadir.folder
    if program.key_elsewhere and folder.missing(program.key_file):
        detail = f"{program.key_file} is missing: the CA starts only if its configuration says where else its key is"
        yield findings.warning("the CA's key is not in its directory", detail, program.key_elsewhere)
    if missing := [name for name in program.needed if folder.missing(name)]:
        found = ", ".join(name for name in program.needed if name not in missing) or "none"
        detail = f"missing: {', '.join(missing)}{program.incomplete.format(found=found)}"
        yield findings.error("half-initialised CA", detail, (advice(program.restore),))


def _authority(cadir: CaDir) -> Iterator[Diagnosis]:
    """Compare the CA's key with its certificate and public key."""
    private, key_file = cadir.private, cadir.program.key_file
    if private is None:
        return
    if private.key is None:
        yield cadir.program.locked
        return
    keys = [authority.key for authority in cadir.authorities]
    if keys and private.key not in keys:
        others = ", ".join(key_text(key) for key in keys)
        detail = f"{key_file} holds {key_text(private.key)}, ca_crt.pem is for {others}"
        fix = (advice("restore both from the same backup"),)
        yield findings.error("the CA's key and certificate do not match", detail, fix)
    elif keys and keys[0] != private.key and cadir.signing:
        detail = (
            f"the first certificate in ca_crt.pem is {cadir.authorities[0].subject}, but {key_file} belongs to "
            f"{cadir.signing.subject}"
        )
        fix = (advice("put the signing CA's certificate first in ca_crt.pem"),)
        yield findings.warning("wrong order of the CA certificates", detail, fix)
    if cadir.public and cadir.public != private.key:
        detail = f"ca_pub.pem holds {key_text(cadir.public)}, {key_file} holds {key_text(private.key)}"
        command = f"openssl pkey -in {cadir.path(key_file)} -pubout -out {cadir.path('ca_pub.pem')}"
        fix = (on_ca("write it anew", command),)
        yield findings.notice("stale public key", detail, fix)
    if private.encrypted and cadir.generation == "modern":
        detail = "ca_key.pem is encrypted; puppetserver reads only unencrypted keys"
        yield findings.error("the CA's key is encrypted", detail, (advice("decrypt it, and keep its mode 0640"),))


def _trust(cadir: CaDir, now: float) -> Iterator[Diagnosis]:
    """Verify the CA's own chain and CRLs, which are the ones that agents download."""
    signing = cadir.signing
    if signing is None:
        return
    problems = findings.verified(signing, (), cadir.authorities, (), now, "none")
    if cadir.crls:
        problems += findings.crl_problems(cadir.authorities, cadir.crls, now)
    for problem in problems:
        yield _problem(cadir, problem)
    if cadir.crls and cadir.crls[0].issuer != signing.subject:
        detail = f"the first CRL in ca_crl.pem is from {cadir.crls[0].issuer}; the CA treats the first one as its own"
        fix = (advice(f"put the CRL from {signing.subject} first in ca_crl.pem"),)
        yield findings.error("wrong order of the CRLs", detail, fix)
    if cadir.infra_crls and (problems := findings.crl_problems(cadir.authorities, cadir.infra_crls, now)):
        detail = f"infra_crl.pem: {'; '.join(map(str, problems))}"
        yield findings.notice("infra CRL", detail, _INFRA_CRL)
    expiries = [(f"ca_crt.pem: {authority.subject}", authority.not_after) for authority in cadir.authorities]
    if soon := expiring(expiries, now, 3 * SOON):
        yield findings.warning("the CA certificate expires soon", "; ".join(soon), _RENEW, "B34")
    if soon := findings.expiring_crls("ca_crl.pem:", cadir.crls, now):
        yield findings.warning("the CA's CRL expires soon", "; ".join(soon), cadir.steps(*cadir.program.new_crl), "B11")


def _problem(cadir: CaDir, problem: x509.Problem) -> Diagnosis:
    new_crl = cadir.steps(*cadir.program.new_crl)
    by_code: dict[int, tuple[str, Fix, str | None]] = {
        3: ("the CA's CRLs do not cover the chain", cadir.steps(group("missing_crl")), "B13"),
        8: ("invalid signature on the CA's CRL", new_crl, "B14"),
        9: ("the CA certificate is not yet valid", _CLOCK, "B35"),
        10: ("the CA certificate has expired", _RENEW, "B33"),
        11: ("the CA's CRL is not yet valid", _CLOCK, "B12"),
        12: ("the CA's CRL has expired", new_crl, "B10"),
    }
    complete = (advice("put every CA up to the root into ca_crt.pem"),)
    title, fix, rule = by_code.get(problem.code, ("the CA's certificate chain is invalid", complete, None))
    return findings.error(title, str(problem), fix, rule)


def _serials(cadir: CaDir, own: Mapping[str, Certificate]) -> Iterator[Diagnosis]:
    """Compare the counter with the issued serial numbers, and look for numbers with several subjects."""
    issued = {entry.serial: entry.name for entry in cadir.inventory}
    issued |= {certificate.serial: name for name, certificate in own.items()}
    counted = {serial: name for serial, name in issued.items() if serial < COUNTED}
    last = max(counted, default=0)
    if cadir.serial is not None and cadir.serial <= last:
        detail = f"the next serial number is {cadir.serial:04X}, but {last:04X} was already issued, to {counted[last]}"
        detail += "; revoking one certificate would revoke both"
        write = on_ca("write the next number", f"echo {last + 1:04X} > {cadir.path('serial')}")
        fix: Fix = advice("stop the CA"), write, advice("start the CA")
        yield findings.error("the CA would issue a serial number twice", detail, fix)
    holders: dict[int, set[str]] = defaultdict(set)
    for entry in cadir.inventory:
        holders[entry.serial].add(entry.name)
    for name, certificate in own.items():
        holders[certificate.serial].add(certificate.common_name or name)
    twice = [f"{serial:04X} ({', '.join(sorted(names))})" for serial, names in holders.items() if len(names) > 1]
    if twice:
        detail = f"issued more than once: {listed(twice)}; revoking one certificate revokes the others"
        fix = (
            advice("let one of them be; what follows is for each of the others"),
            *enrolled_without_revoking(cadir, cadir.path("signed")),
        )
        yield findings.error("several certificates with one serial number", detail, fix)


def enrolled_without_revoking(cadir: CaDir | None, signed: str) -> Fix:
    """Return how a node gets a certificate with another serial number: to clean it would put its number, which is
    another node's as well, on the CRL. ``signed`` is the path of the directory with certificates, for a command."""
    enrol = (
        on_node("enrol again", "{reset}", destroys="its key and its certificate"),
        on_ca("sign its new request, unless the CA autosigns", "{sign}"),
    )
    return (
        on_ca(
            "remove its certificate without revoking it", f"rm {signed}/<certname>.pem", destroys="the CA's copy of it"
        ),
        *(cadir.steps(*enrol) if cadir else findings.steps(enrol, None, "modern")),
    )


def _records(cadir: CaDir, own: Mapping[str, Certificate]) -> Iterator[Diagnosis]:
    """Compare inventory.txt, signed/ and the CRL with each other."""
    known = {entry.serial for entry in cadir.inventory}
    missing = {name: certificate for name, certificate in own.items() if certificate.serial not in known}
    # `puppetserver ca generate --ca-client` signs beside the server, and writes no line.
    beside = [name for name, certificate in missing.items() if "pp_cli_auth" in certificate.authorizations]
    if cadir.inventory and beside:
        detail = f"in signed/ but not in inventory.txt: {listed(beside)}; `generate --ca-client` leaves them out"
        yield findings.notice("certificates for the CA's own commands", detail)
    unlisted = [name for name in missing if name not in beside]
    if cadir.inventory and unlisted:
        detail = f"in signed/ but not in inventory.txt: {listed(unlisted)}"
        fix = (advice("restore both from the same backup", only_if="one of them was restored from a backup"),)
        yield findings.warning("certificates missing from the inventory", detail, fix)
    if known and (unissued := sorted(cadir.revoked - known)):
        detail = f"revoked, but not in inventory.txt: {listed([f'{serial:04X}' for serial in unissued])}"
        yield findings.notice("revoked serial numbers that were never issued", detail)
    latest = {entry.name: entry.serial for entry in cadir.inventory}
    listed_here = [(name, one.serial) for name, one in own.items() if one.serial in known]
    if outdated := [name for name, serial in listed_here if serial != latest.get(name, serial)]:
        detail = f"inventory.txt lists newer certificates than signed/ holds for {listed(outdated)}"
        fix = (advice("look for restored files", only_if="none of them was renewed"),)
        yield findings.notice("outdated certificates in signed/", detail, fix)
    if revoked := [name for name, certificate in own.items() if certificate.serial in cadir.revoked]:
        replaces = cadir.program.replaces_revoked
        follows = "a new signing request replaces them" if replaces else "the CA refuses their new signing requests"
        detail = f"revoked, but still in signed/: {listed(revoked)}; {follows}"
        clean = () if replaces else cadir.steps(_CLEAN, certname=revoked[0])
        yield findings.notice("revoked but not cleaned", detail, clean)


def _signed(cadir: CaDir, own: Mapping[str, Certificate], now: float) -> Iterator[Diagnosis]:
    foreign = [name for name in cadir.signed if name not in own]
    if foreign and cadir.signing:
        first = cadir.signed[foreign[0]]
        detail = f"{cadir.signing.subject} did not sign {listed(foreign)}; the first one is from {first.issuer}"
        fix = cadir.steps(advice("do for each of them what follows"), group("enrol_ca"), certname=foreign[0])
        yield findings.warning("certificates from another CA", detail, fix)
    if misnamed := [
        f"{name}.pem is for {one.subject}" for name, one in cadir.signed.items() if one.common_name != name
    ]:
        yield findings.warning("certificate files with a wrong name", f"signed/: {listed(misnamed)}")
    if expired := [name for name, certificate in cadir.signed.items() if certificate.not_after < now]:
        fix = cadir.steps(_CLEAN, certname=expired[0])
        yield findings.notice("expired certificates", f"signed/: {listed(expired)}", fix, "B33")
    if soon := expiring([(name, certificate.not_after) for name, certificate in cadir.signed.items()], now):
        otherwise = group("enrol", only_if="an agent cannot renew its certificate")
        fix = cadir.steps(advice("renew each of them on its agent"), otherwise)
        yield findings.notice("certificates expire soon", listed(soon), fix, "B34")
    holders: dict[str, set[str]] = defaultdict(set)
    for name, key in [(n, c.key) for n, c in cadir.signed.items()] + [(n, r.key) for n, r in cadir.requests.items()]:
        holders[key].add(name)
    shared = [f"{', '.join(sorted(names))} ({key_text(key)})" for key, names in holders.items() if len(names) > 1]
    if shared:
        detail = f"one key under several names: {listed(shared)}; possibly a cloned machine"
        fix = cadir.steps(advice("give each clone a certname of its own; what follows is for each"), group("enrol"))
        yield findings.warning("several agents share a key", detail, fix)


def _requests(cadir: CaDir) -> Iterator[Diagnosis]:
    waiting = []
    for name, request in cadir.requests.items():
        signed = cadir.signed.get(name)
        if request.common_name != name:
            detail = f"requests/{name}.pem is for {request.subject}"
            fix: Fix = (on_ca("remove it", f"rm {cadir.path(f'requests/{name}.pem')}", destroys="the request"),)
            yield findings.error("signing request file with a wrong name", detail, fix)
        elif signed and signed.key != request.key:
            detail = f"{name}: the certificate is for {key_text(signed.key)}, the request for {key_text(request.key)}"
            fix = cadir.steps(
                on_node("compare the fingerprint of its request", "{fingerprint}"),
                group("enrol", only_if="the request is from that node"),
                certname=name,
            )
            yield findings.warning("signing request with another key for a signed name", detail, fix, "B18")
        elif signed:
            detail = f"{name}: the request and the certificate in signed/ have the same key"
            yield findings.notice("signing request for a signed name", detail)
        else:
            waiting.append(name)
        if refusal := _refusal(cadir, request):
            yield findings.notice("signing request that the CA will not sign", f"{name}: {refusal[0]}", refusal[1])
    if waiting:
        # With several of them the command has a blank for the name.
        fix = cadir.steps(
            on_node("compare the fingerprint of its request", "{fingerprint}"),
            on_ca("sign the request", "{sign}", only_if="they are the same"),
            certname=waiting[0] if len(waiting) == 1 else None,
        )
        detail = listed([f"{name} (SHA256) {cadir.requests[name].fingerprint}" for name in waiting], 20)
        yield findings.notice("waiting to be signed", detail, fix)


def _refusal(cadir: CaDir, request: CertificateRequest) -> tuple[str, Fix] | None:
    """Return why the CA's defaults refuse a request, and what allows it (docs/protocol.md#checks-of-a-signing-request).

    None: they do not refuse it.
    """
    if request.signature_valid is False:
        return "the request is not signed with its own key", ()
    if request.key_type == "rsa" and request.key_size is not None and request.key_size < cadir.program.least_bits:
        again = cadir.steps(group("enrol"), certname=request.common_name)
        return f"its key has only {request.key_size} bits", again
    if cadir.program.signs_extensions:
        return None
    if extra := [name for name in request.alt_names if name != f"DNS:{request.common_name}"]:
        allow = cadir.steps(group("alt_names"), certname=request.common_name)
        return f"the request asks for the alternative names {listed(extra)}", allow
    if request.authorizations:
        allow = (advice("set `allow-authorization-extensions: true` in ca.conf, and restart the CA"),)
        return f"the request asks for the authorization {listed(list(request.authorizations))}", allow
    return None


def _rights(cadir: CaDir) -> Iterator[Diagnosis]:
    program, folder = cadir.program, cadir.folder
    keys = [name for name in folder.entries if name in KEYS or name.startswith(program.password or "private/")]
    yield from puppet_dir.open_to_all(folder, keys)
    wanted = [*dict.fromkeys((*program.needed, program.key_file)), "signed", "requests"]
    if unreadable := puppet_dir.unreadable_for_owner(folder, wanted):
        user = puppet_dir.owner(folder)
        detail = f"{', '.join(unreadable)}; the owner of the directory ({user}) cannot read this"
        fix = (on_ca("correct the owner", f"chown -R {user}: {cadir.path('.')}"),)
        yield findings.error("wrong owner", detail, fix)
    home, key = folder.entries.get("."), folder.entries.get(program.key_file)
    if home and key and home.uid == 0 == key.uid:
        server, user = program.unit, program.user
        detail = f"{program.key_file} is {key.rights}: {server}, if it runs as another user, cannot read the key"
        correct = on_ca("correct the owner", f"chown -R {user}: {cadir.path('.')}", only_if=f"{server} runs as {user}")
        yield findings.notice("the CA directory belongs to root", detail, (correct,))


def _own(cadir: CaDir, certificate: Certificate) -> bool:
    """Tell whether this CA's key signed the certificate."""
    signing = cadir.signing
    if signing is None:
        return True
    return certificate.issuer == signing.subject and signed_by(certificate, signing) is not False
