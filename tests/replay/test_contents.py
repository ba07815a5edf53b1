"""Contents that a run lists, and another one fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.model import Exchange
from inspector.runs.examples import altered, asked, catalog, content, listing, plugins, report, talk, together
from tests.support.replays import of_records

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.model import Record
    from inspector.replay.recording import Recording
    from inspector.runs.examples import ExamplePart

FILE = b"content\n"


def run(tmp_path: Path, fetched: ExamplePart) -> Recording:
    """The second run lists a directory; a file in it was fetched in the first."""
    tree = listing("modules/m/tree", {"a.txt": FILE})
    first: list[Record] = talk(plugins(), catalog(), tree, fetched, report())
    second = talk(plugins(), catalog(uuid="a-2"), tree, report(uuid="a-2"), after=1000)
    return of_records(tmp_path, *together(first, second), run=2)


def test_a_content_with_the_listed_digest_is_taken(tmp_path: Path) -> None:
    recorded = run(tmp_path, content("modules/m/tree/a.txt", FILE))
    ((question, answer),) = recorded.borrowed.items()
    assert question.subject == "modules/m/tree/a.txt"
    assert question not in recorded.answers
    assert answer.response is not None
    assert answer.response.body == FILE


@pytest.mark.parametrize(
    "fetched",
    [
        content("modules/m/tree/a.txt", b"another version"),
        content("modules/m/tree/b.txt", FILE),
        altered(content("modules/m/tree/a.txt", FILE), response={"status": 404}),
        altered(content("modules/m/tree/a.txt", FILE), response={"lost": 3}),
        altered(content("modules/m/tree/a.txt", FILE), answers={"Content-Encoding": "gzip"}),
        asked("file_metadata/modules/m/tree/a.txt", []),
    ],
)  # fmt: skip
def test_nothing_else_is(tmp_path: Path, fetched: ExamplePart) -> None:
    assert run(tmp_path, fetched).borrowed == {}


def test_what_the_run_fetched_itself_is_its_own(tmp_path: Path) -> None:
    tree = listing("modules/m/tree", {"a.txt": FILE})
    records = talk(plugins(), catalog(), tree, content("modules/m/tree/a.txt", FILE), report())
    recorded = of_records(tmp_path, *records)
    assert recorded.borrowed == {}
    assert any(question.subject == "modules/m/tree/a.txt" for question in recorded.answers)
    assert all(isinstance(step.record, Exchange) for step in recorded.steps.values())
