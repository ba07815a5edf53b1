"""The public JSON: runs, findings and single records (schemas in docs/json).

Stable: keys are only ever added. Times are ISO 8601 UTC, durations seconds, bytes never appear raw.
"""

from __future__ import annotations

from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from inspector import columns
from inspector.analysis.verdicts import Certainty
from inspector.clocks import finite
from inspector.columns import Count, Number, Utc
from inspector.explain.time_split import Split
from inspector.model import Exchange, Gap, Handshake, Identity, Phase, Severity, Side, Visible
from inspector.protocol import x509
from inspector.protocol.documents import plain
from inspector.protocol.endpoints import Dialect
from inspector.rules import fixes, rule_of
from inspector.rules.fixes import PlainStep
from inspector.runs.snapshot import Wait
from inspector.summaries.judgement import NodeState
from inspector.summaries.listing import PlainSign
from inspector.summaries.summary import Party, RunBrief, shown_by
from inspector.text import utc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from inspector.analysis.analyzer import Step
    from inspector.clocks import Offset
    from inspector.model import Finding, Leg, Message
    from inspector.runs.servers import Server
    from inspector.summaries.judgement import Judgement
    from inspector.summaries.summary import Conclusion, RunLike
    from inspector.summaries.whole_messages import Whole

_NONE: Mapping[int, str] = MappingProxyType({})


# -- runs -------------------------------------------------------------------------------------------------


class PlainPhase(msgspec.Struct):
    """The share of one phase in a run."""

    phase: Phase
    exchanges: Number
    """Exchanges and failed handshakes in it."""
    duration_s: float
    """Sum over the parts of this phase, each from its first byte to its last. In seconds."""


class RunFinding(PlainSign):
    """A deviation from the protocol in a run."""

    seq: Number | None
    """The first record of the evidence; null if the whole run is the evidence."""


class ClockOffset(msgspec.Struct):
    """How far a clock is ahead of the proxy's, in seconds, as an interval."""

    offset_s: float
    uncertainty_s: float


class Verdict(msgspec.Struct, kw_only=True):
    """The cause of a run's outcome."""

    cause: str | None
    """The rule of the finding that is the cause; null if no finding explains how the run ended."""
    symptoms: tuple[str, ...]
    """Consequences: the rules of the findings that follow from the cause."""
    besides: tuple[str, ...]
    """The rules of further errors, which do not follow from the cause."""
    certainty: Certainty
    """certain: proved by the recorded traffic; likely: the most likely explanation; not visible: the cause is not
    visible in the traffic."""
    since: Utc
    """When the cause was first seen."""
    message: str
    """What happened, why and since when, in one sentence."""
    message_whole: str | UnsetType | None = UNSET
    """With --full only: the whole message of the master or the agent behind it, at most 20,000 characters, with secrets
    masked; null if the evidence contains none."""
    meaning: str | None
    """What the printed message behind the cause means; null if it is not known."""
    remedy: str
    """The fix, with the commands for this agent's and master's version."""
    steps: list[PlainStep]
    """The fix in steps."""


class PlainServer(msgspec.Struct):
    """A server that answered requests of a run, told from others by its certificate and its address."""

    name: str
    """The name in the certificate that it presented; its address if it presented none."""
    address: str
    """Where the proxy connected to, HOST:PORT: of a balancer, the balancer's."""
    certificate: str | None
    """SHA-256 of its certificate, in hexadecimal digits; null: it presented none."""
    places: list[str]
    """Where its answers were recorded, in a capture that was merged of several places."""
    first: Number
    """The record of its first answer."""
    last: Number
    """The record of its latest answer."""
    requests: Count
    """How many requests it answered."""
    phases: list[Phase]
    """The phases of the run that it took part in, in the order of its first answers."""
    version: str | None
    """The X-Puppet-Version of its latest answer; null: it sent none."""
    environment: str | None
    """The environment of its latest catalog, or else that of the latest request to it."""
    catalog: str | None
    """The version of its latest catalog; null: it sent none."""
    code_id: str | None
    """The code_id of that catalog; null: it has none."""
    crl: int | None
    """The number of the CRL that it served, of several the highest; null: none, or it has no number."""
    crl_from: Utc | None
    """When that CRL was made."""
    ca: str | None
    """SHA-256 of the CA certificates that it served; null: it served none."""


def plain_server(server: Server) -> PlainServer:
    """Return a server as JSON has it."""
    fields = msgspec.structs.asdict(server)
    return PlainServer(**fields | {"crl_from": None if server.crl_from is None else utc(server.crl_from)})


class PlainRun(msgspec.Struct, kw_only=True):
    """One run of one agent, from its first certificate request to its report: what is none of its columns."""

    capture: str | UnsetType = UNSET
    """The path of the capture that contains the run, as it was named; a report has none."""
    run: Number
    """The run's number in this capture, from 1."""
    verdict: Verdict | None
    """The cause of the run's outcome; null for a run without problems."""
    waits: dict[Wait, float]
    """Seconds without traffic: waiting for signing, gathering facts, applying the catalog, other."""
    clock_skew: dict[Side, ClockOffset | None]
    """How far the clocks are ahead of the proxy's; null if not known."""
    phases: list[PlainPhase]
    """One entry for each phase of the run, in order of their first record."""
    servers: list[PlainServer]
    """The servers that answered it, in the order of their first answers."""
    seqs: list[Number]
    """Record numbers of its exchanges and failed handshakes, ascending."""
    findings: list[RunFinding]
    """Deviations from the protocol in this run; ``check`` prints more about them."""
    not_analyzed: list[Number]
    """The records of the run that were not analyzed, or not completely: their findings may be missing."""
    injected: tuple[Number, ...]
    """The records of the run in which the proxy injected a fault on purpose, the first ones (docs/faults.md)."""
    times_s: Split | UnsetType = UNSET
    """Where the time went: only with --access-log or --server-log. The parts add up to the whole, agent's silence
    included (docs/times.md)."""


def run(
    facts: RunBrief,
    seqs: Sequence[int],
    unanalyzed: Mapping[int, str] = _NONE,
    whole: Whole | None = None,
    capture: Path | None = None,
    split: Split | None = None,
) -> dict[str, Any]:
    """Return a run and its record numbers (docs/json/runs.schema.json); ``unanalyzed`` are the records that were not
    analyzed, ``whole`` reads whole messages, ``split`` is where its time went."""
    found = PlainRun(
        capture=UNSET if capture is None else str(capture),
        run=facts.number,
        verdict=verdict(facts.verdict, facts, whole) if facts.verdict else None,
        waits={wait: round(finite(pause), 3) for wait, pause in facts.waits.items()},
        clock_skew={side: _offset(facts.clocks.get(side)) for side in ("agent", "master")},
        phases=[PlainPhase(each.phase, each.exchanges, round(finite(each.duration), 3)) for each in facts.spans],
        servers=[plain_server(each) for each in facts.servers],
        seqs=[*seqs],
        findings=[
            RunFinding(finding.rule, finding.severity, finding.seqs[0] if finding.seqs else None)
            for finding in facts.findings
        ],
        not_analyzed=[seq for seq in seqs if seq in unanalyzed],
        injected=facts.injected,
        times_s=split.rounded() if split else UNSET,
    )
    keys = _by_name(facts) | msgspec.to_builtins(found)
    return {key: keys[key] for key in dict.fromkeys((*_ORDER.split(), *keys)) if key in keys}


_ORDER = (
    "capture run certname address dialect agent_version master_version environment transaction_uuid started duration_s "
    "outcome state why verdict tool generation agent_version_from compiler environment_asked connections bytes waits "
    "clock_skew phases seqs findings not_analyzed injected times_s"
)
"""The keys of a run in the order in which they were published; one that is not among them follows."""


def _by_name(facts: RunBrief) -> dict[str, Any]:
    """Return the columns of a run."""
    keys: dict[str, Any] = {}
    for column in columns.of(RunBrief):
        value = getattr(facts, column.name)
        if column.timed:
            value = utc(value)
        elif column.unit == "s":
            value = round(finite(value), 3)
        elif isinstance(value, Enum):
            value = value.value
        *within, key = column.key
        place = keys.setdefault(within[0], {}) if within else keys
        place[key] = value
    return keys


def verdict(found: Conclusion, run: RunBrief, whole: Whole | None = None) -> Verdict:
    """Return the verdict on a run."""
    return Verdict(
        message_whole=whole(run.cause_found) if whole else UNSET,
        cause=found.cause,
        symptoms=found.symptoms,
        besides=found.besides,
        certainty=found.certainty,
        since=utc(found.since),
        message=found.message,
        meaning=run.meaning,
        remedy=run.fix,
        steps=fixes.fields(run.steps),
    )


# -- findings and nodes -----------------------------------------------------------------------------------


class PlainNode(msgspec.Struct):
    """What a node is now."""

    certname: str
    """The node: its certname, or the address of one that never showed a name."""
    state: NodeState
    """failing: its latest run did not succeed; errors, warnings: it completed with them; waiting: its certificate
    request waits to be signed; silent: it was well, and missed several runs since; open: its first run is under way, or
    was when the recording ended; well: it completed."""
    since: Utc | None
    """When it got into this state; null while its first run is under way."""
    cause: str | None
    """The rule that explains the state; null: nothing is wrong, or the cause is not visible in the traffic."""
    run: int | None
    """Its latest run that is over, which decides."""
    open: int | None
    """The run that is under way, or was when the recording ended."""
    before: str | None
    """The outcome of the run before ``run``; null if there is none."""


class CheckFinding(msgspec.Struct, kw_only=True):
    """A deviation from the protocol."""

    rule: str
    """The rule's id; never reused for another rule."""
    title: str
    """What the rule is about, in a few words."""
    severity: Severity
    """error: the protocol forbids it or the run fails because of it; warning: it works, but a healthy agent and master
    do not do it; notice: worth knowing."""
    visible: Visible
    """wire: visible in the decrypted traffic; handshake: visible only as an alert or an aborted handshake; consequence:
    the cause is local to one end, only its consequences are visible."""
    certname: str | None
    """The agent's certname, null if it is not known."""
    run: Number | None
    """The run's number in its capture, as ``runs`` gives it; null: the request is part of no run."""
    seqs: tuple[Number, ...]
    """The records that are the evidence, ascending; empty: the whole run is."""
    message: str
    """What exactly was found."""
    meaning: str | None
    """What the printed message behind it means; null if it is not known."""
    remedy: str
    """The fix, with the commands for this agent's and master's version."""
    steps: list[PlainStep]
    """The fix in steps."""
    source: str
    """Where it is documented, separated by '; ': sections of docs/protocol.md, public files as project, version and
    path, sections of RFCs."""
    capture: str
    """The capture that contains the run, as named on the command line."""
    message_whole: str | UnsetType | None = UNSET
    """With --full only: the whole message of the master or the agent behind it, at most 20,000 characters, with secrets
    masked; null if the evidence contains none."""


class NotAnalyzed(msgspec.Struct):
    """A record that was not analyzed: its findings may be missing."""

    capture: str
    """The path of the capture that contains it."""
    seq: Number
    """The record's number."""
    reason: str
    """Why it was not analyzed, or not completely."""


class Checked(msgspec.Struct):
    """Every deviation from the protocol in captures."""

    findings: list[CheckFinding]
    """In the order of captures and runs."""
    counts: dict[Severity, Count]
    """How many findings of each severity."""
    not_analyzed: list[NotAnalyzed]
    headline: str | UnsetType = UNSET
    """The whole answer in one line: how many nodes are in which state, and what was found."""
    states: list[PlainNode] | UnsetType = UNSET
    """What each node is now, in the order in which they first ran."""


def states(judgement: Judgement) -> list[PlainNode]:
    """Return what each node is now."""
    return [
        PlainNode(
            certname=node.name,
            state=node.state,
            since=utc(node.since) if node.latest else None,
            cause=node.cause,
            run=node.latest.run.number if node.latest else None,
            open=node.open.run.number if node.open else None,
            before=node.before.outcome if node.before else None,
        )
        for node in judgement.nodes.values()
    ]


def not_analyzed(records: Iterable[tuple[Path, int, str]]) -> list[NotAnalyzed]:
    """Return records that were not analyzed, and why."""
    return [NotAnalyzed(str(path), seq, reason) for path, seq, reason in records]


def check(
    found: Iterable[tuple[Path, RunBrief, Finding]],
    unanalyzed: Iterable[tuple[Path, int, str]] = (),
    whole: Callable[[Path, Finding], str | None] | None = None,
    judgement: Judgement | None = None,
) -> Checked:
    """Return findings with their captures and runs (docs/json/check.schema.json); ``unanalyzed`` are the records that
    were not analyzed, and why; ``whole`` reads whole messages; ``judgement`` is what the captures show of their
    nodes."""
    findings = [_finding(*each, whole) for each in found]
    return Checked(
        findings=findings,
        counts={severity: sum(finding.severity == severity for finding in findings) for severity in Severity},
        not_analyzed=not_analyzed(unanalyzed),
        headline=judgement.headline if judgement else UNSET,
        states=states(judgement) if judgement else UNSET,
    )


def _offset(offset: Offset | None) -> ClockOffset | None:
    if offset is None or not offset.known:
        return None
    return ClockOffset(round(offset.seconds, 3), round(offset.uncertainty, 3))


def _finding(
    capture: Path, run: RunBrief, finding: Finding, whole: Callable[[Path, Finding], str | None] | None
) -> CheckFinding:
    rule = rule_of(finding.rule)
    fix = run.fix_for(finding.rule)
    return CheckFinding(
        rule=finding.rule,
        title=rule.title,
        severity=finding.severity,
        visible=rule.visible,
        certname=run.certname,
        run=run.number or None,
        seqs=finding.seqs,
        message=finding.message,
        meaning=run.meanings.get(finding.rule),
        remedy=fixes.plain(fix),
        steps=fixes.fields(fix),
        source=rule.source,
        capture=str(capture),
        message_whole=whole(capture, finding) if whole else UNSET,
    )


# -- records ----------------------------------------------------------------------------------------------


class PlainFinding(PlainSign):
    """A finding for which a record is evidence."""

    message: str
    """What exactly was found."""


class PlainRecord(msgspec.Struct, kw_only=True):
    """What every record has."""

    seq: Number
    """The record's number."""
    kind: str
    time: Utc
    """When it began."""
    run: Number | None
    """The number of its run; null if it belongs to no run."""
    certname: str | None
    """The agent's certname, null if it is not known."""
    phase: Phase
    """The phase of an agent run, as the Puppet documentation numbers them: certificates (P1-P5), node (P6), plugins
    (P7-P8), catalog (P9), files (P10, including the filebucket), report (P11-P12); other: probes, tools and requests
    that are not Puppet's."""
    not_analyzed: str | None
    """Why the record was not analyzed, or not completely; null if it was."""
    findings: list[PlainFinding]
    """The findings with this record as evidence."""
    times_s: Split | UnsetType = UNSET
    """Where the time went since the end of the run's record before: only with --access-log or --server-log. The parts
    add up to the whole (docs/times.md)."""
    exact: dict[str, Any] | UnsetType = UNSET
    """In an export only, what ``import`` needs to recreate the record, in addition to headers and bodies: exact times,
    ids of connections. Unknown values are absent."""


class PlainCertificate(msgspec.Struct):
    """A certificate."""

    subject: str
    """e.g. CN=node1.example"""
    issuer: str
    """The issuer's subject."""
    serial: int
    not_before: Utc
    """Valid from."""
    not_after: Utc
    """Valid until."""
    alt_names: list[str]
    """Subject alternative names with their kind: DNS:puppet"""
    fingerprint: str
    """SHA-256 of the DER, as ``puppet agent --fingerprint`` prints it."""


class OddCertificate(msgspec.Struct):
    """What should be a certificate, and is none."""

    undecodable: str
    """Why the certificate cannot be decoded."""


class PlainLeg(msgspec.Struct):
    """One TLS connection, as seen by the proxy."""

    connection: str
    """The connection's id in the capture."""
    address: str | None
    """The peer's address."""
    port: int | None
    """The peer's port."""
    version: str | None
    """TLS version, e.g. TLSv1.3; null if the handshake failed earlier."""
    cipher: str | None
    """Cipher suite."""
    sni: str | None
    """Server name that the client requested."""
    node: str | None
    """The certname of the host whose own agent it is, of a recording of ``run``; null: known only from what is sent."""
    tunnelled: bool
    """Whether the proxy passed the agent's connection on unread; own_chain is then the master's own."""
    place: str | None
    """Where it was recorded, in a capture that was merged of several places; null: there is one place."""
    alpn: str | None
    """Protocol agreed on by ALPN."""
    resumed: bool | None
    """Whether a session was resumed; null: not known."""
    peer_chain: list[PlainCertificate | OddCertificate]
    """Certificates that the peer presented, its own first."""
    own_chain: list[PlainCertificate | OddCertificate]
    """Certificates that the proxy presented to this peer, its own first."""


class Timings(msgspec.Struct):
    """Time of each step; null: not known."""

    agent_connected: Utc | None
    """TCP connection of the agent."""
    agent_secured: Utc | None
    """End of the TLS handshake with the agent."""
    request_started: Utc | None
    """First byte of the request."""
    request_ended: Utc | None
    """Last byte of the request."""
    master_connecting: Utc | None
    """Start of the connection to the master."""
    master_connected: Utc | None
    """TCP connection to the master."""
    master_secured: Utc | None
    """End of the TLS handshake with the master."""
    response_started: Utc | None
    """First byte of the response."""
    response_ended: Utc | None
    """Last byte of the response."""


class PlainBody(msgspec.Struct):
    """A body as on the wire, with its Content-Encoding: as text if it is UTF-8, or else in base64."""

    text: str | UnsetType
    """The bytes, decoded as UTF-8."""
    base64: str | UnsetType
    """The bytes, if they are not UTF-8."""
    lost: Count
    """Bytes that were passed on but not recorded: the body was too large."""


class PlainMessage(msgspec.Struct, kw_only=True):
    """What requests and responses have in common."""

    http_version: str
    """e.g. HTTP/1.1"""
    headers: tuple[tuple[str, str], ...]
    """Name and value, in order, as on the wire (Latin-1)."""
    body_length: Count
    """Bytes of body as on the wire, still content-encoded."""


class PlainRequest(PlainMessage, kw_only=True):
    """A request."""

    method: str
    """e.g. GET"""
    target: str
    """Path and query exactly as sent."""
    document: dict[str, Any] | None
    """The body, decoded, with the names used on the wire; ``kind`` is the type of document, of which Undecodable
    contains a ``reason``. null if it is not a Puppet document."""
    body: PlainBody | UnsetType = UNSET
    """In an export only."""


class PlainResponse(PlainMessage, kw_only=True):
    """An answer."""

    status: int
    reason: str
    """The reason phrase of the status line."""
    document: dict[str, Any] | None
    """The body, decoded, with the names used on the wire; ``kind`` is the type of document, of which Undecodable
    contains a ``reason``. null if it is not a Puppet document."""
    body: PlainBody | UnsetType = UNSET
    """In an export only."""


class PlainExchange(PlainRecord, kw_only=True):
    """One request and its answer."""

    kind: Literal["exchange"] = "exchange"
    endpoint: str | None
    """The name of Puppet's endpoint; null if it is not one."""
    dialect: Dialect | None
    """v3: Puppet 4 and later; legacy: 2.7 and 3 (/{environment}/...); null: not known."""
    environment: str | None
    """The environment that the URL names."""
    duration_s: float
    """From the first byte of the request to the last of the response. In seconds."""
    timings: Timings
    tls: dict[Side, PlainLeg | None]
    """Both legs; master is null if the master was not reached."""
    identity: Identity | None
    """The identity used towards the master on the agent's behalf; null: not known."""
    stripped: tuple[str, ...]
    """Headers that the agent sent and the proxy removed."""
    error: str | None
    """Why there is no answer, or only a part of it."""
    injected: str | None
    """The fault that the proxy injected on purpose (docs/faults.md); null if none was."""
    added: str | None
    """What the proxy added to the answer that the agent got, which is not in this record; null: nothing."""
    request: PlainRequest
    response: PlainResponse | None
    """null: there was no answer."""


class PlainHandshake(PlainRecord, kw_only=True):
    """A TLS handshake that failed."""

    kind: Literal["handshake"] = "handshake"
    side: Side
    """The side of the failed connection."""
    reason: str
    """The reason, worded as the agent prints it if it prints one."""
    alert: str | None
    """The TLS alert's name as in RFC 8446; null: none was seen."""
    alert_by: Party | None
    """Who sent the alert."""
    culprits: tuple[str, ...]
    """Every verification error, with the subject of the certificate or CRL it is about."""
    injected: str | None
    """The fault that the proxy injected on purpose (docs/faults.md); null if none was."""
    tls: dict[Side, PlainLeg]


class PlainGap(PlainRecord, kw_only=True):
    """Traffic that could not be recorded."""

    kind: Literal["gap"] = "gap"
    reason: str
    """What could not be recorded, and why."""
    lost: Count
    """Number of lost records."""


def analyzed(step: Step, run: RunLike | None) -> dict[str, Any]:
    """Return what is shown of one record besides what was sent, and when."""
    record = step.record
    head: dict[str, Any] = {
        "seq": record.seq,
        "run": (run.number or None) if run else None,
        "certname": (run.certname if run else None) or step.certname,
        "phase": step.phase,
        "not_analyzed": step.unanalyzed or None,
        "findings": [
            PlainFinding(finding.rule, finding.severity, finding.message) for finding in shown_by(record.seq, run)
        ],
    }
    match record:
        case Exchange():
            match, master = step.match, record.master
            return head | {
                "endpoint": match.endpoint.name if match else None,
                "environment": match.environment if match else None,
                "identity": record.identity,
                "stripped": record.stripped,
                "injected": record.injected or None,
                "added": record.added or None,
                "tls": {"agent": _leg(record.agent), "master": _leg(master) if master else None},
            }
        case Handshake():
            return head | {"injected": record.injected or None, "tls": {record.leg.side: _leg(record.leg)}}
    return head


def show(step: Step, run: RunLike | None, split: Split | None = None) -> PlainExchange | PlainHandshake | PlainGap:
    """Return one record of a run in full (docs/json/show.schema.json); ``split`` is where its time went."""
    record = step.record
    head = analyzed(step, run) | {"time": utc(record.time), "times_s": split.rounded() if split else UNSET}
    match record:
        case Exchange():
            return _exchange(head, step, record)
        case Handshake():
            return PlainHandshake(
                **head,
                side=record.leg.side,
                reason=record.reason,
                alert=record.alert,
                alert_by=record.alert_by,
                culprits=record.culprits,
            )
        case Gap():
            return PlainGap(**head, reason=record.reason, lost=record.lost)


def _exchange(head: dict[str, Any], step: Step, exchange: Exchange) -> PlainExchange:
    request, response, master, match = exchange.request, exchange.response, exchange.master, step.match
    return PlainExchange(
        **head,
        dialect=match.dialect if match else None,
        duration_s=round(finite(exchange.ended - exchange.time), 6),
        timings=Timings(
            agent_connected=_moment(exchange.agent.connected),
            agent_secured=_moment(exchange.agent.secured),
            request_started=_moment(request.started),
            request_ended=_moment(request.ended),
            master_connecting=_moment(master.connecting if master else None),
            master_connected=_moment(master.connected if master else None),
            master_secured=_moment(master.secured if master else None),
            response_started=_moment(response.started if response else None),
            response_ended=_moment(response.ended if response else None),
        ),
        error=exchange.error,
        request=PlainRequest(
            method=request.method, target=request.target, document=plain(step.request), **_message(request)
        ),
        response=PlainResponse(
            status=response.status, reason=response.reason, document=plain(step.response), **_message(response)
        )
        if response
        else None,
    )


def _moment(time: float | None) -> str | None:
    return None if time is None else utc(time)


def _message(message: Message) -> dict[str, Any]:
    return {"http_version": message.http_version, "headers": message.headers, "body_length": message.size}


def _leg(leg: Leg) -> PlainLeg:
    return PlainLeg(
        connection=leg.id,
        address=leg.address,
        port=leg.port,
        version=leg.tls_version,
        cipher=leg.cipher,
        sni=leg.sni,
        node=leg.node,
        tunnelled=leg.tunnelled,
        place=leg.place,
        alpn=leg.alpn,
        resumed=leg.resumed,
        peer_chain=[_certificate(der) for der in leg.peer_chain],
        own_chain=[_certificate(der) for der in leg.own_chain],
    )


def _certificate(der: bytes) -> PlainCertificate | OddCertificate:
    try:
        certificate = x509.read_der(der)
    except x509.Malformed as error:
        return OddCertificate(str(error))
    return PlainCertificate(
        subject=certificate.subject,
        issuer=certificate.issuer,
        serial=certificate.serial,
        not_before=utc(certificate.not_before),
        not_after=utc(certificate.not_after),
        alt_names=certificate.alt_names,
        fingerprint=certificate.fingerprint,
    )
