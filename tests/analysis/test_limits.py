"""A record whose analysis fails or takes too long costs nothing but itself."""

from __future__ import annotations

import gc
import threading
import time
from typing import TYPE_CHECKING

import pytest

from inspector.analysis import analyzer, limits
from inspector.analysis.analyzer import Analyzer
from inspector.protocol import decode
from inspector.protocol import documents as d
from inspector.runs.examples import catalog, content, report, talk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def armed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for record in talk(catalog(), report()):
        Analyzer().feed(record)  # the first one takes longer: rules are imported
    monkeypatch.setattr(limits, "SECONDS", 0.1)
    limits.arm()
    gc.disable()  # what other tests left would be counted
    yield
    gc.enable()
    limits._net.thread = None


def forever(*_: object, **__: object) -> None:
    while True:
        time.time()


def raises(*_: object) -> None:
    raise RuntimeError("oh")


def poison(monkeypatch: pytest.MonkeyPatch, part: str, deed: Callable[..., None]) -> None:
    """Break a part of the analysis of catalogs."""
    if part == "decoding":
        answer = decode.answer

        def decoder(*given: object) -> d.Document:
            if "catalog" in getattr(given[1], "target", ""):
                deed()
            return answer(*given)  # type: ignore[arg-type]

        monkeypatch.setattr(decode, "answer", decoder)
        return
    method = getattr(Analyzer, part)

    def poisoned(self: Analyzer, step: analyzer.Step) -> None:
        method(self, step)
        if step.exchange and "catalog" in step.exchange.request.target:
            deed()

    monkeypatch.setattr(Analyzer, part, poisoned)


@pytest.mark.parametrize("part", ["decoding", "_read", "_place", "_apply"])
@pytest.mark.parametrize(
    ("deed", "reasons"),
    [
        (forever, {"it took more than 0.1 s of CPU time"}),
        (raises, {"decoding failed (RuntimeError)", "internal error (RuntimeError)"}),
    ],
    ids=["endless", "raises"],
)
@pytest.mark.usefixtures("armed")
def test_one_record_costs_only_itself(
    part: str, deed: Callable[..., None], reasons: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(monkeypatch, part, deed)
    made = Analyzer()
    steps = [made.feed(record) for record in talk(catalog(), content("a", b"x"), report())]
    (run,) = made.finish()
    assert [bool(step.unanalyzed) for step in steps] == [True, False, False]
    assert steps[0].unanalyzed in reasons
    assert made.unanalyzed == {1: steps[0].unanalyzed}
    assert list(run.seqs) == [1, 2, 3], "it still belongs to its run"
    assert all(step.run is run for step in steps)


def test_a_record_that_was_left_out_is_marked() -> None:
    made = Analyzer()
    (record,) = talk(catalog())
    step = made.leave_out(record, "it was poisonous")
    assert (step.record, step.run, step.unanalyzed) == (record, None, "it was poisonous")
    assert made.unanalyzed == {record.seq: "it was poisonous"}


@pytest.mark.usefixtures("armed")
def test_a_rule_about_a_whole_run_does_not_last_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Analyzer()
    for record in talk(catalog(), report()):
        made.feed(record)
    monkeypatch.setattr(Analyzer, "_judge", forever)
    (run,) = made.runs
    assert made.judge(run) == []
    assert made.finish() == [run]


@pytest.mark.usefixtures("armed")
def test_only_the_main_thread_is_limited() -> None:
    """A signal can reach no other one."""
    ends: list[bool] = []

    def work() -> None:
        limits.begin(0.01)
        until = time.thread_time() + 0.1
        while time.thread_time() < until:
            pass
        limits.end()
        ends.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert ends == [True]


@pytest.mark.usefixtures("armed")
def test_after_the_end_nothing_is_raised() -> None:
    limits.begin(0.02)
    limits.end()
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
