"""Which nodes fail, stopped reporting, run what, where, with which clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.made_tables import DAY, ago, answer, fact, run, tables, with_facts

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.fleet.tables import TableRow


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
