"""Where the time of real runs went, by the logs of a real master with one JRuby."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from inspector.cli.main import main
from inspector.formats import master_logs
from inspector.formats.master_logs import MasterLogs

if TYPE_CHECKING:
    from inspector.explain.time_split import RunTime
    from tests.real.through import Stage

PAUSE = 2
SLOW = f"$slept = generate('/bin/sleep', '{PAUSE}')"
NAMES = [f"times{number}.example" for number in range(4)]


def _read(stage: Stage, logs: MasterLogs) -> tuple[dict[int, RunTime], tuple[str, ...]]:
    times = master_logs.read(stage.capture, logs)
    return dict(master_logs.run_times(stage.capture, times)), times.notes


def _text(logs: MasterLogs) -> str:
    return "".join(path.read_text() for path in logs.server)


def test_a_slow_manifest_and_a_queue_are_named(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    agents = [stage.enrolled(name) for name in NAMES]
    for agent in agents:
        stage.master.manifest(agent.certname, SLOW)
        shutil.copytree(agent.ssldir, stage.directory / "keys", dirs_exist_ok=True)
    for key in (stage.directory / "keys/private_keys").iterdir():
        key.chmod(0o600)
    # Once, on a busy machine, the first run of all waited for the JRuby: what held it is not known.
    assert stage.direct.run(stage.enrolled("first.example")).status in (0, 2)
    with stage.proxy(f"keys:{stage.directory / 'keys'}", own=True) as road:
        alone = road.run(agents[0])
        together = [running.wait() for running in [road.start(agent) for agent in agents]]
    assert [alone.status, *(run.status for run in together)] == [0] * 5, alone.output

    logdir = stage.master.logdir
    logs = MasterLogs([logdir / "puppetserver-access.log"], [logdir / "puppetserver.log"])
    runs, notes = _read(stage, logs)
    requests = sum(len(run.records) for run in runs.values())
    assert notes[0].startswith(f"Access log: {requests} of {requests} requests found in it")
    assert "Server log: 5 of 5 catalogs found in it." in notes

    # What the master says of each catalog is its compile time, however busy the machine is and however long it queued.
    by_master = [float(time) for time in re.findall(r"Compiled catalog for times\d.* in (\S+) seconds", _text(logs))]
    assert sorted(run.total.compile for run in runs.values()) == pytest.approx(sorted(by_master), abs=0.02)
    assert min(by_master) >= PAUSE

    by_itself = runs[1]
    others = {number: run.total for number, run in runs.items() if number != 1}
    catalog = max(by_itself.records.values(), key=lambda split: split.compile)
    assert catalog.largest == "compile"
    assert catalog.queue < catalog.compile / 4
    # Each of the four compiles alone: one waits for none, the others for one to three, less what they came later.
    assert sum(total.queue for total in others.values()) > PAUSE
    number = max(others, key=lambda number: others[number].queue)
    assert others[number].largest == "queue"
    assert all(sum(split.parts().values()) >= 0 for run in runs.values() for split in run.records.values())

    # Without the server log all that a catalog held the JRuby for is compiling.
    access_only, _ = _read(stage, MasterLogs(logs.access))
    assert access_only[1].total.compile > by_itself.total.compile
    # Without the access log no queue is known.
    server_only, _ = _read(stage, MasterLogs((), logs.server))
    assert server_only[1].total.compile == pytest.approx(by_itself.total.compile, abs=1e-3)  # differences of moments
    assert (
        sum(run.total.queue for run in server_only.values())
        == 0
        < sum(run.total.waiting for run in server_only.values())
    )

    given = ["--access-log", str(logs.access[0]), "--server-log", str(logs.server[0])]
    assert main(["runs", str(stage.capture), *given]) == 0
    lines = capsys.readouterr().out.splitlines()
    # The last line counts the findings, and may begin with the same number.
    table = lines[lines.index("Where the time went:") + 1 : -1]
    (queued,) = [line for line in table if line.split()[:1] == [str(number)]]
    assert queued.split()[-1] == "queue"
