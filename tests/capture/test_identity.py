"""What identifies a merged capture: that of which it was made, not its records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.capture import merge
from inspector.capture.identity import MERGED, MOST, SOURCES, identity, sources_of
from inspector.capture.store import Capture
from inspector.runs.examples import catalog, plugins, report, talk
from tests.support.captures import save

if TYPE_CHECKING:
    from pathlib import Path


def known(path: Path) -> tuple[str, frozenset[str]]:
    with Capture.open(path) as capture:
        return identity(capture), sources_of(capture)


def test_a_merged_capture_is_what_it_was_made_of(tmp_path: Path) -> None:
    """In whatever order, and however often it was merged on the way."""
    parts = [save(tmp_path / f"{number}.sqlite", *talk(plugins(), catalog(), after=number)) for number in range(3)]
    single = {known(path)[0] for path in parts}
    assert known(parts[0])[1] == frozenset()
    merge.merge(parts, tmp_path / "all.sqlite")
    merge.merge(parts[:2], tmp_path / "two.sqlite")
    merge.merge([parts[2], tmp_path / "two.sqlite"], tmp_path / "again.sqlite")
    name, sources = known(tmp_path / "all.sqlite")
    assert name.startswith(MERGED)
    assert sources == single
    assert known(tmp_path / "again.sqlite") == (name, sources)
    assert known(tmp_path / "two.sqlite")[0] != name


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("../../etc/passwd", 0),
        ("part-*.parquet '; DROP TABLE", 0),
        (" ".join(f"{n:016x}" for n in range(2 * MOST)), MOST),
    ],
)
def test_what_a_stranger_wrote_there_is_limited(tmp_path: Path, written: str, number: int) -> None:
    path = save(tmp_path / "a.sqlite", *talk(plugins(), catalog(), report()))
    with Capture.create(path) as capture:
        capture.set_meta([(SOURCES, written)])
    assert len(known(path)[1]) == number
