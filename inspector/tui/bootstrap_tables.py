"""Columns and texts of the bootstrap screen. The words come from ``bootstrap_text``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from inspector.explain import bootstrap_text
from inspector.explain.bootstrap import Condition
from inspector.explain.bootstrap_requests import BootstrapState
from inspector.explain.trust_chain import refusal_at, refusal_of
from inspector.model import Severity
from inspector.pages import palette
from inspector.text import clean, utc_second
from inspector.tui.columns import Column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from inspector.explain.bootstrap import AgentBootstrap, BootstrapStep, KeySighting

_BAD = palette.SEVERITIES[Severity.ERROR]
_GOOD = palette.OUTCOMES["complete"]
_DOUBTFUL = palette.SEVERITIES[Severity.WARNING]
_STYLES = {Condition.SOUND: _GOOD, Condition.WAITING: _DOUBTFUL, Condition.BROKEN: _BAD, Condition.UNKNOWN: ""}
_LETTERS = ("cyan", _BAD, _DOUBTFUL, "magenta")

DIGITS = 16
"""Hex digits of a key and of a fingerprint that always fit."""


def _when(time: float, width: int) -> str:
    """A date and time, without the year if there is no room for it."""
    found = utc_second(time)
    return found if len(found) <= width else found[len("2026-") :]


def _rung(step: BootstrapStep, width: int) -> Text:
    """A step of the ladder: the request as an arrow to the master, and its answers; in few words, if not all fit."""
    refused = step.state is BootstrapState.TLS
    arrow = f"─ {bootstrap_text.asked(step)} ".ljust(16, "─") + ("✗" if refused else "▶")
    text = Text(arrow, style=_BAD if refused else "")
    answer = refusal_at(step).breaks if refused else bootstrap_text.answered(step)
    if step.answers and len(text) + 1 + len(answer) > width:
        answer = _in_few_words(step, width - len(text) - 1)
    return text.append(f" {clean(answer)}", style=_STYLES[step.condition])


def _in_few_words(step: BootstrapStep, width: int) -> str:
    """The answers as far as they fit: all statuses with the last one's words, the statuses, the last answer."""
    *earlier, last = step.answers
    statuses = [answer.partition(" ")[0] for answer in earlier]
    shorter = (", ".join([*statuses, last]), ", ".join([*statuses, last.partition(" ")[0]]))
    return next((each for each in shorter if len(each) <= width), last if len(earlier) != 1 else shorter[0])


def _repeated(step: BootstrapStep, width: int) -> str:
    """How often; as far as it fits also for how long, and at what interval."""
    text = bootstrap_text.repeated(step)
    shorter = (text, text.partition(",")[0], text.partition(" over ")[0])
    return next((each for each in shorter if len(each) <= width), shorter[-1])


def _why(agent: AgentBootstrap) -> str:
    """Why it is stuck, in few words where there are such."""
    refusal = refusal_of(agent)
    return clean(f"{refusal.breaks}, by the {refusal.by}" if refusal else agent.stuck.why if agent.stuck else "")


AGENTS: tuple[Column[AgentBootstrap], ...] = (
    Column("agent", lambda agent, _: clean(agent.certname), 16, 1, sort=lambda agent: agent.certname),
    Column(
        "stops at",
        lambda agent, _: Text(str(agent.stuck.state), style=_BAD) if agent.stuck else "-",
        11,
        sort=lambda agent: agent.stuck is None,
    ),
    Column("why", lambda agent, _: _why(agent), 20, 4, least=45),
    Column(
        "since (UTC)",
        lambda agent, width: _when(agent.stuck.since, width) if agent.stuck else "",
        14,
        sort=lambda agent: agent.stuck.since if agent.stuck else 0.0,
        least=60,
    ),
)


def step_columns(*, narrow: bool) -> tuple[Column[BootstrapStep], ...]:
    """The columns of the steps; where the terminal is narrow, the answers have the room of the year."""
    return (
        Column("run", lambda step, _: str(step.run or "-"), 5, right=True),
        Column("when (UTC)", lambda step, width: _when(step.began, width), 14 if narrow else 19),
        Column("agent state", lambda step, _: step.agent_state or "-", 15, least=100),
        Column("agent to master", _rung, 24, 9),
        Column("repeated", _repeated, 14, 6),
        Column("verified", lambda step, _: _trusted(step), 10),
        Column("facts", lambda step, _: clean("  ".join(_facts(step))), 30, 3, least=130),
    )


def _trusted(step: BootstrapStep) -> Text:
    verified = {True: "yes", False: "NO", None: "unknown"}[step.verified] if bootstrap_text.trusted(step) else "-"
    return Text(verified, style=_BAD if step.verified is False else "")


def _facts(step: BootstrapStep) -> Iterable[str]:
    return (f"{name} {bootstrap_text.brief(name, value)}" for name, value in step.facts)


def key_columns(bootstrap: Callable[[], AgentBootstrap | None]) -> tuple[Column[KeySighting], ...]:
    """The columns of the keys of the agent that is shown; equal keys have the same letter."""
    return (
        Column("id", lambda key, _: _letter(key, bootstrap()), 4),
        Column("where", lambda key, _: bootstrap_text.KINDS[key.kind], 28),
        Column("key (SHA-256)", lambda key, _: key.key, DIGITS + 1, 1),
        Column("fingerprint", lambda key, width: _digits(key.fingerprint, width), DIGITS + DIGITS // 2, 1),
        Column("first (UTC)", lambda key, _: utc_second(key.first), 19, least=110),
        Column("last (UTC)", lambda key, _: utc_second(key.last), 19, least=130),
        Column("from", lambda key, _: clean(", ".join(key.addresses)), 15, least=146),
    )


def _digits(fingerprint: str, width: int) -> str:
    """A fingerprint, cut between two bytes."""
    digits = clean(fingerprint)
    return digits if len(digits) <= width else f"{digits[: (width - 1) // 3 * 3 - 1]}…"


def _letter(key: KeySighting, bootstrap: AgentBootstrap | None) -> Text:
    keys = list(dict.fromkeys(key.key for key in bootstrap.keys)) if bootstrap else []
    at = keys.index(key.key) if key.key in keys else 0
    return Text(chr(ord("A") + at % 26), style=f"bold {_LETTERS[at % len(_LETTERS)]}")


def stuck(bootstrap: AgentBootstrap | None) -> Text:
    """Where an agent is stuck; if it is not, whether the agent's state agrees with the answers."""
    if bootstrap is None:
        return Text("No agent in this capture sent a request to the CA.", style="dim")
    if bootstrap.stuck:
        return Text(clean(bootstrap_text.stuck_text(bootstrap.stuck)), style=_BAD)
    if bootstrap.now is None:
        return Text(bootstrap_text.NO_BUNDLE, style="dim")
    text = Text(clean(bootstrap_text.judged(bootstrap, bootstrap.now)), style=_BAD if bootstrap.now.problems else "")
    breaks = bootstrap_text.outlook(bootstrap)
    text.append(f", breaks on {breaks[0][0]}" if breaks and not bootstrap.now.problems else "")
    return text


def dates(bootstrap: AgentBootstrap | None) -> Text | Group:
    """The verdict now, and future dates on which something new fails, one below the other."""
    if bootstrap is None:
        return Text("")
    now, condition, ended = bootstrap.now, bootstrap_text.condition(bootstrap), _ended(bootstrap)
    style, mark = _STYLES[condition], "✗" if condition is Condition.BROKEN else "●"
    if now is None:
        unknown = Text(bootstrap_text.NO_BUNDLE, style="dim")
        return Text.assemble((f"{mark} {ended}\n", style), unknown) if ended else unknown
    judgement = _grid(1)
    judged = clean(bootstrap_text.judged(bootstrap, now))
    judged = judged.removeprefix(ended) if judged.startswith(ended) else f"; {judged}"
    words = Text.assemble((ended, style), (judged, _BAD if now.problems else ""), style="bold")
    judgement.add_row(Text(mark, style=style), words)
    days = _grid(1, 10)
    breaks = bootstrap_text.outlook(bootstrap)
    for on, problems in breaks:
        days.add_row(Text("│", style="dim"), "", "")
        for at, problem in enumerate(problems):
            first = (Text("✗", style=_DOUBTFUL), Text(on, style="bold")) if not at else (Text("│", style="dim"), "")
            days.add_row(*first, Text(clean(problem), overflow="fold"))
    parts: list[Table | Text] = [judgement, days]
    if not breaks:
        parts.append(Text("│\nno later expiry date is known", style="dim"))
    if how := bootstrap_text.limits(bootstrap):
        parts.append(Text(f"\n(assumed: {clean(how)})", style="dim"))
    return Group(*parts)


def _ended(bootstrap: AgentBootstrap) -> str:
    """How its bootstrap ended, if not well."""
    if refused := bootstrap_text.refused(bootstrap):
        return refused
    if bootstrap.stuck is None:
        return ""
    waits = bootstrap_text.condition(bootstrap) is Condition.WAITING
    return "waits for its certificate" if waits else f"stops at {bootstrap.stuck.state}"


def _grid(*widths: int) -> Table:
    """Columns of these widths and a last one that takes the remaining width; long text wraps in its own cell."""
    table = Table.grid(padding=(0, 1), expand=True)
    for width in widths:
        table.add_column(width=width)
    table.add_column(ratio=1)
    return table


def step(step: BootstrapStep | None) -> Text | Group:
    """One step with all its facts, and what could have happened."""
    text = Text()
    if step is None:
        return text
    name = f" ({step.agent_state})" if step.agent_state else ""
    answers = f": {clean(bootstrap_text.answered(step))}" if step.answers else ""
    text.append(f"{bootstrap_text.asked(step)}{name}{answers}", style="bold")
    often = bootstrap_text.repeated(step)
    text.append(f" {often}" if often else "")
    if step.run:
        text.append(f"  run {step.run}", style="dim")
    text.append(f"  {bootstrap_text.records(step.seqs)}", style="dim")
    if trusted := bootstrap_text.trusted(step):
        text.append(f"\n{trusted}", style=_BAD if step.verified is False else "")
        text.append(f": {step.risk}" if step.risk else "")
    facts = _grid(12)
    for label, value in step.facts:
        facts.add_row(Text(label, style="dim"), Text(clean(value), overflow="fold"))
    return Group(text, facts)


def key(key: KeySighting | None, bootstrap: AgentBootstrap | None) -> Text | Group:
    """What the keys of an agent show, and the selected key in full."""
    text = Text()
    if bootstrap:
        for conclusion in bootstrap.conclusions:
            text.append(
                f"{clean(conclusion)}\n", style="bold" if len({one.key for one in bootstrap.keys}) == 1 else _BAD
            )
    if key is None:
        text.append("No key was recorded." if bootstrap else "", style="dim")
        return text
    text.append(f"{bootstrap_text.KINDS[key.kind]}, {bootstrap_text.period(key)}  {bootstrap_text.records(key.seqs)}")
    full = _grid(12)
    values = {"key": key.key, "fingerprint": key.fingerprint, "from": ", ".join(key.addresses) or "-"}
    for label, value in values.items():
        full.add_row(Text(label, style="dim"), Text(clean(value), overflow="fold"))
    return Group(text, full)
