"""The texts for people: records, steps, runs and findings in words. This is the only module that formats them.

Console, command line and terminal application all use these texts; the full text of a single record is in ``pages``.
Captured bytes are hostile: control characters never reach a terminal.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from inspector import regex
from inspector.analysis import verdicts
from inspector.model import Severity
from inspector.rules import connection_errors, fixes, rule_of
from inspector.rules.fixes import advice, group, on_ca, on_master, on_node
from inspector.rules.puppet_commands import fill
from inspector.summaries.summary import Conclusion
from inspector.text import WIDTH, beginning, clean, clock, counts, seconds, short, size, utc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.analysis.verdicts import Verdict
    from inspector.model import Finding, Handshake, Identity
    from inspector.rules import Rule
    from inspector.rules.fixes import Fix
    from inspector.runs.run import Run
    from inspector.runs.snapshot import Outcome, RunSnapshot
    from inspector.summaries.summary import Brief, Party, RunLike

REASON = 400
"""Maximum length of a run's reason: masters and agents send whole backtraces."""


def row(brief: Brief, run: RunLike | None) -> tuple[str, ...]:
    """The cells of one line: time, certname, phase, method, path, status, size, duration, finding ids."""
    who = clean((run.certname if run else None) or brief.certname or brief.address or "-")
    ids = " ".join(dict.fromkeys(sign.rule for sign in brief.signs))
    time = clock(brief.time)
    match brief.kind:
        case "exchange":
            answered = brief.status is not None
            return (
                time,
                who,
                str(brief.phase),
                clean(brief.method),
                short(brief.target, who),
                str(brief.status) if answered else "none",
                size(brief.received) if answered else "-",
                seconds(brief.duration),
                ids,
            )
        case "handshake":
            return (time, who, "handshake", "TLS", clean(brief.reason), "failed", "-", "-", ids)
        case "gap":
            return (time, "-", "gap", "-", clean(brief.reason), "lost", str(brief.lost), "-", ids)


def line(brief: Brief, run: RunLike | None) -> str:
    """A record as one line of plain text, as the proxy prints it."""
    time, who, phase, method, path, status, volume, duration, ids = row(brief, run)
    if brief.kind == "exchange":
        text = f"{time}  {who:<20} {phase:<12} {method:<4} {path:<{WIDTH}} {status:>4} {volume:>9} {duration:>8}"
        notes = [ids, *asides(brief)]
        return f"{text}  {'  '.join(note for note in notes if note)}".rstrip()
    doubts = "".join(f"  {note}" for note in _doubts(brief))
    if brief.kind == "handshake":
        refused = refusal(brief.reason, brief.alert, brief.alert_by)
        return f"{time}  {who:<20} TLS refused: {refused}  {ids}".rstrip() + doubts
    lost = f" ({volume} lost)" if volume != "0" else ""
    return f"{time}  -- gap: {path}{lost}{doubts}"


def asides(brief: Brief) -> list[str]:
    """What was unusual when an exchange was passed on."""
    notes = []
    if brief.status is None:
        notes.append(f"no answer: {clean(brief.reason or 'unknown reason')}")
    if brief.identity_missing:
        notes.append(f"sent without the agent's identity: {clean(brief.identity_missing)}")
    if brief.stripped:
        notes.append(f"removed before forwarding: {clean(', '.join(brief.stripped))}")
    return notes + _doubts(brief)


def _doubts(brief: Brief) -> list[str]:
    return [f"not analyzed: {clean(brief.unanalyzed)}"] if brief.unanalyzed else []


def unanalyzed(seq: int, reason: str) -> str:
    """That a record was not analyzed, as a sentence."""
    return f"record {seq} was not analyzed: {clean(reason)}"


def handshake(record: Handshake) -> str:
    """A failed handshake in one sentence."""
    return refusal(record.reason, record.alert, record.alert_by)


def refusal(reason: str, alert: str | None, by: Party | None) -> str:
    """Why a TLS handshake failed, in one sentence."""
    who = {"agent": "the agent", "proxy": "the proxy", "master": "the master", None: "an unknown sender"}[by]
    return clean(reason) + (f" (alert {clean(alert)} from {who})" if alert else "")


def identity(used: Identity | None) -> str:
    """The identity used towards the master."""
    if used is None:
        return "unknown"
    if used.certname:
        return f"{clean(used.certname)} ({clean(used.mode)})"
    return f"no identity ({clean(used.reason)})" if used.reason else "no identity"


def agent(run: Run | RunSnapshot) -> str:
    """The name of a run's agent, or its address; and whether it showed no certificate though one was needed."""
    name = clean(run.certname or run.address or "an unnamed agent")
    return f"{name} (no certificate)" if run.stranger else name


def summary(run: RunSnapshot) -> str:
    """A run in one line: agent, outcome, duration, phases, findings."""
    name = agent(run)
    phases = " ".join(f"{span.phase} {span.exchanges}" for span in run.spans)
    ids = " ".join(finding.rule for finding in sorted(run.findings, key=lambda finding: -finding.severity.rank))
    deviations = f"; {counts(run.findings)}: {ids}" if run.findings else ""
    version = f" ({clean(run.agent_version)})" if run.agent_version else ""
    took = seconds(run.duration)
    return f"== run {run.number or '?'} of {name}{version}: {run.outcome} in {took}; {phases}{deviations}"


RUN_COLUMNS = ("run", "began", "agent", "version", "environment", "outcome", "time", "phases", "findings")


def run_row(run: RunSnapshot) -> tuple[str, ...]:
    """A run's cells for ``RUN_COLUMNS``."""
    return (
        str(run.number),
        clock(run.started)[:8],
        agent(run) + (f" ({clean(run.tool)})" if run.tool else ""),
        clean(run.agent_version or "-"),
        clean(run.environment or "-"),
        run.outcome,
        seconds(run.duration),
        ", ".join(f"{span.phase} {span.exchanges} ({seconds(span.duration)})" for span in run.spans),
        " ".join(dict.fromkeys(found.rule for found in sorted(run.findings, key=lambda found: -found.severity.rank))),
    )


def words(run: RunSnapshot, verdict: Conclusion | None) -> str:
    """All printed text of a run, including its verdict: for the plain words of a filter."""
    return "\n".join([*run_row(run), *((verdict.message, verdict.fix) if verdict else ())])


def conclusion(run: Run, found: Verdict | None = None) -> Conclusion | None:
    """Return a run's verdict, or another one on it, in words; None if there is nothing to report."""
    found = found or verdicts.verdict(run)
    if found is None:
        return None
    cause = found.cause
    steps = rule_of(cause.rule).fix_for(run) if cause else fill(_next(run), run)
    if cause and cause.severity.rank > Severity.NOTICE.rank:
        steps = fixes.proved(steps)
    return Conclusion(
        message=_message(run, found),
        reason=_shortened(clean(cause.message) if cause else _outcome(run) or run.outcome),
        steps=steps,
        cause=cause.rule if cause else None,
        symptoms=found.symptoms,
        besides=found.besides,
        certainty=found.certainty,
        since=found.since,
    )


def _message(run: Run, found: Verdict) -> str:
    command = run.command
    name = f"`{command.name}` of {agent(run)}" if command and command.certain else agent(run)
    when = utc(found.since)[:19].replace("T", " ")
    since = f"{'at' if run.outcome == 'complete' else 'since'} {when} UTC"
    cause = found.cause
    if cause is None:
        reason = _shortened(_outcome(run) or run.outcome)
        unseen = "; the cause is not visible in the traffic" if found.certainty == "not visible" else ""
        return f"{name} {_ended(run)}: {reason}, {since}{unseen}"
    how = {"certain": "", "likely": " (likely)", "not visible": ""}[found.certainty]
    if found.evidence is not None:
        how = f" (likely: run {found.evidence} shows it)"
    follow = "follows" if len(found.symptoms) == 1 else "follow"
    also = f"; {', '.join(found.symptoms)} {follow} from it" if found.symptoms else ""
    also += f"; not from it: {', '.join(found.besides)}" if found.besides else ""
    return f"{name} {_ended(run)}: {cause.rule} {_shortened(clean(cause.message))}{how}, {since}{also}"


def _ended(run: Run) -> str:
    applied = bool(run.catalogs and run.catalogs[-1].usable)
    if run.outcome == "unfinished" and run.reports and applied:
        return "ran, but its report was not accepted"
    return (
        "stopped during its bootstrap" if run.outcome == "unfinished" and run.bootstrapping else OUTCOMES[run.outcome]
    )


OUTCOMES: dict[Outcome, str] = {
    "complete": "completed",
    "failed": "failed",
    "waiting": "has no certificate yet",
    "refused": "was refused",
    "unfinished": "did not finish",
}


_AGENTS_LOG = advice("read the agent's log")
_NEXT: dict[Outcome, Fix] = {
    "complete": (advice("nothing to do"),),
    "refused": (
        on_node("check its certificate and what it trusts", "{verify}"),
        advice("look in the master's log for refused connections"),
    ),
    "waiting": (group("signing"),),
    "failed": (advice("read the agent's report, and the master's log for that time"),),
    "unfinished": (advice("check the agent's log: the agent was killed, lost its network, or is still running"),),
}
"""The fixes for problems that are not deviations."""
_STOPPED = (
    on_node(
        "see whether it trusts what it is shown for the name {host} (it must end with 'Verify return code: 0')",
        'openssl s_client -connect {host}:8140 -CAfile "$(puppet config print localcacert)" </dev/null',
    ),
    _AGENTS_LOG,
)
_LIKELY_COMMAND = (
    advice("nothing to do if somebody ran this command; if it was an agent's run, it was stopped: check its log"),
)
_SILENT = (
    on_ca("see whether the agent's certificate is revoked or expired", "{list}"),
    on_node("check it there as well", "{verify}"),
    on_master("see when the CRL expires", 'openssl crl -noout -nextupdate -in "$(puppet config print hostcrl)"'),
)


def _next(run: Run) -> Fix:
    if run.outcome == "waiting" and _other_key(run):
        return rule_of("B23").fix
    if run.outcome == "unfinished" and run.command:
        return _LIKELY_COMMAND
    if run.outcome == "unfinished" and run.bootstrapping:
        return _STOPPED
    return _SILENT if _unanswered(run) else _NEXT[run.outcome]


def _unanswered(run: Run) -> bool:
    """Whether the agent presented a certificate and the master closed the connection of each request: this is how a
    TLS 1.3 master refuses one."""
    silent = run.authenticated and len(run.seqs) > 1 and not run.handshakes and not run.answered
    return bool(silent and any(map(connection_errors.closed, run.errors)))


def _other_key(run: Run) -> bool:
    answered = next(
        (certificate.certificate for certificate in reversed(run.certificates) if certificate.certificate), None
    )
    return bool(answered and run.csrs and run.csrs[-1].key != answered.key)


def _shortened(reason: str) -> str:
    return beginning(reason, REASON + 1)


def why(run: Run) -> str | None:
    """Why a run failed, in one sentence; None if it succeeded and has no errors."""
    found = verdicts.verdict(run)
    if found and found.cause and found.cause.severity == "error":
        return _shortened(f"{found.cause.rule} {clean(found.cause.message)}")
    reason = _outcome(run)
    return reason and _shortened(reason)


def _outcome(run: Run) -> str | None:
    match run.outcome:
        case "refused" if run.handshakes:
            return handshake(run.handshakes[-1])
        case "refused" if run.denied:
            return f"the master refused {run.denied[-1].endpoint.name} with {run.denied[-1].status}"
        case "waiting":
            return _why_waiting(run)
        case "refused" | "failed" if run.command:
            return "the master did not give what the command asked for"
        case "unfinished" if run.command:
            got = "certificate" if run.certificates else "plugins"
            return f"the agent got its {got} and asked for nothing else: likely it was `{run.command.name}`, not a run"
        case "failed" | "unfinished" if _unanswered(run):
            return (
                "the master closed every connection without an answer: most often because it refuses the agent's "
                "certificate (revoked, expired), or because its own CRL has expired"
            )
        case "failed" if run.catalogs and not run.catalogs[-1].usable:
            last = run.catalogs[-1]
            message = clean(last.text.partition(chr(10))[0])
            return (
                f"no catalog: {last.status} {message}".rstrip() if last.status else f"no catalog, no answer: {message}"
            )
        case "failed" | "unfinished" if run.errors and not run.answered:
            return f"no request was answered: {clean(run.errors[-1])}"
        case "failed":
            logs = (run.reports[-1].report.logs if run.reports and run.reports[-1].report else None) or []
            first = next((log for log in logs if log.level.lstrip(":") in ("err", "crit", "alert", "emerg")), None)
            return f"the report says failed{': ' + clean(first.message.partition(chr(10))[0]) if first else ''}"
        case "unfinished" if run.reports:
            return f"the master did not accept the report ({run.reports[-1].status or 'no answer'})"
        case "unfinished" if run.bootstrapping and (run.cas or run.crls) and not run.certificates:
            got = "the CRL" if run.crls else "the CA"
            return (
                f"the agent downloaded {got} and stopped: most often because it refuses the master's certificate "
                "(imported files do not contain failed handshakes)"
            )
        case "unfinished":
            return "the run ended without a report"
    return None


def _why_waiting(run: Run) -> str:
    if _other_key(run):
        return "the CA returned a certificate for another key than the agent's"
    last = run.csrs[-1] if run.csrs else None
    if last and (last.status is None or last.status >= 400) and "already has a requested" not in last.text:
        message = clean(last.text.partition("\n")[0])
        return f"the CA did not accept the certificate request: {last.status or 'no answer'} {message}".rstrip()
    return "the certificate request is waiting to be signed"


def numbers(seqs: Sequence[int]) -> str:
    """Record numbers in words: ``record 3``, ``records 3, 7``."""
    return f"record{'s' if len(seqs) > 1 else ''} {', '.join(map(str, seqs))}"


def finding(found: Finding, rule: Rule, run: Run, where: str = "", *, brief: bool = False) -> list[str]:
    """A finding with its evidence, and unless ``brief`` its explanation and fix.

    ``where`` says which capture the run is in, if there are several.
    """
    name = agent(run)
    evidence = numbers(found.seqs) if found.seqs else "the whole run"
    lines = [
        f"{found.severity.upper()} {found.rule} {rule.title}: {clean(found.message)}",
        f"  {clean(where)}run {run.number} of {name}; evidence: {evidence}",
    ]
    if not brief:
        lines += wrapped("  why:    ", rule.explanation)
        lines += labelled("  fix:    ", SETTLED if verdicts.settled(found, run) else rule.fix_for(run))
        lines += wrapped("  source: ", rule.source)
    return [*lines, ""]


SETTLED = (advice("nothing to do: the request was signed"),)


def labelled(label: str, fix: Fix, width: int = 100) -> list[str]:
    """A fix in numbered lines behind a label."""
    below = " " * len(label)
    return [f"{below if at else label}{clean(line)}" for at, line in enumerate(fixes.lines(fix, width - len(label)))]


_COMMAND = regex.compile(r"`[^`]*`|\bdocs/\S+")


def quoted(whole: str | None) -> list[str]:
    """A whole message (``whole_message``) in lines of their own; none without one."""
    return ["  message:", *(f"    {line}" for line in whole.split("\n"))] if whole else []


def wrapped(label: str, text: str, width: int = 100) -> list[str]:
    """Text wrapped behind a label. A command in backticks or a page of docs/ is never broken, so that it can be
    copied."""
    whole = _COMMAND.sub(lambda found: found[0].replace(" ", "\0").replace("-", "\1"), text)
    lines = textwrap.wrap(
        whole, width, initial_indent=label, subsequent_indent=" " * len(label), break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    return [line.replace("\0", " ").replace("\1", "-") for line in lines] or [label]
