"""Rows on their way into tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import zstandard

from inspector.fleet.spools import Place, Spools
from inspector.fleet.tables import TABLES, FactRow

if TYPE_CHECKING:
    from pathlib import Path


def lines(path: Path | None) -> list[dict[str, object]]:
    assert path is not None
    data = zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read()
    return [msgspec.json.decode(line) for line in data.splitlines()]


def test_rows_are_in_the_spool_of_their_table(tmp_path: Path) -> None:
    spools = Spools(tmp_path)
    spools.add(FactRow(capture="c", run=3, certname="n", time=5, path="os.family", value="Debian", type="string"))
    spools.add_place(Place(3, 1, "n"))
    spools.close()
    (row,) = lines(spools.path(TABLES["facts"]))
    assert (row["run"], row["value"], row["volatile"]) == (3, "Debian", False)
    assert lines(spools.places) == [{"place": 3, "number": 1, "certname": "n"}]
    assert spools.path(TABLES["runs"]) is None


def test_half_of_a_surrogate_pair_is_replaced(tmp_path: Path) -> None:
    spools = Spools(tmp_path)
    spools.add(FactRow(capture="c", time=5, path="a\ud800", value="b", type="string"))
    spools.close()
    assert lines(spools.path(TABLES["facts"]))[0]["path"] == "a?"


def test_many_rows_are_all_there(tmp_path: Path) -> None:
    spools = Spools(tmp_path)
    for number in range(3000):
        spools.add(FactRow(capture="c", time=number, path="p" * 50, value=str(number), type="string"))
    spools.close()
    assert [row["value"] for row in lines(spools.path(TABLES["facts"]))] == [str(number) for number in range(3000)]
