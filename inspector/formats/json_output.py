"""The public JSON: runs, findings and single records as plain structures (schemas in docs/json).

Stable: keys are only ever added. Times are ISO 8601 UTC, durations seconds, bytes never appear raw.
"""

from __future__ import annotations

import dataclasses
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from inspector import columns
from inspector.analysis.analyzer import retrace
from inspector.clocks import finite
from inspector.model import Exchange, Gap, Handshake
from inspector.privacy.redact import redacted
from inspector.protocol import x509
from inspector.protocol.documents import plain
from inspector.rules import fixes, rule_of
from inspector.summaries.summary import RunBrief, shown_by
from inspector.text import utc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from inspector.analysis.analyzer import Step
    from inspector.clocks import Offset
    from inspector.explain.time_split import Split
    from inspector.model import Finding, Leg, Message
    from inspector.summaries.judgement import Judgement
    from inspector.summaries.summary import RunLike
    from inspector.summaries.whole_messages import Whole

_NONE: Mapping[int, str] = MappingProxyType({})


def masked(step: Step) -> Step:
    """Return a step without the secrets of its record."""
    record = redacted(step.record)
    if record is step.record:
        return step
    (again,) = retrace([record])
    return dataclasses.replace(step, record=record, match=again.match, request=again.request, response=again.response)


def run(
    facts: RunBrief, seqs: Sequence[int], unanalyzed: Mapping[int, str] = _NONE, whole: Whole | None = None
) -> dict[str, Any]:
    """Return a run and its record numbers (docs/json/runs.schema.json); ``unanalyzed`` are the records that were not
    analyzed, ``whole`` reads whole messages."""
    keys = _by_name(facts) | {
        "run": facts.number,
        "verdict": verdict_fields(facts, whole),
        "waits": {wait: round(finite(pause), 3) for wait, pause in facts.waits.items()},
        "clock_skew": {side: _offset(facts.clocks.get(side)) for side in ("agent", "master")},
        "phases": [
            {"phase": str(span.phase), "exchanges": span.exchanges, "duration_s": round(finite(span.duration), 3)}
            for span in facts.spans
        ],
        "seqs": list(seqs),
        "findings": [
            {"rule": finding.rule, "severity": str(finding.severity), "seq": finding.seqs[0] if finding.seqs else None}
            for finding in facts.findings
        ],
        "not_analyzed": [seq for seq in seqs if seq in unanalyzed],
        "injected": list(facts.injected),
    }
    return {key: keys[key] for key in dict.fromkeys((*_ORDER.split(), *keys))}


_ORDER = (
    "run certname address dialect agent_version master_version environment transaction_uuid started duration_s outcome "
    "state why verdict tool generation agent_version_from compiler environment_asked connections bytes waits "
    "clock_skew phases seqs findings not_analyzed injected"
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


def states(judgement: Judgement) -> list[dict[str, Any]]:
    """Return what each node is now (docs/json/doctor.schema.json)."""
    return [
        {
            "certname": node.name,
            "state": str(node.state),
            "since": utc(node.since) if node.latest else None,
            "cause": node.cause,
            "run": node.latest.run.number if node.latest else None,
            "open": node.open.run.number if node.open else None,
            "before": node.before.outcome if node.before else None,
        }
        for node in judgement.nodes.values()
    ]


def split(found: Split | None) -> dict[str, Any]:
    """Return where the time of a run or a record went (docs/json/runs.schema.json); nothing if it was not asked for."""
    return {"times_s": {part: round(took, 3) for part, took in found.parts().items()}} if found else {}


def verdict_fields(run: RunBrief, whole: Whole | None = None) -> dict[str, Any] | None:
    """Return a run's verdict (docs/json/runs.schema.json); None if there is none."""
    verdict = run.verdict
    if verdict is None:
        return None
    return ({"message_whole": whole(run.cause_found)} if whole else {}) | {
        "cause": verdict.cause,
        "symptoms": list(verdict.symptoms),
        "besides": list(verdict.besides),
        "certainty": verdict.certainty,
        "since": utc(verdict.since),
        "message": verdict.message,
        "remedy": run.fix,
        "steps": fixes.fields(run.steps),
    }


def check(
    found: Iterable[tuple[Path, RunBrief, Finding]],
    unanalyzed: Iterable[tuple[Path, int, str]] = (),
    whole: Callable[[Path, Finding], str | None] | None = None,
    judgement: Judgement | None = None,
) -> dict[str, Any]:
    """Return findings with their captures and runs (docs/json/check.schema.json); ``unanalyzed`` are the records that
    were not analyzed, and why; ``whole`` reads whole messages; ``judgement`` is what the captures show of their
    nodes."""
    findings = [
        _finding(finding, run)
        | {"capture": str(capture)}
        | ({"message_whole": whole(capture, finding)} if whole else {})
        for capture, run, finding in found
    ]
    counts = {severity: sum(finding["severity"] == severity for finding in findings) for severity in SEVERITIES}
    left = [{"capture": str(path), "seq": seq, "reason": reason} for path, seq, reason in unanalyzed]
    made = {"findings": findings, "counts": counts, "not_analyzed": left}
    if judgement is not None:
        made |= {"headline": judgement.headline, "states": states(judgement)}
    return made


def _offset(offset: Offset | None) -> dict[str, float] | None:
    if offset is None or not offset.known:
        return None
    return {"offset_s": round(offset.seconds, 3), "uncertainty_s": round(offset.uncertainty, 3)}


SEVERITIES = ("error", "warning", "notice")


def _finding(finding: Finding, run: RunBrief) -> dict[str, Any]:
    rule = rule_of(finding.rule)
    fix = run.fix_for(finding.rule)
    return {
        "rule": finding.rule,
        "title": rule.title,
        "severity": str(finding.severity),
        "visible": str(rule.visible),
        "certname": run.certname,
        "run": run.number or None,
        "seqs": list(finding.seqs),
        "message": finding.message,
        "remedy": fixes.plain(fix),
        "steps": fixes.fields(fix),
        "source": rule.source,
    }


def show(step: Step, run: RunLike | None) -> dict[str, Any]:
    """Return one record of a run in full (docs/json/show.schema.json)."""
    record = step.record
    head: dict[str, Any] = {
        "seq": record.seq,
        "kind": type(record).__name__.lower(),
        "time": utc(record.time),
        "run": (run.number or None) if run else None,
        "certname": (run.certname if run else None) or step.certname,
        "phase": str(step.phase),
        "not_analyzed": step.unanalyzed or None,
        "findings": [
            {"rule": finding.rule, "severity": str(finding.severity), "message": finding.message}
            for finding in shown_by(record.seq, run)
        ],
    }
    match record:
        case Exchange():
            return head | _exchange(step, record)
        case Handshake():
            return head | {
                "side": record.leg.side,
                "reason": record.reason,
                "alert": record.alert,
                "alert_by": record.alert_by,
                "culprits": list(record.culprits),
                "injected": record.injected or None,
                "tls": {record.leg.side: _leg(record.leg)},
            }
        case Gap():
            return head | {"reason": record.reason, "lost": record.lost}


def _exchange(step: Step, exchange: Exchange) -> dict[str, Any]:
    request, response, match = exchange.request, exchange.response, step.match
    return {
        "endpoint": match.endpoint.name if match else None,
        "dialect": match.dialect if match else None,
        "environment": match.environment if match else None,
        "duration_s": round(finite(exchange.ended - exchange.time), 6),
        "timings": {
            "agent_connected": _moment(exchange.agent.connected),
            "agent_secured": _moment(exchange.agent.secured),
            "request_started": _moment(request.started),
            "request_ended": _moment(request.ended),
            "master_connecting": _moment(exchange.master.connecting if exchange.master else None),
            "master_connected": _moment(exchange.master.connected if exchange.master else None),
            "master_secured": _moment(exchange.master.secured if exchange.master else None),
            "response_started": _moment(response.started if response else None),
            "response_ended": _moment(response.ended if response else None),
        },
        "tls": {"agent": _leg(exchange.agent), "master": _leg(exchange.master) if exchange.master else None},
        "identity": msgspec.to_builtins(exchange.identity),
        "stripped": list(exchange.stripped),
        "error": exchange.error,
        "injected": exchange.injected or None,
        "added": exchange.added or None,
        "request": {
            "method": request.method,
            "target": request.target,
            **_message(request),
            "document": plain(step.request),
        },
        "response": None
        if response is None
        else {
            "status": response.status,
            "reason": response.reason,
            **_message(response),
            "document": plain(step.response),
        },
    }


def _moment(time: float | None) -> str | None:
    return None if time is None else utc(time)


def _message(message: Message) -> dict[str, Any]:
    return {
        "http_version": message.http_version,
        "headers": [list(pair) for pair in message.headers],
        "body_length": message.size,
    }


def _leg(leg: Leg) -> dict[str, Any]:
    return {
        "connection": leg.id,
        "address": leg.address,
        "port": leg.port,
        "version": leg.tls_version,
        "cipher": leg.cipher,
        "sni": leg.sni,
        "node": leg.node,
        "tunnelled": leg.tunnelled,
        "alpn": leg.alpn,
        "resumed": leg.resumed,
        "peer_chain": [_certificate(der) for der in leg.peer_chain],
        "own_chain": [_certificate(der) for der in leg.own_chain],
    }


def _certificate(der: bytes) -> dict[str, Any]:
    try:
        certificate = x509.read_der(der)
    except x509.Malformed as error:
        return {"undecodable": str(error)}
    return {
        "subject": certificate.subject,
        "issuer": certificate.issuer,
        "serial": certificate.serial,
        "not_before": utc(certificate.not_before),
        "not_after": utc(certificate.not_after),
        "alt_names": certificate.alt_names,
        "fingerprint": certificate.fingerprint,
    }
