"""Fixes of more than one agent, or of more than one way, with real Puppet (all others: ``faults``)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from inspector.rules import rule_of
from tests.real.agent import RealAgent
from tests.real.hosts import Hosts
from tests.real.machine import missing
from tests.real.through import Stage, run_summaries
from tests.support.briefs import documents
from tests.support.proxies import analyzed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.puppet import RealMaster


def _verdicts(capture: Path) -> list[dict[str, Any]]:
    return [run["verdict"] for run in documents(analyzed(capture).runs)]


def _commands(verdict: dict[str, Any], case: str = "") -> list[str]:
    """The commands of all steps; with a case, those of the steps for it and of those without a condition."""
    steps = verdict["steps"]
    if case:
        assert any((step["only_if"] or "").startswith(case) for step in steps), steps
        steps = [step for step in steps if not step["only_if"] or step["only_if"].startswith(case)]
    return [step["command"] for step in steps if step["command"]]


def _fails(stage: Stage, agent: RealAgent, *extra: str, crl: Path | None = None) -> list[dict[str, Any]]:
    """Run the agent, which fails; the verdicts of all runs in the capture so far. ``crl`` is the proxy's."""
    with stage.proxy(f"keys:{agent.ssldir}", puppet_crl=crl or stage.master.cadir / "ca_crl.pem") as road:
        done = road.run(agent, *extra)
    assert done.status == 1, done.output
    return _verdicts(stage.capture)


@pytest.fixture(params=[False, True], ids=["mitmdump", "proxy"])
def stage(request: pytest.FixtureRequest, master: RealMaster, tmp_path: Path) -> Iterator[Stage]:
    """Each test is played on both roads."""
    stage = Stage(master, tmp_path, own=request.param)
    yield stage
    stage.close()


def _named(stage: Stage, name: str) -> str:
    """A certname that the CA does not know from the other road."""
    return f"{name}-{'proxy' if stage.own else 'mitmdump'}.example"


@pytest.fixture
def late(request: pytest.FixtureRequest, stage: Stage) -> RealAgent:
    """An enrolled agent that has to download the CRL."""
    test = request.function.__name__.removeprefix("test_").replace("_", "-")
    agent = stage.enrolled(_named(stage, f"late-{test}"))
    (agent.ssldir / "crl.pem").unlink()
    return agent


@pytest.fixture
def crls(master: RealMaster, late: RealAgent) -> Iterator[Path]:
    """The CA's CRLs, for a test to spoil; yields a sound copy, for the proxy.

    ``late`` is enrolled before: with spoiled ones the CA would not do it.
    """
    place, sound = master.cadir / "ca_crl.pem", master.confdir / "sound.pem"
    shutil.copyfile(place, sound)
    yield sound
    place.write_bytes(sound.read_bytes())


def _split(crls: Path) -> list[bytes]:
    return re.findall(rb"-----BEGIN.*?END X509 CRL-----\n", crls.read_bytes(), re.DOTALL)


def _taken_over(master: RealMaster, timeout: float = 60) -> bool:
    """Whether the server, without a restart, uses the CA's CRLs for its own connections."""
    deadline = time.monotonic() + timeout
    while (same := _split(master.ssldir / "crl.pem") == _split(master.cadir / "ca_crl.pem")) is False:
        if time.monotonic() > deadline:
            break
        time.sleep(0.5)
    return same


@pytest.fixture
def incomplete_crl(master: RealMaster, crls: Path) -> Path:
    """The root's CRL is missing."""
    (master.cadir / "ca_crl.pem").write_bytes(_split(crls)[0])
    return crls


def test_incomplete_crl(stage: Stage, late: RealAgent, incomplete_crl: Path) -> None:
    """Repairing the CA is not enough: the agent has the incomplete file."""
    (late.ssldir / "certs/ca.pem").unlink()  # only who downloads the CAs, too, shows which CRL is missing
    (verdict,) = _fails(stage, late, crl=incomplete_crl)
    assert verdict["cause"] == "B13"
    show, write, drop, workaround, _ = _commands(verdict)
    assert workaround.startswith("puppet config set certificate_revocation leaf")
    stage.capture = stage.directory / "after.sqlite"
    with stage.proxy(f"keys:{late.ssldir}", puppet_crl=incomplete_crl) as road:
        hosts = Hosts(late, road)
        if stage.own:
            # The root's key may be elsewhere; then its CRL is taken from a file.
            (stage.master.cadir / "root_key.pem").rename(stage.directory / "root_key.pem")
            done = hosts.shell("ca", show)
            assert done.returncode == 1
            assert "infra_crl.pem" in done.stdout
            write = f"{write} --add {stage.master.cadir}/infra_crl.pem"
            hosts.execute([write])
            shutil.move(stage.directory / "root_key.pem", stage.master.cadir)
        else:
            hosts.execute([show, write])
        hosts.fails()
        hosts.execute([drop])
        hosts.succeeds()
    assert _taken_over(stage.master)
    assert run_summaries(stage.capture)[-1].outcome == "complete"


def test_cloned(stage: Stage) -> None:
    """Two hosts with one name and a key each; while nobody signs, they ask in turn."""
    original = stage.agent(_named(stage, "twin"))
    clone = RealAgent(stage.directory / "clone", original.certname)
    for agent in (original, clone):
        _fails(stage, agent)
    verdict = _fails(stage, original)[-1]
    assert verdict["cause"] == "B46"
    rename, clean, reset = _commands(verdict)
    stage.capture = stage.directory / "after.sqlite"
    with stage.proxy(f"mint:{stage.master.cadir}") as road:
        one, two = _named(stage, "one"), _named(stage, "two")
        hosts = {one: Hosts(original, road), two: Hosts(clone, road)}
        for name, host in hosts.items():
            host.execute([rename.replace("<name>", name)])
        hosts[one].execute([clean])
        for name, host in hosts.items():
            host.execute([reset])
            stage.master.sign(name)
            host.succeeds()
    assert {(run.certname, run.outcome) for run in run_summaries(stage.capture)} == {(n, "complete") for n in hosts}


def test_the_server_is_set_where_the_agent_reads_it(tmp_path: Path) -> None:
    """A value in the section of the agent hides that of main, which no advice may rely on."""
    if reason := missing():
        if os.environ.get("PUPPET_INSPECTOR_REAL") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    (tmp_path / "puppet.conf").write_text("[main]\nserver = one.example\n[agent]\nserver = other.example\n")
    (command,) = [step.command for step in rule_of("T07").fix if step.command.startswith("puppet config set server ")]
    words = [*command.replace("<name>", "right.example").split(), "--confdir", str(tmp_path)]
    subprocess.run(words, check=True, capture_output=True)
    asked = ["puppet", "config", "print", "server", "--section", "agent", "--confdir", str(tmp_path)]
    assert subprocess.run(asked, check=True, capture_output=True, text=True).stdout == "right.example\n"
