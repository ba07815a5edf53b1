"""A master that stores in a real PuppetDB: what a rehearsal leaves as it was, and what it overwrites."""

from __future__ import annotations

import os
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from inspector.capture.store import Capture
from inspector.host import pki
from inspector.model import Exchange
from tests.real import puppetdb
from tests.real.machine import free_port
from tests.real.puppetdb import RealPuppetDB
from tests.real.rehearsals import allow_v4, by_v4, target, without_changes
from tests.real.through import Stage
from tests.support import json_output

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Run
    from tests.real.agent import CompletedRun, RealAgent
    from tests.real.puppet import RealMaster
    from tests.real.through import Road

NAME, REHEARSED = "stored.example", "rehearsed.example"


@pytest.fixture(scope="module")
def started(master: RealMaster) -> Iterator[RealPuppetDB]:
    if reason := puppetdb.missing():
        if os.environ.get("PUPPET_INSPECTOR_REAL") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    with RealPuppetDB(master) as running:
        yield running


@pytest.fixture
def unused(started: RealPuppetDB) -> RealPuppetDB:
    """A running PuppetDB that the master does not use."""
    started.ensure_running()
    return started


@pytest.fixture
def database(unused: RealPuppetDB) -> Iterator[RealPuppetDB]:
    with unused.used():
        yield unused


class Inspected(NamedTuple):
    """Both sides of a master: an agent that comes through a proxy, and PuppetDB behind another one."""

    database: RealPuppetDB
    agent: RealAgent
    road: Road
    captures: tuple[Path, Path]

    def apply(self, code: str) -> CompletedRun:
        """A run of the agent with this manifest."""
        self.road.master.manifest(NAME, code)
        before = self._reports()
        done = self.road.run(self.agent)
        deadline = time.monotonic() + puppetdb.PATIENCE
        # The agent is gone before its last answer is written, and what PuppetDB answered may be written later.
        while not all(after > earlier for after, earlier in zip(self._reports(), before, strict=True)):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        return done

    def _reports(self) -> list[int]:
        """How many reports each capture has."""
        found = []
        for path in self.captures:
            with Capture.open(path) as capture:
                targets = [record.request.target for record in capture.records() if isinstance(record, Exchange)]
            found.append(sum("/report/" in target or "command=store_report" in target for target in targets))
        return found


@pytest.fixture
def inspected(unused: RealPuppetDB, stage: Stage, tmp_path: Path) -> Iterator[Inspected]:
    master = stage.master
    (tmp_path / "puppetdb").mkdir()
    before = Stage(master, tmp_path / "puppetdb", own=True)
    # On the master's host: it presents the master's certificate to the master, and uses it towards PuppetDB.
    pem = tmp_path / "master.pem"
    parts = [master.ssldir / kind / f"{master.name}.pem" for kind in ("private_keys", "certs")]
    pki.write_private(pem, b"".join(part.read_bytes() for part in parts))
    options: dict[str, Any] = {
        "puppet_ssldir": master.ssldir,
        "puppet_cert": pem,
        "puppet_crl": master.cadir / "ca_crl.pem",
        "puppet_listen": f"{master.host}:{free_port(master.host)}",
        "puppet_master": f"{puppetdb.NAME}:{unused.port}",
    }
    with ExitStack() as stack:
        to_puppetdb = stack.enter_context(before.proxy(f"keys:{master.ssldir}", **options))
        stack.enter_context(unused.used(f"{master.name}:{to_puppetdb.port}", reports="puppetdb"))
        agent = stage.enrolled(NAME)
        road = stack.enter_context(stage.proxy(f"keys:{agent.ssldir}", own=True))
        yield Inspected(unused, agent, road, (stage.capture, before.capture))
    before.close()


def test_what_a_rehearsal_stores(database: RealPuppetDB, stage: Stage, run: Run) -> None:
    with without_changes(stage.master):
        agent = stage.enrolled(REHEARSED)
        with stage.proxy(f"keys:{agent.ssldir}", own=True) as road:
            done = road.run(agent)
        assert done.status == 2, done.output
        before = database.wait_for(REHEARSED, lambda data: bool(data["nodes"]["catalog_timestamp"]))
        commands = database.commands
        assert commands
        allow_v4(stage.master)

        # By v4, with other facts, it compiles and stores nothing.
        words = ["rehearse", stage.capture, "--fact", "os.family=Suse", "--fact", "clientcert=other", "--json"]
        status, out, err = run(*words, *by_v4(stage), "-o", stage.directory / "v4.sqlite")
        assert (status, err) == (1, "")
        assert "managed for other" in out
        assert (database.commands, database.data(REHEARSED)) == (commands, before)

        # As the node itself it would, and is not begun.
        as_node = [*target(stage), "--road", f"keys:{agent.ssldir}", "-o", stage.directory / "v3.sqlite"]
        status, out, err = run(*words, *as_node)
        assert (status, out) == (2, "")
        assert "stores in PuppetDB would overwrite the data of every node" in err
        assert "--stores-data-of-nodes" in err
        assert (database.commands, database.data(REHEARSED)) == (commands, before)

        # Unless the user knows that: then the node's facts there are those of the rehearsal.
        status, _, err = run(*words, *as_node, "--stores-data-of-nodes")
        assert (status, err) == (1, "")
        after = database.wait_for(
            REHEARSED, lambda data: {"name": "clientcert", "value": "other"} in data["factsets"]["facts"]["data"]
            and data["nodes"]["catalog_timestamp"] > before["nodes"]["catalog_timestamp"],
        )  # fmt: skip
        assert database.commands > commands
        assert after["catalogs"]["hash"] != before["catalogs"]["hash"]


QUERY = 'nodes[certname]{ certname ~ "stored" }'


def _of_run(run: Run, inspected: Inspected, number: int) -> list[dict[str, Any]]:
    """What `puppetdb` says of the requests for the agent's run with a number."""
    _, out, _ = run("puppetdb", *inspected.captures, "--json")
    runs = json_output.valid("puppetdb", out)["runs"]
    (found,) = [each for each in runs if each["run"] == number]
    assert found["certname"] == NAME
    return list(found["calls"])


def _found(calls: list[dict[str, Any]]) -> dict[str, list[str]]:
    """The rules by what they found something in."""
    return {
        call["command"] or call["query"]: [each["rule"] for each in call["findings"]]
        for call in calls
        if call["findings"]
    }


def test_what_a_master_stores_for_a_run_and_what_is_not_stored(inspected: Inspected, run: Run) -> None:
    database = inspected.database
    # Agent and master see nothing of it.
    done = inspected.apply('notify { "a\\u0000b": message => "password=Hunter2Hunter2" }')
    assert done.status == 2, done.output
    assert "Error" not in done.output
    calls = _of_run(run, inspected, 1)
    commands = [call["command"] for call in calls if call["command"]]
    assert commands == database.commands_for(NAME), calls
    # Facts that the master itself has of a node, it stores in PuppetDB before them: of this one it has none.
    assert commands == ["replace facts", "replace catalog", "store report"], calls
    assert {call["command"]: call["by"] for call in calls if call["command"]} == {
        "replace facts": "name and time", "replace catalog": "transaction_uuid", "store report": "transaction_uuid"
    }  # fmt: skip
    assert {call["status"] for call in calls if call["command"]} == {200}
    assert _found(calls) == {"replace catalog": ["D03"], "store report": ["D03"]}
    stored = _wait_for_facts(database)
    assert (stored["catalog_timestamp"], stored["report_timestamp"]) == (None, None)

    # The fix as printed: the resource is changed. The compile waits for a query, as its database is locked.
    def lock() -> None:
        commands = database.commands
        while database.commands == commands:
            time.sleep(0.01)
        seconds = "begin; lock table certnames in access exclusive mode; select pg_sleep(15); commit"
        assert database.execute("puppetdb", seconds)

    locking = threading.Thread(target=lock)
    locking.start()
    done = inspected.apply(
        f"$found = puppetdb_query('{QUERY}')\nnotify {{ 'ab': message => 'password=Hunter2Hunter2' }}"
    )
    locking.join()
    assert done.status == 2, done.output
    calls = _of_run(run, inspected, 2)
    assert _found(calls) == {QUERY: ["D04"]}
    (query,) = [call for call in calls if call["query"] == QUERY]
    assert (query["by"], query["duration_s"] > 5) == ("time", True)
    database.wait_for(NAME, lambda data: bool(data["nodes"]["catalog_timestamp"] and data["nodes"]["report_timestamp"]))

    done = inspected.apply("$found = puppetdb_query('nodes[certname]{ nofield = 1 }')")
    assert done.status == 1, done.output
    assert _found(_of_run(run, inspected, 3)) == {"nodes[certname]{ nofield = 1 }": ["D06"]}
    _, out, _ = run("puppetdb", *inspected.captures)
    assert "Hunter2" not in out


def _wait_for_facts(database: RealPuppetDB) -> dict[str, Any]:
    deadline = time.monotonic() + puppetdb.PATIENCE
    while not (found := [node for node in database.query("nodes") if node["certname"] == NAME]):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    return dict(found[0])


def test_what_puppetdb_refuses(inspected: Inspected, run: Run) -> None:
    database = inspected.database
    many = "".join(f"notify {{ 'n{number}': }}\n" for number in range(9))
    # The report is larger than the catalog and the facts: the agent is told that it was accepted.
    database.stop()
    database.start(**{"command-processing": {"max-command-size": 7000, "reject-large-commands": "true"}})
    done = inspected.apply(many)
    assert done.status == 2, done.output
    assert "Error" not in done.output
    assert _found(_of_run(run, inspected, 1)) == {"store report": ["D01"]}

    # The fix of D01, and a list of names without the master's.
    database.stop()
    names = database.base / "puppetdb/names"
    names.write_text("other.example\n")
    names.chmod(0o644)
    database.start(puppetdb={"certificate-allowlist": names}, **{"command-processing": {"max-command-size": 7000}})
    done = inspected.apply(many)
    assert done.status == 1, done.output
    calls = _of_run(run, inspected, 2)
    assert _found(calls)["replace facts"] == ["D02"]

    # The fix of D02.
    names.write_text(f"other.example\n{inspected.road.master.name}\n")
    database.stop()
    database.start(puppetdb={"certificate-allowlist": names}, **{"command-processing": {"max-command-size": 7000}})
    done = inspected.apply(many)
    assert done.status == 2, done.output
    assert _found(_of_run(run, inspected, 3)) == {}
    database.wait_for(NAME, lambda data: bool(data["nodes"]["report_timestamp"]))

    database.stop()
    done = inspected.apply(many)
    assert done.status == 1, done.output
    calls = _of_run(run, inspected, 4)
    assert _found(calls)["replace facts"] == ["D05"]
    assert "Connection refused" in calls[0]["findings"][0]["message"]
