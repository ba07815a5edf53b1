"""Who trusts whom, with real agents: handshakes that fail, and a proxy that is an enrolled host itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.host import pki
from tests.real.through import RunSummary, Stage, a_run, run_summaries

if TYPE_CHECKING:
    from tests.real.agent import RealAgent


def test_revoked(stage: Stage) -> None:
    agent = stage.enrolled("revoked.example")
    stage.master.revoke(agent.certname)
    assert stage.compare(a_run, agent, agent, status=1) == [
        RunSummary("revoked.example", "refused", "certificates", "T05 error, T09 error"),
    ]


def test_agent_trusts_another_ca(stage: Stage) -> None:
    agent, foreign = stage.agent("stranger.example"), pki.make_ca("Puppet CA: puppet.elsewhere.example")
    (agent.ssldir / "certs").mkdir()
    (agent.ssldir / "certs/ca.pem").write_bytes(pki.pem(foreign.certificate))
    (agent.ssldir / "crl.pem").write_bytes(pki.pem(pki.make_crl(foreign)))
    assert stage.compare(a_run, agent, agent, status=1) == [RunSummary(None, "refused", "certificates", "T08 error")]


def test_agent_shows_a_foreign_certificate(stage: Stage) -> None:
    """It must trust both CAs: Puppet does not start with a certificate that it could not verify itself."""
    agent, foreign = stage.enrolled("forged.example"), pki.make_ca("Puppet CA: puppet.elsewhere.example")
    key = pki.read_key(agent.ssldir / f"private_keys/{agent.certname}.pem")
    leaf = pki.sign(foreign, key.public_key(), agent.certname)
    (agent.ssldir / f"certs/{agent.certname}.pem").write_bytes(pki.pem(leaf))
    for path, more in (("certs/ca.pem", foreign.certificate), ("crl.pem", pki.make_crl(foreign))):
        with (agent.ssldir / path).open("ab") as file:
            file.write(pki.pem(more))
    assert stage.compare(a_run, agent, agent, status=1, identity=f"mint:{stage.master.cadir}") == [
        RunSummary("forged.example", "refused", "certificates", "T06 error, T09 error"),
    ]


def test_the_hosts_own_certificate(stage: Stage, steady: RealAgent) -> None:
    """With nothing but its own ssldir an enrolled host is the proxy, under its own certname."""
    assert stage.direct.run(steady).status == 0
    with stage.proxy("", server=steady.certname, puppet_ssldir=steady.ssldir) as road:
        assert road.run(steady).status == 0
    assert run_summaries(stage.capture) == [RunSummary("steady.example", "complete", "plugins catalog files report")]
