"""Every named query has a test, can be executed without rows, and uses the parameters that it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.errors import InspectorError
from inspector.fleet import sql
from inspector.fleet.queries import named
from inspector.fleet.queries.named import QUERIES
from tests.support.made_tables import tables
from tests.support.places import TESTS

if TYPE_CHECKING:
    from pathlib import Path


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
