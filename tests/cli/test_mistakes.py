"""Errors of the user: one sentence, a hint, exit status 2, no traceback."""

from __future__ import annotations

import dataclasses
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inspector.lab.ca import LabCA
from tests.support.captures import save
from tests.support.conversations import START, Agent, together
from tests.support.users import as_nobody

if TYPE_CHECKING:
    from tests.conftest import Run

MISTAKES: list[tuple[list[str], str]] = [
    (["runs", "{tmp}/none.sqlite"], "There is no capture at"),
    (["check", "{tmp}/none.sqlite"], "There is no capture at"),
    (["show", "{tmp}/text.sqlite", "1"], "text.sqlite is not a capture."),
    (["show", "{tmp}/good.sqlite", "99"], "has no record 99."),
    ([], "is not a terminal"),
    (["open", "{tmp}/good.sqlite"], "is not a terminal"),
    (["import", "{tmp}/none.mitm", "-o", "{tmp}/x.sqlite"], "Cannot read"),
    (["import", "{tmp}/text.sqlite", "-o", "{tmp}/x.sqlite"], "is not a flow file"),
    (["import", "{tmp}/text.sqlite", "-o", "{tmp}/text.sqlite/x.sqlite"], "is not a flow file"),
    # Paths without a name.
    *(
        ([command, path], f"There is no capture in {path.rstrip('/')}/.")
        for command in ("report", "share")
        for path in (".", "/", "..")
    ),
    (["import", ".", "-o", "{tmp}/x.sqlite"], "Cannot read ."),
    (["import", "{tmp}/good.sqlite", "-o", "~nobody-of-this-name/x"], "~nobody-of-this-name/x has no home directory"),
    (
        [
            "rehearse",
            "{tmp}/good.sqlite",
            "--master",
            "x",
            "--stores-data-of-nodes",
            "--road",
            "mint:~nobody-of-this-name",
        ],
        "~nobody-of-this-name has no home directory",
    ),
]


@pytest.mark.parametrize(("argv", "message"), MISTAKES, ids=[" ".join(row[0]) for row in MISTAKES])
def test_a_mistake_is_one_sentence_and_a_hint(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argv: list[str], message: str
) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a/b")
    (tmp_path / "text.sqlite").write_text("no capture " * 100)
    save(tmp_path / "good.sqlite", *together(Agent().run()))
    status, out, err = run(*(word.replace("{tmp}", str(tmp_path)) for word in argv))
    lines = err.splitlines()
    assert (status, out, len(lines)) == (2, "", 2)
    assert lines[0].startswith("puppet-inspector: ")
    assert message in lines[0]
    assert lines[1].startswith("  ")
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("argv", "message"),
    [(["show"], "are required: record."), (["check", "x", "--fail-on", "sometimes"], "invalid choice: 'sometimes'")],
)
def test_a_wrong_command_line_exits_with_2(run: Run, argv: list[str], message: str) -> None:
    status, out, err = run(*argv)
    sentence, hint = err.splitlines()
    assert (status, out, hint) == (2, "", f"  See `puppet-inspector {argv[0]} --help`.")
    assert sentence.startswith(f"puppet-inspector: `puppet-inspector {argv[0]}`: ")
    assert message in sentence


@pytest.mark.slow
def test_a_closed_pipe_gives_no_traceback(tmp_path: Path) -> None:
    agents = [dataclasses.replace(Agent(f"n{n}.example", f"192.0.2.{n}", time=START + n)).run() for n in range(60)]
    path = save(tmp_path / "c.sqlite", *together(*agents))
    command = [sys.executable, "-m", "inspector.cli", "runs", str(path), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout
        assert child.stderr
        assert child.stdout.readline() == "[\n"
        child.stdout.close()
        assert child.stderr.read() == ""
    assert child.returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_directories_that_the_user_may_not_read(tmp_path: Path) -> None:
    """For every user but root this is the first thing that goes wrong; there is nothing to diagnose then."""
    ssldir = LabCA("master.example").enrol(tmp_path / "ssl", "node.example").path
    status, out, err = as_nobody("doctor", "--ssldir", ssldir)
    assert (status, out) == (2, "")
    assert err == f"puppet-inspector: Cannot read {ssldir}: permission denied.\n  Run this as root.\n"
    with tempfile.TemporaryDirectory() as base:
        Path(base).chmod(0o755)
        entered = LabCA("master.example").enrol(Path(base) / "ssl", "node.example").path
        for path in (entered, entered / "certs", entered / "private_keys"):
            path.chmod(0o755 if path == entered else 0o700)
        status, out, err = as_nobody("doctor", "--ssldir", entered)
    assert (status, out) == (2, "")
    assert err.splitlines()[0] == f"puppet-inspector: Cannot read the directories in {entered}: permission denied."
    # The directory in use may be one of root's as well: a master can be checked without it.
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = "{}:{}".format(*closed.getsockname())
    status, out, err = as_nobody("doctor", "--live", address)
    assert (status, err) == (1, "")
    assert out.startswith("1 error\nERROR no connection: ")
