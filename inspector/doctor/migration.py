"""Compare two CAs, of which NEW is to take the place of OLD: what they answer differently, and what follows for nodes.

What is known of each is a ``CaView``; nothing is opened, asked or changed here. What one of them does not show is never
a difference. The time is an argument, in seconds since the epoch.
"""

from __future__ import annotations

import datetime
import functools
import shlex
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from inspector.clocks import DAY
from inspector.doctor import cadir, findings
from inspector.doctor.cadir import COUNTED
from inspector.doctor.findings import fingerprints, key_text, listed
from inspector.model import Severity
from inspector.protocol import x509
from inspector.protocol.certificates import printed_serial
from inspector.rules.fixes import advice, group, on_ca, on_node
from inspector.text import plural, utc_day

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from inspector.doctor.ca_view import CaView
    from inspector.doctor.cadir import InventoryEntry
    from inspector.doctor.findings import Diagnosis
    from inspector.protocol.certificates import Certificate
    from inspector.rules.fixes import Fix, Step

_STOP = on_ca("stop NEW", "systemctl stop puppetserver")
_START = on_ca("start NEW", "systemctl start puppetserver")
_UNTRUSTED = "no CA of its bundle issued their certificates"
_REVOKED = "it has revoked their certificates"
_EXPIRED, _EARLY = "their certificates have expired", "their certificates are not valid yet"
_AGAIN, _LACKING = "NEW gives serial numbers of OLD again", "NEW's inventory lacks certificates of OLD"
_NO_CRL = "NEW lacks a CRL"
_THEIRS = {
    _AGAIN: "the CA would issue a serial number twice",
    _LACKING: "certificates missing from the inventory",
    _NO_CRL: "the CA's CRLs do not cover the chain",
}
"""Differences, and what NEW's directory alone shows of the same."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What OLD and NEW answer differently."""

    diagnosis: Diagnosis
    nodes: tuple[str, ...] = ()
    """All nodes that it is about, sorted."""


@dataclass(frozen=True, slots=True)
class Migration:
    """Two CAs, compared."""

    old: CaView
    new: CaView
    differences: tuple[Difference, ...]
    """The worst first."""
    nodes: int
    """Nodes of which either of them has, or shows, a certificate or a request."""
    unknown: tuple[str, ...]
    """What was not compared, in sentences."""


class _Ident(NamedTuple):
    """Whose certificate has a serial number."""

    name: str
    fingerprint: str
    """That of the certificate; empty if it is in the inventory only."""
    issued: str
    """The beginning of its validity as the inventory has it; empty if it is not in it."""

    def is_not(self, other: _Ident) -> bool:
        """Whether the two are certainly not one certificate."""
        pairs = (self.fingerprint, other.fingerprint), (self.issued, other.issued)
        return self.name != other.name or any(ours and theirs and ours != theirs for ours, theirs in pairs)


def compare(old: CaView, new: CaView, now: float, others: Iterable[Difference] = ()) -> Migration:
    """Return what differs between two CAs; ``others`` is what else was found out about them."""
    both = _Both(old, new, now)
    found = [
        *_authority(both),
        *_server(both),
        *_crls(both),
        *_nodes(both),
        *_serials(both),
        *_certificates(both),
        *_requests(both),
        *_inventory(both),
        *_settings(both),
        *others,
    ]
    found += _health(both, {_THEIRS[one.diagnosis.title] for one in found if one.diagnosis.title in _THEIRS})
    ranked = sorted(found, key=lambda one: -one.diagnosis.severity.rank)
    names = {*old.certificates, *old.requests, *new.certificates, *new.requests}
    return Migration(old, new, tuple(ranked), len(names), (*old.unknown, *new.unknown, *_unknown(both)))


class _Judge:
    """Whether servers that have a CA's bundle and CRLs accept certificates. OpenSSL decides, once for those that the
    same CA issued."""

    def __init__(self, view: CaView, now: float, *, each: bool) -> None:
        """``each``: every certificate is verified, as one key has several CA certificates."""
        self.now, self._each = now, each
        self._verifier = x509.Verifier([authority.der for authority in view.authorities], ())
        self._decided: dict[tuple[str, ...], str] = {}
        self._lists = [(crl.issuer, crl.authority_key_identifier, frozenset(crl.revoked)) for crl in view.crls or ()]

    def revoked(self, issuer: str, key: str | None) -> frozenset[int]:
        """Return the serial numbers that a CA, by its name and key identifier, has revoked."""
        return frozenset[int]().union(
            *(serials for name, of, serials in self._lists if name == issuer and (of is None or key in (None, of)))
        )

    def refusal(self, certificate: Certificate) -> str:
        """Return why a certificate is refused; empty if it is accepted."""
        issuer, key = certificate.issuer, certificate.authority_key_identifier
        for name, of, serials in self._lists:
            if name == issuer and (of is None or key in (None, of)) and certificate.serial in serials:
                return _REVOKED
        if certificate.not_after < self.now:
            return _EXPIRED
        if certificate.not_before > self.now + DAY:
            return _EARLY
        group_of = (issuer, key, "") if key and not self._each else (issuer, key or "", certificate.fingerprint)
        if group_of not in self._decided:
            self._decided[group_of] = self._distrust(certificate)
        return self._decided[group_of]

    def _distrust(self, certificate: Certificate) -> str:
        if not self._verifier.roots:
            return ""  # the bundle is not known
        problems = self._verifier.verify([certificate.der], self.now, "none")
        rest = [problem for problem in problems if problem.depth or problem.code not in (9, 10)]
        if not rest:
            return ""
        return _UNTRUSTED if all(problem.code in (2, 7, 18, 19, 20, 21) for problem in rest) else str(rest[0])


class _Both:
    """The two CAs, and what several comparisons need of them."""

    def __init__(self, old: CaView, new: CaView, now: float) -> None:
        self.old, self.new, self.now = old, new, now
        by_key: dict[str, set[str]] = defaultdict(set)
        for authority in (*old.authorities, *new.authorities):
            by_key[authority.key].add(authority.fingerprint)
        each = any(len(several) > 1 for several in by_key.values())
        self.by_old, self.by_new = _Judge(old, now, each=each), _Judge(new, now, each=each)

    @functools.cached_property
    def same_key(self) -> bool:
        """Whether both sign with one key."""
        old, new = self.old.signing, self.new.signing
        return old is not None and new is not None and old.key == new.key

    @functools.cached_property
    def names(self) -> Mapping[int, str]:
        """The holders of serial numbers, by the records of both."""
        return {serial: ident.name for serial, ident in (self.given(self.new) | self.given(self.old)).items()}

    def given(self, view: CaView) -> dict[int, _Ident]:
        """Return the serial numbers that a CA has given, with their holders."""
        signing = view.signing
        found = {entry.serial: _Ident(_holder(entry), "", entry.not_before) for entry in view.inventory}
        for name, one in view.certificates.items():
            if signing and one.issuer == signing.subject:
                listed_as = found.get(one.serial)
                holder = one.common_name or name
                issued = listed_as.issued if listed_as and listed_as.name == holder else ""
                found[one.serial] = _Ident(holder, one.fingerprint, issued)
        return found

    def replaced(self, name: str) -> bool:
        """Whether NEW has revoked a node's certificate of OLD, and has another one that it accepts."""
        old, new = self.old.certificates.get(name), self.new.certificates.get(name)
        if old is None or new is None or new.fingerprint == old.fingerprint:
            return False
        return self.by_new.refusal(old) == _REVOKED and not self.by_new.refusal(new)

    def steps(self, *fix: Step, certname: str | None = None) -> Fix:
        """Return a fix with the commands for NEW."""
        return findings.steps(fix, certname, self.new.directory.generation if self.new.directory else "modern")

    def of_old(self, *names: str) -> str:
        """Return paths below OLD's directory, for a command."""
        return _paths(self.old, "<directory of OLD>", names)

    def of_new(self, *names: str) -> str:
        """Return paths below NEW's directory, for a command."""
        return _paths(self.new, "<directory of NEW>", names)


def _paths(view: CaView, blank: str, names: Sequence[str]) -> str:
    if view.directory is None:
        return " ".join(f"{blank}/{shlex.quote(name)}" for name in names)
    return " ".join(view.directory.path(name) for name in names)


def _difference(diagnosis: Diagnosis, nodes: Iterable[str] = ()) -> Difference:
    return Difference(diagnosis, tuple(sorted(nodes)))


def _some(names: Iterable[str]) -> str:
    """Return names as a part of a sentence: ``these 3 nodes: a, b, c``."""
    every = sorted(names)
    return f"{plural(len(every), 'node')}: {listed(every)}"


def _holder(entry: InventoryEntry) -> str:
    """Return the name in a line of an inventory: ``/CN=NAME``, or ``/NAME`` as openvox-ca writes it."""
    return entry.name.removeprefix("/")


def _second(time: float) -> str:
    """Return a time as an inventory has it."""
    try:
        return f"{datetime.datetime.fromtimestamp(time, datetime.UTC):%Y-%m-%dT%H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return ""


# -- the CA itself --------------------------------------------------------------------------------------


def _authority(both: _Both) -> Iterator[Difference]:
    """Compare the CAs that sign, and their bundles."""
    old, new = both.old.signing, both.new.signing
    if old is None or new is None:
        return
    if not both.same_key:
        yield _another(both, old, new)
    elif old.fingerprint != new.fingerprint:
        detail = (
            f"OLD: serial number {printed_serial(old.serial)}, until {utc_day(old.not_after)} ({old.fingerprint}); "
            f"NEW: serial number {printed_serial(new.serial)}, until {utc_day(new.not_after)} ({new.fingerprint}); "
            f"the key is the same"
        )
        fix: Fix = (advice("give every agent NEW's ca_crt.pem as its ca.pem: agents before 8.1 do not fetch it again"),)
        yield _difference(findings.warning("NEW has another certificate of the same CA", detail, fix))
    signing = {old.fingerprint, new.fingerprint}
    theirs = {authority.fingerprint: authority for authority in both.old.authorities}
    ours = {authority.fingerprint: authority for authority in both.new.authorities}
    missing = [one for mark, one in theirs.items() if mark not in ours and mark not in signing]
    added = [one for mark, one in ours.items() if mark not in theirs and mark not in signing]
    changed = [f"NEW lacks {fingerprints(missing)}"] if missing else []
    changed += [f"only NEW has {fingerprints(added)}"] if added else []
    if changed and both.same_key:
        fix = (
            on_ca("see what agents download", f"openssl crl2pkcs7 -nocrl -certfile {both.of_new('ca_crt.pem')} "
                  "| openssl pkcs7 -print_certs -noout"),
            advice("put every CA up to the root into NEW's ca_crt.pem"),
        )  # fmt: skip
        detail = f"{'; '.join(changed)}: agents of 8.1 and later take NEW's bundle within a day"
        yield _difference(findings.warning("the CA bundles differ", detail, fix))


def _another(both: _Both, old: Certificate, new: Certificate) -> Difference:
    refused = [name for name, one in both.old.certificates.items()
               if not both.by_old.refusal(one) and both.by_new.refusal(one) == _UNTRUSTED]  # fmt: skip
    same = "both have this name, but not the same key; " if old.subject == new.subject else ""
    detail = (
        f"OLD signs with {fingerprints([old])}, NEW with {fingerprints([new])}; {same}"
        f"agents of OLD refuse NEW's servers"
    )
    if refused:
        detail += f", and NEW refuses {_some(refused)}"
    take = on_ca(
        "make NEW a copy of OLD",
        f"cp -a {both.of_old('.')}/. {both.of_new('.')}/",
        destroys="NEW's CA and what it has signed",
        only_if="NEW is to continue OLD",
    )
    fix = (
        _STOP,
        take,
        on_ca(
            "see what still differs",
            f"puppet-inspector doctor --cadir {both.of_old('.')} --compare {both.of_new('.')}",
            only_if="NEW is to continue OLD",
        ),
        *both.steps(group("enrol_ca", only_if="NEW is meant to be another CA; this is for each node")),
    )
    return _difference(findings.error("NEW is another CA", detail, fix), refused)


def _server(both: _Both) -> Iterator[Difference]:
    """Verify what a running NEW presents as agents of OLD do."""
    if not both.new.shown or not both.old.authorities:
        return
    try:
        leaf, *others = [x509.read_der(der) for der in both.new.shown]
    except x509.Malformed:
        return
    crls = both.old.crls or ()
    problems = findings.verified(leaf, others, both.old.authorities, crls, both.now, "chain" if crls else "none")
    if problems and both.same_key:
        detail = f"{leaf.subject}: {'; '.join(map(str, problems))}"
        fix = both.steps(group("renew_master", only_if="its certificate is the reason"))
        yield _difference(findings.error("agents of OLD refuse NEW's server", detail, fix))


# -- nodes ----------------------------------------------------------------------------------------------


def _nodes(both: _Both) -> Iterator[Difference]:
    """Say which nodes of OLD are refused by NEW."""
    refused: dict[str, list[str]] = defaultdict(list)
    for name, certificate in both.old.certificates.items():
        why = both.by_new.refusal(certificate)
        if why and not both.by_old.refusal(certificate) and (both.same_key or why != _UNTRUSTED):
            refused[why].append(name)
    again = [name for name in refused[_REVOKED] if both.replaced(name)]
    refused[_REVOKED] = [name for name in refused[_REVOKED] if name not in set(again)]
    if again:
        detail = f"NEW has revoked what OLD has of {_some(again)}, and has signed other certificates for them"
        fix = both.steps(
            on_node("see whether it has the certificate of NEW", "{fingerprint}"),
            group("enrol", only_if="it has that of OLD"),
            certname=again[0] if len(again) == 1 else None,
        )
        yield _difference(findings.warning("nodes that enrolled again on NEW", detail, fix), again)
    for why, names in refused.items():
        if not names:
            continue
        steps = group("revoked" if why == _REVOKED else "enrol_ca")
        fix = both.steps(steps, certname=names[0] if len(names) == 1 else None)
        known = both.old.crls is not None
        detail = (
            f"NEW refuses {_some(names)}; {why}, and {'OLD accepts them' if known else 'the CRL of OLD is not known'}"
        )
        severity, rule = findings.error if known else findings.warning, "T05" if why == _REVOKED else None
        yield _difference(severity("nodes that NEW refuses", detail, fix, rule), names)
    foreign = [name for name, one in both.new.certificates.items()
               if name not in both.old.certificates and not both.by_new.refusal(one)
               and both.by_old.refusal(one) not in ("", _REVOKED, _EXPIRED, _EARLY)]  # fmt: skip
    if foreign and both.same_key:
        detail = f"agents that have OLD's bundle refuse what NEW issued to {_some(foreign)}, if it is a server"
        fix = (advice("give every agent NEW's ca_crt.pem as its ca.pem before it uses a server of NEW"),)
        yield _difference(findings.warning("certificates that agents of OLD refuse", detail, fix), foreign)


def _crls(both: _Both) -> Iterator[Difference]:
    """Compare what is revoked, CA by CA, as far as NEW trusts it."""
    if both.old.crls is None or both.new.crls is None:
        return
    trusted = {(one.subject, one.key): one for one in both.new.authorities}
    issuers = [trusted[one.subject, one.key] for one in both.old.authorities if (one.subject, one.key) in trusted]
    if not both.old.authorities:
        issuers = list(both.new.authorities)
    again: list[str] = []
    nodes: set[str] = set()
    own = both.old.signing.key if both.old.signing else None
    for issuer in {(one.subject, one.key): one for one in issuers}.values():
        before = both.by_old.revoked(issuer.subject, issuer.key_identifier)
        after = both.by_new.revoked(issuer.subject, issuer.key_identifier)
        for serial in _accepted_again(both, issuer, before - after):
            name = both.names.get(serial, "") if issuer.key == own else ""
            again.append(f"{name or issuer.subject} (serial number {printed_serial(serial)})")
            nodes.update([name] if name else [])
        yield from _only_new(both, issuer, after - before)
        yield from _numbers(both, issuer, older=not before - after)
    if again:
        detail = (
            f"OLD has revoked, and NEW accepts again, {listed(again)}; whoever holds such a key gets "
            f"catalogs, with the secrets in them"
        )
        command = f"puppet-inspector fix new-crl --cadir {both.of_new('.')} --add {both.of_old('ca_crl.pem')}"
        fix = (
            on_ca("see what NEW's CRL would be with OLD's entries", command),
            on_ca("write it", f"{command} --execute"),
        )
        yield _difference(findings.error("revoked nodes that NEW accepts again", detail, fix, "B15"), nodes)


def _accepted_again(both: _Both, issuer: Certificate, serials: frozenset[int]) -> list[int]:
    """Return the serial numbers of a CA that only OLD has revoked, without those of certificates that have ended."""
    now = _second(both.now)
    ended = {entry.serial for entry in both.old.inventory if serials and entry.not_after[:19] < now}
    ended |= {
        one.serial for one in both.old.certificates.values()
        if one.serial in serials and one.not_after < both.now
    }  # fmt: skip
    # The inventory, and the certificates, are those of the CA that signs.
    own = both.old.signing is not None and both.old.signing.key == issuer.key
    return sorted(serials - ended if own else serials)


def _only_new(both: _Both, issuer: Certificate, serials: frozenset[int]) -> Iterator[Difference]:
    """Name what only NEW has revoked, without the nodes that are refused for it."""
    held = {one.serial for one in both.old.certificates.values() if one.issuer == issuer.subject}
    if rest := sorted(serials - held):
        named = [f"{both.names.get(serial, 'unknown')} ({printed_serial(serial)})" for serial in rest]
        detail = f"{listed(named)}; no certificate that OLD holds has these serial numbers"
        yield _difference(findings.notice("revoked on NEW only", detail))


def _numbers(both: _Both, issuer: Certificate, *, older: bool) -> Iterator[Difference]:
    """Compare the numbers of the CRLs of a CA. Not ``older``: why NEW's is older was found already."""
    newest = []
    for view in (both.old, both.new):
        own = [
            crl for crl in view.crls or ()
            if crl.issuer == issuer.subject and crl.authority_key_identifier in (None, issuer.key_identifier)
        ]  # fmt: skip
        newest.append(max(own, key=lambda crl: crl.last_update, default=None))
    old, new = newest
    if old is None or old.number is None:
        return
    if new is None:
        detail = f"{issuer.subject}: NEW has no CRL, OLD has number {old.number} with {len(old.revoked)} serial numbers"
        fix = (on_ca("copy it", f"cp -p {both.of_old('ca_crl.pem')} {both.of_new('ca_crl.pem')}"),)
        yield _difference(findings.error(_NO_CRL, detail, fix, "B13"))
    elif older and new.number is not None and new.number < old.number:
        detail = f"{issuer.subject}: NEW has number {new.number}, OLD has number {old.number}"
        command = f"puppet-inspector fix new-crl --cadir {both.of_new('.')} --add {both.of_old('ca_crl.pem')} --execute"
        yield _difference(findings.warning("NEW's CRL is older", detail, (on_ca("add OLD's", command),), "B15"))


# -- what was issued ------------------------------------------------------------------------------------


def _serials(both: _Both) -> Iterator[Difference]:
    """Look for serial numbers that both have given, and for those that NEW will give anew."""
    if not both.same_key:
        return
    theirs, ours = both.given(both.old), both.given(both.new)
    twice = {serial: (theirs[serial], ours[serial]) for serial in theirs.keys() & ours.keys()
             if theirs[serial].is_not(ours[serial])}  # fmt: skip
    counted = max((serial for serial in (*theirs, *ours) if serial < COUNTED), default=0)
    signing = both.new.signing
    key = signing.key_identifier if signing else None
    subject = signing.subject if signing else ""
    revoked = both.by_old.revoked(subject, key) | both.by_new.revoked(subject, key)
    if twice:
        named = [f"{printed_serial(serial)} ({old.name} on OLD, {new.name} on NEW)"
                 for serial, (old, new) in sorted(twice.items())]  # fmt: skip
        nodes = {ident.name for pair in twice.values() for ident in pair}
        detail = f"one CA has given {listed(named)}; to revoke one of two revokes the other as well"
        if dead := sorted(new.name for serial, (_, new) in twice.items() if serial in revoked):
            detail += f"; revoked since OLD, and so refused from the first day: {listed(dead)}"
        fix: Fix = both.steps(
            advice("let the one of OLD be; what follows is for the one of NEW, once NEW counts on after OLD's"),
            group("enrol"),
        )
        yield _difference(findings.error("serial numbers that OLD and NEW have both given", detail, fix), nodes)
    last = max((serial for serial in theirs if serial < COUNTED), default=0)
    if both.new.serial is not None and both.new.serial <= last:
        detail = (
            f"NEW gives {printed_serial(both.new.serial)} next, OLD has given numbers up to {printed_serial(last)} "
            f"(to {theirs[last].name}); to revoke a new node would revoke one of OLD's"
        )
        if count := sum(both.new.serial <= serial <= last for serial in revoked):
            detail += f", and {count} of them {'are' if count > 1 else 'is'} revoked: such a node is never accepted"
        fix = (
            _STOP,
            on_ca("write the next number", f"echo {counted + 1:04X} > {both.of_new('serial')}"),
            _START,
        )
        yield _difference(findings.error(_AGAIN, detail, fix))


def _certificates(both: _Both) -> Iterator[Difference]:
    """Compare the certificates that both have for a node, and name the nodes that only one of them has."""
    other_key, renewed = [], []
    for name, old in both.old.certificates.items():
        new = both.new.certificates.get(name)
        if new is None or new.fingerprint == old.fingerprint or both.replaced(name):
            continue
        if new.key == old.key:
            renewed.append((name, _changes(old, new)))
        else:
            other_key.append((name, f"OLD {key_text(old.key)}, NEW {key_text(new.key)}"))
    if other_key:
        names = [name for name, _ in other_key]
        detail = (
            f"{listed([f'{name} ({what})' for name, what in other_key])}; the node has one of the two keys: with OLD's "
            f"it is not revoked with what NEW has in signed/"
        )
        copy = on_ca(
            "copy OLD's certificate",
            f"cp -p {both.of_old('signed')}/<certname>.pem {both.of_new('signed')}/",
            only_if="it has that of OLD",
        )
        fix = (*both.steps(on_node("see which key it has", "{fingerprint}")), copy)
        yield _difference(findings.warning("nodes with another key on NEW", detail, fix), names)
    if renewed:
        severity = findings.warning if any(what.content for _, what in renewed) else findings.notice
        detail = listed([f"{name} ({what})" for name, what in renewed])
        detail += "; the key is the same: what the node has on its disk counts, and is what NEW must revoke"
        yield _difference(severity("nodes with another certificate on NEW", detail), [name for name, _ in renewed])
    yield from _only_one(both)


class _Change(NamedTuple):
    """What is different in two certificates for one key."""

    dates: str
    content: str
    """Names and extensions."""

    def __str__(self) -> str:
        return ", ".join(filter(None, self))


def _changes(old: Certificate, new: Certificate) -> _Change:
    dates = f"serial number {printed_serial(old.serial)} on OLD, {printed_serial(new.serial)} on NEW"
    if utc_day(old.not_after) != utc_day(new.not_after):
        dates += f", until {utc_day(old.not_after)} and {utc_day(new.not_after)}"
    content = []
    for what, before, after in (
        ("alternative names", set(old.alt_names), set(new.alt_names)),
        ("extensions", _pairs(old.extensions), _pairs(new.extensions)),
    ):
        if lost := sorted(before - after):
            content.append(f"{what} of OLD only: {listed(lost)}")
        if got := sorted(after - before):
            content.append(f"{what} of NEW only: {listed(got)}")
    if old.subject != new.subject:
        content.append(f"subject {old.subject} and {new.subject}")
    return _Change(dates, ", ".join(content))


def _pairs(extensions: Mapping[str, str]) -> set[str]:
    """Return extensions, of which a value may be a password."""
    return {name if "password" in name.lower() else f"{name}={value}" for name, value in extensions.items()}


def _only_one(both: _Both) -> Iterator[Difference]:
    lost = [
        name for name, one in both.old.certificates.items()
        if both.new.lacks(name) and not both.by_new.refusal(one) and not both.by_old.refusal(one)
    ]  # fmt: skip
    if lost:
        free = [name for name in lost if name not in both.new.requests]
        detail = (
            f"NEW has no certificate of {_some(lost)}; it accepts those of OLD, cannot revoke them by name, and would "
            f"sign another key for {'their names' if len(free) > 1 else 'that name'}"
        )
        names = [f"signed/{name}.pem" for name in lost]
        which = both.of_old(*names) if len(names) <= 3 else f"{both.of_old('signed')}/*.pem"
        fix = (on_ca("copy what NEW does not have", f"cp -np {which} {both.of_new('signed')}/",
                     only_if="nobody removed them from NEW on purpose"),)  # fmt: skip
        yield _difference(findings.warning("nodes that NEW does not know", detail, fix), lost)
    added = [
        name for name, one in both.new.certificates.items()
        if both.old.lacks(name) and both.by_old.refusal(one) != _REVOKED
    ]  # fmt: skip
    if added:
        detail = f"OLD has no certificate of {_some(added)}; they were signed since, or removed from OLD"
        yield _difference(findings.notice("nodes that only NEW knows", detail), added)


def _inventory(both: _Both) -> Iterator[Difference]:
    """Name what NEW's inventory lacks of OLD's."""
    if not both.same_key or both.old.directory is None or both.new.directory is None:
        return
    if "inventory.txt" in both.new.directory.folder.hidden:
        return
    have = {(entry.serial, _holder(entry)) for entry in both.new.inventory}
    now = _second(both.now)
    lacking = [entry for entry in both.old.inventory if (entry.serial, _holder(entry)) not in have]
    valid = [entry for entry in lacking if entry.not_after[:19] >= now]
    if not lacking:
        return
    detail = f"{len(lacking):,} of {plural(len(both.old.inventory), 'line')}"
    if valid:
        detail += f", among them {listed([f'{_holder(one)} ({printed_serial(one.serial)})' for one in valid])}"
    detail += "; Puppet Server 8 revokes what its inventory has for a name"
    target = both.of_new("inventory.txt")
    fix = (
        _STOP,
        on_ca("add them", f"sort -u {both.of_old('inventory.txt')} {target} -o {target}"),
        _START,
    )
    severity = findings.warning if valid else findings.notice
    names = dict.fromkeys(_holder(entry) for entry in valid)
    yield _difference(severity(_LACKING, detail, fix), names)


# -- requests and settings ------------------------------------------------------------------------------


def _requests(both: _Both) -> Iterator[Difference]:
    """Compare the signing requests that wait."""
    lost, other = [], []
    for name, old in both.old.requests.items():
        new = both.new.requests.get(name)
        signed = both.new.certificates.get(name)
        if new is not None and new.key != old.key:
            other.append(name)
        elif new is None and signed is None and both.new.lacks(name) and name not in both.old.certificates:
            lost.append(name)
        elif signed is not None and signed.key != old.key and name not in both.old.certificates:
            detail = (
                f"{name}: the request on OLD is for {key_text(old.key)}, NEW's certificate for {key_text(signed.key)}"
            )
            fix = both.steps(group("compare"), group("enrol", only_if="the request is that node's"), certname=name)
            yield _difference(findings.warning("NEW has signed another key", detail, fix, "B18"), [name])
    if other:
        shown = [f"{name} (OLD {both.old.requests[name].fingerprint}, NEW {both.new.requests[name].fingerprint})"
                 for name in other]  # fmt: skip
        fix = both.steps(on_node("compare the fingerprint of its request", "{fingerprint}"),
                         certname=other[0] if len(other) == 1 else None)  # fmt: skip
        yield _difference(findings.warning("signing requests for other keys", listed(shown, 3), fix, "B20"), other)
    if lost:
        detail = (
            f"NEW does not have the signing requests of {_some(lost)}; agents of 6.4 and later send them again at "
            f"their next attempt, older ones wait for ever"
        )
        files = [f"requests/{name}.pem" for name in lost]
        which = both.of_old(*files) if len(files) <= 3 else f"{both.of_old('requests')}/*.pem"
        fix = (on_ca("copy them", f"cp -np {which} {both.of_new('requests')}/"),)
        yield _difference(findings.notice("signing requests that wait on OLD only", detail, fix), lost)


_MEANING = {
    "allow-subject-alt-names": "signing requests with alternative names",
    "allow-authorization-extensions": "signing requests with authorization extensions",
    "allow-auto-renewal": "renewals of certificates (agents of 8.2 and later)",
}
"""What a CA refuses if a setting is false."""


def _settings(both: _Both) -> Iterator[Difference]:
    """Compare ca.conf, and what signs by itself, where they lie beside both."""
    old, new = both.old.settings, both.new.settings
    changed, restart = [], on_ca("restart NEW", "systemctl restart puppetserver")
    for name, before in old.ca_conf.items():
        after = new.ca_conf.get(name, before)
        if before == after:
            continue
        what = f"{name} is {before or 'not set'} on OLD and {after or 'not set'} on NEW"
        if name in _MEANING:
            what += f": NEW {'refuses' if after == 'false' else 'takes'} {_MEANING[name]}"
        changed.append(what)
    if old.ttl != new.ttl and old.autosign is not None and new.autosign is not None:
        changed.append(f"ca_ttl in puppet.conf is {old.ttl or 'not set'} on OLD and {new.ttl or 'not set'} on NEW")
    if changed:
        fix: Fix = (advice("write the values that are meant into NEW's ca.conf"), restart)
        yield _difference(findings.warning("the CA's settings differ", "; ".join(changed), fix))
    if old.autosign is None or new.autosign is None:
        return
    fix = (advice("write what is meant into NEW's puppet.conf and autosign.conf"),)
    if old.autosign != new.autosign:
        detail = f"autosign is {old.autosign} on OLD and {new.autosign} on NEW: NEW signs other nodes by itself"
        yield _difference(findings.warning("autosigning differs", detail, fix))
    elif old.listed != new.listed:
        parts = [f"only on {which}: {listed(sorted(lines))}" for which, lines in
                 (("OLD", old.listed - new.listed), ("NEW", new.listed - old.listed)) if lines]  # fmt: skip
        yield _difference(findings.warning("autosigning differs", f"autosign.conf: {'; '.join(parts)}", fix))


def _health(both: _Both, told: set[str]) -> Iterator[Difference]:
    """Return what is wrong with NEW's directory and not with OLD's, without what was ``told`` (titles), and what could
    not be read of OLD's."""
    old = both.old.directory.folder.problems if both.old.directory else []
    for problem in old:
        if problem.severity is not Severity.NOTICE:
            yield _difference(findings.warning(f"OLD: {problem.title}", problem.detail, problem.steps, problem.rule))
    if both.new.directory is None:
        return
    theirs = cadir.examine(both.old.directory, both.now) if both.old.directory else []
    known = {(one.title, one.detail) for one in theirs}
    told |= {one.title for one in theirs if one.severity is Severity.WARNING}
    found = [one for one in cadir.examine(both.new.directory, both.now) if one.severity is not Severity.NOTICE]
    for one in found:
        if (one.title, one.detail) not in known and one.title not in told:
            worse = findings.error if one.severity is Severity.ERROR else findings.warning
            yield _difference(worse(f"NEW: {one.title}", one.detail, one.steps, one.rule))


def _unknown(both: _Both) -> Iterator[str]:
    """Say what was not compared."""
    for label, view in (("OLD", both.old), ("NEW", both.new)):
        if view.kind != "directory":
            yield f"{label} does not show its serial numbers, its inventory and its settings"
        elif not view.settings.ca_conf:
            yield f"no ca.conf lies beside {label}'s directory: what it would sign was not compared"
    if (both.old.kind, both.new.kind) == ("directory", "directory"):
        confs = [view.settings.auth_conf for view in (both.old, both.new)]
        if not all(confs):
            yield "auth.conf does not lie beside both: `puppet-inspector auth CAPTURE --auth-conf OLD --new NEW`"
