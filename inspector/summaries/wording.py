"""The texts for people: records, steps, runs and findings in words. This is the only module that formats them.

Console, command line and terminal application all use these texts; the full text of a single record is in ``pages``.
Captured bytes are hostile: control characters never reach a terminal.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from inspector import regex
from inspector.rules import fixes, rule_of
from inspector.text import WIDTH, clean, clock, counts, seconds, short, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.model import Finding, Handshake, Identity
    from inspector.rules.fixes import Fix
    from inspector.runs.run import Run
    from inspector.runs.snapshot import RunSnapshot
    from inspector.summaries.summary import Brief, Party, RunBrief, RunLike


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


def words(run: RunBrief) -> str:
    """All printed text of a run, including its verdict: for the plain words of a filter."""
    return "\n".join([*run_row(run), *((run.verdict.message, run.fix) if run.verdict else ())])


def numbers(seqs: Sequence[int]) -> str:
    """Record numbers in words: ``record 3``, ``records 3, 7``."""
    return f"record{'s' if len(seqs) > 1 else ''} {', '.join(map(str, seqs))}"


def finding(found: Finding, run: RunBrief, where: str = "", *, brief: bool = False) -> list[str]:
    """A finding with its evidence, and unless ``brief`` its explanation and fix.

    ``where`` says which capture the run is in, if there are several.
    """
    rule = rule_of(found.rule)
    name = agent(run)
    evidence = numbers(found.seqs) if found.seqs else "the whole run"
    lines = [
        f"{found.severity.upper()} {found.rule} {rule.title}: {clean(found.message)}",
        f"  {clean(where)}run {run.number} of {name}; evidence: {evidence}",
    ]
    if not brief:
        lines += wrapped("  why:    ", rule.explanation)
        lines += labelled("  fix:    ", run.fix_for(found.rule))
        lines += wrapped("  source: ", rule.source)
    return [*lines, ""]


def labelled(label: str, fix: Fix, width: int = 100) -> list[str]:
    """A fix in numbered lines behind a label."""
    below = " " * len(label)
    return [f"{below if at else label}{clean(line)}" for at, line in enumerate(fixes.lines(fix, width - len(label)))]


class FixLines:
    """Fixes as lines of text, one below the other; the same one is printed once."""

    def __init__(self) -> None:
        self._printed: dict[Fix, str] = {}

    def of(self, fix: Fix, where: str) -> list[str]:
        """The lines of a fix; ``where`` names the run that it is for."""
        known = self._printed.setdefault(fix, where)
        return labelled("  fix: ", fix) if known == where else [f"  fix: as for {known}"]


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
