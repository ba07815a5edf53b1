"""How large the code is, and how it is cut: ``python -m tests.size`` prints a table for CONTRIBUTING.md.

Lines are all of a file's. The share of imports is that of the lines of import statements. A body is what a function has
below its docstring, in lines. A module with a single importer is imported by one module of the same tree only.
"""

from __future__ import annotations

import ast
from collections import Counter
from statistics import mean
from typing import TYPE_CHECKING

from tests.support.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

type Row = dict[str, str]


def measured(tree: str) -> Row:
    """What is measured of a directory of the checkout."""
    paths = sorted((ROOT / tree).rglob("*.py"))
    parsed = {path: ast.parse(path.read_text()) for path in paths}
    lines = {path: path.read_text().count("\n") for path in paths}
    bodies = [body for module in parsed.values() for body in _bodies(module)]
    names = {_name(path): path for path in paths}
    importers = Counter(target for path in paths for target in _imported(parsed[path], names) if names[target] != path)
    total = sum(lines.values())
    return {
        "lines": f"{total:,}",
        "modules": f"{len(paths)}",
        "modules under 60 lines": f"{sum(count < 60 for count in lines.values())}",
        "modules with a single importer": f"{sum(count == 1 for count in importers.values())}",
        "share of imports": f"{sum(map(_imports, parsed.values())) / total:.1%}",
        "functions": f"{len(bodies):,}",
        "lines of an average body": f"{mean(bodies):.1f}",
    }


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(module: ast.Module) -> int:
    """The lines of import statements."""
    found = [node for node in ast.walk(module) if isinstance(node, (ast.Import, ast.ImportFrom))]
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in found)


def _imported(module: ast.Module, names: dict[str, Path]) -> set[str]:
    """The modules of the tree that a module imports."""
    found: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & names.keys()
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & names.keys()
            found |= inner or ({node.module} & names.keys())
    return found


def _bodies(module: ast.Module) -> Iterator[int]:
    """The lines of each function's body, without its docstring."""
    for node in ast.walk(module):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
            if body:
                yield (body[-1].end_lineno or 0) - body[0].lineno + 1


def main() -> None:
    trees = ("inspector", "tests")
    rows = {tree: measured(tree) for tree in trees}
    print(f"| | {' | '.join(f'`{tree}/`' for tree in trees)} |\n|---|{'---|' * len(trees)}")
    for key in rows[trees[0]]:
        print(f"| {key} | {' | '.join(rows[tree][key] for tree in trees)} |")


if __name__ == "__main__":
    main()
