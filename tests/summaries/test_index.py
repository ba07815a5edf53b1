"""The derived index says what the analysis of the whole capture says, however often it was begun."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import sqlite3
import stat
import subprocess
from typing import TYPE_CHECKING

import msgspec
import pytest

from inspector import installation
from inspector.analysis.analyzer import Analyzer, retrace
from inspector.capture.store import Capture
from inspector.errors import CaptureError
from inspector.model import Gap
from inspector.summaries import conclusions, index, indexer, listing, wording
from tests.support.briefs import all_briefs, verdict_of
from tests.support.captures import save
from tests.support.conversations import START, Agent, runs_of, together
from tests.support.recorded import SAMPLES, records_of

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.model import Record


def made(capture: Path) -> index.Index:
    indexer.build(capture, index.place(capture))
    found = index.Index.open(index.place(capture))
    assert found is not None
    return found


def conversation() -> list[Record]:
    healthy = Agent("a.example", "192.0.2.1", version="7.23.0").run()
    refused = Agent("c.example", "192.0.2.3", time=START + 200).refused("revoked", own=True)
    return [*together(healthy, refused), Gap(START + 300, "the disk is full", 2, seq=20)]


def index_lines(capture: Path) -> tuple[list[str], list[str]]:
    """What the index says of runs and of records."""
    with contextlib.closing(made(capture)) as found:
        runs = sorted((run for run in found.runs().values() if run), key=lambda run: run.brief.number)
        of = {seq: run.brief for run in runs for seq in run.seqs}
        signs: dict[int, set[str]] = {}
        for run in runs:
            for finding in run.brief.findings:
                for seq in finding.seqs:
                    signs.setdefault(seq, set()).add(finding.rule)
        lines = []
        for brief in all_briefs(found):
            brief.signs = ()
            lines.append(f"{brief.seq} {wording.line(brief, of.get(brief.seq))} {sorted(signs.get(brief.seq, ()))}")
        return [f"{wording.run_row(run.brief)} {run.brief.verdict} {list(run.seqs)}" for run in runs], lines


def analysed(capture: Path) -> tuple[list[str], list[str]]:
    """The same from the records themselves."""
    with Capture.open(capture) as records:
        found = runs_of(records.records())
    runs = [f"{wording.run_row(conclusions.of_run(run))} {verdict_of(run)} {list(run.seqs)}" for run in found]
    lines = []
    for brief, run in listing.listed(capture):
        rules = sorted({sign.rule for sign in brief.signs})
        brief.signs = ()
        lines.append(f"{brief.seq} {wording.line(brief, run)} {rules}")
    return runs, lines


@pytest.mark.slow
@pytest.mark.parametrize("name", [path.stem for path in SAMPLES])
def test_it_says_of_a_sample_what_the_analysis_says(tmp_path: Path, name: str) -> None:
    copy = tmp_path / f"{name}.sqlite"
    shutil.copy(next(path for path in SAMPLES if path.stem == name), copy)
    assert index_lines(copy) == analysed(copy)


def test_it_says_of_failed_handshakes_and_gaps_what_the_analysis_says(tmp_path: Path) -> None:
    capture = save(tmp_path / "c.sqlite", *conversation())
    runs, lines = index_lines(capture)
    assert (runs, lines) == analysed(capture)
    assert len(runs) == 2
    assert "gap: the disk is full (2 lost)" in lines[-1]


def test_it_is_brought_up_to_what_was_added(tmp_path: Path) -> None:
    records = conversation()
    capture = save(tmp_path / "c.sqlite", *records[:3])
    with contextlib.closing(made(capture)) as first:
        assert first.state().last == 3
        change = first.state().change
    save(capture, *records[3:])
    with contextlib.closing(made(capture)) as second:
        state = second.state()
        assert (state.last, state.complete, state.trouble) == (len(records), True, "")
        assert state.change > change
        assert set(second.changes(change).runs) == set(second.runs())
        assert second.changes(state.change) == ({}, {})
    assert index_lines(capture) == analysed(capture)


def test_a_capture_that_is_being_written_is_indexed_as_far_as_it_goes(tmp_path: Path) -> None:
    capture = tmp_path / "c.sqlite"
    agent = Agent("a.example", "192.0.2.1").plugins()
    with Capture.create(capture) as writer:
        for record in together(agent):
            writer.append(record)
        writer.flush()
        with contextlib.closing(made(capture)) as found:
            assert not found.state().complete
            (run,) = found.runs().values()
            assert run is not None
            assert (run.brief.closed, run.brief.outcome) == (False, "unfinished")
    with contextlib.closing(made(capture)) as found:
        assert found.state().complete
        (run,) = found.runs().values()
        assert run is not None
        assert run.brief.closed


def test_one_that_is_taken_away_is_not_written_on(tmp_path: Path) -> None:
    capture = save(tmp_path / "c.sqlite", *conversation())
    with Capture.create(capture):  # so it is not complete

        def wait() -> bool:
            index.place(capture).unlink()
            return True

        with pytest.raises(CaptureError, match="was removed"):
            indexer.build(capture, index.place(capture), wait)
        assert not index.place(capture).exists()
        assert not index.place(capture).with_name("c.sqlite.index.lock").exists()


def test_a_beginning_that_becomes_part_of_another_run_goes_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "BATCH", 1)
    sample = next(path for path in SAMPLES if path.stem == "bootstrap-waiting")
    copy = tmp_path / "c.sqlite"
    shutil.copy(sample, copy)
    assert index_lines(copy) == analysed(copy)
    with contextlib.closing(made(copy)) as found:
        assert found.state().change > 20  # a commit a record


@pytest.mark.slow
@pytest.mark.parametrize("spoil", ["maker", "digest", "file"])
def test_one_that_does_not_fit_is_made_anew(tmp_path: Path, spoil: str) -> None:
    capture = save(tmp_path / "c.sqlite", *conversation())
    made(capture).close()
    place = index.place(capture)
    if spoil == "file":
        place.write_text("no index")
    else:
        with contextlib.closing(sqlite3.connect(place)) as db:
            db.execute("UPDATE meta SET value = 'x' WHERE key = ?", (spoil,))
            db.execute("DELETE FROM run")
            db.commit()
    assert index_lines(capture) == analysed(capture)


def test_another_capture_under_the_same_name_gets_its_own(tmp_path: Path) -> None:
    capture = save(tmp_path / "c.sqlite", *conversation())
    made(capture).close()
    capture.unlink()
    save(capture, *together(Agent("z.example", "192.0.2.9").run("u-z")))
    assert index_lines(capture) == analysed(capture)


def test_what_is_damaged_is_reported_and_the_rest_is_there(tmp_path: Path) -> None:
    capture = save(tmp_path / "c.sqlite", *conversation())
    with contextlib.closing(sqlite3.connect(capture)) as db:
        db.execute("UPDATE record SET data = '{\x1b' WHERE seq = 3")
        db.commit()
    with contextlib.closing(made(capture)) as found:
        state = found.state()
        assert state.trouble.startswith("Record 3 of ")
        assert "\x1b" not in state.trouble
        assert [brief.seq for brief in all_briefs(found)] == [1, 2, *range(4, state.last + 1)]


def test_only_one_makes_it(tmp_path: Path) -> None:
    capture = save(tmp_path / "c.sqlite", *conversation())
    place = index.place(capture)
    descriptor = os.open(f"{place}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        indexer.build(capture, place)
        assert not place.exists()
    finally:
        os.close(descriptor)
    made(capture).close()


def test_nobody_else_can_read_it_and_a_link_is_not_followed(tmp_path: Path) -> None:
    capture = save(tmp_path / "c.sqlite", *conversation())
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("precious")
    index.place(capture).symlink_to(elsewhere)
    made(capture).close()
    assert elsewhere.read_text() == "precious"
    assert stat.S_IMODE(index.place(capture).stat().st_mode) == 0o600


def test_it_goes_into_the_cache_where_nothing_can_be_written_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = save(tmp_path / "c.sqlite", *conversation())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(os, "access", lambda *_: False)
    place = index.place(capture)
    assert place.parent == tmp_path / "cache" / "puppet-inspector"
    assert index_lines(capture) == analysed(capture)
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700


def test_records_share_what_they_have_in_common(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "PAGE", 2)  # a page is kept in memory once it is full
    capture = save(tmp_path / "c.sqlite", *conversation())
    with contextlib.closing(made(capture)) as found:
        every = [brief for brief in all_briefs(found) if brief.certname == "a.example"]
        assert len(every) > 5
        assert len({id(brief.certname) for brief in every}) == len({id(brief.leg) for brief in every}) == 1


def test_some_records_in_brief(tmp_path: Path) -> None:
    capture = save(tmp_path / "c.sqlite", *conversation())
    with contextlib.closing(made(capture)) as found:
        assert [brief.seq for brief in found.briefs([5, 2, 99])] == [2, 5]


@pytest.mark.parametrize("name", [path.stem for path in SAMPLES])
def test_a_run_is_the_same_when_it_is_retraced_from_its_own_records(name: str) -> None:
    records = records_of(next(path for path in SAMPLES if path.stem == name))
    analyzer = Analyzer(rules=())
    for record in records:
        analyzer.feed(record)
    for run in analyzer.finish():
        own = [record for record in records if record.seq in run.seqs]
        again = [step.run for step in retrace(own)]
        assert again[-1] is not None
        assert all(retraced is again[0] for retraced in again)
        mine, other = (
            msgspec.structs.replace(candidate.snapshot(), number=0, closed=True, cut=True)
            for candidate in (run, again[-1])
        )
        assert mine == other


def test_a_schema_that_is_not_utf_8_makes_it_anew(tmp_path: Path) -> None:
    capture = save(tmp_path / "c.sqlite", *conversation())
    made(capture).close()
    place = index.place(capture)
    place.write_bytes(place.read_bytes().replace(b"CREATE TABLE run", b"CREATE T\xe6BLE run"))
    assert index.Index.open(place) is None


def test_it_ends_when_nobody_is_left_who_would_read_it(tmp_path: Path) -> None:
    capture = save(tmp_path / "c.sqlite", *(Gap(START + n, "a gap", seq=n) for n in range(1, 3 * indexer.BATCH)))
    command = installation.command("inspector.summaries.indexer", str(capture), str(index.place(capture)))
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (0, b"")
    found = index.Index.open(index.place(capture))
    assert found is not None
    with contextlib.closing(found):
        assert found.state().last == indexer.BATCH
        assert not found.state().complete
    assert not index.place(capture).with_name("c.sqlite.index.lock").exists()
