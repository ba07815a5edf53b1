"""The logs of a master beside a capture: what is matched, what is not, and that it is said."""

from __future__ import annotations

import dataclasses
import email.utils
import gzip
import shutil
from pathlib import Path

import pytest

from inspector.errors import InspectorError
from inspector.explain.master_log.measured import NOTHING, MasterTime
from inspector.formats import master_logs
from inspector.formats.master_logs import TRIED, LogFile, MasterLogs
from inspector.model import Exchange, Identity, Leg, Request, Response
from inspector.progress import unwatched
from inspector.summaries import index, indexer
from tests.support import places
from tests.support.captures import save
from tests.support.master_logs import PATTERNS, access_line, answered, server_line, write
from tests.support.recorded import records_of

SAMPLE = places.SAMPLES / "first-run.sqlite"
REQUESTS = answered(records_of(SAMPLE))
CATALOG = next(exchange for exchange in REQUESTS if "/catalog/" in exchange.request.target)
NAME = CATALOG.request.path.rpartition("/")[2]
ALL = f"Access log: {len(REQUESTS)} of {len(REQUESTS)} requests found in it"


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return Path(shutil.copy(SAMPLE, tmp_path / "capture.sqlite"))


def access(tmp_path: Path, *lines: str) -> MasterLogs:
    return MasterLogs([write(tmp_path / "access.log", lines)])


@pytest.mark.parametrize("zone", [0, -5])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern_is_matched(pattern: str, zone: int, capture: Path, tmp_path: Path) -> None:
    lines = [access_line(one, pattern=pattern, zone=zone) for one in REQUESTS]
    times = master_logs.read(capture, access(tmp_path, *lines))
    assert times.notes[0].startswith(ALL)
    assert set(times.by_record) == {one.seq for one in REQUESTS}
    known = pattern in ("puppetserver 7", "with more")
    assert all((time.worked is not None) == known for time in times.by_record.values())
    expected = {
        "common": f"{len(REQUESTS)} lines of the access log without %D: nothing about time.",
        "puppetserver 7": None, "with more": None,
    }  # fmt: skip
    note = expected.get(
        pattern, "The access log has no jruby.borrow-time: what was queue and what was work is not known."
    )
    assert list(times.notes[1:]) == [note] * (note is not None)


def test_the_queue_and_the_compiler_are_told_apart(capture: Path, tmp_path: Path) -> None:
    logs = MasterLogs(
        [write(tmp_path / "access.log", [access_line(one, queue=0.2 * (one is CATALOG)) for one in REQUESTS])],
        [write(tmp_path / "puppetserver.log", [
            server_line(CATALOG.ended - 9, "Puppet settings initialized"),
            "  a message goes on",
            server_line(CATALOG.ended - 0.01, f"Compiled catalog for {NAME} in environment production in 0.15 seconds"),
        ])],
    )  # fmt: skip
    times = master_logs.read(capture, logs)
    assert "Server log: 1 of 1 catalog found in it." in times.notes
    found = times.by_record[CATALOG.seq]
    assert found.compiled == 0.15
    assert (found.took or 0) - (found.worked or 0) == pytest.approx(0.2, abs=0.002)
    runs = dict(master_logs.run_times(capture, times))
    split = runs[1].records[CATALOG.seq]
    assert split.queue == pytest.approx(0.2, abs=0.01)
    assert split.compile == pytest.approx(0.15)
    assert split.waiting == 0
    # Without a server log, what a catalog holds a JRuby for is compiling.
    only = master_logs.read(capture, MasterLogs(logs.access)).by_record[CATALOG.seq]
    assert only.compiled == only.worked


def test_an_index_gives_the_same(capture: Path, tmp_path: Path) -> None:
    times = master_logs.read(capture, access(tmp_path, *(access_line(one) for one in REQUESTS)))
    before = dict(master_logs.run_times(capture, times))
    indexer.build(capture, index.place(capture))
    assert dict(master_logs.run_times(capture, times)) == before
    assert sum(len(run.records) for run in before.values()) == len(records_of(SAMPLE))


def test_lines_of_others_and_requests_without_a_line_are_counted(capture: Path, tmp_path: Path) -> None:
    others = [access_line(dataclasses.replace(one, request=dataclasses.replace(one.request, target="/other")))
              for one in REQUESTS[:3]]  # fmt: skip
    lines = [access_line(one) for one in REQUESTS if one is not CATALOG]
    times = master_logs.read(capture, access(tmp_path, *others, *lines, "garbage"))
    number = len(REQUESTS)
    assert times.notes == (
        f"Access log: {number - 1} of {number} requests found in it.",
        "1 request without a line in the access log.",
        "3 lines of the access log about requests that were not recorded.",
    )
    assert times.file_notes == (f"1 line of access.log in no known pattern, the first is line {len(others) + number}.",)
    assert times.get(CATALOG.seq) is None


def test_a_log_of_another_day_is_a_mistake(capture: Path, tmp_path: Path) -> None:
    logs = access(tmp_path, *(access_line(one, ahead=-86400) for one in REQUESTS))
    with pytest.raises(InspectorError, match=r"No line of .*access\.log is about a request of .*the lines are of"):
        master_logs.read(capture, logs)
    # Beside one that is of that day, it is none.
    good = write(tmp_path / "good.log", (access_line(one) for one in REQUESTS))
    times = master_logs.read(capture, MasterLogs([*logs.access, good]))
    assert times.notes == (ALL + ".",)
    assert times.file_notes == ("No line of access.log is about these requests.",)


def test_a_log_without_lines_or_of_another_kind_is_a_mistake(capture: Path, tmp_path: Path) -> None:
    with pytest.raises(InspectorError, match="There are no lines in"):
        master_logs.read(capture, access(tmp_path))
    server = write(tmp_path / "puppetserver.log", [server_line(1.0, "x")] * 3)
    with pytest.raises(InspectorError, match=r"in no known pattern: line 1, and 2 more\..*request-logging\.xml"):
        master_logs.read(capture, MasterLogs([server]))
    with pytest.raises(InspectorError, match=r"logback\.xml"):
        master_logs.read(capture, MasterLogs((), access(tmp_path, access_line(CATALOG)).access))


def test_without_logs_there_is_nothing(capture: Path) -> None:
    assert master_logs.read(capture, MasterLogs()) is NOTHING
    (run,) = [run for number, run in master_logs.run_times(capture, NOTHING) if number]
    assert run.total.queue == run.total.compile == run.total.serve == 0
    assert run.total.waiting > 0


def exchange(at: float, took: float, target: str, status: int = 200, trace: str = "") -> Exchange:
    headers = (("traceparent", trace),) if trace else ()
    return Exchange(
        Leg(f"a{at}", "agent", "192.0.2.1"),
        Request(headers, method="GET", target=target, started=at, ended=at),
        Response(status=status, started=at + took, ended=at + took),
        Leg(f"m{at}", "master", "192.0.2.9"),
    )


def test_rotated_logs_cover_a_part_each(tmp_path: Path) -> None:
    early, late = ([exchange(at + 3 * number, 0.1, f"/{number}") for number in range(4)] for at in (1e9, 1e9 + 100))
    capture = save(tmp_path / "capture.sqlite", *early, *late)
    packed = tmp_path / "access.log.gz"
    packed.write_bytes(gzip.compress("\n".join(map(access_line, early)).encode()))
    assert master_logs.read(capture, MasterLogs([packed])).notes == (
        "Access log: 4 of 8 requests found in it.", "4 requests before or after what the access log covers.",
    )  # fmt: skip
    other = write(tmp_path / "access.log", map(access_line, late))
    assert master_logs.read(capture, MasterLogs([packed, other])).notes == ("Access log: 8 of 8 requests found in it.",)


@pytest.mark.parametrize(("ahead", "dated"), [(4.3, 0), (-290.0, 0), (7200.4, 7200), (-86400.0, -86400)])
def test_a_clock_that_differs_is_taken_out_and_said(ahead: float, dated: int, tmp_path: Path) -> None:
    found = [exchange(1e9 + number, 0.1, f"/puppet/v3/node/a?{number}") for number in range(5)]
    if dated:
        found = [with_date(one, dated) for one in found]
    capture = save(tmp_path / "capture.sqlite", *found)
    times = master_logs.read(capture, access(tmp_path, *(access_line(one, ahead=ahead) for one in found)))
    assert times.notes == ("Access log: 5 of 5 requests found in it.",)
    (note,) = times.file_notes
    assert ("ahead of" if ahead > 0 else "behind") in note
    assert abs(float(note.split(" is ")[1].split(" s ")[0]) - abs(ahead)) <= 1


def test_where_the_dates_tell_the_clock_a_log_of_five_minutes_ago_is_another_ones(tmp_path: Path) -> None:
    found = [with_date(exchange(1e9 + number, 0.1, f"/puppet/v3/node/a?{number}"), 0) for number in range(5)]
    capture = save(tmp_path / "capture.sqlite", *found)
    with pytest.raises(InspectorError, match=r"may differ by 5\.0 s from what the dates of its answers show"):
        master_logs.read(capture, access(tmp_path, *(access_line(one, ahead=-60) for one in found)))


def with_date(one: Exchange, ahead: int) -> Exchange:
    """An exchange whose answer has a date, by a clock that is ahead."""
    assert one.response
    date = email.utils.formatdate(one.ended + ahead, usegmt=True)
    return dataclasses.replace(one, response=dataclasses.replace(one.response, headers=(("Date", date),)))


def test_a_request_that_was_turned_away_only_waited(tmp_path: Path) -> None:
    path = "/puppet/v3/file_metadatas/plugins"
    away = [exchange(1e9, 8.02, f"{path}?environment=production", 503), exchange(1e9 + 20, 0.01, "/status/v1/simple")]
    capture = save(tmp_path / "capture.sqlite", *away)
    line = access_line(away[0]).rpartition(" ")[0]
    logs = access(tmp_path, f"{line} -", f"{access_line(away[1]).rpartition(' ')[0]} -")
    times = master_logs.read(capture, logs)
    assert times.by_record == {1: MasterTime(8.02, 8.02, refused=True), 2: MasterTime(0.01, 0.01)}
    message = f"Error 503 on SERVER at {path}: Attempt to borrow a JRubyInstance from the pool timed out."
    server = write(tmp_path / "puppetserver.log", [server_line(1e9 + 8.01, "").replace("Puppet ", message)])
    times = master_logs.read(capture, MasterLogs((), [server]))
    assert times.by_record == {1: MasterTime(refused=True)}


def test_what_the_proxy_answered_is_not_looked_for(tmp_path: Path) -> None:
    own = dataclasses.replace(exchange(1e9, 0.1, "/x", 502), master=None, identity=Identity("none"))
    passed = exchange(1e9 + 1, 0.1, "/puppet/v3/node/a")
    capture = save(tmp_path / "capture.sqlite", own, passed)
    times = master_logs.read(capture, access(tmp_path, access_line(passed)))
    assert times.notes == ("Access log: 1 of 1 request found in it.",)


def test_a_traceparent_tells_equal_requests_apart(tmp_path: Path) -> None:
    traces = [f"00-{digit * 32}-{digit * 16}-01" for digit in "abc"]
    equal = [exchange(1e9, 0.5, "/puppet/v3/node/a", trace=trace) for trace in traces]
    capture = save(tmp_path / "capture.sqlite", *equal)
    lines = [access_line(equal[at], queue=at / 10, more=f" {traces[at]}") for at in (2, 0, 1)]
    times = master_logs.read(capture, access(tmp_path, *lines))
    assert times.notes == ("Access log: 3 of 3 requests found in it, 3 of them by their traceparent.",)
    assert [times.by_record[seq].worked for seq in (1, 2, 3)] == [0.5, 0.4, 0.3]
    plain = master_logs.read(capture, access(tmp_path, *lines[:2], access_line(equal[0])))
    assert plain.notes[0].startswith("Access log: 3 of 3 requests found in it, 2 of them by their traceparent")


def test_equal_requests_that_fit_several_lines_are_counted(tmp_path: Path) -> None:
    equal = [exchange(1e9 + at / 100, 0.5, "/puppet/v3/node/a") for at in range(2)]
    capture = save(tmp_path / "capture.sqlite", *equal, exchange(1e9, 0.1, "/b"))
    lines = [*[access_line(equal[0])] * 3, access_line(exchange(1e9, 0.1, "/b"))]
    times = master_logs.read(capture, access(tmp_path, *lines))
    assert times.notes == (
        "Access log: 1 of 3 requests found in it.",
        "2 requests without a line in the access log, of which 2 fit several lines alike.",
        "3 lines of the access log about requests that were not recorded.",
    )


# -- the lines of a log ----------------------------------------------------------------------------------------


def parse(line: str) -> tuple[float, None] | None:
    return (float(line), None) if line.strip().isdecimal() else None


def times(path: Path) -> tuple[list[float], LogFile]:
    log = LogFile(path, parse, "a number", "Look there.")
    return [time for time, _ in log.logged(unwatched)], log


@pytest.mark.parametrize("compressed", [False, True])
def test_lines_are_counted_and_those_in_no_pattern_too(tmp_path: Path, *, compressed: bool) -> None:
    path = tmp_path / "log"
    text = b"1\n2\nx\n" + b"y" * 2**21 + b"\n\xff\n3"
    path.write_bytes(gzip.compress(text) if compressed else text)
    found, log = times(path)
    assert found == [1, 2, 3]
    assert (log.lines, log.unknown, log.first_unknown) == (6, 3, 3)


def test_another_pattern_is_a_mistake_after_some_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("x\n" * (TRIED + 100) + "1\n")
    with pytest.raises(InspectorError) as raised:
        times(path)
    assert str(raised.value) == (
        f"{path} is in no known pattern: line 1, and {TRIED - 1} more. Known is a number (and older ones, "
        "docs/times.md). Look there."
    )


def test_one_line_in_another_pattern(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("x\n")
    with pytest.raises(InspectorError, match=r"is in no known pattern: line 1\. Known"):
        times(path)


def test_an_empty_file_has_no_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.touch()
    assert times(path)[0] == []


def test_what_cannot_be_read_is_a_mistake(tmp_path: Path) -> None:
    damaged = tmp_path / "log.gz"
    damaged.write_bytes(gzip.compress(b"1\n" * 10_000)[:-20])
    wrong = tmp_path / "wrong.gz"
    wrong.write_bytes(gzip.compress(b"1\n") + b"no gzip")
    for path in (damaged, wrong, tmp_path / "absent", tmp_path):
        with pytest.raises(InspectorError, match="Cannot read") as raised:
            times(path)
        assert "None" not in raised.value.message
