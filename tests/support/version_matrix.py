"""What came of the matrix of versions (tests/real/versions), as golden/versions.json and docs/coverage.md have it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from tests.support import places

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE = places.GOLDEN / "versions.json"
WAYS = ("run", "proxy", "mitmdump")
"""The roads, as columns."""


@dataclass(slots=True)
class Cell:
    """One scenario of a pair of versions on one road."""

    date: str
    expected: str
    differs: str = ""
    """How it was not as expected."""


@dataclass(slots=True)
class Played:
    """What was played of a pair."""

    versions: str = ""
    """In full: agent, master, and puppet-inspector."""
    scenarios: dict[str, dict[str, Cell]] = field(default_factory=dict)
    """By scenario and road."""


@dataclass(slots=True)
class Matrix:
    """All that was played."""

    pairs: dict[str, Played] = field(default_factory=dict)
    bodies: dict[str, list[list[str]]] = field(default_factory=dict)
    """By the agent's version: endpoint, side and format of the bodies that were decoded."""


def load(path: Path = FILE) -> Matrix:
    """Return what was played before, nothing if nothing was."""
    if not path.exists():
        return Matrix()
    found = json.loads(path.read_text())
    pairs = {
        pair: Played(
            played["versions"],
            {name: {way: Cell(**cell) for way, cell in cells.items()} for name, cells in played["scenarios"].items()},
        )
        for pair, played in found["pairs"].items()
    }
    return Matrix(pairs, found["bodies"])


def dump(matrix: Matrix) -> str:
    """As golden/versions.json keeps it."""
    return json.dumps(asdict(matrix), indent=1, ensure_ascii=False) + "\n"


def table(matrix: Matrix) -> Iterator[str]:
    """The section of docs/coverage.md."""
    yield "## The matrix of versions"
    yield ""
    yield "What real agents did with real masters, through the inspector on each of its roads: their exit status, their"
    yield "runs (with the errors and warnings that were found, which are none where all is well), and words that they"
    yield "print. Written by `make test-versions`, or a part of it by `python -m tests.real.versions WORDS --write`."
    for pair, played in matrix.pairs.items():
        if not played.scenarios:
            continue
        cells = [cell for ways in played.scenarios.values() for cell in ways.values()]
        right = sum(not cell.differs for cell in cells)
        dates = sorted({cell.date for cell in cells})
        yield ""
        yield f"### Agent {pair.replace('/', ', master ')}"
        yield ""
        when = " to ".join(dict.fromkeys((dates[0], dates[-1])))
        yield f"{when}, {played.versions}: {right} of {len(cells)} as expected."
        yield ""
        yield f"| scenario | expected | {' | '.join(WAYS)} |"
        yield f"|---|---|{'---|' * len(WAYS)}"
        for name, ways in played.scenarios.items():
            yield f"| {' | '.join((name, _expected(ways), *(_shown(ways.get(way)) for way in WAYS)))} |"


def _expected(ways: dict[str, Cell]) -> str:
    texts: dict[str, list[str]] = {}
    for way in WAYS:
        if way in ways:
            texts.setdefault(ways[way].expected, []).append(way)
    if len(texts) == 1:
        return _escaped(*texts)
    return "<br>".join(f"{', '.join(named)}: {_escaped(text)}" for text, named in texts.items())


def _shown(cell: Cell | None) -> str:
    if cell is None:
        return "not played"
    return f"**{_escaped(cell.differs)}**" if cell.differs else "as expected"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
