"""On a terminal: colour by severity, lines of its width, commands in one piece. In a pipe: plain, always the same."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from inspector.cli.output import columns, print_block, print_line
from inspector.model import Severity
from inspector.summaries.wording import Block
from tests.support import places
from tests.support.captures import save
from tests.support.nodes import uncompiled, well
from tests.support.terminals import plain, pretend, too_long

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

COMMANDS = {
    "check": ("check", "{}"),
    "runs": ("runs", "{}"),
    "runs --full": ("runs", "{}", "--full"),
    "list": ("list", "{}"),
    "captures": ("captures", "{}"),
    "doctor": ("doctor", "{}/mismatched-key.sqlite"),
    "doctor of an error": ("doctor", "{}/compile-error.sqlite"),
    "bootstrap": ("bootstrap", "{}/bootstrap-waiting.sqlite"),
    "explain a rule": ("explain", "B23"),
    "explain an endpoint": ("explain", "file_metadatas"),
    "explain a message": ("explain", "Could not retrieve catalog from remote server: Error 500"),
    "explain a section": ("explain", "#reports"),
    "demo": ("demo", "--fault", "help"),
}


_RUNS = r"began|version|[\d:.]+"
BRIEF = {
    ("list", 80): r"(?![A-Z]\d\d$).*", ("captures", 80): r"to|size|notices|[\d.]+",
    ("runs", 80): _RUNS, ("runs --full", 80): _RUNS,
}  # fmt: skip
"""What tables leave out there, rather than take two lines: of records, anything but their findings."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path in places.SAMPLES.glob("*.sqlite"):
        shutil.copy(path, tmp_path)
    return tmp_path


def test_a_width_is_known_of_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert columns() is None
    pretend(monkeypatch, 60)
    assert columns() == 60
    monkeypatch.setenv("COLUMNS", "1")
    assert columns() == 20
    for odd in ("0", "", "many"):
        monkeypatch.setenv("COLUMNS", odd)
        assert columns() == 80


def test_a_severity_has_its_colour(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    block = Block(["ERROR B18 [bold]title[/]: :smile: 12", "  why"], "ERROR", Severity.ERROR)
    print_block(block)
    assert capsys.readouterr().out == "\n".join([*block.lines, ""])
    pretend(monkeypatch, 80)
    print_block(block)
    assert capsys.readouterr().out == "\x1b[1;31mERROR\x1b[0m B18 [bold]title[/]: :smile: 12\n  why\n"
    monkeypatch.setenv("NO_COLOR", "1")
    print_block(block)
    assert "31m" not in capsys.readouterr().out


def test_a_line_is_wrapped_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = f"{'word ' * 30}`a command of some words`"
    print_line(line)
    assert capsys.readouterr().out == f"{line}\n"
    pretend(monkeypatch, 40)
    print_line(line)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 40
    assert "`a command of some words`" in lines[-1]
    assert lines[1].startswith("    word")


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_terminal_gets_lines_of_its_width(name: str, folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [word.format(folder) for word in COMMANDS[name]]
    status, piped, err = run(*words)
    assert "\x1b" not in piped
    # Not the lines of tables and the quotes of code in Markdown, and not the name of a column that stands below or is
    # empty.
    needed = {word.strip("|-`,.;:()") for word in piped.split() if "…" not in word} - {"phases", "state"}
    for width in (40, 80, 200):
        pretend(monkeypatch, width)
        printed = run(*words)
        assert (width, printed[0], printed[2]) == (width, status, err)
        assert too_long(printed[1], width) == [] or (name, width) == ("explain a section", 40)
        shown = "".join(plain(printed[1]).split())
        spare = BRIEF.get((name, width))
        missing = {word for word in needed if word not in shown and not (spare and re.fullmatch(spare, word))}
        assert missing == set(), width


def test_a_terminal_that_is_wide_shows_more_of_a_path(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "first-run.sqlite"
    long = "file_content/modules/demo/tree/conf.d/log.conf"
    pretend(monkeypatch, 200)
    assert f"{long} " in run("list", path)[1]
    pretend(monkeypatch, 70)
    assert "file_content/modules/demo/single.txt " in run("list", path)[1], "on a line of its own there is room"
    pretend(monkeypatch, 80)
    lines = run("list", path)[1].splitlines()
    assert [int(line.split()[0]) for line in lines] == list(range(1, 23)), "a line each"
    pretend(monkeypatch, 110)
    first = plain(run("list", path)[1]).splitlines()[0]
    assert len(first) <= 110


@pytest.mark.parametrize("width", [80, 120])
def test_captures_is_a_table(width: int, folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "with-a-name-of-a-length-that-is-rare.sqlite").write_text("no capture " * 100)
    pretend(monkeypatch, width)
    out = plain(run("captures", folder)[1])
    head, *lines = out.splitlines()[:-1]
    names = [line.split()[0] for line in lines if not line.startswith(" ") and ".sqlite " in line + " "]
    assert sorted(names) == sorted(path.name for path in folder.glob("*.sqlite"))
    assert {"capture", "runs", "errors", "warnings"} <= set(head.split())
    assert ("from" in head.split()) is (width == 120)
    assert "    " + str(folder) in out, "what is wrong with one is below it"
    assert too_long(out, width) == []


def test_list_names_each_capture_once(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    two = [folder / "revoked.sqlite", folder / "first-run.sqlite"]
    pretend(monkeypatch, 80)
    lines = plain(run("list", *two)[1]).splitlines()
    assert [line for line in lines if not line.startswith(" ")] == list(map(str, two))
    assert len(lines) == 2 + 3 * 3 + 22, "why a TLS handshake failed takes three"


def test_list_has_a_line_where_a_further_run_begins(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "a.sqlite", *well(1), *uncompiled(2, 1000))
    assert "-- run" not in run("list", path)[1], "not in a pipe"
    pretend(monkeypatch, 80)
    lines = plain(run("list", path)[1]).splitlines()
    (at,) = (number for number, line in enumerate(lines) if not line.startswith(" "))
    assert lines[at] == "-- run 2 of web2.example: failed"
    assert at == len(well(1))


@pytest.mark.parametrize("name", ["check", "doctor", "runs"])
def test_the_commands_of_a_fix_are_never_broken(
    name: str, folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [word.format(folder) for word in COMMANDS[name]]

    def commands() -> list[str]:
        lines = plain(run(*words)[1]).splitlines()
        return [line.strip() for line in lines if line.strip().startswith(("puppetserver ca ", "puppet "))]

    piped = commands()
    assert "puppetserver ca clean --certname node1.example" in piped
    pretend(monkeypatch, 30)
    assert [command for command in commands() if command in piped] == piped


@pytest.mark.slow
@pytest.mark.parametrize("name", ["check", "doctor", "runs", "list"])
def test_what_is_wrong_is_coloured(name: str, folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [word.format(folder) for word in COMMANDS[name]]
    pretend(monkeypatch, 100)
    red = "\x1b[1;31m"
    marked = {"check": "ERROR", "doctor": "run 1:", "runs": "failed", "list": "B18"}[name]
    assert f"{red}{marked}\x1b[0m" in run(*words)[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "31m" not in run(*words)[1]
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in run(*words)[1]
