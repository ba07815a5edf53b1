"""Runs behind a balancer, recorded before the CA, before each of two compilers and on the node, are one run each."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inspector.capture import merge
from tests.real import puppetdb
from tests.real.agent import RealAgent
from tests.real.balanced import BALANCER, STREAM, Balanced, SecondMaster
from tests.real.machine import host_names, missing
from tests.real.puppet import RealMaster
from tests.real.puppetdb import RealPuppetDB
from tests.support import json_output
from tests.support.briefs import documents
from tests.support.proxies import analyzed
from tests.tui.screens import indexed, play, screen_text, settled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.pilot import Pilot

    from inspector.tui.app import Inspector
    from tests.conftest import Run
    from tests.real.releases import System

NODE, OTHER = "auto1.example", "auto2.example"
LARGEST = 12_000
"""Bytes that PuppetDB takes: more than the facts and the catalog have here, and less than the report of a first run."""
BEHIND = -420.0
"""How wrong the clock is of the host of the second compiler's proxy."""
AHEAD = 420.0
"""How wrong that of PuppetDB's is: one that is behind takes no CRL that the CA has just signed (T23)."""


@pytest.fixture(scope="module")
def compilers(trixie: System) -> Iterator[tuple[RealMaster, SecondMaster]]:
    """Two masters of one CA, as in the middle of an upgrade: the machine's own, which is the CA, and a Puppet Server
    8.7."""
    absent = [name for name in ("nginx", "faketime") if not shutil.which(name)]
    absent += [] if Path(STREAM).exists() else [STREAM]
    lacking = f"not installed: {', '.join(absent)} (apt-get install faketime nginx-light libnginx-mod-stream)"
    if reason := missing() or (lacking if absent else ""):
        (pytest.fail if os.environ.get("PUPPET_INSPECTOR_REAL") == "required" else pytest.skip)(reason)
    with (
        RealMaster("one.example", host="127.0.9.1") as one,
        SecondMaster(one, "two.example", "127.0.9.2", trixie) as two,
    ):
        yield one, two


def test_one_run_several_proxies(compilers: tuple[RealMaster, SecondMaster], tmp_path: Path) -> None:
    """The balancer gives each new connection to the other compiler; the agent, which is silent for 5 s before its
    files, makes a new one. The compilers have different plugins."""
    one, two = compilers
    site = Balanced(one, two, tmp_path)
    agents = [RealAgent(tmp_path / name, name) for name in (NODE, OTHER)]
    for master in compilers:
        for agent in agents:
            master.demo(agent.certname, agent.target, notice=False)  # the module
            site.pause(master, agent)
    two.module_file("demo", "lib/facter/demo_role.rb", b"Facter.add(:demo_role) { setcode { 'db' } }\n")
    on_node = tmp_path / "node.sqlite"
    with host_names(dict.fromkeys((NODE, OTHER), "127.0.0.1")), site.proxies({"two": f"{BEHIND:+.0f}s"}):
        for agent in agents:
            assert site.run(agent).status == 2
        _wrapped(site, agents[0], on_node)
        assert site.run(agents[1]).status == 2
    target = tmp_path / "merged.sqlite"
    found = merge.merge([*site.captures.values(), on_node], target)
    assert found.joined > 10
    clocks = {clock.name.partition(":")[0]: clock for clock in found.places}
    wrong = clocks["127.0.9.12"]
    assert wrong.low is not None
    assert wrong.high is not None
    # The way from the place that counts adds its own uncertainty: the dates of answers have whole seconds.
    assert wrong.low <= BEHIND <= wrong.high <= wrong.low + 5
    assert [name for name, clock in clocks.items() if clock.ahead and name != "127.0.9.12"] == []
    runs = [run for run in documents(analyzed(target).runs) if run["certname"]]
    assert [(run["certname"], run["outcome"]) for run in runs] == [
        (NODE, "complete"), (OTHER, "complete"), (NODE, "complete"), (OTHER, "complete"),
    ]  # fmt: skip
    for run in runs:
        first, second = run["servers"]
        assert {first["name"], second["name"]} == {"one.example", "two.example"}
        assert {"plugins", "catalog"} <= {*first["phases"]}
        assert second["phases"] == ["files", "report"]
        assert [server["version"] for server in run["servers"] if server["name"] == "two.example"] == ["8.10.0"]
        assert first["catalog"]
    assert runs[0]["servers"][0]["crl"] is not None
    rules = {finding["rule"] for run in runs for finding in run["findings"]}
    assert "S20" in rules
    # Before they were joined, with times as they were, one node was two of one name with a wrong clock.
    assert not rules & {"B46", "T10", "R17", "B02"}


def _wrapped(site: Balanced, agent: RealAgent, capture: Path) -> None:
    """One run of an agent on a node with a proxy of its own."""
    agent.configure(server=BALANCER, port=site.port)
    words = agent.command(server=BALANCER, port=site.port, extra=site.authority)
    command = [sys.executable, "-m", "inspector.cli", "run", "-o", f"{capture}", "--", *words]
    environment = {**agent._environment, "PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 2, done.stdout + done.stderr


def test_three_faults_of_a_site_of_four_places_are_on_one_screen(
    compilers: tuple[RealMaster, SecondMaster], tmp_path: Path, run: Run
) -> None:
    """Recorded before the CA, before each of two compilers behind a balancer, and before PuppetDB: old code on one
    compiler, an old CRL on the other, and a report that PuppetDB refuses."""
    one, two = compilers
    if reason := puppetdb.missing():
        (pytest.fail if os.environ.get("PUPPET_INSPECTOR_REAL") == "required" else pytest.skip)(reason)
    site = Balanced(one, two, tmp_path)
    node, revoked = [RealAgent(tmp_path / name, name) for name in ("auto3.example", "auto4.example")]
    for master in compilers:
        for agent in (node, revoked):
            master.demo(agent.certname, agent.target, notice=False)
        site.pause(master, revoked)
    one.module_file("demo", "lib/facter/demo_role.rb", b"Facter.add(:demo_role) { setcode { 'old' } }\n")
    with ExitStack() as stack:
        stack.enter_context(host_names(dict.fromkeys((node.certname, revoked.certname), "127.0.0.1")))
        database = stack.enter_context(RealPuppetDB(one))
        stack.enter_context(site.proxies({}))
        address = stack.enter_context(site.before_puppetdb(f"{puppetdb.NAME}:{database.port}", f"{AHEAD:+.0f}s"))
        for master in compilers:
            stack.enter_context(database.used(address, master, reports="puppetdb"))
        assert site.run(revoked).status == 2
        # Not on the CRL of the second compiler, to which nobody copies it.
        one.revoke(revoked.certname)
        database.stop()
        database.start(**{"command-processing": {"max-command-size": LARGEST, "reject-large-commands": "true"}})
        done = site.run(node)
        assert done.status == 2, done.output
        assert "Error" not in done.output, "the agent is not told that its report was refused"
        for _ in range(2):  # which compiler gets the first connection, nobody knows: the agent must reach both
            site.run(revoked)
    directory = tmp_path / "site"
    directory.mkdir()
    for path in site.captures.values():
        shutil.copy(path, directory)
    status, out, _ = run("check", directory, "--json")
    assert status == 1
    found = {finding["rule"] for finding in json_output.valid("check", out)["findings"]}
    assert {"S33", "S34", "D01"} <= found

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("F")
        await settled(pilot, app)
        text = screen_text(app)
        for rule in ("S33", "S34", "D01"):
            assert rule in text

    places = merge.merge([*site.captures.values()], tmp_path / "all.sqlite").places
    (wrong,) = [clock for clock in places if clock.ahead]
    # By what the masters stored between an agent's request and their answer.
    assert wrong.name.startswith(f"127.0.9.10:{address.rpartition(':')[2]} on ")
    assert wrong.ahead == pytest.approx(AHEAD, abs=3)
    play(indexed(tmp_path / "all.sqlite"), act)
