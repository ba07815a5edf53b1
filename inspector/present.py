"""The only place that words things: records, steps, runs and findings as text for people.

Console, command line and terminal application show these very words. Captured bytes are hostile: control
characters never reach a terminal.
"""

from __future__ import annotations

import json
import re
import textwrap
from typing import TYPE_CHECKING, Any

from inspector import clocks, verdicts
from inspector.model import Exchange, Gap, Handshake
from inspector.protocol import documents, x509
from inspector.rules import rule_of
from inspector.rules.remedies import fill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.analyzer import Step
    from inspector.model import Finding, Identity, Leg, Message
    from inspector.protocol.documents import Document
    from inspector.rules import Rule
    from inspector.runs import Outcome, Run

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

REASON = 400
"""Characters of a run's reason: masters and agents send whole backtraces."""
DAY = 86_400.0
WIDTH = 46
"""Characters of a path that a console line shows."""


def clean(text: str) -> str:
    """Captured text without control characters (nor the ones that turn the direction of writing)."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}", text)


def as_json(value: Any) -> str:
    """A JSON-able structure as text for a terminal: what ``clean`` would take out is escaped in JSON's own way."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    # Line feeds outside strings are the layout; those within are escaped already.
    return _CONTROL.sub(lambda found: found[0] if found[0] == "\n" else f"\\u{ord(found[0]):04x}", text)


def clock(time: float) -> str:
    """Local time of day with milliseconds."""
    # A day's margin at both ends of the calendar: no zone leads out of it.
    return clocks.date(max(clocks.FIRST + DAY, min(time, clocks.LAST - DAY))).astimezone().strftime("%H:%M:%S.%f")[:-3]


def utc(time: float) -> str:
    """ISO 8601, UTC, milliseconds: the form of the public JSON."""
    return clocks.date(time).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def size(count: int) -> str:
    """Bytes for people: 512 B, 27.1 kB, 1.4 MB."""
    if count < 1000:
        return f"{count} B"
    if count < 1_000_000:
        return f"{count / 1000:.1f} kB"
    return f"{count / 1_000_000:.1f} MB"


def seconds(duration: float) -> str:
    """A duration for people: 12 ms, 2.1 s, 3 min 20 s."""
    if duration < 1:
        return f"{duration * 1000:.0f} ms"
    if duration < 120:
        return f"{duration:.1f} s"
    return f"{int(duration) // 60} min {int(duration) % 60} s"


def short(target: str, certname: str | None = None, width: int = WIDTH) -> str:
    """A request's target without what every line repeats: prefix, own certname, query."""
    path = clean(target.partition("?")[0])
    for prefix in ("/puppet/v3/", "/puppet-ca/v1/"):
        path = path.removeprefix(prefix)
    if certname and path.endswith("/" + certname):
        path = path[: -len(certname)] + "~"
    return path if len(path) <= width else f"{path[: width // 2 - 1]}…{path[-(width // 2) :]}"


def row(step: Step) -> tuple[str, ...]:
    """One line's cells: time, certname, phase, method, path, status, size, duration, finding ids."""
    record = step.record
    who = clean((step.run.certname if step.run else None) or step.certname or _address(record) or "-")
    ids = " ".join(dict.fromkeys(finding.rule for finding in step.findings))
    match record:
        case Exchange():
            response = record.response
            return (
                clock(record.time),
                who,
                str(step.phase),
                clean(record.request.method),
                short(record.request.target, who),
                str(response.status) if response else "none",
                size(len(response.body)) if response else "-",
                seconds(record.ended - record.time),
                ids,
            )
        case Handshake():
            return (clock(record.time), who, "handshake", "TLS", clean(record.reason), "failed", "-", "-", ids)
        case Gap():
            return (clock(record.time), "-", "gap", "-", clean(record.reason), "lost", str(record.lost), "-", ids)


def _address(record: object) -> str | None:
    if isinstance(record, Exchange):
        return record.agent.address
    return record.leg.address if isinstance(record, Handshake) else None


def line(step: Step) -> str:
    """A step as one line of plain text, as the proxy prints it."""
    time, who, phase, method, path, status, volume, duration, ids = row(step)
    if isinstance(step.record, Exchange):
        text = f"{time}  {who:<20} {phase:<12} {method:<4} {path:<{WIDTH}} {status:>4} {volume:>9} {duration:>8}"
        notes = [ids, *_asides(step)]
        return f"{text}  {'  '.join(note for note in notes if note)}".rstrip()
    if isinstance(step.record, Handshake):
        return f"{time}  {who:<20} TLS refused: {handshake(step.record)}  {ids}".rstrip()
    lost = f" ({volume} lost)" if volume != "0" else ""
    return f"{time}  -- gap: {path}{lost}"


def _asides(step: Step) -> list[str]:
    exchange = step.exchange
    if exchange is None:
        return []
    notes = []
    if exchange.response is None:
        notes.append(f"no answer: {clean(exchange.error or 'unknown reason')}")
    if exchange.identity and exchange.identity.reason:
        notes.append(f"sent without the agent's identity: {clean(exchange.identity.reason)}")
    if exchange.stripped:
        notes.append(f"withheld from the master: {clean(', '.join(exchange.stripped))}")
    return notes


def handshake(record: Handshake) -> str:
    """A failed handshake in one sentence."""
    who = {"agent": "the agent", "proxy": "the proxy", "master": "the master", None: "nobody"}[record.alert_by]
    alert = f" (alert {clean(record.alert)} from {who})" if record.alert else ""
    return f"{clean(record.reason)}{alert}"


def identity(lent: Identity | None) -> str:
    """As whom the master was spoken to."""
    if lent is None:
        return "not known"
    if lent.certname:
        return f"{clean(lent.certname)} ({clean(lent.mode)})"
    return f"nobody ({clean(lent.reason)})" if lent.reason else "nobody"


def counts(findings: Sequence[Finding]) -> str:
    """How many findings of each severity, the worst first; empty if there are none."""
    parts = []
    for severity in ("error", "warning", "notice"):
        number = sum(finding.severity == severity for finding in findings)
        if number:
            parts.append(f"{number} {severity}{'s' if number > 1 else ''}")
    return ", ".join(parts)


def summary(run: Run, findings: Sequence[Finding]) -> str:
    """A run in one line: who, how it ended, how long, through which phases, what was wrong."""
    name = clean(run.certname or run.address or "an unnamed agent")
    phases = " ".join(f"{span.phase} {span.exchanges}" for span in run.spans.values())
    ids = " ".join(f"{finding.rule}" for finding in sorted(findings, key=lambda each: -each.severity.rank))
    told = f"; {counts(findings)}: {ids}" if findings else ""
    version = f" ({clean(run.agent_version)})" if run.agent_version else ""
    return f"== run {run.number or '?'} of {name}{version}: {run.outcome} in {seconds(run.duration)}; {phases}{told}"


RUN_COLUMNS = ("run", "began", "agent", "version", "environment", "outcome", "took", "phases", "findings")


def run_row(run: Run) -> tuple[str, ...]:
    """A run's cells for ``RUN_COLUMNS``."""
    return (
        str(run.number),
        clock(run.started)[:8],
        clean(run.certname or run.address or "-") + (f" ({clean(run.tool)})" if run.tool else ""),
        clean(run.agent_version or "-"),
        clean(run.environment or "-"),
        run.outcome,
        seconds(run.duration),
        ", ".join(f"{span.phase} {span.exchanges} ({seconds(span.duration)})" for span in run.spans.values()),
        " ".join(dict.fromkeys(each.rule for each in sorted(run.findings, key=lambda each: -each.severity.rank))),
    )


def verdict(run: Run) -> tuple[str, str] | None:
    """What a run comes down to and what to do now; None for one with nothing to say."""
    found = verdicts.verdict(run)
    if found is None:
        return None
    name = clean(run.certname or run.address or "an unnamed agent")
    how = {"certain": "", "likely": " (likely)", "not visible": ""}[found.certainty]
    when = utc(found.since)[:19].replace("T", " ")
    since = f"{'at' if run.outcome == 'complete' else 'since'} {when} UTC"
    ended = _ended(run)
    if found.cause is None:
        reason = _shortened(_outcome(run) or run.outcome)
        unseen = "" if found.certainty == "certain" else "; the wire does not show why"
        return f"{name} {ended}: {reason}, {since}{unseen}", clean(fill(_next(run), run))
    cause = found.cause
    also = (
        f"; {', '.join(found.symptoms)} follow{'s' if len(found.symptoms) == 1 else ''} from it"
        if found.symptoms
        else ""
    )
    message = f"{name} {ended}: {cause.rule} {_shortened(clean(cause.message))}{how}, {since}{also}"
    return message, clean(rule_of(cause.rule).remedy_for(run))


def _ended(run: Run) -> str:
    applied = bool(run.catalogs and run.catalogs[-1].usable)
    if run.outcome == "unfinished" and run.reports and applied:
        return "ran, and its report was not taken"
    return "stopped in its bootstrap" if run.outcome == "unfinished" and run.bootstrapping else OUTCOMES[run.outcome]


OUTCOMES: dict[Outcome, str] = {
    "complete": "ran to its end",
    "failed": "failed",
    "waiting": "has no certificate yet",
    "refused": "was refused",
    "unfinished": "did not finish",
}


_NEXT: dict[Outcome, str] = {
    "complete": "Nothing.",
    "refused": "See what the node holds ({verify}), and whom the master's log says it refused.",
    "waiting": "Compare the fingerprints ({fingerprint} on the node, {list} on the CA), then {sign}.",
    "failed": "Read the agent's report and the master's log of that moment.",
    "unfinished": "Look at the agent's own log: it was killed, lost its network, or is still running.",
}
"""What to do where no deviation says it."""
_SILENT = (
    "See whether its certificate is revoked or has ended ({list} on the CA, {verify} on the node), and whether the "
    'master\'s own CRL has: `openssl crl -noout -nextupdate -in "$(puppet config print hostcrl)"` there.'
)


def _next(run: Run) -> str:
    if run.outcome == "waiting" and _other_key(run):
        return rule_of("B23").remedy
    if run.outcome == "unfinished" and run.bootstrapping:
        return _NEXT["refused"]
    return _SILENT if _unanswered(run) else _NEXT[run.outcome]


def _unanswered(run: Run) -> bool:
    """No request of the run got an answer, though it showed a certificate: how a TLS 1.3 master refuses one."""
    return bool(run.authenticated and len(run.seqs) > 1 and not run.handshakes and not run.answered)


def _other_key(run: Run) -> bool:
    answered = next((each.certificate for each in reversed(run.certificates) if each.certificate), None)
    return bool(answered and run.csrs and run.csrs[-1].key != answered.key)


def _shortened(reason: str) -> str:
    return reason if len(reason) <= REASON else f"{reason[:REASON]}…"


def why(run: Run) -> str | None:
    """Why a run did not end well, in one sentence; None if it did and nothing in it is an error."""
    found = verdicts.verdict(run)
    if found and found.cause and found.cause.severity == "error":
        return _shortened(f"{found.cause.rule} {clean(found.cause.message)}")
    reason = _outcome(run)
    return reason and _shortened(reason)


def _outcome(run: Run) -> str | None:
    match run.outcome:
        case "refused" if run.handshakes:
            return handshake(run.handshakes[-1][1])
        case "refused":
            return f"the master refused {run.denied[-1].endpoint} with {run.denied[-1].status}"
        case "waiting":
            return _why_waiting(run)
        case "failed" | "unfinished" if _unanswered(run):
            return (
                "the master closed every connection without an answer: most often it refuses the agent's certificate "
                "(revoked, ended), or its own CRL has expired"
            )
        case "failed" if run.catalogs and not run.catalogs[-1].usable:
            last = run.catalogs[-1]
            said = clean(last.text.partition(chr(10))[0])
            return f"no catalog: {last.status} {said}".rstrip() if last.status else f"no catalog, no answer: {said}"
        case "failed":
            logs = (run.reports[-1].report.logs if run.reports and run.reports[-1].report else None) or []
            first = next((each for each in logs if each.level.lstrip(":") in ("err", "crit", "alert", "emerg")), None)
            return f"the report says failed{': ' + clean(first.message.partition(chr(10))[0]) if first else ''}"
        case "unfinished" if run.reports:
            return f"the master did not take the report ({run.reports[-1].status or 'no answer'})"
        case "unfinished" if run.bootstrapping and (run.cas or run.crls) and not run.certificates:
            got = "the CRL" if run.crls else "the CA"
            return (
                f"it downloaded {got} and went no further: most often it refuses the certificate it was shown (failed "
                "handshakes are not in imported files)"
            )
        case "unfinished":
            return "it ended without a report"
    return None


def _why_waiting(run: Run) -> str:
    if _other_key(run):
        return "the CA gave it a certificate for another key than its own"
    last = run.csrs[-1] if run.csrs else None
    if last and (last.status is None or last.status >= 400) and "already has a requested" not in last.text:
        said = clean(last.text.partition("\n")[0])
        return f"the CA did not take its certificate request: {last.status or 'no answer'} {said}".rstrip()
    return "its certificate request waits to be signed"


def finding(found: Finding, rule: Rule, run: Run, where: str = "", *, brief: bool = False) -> list[str]:
    """A finding with its proof, and unless ``brief`` its explanation and remedy.

    ``where`` says which capture the run is in, if there are several.
    """
    proof = ", ".join(str(seq) for seq in found.seqs)
    name = clean(run.certname or run.address or "an unnamed agent")
    lines = [
        f"{found.severity.upper()} {found.rule} {rule.title}: {clean(found.message)}",
        f"  {clean(where)}run {run.number} of {name}; proof: {proof or 'the whole run'} ({rule.visible})",
    ]
    if not brief:
        signed = found.rule in verdicts.WAITING and run.certificate is not None
        lines += wrapped("  why:    ", rule.explanation)
        lines += wrapped("  do:     ", "nothing, it was signed" if signed else clean(rule.remedy_for(run)))
        lines += wrapped("  source: ", rule.source)
    return [*lines, ""]


_COMMAND = re.compile(r"`[^`]*`")


def wrapped(label: str, text: str, width: int = 100) -> list[str]:
    """Text in lines behind a label; a command in backticks is never broken, it may be copied."""
    whole = _COMMAND.sub(lambda found: found.group().replace(" ", "\0").replace("-", "\1"), text)
    lines = textwrap.wrap(
        whole, width, initial_indent=label, subsequent_indent=" " * len(label), break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    return [line.replace("\0", " ").replace("\1", "-") for line in lines] or [label]


def record(step: Step, findings: Sequence[Finding]) -> list[str]:
    """One record in full, as lines of text."""
    lines = [
        f"{step.record.seq}  {line(step)}",
        f"run {step.run.number if step.run and step.run.number else '-'}, phase {step.phase}",
    ]
    for each in findings:
        lines.append(f"{each.severity} {each.rule}: {clean(each.message)}")
    match step.record:
        case Exchange():
            lines += _exchange(step, step.record)
        case Handshake():
            lines += ["", f"TLS with the {step.record.leg.side}", *_leg(step.record.leg)]
            lines += [f"  wrong: {clean(culprit)}" for culprit in step.record.culprits]
        case Gap():
            pass
    return lines


def _exchange(step: Step, exchange: Exchange) -> list[str]:
    request, response = exchange.request, exchange.response
    lines = [f"to the master as {identity(exchange.identity)}"]
    if step.match:
        lines.append(f"{step.match.endpoint.name}: {step.match.endpoint.purpose}")
    lines += ["", "TLS with the agent", *_leg(exchange.agent)]
    if exchange.master:
        lines += ["", "TLS with the master", *_leg(exchange.master)]
    lines += ["", clean(f"> {request.method} {request.target} {request.http_version}")]
    lines += _message("> ", request, step.request)
    if response is None:
        return [*lines, "", f"< no answer: {clean(exchange.error or 'unknown reason')}"]
    lines += ["", clean(f"< {response.http_version} {response.status} {response.reason}")]
    return lines + _message("< ", response, step.response)


def _message(mark: str, message: Message, document: Document | None) -> list[str]:
    lines = [clean(f"{mark}{name}: {value}") for name, value in message.headers]
    lines.append(f"{mark}({size(len(message.body))} of body)")
    if document is not None and message.body:
        lines += [f"    {clean(text)}" for text in _document(document)]
    return lines


def _document(document: Document) -> list[str]:
    text = json.dumps(documents.plain(document), indent=1, ensure_ascii=False)
    lines = text.splitlines()
    return lines if len(lines) <= 200 else [*lines[:200], f"... {len(lines) - 200} lines more: --json has them all"]


def _leg(leg: Leg) -> list[str]:
    secured = clean(f"{leg.tls_version or 'TLS'} {leg.cipher or ''}".strip()) if leg.secured else "not established"
    lines = [f"  {clean(leg.address or '?')}:{leg.port or '?'}, {secured}, SNI {clean(leg.sni or 'none')}"]
    for title, chain in (("it showed", leg.peer_chain), ("it was shown", leg.own_chain)):
        for der in chain:
            try:
                certificate = x509.read_der(der)
            except x509.Malformed as error:
                lines.append(f"  {title}: a certificate that can't be read: {clean(str(error))}")
            else:
                lines.append(
                    f"  {title}: {clean(certificate.subject)} by {clean(certificate.issuer)}, until "
                    f"{utc(certificate.not_after)[:10]}"
                )
    return lines
