"""Arguments that several commands share."""

from __future__ import annotations

import pytest

from inspector.cli.arguments import opened_by
from inspector.errors import InspectorError
from inspector.formats.outgoing import ALL, Content


def test_kinds_are_named_one_by_one_or_all() -> None:
    assert opened_by("") == frozenset()
    assert opened_by("facts, LOGS,") == {Content.FACTS, Content.LOGS}
    assert opened_by("facts,all") == ALL


@pytest.mark.parametrize("text", ["secrets", "other", "facts;logs"])
def test_what_it_does_not_know_is_an_error_with_a_hint(text: str) -> None:
    with pytest.raises(InspectorError, match="--with does not know") as error:
        opened_by(text)
    assert "facts, parameters, logs, files, or all" in str(error.value.hint)
