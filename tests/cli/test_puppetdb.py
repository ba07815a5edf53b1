"""``puppet-inspector puppetdb``: runs and what their master asked of PuppetDB, of one capture and of two."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.capture.store import Capture
from inspector.runs.examples import NAME, catalog, plugins, querying, report, slow, stored, talk
from tests.support import json_output

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.model import Record
    from tests.conftest import Run

AGENT = talk(plugins(), slow(catalog(), 5), report())
MASTER = talk(stored(), querying("nodes{}"), stored("replace_catalog", resources=[
    {"type": "Notify", "title": "a\0b", "parameters": {}}
]), certname="puppet.example", after=2)  # fmt: skip


def _written(path: Path, records: list[Record]) -> Path:
    with Capture.create(path) as capture:
        for record in records:
            capture.append(record)
    return path


def test_of_two_captures(run: Run, tmp_path: Path) -> None:
    agents, master = _written(tmp_path / "a.sqlite", AGENT), _written(tmp_path / "m.sqlite", MASTER)
    status, out, err = run("puppetdb", agents, master)
    assert (status, "2 captures are read as one" in err) == (0, True)
    first, heads, *rows = out.splitlines()
    assert first == f"run 1 of {NAME}, complete: 3 requests to PuppetDB, 600 ms; 600 ms of the 5.0 s of its catalog"
    assert heads.split() == ["record", "time", "answer", "sent", "received", "took", "request", "findings"]
    assert [row.split("200 ms")[1].split() for row in rows[:3]] == [
        ["replace", "facts", "of", NAME], ["query", "nodes{}"], ["replace", "catalog", "of", NAME, "D03"]
    ]  # fmt: skip
    assert rows[3].startswith("  ERROR D03 in record ")
    assert "(Notify[a\\u0000): it has the character NUL" in rows[3]


def test_json(run: Run, tmp_path: Path) -> None:
    path = _written(tmp_path / "m.sqlite", MASTER)
    _, out, _ = run("puppetdb", path, "--json")
    found = json_output.valid("puppetdb", out)
    assert (found["runs"], [call["command"] for call in found["others"]]) == (
        [], ["replace facts", None, "replace catalog"]
    )  # fmt: skip
    assert [call["by"] for call in found["others"]] == [None, None, None]


def test_a_capture_without_any(run: Run, tmp_path: Path) -> None:
    assert run("puppetdb", _written(tmp_path / "a.sqlite", AGENT)) == (
        0, "There are no requests to PuppetDB. docs/puppetdb.md says how they are recorded.\n", "",
    )  # fmt: skip
