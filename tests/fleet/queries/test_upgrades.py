"""Which nodes have what newer versions no longer accept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.made_tables import DAY, answer, connection, exchange, fact, finding, run, tables, with_facts

if TYPE_CHECKING:
    from pathlib import Path

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
