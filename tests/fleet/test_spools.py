"""Rows on their way into tables."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
import pytest
import zstandard

from inspector.fleet.spools import LONGEST, Place, Spools, masked, message, micros, short
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


# -- values ----------------------------------------------------------------------------------------------------

TOKEN = "ghp_" + "a1" * 18


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        (1.5, 1_500_000),
        (0.0, 0),
        (-3.0, 0),
        (math.nan, 0),
        (math.inf, 253_402_300_799_000_000),
        (1e300, 253_402_300_799_000_000),
    ],
)
def test_a_time_is_within_the_years_that_a_table_can_hold(time: float, expected: int) -> None:
    assert micros(time) == expected


def test_long_texts_are_shortened() -> None:
    assert short(None) is None
    assert short("a" * LONGEST) == "a" * LONGEST
    assert short("a" * (LONGEST + 1)) == "a" * (LONGEST - 1) + "…"
    assert len(message("a" * 5000)) == 2000


@pytest.mark.parametrize("around", ["{}", "x" * 300 + " {}"])
def test_secrets_are_masked_whether_or_not_a_text_is_cached(around: str) -> None:
    assert TOKEN not in masked(around.format(TOKEN))
    assert masked("plain") == "plain"
