"""The capture of a rehearsal names the runs that it is about, and is compared with them again."""

from __future__ import annotations

import shutil
import sqlite3
from typing import TYPE_CHECKING

import pytest

from inspector.compare.comparison import Choices
from inspector.compare.differences import Patterns, Section
from inspector.errors import InspectorError
from inspector.progress import unwatched
from inspector.rehearsal import pairs
from inspector.rehearsal.pairs import Pairs
from tests.support import json_output
from tests.support.places import SAMPLES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A rehearsal of real agents, beside the capture that was rehearsed."""
    shutil.copytree(SAMPLES / "upgrade", tmp_path / "upgrade")
    return tmp_path / "upgrade/rehearsed.sqlite"


def test_each_node_with_what_became_of_it(made: Path) -> None:
    assert pairs.recorded(made)
    assert not pairs.recorded(made.with_name("recorded.sqlite"))
    nodes, result = Pairs(made).read(unwatched)
    assert [(pair.node, pair.state, [at for at, _ in pair.groups]) for pair in nodes] == [
        ("db1.example", "no catalog", []), ("web1.example", "changed", [1]), ("web2.example", "changed", [1]),
        ("mon1.example", "the same", []),
    ]  # fmt: skip
    assert nodes[0].failure.endswith("(S01)")
    assert nodes[1].summary == "4 changes: File[/srv/agent/etc/app.conf]/content and 3 more"
    assert result.groups.status == 2
    assert all((pair.time is None) == bool(pair.failure) for pair in nodes)


def test_one_node_whole(made: Path) -> None:
    compared = Pairs(made).one("web1.example", unwatched)
    found = {(difference.section, difference.part or difference.change) for difference in compared.differences}
    assert found == {(Section.CATALOG, "content"), (Section.CATALOG, "mode"), (Section.CATALOG, "added"),
                     (Section.FILES, "content")}  # fmt: skip
    with pytest.raises(InspectorError, match=r"db1\.example was not compared: no catalog"):
        Pairs(made).one("db1.example", unwatched)
    with pytest.raises(InspectorError, match="it was not rehearsed"):
        Pairs(made).one("other.example", unwatched)


def test_what_is_to_be_ignored_is_added(made: Path) -> None:
    choices = Choices(Patterns(["File[*app.conf]", "Notify[*]", "files:*"], Section))
    nodes, _ = Pairs(made, choices).read(unwatched)
    assert [pair.state for pair in nodes] == ["no catalog", "the same", "the same", "the same"]


def test_the_capture_that_was_rehearsed_is_missing_or_another_one(made: Path) -> None:
    source = made.with_name("recorded.sqlite")
    source.unlink()
    with pytest.raises(InspectorError, match=r"recorded\.sqlite, whose runs were rehearsed, is not there") as raised:
        Pairs(made).read(unwatched)
    assert raised.value.hint.startswith("Put recorded.sqlite there again")
    shutil.copy(SAMPLES / "first-run.sqlite", source)
    with pytest.raises(InspectorError, match="is not that of web1"):
        Pairs(made).read(unwatched)


@pytest.mark.parametrize("text", ["{}", "[", '{"master": "\\u001b[2J", "runs": 1}', "\x00"])
def test_metadata_that_cannot_be_read(made: Path, text: str) -> None:
    with sqlite3.connect(made) as database:
        database.execute("UPDATE meta SET value = ? WHERE key = 'rehearsal-of'", (text,))
    database.close()
    with pytest.raises(InspectorError, match=r"The metadata of .* cannot be read"):
        Pairs(made)


def test_another_capture_is_none(made: Path) -> None:
    with pytest.raises(InspectorError, match="is not the capture of a rehearsal"):
        Pairs(made.with_name("recorded.sqlite"))


def test_diff_prints_them(made: Path, run: Run) -> None:
    status, out, err = run("diff", made)
    assert (status, err) == (2, "")
    assert "the same 4 changes on 2 nodes: web1.example, web2.example\n" in out
    assert out.splitlines()[-1] == "without a change: 1 node: mon1.example"
    assert "  compile time: " in out
    status, out, _ = run("diff", made, "--agent", "web*", "--json")
    assert status == 1
    assert json_output.valid("diff", out)["groups"][0]["nodes"] == ["web1.example", "web2.example"]
    assert run("diff", made, "--agent", "mon1.example")[0] == 0
    assert "is the capture of a rehearsal: it has no runs." in run("diff", f"{made}:2")[2]
    assert "No node 'x' was rehearsed" in run("diff", made, "--agent", "x")[2]


def test_its_requests_are_no_agents_run(made: Path, run: Run) -> None:
    """They are the nodes' that were asked for, whichever certificate was used, and nobody's protocol is judged."""
    status, out, _ = run("check", made)
    assert (status, out.splitlines()[1:]) == (0, ["no deviations from the protocol"])
    assert out.startswith("no run of an agent; 12 requests of a rehearsal, ")
    _, out, _ = run("runs", made)
    names = [line.split()[2:4] for line in out.splitlines()[1:5]]
    assert sorted(names) == [[f"{node}.example", "(rehearsal)"] for node in ("db1", "mon1", "web1", "web2")]
