"""A record that cannot be analyzed is marked by every command, and stops none of them."""

from __future__ import annotations

import contextlib
import gc
import json
import threading
import time
from typing import TYPE_CHECKING

import pytest

from inspector.analysis import limits
from inspector.analysis.analyzer import Analyzer
from inspector.capture.store import Capture
from inspector.formats.outgoing import Outgoing
from inspector.pages import plain
from inspector.protocol import decode
from inspector.protocol import documents as d
from inspector.protocol.kinds import Kind
from inspector.runs.examples import ca, catalog, content, report, talk
from inspector.summaries import follow, index, indexer
from inspector.summaries.source import Source
from inspector.tui import timed
from tests.support.briefs import all_briefs
from tests.support.captures import save
from tests.support.json_output import valid
from tests.tui.screens import indexed, play, screen_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from textual.pilot import Pilot

    from inspector.analysis.analyzer import Step
    from inspector.model import Record
    from inspector.tui.app import Inspector
    from tests.conftest import Run

SEQ = 2
"""The poisonous record: a catalog."""


def forever() -> None:
    while True:
        time.time()


def raises() -> None:
    raise RuntimeError("oh")


@pytest.fixture(params=[pytest.param(forever, marks=pytest.mark.slow), raises], ids=["endless", "raises"])
def reason(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Why a record cannot be analyzed: a decoder that never ends, or that raises."""
    deed: Callable[[], None] = request.param
    answer = decode.answer

    def decoder(*given: object) -> d.Document:
        if "catalog" in getattr(given[1], "target", ""):
            deed()
        return answer(*given)  # type: ignore[arg-type]

    for record in talk(ca(), catalog(), report()):
        Analyzer().feed(record)  # the first one takes longer: rules are imported
    monkeypatch.setattr(decode, "answer", decoder)
    monkeypatch.setattr(limits, "SECONDS", 0.3)
    limits.arm()
    gc.disable()  # what other tests left would be counted
    yield "it took more than 0.3 s of CPU time" if deed is forever else "decoding failed (RuntimeError)"
    gc.enable()
    limits._net.thread = None


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return save(tmp_path / "c.sqlite", *talk(ca(), catalog(), content("a", b"x"), report()))


def test_runs(run: Run, path: Path, reason: str) -> None:
    status, out, err = run("runs", path)
    assert (status, err) == (0, "")
    assert f"\nrecord {SEQ} was not analyzed: {reason}\n" in out
    assert "node1.example" in out
    (one,) = valid("runs", run("runs", path, "--json")[1])
    assert one["not_analyzed"] == [SEQ]
    assert one["seqs"] == [1, 2, 3, 4]
    out = run("runs", path, "--filter", "agent:nobody")[1]
    assert f"record {SEQ} was not analyzed" in out


def test_check(run: Run, path: Path, tmp_path: Path, reason: str) -> None:
    sentence = f"record {SEQ} was not analyzed: {reason}\n"
    assert sentence in run("check", path)[1]
    found = valid("check", run("check", path, "--json")[1])
    assert found["not_analyzed"] == [{"capture": str(path), "seq": SEQ, "reason": reason}]
    for kind in ("sarif", "junit"):
        _, out, err = run("check", path, "--format", kind)
        assert "not analyzed" not in out
        assert err == sentence
    other = save(tmp_path / "other.sqlite", *talk(ca(), report(), certname="other.example"))
    out = run("check", path, other)[1]
    assert f"c.sqlite {sentence}" in out
    assert "other.sqlite record" not in out


def test_list_and_follow(run: Run, path: Path, reason: str) -> None:
    out = run("list", path)[1].splitlines()
    assert [line.endswith(f"not analyzed: {reason}") for line in out] == [False, True, False, False]
    rows = valid("list", run("list", path, "--json")[1])
    assert [row["not_analyzed"] for row in rows] == [None, reason, None, None]

    def enough() -> None:
        raise KeyboardInterrupt

    lines: list[str] = []
    with contextlib.suppress(KeyboardInterrupt):
        lines.extend(follow.follow(path, everything=True, pause=enough))
    assert sum(f"not analyzed: {reason}" in line for line in lines) == 1
    assert len(lines) >= 4


def test_show(run: Run, path: Path, reason: str) -> None:
    status, out, _ = run("show", path, SEQ)
    assert status == 0
    assert f"not analyzed: {reason}" in out
    assert "POST catalog/~" in out
    shown = valid("show", run("show", path, SEQ, "--json")[1])
    assert shown["not_analyzed"] == reason
    other = valid("show", run("show", path, 3, "--json")[1])
    assert other["not_analyzed"] is None


@pytest.mark.parametrize("kind", ["jsonl", "har", "flows"])
def test_export(run: Run, path: Path, tmp_path: Path, reason: str, kind: str) -> None:
    target = tmp_path / f"out.{kind}"
    status, out, err = run("export", path, "--format", kind, "-o", target)
    assert (status, out.partition(",")[0]) == (0, f"4 records written to {target}")
    assert f"puppet-inspector: record {SEQ} was not analyzed: {reason}.\n" in err
    text = target.read_bytes()
    if kind == "jsonl":
        records = [json.loads(line) for line in text.splitlines()]
        assert [one["not_analyzed"] for one in records if "seq" in one] == [None, reason, None, None]
    elif kind == "har":
        entries = valid("har", text.decode())["log"]["entries"]
        assert [entry["_puppet"]["not_analyzed"] for entry in entries] == [None, reason, None, None]


@pytest.mark.parametrize(
    ("deed", "reason"),
    [(forever, "it took more than 0.3 s of CPU time"), (raises, "masking it failed (RuntimeError)")],
    ids=["endless", "raises"],
)
def test_a_record_that_cannot_be_masked_is_not_exported(
    deed: Callable[[], None], reason: str, run: Run, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    masked = Outgoing.record

    def poisoned(self: Outgoing, record: Record) -> Record:
        if record.seq == SEQ:
            deed()
        return masked(self, record)

    monkeypatch.setattr(Outgoing, "record", poisoned)
    monkeypatch.setattr(limits, "SECONDS", 0.3)
    status, out, err = run("export", path)
    assert status == 0
    assert [one["seq"] for line in out.splitlines() if "seq" in (one := json.loads(line))] == [1, 3, 4]
    assert f"puppet-inspector: record {SEQ} was not exported: {reason}.\n" in err
    limits._net.thread = None


def test_doctor_and_bootstrap(run: Run, path: Path, reason: str) -> None:
    sentence = f"record {SEQ} was not analyzed: {reason}\n"
    assert sentence in run("doctor", path)[1]
    found = valid("doctor", run("doctor", path, "--json")[1])
    assert found["not_analyzed"] == [{"capture": str(path), "seq": SEQ, "reason": reason}]
    assert run("bootstrap", path)[2] == sentence


@pytest.mark.slow
def test_captures(run: Run, path: Path, reason: str) -> None:
    assert reason
    assert "  1 not analyzed\n" in run("captures", path.parent)[1]
    (entry,) = valid("captures", run("captures", path.parent, "--json")[1])
    assert (entry["not_analyzed"], entry["records"], entry["trouble"]) == (1, 4, None)


def test_the_index_and_the_terminal_inspector(path: Path, reason: str) -> None:
    indexer.build(path, index.place(path))
    found = index.Index.open(index.place(path))
    assert found
    with contextlib.closing(found):
        briefs = all_briefs(found)
        assert found.state().complete
        assert found.unanalyzed() == {SEQ: reason}
    assert [brief.unanalyzed for brief in briefs] == ["", reason, "", ""]
    assert timed.marks(briefs[1]).plain.endswith(f"not analyzed: {reason}")


def test_the_terminal_inspector_shows_the_rest(path: Path, reason: str) -> None:
    """It reads records in threads, which no signal reaches: what did not end before is not tried again."""
    indexer.build(path, index.place(path))
    steps: list[Step | None] = []

    def read() -> None:
        with Source(path) as source:
            steps.extend([source.step(SEQ), *source.steps(1)])

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(60)
    assert [step and step.unanalyzed for step in steps] == [reason, "", reason, "", ""]
    step = steps[0]
    assert step
    assert step.match
    assert step.match.endpoint.kind is Kind.CATALOG
    assert step.response == d.Undecodable(f"not analyzed: {reason}")
    shown = "\n".join(plain.lines(step, None))
    assert f"not analyzed: {reason}" in shown


def test_the_terminal_inspector_says_so(path: Path, reason: str) -> None:
    assert reason

    async def act(_pilot: Pilot[None], app: Inspector) -> None:
        assert "1 record was not analyzed" in screen_text(app)

    play(indexed(path), act)


def test_nothing_of_it_is_in_the_capture(run: Run, path: Path, reason: str) -> None:
    before = path.read_bytes()
    run("runs", path)
    run("check", path)
    assert path.read_bytes() == before
    assert reason.encode() not in before
    with Capture.open(path) as capture:
        assert capture.last == 4
