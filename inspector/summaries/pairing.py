"""Which two runs of a node are compared, if only captures are named."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from inspector import regex
from inspector.errors import InspectorError
from inspector.summaries.incidents import last_good, went_well
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from inspector.summaries.index import IndexedRun
    from inspector.summaries.reading import CaptureRuns
    from inspector.summaries.summary import RunBrief

LISTED = 5
"""Names that a hint lists."""


class ChosenRun(NamedTuple):
    """A run, and the capture that it is in."""

    found: CaptureRuns
    run: IndexedRun

    @property
    def brief(self) -> RunBrief:
        return self.run.brief


class Pair(NamedTuple):
    """Two runs to compare."""

    before: ChosenRun
    after: ChosenRun


def numbered(found: CaptureRuns, number: int) -> ChosenRun:
    """Return the run with a number. Raises InspectorError."""
    for run in found.runs:
        if run.brief.number == number:
            return ChosenRun(found, run)
    numbers = [run.brief.number for run in found.runs]
    hint = (
        f"It has {f'runs {numbers[0]} to {numbers[-1]}' if len(numbers) > 1 else f'run {numbers[0]}'}."
        if numbers
        else ""
    )
    raise InspectorError(f"{found.capture} has no run {number}.", f"{hint} `puppet-inspector runs` lists them.".strip())


def agents(founds: Iterable[CaptureRuns], pattern: str | None) -> list[str]:
    """Return the agents whose name matches a pattern (default: all), in the order of their first runs. Raises
    InspectorError if there is none."""
    founds = list(founds)
    names = dict.fromkeys(name for found in founds for name in found.by_agent)
    chosen = list(names)
    if pattern is not None:
        wanted = regex.glob(pattern)
        chosen = [name for name in names if wanted.fullmatch(name)]
    if not chosen:
        where = " and ".join(str(found.capture) for found in founds)
        raise InspectorError(
            f"{where} {'has' if len(founds) == 1 else 'have'} no runs of {pattern!r}." if pattern is not None else
            f"There are no runs in {where}.",
            _listing(names),
        )  # fmt: skip
    return chosen


def within(found: CaptureRuns, name: str) -> Pair:
    """Return the last failed and the last good run of an agent in a capture, or else its last two, in the order of
    time. Raises InspectorError."""
    runs = found.by_agent.get(name, [])
    failed = next((run for run in reversed(runs) if not went_well(run.brief)), None)
    good = next((run for run in reversed(runs) if went_well(run.brief)), None)
    if failed is not None and (before := last_good([run.brief for run in runs], failed.brief)):
        good = next(run for run in runs if run.brief.number == before.number)
    if failed is None or good is None:
        if len(runs) < 2:
            raise InspectorError(
                f"{found.capture} has only one run of {clean(name)}: there is nothing to compare it with.",
                "Name another run or another capture: `puppet-inspector diff A.sqlite:1 B.sqlite:2`.",
            )
        good, failed = runs[-2:]
    first, second = sorted((good, failed), key=lambda run: run.brief.started)
    return Pair(ChosenRun(found, first), ChosenRun(found, second))


def failing(found: CaptureRuns) -> list[str]:
    """Return the agents whose latest run did not go well, the latest such run first."""
    last = [runs[-1].brief for runs in found.by_agent.values()]
    failed = [run for run in last if not went_well(run)]
    return [run.name for run in sorted(failed, key=lambda run: -run.started)]


def most_failing(found: CaptureRuns) -> str:
    """Return the agent to look at first: one that has runs to compare, that fails now, that failed last. Raises
    InspectorError if there is none."""
    if not found.by_agent:
        raise InspectorError(f"There are no runs in {found.capture}.", "`puppet-inspector runs` lists runs.")
    now = failing(found)

    def order(name: str) -> tuple[bool, bool, float, float]:
        runs = [run.brief for run in found.by_agent[name]]
        last = max((run.started for run in runs if not went_well(run)), default=0.0)
        return len(runs) > 1, name in now, last, runs[-1].started

    return max(found.by_agent, key=order)


def before_of(after: ChosenRun) -> Pair:
    """Return a run with the agent's last good one before it. Raises InspectorError."""
    good = last_good([run.brief for run in after.found.runs], after.brief)
    if good is None:
        raise InspectorError(
            f"No earlier run of {clean(after.brief.name)} in {after.found.capture} went well.",
            "Name the run to compare it with: `puppet-inspector diff A.sqlite:1 A.sqlite:2`.",
        )
    return Pair(numbered(after.found, good.number), after)


def latest(found: CaptureRuns, name: str, *, good: bool = False) -> ChosenRun:
    """Return an agent's latest run in a capture; by preference a ``good`` one. Raises InspectorError."""
    runs = found.by_agent.get(name)
    if not runs:
        raise InspectorError(f"{found.capture} has no run of {clean(name)}.", _listing(found.by_agent))
    return ChosenRun(found, max(runs, key=lambda run: (good and went_well(run.brief), run.brief.started)))


def across(before: CaptureRuns, after: CaptureRuns, name: str) -> Pair:
    """Return an agent's last good run in one capture and its latest run in another. Raises InspectorError."""
    return Pair(latest(before, name, good=True), latest(after, name))


def previous(chosen: ChosenRun) -> ChosenRun | None:
    """Return the run of the same agent before one; by preference the last that went well."""
    found, brief = chosen.found, chosen.brief
    earlier = [run for run in found.by_agent.get(brief.name, ()) if run.brief.started < brief.started]
    if not earlier:
        return None
    return ChosenRun(found, max(earlier, key=lambda run: (went_well(run.brief), run.brief.started)))


def latest_first(found: CaptureRuns, names: Collection[str]) -> list[ChosenRun]:
    """Return the runs of some agents, the latest first."""
    runs = (run for name in names for run in found.by_agent.get(name, ()))
    return [ChosenRun(found, run) for run in sorted(runs, key=lambda run: -run.brief.started)]


def common(before: CaptureRuns, after: CaptureRuns, pattern: str | None) -> tuple[list[str], list[str], list[str]]:
    """Return the agents that two captures have in common, and those that only the first or the second has. Raises
    InspectorError if they have none in common."""
    names = agents([before, after], pattern)
    old, new = before.by_agent, after.by_agent
    both = [name for name in names if name in old and name in new]
    if not both:
        raise InspectorError(
            f"{before.capture} and {after.capture} have no agent in common.",
            "Name the runs to compare those of different agents: `puppet-inspector diff A.sqlite:1 B.sqlite:1`.",
        )
    return both, [name for name in names if name not in new], [name for name in names if name not in old]


def history(founds: Iterable[CaptureRuns], pair: Pair) -> list[RunBrief]:
    """Return the other good runs of the second run's agent."""
    own = {(id(chosen.found), chosen.brief.number) for chosen in pair}
    return [
        run.brief
        for found in {id(found): found for found in founds}.values()
        for run in found.by_agent.get(pair.after.brief.name, ())
        if went_well(run.brief) and (id(found), run.brief.number) not in own
    ]


def _listing(names: Collection[str]) -> str:
    listed = [clean(name) for name in islice(names, LISTED)]
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return f"It has runs of {', '.join(listed)}{more}." if listed else "`puppet-inspector captures` lists captures."
