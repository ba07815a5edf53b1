"""Renewals of certificates, by agents 8.10 and OpenVox 9 and a Puppet Server 8.7 that renews them in each run.

OpenVox 9 begins without one, too: its bootstrap, its first run and the renewal in the next are what CI plays of the
matrix of versions (tests/real/versions).
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from inspector.model import Exchange
from tests.real.through import RunSummary, Stage, run_summaries
from tests.support.proxies import analyzed, records

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from tests.real.agent import RealAgent
    from tests.real.puppet import RealMaster
    from tests.real.releases import System

RENEWED = "Renewed client certificate"
NOT_THERE = "Certificate autorenewal has not been enabled on the server"
RENEWAL = "/puppet-ca/v1/certificate_renewal"


def certificate(agent: RealAgent) -> x509.Certificate:
    return x509.load_pem_x509_certificate((agent.ssldir / f"certs/{agent.certname}.pem").read_bytes())


def played(stage: Stage, agent: RealAgent, identity: str) -> tuple[list[str], list[Exchange], set[str]]:
    """What two runs through a proxy print, what is recorded of their renewals, and the rules found about them."""
    with stage.proxy(identity) as road:
        outputs = [road.run(agent).output for _ in range(2)]
    renewals = [
        record for record in records(stage.capture) if isinstance(record, Exchange) and record.request.path == RENEWAL
    ]
    seqs = {record.seq for record in renewals}
    runs = analyzed(stage.capture).runs
    found = {each.rule for run in runs for each in run.findings if seqs.intersection(each.seqs)}
    return outputs, renewals, found - {"S16"}  # OpenVox 9 is newer than the master


def renews(stage: Stage, system: System, identity: str) -> None:
    """Where the master sees the agent's own key, it renews the certificate for that."""
    agent = stage.enrolled(f"{identity}-{system.root.name[:3]}.example", system=system)
    before = certificate(agent)
    outputs, renewals, rules = played(stage, agent, f"keys:{agent.ssldir}" if identity == "keys" else identity)
    assert [RENEWED in output for output in outputs] == [True, True], outputs
    assert [record.response.status for record in renewals if record.response] == [200, 200]
    assert rules == set()
    after, key = certificate(agent), (agent.ssldir / f"private_keys/{agent.certname}.pem").read_bytes()
    assert after.serial_number != before.serial_number
    assert after.public_key() == load_pem_private_key(key, None).public_key()


def begins_and_renews(stage: Stage, system: System) -> None:
    """A new agent gets its certificate, makes its first run, and renews in the second one."""
    agent = stage.agent(f"auto-{system.root.name[:3]}.example", system=system)
    outputs, renewals, rules = played(stage, agent, f"keys:{agent.ssldir}")
    assert [RENEWED in output for output in outputs] == [False, True], outputs
    assert [record.response.status for record in renewals if record.response] == [200]
    assert rules == set()
    assert run_summaries(stage.capture) == [
        RunSummary(agent.certname, "complete", "certificates node plugins catalog files report",
                   "S16 warning"),
        RunSummary(agent.certname, "complete", "certificates plugins catalog files report", "S16 warning"),
    ]  # fmt: skip


def is_answered_by_the_proxy(stage: Stage, system: System) -> None:
    """With a minted identity the CA would sign the proxy's key."""
    agent = stage.enrolled(f"mint-{system.root.name[:3]}.example", system=system)
    before = certificate(agent)
    outputs, renewals, rules = played(stage, agent, f"mint:{stage.master.cadir}")
    assert [NOT_THERE in output for output in outputs] == [True, True], outputs
    assert not any("does not match its private key" in output for output in outputs)
    assert [bool(record.withheld) and record.master is None for record in renewals] == [True, True]
    assert rules == {"B49"}
    assert any(line.strip().startswith("renewals of certificates are answered 404 here") for line in stage.lines)
    assert certificate(agent) == before
    assert RENEWED in stage.direct.run(agent).output


def is_refused_by_the_master(stage: Stage, system: System) -> None:
    """Without an identity the master sees nobody."""
    agent = stage.enrolled(f"none-{system.root.name[:3]}.example", system=system)
    outputs, renewals, rules = played(stage, agent, "none")
    assert all("Failed to automatically renew certificate: 403" in output for output in outputs), outputs
    assert [record.response.status for record in renewals if record.response] == [403, 403]
    assert rules == {"T23"}


def test_renewals(master8: RealMaster, sid: System, tmp_path: Path, subtests: pytest.Subtests) -> None:
    """One test, as each worker that takes one would start a Puppet Server of its own."""
    assert master8.system

    def scene(play: Callable[..., None], system: System, *more: str) -> None:
        name = f"{play.__name__} {system.root.name[:3]} {' '.join(more)}"
        (tmp_path / name.replace(" ", "-")).mkdir()
        with subtests.test(name), closing(Stage(master8, tmp_path / name.replace(" ", "-"))) as stage:
            play(stage, system, *more)

    for system in (master8.system, sid):
        scene(renews, system, "keys")
        scene(is_answered_by_the_proxy, system)
    scene(begins_and_renews, sid)
    scene(is_refused_by_the_master, master8.system)
    master8.generate(f"headers-{master8.system.root.name[:3]}.example")  # a CA that believes headers signs nothing
    with master8.believing_headers():
        scene(renews, master8.system, "headers")
