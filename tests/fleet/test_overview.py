"""What tables show of a fleet: each number from rows whose answer is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from inspector.errors import InspectorError
from inspector.fleet import directory
from inspector.fleet.confined import TOO_LONG, ConfinedConnection
from inspector.fleet.database import DatabaseError
from inspector.fleet.directory import TableDirectory
from inspector.fleet.overview import TOP, InUse, Overview, Unsettled, fields, overview_of
from inspector.fleet.spools import Spools
from inspector.fleet.tables import CaptureRow, CertificateRow, ConnectionRow, ExchangeRow, FindingRow, ResourceEventRow
from inspector.summaries.judgement import NodeState
from tests.support.fleets import DAY, START, fleet, micros, run_row, tables_with
from tests.support.made_tables import answer

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.fleet.tables import TableRow

HOUR = 3600
NONE = "0" * 16


def of(folder: Path, *rows: TableRow, until: float = DAY) -> Overview:
    return overview_of(tables_with(folder, *rows, until=until))


@pytest.mark.slow
def test_a_node_is_what_its_latest_run_was(tmp_path: Path) -> None:
    found = of(
        tmp_path,
        run_row(1, "a", 20 * HOUR), run_row(2, "a", 23 * HOUR, "failed", cause="S01", reason="no role"),
        run_row(3, "b", 21 * HOUR, "failed"), run_row(4, "b", 23 * HOUR),
        run_row(5, "tool", 1, "failed", tool="curl/8"),
    )  # fmt: skip
    assert [(node.certname, node.state, node.now, node.runs, node.bad, node.cause) for node in found.nodes] == [
        ("a", "failed", "failing", 2, 1, "S01"), ("b", "complete", "well", 2, 1, None),
    ]  # fmt: skip
    assert (found.headline, found.standing[NodeState.FAILING]) == ("1 node failing, 1 node completed", 1)
    assert (found.states["failed"], found.states["complete"], found.runs) == (1, 1, 4)
    (cause,) = found.causes
    assert (cause.rule, cause.nodes, cause.reason, cause.names) == ("S01", 1, "no role", ("a",))


@pytest.mark.slow
def test_who_fails_before_it_shows_a_name_has_its_address_for_one_until_it_shows_one(tmp_path: Path) -> None:
    refused: dict[str, Any] = {"outcome": "refused", "cause": "B10", "reason": "the CRL has expired"}
    rows = [
        run_row(1, None, HOUR, address="192.0.2.1", **refused),  # never named
        run_row(2, None, HOUR, address="192.0.2.2", **refused), run_row(3, "b", 2 * HOUR, address="192.0.2.2"),
        # One of several behind a gateway: the others say nothing of it, but that a new name came up does.
        run_row(4, "c", 0, address="192.0.2.3"), run_row(5, "d", 0, address="192.0.2.3"),
        run_row(6, None, HOUR, address="192.0.2.3", **refused),
        run_row(7, "c", 2 * HOUR, address="192.0.2.3"), run_row(8, "d", 2 * HOUR, address="192.0.2.3"),
        run_row(9, "e", 0, address="192.0.2.4"), run_row(10, None, HOUR, address="192.0.2.4", **refused),
        run_row(11, "f", 2 * HOUR, address="192.0.2.4"),
        run_row(12, None, HOUR, address="192.0.2.5", tool="curl/8", **refused),
    ]  # fmt: skip
    found = of(tmp_path, *rows, until=3 * HOUR)
    assert {node.certname: node.state for node in found.nodes} == {
        "192.0.2.1": "refused", "192.0.2.3": "refused", "b": "complete", "c": "complete", "d": "complete",
        "e": "complete", "f": "complete",
    }  # fmt: skip
    assert [(cause.rule, cause.nodes) for cause in found.causes] == [("B10", 2)]


@pytest.mark.slow
@pytest.mark.parametrize(("pause", "silence", "state"), [(0.5, 1.4, "complete"), (0.5, 2.5, "silent"),
                                                         (4, 11, "complete"), (4, 13, "silent")])  # fmt: skip
def test_a_node_is_silent_if_three_runs_were_due(tmp_path: Path, pause: float, silence: float, state: str) -> None:
    last = DAY - silence * HOUR
    runs = [run_row(number, "a", last - (3 - number) * pause * HOUR) for number in (1, 2, 3)]
    (node,) = of(tmp_path, *runs).nodes
    assert node.state == state


@pytest.mark.slow
def test_a_clock_that_is_wrong_at_one_site_makes_no_node_of_another_silent(tmp_path: Path) -> None:
    tables = tables_with(tmp_path, *(run_row(number, "a", number * HOUR / 2) for number in range(1, 48)))
    with tables.working() as work:
        spools = Spools(work)
        spools.add(CaptureRow(capture="f" * 16, time=micros(0), last=micros(900 * DAY), name="b.sqlite"))
        spools.close()
        tables.put("f" * 16, "rome", spools, work, last=0)
    assert [node.state for node in overview_of(tables).nodes] == ["complete"]


@pytest.mark.slow
def test_a_node_of_a_site_whose_captures_are_not_there_is_not_lost(tmp_path: Path) -> None:
    tables = tables_with(tmp_path, run_row(1, "a", 0))
    for part in tables.root.glob("captures/*/*/*.parquet"):
        part.unlink()
    assert [node.state for node in overview_of(tables).nodes] == ["complete"]


@pytest.mark.slow
def test_a_node_that_failed_last_is_not_silent(tmp_path: Path) -> None:
    found = of(tmp_path, run_row(1, "a", 0), run_row(2, "a", 1800, "failed"))
    assert [node.state for node in found.nodes] == ["failed"]
    assert found.silent == ()


@pytest.mark.slow
def test_what_says_nothing_decides_nothing(tmp_path: Path) -> None:
    found = of(
        tmp_path, run_row(1, "a", HOUR, "failed", cause="S01"),
        run_row(2, "a", 2 * HOUR, "unfinished", run_state="open"),
        run_row(3, "b", HOUR, "unfinished", run_state="cut off"),
        run_row(4, "c", HOUR, "unfinished", command="puppet ssl bootstrap"),
    )  # fmt: skip
    assert [(node.certname, node.now, node.state, node.since and node.since - START) for node in found.nodes] == [
        ("a", "failing", "failed", HOUR), ("b", "open", "unfinished", None),
    ]  # fmt: skip
    assert found.headline == "1 node failing, 1 node under way, 1 of them in another run"


def test_causes_of_the_worst_state_come_first_and_each_has_a_date(tmp_path: Path) -> None:
    waiting = [run_row(number, f"w{number}", HOUR, "waiting", cause="B18") for number in (1, 2)]
    found = of(tmp_path, *waiting, run_row(3, "a", 2 * HOUR, "unfinished"), run_row(4, "b", 3 * HOUR, "unfinished"),
               run_row(5, "c", HOUR, "failed", cause="S01"))  # fmt: skip
    assert [(cause.rule, cause.nodes, cause.since - START, cause.first) for cause in found.causes] == [
        (None, 2, 2 * HOUR, "a"), ("S01", 1, HOUR, "c"), ("B18", 2, HOUR, "w1"),
    ]  # fmt: skip


def test_what_an_earlier_version_made_is_refused_in_a_sentence(tmp_path: Path) -> None:
    older = CaptureRow(capture="e" * 16, time=micros(0), last=micros(0), name="b.sqlite", version=1)
    tables = tables_with(tmp_path, run_row(1, "a", 0), older)
    for asked in (lambda: overview_of(tables), lambda: answer(tables.root, "failing", "certname")):
        with pytest.raises(InspectorError, match=r"An earlier version made these tables: .* 1 capture") as caught:
            asked()
        assert caught.value.hint == f"Convert them again: puppet-inspector tables CAPTURES -o {tables.root}"


def finding(number: int, name: str, at: float, rule: str, severity: str = "error") -> FindingRow:
    return FindingRow(capture=NONE, run=number, certname=name, time=micros(at), rule=rule, severity=severity,
                      message="m")  # fmt: skip


@pytest.mark.parametrize("value", ["'infinity'::TIMESTAMP", "NULL::TIMESTAMP"])
def test_times_that_are_none_are_refused_in_a_sentence(tmp_path: Path, value: str) -> None:
    root = tables_with(tmp_path, run_row(1, "a", HOUR), until=DAY).root
    (part,) = root.glob("runs/date=*/site=*/*.parquet")
    with duckdb.connect() as connection:
        given = f"SELECT * REPLACE ({value} AS time) FROM read_parquet('{part}', hive_partitioning=false)"
        connection.execute(f"CREATE TABLE made AS {given}")
        connection.execute(f"COPY made TO '{part}' (FORMAT parquet)")
    with pytest.raises(InspectorError, match="have values that puppet-inspector does not write there"):
        overview_of(TableDirectory.open(root))


@pytest.mark.slow
def test_tables_that_take_more_than_they_need_end_in_a_sentence(tmp_path: Path) -> None:
    """Of 100 kB, 700 MB of names; DuckDB has its own limit, and what it has read was beyond any."""
    root = tables_with(tmp_path, run_row(1, "a", HOUR)).root
    (part,) = root.glob("runs/date=*/site=*/*.parquet")
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.execute(f"CREATE TABLE made AS FROM read_parquet('{part}', hive_partitioning=false)")
        for number in range(7):
            made = (
                f"SELECT made.* REPLACE (range || repeat('x', 1000000) AS certname) FROM made, range({number * 100}, "
            )
            made += f"{number * 100 + 100})"
            connection.execute(f"COPY ({made}) TO '{part.with_stem(f'part-{number:016x}')}' (COMPRESSION zstd)")
    assert sum(part.stat().st_size for part in part.parent.iterdir()) < 1_000_000
    with pytest.raises(InspectorError, match="take more memory to read than puppet-inspector may use"):
        overview_of(TableDirectory.open(root))


def test_reading_tables_has_a_limit_of_time_that_grows_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = tables_with(tmp_path, run_row(1, "a", HOUR))
    given: list[int | None] = []

    class Slow(ConfinedConnection):
        def __init__(self, work: Path, prepare: Any, seconds: int | None = None) -> None:
            super().__init__(work, prepare, seconds)
            given.append(seconds)

        def fetchall(self) -> list[tuple[Any, ...]]:
            raise DatabaseError(TOO_LONG)

    monkeypatch.setattr(directory, "ConfinedConnection", Slow)
    monkeypatch.setattr(directory, "SECONDS_PER_MB", 1e6)
    with pytest.raises(InspectorError, match="take more computing time to read than puppet-inspector may use"):
        overview_of(tables)
    assert given == [directory.SECONDS + sum(part.stat().st_size for part in tables.root.rglob("*.parquet"))]


@pytest.mark.slow
def test_causes_and_their_runs_are_named_by_the_files_of_captures(tmp_path: Path) -> None:
    found = of(tmp_path, run_row(7, "a", HOUR, "failed", cause="S01", reason="no role", server="puppet.example"))
    assert [(cause.run, cause.first) for cause in found.causes] == [("a.sqlite:7", "a")]
    assert fields(found)["causes"][0]["fix"][-1].command == "puppet agent -t"


@pytest.mark.slow
def test_rules_say_where_they_found_something_first_and_how_often_each_day(tmp_path: Path) -> None:
    found = of(
        tmp_path, run_row(1, "a", 100), run_row(2, "b", DAY + 5), finding(1, "a", 200, "R16", "notice"),
        finding(2, "b", DAY + 6, "S01"), finding(2, "b", DAY + 7, "R16", "notice"), until=2 * DAY,
    )  # fmt: skip
    assert [(line.rule, line.severity, line.findings, line.nodes, line.node, line.days) for line in found.rules] == [
        ("S01", "error", 1, 1, "b", (0, 1)), ("R16", "notice", 2, 2, "a", (1, 1)),
    ]  # fmt: skip
    assert found.rules[1].first == START + 200
    assert [day.date for day in found.days] == ["2026-11-19", "2026-11-20"]


@pytest.mark.slow
def test_a_finding_on_a_day_on_which_no_run_began_is_on_that_day(tmp_path: Path) -> None:
    found = of(tmp_path, run_row(1, "a", DAY - 5), finding(1, "a", DAY + 5, "S01"), until=2 * DAY)
    assert [(day.date, day.runs, day.bad) for day in found.days] == [("2026-11-19", 1, 0), ("2026-11-20", 0, 0)]
    assert found.rules[0].days == (0, 1)


@pytest.mark.slow
def test_times_are_percentiles_of_completed_runs(tmp_path: Path) -> None:
    rows = [run_row(number, "a", number, compile_time=number / 10, compiler="c1") for number in range(1, 101)]
    rows.append(run_row(101, "a", 101, "failed", compile_time=1000.0, compiler="c1"))
    (times,) = (each for each in of(tmp_path, *rows).times if each.kind == "master")
    assert (times.name, times.runs, times.duration) == ("c1", 100, (10.0, 10.0, 10.0))
    assert times.compile is not None
    assert [round(value, 2) for value in times.compile] == [5.05, 9.01, 9.9]


@pytest.mark.slow
def test_masters_behind_one_name_are_told_apart_by_who_answered_for_the_catalog(tmp_path: Path) -> None:
    """Puppetserver 7.9.5 does not name itself; of several requests for a catalog the last one counts."""
    rows: list[TableRow] = [run_row(number, "a", number, server="puppet.example") for number in range(1, 5)]
    answers = [(1, "192.0.2.1", 1), (2, "192.0.2.2", 1), (2, "192.0.2.1", 2), (3, "192.0.2.2", 1)]
    rows += [
        ExchangeRow(
            capture=NONE, run=run, certname="a", seq=seq + 1, time=micros(run + seq), endpoint="catalog", master=master
        )
        for seq, (run, master, _) in enumerate(answers)
    ]
    masters = [(each.name, each.runs) for each in of(tmp_path, *rows).times if each.kind == "master"]
    assert masters == [("192.0.2.1", 2), ("192.0.2.2", 1), ("puppet.example", 1)]


def certificate(name: str, days: float, serial: str = "0x0001", role: str = "agent") -> CertificateRow:
    ends, now = micros(days * DAY), micros(0)
    return CertificateRow(capture=NONE, time=now, last=now, fingerprint=serial + name, role=role, certname=name,
                          subject=f"CN={name}", serial=serial, issuer="CN=CA", not_before=int(serial, 16),
                          not_after=ends, key=name)  # fmt: skip


@pytest.mark.slow
def test_what_ends_soon_is_listed_and_what_was_replaced_after_it(tmp_path: Path) -> None:
    found = of(tmp_path, certificate("a", 30), certificate("b", 20), certificate("b", 900, "0x0002"),
               certificate("c", 200), certificate("m", 60, role="master"))  # fmt: skip
    assert [(one.role, one.name, one.serial, one.end, one.replaced) for one in found.ending] == [
        ("agent", "a", "0x0001", START + 30 * DAY, False),
        ("master", "m", "0x0001", START + 60 * DAY, False),
        ("agent", "b", "0x0001", START + 20 * DAY, True),
    ]
    # Not what was replaced.
    assert [(month.agents, month.masters) for month in found.calendar] == [(1, 0), (0, 1), (1, 0), (1, 0)]


@pytest.mark.slow
def test_resources_that_change_in_every_run_never_settle(tmp_path: Path) -> None:
    def event(number: int, kind: str, title: str) -> ResourceEventRow:
        return ResourceEventRow(capture=NONE, run=number, certname="a", time=micros(number), type=kind, title=title,
                                status="success", file="/m/site.pp", line=7)  # fmt: skip

    runs = [run_row(number, "a", number, report_status="changed") for number in range(1, 6)]
    always = [event(number, "File", "/etc/motd") for number in range(1, 6)]
    now_and_then = [event(number, "File", "/x") for number in (1, 3, 5)]
    notify = [event(number, "Notify", "hello") for number in range(1, 6)]
    assert of(tmp_path, *runs, *always, *now_and_then, *notify).unsettled == (
        Unsettled("File[/etc/motd]", "/m/site.pp", 7, 1, 5, 5),
    )


@pytest.mark.slow
def test_two_series_on_a_node_count_its_runs_once(tmp_path: Path) -> None:
    runs = [run_row(number, "a", number, report_status="changed") for number in range(1, 11)]
    events = [ResourceEventRow(capture=NONE, run=number, certname="a", time=micros(number), type="File", title="/x",
                               status="success") for number in (1, 2, 3, 6, 7, 8)]  # fmt: skip
    assert of(tmp_path, *runs, *events).unsettled == (Unsettled("File[/x]", None, None, 1, 6, 10),)


@pytest.mark.slow
def test_what_is_in_use_is_counted_by_node(tmp_path: Path) -> None:
    rows: list[TableRow] = [run_row(number, name, number, catalog_format="text/pson", agent_version="5.5.22")
                       for number, name in ((1, "a"), (2, "a"), (3, "b"))]  # fmt: skip
    rows.append(ConnectionRow(capture=NONE, time=micros(0), side="agent", certname="a", tls="TLSv1.2"))
    rows.append(run_row(4, "c", 4, catalog_format="text/pson", checksum_type="md5", tool="curl/8"))
    rows += [run_row(number, "d", number, checksum_type=f"x{number}") for number in range(5, 105)]
    found = of(tmp_path, *rows)
    assert InUse("format of catalogs", "text/pson", 2) in found.in_use
    assert InUse("version of the agent", "5.5.22", 2) in found.in_use
    assert InUse("version of TLS", "TLSv1.2", 1) in found.in_use
    assert not any(each.name == "md5" for each in found.in_use), "no agent asked for it"
    assert sum(each.kind == "checksums asked for" for each in found.in_use) == TOP


@pytest.mark.slow
def test_readiness_counts_the_nodes_whose_findings_show_it(tmp_path: Path) -> None:
    found = of(tmp_path, run_row(1, "a", 1), finding(1, "a", 1, "R14"), finding(1, "a", 1, "P08"))
    assert [(each.title, each.since, each.nodes) for each in found.readiness] == [("facts or reports as YAML", 4, 1)]


def test_without_rows_there_is_nothing(tmp_path: Path) -> None:
    found = of(tmp_path)
    assert (found.nodes, found.causes, found.rules, found.times, found.ending) == ((), (), (), (), ())


@pytest.mark.slow
def test_as_plain_values_times_are_texts(tmp_path: Path) -> None:
    plain = fields(overview_of(fleet(tmp_path, 45)))
    assert plain["began"] == "2026-11-19T00:00:00.000Z"
    assert plain["nodes"][0]["last"].startswith("2026-11-21T")
    assert plain["states"]["failed"] == 2
