"""Tables that are given, and those that are made of captures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.cli import given_tables
from inspector.errors import InspectorError
from tests.support.places import SAMPLES
from tests.support.tables_of import asked, converted

if TYPE_CHECKING:
    from pathlib import Path

CAPTURE = SAMPLES / "first-run.sqlite"
COUNT = "SELECT count(*) FROM runs"


def test_those_of_captures_are_the_same_and_do_not_stay(tmp_path: Path) -> None:
    made = converted(tmp_path, CAPTURE)
    with given_tables.opened([CAPTURE]) as (directory, status):
        root = directory.root
        assert asked(directory, COUNT) == asked(made, COUNT) == [(1,)]
        assert status == 0
    assert not root.exists()
    with given_tables.opened([made.root]) as (directory, status):
        assert (directory.root, status) == (made.root, 0)
    assert made.root.exists()


def test_mistakes(tmp_path: Path) -> None:
    made = converted(tmp_path, CAPTURE).root
    for given, rules, sentence in (
        ([made, CAPTURE], False, "not the only argument"),
        ([made], True, "Rules are applied when captures are read"),
        ([made / "runs"], False, "There are no tables in"),
        ([tmp_path / "none.sqlite"], False, "none.sqlite"),
    ):
        with pytest.raises(InspectorError, match=sentence), given_tables.opened(given, rules=rules):
            pass
