"""``puppet-inspector run`` and ``provision`` with a real agent and a real puppetserver."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.real.through import RunSummary, run_summaries

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.agent import RealAgent
    from tests.real.puppet import RealMaster
    from tests.real.through import Stage

PHASES = "plugins catalog files report"


def _inspector(*arguments: str | Path, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "inspector.cli", *map(str, arguments)]
    return subprocess.run(command, env=os.environ | (environment or {}), capture_output=True, text=True, timeout=6000)


def _run(
    agent: RealAgent, capture: Path, *arguments: str, more: str = "", ours: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """What an administrator types: only the confdir is not the usual one."""
    if more:
        with (agent.confdir / "puppet.conf").open("a") as conf:
            conf.write(more)
    places = {"RUBYLIB": f"{agent.base}/ruby", "INVENTED_FACTS": f"{agent.base}/facts.json"}
    puppet = [shutil.which("puppet") or "puppet", "agent", "-t", "--color=false", "--confdir", str(agent.confdir)]
    return _inspector("run", "-o", capture, "--json", *ours, "--", *puppet, *arguments, environment=places)


@pytest.fixture
def agent(stage: Stage, steady: RealAgent) -> RealAgent:
    """An agent in sync, whose puppet.conf names the master."""
    steady.configure(server=stage.master.name, port=stage.master.port)
    return steady


def _split(done: subprocess.CompletedProcess[str]) -> tuple[list[str], list[dict[str, Any]]]:
    """The agent's own lines, and the runs as JSON that follow them."""
    text, _, document = done.stdout.partition("\n[\n")
    return text.splitlines(), json.loads(f"[{document}")


def test_one_command_does_it_all(stage: Stage, agent: RealAgent) -> None:
    done = _run(agent, stage.capture)
    assert done.returncode == 0, done.stdout + done.stderr
    lines, runs = _split(done)
    assert done.stderr == ""
    assert lines[-1].startswith("Notice: Applied catalog")
    assert all(line.startswith(("Info: ", "Notice: ")) for line in lines)
    assert runs[0]["outcome"] == "complete"
    assert run_summaries(stage.capture) == [RunSummary("steady.example", "complete", PHASES)]


def test_changes_and_failures_pass_on(stage: Stage, agent: RealAgent) -> None:
    (agent.target / "single.txt").write_text("changed by hand\n")
    assert _run(agent, stage.capture).returncode == 2
    stage.master.manifest(agent.certname, "fail('no such role')")
    failed = _run(agent, stage.directory / "failed.sqlite")
    assert failed.returncode == stage.direct.run(agent).status == 1
    assert "no such role" in failed.stderr
    assert run_summaries(stage.directory / "failed.sqlite") == [
        RunSummary("steady.example", "failed", "plugins catalog report", "R20 error, S01 error"),
    ]


def test_a_fault_on_purpose(stage: Stage, agent: RealAgent) -> None:
    """The agent fails as if the master had; its run says who did it, and nobody is blamed."""
    done = _run(agent, stage.capture, ours=("--fault", "500 phase:catalog"))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "fault: on purpose" in done.stderr
    assert "answered 500: POST /puppet/v3/catalog/steady.example of steady.example" in done.stderr
    _, runs = _split(done)
    assert (runs[0]["certname"], runs[0]["outcome"]) == ("steady.example", "failed")
    assert [finding["rule"] for finding in runs[0]["findings"] if finding["severity"] == "error"] == []
    without = _run(agent, stage.directory / "after.sqlite")
    assert without.returncode == 0, without.stdout + without.stderr


def test_nothing_goes_around_the_proxy(stage: Stage, agent: RealAgent) -> None:
    """In the master's place. Every setting that names a server of its own: the master is there under one of them."""
    port = stage.master.port
    more = (
        f"server_list = {stage.master.name}:{port}\nreport_server = nowhere.invalid\nreport_port = 9\n"
        "ca_server = nowhere.invalid\nca_port = 9\nuse_srv_records = true\nsrv_domain = nowhere.invalid\n"
    )
    done = _run(agent, stage.capture, "--server", "nowhere.invalid", more=more, ours=("--as-master",))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "report_server is nowhere.invalid, but in this run all requests go to" in done.stderr
    (run,) = _split(done)[1]
    assert run["outcome"] == "complete"


def test_a_node_without_a_certificate_is_advised_what_to_do(stage: Stage) -> None:
    agent = stage.agent("fresh.example")
    agent.configure(server=stage.master.name, port=stage.master.port)
    done = _run(agent, stage.capture, ours=("--as-master",))
    assert done.returncode == 2
    assert "This host has no certificate yet" in done.stderr
    assert not stage.capture.exists()


def test_provisioning_on_the_cas_host(stage: Stage, master: RealMaster, tmp_path: Path) -> None:
    """With Debian's own command, and the preflight, and how to take it back."""
    home, name = tmp_path / "home", "provisioned.example"
    # The master of these tests does not live where Debian's would: its settings, for root and for the command.
    (home / "bin").mkdir(parents=True)
    wrapper = home / "bin" / "puppetserver"
    wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("puppetserver")} "$@" --config {master.confdir}/puppet.conf\n')
    wrapper.chmod(0o755)
    code = (
        "import sys; from inspector.cli.main import main; from inspector.host import puppetconf\n"
        f"puppetconf._PLACES = (puppetconf._Place({str(master.confdir)!r}, '/nowhere', ('$confdir/ssl',), ()),)\n"
        "sys.exit(main(['provision', *sys.argv[1:]]))"
    )
    environment = os.environ | {"PATH": f"{home}/bin:{os.environ['PATH']}"}
    target = tmp_path / "proxy.pem"
    words = [sys.executable, "-c", code, name, "--alt-name", "inspector", "--execute", "-o", str(target)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=6000)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("  OK  ") == 6
    assert target.stat().st_mode & 0o777 == 0o600
    (clean,) = [line for line in done.stdout.splitlines() if " ca clean " in line]
    subprocess.run(clean.split(), env=environment, check=True, capture_output=True, timeout=600)
    files: list[str | Path] = ["--ca", master.cadir / "ca_crt.pem", "--crl", master.cadir / "ca_crl.pem"]
    after = _inspector("provision", "--cert", target, *files)
    assert after.returncode == 1
    assert f"FAIL  revocation  Certificate 'CN={name}' is revoked" in after.stdout
    # The next call does not go on with the revoked one; what it says helps.
    stuck = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=6000)
    assert (stuck.returncode, "is revoked: serial number" in stuck.stdout) == (1, True)
    (remove,) = [line for line in stuck.stdout.splitlines() if line.strip().startswith("rm ")]
    subprocess.run(remove.split(), check=True)
    healed = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=6000)
    assert healed.returncode == 0, healed.stdout + healed.stderr
    undo = healed.stdout.splitlines()[-2:]
    for line in undo:
        subprocess.run(line.split(), env=environment, check=True, capture_output=True, timeout=600)
    assert not [*master.ssldir.rglob(f"{name}.pem")]


def test_one_made_with_the_cas_key_passes_real_agents(stage: Stage, agent: RealAgent, master: RealMaster) -> None:
    pem = stage.directory / "made.pem"
    made = _inspector(
        "provision", "steady-proxy.example", "--alt-name", agent.certname, "--cadir", master.cadir, "-o", pem
    )
    assert made.returncode == 0, made.stdout + made.stderr
    files: dict[str, Any] = {"puppet_ca": master.ssldir / "certs/ca.pem", "puppet_crl": master.cadir / "ca_crl.pem"}
    with stage.proxy(f"mint:{master.cadir}", server=agent.certname, puppet_cert=pem, puppet_ssldir="", **files) as road:
        done = road.run(agent)
    assert done.status == 0, done.output
    assert run_summaries(stage.capture) == [RunSummary("steady.example", "complete", PHASES)]
