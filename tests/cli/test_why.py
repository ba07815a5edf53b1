"""``puppet-inspector why``: which run it takes, and its mistakes."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support import json_output, places

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

SYNC = places.SAMPLES / "out-of-sync.sqlite"
SINGLE = "File[/srv/agent/node1.example/managed/single.txt]"
CONTENT = "File[/srv/agent/node1.example/managed/content.txt]"


def test_the_latest_run_in_which_it_changed(run: Run) -> None:
    status, out, err = run("why", SYNC, SINGLE)
    assert (status, err) == (0, "")
    assert out.startswith(f"{SINGLE}: corrective\n  in out-of-sync.sqlite run 2 of node1.example, ")
    assert "    fetched in record 17: 200, 9 B, digest right\n    fetched in record 20" in out
    assert "different from the run before (out-of-sync.sqlite run 1, " in out


def test_a_run_that_is_named(run: Run) -> None:
    status, out, _ = run("why", SYNC, SINGLE, "--run", 1)
    assert (status, out.startswith(f"{SINGLE}: unchanged\n")) == (0, True)
    assert "No earlier run of this node" in out
    assert run("why", SYNC, SINGLE, "--run", 1, "--agent", "node1*")[1] == out


def test_else_the_latest_that_has_it(run: Run) -> None:
    _, out, _ = run("why", SYNC, CONTENT)
    assert "run 2 of node1.example" in out
    assert "the run before (out-of-sync.sqlite run 1, " in out


def test_json(run: Run) -> None:
    _, out, _ = run("why", SYNC, SINGLE, "--json")
    fields = json_output.valid("why", out)
    assert (fields["catalog_record"], fields["report_record"], fields["before"]["run"]) == (14, 25, 1)


def test_the_newest_capture(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "captures").mkdir()
    shutil.copy(SYNC, tmp_path / "captures")
    monkeypatch.chdir(tmp_path)
    assert run("why", SINGLE) == run("why", SYNC, SINGLE)


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["motd"], "'motd' is no resource.", "Use the form 'File[/etc/motd]'."),
        ([SINGLE.replace("txt", "tx")], "is not in the latest 2 runs of", f"Did you mean {SINGLE}"),
        (["File[x]", "--run", "1"], "File[x] is not in run 1 of", "`puppet-inspector runs` lists the runs"),
        ([SINGLE, "--run", "9"], "has no run 9.", "It has runs 1 to 2."),
        ([SINGLE, "--agent", "nobody"], "has no runs of 'nobody'.", "It has runs of node1.example."),
    ],
)
def test_mistakes(run: Run, words: list[str], message: str, hint: str) -> None:
    status, out, err = run("why", SYNC, *words)
    lines = err.splitlines()
    assert (status, out, len(lines)) == (2, "", 2)
    assert message in lines[0]
    assert lines[1].startswith(f"  {hint}")


def test_a_run_without_a_catalog(run: Run) -> None:
    failed = places.SAMPLES / "compile-error.sqlite"
    status, _, err = run("why", failed, "File[/x]", "--run", 1)
    assert status == 2
    assert "File[/x] is not in run 1 of" in err
    assert "no catalog came (no role for this node " in err
