"""Agents of 7.23 and 8.10 whose CA is a real openvox-ca, and whose master a puppetserver 7.9.5 without a CA service.

What was played is written for docs/coverage.md (`make test-openvox-ca`). Agents of 7 never renew a certificate.
"""

from __future__ import annotations

import functools
import subprocess
import time
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from inspector.doctor import cadir, livecheck
from inspector.model import Severity
from inspector.protocol.ca_service import OPENVOX_CA
from tests.real.agent import RealAgent, installed
from tests.real.as_http_proxy import AGENT, Node, inspected
from tests.real.through import RunSummary, Stage, run_summaries
from tests.support import openvox_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.real.as_http_proxy import Inspected
    from tests.real.openvox_ca import Compiler
    from tests.real.releases import System

    type Played = Callable[[str, str, str], None]

FIRST = "complete: certificates node plugins catalog files report"
STEADY = "complete: plugins catalog files report"
RENEWING = "complete: certificates plugins catalog files report"


@pytest.fixture(scope="module")
def played(request: pytest.FixtureRequest, compiler: Compiler) -> Iterator[Played]:
    """Collects what was played: agent, road and what came of it."""
    rows: list[tuple[str, str, str]] = []
    yield lambda *row: rows.append(row)
    whole = len(rows) >= openvox_table.number()  # not of some tests only
    if request.config.getoption("--update-golden") and whole and not request.session.testsfailed:
        shown = subprocess.run([compiler.authority.program, "--version"], capture_output=True, text=True, check=True)
        openvox_table.FILE.write_text(
            openvox_table.dump(f"{datetime.now(UTC):%Y-%m-%d}", shown.stdout.split()[-1], rows)
        )


def agent(node: Node, *program: str) -> Inspected:
    """One run of a node through `run`."""
    return inspected(node, (*(program or AGENT[:1]), *AGENT[1:]))


def described(found: Inspected, *warnings: str) -> str:
    """Its latest run, whose CA must be an openvox-ca, and which has no findings but notices and these."""
    run = found.runs[-1]
    assert run["ca_service"] == OPENVOX_CA
    assert {each["rule"] for each in run["findings"] if each["severity"] != "notice"} == {*warnings}
    return f"{run['outcome']}: {' '.join(phase['phase'] for phase in run['phases'])}"


def test_a_new_agent_and_one_that_lost_its_key(compiler: Compiler, tmp_path: Path, played: Played) -> None:
    version = ".".join(map(str, installed()))
    node = Node(compiler, tmp_path, "seven.example")
    node.configure(**compiler.ca_settings)
    compiler.demo(node.certname, node.agent.target, notice=False)
    first = agent(node)
    assert (first.ended.status, described(first)) == (2, FIRST), first
    played("bootstrap and first run", f"agent {version}, run", described(first))
    again = agent(node)
    assert (again.ended.status, described(again)) == (0, STEADY), again
    played("steady run", f"agent {version}, run", described(again))
    node.key.unlink()
    node.certificate.unlink()
    lost = agent(node)
    run = lost.runs[-1]
    assert (lost.ended.status, run["verdict"]["cause"]) == (1, "B22"), lost
    commands = [step["command"] for step in run["verdict"]["steps"]]
    assert f"openvox-ca-ctl clean --certname {node.certname}" in commands
    played("another key, which the CA does not sign", f"agent {version}, run", f"{run['outcome']}: B22")
    compiler.authority.ctl("clean", "--certname", node.certname)
    subprocess.run(node.words(("puppet", "ssl", "clean")), env=node.environment, check=True, capture_output=True)
    healed = agent(node)
    assert (healed.ended.status, healed.runs[-1]["outcome"]) == (0, "complete"), healed
    played("the fix of that", f"agent {version}, run", described(healed))


def test_an_agent_renews_in_each_run(compiler: Compiler, trixie: System, tmp_path: Path, played: Played) -> None:
    """The CA revokes what it replaces; the agent goes on with the new one."""
    name = "eight.example"
    node = Node(compiler, tmp_path, name, RealAgent(tmp_path / name, name, system=trixie))
    node.configure(**compiler.ca_settings)
    compiler.demo(name, node.agent.target, notice=False)
    program = f"{trixie.program('puppet', tmp_path)}"
    runs = [agent(node, program) for _ in range(3)]
    newer = "S16"  # it is newer than its master
    assert [described(run, newer) for run in runs] == [FIRST, RENEWING, RENEWING]
    assert ["Renewed client certificate" in run.ended.out for run in runs] == [False, True, True]
    directory = cadir.read(compiler.authority.cadir)
    serials = [entry.serial for entry in directory.inventory if entry.name == name]
    assert directory.signed[name].serial == serials[-1]
    assert set(serials) & directory.revoked == set(serials[:-1])
    assert len(serials) == 3
    played("bootstrap and first run", "agent 8.10, run", described(runs[0], newer))
    played("renewal", "agent 8.10, run", f"{described(runs[1], newer)}; the old certificate is revoked")


@pytest.mark.parametrize("own", [True, False])
def test_a_certificate_made_with_its_key(compiler: Compiler, tmp_path: Path, played: Played, own: bool) -> None:
    road = "proxy" if own else "mitmdump"
    with closing(Stage(compiler, tmp_path, own=own)) as stage:
        new = stage.agent(f"minted-{road}.example")
        to_ca = [word for name, value in compiler.ca_settings.items() for word in (f"--{name}", f"{value}")]
        assert stage.direct.run(new, *to_ca).status == 2
        with stage.proxy(f"mint:{compiler.cadir}") as through:
            assert through.run(new).status == 0
        assert run_summaries(stage.capture) == [RunSummary(new.certname, "complete", STEADY.partition(": ")[2])]
    played("a steady run with `mint:CADIR`", f"agent {'.'.join(map(str, installed()))}, {road}", STEADY)


def test_doctor(compiler: Compiler, played: Played) -> None:
    """Nothing is wrong with either of them, except that their certificates end in three days."""
    now = time.time()
    found = cadir.examine(cadir.read(compiler.authority.cadir), now)
    assert {diagnosis.severity for diagnosis in found} == {Severity.NOTICE}, found
    assert found[0].detail == OPENVOX_CA
    ask = functools.partial(livecheck.probe, compiler.name, compiler.port, now=now)
    trusting = functools.partial(ask, ca=compiler.ssldir / "certs/ca.pem", crl=compiler.ssldir / "crl.pem")
    apart = trusting(authority=(compiler.authority.name, compiler.authority.port))
    titles = [{each.title for each in found if each.title not in ("TLS", "expires soon")}
              for found in (apart, trusting(), ask())]  # fmt: skip
    assert titles == [
        {"a Puppet master answers", "CA", "accepted"},
        {"a Puppet master answers", "no CA service", "accepted"},
        {"a Puppet master answers", "no CA service"},
    ]
    played("`doctor --cadir`, and `--live` with and without ca_server", "", "no errors")
