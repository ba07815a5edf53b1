"""Every named query has a test, can be executed without rows, and uses the parameters that it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.errors import InspectorError
from inspector.fleet import sql
from inspector.fleet.queries import named
from inspector.fleet.queries.named import QUERIES
from inspector.fleet.tables import CaptureRow
from tests.support.made_tables import (
    CAPTURE,
    DAY,
    END,
    ago,
    answer,
    certificate,
    connection,
    crl,
    event,
    exchange,
    fact,
    finding,
    handshake,
    micros,
    run,
    tables,
    with_facts,
)
from tests.support.places import TESTS

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.fleet.tables import TableRow


def test_every_query_has_a_test() -> None:
    written = "".join(path.read_text() for path in (TESTS / "fleet" / "queries").glob("test_*.py"))
    assert [name for name in QUERIES if f"def test_{name}(" not in written] == []


def test_names_and_questions() -> None:
    assert len(QUERIES) >= 20
    assert len({query.question for query in QUERIES.values()}) == len(QUERIES)
    assert all(query.question.endswith("?") for query in QUERIES.values())


@pytest.mark.slow
def test_without_rows_the_answer_is_empty_and_has_columns_of_different_names(tmp_path: Path) -> None:
    with sql.opened(tables(tmp_path)) as database:
        for query in QUERIES.values():
            assert database.statements(query.sql), query.name
            with database.result(query.sql, query.values([], database.end)) as result:
                names = [column.name for column in result.columns]
                assert list(result.batches) == [], query.name
            assert all(name.isidentifier() for name in names), (query.name, names)
            assert len(set(names)) == len(names), (query.name, names)


def test_an_unknown_query_is_answered_with_the_nearest() -> None:
    assert named.named("expiring") is QUERIES["expiring"]
    with pytest.raises(InspectorError) as raised:
        named.named("expirng")
    assert raised.value.hint == "Did you mean `expiring`?"
    with pytest.raises(InspectorError) as raised:
        named.named("zzz")
    assert "--list" in raised.value.hint


# -- nodes and their runs --------------------------------------------------------------------------------------


def test_failing(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        run("broken.example", 4),
        run("broken.example", 3, outcome="failed", cause="S01", reason="first"),
        run("broken.example", 2, outcome="refused", cause="T05", reason="then"),
        run("new.example", 1, outcome="failed", reason="no cause"),
        run("repaired.example", 3, outcome="failed"),
        run("repaired.example", 2),
        run("tool.example", 1, outcome="failed", tool="curl"),
        run(None, 2, outcome="refused", cause="B10", address="192.0.2.9"),
        run(None, 4, outcome="refused", address="192.0.2.8"),  # it came up there later
        run("repaired.example", 2, address="192.0.2.8"),
        run("waits.example", 1, outcome="waiting", cause="B18"),
    )
    columns = "certname outcome cause reason since failures last_complete"
    assert answer(root, "failing", columns) == [
        ("broken.example", "refused", "T05", "then", ago(3), 2, ago(4)),
        ("192.0.2.9", "refused", "B10", None, ago(2), 1, None),
        ("new.example", "failed", None, "no cause", ago(1), 1, None),
        ("waits.example", "waiting", "B18", None, ago(1), 1, None),
    ]
    assert answer(root, "failing", "certname failures", "at=2026-11-21T09:30:00Z") == [
        ("repaired.example", 2),  # it came up at that address
        ("broken.example", 1),
    ]
    assert answer(root, "failing", "certname state standing_cause standing_since")[:2] == [
        ("broken.example", "failing", "T05", ago(2)),
        ("192.0.2.9", "failing", "B10", ago(2)),
    ]


def test_silent(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        run("gone.example", 30, address="192.0.2.1"),
        run("gone.example", 31),
        run("back.example", 30),
        run("back.example", 1),
    )
    columns = "certname last hours outcome agent_version address runs"
    assert answer(root, "silent", columns) == [("gone.example", ago(30), 30, "complete", "8.10.0", "192.0.2.1", 2)]
    assert answer(root, "silent", columns, "hours=40") == []


def test_versions(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        run("a.example", 2, agent_version="7.23.0", master_version="8.6.0"),
        run("a.example", 1, agent_version="8.10.0", master_version="8.6.0"),
        run("b.example", 2, agent_version="8.10.0", master_version="8.6.0"),
        run("b.example", 1, agent_version=None, outcome="refused"),  # it does not say anything of the version
    )
    assert answer(root, "versions", "agent_version master_version nodes example") == [
        ("8.10.0", "8.6.0", 2, "a.example")
    ]


def test_environments(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        run("a.example", environment="production", environment_asked="production"),
        run("b.example", environment="production", environment_asked="test", outcome="failed"),
        run("b.example", 31 * DAY, environment="old"),
    )
    assert answer(root, "environments", "environment nodes runs failed asked_for_another") == [
        ("production", 2, 2, 1, 1)
    ]


def test_addresses(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        run("moves.example", address="192.0.2.2", key="k1"),
        run("moves.example", address="192.0.2.1", key="k2"),
        run("stays.example", address="192.0.2.3"),
        run("stays.example", address="192.0.2.3"),
    )
    assert answer(root, "addresses", "certname addresses which runs keys") == [
        ("moves.example", 2, ["192.0.2.1", "192.0.2.2"], 2, 2)
    ]


def test_clocks(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        run("slow.example", agent_clock=-90.5, server="puppet", master_clock=0.5),
        run("set.example", 2, agent_clock=500.0),
        run("set.example", 1, agent_clock=1.0),
        run("good.example", agent_clock=59.0, compiler="compiler2", master_clock=3600.0),
    )
    assert answer(root, "clocks", "what name seconds_ahead") == [
        ("master", "compiler2", 3600.0),
        ("agent", "slow.example", -90.5),
    ]
    assert ("agent", "good.example") in answer(root, "clocks", "what name", "seconds=10")


def test_noop(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        run("noop.example", 2, noop=True),
        run("noop.example", 1, outcome="refused"),
        run("active.example", 2, noop=True),
        run("active.example", 1, noop=False),
    )
    assert answer(root, "noop", "certname") == [("noop.example",)]


def test_cached(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        run("cached.example", 2, cached_catalog="on_failure", cause="S01"),
        run("cached.example", 1, cached_catalog="on_failure"),
        run("fresh.example", cached_catalog="not_used"),
        run("silent.example"),
    )
    assert answer(root, "cached", "certname cached_catalog runs cause") == [("cached.example", "on_failure", 2, None)]


def test_facts(tmp_path: Path) -> None:
    def sent(certname: str, hours: float, **facts: str) -> list[TableRow]:
        of = with_facts(run(certname, hours))
        return [
            of,
            *(fact(certname, path.replace("__", "."), value, hours, run=of.run) for path, value in facts.items()),
        ]

    root = tables(
        tmp_path,
        *sent("a.example", 5, os__release__major="11", role="db"),
        *sent("a.example", 2, os__release__major="12"),  # it has no role any more
        *sent("b.example", 1, os__release__major="12"),
        *sent("c.example", 1, os__release__major="9", virtual="kvm"),
        fact("c.example", "uptime", "3 days", 4, volatile=True),
        fact("c.example", "uptime", "4 days", 3, volatile=True),
    )
    assert answer(root, "facts", "value type nodes example") == [
        ("12", "string", 2, "a.example"),
        ("9", "string", 1, "c.example"),
    ]
    assert answer(root, "facts", "value nodes", "path=virtual") == [("kvm", 1)]
    assert answer(root, "facts", "value nodes", "path=role") == []
    assert answer(root, "facts", "value nodes", "path=uptime") == [("4 days", 1)]
    assert answer(root, "facts", "value", "path=' OR true --") == []


# -- findings and errors ---------------------------------------------------------------------------------------


def test_first_finding(tmp_path: Path) -> None:
    first = run("first.example", 50)
    root = tables(
        tmp_path,
        first,
        finding("first.example", "R02", 50, run=first.run, severity="warning"),
        finding("later.example", "R02", 20),
        finding("later.example", "R02", 10),
        finding("later.example", "S01", 3),
    )
    columns = "rule severity first certname capture run findings nodes last"
    assert answer(root, "first_finding", columns) == [
        ("S01", "error", ago(3), "later.example", CAPTURE, None, 1, 1, ago(3)),
        ("R02", "warning", ago(50), "first.example", CAPTURE, first.run, 3, 2, ago(10)),
    ]


def test_findings(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        finding("a.example", "R02", 1),
        finding("a.example", "R02", 2, cause=True),
        finding("b.example", "R02", 24),
        finding("a.example", "S01", 31 * DAY),
    )
    today, yesterday = END.date(), ago(24).date()
    assert answer(root, "findings", "day rule severity findings nodes causes") == [
        (today, "R02", "error", 2, 1, 1),
        (yesterday, "R02", "error", 1, 1, 0),
    ]
    assert answer(root, "findings", "day findings", "at=2026-11-21T10:30:00Z") == [(today, 1), (yesterday, 1)]


def test_errors(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        exchange("a.example", status=500, path="/puppet/v3/catalog/a.example"),
        exchange("b.example", status=500, path="/puppet/v3/catalog/b.example"),
        exchange("c.example", status=None, error="the master closed the connection"),
        exchange("d.example", status=304),
    )
    assert answer(root, "errors", "endpoint status error requests nodes example path") == [
        ("catalog", 500, None, 2, 2, "a.example", "/puppet/v3/catalog/a.example"),
        ("catalog", None, "the master closed the connection", 1, 1, "c.example", ""),
    ]


def test_gaps(tmp_path: Path) -> None:
    whole = CaptureRow(capture="w", time=micros(2), last=micros(0), name="whole.sqlite")
    lossy = CaptureRow(capture="l", time=micros(1), last=micros(0), name="lossy.sqlite", lost=3)
    damaged = CaptureRow(capture="d", time=micros(2), last=micros(0), name="damaged.sqlite", trouble="torn")
    root = tables(tmp_path, whole, lossy, damaged)
    assert answer(root, "gaps", "name lost trouble") == [("damaged.sqlite", 0, "torn"), ("lossy.sqlite", 3, None)]


# -- certificates, CRLs, keys and TLS --------------------------------------------------------------------------


def test_expiring(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        certificate("never.example", 10),
        certificate("tried.example", 20),
        certificate("renewed.example", 5, not_before=micros(90 * DAY)),
        certificate("renewed.example", 1800, role="issued", not_before=micros(2)),
        certificate("later.example", 31),
        certificate("two-cas.example", 25, 1, issuer="CN=One"),
        certificate("two-cas.example", 900, 1, issuer="CN=Other", not_before=micros(2)),
        certificate("moved.example", 25, 9, issuer="CN=One"),
        certificate("moved.example", 900, 2, issuer="CN=Other", not_before=micros(2)),
        certificate("CA", -1, role="ca"),
        exchange("tried.example", 3, endpoint="renewal", status=404),
        exchange("tried.example", 2, endpoint="renewal", status=None),
    )
    columns = "role name days_left renewal renewal_status"
    assert answer(root, "expiring", columns) == [
        ("ca", "CA", -1, None, None),
        ("agent", "never.example", 10, None, None),
        ("agent", "tried.example", 20, ago(2), None),
        ("agent", "two-cas.example", 25, None, None),
    ]
    assert answer(root, "expiring", "name days_left", "days=32")[-1] == ("later.example", 31)
    assert answer(root, "expiring", "name", "at=2026-10-01", "days=1") == []


def test_crls(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        crl("CN=Ends", 3, number="7", revoked=2),
        crl("CN=Ends", 2, made_hours=72, number="6"),
        crl("CN=Renewed", 3, made_hours=72),
        crl("CN=Renewed", 300),
        crl("CN=Same second", 8, number="9"),
        crl("CN=Same second", 8, number="10", revoked=1),
    )
    assert answer(root, "crls", "issuer number days_left revoked") == [
        ("CN=Ends", "7", 3, 2), ("CN=Same second", "10", 8, 1),
    ]  # fmt: skip


def test_revoked(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        crl("CN=CA", 30, serials=["0x0001", "0x0002", "0x0003"]),
        certificate("revoked.example", 300, serial="0x0001"),
        certificate("before.example", 300, 72, serial="0x0002"),
        certificate("valid.example", 300, serial="0x0004"),
        certificate("other.example", 300, serial="0x0003", issuer="CN=Other"),
        # A new CA with the name of the old one.
        crl("CN=Two", 30, serials=["0x0005"], issuer_key="old"),
        certificate("healthy.example", 300, serial="0x0005", issuer="CN=Two", issuer_key="new"),
        certificate(None, 300, serial="0x0002"),  # without a name, as a made-up one may be
        # What the master's CRL revokes may be in none that an agent asked for.
        finding("refused.example", "T05", 5),
        finding("refused.example", "T05", 2),
        finding("revoked.example", "T05", 1),
        finding("valid.example", "T10", 1),
    )
    assert answer(root, "revoked", "certname serial first last") == [
        ("revoked.example", "0x0001", ago(1), ago(1)),
        (None, "0x0002", ago(1), ago(1)),
        ("refused.example", None, ago(5), ago(2)),
    ]


def test_keys(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        certificate("two.example", 300, key="k1"),
        certificate("two.example", 300, key="k2"),
        certificate("clone1.example", 300, key="k3"),
        certificate("clone2.example", 300, key="k3", role="issued"),
        certificate("one.example", 300, key="k4"),
        certificate("one.example", 600, key="k4"),
        certificate("ca", 300, key="k4", role="ca"),
    )
    assert answer(root, "keys", "what name number others") == [
        ("several certnames", "k3", 2, ["clone1.example", "clone2.example"]),
        ("several keys", "two.example", 2, ["k1", "k2"]),
    ]


def test_unverified(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        finding("blind.example", "B03", 3, message="older"),
        finding("blind.example", "B03", 2, message="newer"),
        finding("other.example", "B04"),
        finding("long-ago.example", "B03", 30.2 * DAY),
    )
    assert answer(root, "unverified", "certname rule findings message") == [("blind.example", "B03", 2, "newer")]


def test_anonymous(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        exchange("open.example", authenticated=False, status=403),
        exchange("new.example", authenticated=False, phase="certificates", endpoint="ca"),
        exchange("good.example"),
    )
    assert answer(root, "anonymous", "certname endpoint status requests") == [("open.example", "catalog", 403, 1)]


def test_refused(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        handshake("a.example", "revoked", address="192.0.2.1", alert="certificate_revoked"),
        handshake("b.example", "revoked", address="192.0.2.1", alert="certificate_revoked"),
        handshake(None, "closed", 2),
        handshake("c.example", "long ago", 31 * DAY),
    )
    assert answer(root, "refused", "reason alert handshakes nodes addresses example") == [
        ("revoked", "certificate_revoked", 2, 2, 1, "a.example"),
        ("closed", None, 1, 0, 0, None),
    ]


def test_tls(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        connection("old.example", tls="TLSv1.2"),
        connection("old.example", tls="TLSv1.2"),
        connection(None, address="192.0.2.7"),
        connection("failed.example", tls=None),
    )
    assert answer(root, "tls", "side tls connections peers example") == [
        ("agent", "TLSv1.2", 2, 1, "old.example"),
        ("agent", "TLSv1.3", 1, 1, "192.0.2.7"),
    ]


# -- resources -------------------------------------------------------------------------------------------------


def test_changing_resources(tmp_path: Path) -> None:
    often = [run("a.example", hours, report_status="changed") for hours in (3, 2, 1)]
    other = [run("b.example", hours, report_status="changed") for hours in (3, 2, 1)]
    seldom = [run("c.example", hours, report_status="changed") for hours in (2, 1)]
    noop = [run("d.example", hours, report_status="changed", noop=True) for hours in (3, 2, 1)]
    refused = run("a.example", 4, outcome="refused")  # it has no report, and does not count
    root = tables(
        tmp_path,
        *often, *other, *seldom, *noop, refused,
        *(event(one, "/always") for one in (*often, *other, *seldom, *noop)),
        *(event(one, "/always", property="mode") for one in often),  # two changes of a run are one
        *(event(one, "/twice") for one in often[:2]),
        *(event(one, "/fails", "failure") for one in often),
    )  # fmt: skip
    columns = "type title file line nodes example changes"
    assert answer(root, "changing_resources", columns) == [("File", "/always", "/site.pp", 7, 2, "a.example", 6)]
    assert answer(root, "changing_resources", "title nodes", "runs=2") == [("/always", 3)]


def test_corrective(tmp_path: Path) -> None:
    one, two, old = run("a.example"), run("b.example"), run("b.example", 31 * DAY)
    root = tables(
        tmp_path,
        one, two, old,
        event(one, "/drifts", corrective=True),
        event(two, "/drifts", corrective=True),
        event(old, "/drifted", corrective=True),
        event(one, "/new", corrective=False),
        event(one, "/noop", "noop", corrective=True),
    )  # fmt: skip
    assert answer(root, "corrective", "type title property changes nodes example") == [
        ("File", "/drifts", "content", 2, 2, "a.example")
    ]


def test_failed_resources(tmp_path: Path) -> None:
    first, last = run("a.example", 2), run("a.example", 1)
    root = tables(
        tmp_path,
        first, last,
        event(first, "/full", "failure", message="older"),
        event(last, "/full", "failure", message="no space left"),
        event(last, "/good"),
    )  # fmt: skip
    assert answer(root, "failed_resources", "type title file line failures nodes example message") == [
        ("File", "/full", "/site.pp", 7, 2, 1, "a.example", "no space left")
    ]


# -- time and size ---------------------------------------------------------------------------------------------


def test_compile_times(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        *(run("a.example", 26, master_version="7.9.5", compile_time=time, resources=100) for time in (1.0, 1.0, 1.0)),
        *(run("a.example", 2, master_version="8.6.0", compile_time=time, resources=300) for time in (2.0, 2.0, 4.5)),
        run("a.example", 1, master_version="8.6.0"),
        run("a.example", 31 * DAY, master_version="6.0.0", compile_time=9.0),
    )
    assert answer(root, "compile_times", "day master_version catalogs median longest resources") == [
        (ago(26).date(), "7.9.5", 3, 1.0, 1.0, 100),
        (END.date(), "8.6.0", 3, 2.0, 4.5, 300),
    ]


def test_slow_masters(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        exchange("a.example", master="192.0.2.1", waited=1.0),
        exchange("a.example", master="192.0.2.1", endpoint="node", waited=1.0),
        exchange("b.example", master="192.0.2.2", waited=5.0),
        exchange("b.example", master="192.0.2.2", endpoint="node", waited=5.0, status=503),
        exchange("c.example", waited=9.0),
    )
    assert answer(root, "slow_masters", "master requests median catalogs catalog_median failed") == [
        ("192.0.2.2", 2, 5.0, 1, 5.0, 1),
        ("192.0.2.1", 2, 1.0, 1, 1.0, 0),
    ]


def test_endpoints(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        *(exchange("a.example", waited=2.0, received=100) for _ in range(3)),
        exchange("a.example", endpoint="report", waited=1.0, received=4, status=500),
        exchange("a.example", 31 * DAY, endpoint="node"),
    )
    assert answer(root, "endpoints", "endpoint requests seconds median received failed") == [
        ("catalog", 3, 6.0, 2.0, 300, 0),
        ("report", 1, 1.0, 1.0, 4, 1),
    ]


def test_slow_runs(tmp_path: Path) -> None:
    slow = run("slow.example", duration=300.0, compile_time=200.0, apply_wait=50.0)
    root = tables(tmp_path, slow, run("quick.example", duration=3.0), run("tool.example", duration=999.0, tool="curl"))
    assert answer(root, "slow_runs", "certname duration compiling applying facts run") == [
        ("slow.example", 300.0, 200.0, 50.0, None, slow.run),
        ("quick.example", 3.0, None, None, None, slow.run + 1),
    ]
    assert answer(root, "slow_runs", "certname", "top=1") == [("slow.example",)]


def test_big_catalogs(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        run("big.example", resources=9000),
        exchange("big.example", received=5_000_000, waited=7.0),
        exchange("big.example", received=4_000_000, waited=7.0),
        exchange("small.example", received=1000),
        exchange("failed.example", received=9_000_000, status=500),
        exchange("small.example", endpoint="file_content", received=8_000_000),
    )
    assert answer(root, "big_catalogs", "certname bytes resources catalogs median") == [
        ("big.example", 5_000_000, 9000, 2, 7.0),
        ("small.example", 1000, None, 1, None),
    ]


def test_big_files(tmp_path: Path) -> None:
    often = "/puppet/v3/file_content/modules/a/often"
    root = tables(
        tmp_path,
        *(exchange(f"{name}.example", endpoint="file_content", path=often, received=100) for name in "abc"),
        exchange("a.example", endpoint="plugin_file", path="/lib/once.rb", received=250),
        exchange("a.example", endpoint="file_metadata", path="/metadata", received=999),
    )
    assert answer(root, "big_files", "path bytes transfers nodes transferred") == [
        (often, 100, 3, 3, 300),
        ("/lib/once.rb", 250, 1, 1, 250),
    ]


# -- before an upgrade -----------------------------------------------------------------------------------------

PSON, JSON = "text/pson", "application/json"


def test_pson(tmp_path: Path) -> None:
    tool = run("new.example", tool="curl/8")
    root = tables(
        tmp_path,
        tool,
        exchange("new.example", format=PSON, run=tool.run),
        run("old.example", agent_version="5.5.22"),
        exchange("old.example", request_format=PSON, format=PSON),
        exchange("old.example", endpoint="node", format=PSON),
        exchange("new.example", request_format=JSON, format=JSON),
        exchange("upgraded.example", 31 * DAY, format=PSON),
    )
    assert answer(root, "pson", "certname agent_version sent received endpoints") == [
        ("old.example", "5.5.22", 1, 2, ["catalog", "node"])
    ]


def test_upgrade(tmp_path: Path) -> None:
    legacy = ("osfamily", "operatingsystem", "ipaddress_eth0")
    nodes = ("pson", "md5", "tls", "flat", "two-flat", "ready", "cleaned")
    runs = {name: with_facts(run(name, agent_version="7.23.0")) for name in nodes}
    cleaned = with_facts(run("cleaned", 2))
    tool = run("ready", tool="curl/8")
    root = tables(
        tmp_path,
        *runs.values(),
        cleaned,
        tool,
        exchange("ready", format=PSON, run=tool.run),
        run("flat", 0.5, agent_version=None, outcome="refused"),  # it sends nothing
        exchange("pson", format=PSON),
        exchange("ready", format=JSON),
        finding("md5", "F06"),
        finding("ready", "F01"),
        connection("tls", tls="TLSv1.1"),
        connection("ready", tls="TLSv1.2"),
        *(fact("flat", path, "x", run=runs["flat"].run) for path in (*legacy, "os.family")),
        *(fact("two-flat", path, "x", run=runs["two-flat"].run) for path in legacy[:2]),
        *(fact("cleaned", path, "x", 2, run=cleaned.run) for path in legacy),
    )
    assert answer(root, "upgrade", "certname agent_version pson md5 old_tls legacy_facts") == [
        ("flat", "7.23.0", False, False, None, 3),
        ("md5", "7.23.0", False, True, None, 0),
        ("pson", "7.23.0", True, False, None, 0),
        ("tls", "7.23.0", False, False, "TLSv1.1", 0),
    ]


def test_checksums(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        run("a.example", 2, checksum_type="md5", agent_version="4.10.0"),
        run("a.example", 1, checksum_type="sha256.md5"),
        run("b.example", 1, checksum_type="sha256.md5", agent_version="7.23.0"),
        run("c.example", 1),
    )
    assert answer(root, "checksums", "checksum_type nodes agent_versions example") == [
        ("sha256.md5", 2, ["7.23.0", "8.10.0"], "a.example")
    ]


def test_formats(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        exchange("a.example", format=JSON, encoding="gzip", sent=5, received=20),
        exchange("b.example", format=JSON, encoding="gzip", sent=7, received=30),
        exchange("b.example", 31 * DAY, format=PSON),
    )
    assert answer(root, "formats", "endpoint request_format format encoding requests nodes sent received") == [
        ("catalog", None, JSON, "gzip", 2, 2, 12, 50)
    ]
