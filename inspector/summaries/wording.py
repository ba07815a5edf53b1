"""The texts for people: records, steps, runs and findings in words. This is the only module that formats them.

Console, command line and terminal application all use these texts; the full text of a single record is in ``pages``.
Captured bytes are hostile: control characters never reach a terminal.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, NamedTuple

from inspector import installation, regex
from inspector.model import Severity
from inspector.privacy import redact
from inspector.rules import fixes, rule_of
from inspector.runs.snapshot import RunState
from inspector.text import WIDTH, beginning, clean, clock, counts, ends, seconds, short, size

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from inspector.model import Finding, Handshake, Identity
    from inspector.rules.fixes import Fix
    from inspector.runs.run import Run
    from inspector.runs.snapshot import RunSnapshot
    from inspector.summaries.judgement import Judgement
    from inspector.summaries.summary import Brief, Party, RunBrief, RunLike
    from inspector.summaries.under_way import UnderWay

PLAIN = 100
"""Columns of text in a pipe."""
FIGURES = 24
"""Columns of status, size and duration."""
NOTES = 11
"""Columns for two findings."""
SENT_AGAIN = "an agent sends its signing request with each attempt, and the CA has signed this key since"
"""Why the CA's refusal of such a request is normal."""
SHORTEST, LONG = 20, 60
"""Characters of a path that are shown at least; columns after which longer ones are not aligned any more."""
NAME, PATH = 16, 12
"""Columns of an agent's name, and those of a path at least, in a line in brief."""


def row(brief: Brief, run: RunLike | None, path: int = WIDTH) -> tuple[str, ...]:
    """The cells of one line: time, certname, phase, method, path (of so many characters at most), status, size,
    duration, finding ids."""
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
                path_of(brief, who, path),
                str(brief.status) if answered else "none",
                size(brief.received) if answered else "-",
                seconds(brief.duration),
                ids,
            )
        case "handshake":
            return (time, who, "handshake", "TLS", _free(brief.reason), "failed", "-", "-", ids)
        case "gap":
            return (time, "-", "gap", "-", _free(brief.reason), "lost", str(brief.lost), "-", ids)


def path_of(brief: Brief, certname: str | None = None, width: int = WIDTH) -> str:
    """A request's target as a line shows it, with masks instead of secrets: also of those that a cut would hide from
    whoever looks for them."""
    return short(redact.text(brief.target), certname, width)


def _free(text: str) -> str:
    """A free text, safe for a terminal, with masks instead of secrets."""
    return clean(redact.text(text))


def line(brief: Brief, run: RunLike | None) -> str:
    """A record as one line of plain text, as the proxy prints it."""
    cells = row(brief, run)
    if brief.kind == "exchange":
        return f"{_head(cells)} {_rest(cells, WIDTH, asides(brief))}"
    time, who, _, _, path, _, volume, _, ids = cells
    doubts = "".join(f"  {note}" for note in _doubts(brief))
    if brief.kind == "handshake":
        refused = refusal(brief.reason, brief.alert, brief.alert_by)
        injected = f"  {injection(brief.injected)}" if brief.injected else ""
        return f"{time}  {who:<20} TLS refused: {refused}  {ids}".rstrip() + injected + doubts
    lost = f" ({volume} lost)" if volume != "0" else ""
    return f"{time}  -- gap: {path}{lost}{doubts}"


def lines(brief: Brief, run: RunLike | None, width: int) -> list[str]:
    """A record as lines of text for a terminal: one line, an exchange in brief where there is no room for more, or
    several where that is not enough either. Of the path nothing is cut for which there is room, of why a TLS handshake
    failed nothing at all."""
    if brief.kind != "exchange":
        return flowing(line(brief, run), width, 2)
    cells = row(brief, run, len(brief.target) + 1)
    head, notes = _head(cells), asides(brief)
    if width < len(head):
        return flowing("  ".join(filter(None, [*cells, *notes])), width, 2)
    spare = NOTES - (len(cells[-1]) + 2 if cells[-1] else 0)
    room = width - len(head) - 1 - FIGURES - NOTES
    if room >= LONG:
        return flowing(f"{head} {_rest(cells, room, notes, spare)}", width, 2)
    if room >= SHORTEST:
        return flowing(_path_last(cells, notes, width), width, 2)
    if in_brief := _in_brief(cells, notes, width):
        return [in_brief]
    rest = _rest(cells, max(width - 2 - FIGURES - NOTES, SHORTEST), notes, spare)
    return [head.rstrip(), *flowing(f"  {rest}", width, 2)]


def _head(cells: Sequence[str]) -> str:
    """An exchange up to its method."""
    time, who, phase, method, *_ = cells
    return f"{time}  {who:<20} {phase:<12} {method:<4}"


def _rest(cells: Sequence[str], room: int, notes: Sequence[str], spare: int = 0) -> str:
    """An exchange from its path on: the path has some ``room``, and a long one also some that is ``spare``."""
    path, status, volume, duration, ids = cells[4:]
    text = f"{ends(path, room + max(spare, 0)):<{min(room, LONG)}} {status:>4} {volume:>9} {duration:>8}"
    return "  ".join(filter(None, [text, ids, *notes]))


def _path_last(cells: Sequence[str], notes: Sequence[str], width: int) -> str:
    """An exchange whose path is its last column: one that is cut or long leaves the others where they are."""
    path, status, volume, duration, ids = cells[4:]
    head = f"{_head(cells)} {status:>4} {volume:>9} {duration:>8}  "
    return head + "  ".join(filter(None, [_beside(path, ids, width - len(head), notes), ids, *notes]))


def _beside(path: str, ids: str, room: int, notes: Sequence[str]) -> str:
    """A path with the room that the findings behind it leave; these stand at the right edge, unless notes follow."""
    room -= len(ids) + 2 if ids else 0
    return ends(path, room).ljust(room if ids and not notes else 0)


def _in_brief(cells: Sequence[str], notes: Sequence[str], width: int) -> str:
    """An exchange in one line without its phase and size, its path last; empty if a terminal is too narrow for that."""
    time, who, _, method, path, status, _, duration, ids = cells
    head = f"{time[:8]}  {beginning(who, NAME):<{NAME}} {status:>6} {duration:>8}  {method:<4} "
    room = width - len(head)
    if room < PATH + NOTES:
        return ""
    most = room - PATH - 2
    shown = ids if len(ids) <= most else f"{ids[: most - 1].rpartition(' ')[0]} …"
    path = _beside(path, shown, room, notes)
    return beginning(head + "  ".join(filter(None, [path, shown, *notes])), width)


def asides(brief: Brief) -> list[str]:
    """What was unusual when an exchange was passed on, or in a handshake."""
    notes = [injection(brief.injected)] if brief.injected else []
    if brief.kind == "exchange" and brief.status is None:
        notes.append(f"no answer: {_free(brief.reason or 'unknown reason')}")
    if brief.withheld:
        notes.append(f"answered by the proxy: {clean(brief.withheld)}")
    if brief.identity_missing:
        notes.append(f"sent without the agent's identity: {clean(brief.identity_missing)}")
    if brief.stripped:
        notes.append(f"removed before forwarding: {clean(', '.join(brief.stripped))}")
    return notes + _doubts(brief)


def injection(injected: str) -> str:
    """Words for a fault that was injected."""
    return f"injected on purpose: {clean(injected)}"


def _doubts(brief: Brief) -> list[str]:
    return [f"not analyzed: {clean(brief.unanalyzed)}"] if brief.unanalyzed else []


def unanalyzed(seq: int, reason: str) -> str:
    """Return the sentence that a record was not analyzed."""
    return f"record {seq} was not analyzed: {clean(reason)}"


def handshake(record: Handshake) -> str:
    """A failed handshake in one sentence."""
    return refusal(record.reason, record.alert, record.alert_by)


def refusal(reason: str, alert: str | None, by: Party | None) -> str:
    """Why a TLS handshake failed, in one sentence."""
    who = {"agent": "the agent", "proxy": "the proxy", "master": "the master", None: "an unknown sender"}[by]
    return _free(reason) + (f" (alert {clean(alert)} from {who})" if alert else "")


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


def which(run: RunBrief) -> str:
    """Return the name of a run: its number, or whose requests they are if they belong to no run."""
    return f"run {run.number}" if run.number else f"requests by {clean(run.tool)}" if run.tool else "other requests"


def head(run: RunBrief) -> str:
    """The line above the first record of a run."""
    return f"-- {which(run)} of {agent(run)}: {run.ending}"


def summary(run: RunSnapshot) -> str:
    """A run in one line: agent, outcome, duration, phases, findings."""
    name = agent(run)
    phases = " ".join(f"{span.phase} {span.exchanges}" for span in run.spans)
    ids = " ".join(finding.rule for finding in sorted(run.findings, key=lambda finding: -finding.severity.rank))
    deviations = f"; {counts(run.findings)}: {ids}" if run.findings else ""
    version = f" ({clean(run.agent_version)})" if run.agent_version else ""
    cut = run.ending == RunState.CUT_OFF
    how = f"{'under way when the recording ended, after' if cut else f'{run.ending} in'} {seconds(run.duration)}"
    return f"== run {run.number or '?'} of {name}{version}: {how}; {phases}{deviations}"


def under_way(each: UnderWay[RunSnapshot], now: float) -> str:
    """What an agent does, as one line of plain text between those of records."""
    return f"{clock(now)}  {agent(each.run) if each.run else clean(each.name):<20} ... {each.words}"


def going_on(found: Judgement, chosen: Collection[int] | None = None, most: int | None = None) -> list[str]:
    """What agents do, or did when the recording ended, in lines; ``chosen`` are the runs of which it is said."""
    lines = []
    for heading, every in (("under way:", found.under_way), ("under way when the recording ended:", found.cut_off)):
        listed = [str(each) for each in every if chosen is None or (each.run and each.run.number in chosen)]
        lines += [heading, *(f"  {line}" for line in listed[:most])] if listed else []
        if most is not None and len(listed) > most:
            lines.append(f"  ... and {len(listed) - most} more")
    return lines


def shown(found: Finding) -> str:
    """A finding as one line of plain text below the record that shows it."""
    return f"  {found.severity.upper()} {found.rule} {rule_of(found.rule).title}: {clean(found.message)}"


RUN_COLUMNS = ("run", "began", "agent", "version", "environment", "outcome", "time", "phases", "findings")


def run_row(run: RunSnapshot) -> tuple[str, ...]:
    """A run's cells for ``RUN_COLUMNS``."""
    return (
        str(run.number),
        clock(run.started)[:8],
        agent(run) + (f" ({clean(run.tool)})" if run.tool else ""),
        clean(run.agent_version or "-"),
        clean(run.environment or "-"),
        run.ending,
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


class Block(NamedTuple):
    """Lines of which the first begins with a heading."""

    lines: list[str]
    marked: str = ""
    """The heading with which the first line begins."""
    severity: Severity | None = None
    """Its severity."""


def verdict(run: RunBrief, width: int | None = None, where: str = "", *, times: str = "", past: str = "") -> Block:
    """A run's verdict, which it must have; ``where`` names the capture."""
    assert run.verdict is not None  # noqa: S101 - see above
    over = run.over_since()
    marked = f"{where}run {run.number}{times}{f', over since {over}' if over else ''}:"
    severity = None if over else run.verdict.severity or Severity.ERROR
    return Block(flowing(f"{marked} {run.verdict.message}{past}", width), marked, severity)


def meaning(run: RunBrief, width: int | None = None) -> list[str]:
    """What the printed message behind a run's cause means, in lines; none if that is not known."""
    return wrapped("  means: ", run.meaning, width or PLAIN) if run.meaning else []


class Labelled(NamedTuple):
    """A text, or the steps of a fix, behind a label."""

    label: str
    """With the spaces before and behind it."""
    content: str | Fix

    def lines(self, width: int = PLAIN) -> list[str]:
        """Return its lines for a console of some width; the steps of a fix are numbered. A command is never broken: one
        that has no room behind the label begins further left."""
        label, content = self
        if isinstance(content, str):
            return wrapped(label, content, width)
        below = " " * len(label)
        steps = fixes.lines(content, width - len(label))
        lines = [f"{below if at else label}{clean(line)}" for at, line in enumerate(steps)]
        return [line if len(line) <= width else f"  {line.lstrip()}" for line in lines]


def finding(
    found: Finding,
    run: RunBrief,
    where: str = "",
    *,
    brief: bool = False,
    width: int | None = None,
    fixed: str = "",
) -> list[str]:
    """A finding with its evidence, and unless ``brief`` its explanation and fix.

    ``where`` says which capture the run is in, if there are several; ``width`` is that of the terminal; ``fixed`` names
    the run for which the fix was printed already.
    """
    over = run.over_since(found.rule)
    head, place = stated(found, run, where)
    lines = [*flowing(head, width), *flowing(f"{place}{f'; over since {over}' if over else ''}", width)]
    if brief and run.cause and found.rule in run.symptoms:
        lines.append(f"  why:    it follows from {run.cause}")
    for part in () if brief else explained(found, run):
        if over and not isinstance(part.content, str):
            continue  # its verdict names it
        if fixed and not isinstance(part.content, str):
            lines += flowing(f"{part.label}above, for {clean(fixed)}", width)
        else:
            lines += part.lines(width or PLAIN)
    return [*lines, ""]


def stated(found: Finding, run: RunBrief, where: str = "") -> tuple[str, str]:
    """Return what was found and where: two lines, of any length."""
    evidence = numbers(found.seqs) if found.seqs else "the whole run"
    return (
        f"{found.severity.upper()} {found.rule} {rule_of(found.rule).title}: {clean(found.message)}",
        f"  {clean(where)}{which(run)} of {agent(run)}; evidence: {evidence}",
    )


def explained(found: Finding, run: RunBrief) -> tuple[Labelled, Labelled, Labelled]:
    """Return why it was found, its fix and the source of its rule."""
    rule = rule_of(found.rule)
    return (
        Labelled("  why:    ", run.explanation_of(found.rule)),
        Labelled("  fix:    ", run.fix_for(found.rule)),
        Labelled("  source: ", rule.source),
    )


def past_fix(rule: str) -> str:
    """A line that names the fix of what is over: its commands may harm a node that is well again."""
    return f"  fix at the time: `{installation.typed('explain', rule)}`"


class FixLines:
    """Fixes as lines of text, one below the other; the same one is printed once."""

    def __init__(self, width: int | None = None) -> None:
        self._width = width or PLAIN
        self._printed: dict[Fix, str] = {}

    def of(self, fix: Fix, where: str, label: str = "fix") -> list[str]:
        """The lines of a fix; ``where`` names the run that it is for."""
        known = self._printed.setdefault(fix, where)
        return Labelled(f"  {label}: ", fix).lines(self._width) if known == where else [f"  {label}: as for {known}"]

    def where(self, fix: Fix) -> str:
        """The run for which a fix was printed; empty if it was not."""
        return self._printed.get(fix, "")


_COMMAND = regex.compile(r"`[^`]*`|\bdocs/\S+")


def quoted(whole: str | None, width: int | None = None) -> list[str]:
    """A whole message (``whole_message``) in lines of their own; none without one."""
    if not whole:
        return []
    return ["  message:", *(part for line in whole.split("\n") for part in flowing(f"    {line}", width, 2))]


def flowing(text: str, width: int | None, below: int = 4) -> list[str]:
    """A line, wrapped to a width if there is one, and then indented below its beginning."""
    if width is None or len(text) <= width:
        return [text]
    margin = text[: len(text) - len(text.lstrip())]
    return wrapped(margin, text.lstrip(), width, margin + " " * below)


def wrapped(label: str, text: str, width: int = PLAIN, below: str | None = None) -> list[str]:
    """Text wrapped behind a label. A command in backticks or a page of docs/ is never broken, so that it can be
    copied."""
    below = " " * len(label) if below is None else below
    whole = _COMMAND.sub(lambda found: found[0].replace(" ", "\0").replace("-", "\1"), text)
    lines = textwrap.wrap(
        whole, width, initial_indent=label, subsequent_indent=below, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    return [line.replace("\0", " ").replace("\1", "-") for line in lines] or [label]
