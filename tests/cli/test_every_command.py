"""What goes wrong around a command is one sentence and a status, whatever the command is: never a traceback."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inspector.cli import commands
from inspector.cli import main as cli
from tests.docs import commands_page
from tests.support import places
from tests.support.captures import save
from tests.support.conversations import Agent, together
from tests.support.terminals import pretend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.conftest import Run

WORDS = {
    "open": "{}/a.sqlite",
    "demo": "--fault list",
    "proxy": "--set puppet_nothing=1",
    "run": "-- no-such-command",
    "tap": "--config {}/none",
    "runs": "{}",
    "list": "{}",
    "follow": "{}/a.sqlite --all",
    "show": "{}/a.sqlite 1",
    "check": "{}",
    "auth": "{}/a.sqlite --auth-conf {}/auth.conf",
    "readiness": "{}",
    "puppetdb": "{}/a.sqlite",
    "why": "{}/a.sqlite File[/srv/agent/node1.example/managed]",
    "doctor": "{}/a.sqlite",
    "rules": "test {}/rules.yaml",
    "replay": "{}/a.sqlite --run 99",
    "rehearse": "{}/a.sqlite --master localhost:1 --road v5",
    "fix": "new-crl --cadir {}/none",
    "bootstrap": "{}/a.sqlite",
    "report": "{}/a.sqlite --format markdown",
    "export": "{}/a.sqlite",
    "share": "{}/a.sqlite -o {}/shared.sqlite",
    "reduce": "{}/a.sqlite -o {}/reduced.sqlite",
    "import": "{}/a.jsonl -o {}/new.sqlite",
    "captures": "{}",
    "diff": "{}/a.sqlite:1 {}/a.sqlite:1",
    "tables": "{} -o {}/tables",
    "sql": "{} --query versions",
    "fleet": "report {}/made --json",
    "certificates": "{}",
    "captures merge": "{}/a.sqlite {}/b.sqlite -o {}/new.sqlite",
    "captures vacuum": "{}/a.sqlite",
    "provision": "No_Name",
    "explain": "B01",
    "addon": "",
    "completion": "bash",
    "help": "check",
}
"""A command line of each command that ends by itself, once its output is not taken any more."""
MISTAKES = ("open", "proxy", "run", "tap", "replay", "rehearse", "fix", "provision")
"""Those that are none here."""
MUTE = {"COLUMNS": "40", "PYTHONUNBUFFERED": ""}
QUICK = ("check", "explain", "export", "captures merge")
APART = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in WORDS]
"""For tests that start a process each."""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    for name, sample in (("a", "first-run"), ("b", "compile-error")):
        shutil.copy(places.SAMPLES / f"{sample}.sqlite", folder / f"{name}.sqlite")
    assert cli.main(["export", str(folder / "a.sqlite"), "-o", str(folder / "a.jsonl")]) == 0
    assert cli.main(["tables", str(folder / "a.sqlite"), "-o", str(folder / "made")]) == 0
    (folder / "rules.yaml").write_text("rules: {U01: {title: a title, when: 'phase:catalog'}}\n")
    (folder / "auth.conf").write_text("authorization: { version: 1, rules: [] }\n")
    return folder


@pytest.fixture
def folder(prepared: Path, tmp_path: Path) -> Path:
    return shutil.copytree(prepared, tmp_path / "captures")


def words_of(name: str, folder: Path) -> list[str]:
    return [*name.split(), *(word.replace("{}", str(folder)) for word in WORDS[name].split())]


def ended(
    words: list[str], *, stdout: int | None = None, prepare: Callable[[], None] = lambda: None
) -> tuple[int, list[str]]:
    """The status of a command in a process of its own, and the lines of its errors."""
    environment: Mapping[str, str] = os.environ | MUTE
    command = [sys.executable, "-m", "inspector.cli", *words]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, text=True, env=environment,
        preexec_fn=prepare, timeout=300, check=False,
    )  # fmt: skip
    return done.returncode, done.stderr.splitlines()


def test_every_command_is_tried() -> None:
    assert set(WORDS) == set(commands.COMMANDS)


@pytest.mark.slow
@pytest.mark.parametrize("name", APART)
def test_a_full_disk(name: str, folder: Path) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        status, lines = ended(words_of(name, folder), stdout=full)
    finally:
        os.close(full)
    *notes, sentence, hint = lines
    assert status == 2
    assert hint.startswith("  ")
    assert all(note.startswith("puppet-inspector: withheld: ") for note in notes)
    if name not in MISTAKES:
        assert sentence == "puppet-inspector: Cannot write the output: No space left on device."


@pytest.mark.slow
@pytest.mark.parametrize("name", APART)
def test_a_pipe_that_nobody_reads(name: str, folder: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        status, lines = ended(words_of(name, folder), stdout=writing)
    finally:
        os.close(writing)
    if name in MISTAKES:
        assert (status, len(lines)) == (2, 2)
    else:
        assert [line for line in lines if not line.startswith("puppet-inspector: withheld: ")] == []
        finds = name in commands_page.found() and (name in READERS or name == "doctor")
        assert status in ((0, 1) if finds else (0,))


@pytest.mark.slow
@pytest.mark.parametrize("name", APART)
def test_streams_that_are_closed(name: str, folder: Path, run: Run) -> None:
    before = {path.name for path in folder.iterdir()}
    status, lines = ended(words_of(name, folder), prepare=lambda: os.closerange(0, 2))
    assert status == 2
    assert "puppet-inspector: " in lines[-2]
    assert lines[-1].startswith("  ")
    assert "Traceback" not in "".join(lines)
    for made in {path.name for path in folder.iterdir()} - before:  # whole, and not written to by mistake
        assert made.endswith(".index") or (folder / made).is_dir() or run("runs", folder / made)[0] == 0


def with_a_path(path: str) -> Iterator[tuple[str, list[str]]]:
    """Each command line with this path in the place of each of its paths, and as the value of each option for one."""
    for name, line in WORDS.items():
        if name in ("open", "demo", "run", "follow"):  # they wait for what comes
            continue
        words = line.split()
        for place in (at for at, word in enumerate(words) if "{}" in word):
            yield name, [*words[:place], path, *words[place + 1 :]]
        parser = argparse.ArgumentParser()
        commands._module(name).add_arguments(parser)
        for option in path_options(parser):
            yield name, [*words, option, path]


def path_options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from path_options(inner)
        elif action.option_strings and action.type is Path:
            yield action.option_strings[-1]


ODD = [*with_a_path(".")]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "words"), ODD, ids=[f"{name} {' '.join(words)}" for name, words in ODD])
def test_a_path_without_a_name(
    name: str, words: list[str], folder: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, _, err = run(name, *(word.replace("{}", str(folder)) for word in words))
    assert status in (0, 1, 2), err


@pytest.mark.slow
def test_errors_that_nobody_can_read(folder: Path) -> None:
    for words, expected in ((["explain", "B01"], 0), (["show", str(folder / "a.sqlite"), "99"], 2)):
        status, lines = ended(words, stdout=subprocess.DEVNULL, prepare=lambda: os.close(2))
        assert (status, lines) == (expected, [])


@pytest.mark.parametrize("name", WORDS)
def test_ctrl_c(name: str, folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a command does first, it is interrupted."""
    module = commands._module(name)
    execute = module.execute

    def interrupted(*arguments: object) -> int:
        signal.raise_signal(signal.SIGINT)
        return execute(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "execute", interrupted)
    assert run(*words_of(name, folder)) == (130, "", "")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in WORDS if name not in ("open", "follow")])
def test_a_narrow_terminal(name: str, folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    words = words_of(name, folder)
    pretend(monkeypatch, 40)
    status, out, err = run(*words)
    assert (status == 2) is (name in MISTAKES)
    assert out or name in MISTAKES
    assert "Traceback" not in err
    assert run(name, "--help")[0] == 0


@pytest.mark.parametrize("name", [name for name in WORDS if name != "follow"])
def test_no_terminal(name: str, folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    status, out, err = run(*words_of(name, folder))
    assert "\x1b" not in out + err
    assert status == 0 or name in MISTAKES or (status == 1 and name in commands_page.found()), err
    if name in MISTAKES:
        assert (status, out, err.count("\n")) == (2, "", 2)


@pytest.mark.slow
def test_a_locale_with_few_characters_is_no_mistake(tmp_path: Path, run: Run) -> None:
    agent = Agent().ask("GET", f"/puppet/v3/file_metadata/modules/{'long' * 20}")
    path = save(tmp_path / "c.sqlite", *together(agent))
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "inspector.cli", "list", str(path)]
    done = subprocess.run(command, capture_output=True, env=environment, check=True)
    assert done.stderr == b""
    assert done.stdout.decode("unicode_escape") == run("list", path)[1]
    assert b"\\u2026" in done.stdout


def test_before_the_command_line_is_read_ctrl_c_ends_it_without_a_word() -> None:
    script = (
        "import os, signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'inspector.cli.main':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from inspector.cli.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


REST = {
    "why": "File[/srv/agent/node1.example/managed]",
    "auth": "--auth-conf {}/auth.conf",
    "tables": "-o new/tables",
    "sql": "--query versions",
    "share": "-o new/shared.sqlite",
    "reduce": "-o new/reduced.sqlite",
    "report": "--format markdown",
    "show": "1",
}
"""What readers need besides captures."""
READERS = {name: kind for kind, names in commands_page.readers().items() for name in names}
ENDLESS = ("open", "follow", "replay", "rehearse")
"""Readers that need a terminal, an agent or a master."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in ("sql", "certificates", "tables") else ())
        for name in READERS
        if name not in ENDLESS
    ],
)
def test_a_reader_takes_nothing_a_file_several_and_a_directory(
    name: str, folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    os.utime(folder / "a.sqlite")  # the newest
    one, two = folder / "a.sqlite", folder / "b.sqlite"
    results = []
    for number, given in enumerate([[], [one], [folder], [one, two]]):
        if len(given) == 2 and READERS[name] == "one" and name != "diff":
            continue
        shutil.rmtree("new", ignore_errors=True)
        Path("new").mkdir()
        rest = [word.replace("{}", str(folder)) for word in REST.get(name, "").split()]
        before = set(folder.iterdir())
        status, out, err = run(name, *given, *rest, "--rules", folder / "rules.yaml")
        undecided = name == "diff"  # no other run of its agent, or one without a catalog
        assert status in ((2,) if undecided else (0, 1) if name in commands_page.found() else (0,)), (number, err)
        assert "Traceback" not in err
        assert all(path.suffix in (".index", ".lock") for path in set(folder.iterdir()) - before), (
            "nothing is beside it"
        )
        results.append((status, out.replace(str(folder), "captures")))
    if name not in ("export", "reduce"):  # what they withhold gets new stand-ins each time
        assert results[0] == results[1], "without a name it is the newest"
    if name == "reduce":  # their sizes may differ
        assert [result[1].split(",")[0] for result in results[:2]] == ["2 records of 22"] * 2
    if READERS[name] == "one":
        assert results[1] == results[2], "so it is of a directory"


def test_what_changes_a_capture_never_chooses_it(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    before = {path: path.read_bytes() for path in Path("captures").rglob("*") if path.is_file()}
    for words in (
        ["captures", "vacuum"],
        ["captures", "merge", "-o", "new.sqlite"],
        ["captures", "merge", "captures/a.sqlite"],
    ):
        status, out, err = run(*words)
        assert (status, out) == (2, "")
        assert "the following arguments are required" in err
    for words in (["captures", "vacuum", "captures"], ["captures", "merge", "captures", "-o", "new.sqlite"]):
        status, out, err = run(*words)
        assert (status, out) == (2, "")
        assert "captures is a directory." in err
    assert {path: path.read_bytes() for path in Path("captures").rglob("*") if path.is_file()} == before
    assert not Path("new.sqlite").exists()
