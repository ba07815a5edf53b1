"""Ctrl-C, SIGTERM, a closed terminal and a full disk: nothing half written remains, and nothing is lost."""

from __future__ import annotations

import fcntl
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

import pytest

from inspector.capture.store import Capture
from inspector.cli import main as cli
from inspector.model import Exchange, Leg, Request, Response
from inspector.summaries import index
from tests.support import places
from tests.support.captures import save
from tests.support.conversations import START
from tests.tui.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from inspector.model import Record
    from tests.conftest import Run

WRITING = {
    "merge": ("captures", "merge", "{}/a.sqlite", "{}/b.sqlite", "-o", "{}/new.sqlite"),
    "vacuum": ("captures", "vacuum", "{}/a.sqlite"),
    "share": ("share", "{}/a.sqlite", "-o", "{}/new.sqlite"),
    "report": ("report", "{}/a.sqlite", "-o", "{}/new.html"),
    "export to HAR": ("export", "{}/a.sqlite", "-o", "{}/new.har"),
    "export to flows": ("export", "{}/a.sqlite", "-o", "{}/new.mitm"),
    "export to jsonl": ("export", "{}/a.sqlite", "-o", "{}/new.jsonl", "--with-secrets"),
    "export to packets": ("export", "{}/a.sqlite", "-o", "{}/new.pcapng", "--with-secrets"),
    "import of jsonl": ("import", "{}/a.jsonl", "-o", "{}/new.sqlite"),
    "import of HAR and flows": ("import", "{}/a.har", "{}/a.mitm", "-o", "{}/new.sqlite"),
    "captures": ("captures", "{}"),
}
READING = {
    "runs": ("runs", "{}"),
    "list": ("list", "{}"),
    "check": ("check", "{}"),
    "doctor": ("doctor", "{}/a.sqlite"),
    "bootstrap": ("bootstrap", "{}/a.sqlite"),
    "show": ("show", "{}/a.sqlite", "3"),
    "export to the output": ("export", "{}/a.sqlite"),
}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two captures, and the first one in each format."""
    folder = tmp_path_factory.mktemp("prepared")
    for name, sample in (("a", "bootstrap-waiting"), ("b", "compile-error")):
        shutil.copy(places.SAMPLES / f"{sample}.sqlite", folder / f"{name}.sqlite")
    for ending in ("jsonl", "har", "mitm"):
        assert cli.main(["export", str(folder / "a.sqlite"), "-o", str(folder / f"a.{ending}")]) == 0
    return folder


@pytest.fixture
def folder(prepared: Path, tmp_path: Path) -> Path:
    return shutil.copytree(prepared, tmp_path / "captures")


def content(folder: Path) -> dict[str, object]:
    """What is in a directory; an index may be as far as it is, nothing may be beside it."""
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".index"}
    return files | {path.name: records(path) for path in folder.glob("*.sqlite")}


def records(path: Path) -> list[Record]:
    with Capture.open(path) as capture:
        return list(capture.records())


def watch(monkeypatch: pytest.MonkeyPatch, look: Callable[[int], None]) -> None:
    """Call something with how often a command has reported how far it is, in place of the bar."""
    calls = 0

    def report(*_: object) -> None:
        nonlocal calls
        calls += 1
        look(calls)

    monkeypatch.setattr("inspector.progress.unwatched", report)


def reports(run: Run, words: list[str]) -> int:
    """How often a command reports how far it is."""
    counted = 0

    def count(calls: int) -> None:
        nonlocal counted
        counted = calls

    with pytest.MonkeyPatch.context() as patch:
        watch(patch, count)
        assert run(*words)[0] in (0, 1)
    return counted


@pytest.mark.slow
@pytest.mark.parametrize("name", [*WRITING, *READING])
def test_whenever_a_signal_ends_it_nothing_remains(
    name: str, prepared: Path, folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = (WRITING | READING)[name]
    whole = shutil.copytree(prepared, tmp_path / "whole")
    number = reports(run, [word.format(whole) for word in words])
    assert number > 4
    before = content(folder)
    moments = sorted({1, 2, number // 3, number // 2, number - 1})
    for moment, ending in zip(moments, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) * 2, strict=False):
        with monkeypatch.context() as patch:
            watch(patch, lambda calls: signal.raise_signal(ending) if calls == moment else None)  # noqa: B023
            status, _, err = run(*(word.format(folder) for word in words))
        assert (status, err) == (128 + ending, ""), moment
        assert content(folder) == before, (moment, number)
        for path in folder.glob("*.index"):
            path.unlink()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.slow
def test_an_index_that_was_interrupted_is_completed(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run("captures", folder)
    for path in folder.glob("*.index"):
        path.unlink()
    with monkeypatch.context() as patch:
        watch(patch, lambda calls: signal.raise_signal(signal.SIGINT) if calls == 3 else None)
        run("captures", folder)
    with open(f"{index.place(folder / 'a.sqlite')}.lock", "w") as lock:  # noqa: PTH123 - nobody has locked it
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    (folder / "a.sqlite.index.lock").unlink()
    assert run("captures", folder) == whole


def test_a_second_ctrl_c_does_not_interrupt_the_cleaning(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content(folder)
    abandon = Capture.abandon

    def slowly(capture: Capture) -> None:
        signal.raise_signal(signal.SIGINT)
        abandon(capture)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(Capture, "abandon", slowly)
    watch(monkeypatch, lambda calls: signal.raise_signal(signal.SIGINT) if calls == 5 else None)
    words = (word.format(folder) for word in WRITING["import of jsonl"])
    assert run(*words) == (130, "", "")
    assert content(folder) == before


def _no_room() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in WRITING if name != "captures"])
def test_a_full_disk_leaves_nothing_behind(name: str, folder: Path) -> None:
    """Here no file may be larger than the room that a disk would have."""
    bodies = [os.urandom(40_000) for _ in range(3)]
    leg = Leg("a", "agent", "192.0.2.1", 1, START)
    exchanges = [
        Exchange(leg, Request(started=START, ended=START, method="GET", target="/"), Response((), body, status=200))
        for body in bodies
    ]
    save(folder / "a.sqlite", *exchanges)
    for ending in ("jsonl", "har", "mitm"):
        (folder / f"a.{ending}").unlink()
        assert cli.main(["export", str(folder / "a.sqlite"), "-o", str(folder / f"a.{ending}"), "--with-secrets"]) == 0
    before = content(folder)
    words = [word.format(folder) for word in WRITING[name]]
    if name.startswith("export"):
        words.append("--with-secrets")
    command = [sys.executable, "-m", "inspector.cli", *words]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=_no_room)
    assert (done.returncode, done.stdout) == (2, "")
    sentence, hint = done.stderr.splitlines()
    copied = f"No copy of the capture can be made in {tempfile.gettempdir()}: "
    refused = copied if name == "report" else f"Cannot write {folder}/"
    assert sentence.startswith(f"puppet-inspector: {refused}")
    assert "/." not in sentence, "a name that nobody gave"
    assert hint
    assert content(folder) == before


@pytest.mark.slow
@pytest.mark.parametrize("name", ["merge", "share", "report", "captures", "runs", "import of jsonl", "export to jsonl"])
def test_ctrl_c_on_a_terminal(name: str, folder: Path) -> None:
    """What is large enough for a bar, on a real terminal: the bar is erased, and the prompt comes back."""
    from tests.bench.terminal import write

    write(folder / "large.sqlite", 25_000 if name.startswith("import") else 60_000)
    (folder / "a.sqlite").unlink()
    (folder / "large.sqlite").rename(folder / "a.sqlite")
    if name.startswith("import"):
        (folder / "a.jsonl").unlink()
        words = ["export", str(folder / "a.sqlite"), "-o", str(folder / "a.jsonl"), "--with-secrets"]
        assert cli.main(words) == 0
    before = content(folder)
    words = [word.format(folder) for word in (WRITING | READING)[name]]
    with Terminal("-m", "inspector.cli", *words, size=(80, 24)) as terminal:
        terminal.wait_for(" left")
        os.write(terminal._fd, b"\x03")
        assert terminal.exit_status() == 130
        drawn = bytes(terminal.drawn)
    assert b"Traceback" not in drawn
    assert drawn.rindex(b"\x1b[?25h") > drawn.rindex(b" left"), "the cursor is there again"
    assert drawn.rstrip(b"^C\r\n").endswith(b"\x1b[2K"), "the line is erased"
    assert content(folder) == before
