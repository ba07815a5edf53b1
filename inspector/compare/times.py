"""How long two runs took, by phase and by request, and which differences mean nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

type TimeKind = Literal["run", "phase", "pause", "request"]
"""What takes time: a run, a phase of it, a pause of the agent between requests, one request."""

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from inspector.compare.differences import Change
    from inspector.compare.documents import RequestMade
    from inspector.runs.snapshot import RunSnapshot

type _What = tuple[TimeKind, str]

LEAST = 0.05
"""Seconds of a difference that is never mentioned as one."""
RATIO = 2.0
"""Of two runs alone, a time that is less than so many times the other is the same."""
FEW = 4
"""Runs by which a range of times is known."""
REQUESTS = 10
"""Requests that are listed: those whose times differ most."""


class TimeCompared(NamedTuple):
    """A time of one run beside that of another."""

    kind: TimeKind
    what: str
    before: float
    after: float
    noise: str
    """Why the difference means nothing; empty: it may mean something."""
    usual: tuple[float, float] | None = None
    """The shortest and the longest time in other good runs of the agent."""

    @property
    def name(self) -> str:
        """What took the time, in words."""
        return f"{self.kind} {self.what}" if self.what else "whole run"

    @property
    def difference(self) -> float:
        """Seconds that it took longer."""
        return self.after - self.before

    @property
    def ratio(self) -> float | None:
        """The second time as a multiple of the first one; None if that was none."""
        return self.after / self.before if self.before else None


def phases(
    before: RunSnapshot, after: RunSnapshot, history: Sequence[RunSnapshot] = (), stopped: Change | None = None
) -> list[TimeCompared]:
    """Compare the times of two runs as a whole, of their phases, and of the agent's pauses. ``history`` are other good
    runs of the agent: a time within their range is usual. ``stopped`` is what a difference is that only one run has
    because the other ended early: that this one was shorter means nothing."""
    old, new = _times(before), _times(after)
    others = [_times(run) for run in history]
    found = []
    for what in {**old, **new}:
        seconds = [times[what] for times in others if what in times]
        usual = (min(seconds), max(seconds)) if len(seconds) >= FEW else None
        time = _compared(what, old.get(what), new.get(what), usual, len(seconds))
        if stopped and not time.noise and (time.difference < 0) == (stopped == "removed"):
            time = time._replace(noise="one of them ended early")
        found.append(time)
    return found


def requests(before: Iterable[RequestMade], after: Iterable[RequestMade]) -> list[TimeCompared]:
    """Compare the times of the requests that both runs made; only those that differ, the most different first."""
    old, new = _by_name(before), _by_name(after)
    compared = (_compared(("request", name), old[name], new[name]) for name in old if name in new)
    found = [time for time in compared if not time.noise]
    return sorted(found, key=lambda time: -abs(time.difference))[:REQUESTS]


def _times(run: RunSnapshot) -> dict[_What, float]:
    found: dict[_What, float] = {("run", ""): run.duration}
    found |= {("phase", str(span.phase)): span.duration for span in run.spans}
    found |= {("pause", str(wait)): pause for wait, pause in run.waits.items()}
    return found


def _by_name(requests: Iterable[RequestMade]) -> dict[str, float]:
    """The longest time of each."""
    found: dict[str, float] = {}
    for request in requests:
        found[request.name] = max(found.get(request.name, 0.0), request.duration)
    return found


def _compared(
    what: _What,
    before: float | None,
    after: float | None,
    usual: tuple[float, float] | None = None,
    runs: int = 0,
) -> TimeCompared:
    if before is None or after is None:
        return TimeCompared(*what, before or 0.0, after or 0.0, "in one of the runs only", usual)
    noise = ""
    if abs(after - before) < LEAST:
        noise = f"less than {LEAST * 1000:.0f} ms apart"
    elif usual and usual[0] <= after <= usual[1]:
        noise = f"usual in {runs} other runs"
    elif usual is None and max(before, after) < RATIO * min(before, after):
        noise = f"less than {RATIO:g} times, of one run each"
    return TimeCompared(*what, before, after, noise, usual)
