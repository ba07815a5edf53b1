"""Many captures at once: any number of processes makes the same tables, and whatever ends one of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inspector.errors import CaptureError, InspectorError
from inspector.fleet import analysis
from inspector.fleet.directory import TableDirectory
from inspector.fleet.tables import TABLES
from inspector.runs.examples import plugins, talk
from tests.support.captures import save
from tests.support.places import SAMPLES
from tests.support.tables_of import SITE, asked, converted
from tests.support.waiting import eventually, is_running

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from contextlib import AbstractContextManager

    from inspector.fleet.analysis import Outcome, Task
    from inspector.fleet.conversion import Result

SAMPLED = sorted(SAMPLES.glob("*.sqlite"))
_perform = analysis.perform


def rows(tables: TableDirectory) -> dict[str, list[tuple[object, ...]]]:
    """All rows but the secret hashes, whose key is another one in each directory."""
    columns = {"resources": "* EXCLUDE (parameters)"}
    return {name: asked(tables, f"SELECT {columns.get(name, '*')} FROM {name} ORDER BY ALL") for name in TABLES}


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_any_number_of_processes_makes_the_same_tables(tmp_path: Path, jobs: int) -> None:
    tables = TableDirectory.create(tmp_path / "together")
    found = list(analysis.analyse(SAMPLED[::-1], tables, SITE, jobs=jobs))
    assert sorted(each.path for each in found) == SAMPLED
    assert all(each.error is None and not each.converted.unchanged for each in found)
    assert rows(tables) == rows(converted(tmp_path, *SAMPLED))
    assert all(each.converted.unchanged for each in analysis.analyse(SAMPLED[:2], tables, SITE, jobs=jobs)), (
        "it goes on"
    )


@pytest.mark.slow
def test_progress_is_reported_in_bytes(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    tables = TableDirectory.create(tmp_path / "t")
    list(analysis.analyse(SAMPLED[:3], tables, SITE, watch=lambda done, total, *_: calls.append((done, total))))
    total = sum(path.stat().st_size for path in SAMPLED[:3])
    assert calls[-1] == (total, total)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


@pytest.mark.slow
def test_one_that_cannot_be_read_does_not_stop_the_others(tmp_path: Path) -> None:
    bad = tmp_path / "bad.sqlite"
    bad.write_text("no capture")
    tables = TableDirectory.create(tmp_path / "t")
    found = {each.path: each for each in analysis.analyse([bad, *SAMPLED[:2]], tables, SITE, jobs=2)}
    error = found[bad].error
    assert isinstance(error, CaptureError)
    assert str(bad) in error.message
    assert error.hint
    assert [found[path].error for path in SAMPLED[:2]] == [None, None]


def dying(task: Task) -> Outcome:
    """Each capture kills the process that has it once; one does it each time."""
    mark = Path(task.directory).parent / f"{Path(task.capture).name}.mark"
    if "first-run" in task.capture or ("revoked" in task.capture and not mark.exists()):
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return _perform(task)


@pytest.mark.slow
def test_a_capture_whose_process_dies_is_tried_again_and_at_last_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysis, "perform", dying)
    tables = TableDirectory.create(tmp_path / "t")
    found = {each.path.stem: each for each in analysis.analyse(SAMPLED, tables, SITE, jobs=2)}
    assert len(found) == len(SAMPLED)
    error = found.pop("first-run").error
    assert error is not None
    assert "ended 3 times" in error.message
    assert all(each.error is None for each in found.values())
    assert len(asked(tables, "SELECT * FROM captures")) == len(SAMPLED) - 1


@pytest.mark.slow
def test_after_it_was_reported_the_others_share_the_work_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    made = analysis._processes

    def noted(number: int) -> AbstractContextManager[Executor]:
        sizes.append(number)
        return made(number)

    monkeypatch.setattr(analysis, "perform", dying)
    monkeypatch.setattr(analysis, "_processes", noted)
    captures = [save(tmp_path / f"{n}.sqlite", *talk(plugins(), after=900 * n)) for n in range(12)]
    first_run = next(path for path in SAMPLED if path.stem == "first-run")
    done = list(analysis.analyse([first_run, *captures], TableDirectory.create(tmp_path / "t"), SITE, jobs=2))
    assert len(done) == 13
    assert (sizes[0], sizes[-1]) == (2, 2)
    assert sizes[1:-1] == [1, 1, 1], "those that were under way when the pool broke, alone"


def failing(task: Task) -> Outcome:
    if "first-run" in task.capture:
        raise ValueError("our own mistake")
    return _perform(task)


@pytest.mark.slow
def test_a_mistake_of_ours_is_about_one_capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "perform", failing)
    found = {each.path.stem: each for each in analysis.analyse(SAMPLED, TableDirectory.create(tmp_path / "t"), SITE)}
    error = found.pop("first-run").error
    assert error is not None
    assert "our own mistake" in error.message
    assert all(each.error is None for each in found.values())


def test_its_processes_end_with_it(tmp_path: Path) -> None:
    script = (
        "import os, time\n"
        "from inspector.fleet import analysis\n"
        "if __name__ == '__main__':\n"
        "    with analysis._processes(1) as executor:\n"
        "        print(executor.submit(os.getpid).result(), flush=True)\n"
        "        time.sleep(600)\n"
    )
    (tmp_path / "script.py").write_text(script)
    command = [sys.executable, str(tmp_path / "script.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        child = int(parent.stdout.readline())
        assert is_running(child)
        parent.kill()
    assert eventually(lambda: not is_running(child))


@pytest.mark.slow
def test_a_scheduler_that_is_not_there_is_said(tmp_path: Path) -> None:
    tables = TableDirectory.create(tmp_path / "t")
    with pytest.raises(InspectorError, match="does not answer"):
        list(analysis.analyse(SAMPLED[:1], tables, SITE, scheduler="tcp://127.0.0.1:9"))


@pytest.mark.slow
def test_a_cluster_makes_the_same_tables_also_when_a_worker_dies(tmp_path: Path) -> None:
    from distributed import LocalCluster

    tables = TableDirectory.create(tmp_path / "t")
    with LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        found: list[Result] = []
        for result in analysis.analyse(SAMPLED, tables, SITE, scheduler=cluster.scheduler_address):
            if not found:
                os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
            found.append(result)
    assert all(each.error is None for each in found)
    assert len(found) == len(SAMPLED)
    assert rows(tables) == rows(converted(tmp_path, *SAMPLED))
