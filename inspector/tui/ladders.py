"""What a ladder looks like on the screen: columns and texts. The words are ``ladder_text``'s."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from inspector.explain import bootstrap_text
from inspector.explain.bootstrap import stamp
from inspector.model import Severity
from inspector.pages import palette
from inspector.summaries import wording
from inspector.text import clean
from inspector.tui.rows import Column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from inspector.explain.bootstrap import KeySighting, Ladder, Rung

_BAD = palette.SEVERITIES[Severity.ERROR]
_GOOD = palette.OUTCOMES["complete"]
_DOUBTFUL = palette.SEVERITIES[Severity.WARNING]
_LETTERS = ("cyan", _BAD, _DOUBTFUL, "magenta")

DIGITS = 16
"""Hex digits of a key and of a fingerprint that there is always room for."""

AGENTS: tuple[Column[Ladder], ...] = (
    Column("agent", lambda each, _: clean(each.certname), 16, 1, sort=lambda each: each.certname),
    Column(
        "stops at",
        lambda each, _: Text(str(each.hangs.state), style=_BAD) if each.hangs else "-",
        11,
        sort=lambda each: each.hangs is None,
    ),
    Column(
        "since (UTC)",
        lambda each, _: stamp(each.hangs.since)[:19] if each.hangs else "",
        19,
        sort=lambda each: each.hangs.since if each.hangs else 0.0,
        least=60,
    ),
)
RUNGS: tuple[Column[Rung], ...] = (
    Column("run", lambda each, _: str(each.run or "-"), 5, right=True),
    Column("when (UTC)", lambda each, _: stamp(each.began)[:19], 19),
    Column("step", lambda each, _: bootstrap_text.asked(each), 11),
    Column("agent state", lambda each, _: each.agent_state or "-", 15, least=100),
    Column("answers", lambda each, _: clean(bootstrap_text.answered(each)), 12, 2),
    Column("repeated", lambda each, _: bootstrap_text.repeated(each), 14, 1),
    Column("verified", lambda each, _: _trusted(each), 10),
    Column("facts", lambda each, _: clean("  ".join(_facts(each))), 30, 3, least=130),
)


def _trusted(rung: Rung) -> Text:
    told = {True: "yes", False: "NO", None: "unknown"}[rung.verified] if bootstrap_text.trusted(rung) else "-"
    return Text(told, style=_BAD if rung.verified is False else "")


def _facts(rung: Rung) -> Iterable[str]:
    return (f"{name} {bootstrap_text.brief(name, value)}" for name, value in rung.facts)


def key_columns(ladder: Callable[[], Ladder | None]) -> tuple[Column[KeySighting], ...]:
    """The columns of the keys of the ladder that is shown; the same key has the same letter."""
    return (
        Column("id", lambda each, _: _letter(each, ladder()), 4),
        Column("where", lambda each, _: bootstrap_text.KINDS[each.kind], 27),
        Column("key (SHA-256)", lambda each, _: each.key, DIGITS + 1, 1),
        Column("fingerprint", lambda each, width: _digits(each.fingerprint, width), DIGITS + DIGITS // 2, 1),
        Column("first (UTC)", lambda each, _: stamp(each.first)[:19], 19, least=110),
        Column("last (UTC)", lambda each, _: stamp(each.last)[:19], 19, least=130),
        Column("from", lambda each, _: clean(", ".join(each.addresses)), 15, least=146),
    )


def _digits(fingerprint: str, width: int) -> str:
    """A fingerprint, cut where a pair of digits ends."""
    told = clean(fingerprint)
    return told if len(told) <= width else f"{told[: (width - 1) // 3 * 3 - 1]}…"


def _letter(key: KeySighting, ladder: Ladder | None) -> Text:
    keys = list(dict.fromkeys(each.key for each in ladder.keys)) if ladder else []
    at = keys.index(key.key) if key.key in keys else 0
    return Text(chr(ord("A") + at % 26), style=f"bold {_LETTERS[at % len(_LETTERS)]}")


def hang(ladder: Ladder | None) -> Text:
    """Where an agent hangs; if it does not, what it says to what it was given."""
    if ladder is None:
        return Text("No agent in this capture sent a request to the CA.", style="dim")
    if ladder.hangs:
        return Text(clean(bootstrap_text.hanging(ladder.hangs)), style=_BAD)
    if ladder.now is None:
        return Text(bootstrap_text.NO_BUNDLE, style="dim")
    told = Text(clean(bootstrap_text.judged(ladder, ladder.now)), style=_BAD if ladder.now.problems else "")
    breaks = bootstrap_text.outlook(ladder)
    told.append(f", breaks on {breaks[0][0]}" if breaks and not ladder.now.problems else "")
    return told


def dates(ladder: Ladder | None) -> Text | Group:
    """The judgement now, and the days to come on which something new goes wrong, one below the other."""
    if ladder is None:
        return Text("")
    if ladder.now is None:
        return Text(bootstrap_text.NO_BUNDLE, style="dim")
    told = _grid(1)
    bad = bool(ladder.now.problems)
    words = Text(clean(bootstrap_text.judged(ladder, ladder.now)), style=_BAD if bad else "bold")
    told.add_row(Text("●", style=_BAD if bad else _GOOD), words)
    days = _grid(1, 10)
    breaks = bootstrap_text.outlook(ladder)
    for on, problems in breaks:
        days.add_row(Text("│", style="dim"), "", "")
        for at, problem in enumerate(problems):
            first = (Text("✗", style=_DOUBTFUL), Text(on, style="bold")) if not at else (Text("│", style="dim"), "")
            days.add_row(*first, Text(clean(problem), overflow="fold"))
    parts: list[Table | Text] = [told, days]
    if not breaks:
        parts.append(Text("│\nno later expiry date is known", style="dim"))
    if how := bootstrap_text.limits(ladder):
        parts.append(Text(f"\n(assumed: {clean(how)})", style="dim"))
    return Group(*parts)


def _grid(*widths: int) -> Table:
    """Columns of these widths and one that takes the rest: what does not fit goes on below itself."""
    table = Table.grid(padding=(0, 1), expand=True)
    for width in widths:
        table.add_column(width=width)
    table.add_column(ratio=1)
    return table


def rung(each: Rung | None) -> Text | Group:
    """One rung with all its facts, and what could have happened there."""
    told = Text()
    if each is None:
        return told
    name = f" ({each.agent_state})" if each.agent_state else ""
    answers = f": {clean(bootstrap_text.answered(each))}" if each.answers else ""
    told.append(f"{bootstrap_text.asked(each)}{name}{answers}", style="bold")
    often = bootstrap_text.repeated(each)
    told.append(f" {often}" if often else "")
    if each.run:
        told.append(f"  run {each.run}", style="dim")
    told.append(f"  {wording.numbers(each.seqs)}", style="dim")
    if trusted := bootstrap_text.trusted(each):
        told.append(f"\n{trusted}", style=_BAD if each.verified is False else "")
        told.append(f": {each.risk}" if each.risk else "")
    facts = _grid(12)
    for label, value in each.facts:
        facts.add_row(Text(label, style="dim"), Text(clean(value), overflow="fold"))
    return Group(told, facts)


def key(each: KeySighting | None, ladder: Ladder | None) -> Text | Group:
    """What the keys of an agent prove, and one of them in full."""
    told = Text()
    if ladder:
        for says in ladder.says:
            told.append(f"{clean(says)}\n", style="bold" if len({one.key for one in ladder.keys}) == 1 else _BAD)
    if each is None:
        told.append("No key was recorded." if ladder else "", style="dim")
        return told
    told.append(f"{bootstrap_text.KINDS[each.kind]}, {bootstrap_text.seen(each)}  {wording.numbers(each.seqs)}")
    full = _grid(12)
    values = {"key": each.key, "fingerprint": each.fingerprint, "from": ", ".join(each.addresses) or "-"}
    for label, value in values.items():
        full.add_row(Text(label, style="dim"), Text(clean(value), overflow="fold"))
    return Group(told, full)
