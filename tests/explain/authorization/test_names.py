"""Names, compared as masters compare them."""

from __future__ import annotations

import pytest

from inspector.explain.authorization import names
from inspector.host.auth_conf.rules import Sort


@pytest.mark.parametrize(
    ("name", "parts"),
    [("A.b.Example", ["example", "b", "a"]), ("a.", ["a"]), (".a", ["a", ""]), ("...", []), ("", [""]), ("a", ["a"])],
)
def test_parts(name: str, parts: list[str]) -> None:
    assert names.parts(name) == parts


@pytest.mark.parametrize(
    ("sort", "text", "name", "equal"),
    [
        (Sort.ANY, "*", "x", True),
        (Sort.NAME, "A.Example", "a.example", True),
        (Sort.NAME, "a.example", "a.example.", True),
        (Sort.DOMAIN, "*.Example", "x.y.example", True),
        (Sort.DOMAIN, "*.example", "example", True),
        (Sort.DOMAIN, "*.b.example", "a.example", False),
        (Sort.WORD, "host", "HOST", True),
        (Sort.WORD, "HOST", "host", False),
        (Sort.WORD, "a.example.", "a.example", False),
        (Sort.GROUP, "$1", "$1", True),
    ],
)
def test_equal(sort: Sort, text: str, name: str, equal: bool) -> None:
    assert names.equal(sort, text, name) is equal
