"""Causes that a run's outcome does not show: what the real agent then has, and that the fix as printed heals it."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from inspector.analysis import verdicts
from inspector.rules import rule_of
from tests.real.agent import installed
from tests.support.proxies import analyzed

if TYPE_CHECKING:
    from inspector.runs.run import Run
    from tests.real.agent import RealAgent
    from tests.real.through import Stage


def _run(stage: Stage, agent: RealAgent, *extra: str) -> Run:
    """Run the agent through a proxy; return its run."""
    stage.capture = stage.directory / f"{len(list(stage.directory.glob('*.sqlite')))}.sqlite"
    with stage.proxy(f"keys:{agent.ssldir}", own=True) as road:
        done = road.run(agent, *extra)
    assert done.status in (0, 2), done.output
    (run,) = analyzed(stage.capture).runs
    return run


def test_deferred_values_as_pson(stage: Stage) -> None:
    agent = stage.enrolled("deferring.example")
    file = agent.base / "greeting.txt"
    content = "Deferred('sprintf', ['hello %s', 'you'])"
    if installed() >= (8,):  # PSON is a gem of its own, and without it no run begins
        done = stage.direct.run(agent, "--preferred_serialization_format", "pson")
        assert (done.status, "The 'puppet-pson' gem must be installed" in done.output) == (1, True), done.output
        return
    stage.master.manifest(agent.certname, f"file {{ '{file}': content => {content} }}")
    run = _run(stage, agent, "--preferred_serialization_format", "pson")
    found = verdicts.verdict(run)
    assert run.outcome == "complete"
    assert found is not None
    assert found.cause is not None
    assert found.cause.rule == "P16"
    assert file.read_text().startswith("Deferred({")

    settings = {}
    for step in rule_of("P16").fix_for(run):
        if step.command:
            words = [shutil.which("puppet") or "puppet", *step.command.split()[1:], "--confdir", str(agent.confdir)]
            subprocess.run(words, env=agent._environment, check=True, capture_output=True, timeout=120)
            settings[words[3]] = words[4]
    # What the commands wrote; the next run's puppet.conf is written anew.
    written = (agent.confdir / "puppet.conf").read_text()
    assert all(f"{name} = {value}" in written for name, value in settings.items())
    agent._main.update(settings)
    assert verdicts.verdict(_run(stage, agent)) is None
    assert file.read_text() == "hello you"
