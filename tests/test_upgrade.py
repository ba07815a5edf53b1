"""What version 0.1 wrote and read: captures, JSON, tables, the files that set its options and rules.

``from_0_1`` was made by the program of commit 113db8a0, the first one with version 3 of the capture, from
``capture/versions/3.sqlite``: ``outputs.json`` has what its commands printed with ``--json``, ``records.*`` is its
export of the phase catalog, ``tables`` what its ``tables`` made. The files of options and rules are those of its
package and its documentation.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from inspector.capture.store import Capture
from inspector.cli.commands import FORMER, FORMER_OPTIONS
from inspector.errors import CaptureError
from inspector.proxy import options, options_file
from inspector.proxy.options import parse_assignments
from inspector.summaries import ruleset
from tests.support.json_output import strict, valid
from tests.support.places import DOCS, TESTS
from tests.support.records import read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import Run

FOLDER = TESTS / "from_0_1"
CAPTURES = TESTS / "capture" / "versions"
OUTPUTS: dict[str, Any] = json.loads((FOLDER / "outputs.json").read_text())
COMMANDS = {
    "runs": "runs 3.sqlite", "check": "check 3.sqlite", "list": "list 3.sqlite", "show": "show 3.sqlite 6",
    "doctor": "doctor 3.sqlite", "captures": "captures .", "bootstrap": "bootstrap 3.sqlite",
    "certificates": "certificates 3.sqlite", "report": "report 3.sqlite", "diff": "diff 3.sqlite 3.sqlite",
    "share": "share 3.sqlite -o s.sqlite", "tables": "tables 3.sqlite -o t",
}  # fmt: skip
"""What was called for each of ``OUTPUTS``."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a capture of each version, to work in."""
    for path in CAPTURES.glob("*.sqlite"):
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# -- captures (that each is read, judged and continued: tests/capture/test_schema.py) --------------------------


def test_captures_are_listed_together(run: Run, folder: Path) -> None:
    status, out, err = run("captures", folder, "--json")
    assert (status, err) == (0, "")
    assert {Path(each["capture"]).name: each["records"] for each in strict(out)} == {
        "1.sqlite": 5, "2.sqlite": 38, "3.sqlite": 7,
    }  # fmt: skip


def test_captures_are_merged(run: Run, folder: Path) -> None:
    assert run("captures", "merge", "1.sqlite", "2.sqlite", "3.sqlite", "-o", "all.sqlite")[0] == 0
    assert len(read(folder / "all.sqlite")) == 33 + 7  # the five of 1.sqlite are twice in 2.sqlite
    status, out, _ = run("check", "all.sqlite")
    assert status == 1
    assert "web1.lab.example failed: S01" in out
    assert "node1.example failed: S01" in out


def test_captures_are_passed_on(run: Run, folder: Path) -> None:
    """Also by the names that commands had."""
    assert run("merge", "1.sqlite", "3.sqlite", "-o", "all.sqlite")[0] == 0
    assert run("vacuum", "all.sqlite")[0] == 0
    assert run("share", "all.sqlite", "-o", "shared.sqlite")[0] == 0
    assert len(read(folder / "shared.sqlite")) == 5 + 7
    assert "failed: S01" in run("check", "shared.sqlite")[1]


def test_a_capture_of_the_future_is_refused(run: Run, folder: Path) -> None:
    """By what reads, what goes on with it and what makes another of it; and it stays as it is."""
    with closing(sqlite3.connect("3.sqlite")) as db:
        db.execute("PRAGMA user_version = 4")
    before = (folder / "3.sqlite").read_bytes()
    for words in (
        "list", "runs", "check", "doctor", "bootstrap", "certificates", "readiness", "diff", "export --format jsonl",
        "share", "reduce", "report", "tables -o t", "follow", "replay", "captures vacuum",
        "captures merge -o new.sqlite 1.sqlite",
    ):  # fmt: skip
        status, _, err = run(*words.split(), "3.sqlite")
        assert (status, err.splitlines()[0].partition(": ")[2], err.splitlines()[-1]) == (
            2, "3.sqlite is a capture of version 4; this puppet-inspector reads versions up to 3.",
            "  Upgrade puppet-inspector.",
        ), words  # fmt: skip
    with pytest.raises(CaptureError, match="version 4"):
        Capture.create(folder / "3.sqlite")
    assert (folder / "3.sqlite").read_bytes() == before


# -- JSON -----------------------------------------------------------------------------------------------------


def lacking(old: Any, new: Any, place: str) -> Iterator[str]:
    """Yield what a program that reads ``old`` misses in ``new``: a key, a type, elements of a list."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old:
            yield from lacking(old[key], new[key], f"{place}.{key}") if key in new else [f"{place}.{key}"]
    elif isinstance(old, list) and isinstance(new, list):
        yield from [f"{place}: {len(new)} of {len(old)}"] * (len(new) < len(old))
        for each, other in zip(old, new, strict=False):
            yield from lacking(each, other, f"{place}[]")
    elif type(old) is not type(new) and old is not None and new is not None:  # where it may be null: test_stable
        yield f"{place}: {old!r} is {new!r}"


@pytest.mark.parametrize("name", OUTPUTS)
def test_json_has_what_it_had(run: Run, folder: Path, name: str) -> None:
    for path in ("1.sqlite", "2.sqlite"):
        (folder / path).unlink()
    _, out, _ = run(*COMMANDS[name].split(), "--json")
    assert list(lacking(OUTPUTS[name], valid(name, out), name)) == []


def test_an_earlier_check_is_a_baseline(run: Run, folder: Path) -> None:
    """Of the two findings one is in other words now."""
    (folder / "earlier.json").write_text(json.dumps(OUTPUTS["check"]))
    status, out, _ = run("check", "3.sqlite", "--json", "--baseline", "earlier.json")
    assert (status, [found["rule"] for found in OUTPUTS["check"]["findings"]]) == (1, ["S01", "R20"])
    assert [found["rule"] for found in strict(out)["findings"]] == ["R20"]


@pytest.mark.parametrize("ending", ["jsonl", "har"])
def test_exported_records_are_imported(run: Run, folder: Path, ending: str) -> None:
    assert run("import", FOLDER / f"records.{ending}", "-o", "imported.sqlite")[0] == 0
    status, out, _ = run("list", "imported.sqlite", "--json")
    assert status == 0
    assert [(each["status"], [found["rule"] for found in each["findings"]]) for each in strict(out)] == [(500, ["S01"])]


# -- tables ---------------------------------------------------------------------------------------------------


def test_tables_are_read(run: Run, tmp_path: Path) -> None:
    tables = shutil.copytree(FOLDER / "tables", tmp_path / "tables")
    status, out, err = run("sql", tables, "SELECT certname, outcome, site FROM runs", "--json")
    assert (status, err) == (0, "")
    assert strict(out) == [{"certname": "web1.lab.example", "outcome": "failed", "site": "paris"}]


def test_tables_that_say_less_are_converted_again(run: Run, folder: Path) -> None:
    tables = shutil.copytree(FOLDER / "tables", folder / "tables")
    status, _, err = run("sql", tables, "--query", "failing")
    assert status == 2
    assert "An earlier version made these tables" in err
    assert f"puppet-inspector tables CAPTURES -o {tables}" in err
    assert run("tables", "3.sqlite", "-o", tables)[0] == 0
    status, out, _ = run("sql", tables, "--query", "failing", "--json")
    assert (status, strict(out)[0]["standing_cause"]) == (0, "S01")


# -- configuration --------------------------------------------------------------------------------------------


def test_options_of_the_package_are_accepted() -> None:
    words = options_file.assignments_of(FOLDER / "puppet-inspector.conf")
    assert parse_assignments(words) == {
        "puppet_listen": "127.0.0.1:8140",
        "puppet_capture": "/var/lib/puppet-inspector/",
    }


def test_a_rules_file_is_accepted() -> None:
    found = ruleset.load(FOLDER / "rules.yaml")
    assert found.warnings == ()
    rules = {rule.id: rule for rule in found.rules}
    assert (rules.get("B45"), rules["B39"].chosen, rules["S08"].thresholds["warning_s"]) == (None, "warning", 20)
    assert rules["U02"].severity == "notice"
    assert [sorted(ignore.rules) for ignore in found.ignores] == [["B01", "B03"]]


def test_rules_in_python_are_accepted(tmp_path: Path) -> None:
    directory = shutil.copytree(FOLDER / "rules", tmp_path / "rules")
    for path in (directory, *directory.iterdir()):
        path.chmod(0o700)  # one that others may write is refused
    found = ruleset.load(None, directory)
    assert (found.warnings, [rule.id for rule in found.rules if rule.id.startswith("U")]) == ((), ["U10"])


def test_each_former_name_is_on_the_page() -> None:
    page = (DOCS / "stability.md").read_text().partition("## From 0.1")[2]
    former = [*FORMER, *options.FORMER, *(name for names in FORMER_OPTIONS.values() for name in names)]
    assert [name for name in former if f"`{name}`" not in page and f" {name}`" not in page] == []


def test_an_option_that_is_gone_says_what_to_write(run: Run) -> None:
    status, _, err = run("proxy", "--set", "puppet_lean=true")
    assert (status, err.splitlines()) == (2, [
        "puppet-inspector: There is no option puppet_lean any more.",
        "  Leave it out: `puppet-inspector proxy` is what it was for.",
    ])  # fmt: skip
