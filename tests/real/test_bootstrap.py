"""Real agents that have no certificate yet, played on both roads."""

from __future__ import annotations

import json
import random
import time
from typing import TYPE_CHECKING

import pytest

from inspector.capture.store import Capture
from tests.real.through import RunSummary, Stage, a_run, run_summaries
from tests.support.planted import core, everything, found

if TYPE_CHECKING:
    from tests.real.agent import CompletedRun, RealAgent
    from tests.real.through import Road

WHOLE = "certificates node plugins catalog files report"
BOTH = pytest.mark.parametrize("own", [False, True])


def _waits(agent: RealAgent, road: Road) -> CompletedRun:
    with road.start(agent, waitforcert=1) as running:
        pending = road.master.cadir / f"requests/{agent.certname}.pem"
        while not pending.exists() and running.process.poll() is None:
            time.sleep(0.05)
        time.sleep(2.5)  # some polls
        road.master.sign(agent.certname)
        return running.wait()


def _comes_with_a_new_key(agent: RealAgent, road: Road) -> CompletedRun:
    road.master.generate(agent.certname)
    return road.run(agent)


def test_waiting_and_signing(stage: Stage) -> None:
    straight, through = stage.agent("boot-direct.example"), stage.agent("boot.example")
    assert stage.compare(_waits, straight, through, status=2) == [
        RunSummary("boot.example", "complete", WHOLE, ""),
    ]


def test_nobody_signs(stage: Stage) -> None:
    straight, through = stage.agent("unsigned-direct.example"), stage.agent("unsigned.example")
    assert stage.compare(a_run, straight, through, status=1) == [
        RunSummary("unsigned.example", "waiting", "certificates", ""),
    ]


@BOTH
def test_autosign(stage: Stage, own: bool) -> None:
    name = f"auto-{'own' if own else 'mitmdump'}.example"
    straight, through = stage.agent(f"auto-direct-{own}.example".lower()), stage.agent(name)
    assert stage.compare(a_run, straight, through, status=2, own=own) == [
        RunSummary(name, "complete", WHOLE, ""),
    ]


def test_mismatched_key(stage: Stage) -> None:
    straight, through = stage.agent("lost-direct.example"), stage.agent("lost.example")
    assert stage.compare(_comes_with_a_new_key, straight, through, status=1) == [
        RunSummary("lost.example", "waiting", "certificates", "B18 error, B23 error"),
    ]


def test_two_agents_interleaved(stage: Stage) -> None:
    """Both from one address, each on a master's connection of its own."""
    one, two = stage.agent("auto-one.example"), stage.agent("auto-two.example")
    with (
        stage.proxy(f"mint:{stage.master.cadir}") as road,
        road.start(one) as first,
        road.start(two) as second,
    ):
        assert (first.wait().status, second.wait().status) == (2, 2)
    assert sorted(run_summaries(stage.capture), key=lambda run: run.certname or "") == [
        RunSummary("auto-one.example", "complete", WHOLE, ""),
        RunSummary("auto-two.example", "complete", WHOLE, ""),
    ]


PLANTED = """
class {{ 'demo': target => '{target}', notice => false }}
notify {{ 'note': message => 'deploying with {0} now' }}
file {{ '{target}/app.ini': content => "[db]\\nother = {1}\\n" }}
file {{ '{target}/{2}': content => 'x' }}
file {{ '{target}/sensitive': content => Sensitive('{3}') }}
exec {{ '/bin/echo {4}; exit 3': provider => shell, logoutput => true }}
exec {{ 'quiet': command => '/bin/true {5}', environment => ['ANY={6}'] }}
exec {{ 'login': command => '/bin/false http://app:{7}@db.example/ --password {8}' }}
user {{ 'nobody-{9}': ensure => absent, comment => 'known as {10}' }}
notify {{ 'tagged': tag => ['{11}'], withpath => true }}
"""
"""A manifest of a node, part of which fails, with what nothing marks as secret."""


def test_closed_records_nothing_of_a_real_run_that_is_not_known(stage: Stage) -> None:
    """The bootstrap, a run that fails in part, and one without a catalog: each is explained as without it."""
    source = random.Random(42)  # noqa: S311 - nothing to protect
    secrets = [core(source).lower() for _ in range(20)]
    agent = stage.agent("auto-closed.example")
    facts = agent.base / "facts.json"
    free = {"note": f"x {secrets[12]}", secrets[13]: "v", "nested": {"list": [secrets[14], {secrets[15]: secrets[16]}]},
            "cmdline": f"BOOT=/vmlinuz key={secrets[17]}"}  # fmt: skip
    facts.write_text(json.dumps(json.loads(facts.read_text()) | free))
    stage.master.manifest(agent.certname, PLANTED.format(*secrets, target=agent.target))
    with stage.proxy(f"keys:{agent.ssldir}", own=True, puppet_redact="closed") as road:
        first = road.run(agent)
        stage.master.manifest(agent.certname, f"fail('cannot use {secrets[18]} for {secrets[19]}')")
        second = road.run(agent)
    assert (first.status, second.status) == (6, 1), first.output
    assert found(secrets[:1], first.output.encode())
    assert run_summaries(stage.capture) == [
        RunSummary("auto-closed.example", "failed", WHOLE, "P01 error"),
        RunSummary("auto-closed.example", "failed", "plugins catalog report", "R20 error, S01 error"),
    ]
    with Capture.open(stage.capture) as capture:
        assert found(secrets, everything(capture.records())) == []
    assert found(secrets, stage.capture.read_bytes() + "\n".join(stage.lines).encode()) == []
