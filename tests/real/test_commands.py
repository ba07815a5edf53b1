"""Commands of the real agent package through the proxy: named, without a verdict, and apart from the agent's run."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from inspector.analysis import verdicts
from tests.real.agent import installed
from tests.real.machine import write_puppet_conf
from tests.support.proxies import analyzed

if TYPE_CHECKING:
    from tests.real.agent import RealAgent
    from tests.real.through import Road, Stage


def _puppet(agent: RealAgent, road: Road, *words: str) -> int:
    """Run a command of puppet's; it reads server and port from [main] only. Return its exit status."""
    write_puppet_conf(agent.confdir, {"main": {**agent._main, "server": road.server, "serverport": road.port}})
    command = [shutil.which("puppet") or "puppet", *words, "--confdir", str(agent.confdir)]
    return subprocess.run(command, env=agent._environment, capture_output=True, timeout=120).returncode


def test_commands_are_told_from_the_agents_run(stage: Stage, steady: RealAgent) -> None:
    file = stage.directory / "kept.txt"
    file.write_text("kept\n")
    without_facts = installed() < (8,)
    with stage.proxy(f"keys:{steady.ssldir}") as road:
        assert _puppet(steady, road, "plugin", "download") == 0
        # Without facts, as agents of Puppet 7 send it, the master compiles nothing.
        assert _puppet(steady, road, "catalog", "download") == int(without_facts)
        assert _puppet(steady, road, "ssl", "download_cert") == 0
        assert _puppet(steady, road, "facts", "upload") == 0
        assert _puppet(steady, road, "filebucket", "backup", str(file)) == 0
        assert road.run(steady).status in (0, 2)
        assert _puppet(steady, road, "node", "find", steady.certname, "--terminus", "rest") == 0
        assert _puppet(steady, road, "ssl", "submit_request") == 1
    runs = analyzed(stage.capture).runs
    assert [run.snapshot().tool for run in runs] == [
        "puppet plugin download",
        "puppet catalog download",
        "puppet ssl download_cert",
        "puppet facts upload",
        "puppet filebucket",
        None,
        "puppet node find",
        "puppet ssl submit_request",
    ]
    *others, submitted = runs
    downloading = "failed" if without_facts else "complete"
    assert [run.outcome for run in others] == ["complete", downloading, *["complete"] * 5]
    plugins, downloaded, *rest = [verdicts.verdict(run) for run in others]
    assert [plugins, *rest] == [None] * 6
    if without_facts:
        assert downloaded
        assert downloaded.cause
        assert (downloaded.cause.rule, "sent no facts" in downloaded.cause.message) == ("S01", True)
    else:
        assert downloaded is None
    verdict = verdicts.verdict(submitted)
    assert verdict  # its certname has a certificate: true, whoever asks
    assert verdict.cause
    assert verdict.cause.rule == "B18"


def test_a_request_that_waits_and_a_certificate(stage: Stage) -> None:
    agent = stage.agent("by-hand.example")
    statuses, commands = [], ("submit_request", "submit_request", "download_cert")
    for number, command in enumerate(commands):
        stage.capture = stage.directory / f"{number}.sqlite"
        with stage.proxy(f"keys:{agent.ssldir}") as road:
            statuses.append(_puppet(agent, road, "ssl", command))
        (run,) = analyzed(stage.capture).runs
        assert run.outcome == "waiting"
        # The first is what an agent does that waits for its certificate.
        assert run.snapshot().tool == (f"puppet ssl {command}" if number else None)
        assert (verdicts.verdict(run) is None) is bool(number)
    assert statuses == [0, 1, 1]


def test_a_bootstrap_by_hand(stage: Stage) -> None:
    agent = stage.agent("autohand.example")
    with stage.proxy(f"keys:{agent.ssldir}") as road:
        assert _puppet(agent, road, "ssl", "bootstrap", "--waitforcert", "0") == 0
        assert _puppet(agent, road, "ssl", "bootstrap", "--waitforcert", "0") == 0  # asks for nothing
    (run,) = analyzed(stage.capture).runs
    assert (run.snapshot().tool, run.outcome, verdicts.verdict(run)) == ("puppet ssl bootstrap", "complete", None)
