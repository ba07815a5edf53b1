"""What takes long, and what is large."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.made_tables import DAY, END, ago, answer, exchange, run, tables

if TYPE_CHECKING:
    from pathlib import Path


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
