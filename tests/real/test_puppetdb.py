"""A master that stores in a real PuppetDB: what a rehearsal leaves as it was, and what it overwrites."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.real import puppetdb
from tests.real.puppetdb import RealPuppetDB
from tests.real.rehearsals import allow_v4, by_v4, target, without_changes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import Run
    from tests.real.puppet import RealMaster
    from tests.real.through import Stage

NAME = "stored.example"


@pytest.fixture
def database(master: RealMaster) -> Iterator[RealPuppetDB]:
    if reason := puppetdb.missing():
        if os.environ.get("PUPPET_INSPECTOR_REAL") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    with RealPuppetDB(master) as running, running.used():
        yield running


def test_what_a_rehearsal_stores(database: RealPuppetDB, stage: Stage, run: Run) -> None:
    with without_changes(stage.master):
        agent = stage.enrolled(NAME)
        with stage.proxy(f"keys:{agent.ssldir}", own=True) as road:
            done = road.run(agent)
        assert done.status == 2, done.output
        before = database.wait_for(NAME, lambda data: bool(data["nodes"]["catalog_timestamp"]))
        commands = database.commands
        assert commands
        allow_v4(stage.master)

        # By v4, with other facts, it compiles and stores nothing.
        words = ["rehearse", stage.capture, "--fact", "os.family=Suse", "--fact", "clientcert=other", "--json"]
        status, out, err = run(*words, *by_v4(stage), "-o", stage.directory / "v4.sqlite")
        assert (status, err) == (1, "")
        assert "managed for other" in out
        assert (database.commands, database.data(NAME)) == (commands, before)

        # As the node itself it would, and is not begun.
        as_node = [*target(stage), "--road", f"keys:{agent.ssldir}", "-o", stage.directory / "v3.sqlite"]
        status, out, err = run(*words, *as_node)
        assert (status, out) == (2, "")
        assert "stores in PuppetDB would overwrite the data of every node" in err
        assert "--stores-data-of-nodes" in err
        assert (database.commands, database.data(NAME)) == (commands, before)

        # Unless the user knows that: then the node's facts there are those of the rehearsal.
        status, _, err = run(*words, *as_node, "--stores-data-of-nodes")
        assert (status, err) == (1, "")
        after = database.wait_for(
            NAME, lambda data: {"name": "clientcert", "value": "other"} in data["factsets"]["facts"]["data"]
            and data["nodes"]["catalog_timestamp"] > before["nodes"]["catalog_timestamp"],
        )  # fmt: skip
        assert database.commands > commands
        assert after["catalogs"]["hash"] != before["catalogs"]["hash"]
