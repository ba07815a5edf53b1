"""Columns and texts of the bootstrap screen. The words come from ``bootstrap_text``."""

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
"""Hex digits of a key and of a fingerprint that always fit."""

AGENTS: tuple[Column[Ladder], ...] = (
    Column("agent", lambda agent, _: clean(agent.certname), 16, 1, sort=lambda agent: agent.certname),
    Column(
        "stops at",
        lambda agent, _: Text(str(agent.hangs.state), style=_BAD) if agent.hangs else "-",
        11,
        sort=lambda agent: agent.hangs is None,
    ),
    Column(
        "since (UTC)",
        lambda agent, _: stamp(agent.hangs.since)[:19] if agent.hangs else "",
        19,
        sort=lambda agent: agent.hangs.since if agent.hangs else 0.0,
        least=60,
    ),
)
RUNGS: tuple[Column[Rung], ...] = (
    Column("run", lambda rung, _: str(rung.run or "-"), 5, right=True),
    Column("when (UTC)", lambda rung, _: stamp(rung.began)[:19], 19),
    Column("step", lambda rung, _: bootstrap_text.asked(rung), 11),
    Column("agent state", lambda rung, _: rung.agent_state or "-", 15, least=100),
    Column("answers", lambda rung, _: clean(bootstrap_text.answered(rung)), 12, 2),
    Column("repeated", lambda rung, _: bootstrap_text.repeated(rung), 14, 1),
    Column("verified", lambda rung, _: _trusted(rung), 10),
    Column("facts", lambda rung, _: clean("  ".join(_facts(rung))), 30, 3, least=130),
)


def _trusted(rung: Rung) -> Text:
    verified = {True: "yes", False: "NO", None: "unknown"}[rung.verified] if bootstrap_text.trusted(rung) else "-"
    return Text(verified, style=_BAD if rung.verified is False else "")


def _facts(rung: Rung) -> Iterable[str]:
    return (f"{name} {bootstrap_text.brief(name, value)}" for name, value in rung.facts)


def key_columns(ladder: Callable[[], Ladder | None]) -> tuple[Column[KeySighting], ...]:
    """The columns of the keys of the agent that is shown; equal keys have the same letter."""
    return (
        Column("id", lambda key, _: _letter(key, ladder()), 4),
        Column("where", lambda key, _: bootstrap_text.KINDS[key.kind], 27),
        Column("key (SHA-256)", lambda key, _: key.key, DIGITS + 1, 1),
        Column("fingerprint", lambda key, width: _digits(key.fingerprint, width), DIGITS + DIGITS // 2, 1),
        Column("first (UTC)", lambda key, _: stamp(key.first)[:19], 19, least=110),
        Column("last (UTC)", lambda key, _: stamp(key.last)[:19], 19, least=130),
        Column("from", lambda key, _: clean(", ".join(key.addresses)), 15, least=146),
    )


def _digits(fingerprint: str, width: int) -> str:
    """A fingerprint, cut between two bytes."""
    digits = clean(fingerprint)
    return digits if len(digits) <= width else f"{digits[: (width - 1) // 3 * 3 - 1]}…"


def _letter(key: KeySighting, ladder: Ladder | None) -> Text:
    keys = list(dict.fromkeys(key.key for key in ladder.keys)) if ladder else []
    at = keys.index(key.key) if key.key in keys else 0
    return Text(chr(ord("A") + at % 26), style=f"bold {_LETTERS[at % len(_LETTERS)]}")


def hang(ladder: Ladder | None) -> Text:
    """Where an agent is stuck; if it is not, whether the agent's state agrees with the answers."""
    if ladder is None:
        return Text("No agent in this capture sent a request to the CA.", style="dim")
    if ladder.hangs:
        return Text(clean(bootstrap_text.hanging(ladder.hangs)), style=_BAD)
    if ladder.now is None:
        return Text(bootstrap_text.NO_BUNDLE, style="dim")
    text = Text(clean(bootstrap_text.judged(ladder, ladder.now)), style=_BAD if ladder.now.problems else "")
    breaks = bootstrap_text.outlook(ladder)
    text.append(f", breaks on {breaks[0][0]}" if breaks and not ladder.now.problems else "")
    return text


def dates(ladder: Ladder | None) -> Text | Group:
    """The verdict now, and future dates on which something new fails, one below the other."""
    if ladder is None:
        return Text("")
    if ladder.now is None:
        return Text(bootstrap_text.NO_BUNDLE, style="dim")
    judgement = _grid(1)
    bad = bool(ladder.now.problems)
    words = Text(clean(bootstrap_text.judged(ladder, ladder.now)), style=_BAD if bad else "bold")
    judgement.add_row(Text("●", style=_BAD if bad else _GOOD), words)
    days = _grid(1, 10)
    breaks = bootstrap_text.outlook(ladder)
    for on, problems in breaks:
        days.add_row(Text("│", style="dim"), "", "")
        for at, problem in enumerate(problems):
            first = (Text("✗", style=_DOUBTFUL), Text(on, style="bold")) if not at else (Text("│", style="dim"), "")
            days.add_row(*first, Text(clean(problem), overflow="fold"))
    parts: list[Table | Text] = [judgement, days]
    if not breaks:
        parts.append(Text("│\nno later expiry date is known", style="dim"))
    if how := bootstrap_text.limits(ladder):
        parts.append(Text(f"\n(assumed: {clean(how)})", style="dim"))
    return Group(*parts)


def _grid(*widths: int) -> Table:
    """Columns of these widths and a last one that takes the remaining width; long text wraps in its own cell."""
    table = Table.grid(padding=(0, 1), expand=True)
    for width in widths:
        table.add_column(width=width)
    table.add_column(ratio=1)
    return table


def rung(rung: Rung | None) -> Text | Group:
    """One step with all its facts, and what could have happened."""
    text = Text()
    if rung is None:
        return text
    name = f" ({rung.agent_state})" if rung.agent_state else ""
    answers = f": {clean(bootstrap_text.answered(rung))}" if rung.answers else ""
    text.append(f"{bootstrap_text.asked(rung)}{name}{answers}", style="bold")
    often = bootstrap_text.repeated(rung)
    text.append(f" {often}" if often else "")
    if rung.run:
        text.append(f"  run {rung.run}", style="dim")
    text.append(f"  {wording.numbers(rung.seqs)}", style="dim")
    if trusted := bootstrap_text.trusted(rung):
        text.append(f"\n{trusted}", style=_BAD if rung.verified is False else "")
        text.append(f": {rung.risk}" if rung.risk else "")
    facts = _grid(12)
    for label, value in rung.facts:
        facts.add_row(Text(label, style="dim"), Text(clean(value), overflow="fold"))
    return Group(text, facts)


def key(key: KeySighting | None, ladder: Ladder | None) -> Text | Group:
    """What the keys of an agent show, and the selected key in full."""
    text = Text()
    if ladder:
        for says in ladder.says:
            text.append(f"{clean(says)}\n", style="bold" if len({one.key for one in ladder.keys}) == 1 else _BAD)
    if key is None:
        text.append("No key was recorded." if ladder else "", style="dim")
        return text
    text.append(f"{bootstrap_text.KINDS[key.kind]}, {bootstrap_text.seen(key)}  {wording.numbers(key.seqs)}")
    full = _grid(12)
    values = {"key": key.key, "fingerprint": key.fingerprint, "from": ", ".join(key.addresses) or "-"}
    for label, value in values.items():
        full.add_row(Text(label, style="dim"), Text(clean(value), overflow="fold"))
    return Group(text, full)
