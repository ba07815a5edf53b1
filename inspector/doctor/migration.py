"""Compare two CAs, of which NEW is to take the place of OLD: what they answer differently, and what follows for nodes.

What is known of each is a ``CaView``; nothing is opened, asked or changed here. What one of them does not show is never
a difference. The time is an argument, in seconds since the epoch.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from inspector.doctor import ca_settings, cadir, findings
from inspector.doctor.ca_judge import EARLY, EXPIRED, REVOKED, UNTRUSTED
from inspector.doctor.ca_pair import EACH, Pair, second
from inspector.doctor.cadir import COUNTED
from inspector.doctor.findings import fingerprints, key_text, listed
from inspector.model import Severity
from inspector.protocol import x509
from inspector.protocol.certificates import printed_serial
from inspector.rules.fixes import advice, group, on_ca, on_node
from inspector.text import plural, utc_day

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from inspector.doctor.ca_view import CaView
    from inspector.doctor.findings import Diagnosis
    from inspector.protocol.certificates import Certificate
    from inspector.rules.fixes import Fix

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


def compare(old: CaView, new: CaView, now: float, others: Iterable[Difference] = ()) -> Migration:
    """Return what differs between two CAs; ``others`` is what else was found out about them."""
    both = Pair(old, new, now)
    found = [
        *_authority(both),
        *_server(both),
        *_crls(both),
        *_nodes(both),
        *_serials(both),
        *_certificates(both),
        *_requests(both),
        *_inventory(both),
        *map(Difference, ca_settings.changes(old.settings, new.settings)),
        *others,
    ]
    found += _health(both, {_THEIRS[one.diagnosis.title] for one in found if one.diagnosis.title in _THEIRS})
    ranked = sorted(found, key=lambda one: -one.diagnosis.severity.rank)
    names = {*old.certificates, *old.requests, *new.certificates, *new.requests}
    return Migration(old, new, tuple(ranked), len(names), (*old.unknown, *new.unknown, *_unknown(both)))


def _difference(diagnosis: Diagnosis, nodes: Iterable[str] = ()) -> Difference:
    return Difference(diagnosis, tuple(sorted(nodes)))


def _some(names: Iterable[str]) -> str:
    """Return names as a part of a sentence: ``these 3 nodes: a, b, c``."""
    every = sorted(names)
    return f"{plural(len(every), 'node')}: {listed(every)}"


# -- the CA itself --------------------------------------------------------------------------------------


def _authority(both: Pair) -> Iterator[Difference]:
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


def _another(both: Pair, old: Certificate, new: Certificate) -> Difference:
    refused = [name for name, one in both.old.certificates.items()
               if not both.by_old.refusal(one) and both.by_new.refusal(one) == UNTRUSTED]  # fmt: skip
    same = "both have this name, but not the same key; " if old.subject == new.subject else ""
    detail = (
        f"OLD signs with {fingerprints([old])}, NEW with {fingerprints([new])}; {same}"
        f"agents of OLD refuse NEW's servers"
    )
    if refused:
        detail += f", and NEW refuses {_some(refused)}"
    command = f"cp -a {both.of_old('.')}/. {both.of_new('.')}/"
    if both.openvox:
        key = both.old.directory.program.key_file if both.old.directory else "ca_key.pem"
        command = (
            f"openvox-ca-ctl import --cadir {both.of_new('.')} --cert-bundle {both.of_old('ca_crt.pem')} "
            f"--private-key {both.of_old(key)} --crl-chain {both.of_old('ca_crl.pem')}"
        )
    take = on_ca(
        "make NEW a copy of OLD",
        command,
        destroys="NEW's CA and what it has signed",
        only_if="NEW is to continue OLD",
    )
    fix = (
        both.stop,
        take,
        on_ca(
            "see what still differs",
            f"puppet-inspector doctor --cadir {both.of_old('.')} --compare {both.of_new('.')}",
            only_if="NEW is to continue OLD",
        ),
        *both.steps(group("enrol_ca", only_if="NEW is meant to be another CA; this is for each node")),
    )
    return _difference(findings.error("NEW is another CA", detail, fix), refused)


def _server(both: Pair) -> Iterator[Difference]:
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


def _nodes(both: Pair) -> Iterator[Difference]:
    """Say which nodes of OLD are refused by NEW."""
    refused: dict[str, list[str]] = defaultdict(list)
    for name, certificate in both.old.certificates.items():
        why = both.by_new.refusal(certificate)
        if why and not both.by_old.refusal(certificate) and (both.same_key or why != UNTRUSTED):
            refused[why].append(name)
    again = [name for name in refused[REVOKED] if both.replaced(name)]
    refused[REVOKED] = [name for name in refused[REVOKED] if name not in set(again)]
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
        fix = both.steps(*_again(both, why), certname=names[0] if len(names) == 1 else None)
        known = both.old.crls is not None
        detail = (
            f"NEW refuses {_some(names)}; {why}, and {'OLD accepts them' if known else 'the CRL of OLD is not known'}"
        )
        severity, rule = findings.error if known else findings.warning, "T05" if why == REVOKED else None
        yield _difference(severity("nodes that NEW refuses", detail, fix, rule), names)
    foreign = [name for name, one in both.new.certificates.items()
               if name not in both.old.certificates and not both.by_new.refusal(one)
               and both.by_old.refusal(one) not in ("", REVOKED, EXPIRED, EARLY)]  # fmt: skip
    if foreign and both.same_key:
        detail = f"agents that have OLD's bundle refuse what NEW issued to {_some(foreign)}, if it is a server"
        fix = (advice("give every agent NEW's ca_crt.pem as its ca.pem before it uses a server of NEW"),)
        yield _difference(findings.warning("certificates that agents of OLD refuse", detail, fix), foreign)


def _again(both: Pair, why: str) -> Fix:
    """Return how nodes are accepted again that are refused for a reason."""
    old, new = both.old.signing, both.new.signing
    if why == REVOKED:
        return (group("revoked"),)
    if why == UNTRUSTED and old and new and old.serial != new.serial:  # the key is the same
        number = printed_serial(old.serial)
        return (
            advice(f"make NEW's CA certificate anew with OLD's serial number {number}, which those of the nodes name"),
            group("enrol_ca", only_if="that cannot be done; this is for each node"),
        )
    return (group("enrol_ca"),)


def _crls(both: Pair) -> Iterator[Difference]:
    """Compare what is revoked, CA by CA, as far as NEW trusts it."""
    if both.old.crls is None or both.new.crls is None:
        return
    trusted = {(one.subject, one.key): one for one in both.new.authorities}
    issuers = [trusted[one.subject, one.key] for one in both.old.authorities if (one.subject, one.key) in trusted]
    if not both.old.authorities:
        issuers = list(both.new.authorities)
    again: list[str] = []
    serials: list[int] = []
    nodes: set[str] = set()
    own = both.old.signing.key if both.old.signing else None
    for issuer in {(one.subject, one.key): one for one in issuers}.values():
        before = both.by_old.revoked(issuer.subject, issuer.key_identifier)
        after = both.by_new.revoked(issuer.subject, issuer.key_identifier)
        for serial in _accepted_again(both, issuer, before - after):
            name = both.names.get(serial, "") if issuer.key == own else ""
            serials.append(serial)
            again.append(f"{name or issuer.subject} (serial number {printed_serial(serial)})")
            nodes.update([name] if name else [])
        yield from _only_new(both, issuer, after - before)
        yield from _numbers(both, issuer, older=not before - after)
    if again:
        detail = (
            f"OLD has revoked, and NEW accepts again, {listed(again)}; whoever holds such a key gets "
            f"catalogs, with the secrets in them"
        )
        fix = both.joined(serials)
        yield _difference(findings.error("revoked nodes that NEW accepts again", detail, fix, "B15"), nodes)


def _accepted_again(both: Pair, issuer: Certificate, serials: frozenset[int]) -> list[int]:
    """Return the serial numbers of a CA that only OLD has revoked, without those of certificates that have ended."""
    now = second(both.now)
    ended = {entry.serial for entry in both.old.inventory if serials and entry.not_after[:19] < now}
    ended |= {
        one.serial for one in both.old.certificates.values()
        if one.serial in serials and one.not_after < both.now
    }  # fmt: skip
    # The inventory, and the certificates, are those of the CA that signs.
    own = both.old.signing is not None and both.old.signing.key == issuer.key
    return sorted(serials - ended if own else serials)


def _only_new(both: Pair, issuer: Certificate, serials: frozenset[int]) -> Iterator[Difference]:
    """Name what only NEW has revoked, without the nodes that are refused for it."""
    held = {one.serial for one in both.old.certificates.values() if one.issuer == issuer.subject}
    if rest := sorted(serials - held):
        named = [f"{both.names.get(serial, 'unknown')} ({printed_serial(serial)})" for serial in rest]
        detail = f"{listed(named)}; no certificate that OLD holds has these serial numbers"
        yield _difference(findings.notice("revoked on NEW only", detail))


def _numbers(both: Pair, issuer: Certificate, *, older: bool) -> Iterator[Difference]:
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
        fix: Fix = (on_ca("copy it", f"cp -p {both.of_old('ca_crl.pem')} {both.of_new('ca_crl.pem')}"),)
        if both.openvox:
            fix = (advice("import OLD's ca_crl.pem: `openvox-ca-ctl import` with `--crl-chain`"),)
        yield _difference(findings.error(_NO_CRL, detail, fix, "B13"))
    elif older and new.number is not None and new.number < old.number:
        detail = f"{issuer.subject}: NEW has number {new.number}, OLD has number {old.number}"
        fix = (on_ca("sign it anew", "openvox-ca-ctl reissue-crl"),) if both.openvox else both.joined(())
        yield _difference(findings.warning("NEW's CRL is older", detail, fix, "B15"))


# -- what was issued ------------------------------------------------------------------------------------


def _serials(both: Pair) -> Iterator[Difference]:
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
        fix: Fix = (
            advice("first let NEW count on after OLD's numbers; what follows is for each of the certificates of NEW"),
            *cadir.enrolled_without_revoking(both.new.directory, both.of_new("signed")),
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
            both.stop,
            on_ca("write the next number", f"echo {counted + 1:04X} > {both.of_new('serial')}"),
            both.start,
        )
        yield _difference(findings.error(_AGAIN, detail, fix))


def _certificates(both: Pair) -> Iterator[Difference]:
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


def _only_one(both: Pair) -> Iterator[Difference]:
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
        fix = both.copied(lost)
        yield _difference(findings.warning("nodes that NEW does not know", detail, fix), lost)
    added = [
        name for name, one in both.new.certificates.items()
        if both.old.lacks(name) and both.by_old.refusal(one) != REVOKED
    ]  # fmt: skip
    if added:
        detail = f"OLD has no certificate of {_some(added)}; they were signed since, or removed from OLD"
        yield _difference(findings.notice("nodes that only NEW knows", detail), added)


def _inventory(both: Pair) -> Iterator[Difference]:
    """Name what NEW's inventory lacks of OLD's."""
    if not both.same_key or both.old.directory is None or both.new.directory is None:
        return
    if "inventory.txt" in both.new.directory.folder.hidden:
        return
    have = {(entry.serial, entry.name) for entry in both.new.inventory}
    now = second(both.now)
    lacking = [entry for entry in both.old.inventory if (entry.serial, entry.name) not in have]
    signing = both.new.signing
    revoked = both.by_new.revoked(signing.subject, signing.key_identifier) if signing else frozenset()
    valid = [entry for entry in lacking if entry.not_after[:19] >= now and entry.serial not in revoked]
    if not lacking:
        return
    detail = f"{len(lacking):,} of {plural(len(both.old.inventory), 'line')}"
    if valid:
        detail += f", among them {listed([f'{one.name} ({printed_serial(one.serial)})' for one in valid])}"
    detail += "; Puppet Server 8 and openvox-ca revoke what the inventory has for a name"
    target = both.of_new("inventory.txt")
    fix: Fix = (
        both.stop,
        on_ca("add them", f"sort -u {both.of_old('inventory.txt')} {target} -o {target}"),
        both.start,
    )
    if both.openvox:  # it does not start with an inventory that somebody else has changed
        fix = both.copied([one.name for one in valid]) if valid else ()
    severity = findings.warning if valid else findings.notice
    names = dict.fromkeys(entry.name for entry in valid)
    yield _difference(severity(_LACKING, detail, fix), names)


# -- requests, and NEW alone ------------------------------------------------------------------------------


def _requests(both: Pair) -> Iterator[Difference]:
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
        which = both.of_old(*files) if len(files) <= EACH else f"{both.of_old('requests')}/*.pem"
        fix = (on_ca("copy them", f"cp -np {which} {both.of_new('requests')}/"),)
        yield _difference(findings.notice("signing requests that wait on OLD only", detail, fix), lost)


def _health(both: Pair, covered: set[str]) -> Iterator[Difference]:
    """Return what is wrong with NEW's directory and not with OLD's, without what is ``covered`` already (titles), and
    what could not be read of OLD's."""
    old = both.old.directory.folder.problems if both.old.directory else []
    for problem in old:
        if problem.severity is not Severity.NOTICE:
            yield _difference(findings.warning(f"OLD: {problem.title}", problem.detail, problem.steps, problem.rule))
    if both.new.directory is None:
        return
    theirs = cadir.examine(both.old.directory, both.now) if both.old.directory else []
    known = {(one.title, one.detail) for one in theirs}
    covered |= {one.title for one in theirs if one.severity is Severity.WARNING}
    found = [one for one in cadir.examine(both.new.directory, both.now) if one.severity is not Severity.NOTICE]
    for one in found:
        if (one.title, one.detail) not in known and one.title not in covered:
            worse = findings.error if one.severity is Severity.ERROR else findings.warning
            yield _difference(worse(f"NEW: {one.title}", one.detail, one.steps, one.rule))


def _unknown(both: Pair) -> Iterator[str]:
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
