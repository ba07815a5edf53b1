"""``puppet-inspector replay``: what it prints, what it leaves behind, its mistakes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inspector.capture.store import Capture
from inspector.cli import replay
from inspector.lab.agent import LabAgent
from inspector.lab.wire import ServerAddress
from inspector.model import Exchange
from inspector.replay.agent_command import FOLDER
from inspector.runs.examples import asked, catalog, node, plugins, report, talk, together
from tests.support import json_output
from tests.support.captures import save
from tests.support.replays import NAME, sample, wire

if TYPE_CHECKING:
    from collections.abc import Callable

    from inspector.replay.master import ReplayMaster
    from tests.conftest import Run


def agent_of(master: ReplayMaster) -> LabAgent:
    """The agent of the command that is printed."""
    folder = master._place.path.parent / FOLDER
    return LabAgent(master.recording.certname, folder, ServerAddress(NAME, master.address))


TARGET = "/puppet/v3/file_metadata/modules/m/a?environment="
type Plays = Callable[[Callable[[ReplayMaster], object]], None]


@pytest.fixture
def plays(monkeypatch: pytest.MonkeyPatch) -> Plays:
    """Let something happen to the master, and then Ctrl-C."""

    def play(what: Callable[[ReplayMaster], object]) -> None:
        take, left = replay._take, [what]

        def then_interrupted(master: ReplayMaster, journal: object, printer: object) -> None:
            if left:
                left.pop()(master)
                raise KeyboardInterrupt
            take(master, journal, printer)  # type: ignore[arg-type]

        monkeypatch.setattr(replay, "_take", then_interrupted)

    return play


def test_a_run(run: Run, tmp_path: Path, plays: Plays) -> None:
    plays(lambda master: print(agent_of(master).run().status))
    status, out, err = run("replay", sample(tmp_path, "first-run"), "-o", tmp_path / "new.sqlite")
    assert (status, err) == (0, "")
    assert "run 1 of node1.example in " in out
    assert "note: the agent will execute code of this capture" in out
    assert "  puppet agent -t --noop --server localhost --serverport " in out
    assert "== run 1 of node1.example (7.23.0): complete" in out
    assert "recorded and never asked" not in out
    assert out.endswith(f"22 requests, all answered as recorded: {tmp_path}/new.sqlite\n")
    with Capture.open(tmp_path / "new.sqlite") as capture:
        assert sum(isinstance(record, Exchange) for record in capture.records()) == 22


def test_what_was_missing_and_what_was_not_asked(run: Run, tmp_path: Path, plays: Plays) -> None:
    def ask(master: ReplayMaster) -> None:
        client = agent_of(master)
        client.run()
        with wire(client) as connection:
            for environment in ("staging", "staging", "x\x1b"):
                connection.request("GET", TARGET + environment.replace("\x1b", "%1b"), "text/plain")

    plays(ask)
    records = talk(node(), plugins(), catalog(), asked("file_metadata/modules/m/a", {}), report())
    capture = save(tmp_path / "a.sqlite", *records)
    status, out, _ = run("replay", capture, "-o", tmp_path / "new.sqlite")
    assert status == 1
    assert (
        "  NOT RECORDED: GET file_metadata modules/m/a in staging was not recorded (environment staging instead of"
        in out
    )
    assert "the closest is record 4, GET file_metadata modules/m/a in production (2 times)" in out
    assert "in x\\x1b was not recorded" in out
    assert "\x1b" not in out
    unused = out.partition("recorded and never asked: ")[2]
    assert "\n  record 4  " in unused
    assert "\n  record 1  " not in unused


def test_whoever_else_reaches_it_is_refused_and_reported(run: Run, tmp_path: Path, plays: Plays) -> None:
    def ask(master: ReplayMaster) -> None:
        for number in range(2):
            LabAgent("node1.example", tmp_path / str(number), ServerAddress(NAME, master.address)).run()

    plays(ask)
    status, out, _ = run("replay", sample(tmp_path, "first-run"), "-o", tmp_path / "new.sqlite")
    assert status == 1
    reason = "a signing request for another key than the prepared one, without the challenge password"
    assert out.count(f"\n  REFUSED: {reason}\n") == 2
    assert f"\nrefused: 2 requests of others than the agent\n  {reason} (2 times)\n" in out
    assert "all answered as recorded" not in out


def test_no_request(run: Run, tmp_path: Path, plays: Plays) -> None:
    plays(lambda _: None)
    status, out, _ = run("replay", sample(tmp_path, "first-run"), "-o", tmp_path / "new.sqlite")
    assert (status, out.endswith("\nno request came\n")) == (0, True)
    assert not (tmp_path / "new.sqlite").exists()


def test_json(run: Run, tmp_path: Path, plays: Plays) -> None:
    plays(lambda master: agent_of(master).run())
    status, out, _ = run("replay", sample(tmp_path, "revoked"), "--json", "-o", tmp_path / "new.sqlite")
    events = [json_output.valid("replay", line) for line in out.splitlines()]
    assert status == 0
    assert [event["event"] for event in events][:2] == ["ready", "request"]
    assert "refused" in [event["event"] for event in events]
    assert events[-1] == {"event": "ended", "requests": 4, "missing": [], "unused": [], "refused": [], "unwritten": 0}
    assert events[0]["command"][:2] == ["puppet", "agent"]
    assert events[0]["capture"] == str(tmp_path / "new.sqlite")


def test_the_directory_stays_if_it_was_named(run: Run, tmp_path: Path, plays: Plays) -> None:
    plays(lambda _: None)
    folder = tmp_path / "kept" / "here"
    _, out, _ = run("replay", sample(tmp_path, "revoked"), "--dir", folder, "-o", tmp_path / "new.sqlite")
    assert f"the CA and the agent's own directories are in {folder}" in out
    assert sorted(path.name for path in folder.iterdir()) == ["agent", "csr_attributes.yaml", "master"]
    assert f"copy {folder}/csr_attributes.yaml to its confdir" in out
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_temporary_directory_does_not(run: Run, tmp_path: Path, plays: Plays) -> None:
    folders: list[Path] = []
    plays(lambda master: folders.append(master._place.path.parent))
    run("replay", sample(tmp_path, "revoked"), "-o", tmp_path / "new.sqlite")
    assert not folders[0].exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--run", "9"], "There is no run 9 of an agent in {capture}."),
        (["--agent", "c.example"], "There is no run of 'c.example' in {capture}."),
        (["--agent", "c*", "--name", "a"], "There is no run of 'c*' in {capture}."),
        ([], "{capture} has runs of 2 agents."),
        (["--run", "1", "--agent", "a"], "--run and --agent cannot be used together."),
        (["--run", "1", "--slow", "fast"], "'fast' is no factor."),
        (["--run", "1", "--slow", "3x", "--as-recorded"], "--slow and --as-recorded cannot be used together."),
        (["--run", "1", "--name", "a b"], "'a b' is no host name."),
        (["--run", "1", "--listen", "127.0.0.1:x"], "'127.0.0.1:x' is not an address."),
        (["--run", "1", "--listen", "192.0.2.1"], "Cannot listen on 192.0.2.1:0: Cannot assign requested address."),
        (["--run", "1", "--dir", "{folder}"], "{folder} exists already."),
        (["--run", "1", "-o", "{capture}"], "{capture} already exists."),
    ],
)
def test_mistakes(run: Run, tmp_path: Path, words: list[str], sentence: str) -> None:
    records = together(talk(catalog(), report()), talk(catalog(), report(), certname="b.example", after=60))
    names = {"capture": str(save(tmp_path / "a.sqlite", *records)), "folder": str(tmp_path)}
    target = [] if "-o" in words else ["-o", tmp_path / "new.sqlite"]
    status, out, err = run("replay", names["capture"], *(word.format(**names) for word in words), *target)
    assert (status, out) == (2, "")
    assert err.splitlines()[0] == f"puppet-inspector: {sentence.format(**names)}"
    assert err.splitlines()[1].startswith("  ")
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith("a.sqlite")) == []


def test_an_address_in_use_leaves_no_directory(run: Run, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        capture = sample(tmp_path, "revoked")
        status, _, err = run(
            "replay", capture, "--listen", listen, "--dir", tmp_path / "d", "-o", tmp_path / "n.sqlite"
        )
    assert (status, err.splitlines()[0]) == (2, f"puppet-inspector: Cannot listen on {listen}: Address already in use.")
    assert [path.name for path in tmp_path.iterdir()] == ["revoked.sqlite"]


@pytest.mark.slow
def test_a_process_ends_with_an_interrupt_though_it_is_in_the_background(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "inspector.cli", "replay", str(sample(tmp_path, "first-run")), "--json"]
    with subprocess.Popen(
        [*command, "-o", str(tmp_path / "new.sqlite")], stdout=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN), env=os.environ | {"TMPDIR": str(tmp_path)},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert Path(ready["directory"]).is_dir()
        process.send_signal(signal.SIGINT)
        last = process.stdout.read()
    assert process.returncode == 0
    assert json.loads(last) == {"event": "ended", "requests": 0, "missing": [], "unused": [*range(5, 23)],
                                "refused": [], "unwritten": 0}  # fmt: skip
    assert not Path(ready["directory"]).exists()
