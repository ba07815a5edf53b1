"""A run's verdict in words, and the run in brief: what lists, commands and the index show of it.

The verdict itself is found by ``inspector.analysis.verdicts``; how a brief run is printed is in ``wording``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from inspector.analysis import known_errors, verdicts
from inspector.model import Severity
from inspector.privacy import redact
from inspector.rules import rule_of
from inspector.rules.fixes import advice, group, on_node
from inspector.rules.puppet_commands import FixContext, destroying
from inspector.summaries import wording
from inspector.summaries.summary import REASON, Conclusion, RunBrief
from inspector.text import beginning, clean, decisive

if TYPE_CHECKING:
    from inspector.model import Finding
    from inspector.rules.fixes import Fix
    from inspector.runs.run import Run
    from inspector.runs.snapshot import Outcome

INJECTED = 5
"""Records with injected faults that a verdict names."""


def of_run(run: Run) -> RunBrief:
    """Return a run in brief, with its verdict."""
    facts = msgspec.structs.asdict(run.snapshot())
    found = verdicts.verdict(run)
    known = _known(run)
    fixes = {rule: known_errors.filled(reason.known.fix, reason.text) for rule, reason in known.items()}
    special = {finding.rule: run for finding in run.findings if rule_of(finding.rule).instead}
    fields = {
        "number": run.number or 0,
        "verdict": _conclusion(run, found) if found else None,
        "why": _why(run, found.cause if found else None),
        "ignored": run.ignored,
        "command": run.command.name if run.command else None,
        "fix_context": FixContext.of(run),
        "special_fixes": fixes | {rule: rule_of(rule).unfilled_for(run) for rule in special if rule not in fixes},
        "meanings": {rule: reason.known.meaning for rule, reason in known.items()},
        "settled": tuple(finding.rule for finding in run.findings if verdicts.settled(finding, run)),
        "unheard": not run.answered or run.bootstrapping,
    }
    return RunBrief(**facts | fields)


def _known(run: Run) -> dict[str, known_errors.ErrorMatch]:
    """Return what the book of messages knows of what was printed, by rule, unless the rule has a fix for this run.

    What deletes something is taken only from a message that names the rule: the words of another service's TLS, in the
    error of a resource, say nothing about this node's identity.
    """
    known: dict[str, known_errors.ErrorMatch] = {}
    for finding in run.findings:
        instead = rule_of(finding.rule).instead
        if not finding.printed or (instead and instead(run)):
            continue
        reason = known_errors.reason(finding.printed)
        if reason and (finding.rule in reason.known.rules or not destroying(reason.known.fix)):
            known.setdefault(finding.rule, reason)
    return known


def _conclusion(run: Run, found: verdicts.Verdict) -> Conclusion:
    command, cause = run.command, found.cause
    name = wording.agent(run)
    if found.injected is not None:
        return Conclusion(
            lead=f"{name} {_ended(run)}",
            reason=_injected(run),
            severity=Severity.NOTICE,
            besides=found.besides,
            certainty=found.certainty,
            since=found.since,
            is_over=run.outcome == "complete",
            advice=_ON_PURPOSE,
        )
    return Conclusion(
        lead=f"{f'`{command.name}` of {name}' if command and command.certain else name} {_ended(run)}",
        reason=_shortened(clean(cause.message) if cause else _outcome(run) or run.outcome),
        cause=cause.rule if cause else None,
        severity=cause.severity if cause else None,
        symptoms=found.symptoms,
        besides=found.besides,
        certainty=found.certainty,
        since=found.since,
        is_over=run.outcome == "complete",
        advice=() if cause else _next(run),
    )


def _injected(run: Run) -> str:
    """Return which faults were injected, and in which records, in a sentence."""
    notes = ", ".join(map(clean, dict.fromkeys(run.injected.values())))
    seqs = list(run.injected)
    more = f" and {len(seqs) - INJECTED} more" if len(seqs) > INJECTED else ""
    return _shortened(f"a fault was injected here on purpose ({notes}, {wording.numbers(seqs[:INJECTED])}{more})")


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
_ON_PURPOSE = (advice("nothing to do: a run without the fault (puppet_fault, run --fault) shows how the agent does"),)
NEXT: dict[Outcome, Fix] = {
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
        "openssl s_client -connect {host}:8140 -verify_hostname {host} -CAfile "
        '"$(puppet config print localcacert)" </dev/null',
    ),
    _AGENTS_LOG,
)
_LIKELY_COMMAND = (
    advice("nothing to do if somebody ran this command; if it was an agent's run, it was stopped: check its log"),
)
_OF_COMMAND = (advice("read what the command printed, and the master's log for that time"),)


def _next(run: Run) -> Fix:
    if run.outcome == "waiting" and _other_key(run):
        return rule_of("B23").fix
    if run.command:
        return _OF_COMMAND if run.command.certain else _LIKELY_COMMAND
    if run.outcome == "unfinished" and run.bootstrapping:
        return _STOPPED
    return NEXT[run.outcome]


def _other_key(run: Run) -> bool:
    answered = next(
        (certificate.certificate for certificate in reversed(run.certificates) if certificate.certificate), None
    )
    return bool(answered and run.csrs and run.csrs[-1].key != answered.key)


def _first_line(message: str) -> str:
    return clean(decisive(message.partition("\n")[0]))


def _shortened(reason: str) -> str:
    return beginning(redact.text(beginning(reason, 10 * REASON)), REASON + 1)


def _why(run: Run, cause: Finding | None) -> str | None:
    """Why a run failed, in one sentence; None if it succeeded and has no errors."""
    if run.injected:
        return None if run.outcome == "complete" else _injected(run)
    if cause and cause.severity is Severity.ERROR:
        return _shortened(f"{cause.rule} {clean(cause.message)}")
    reason = _outcome(run)
    return reason and _shortened(reason)


def _outcome(run: Run) -> str | None:
    match run.outcome:
        case "refused" if run.handshakes:
            return wording.handshake(run.handshakes[-1])
        case "refused" if run.denied:
            return f"the master refused {run.denied[-1].endpoint.name} with {run.denied[-1].status}"
        case "waiting":
            return _why_waiting(run)
        case "refused" | "failed" if run.command:
            return "the master did not give what the command asked for"
        case "unfinished" if run.command:
            got = "certificate" if run.certificates else "plugins"
            return f"the agent got its {got} and asked for nothing else: likely it was `{run.command.name}`, not a run"
        case "failed" if run.catalogs and not run.catalogs[-1].usable:
            last = run.catalogs[-1]
            message = _first_line(last.text)
            return (
                f"no catalog: {last.status} {message}".rstrip() if last.status else f"no catalog, no answer: {message}"
            )
        case "failed" | "unfinished" if run.unanswered and not run.answered:
            return f"no request was answered: {clean(run.unanswered[-1].reason)}"
        case "failed":
            logs = (run.reports[-1].report.logs if run.reports and run.reports[-1].report else None) or []
            first = next((log for log in logs if log.level.lstrip(":") in ("err", "crit", "alert", "emerg")), None)
            return f"the report says failed{': ' + _first_line(first.message) if first else ''}"
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
        message = _first_line(last.text)
        return f"the CA did not accept the certificate request: {last.status or 'no answer'} {message}".rstrip()
    return "the certificate request is waiting to be signed"
