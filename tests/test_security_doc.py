"""docs/security.md and docs/stability.md name a test for each promise; and no test of the first goes unnamed."""

from __future__ import annotations

import ast
import re

import pytest

from tests.support import places

ROOT = places.ROOT
TEXT = (ROOT / "docs" / "security.md").read_text()
PROVED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)


def _names(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


@pytest.mark.parametrize(
    ("page", "heading", "least"), [("security", "## What it promises", 25), ("stability", "# What is", 14)]
)
def test_every_promise_names_a_test_that_exists(page: str, heading: str, least: int) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text()
    table = text.partition(heading)[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > least
    assert [row for row in rows if not re.fullmatch(r"\| [^|]+ \| `tests/[\w/]+\.py::\w+` \|", row)] == []
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)
    assert [f"{path}::{name}" for path, name in named if name not in _names(path)] == []


def test_every_test_of_a_promise_is_named() -> None:
    for path in ("tests/e2e/test_promises.py", "tests/e2e/test_smuggling.py"):
        assert _names(path) == {name for file, name in PROVED if file == path}
