"""Times of two runs, and which differences are noise."""

from __future__ import annotations

import pytest

from inspector.compare import times
from inspector.compare.documents import RequestMade
from inspector.model import Phase
from inspector.runs.snapshot import RunSnapshot, Span


def run(duration: float, catalog: float | None = None) -> RunSnapshot:
    spans = () if catalog is None else (Span(Phase.CATALOG, 1, catalog),)
    return RunSnapshot(number=1, duration=duration, spans=spans)


def test_two_runs_alone() -> None:
    rows: list[tuple[float, float, str]] = [
        (0.001, 0.049, "less than 50 ms apart"),
        (1.0, 1.9, "less than 2 times, of one run each"),
        (1.0, 2.1, ""),
        (2.1, 1.0, ""),
        (0.0, 1.0, ""),
    ]
    for before, after, noise in rows:
        (whole,) = times.phases(run(before), run(after))
        assert whole.noise == noise, before
        assert whole.difference == pytest.approx(after - before), before


def test_beside_other_runs() -> None:
    others = [run(1.0), run(1.2), run(3.0), run(1.1)]
    (usual,) = times.phases(run(1.0), run(2.9), others)
    assert (usual.noise, usual.usual) == ("usual in 4 other runs", (1.0, 3.0))
    (slow,) = times.phases(run(2.9), run(3.2), others)
    assert slow.noise == ""
    (unknown,) = times.phases(run(2.9), run(3.2), others[:3])
    assert unknown.noise == "less than 2 times, of one run each"


def test_a_phase_that_one_run_has() -> None:
    _, phase = times.phases(run(1.0, 0.5), run(1.0))
    assert (phase.kind, phase.what, phase.noise) == ("phase", "catalog", "in one of the runs only")


def test_requests() -> None:
    def made(key: str, duration: float) -> RequestMade:
        return RequestMade(1, Phase.FILES, None, "file", key, "GET", 200, "", duration)

    before = [made("same", 1.0), made("slow", 1.0), made("slow", 0.1), made("fast", 1.0), made("gone", 9.0)]
    after = [made("same", 1.1), made("slow", 5.0), made("fast", 0.2), made("new", 9.0)]
    found = times.requests(before, after)
    assert [(time.what, time.ratio) for time in found] == [("file slow", 5.0), ("file fast", 0.2)]
    many = [made(str(n), 1.0) for n in range(50)]
    assert len(times.requests(many, [made(str(n), 3.0 + n) for n in range(50)])) == times.REQUESTS
