"""`certificates --what-if`: what is foretold of real agents, and what then happens to them."""

from __future__ import annotations

import datetime
import os
import shutil
import time
from typing import TYPE_CHECKING, NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from inspector.fleet.trust import inventory, scenario
from inspector.fleet.trust.effects import Verdict
from inspector.fleet.trust.radius import radius
from inspector.host import pki
from inspector.protocol import fields, pem
from tests.real.agent import installed
from tests.support.tables_of import converted, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.fleet.trust.inventory import Inventory
    from inspector.fleet.trust.radius import Radius
    from tests.real.agent import RealAgent
    from tests.real.puppet import RealMaster
    from tests.real.through import Stage

REFRESH = ("--crl_refresh_interval", "1s")
SHORT = datetime.timedelta(days=40)
"""How long the CA's CRL is valid here. (Puppetserver from 8.4 on renews one that has less than 30 days left.)"""


class Foretold(NamedTuple):
    """What is foretold: the nodes that break, those that a scenario touches and that keep working, what is printed."""

    breaks: set[str]
    works: set[str]
    prints: set[str]


@pytest.fixture
def crls(master: RealMaster) -> Iterator[list[x509.CertificateRevocationList]]:
    """The CA's CRLs, its own one valid for some weeks only; afterwards the file is as it was."""
    if not shutil.which("faketime"):
        (pytest.fail if os.environ.get("PUPPET_INSPECTOR_REAL") == "required" else pytest.skip)("faketime is missing")
    place = master.cadir / "ca_crl.pem"
    before = place.read_bytes()
    authority, (own, root) = pki.read_authority(master.cadir), _parsed(before)
    short = pki.renew_crl(authority, [own], _now(), _now() + SHORT)
    try:
        place.write_bytes(pki.pem(short, root))
        yield [short, root]
    finally:
        place.write_bytes(before)


def test_what_is_foretold_happens(stage: Stage, crls: list[x509.CertificateRevocationList]) -> None:
    master = stage.master
    fetching, other, retired = (stage.enrolled(f"{name}-what-if.example") for name in ("fetching", "other", "retired"))
    (fetching.ssldir / "crl.pem").unlink()  # only who has none is sent one
    with stage.proxy(f"mint:{master.cadir}") as road:
        recorded = [road.run(agent, *words) for agent, words in
                    ((fetching, REFRESH), (fetching, REFRESH), (other, ()), (retired, ()))]  # fmt: skip
    assert [run.status for run in recorded[1:]] == [0, 2, 2], recorded
    with shown(converted(stage.directory, stage.capture)) as connection:
        found = inventory.read(connection)
    assert {node.certname for node in found.nodes} == {agent.certname for agent in (fetching, other, retired)}

    # A date after the end of the CRL that they have, and one before it.
    every = _names(fetching, other, retired)
    after, before = _date(50), _date(5)
    foretold = _foretold(found, after)
    assert _foretold(found, before) == Foretold(set(), set(), set())
    renewed = pki.renew_crl(pki.read_authority(master.cadir), [crls[0]], _now(), _now() + 4 * SHORT)
    if installed() >= (8, 4):
        # The CA signs a new one 30 days before, and agents fetch it every day.
        assert foretold == Foretold(set(), every, set())
        (master.cadir / "ca_crl.pem").write_bytes(pki.pem(renewed, crls[1]))
        _succeeds(stage, other, *REFRESH)
        _succeeds(stage, other, clock="+50d")
    else:
        assert (foretold.breaks, foretold.works) == (every, set())
        assert foretold.prints == {
            f"The CRL issued by 'CN=Puppet CA: {master.name}' has expired, verify time is synchronized",
            f"certificate verify failed [CRL has expired for CN={master.name}]",
        }
        _fails(stage, other, foretold, clock="+50d")
        _succeeds(stage, other, clock="+5d")
        # Who has one that has ended cannot fetch the new one.
        (master.cadir / "ca_crl.pem").write_bytes(pki.pem(renewed, crls[1]))
        _fails(stage, other, foretold, *REFRESH, clock="+50d")
    other.clock = ""

    # Agents fetch the CRL every day since 8.1, before that only if they are told to.
    daily = installed() >= (8, 1)

    # A node's certificate is revoked.
    foretold = _foretold(found, revoked=_certificate(master, retired.certname))
    assert foretold == Foretold(_names(retired), set(), {"Certificate 'CN={name}' is revoked"} if daily else set())
    master.revoke(retired.certname)
    done = stage.direct.run(retired)
    assert (done.status, "certificate unknown" in done.output) == (1, True), done.output

    if daily:
        done = stage.direct.run(retired, *REFRESH)
        assert (done.status, f"Certificate 'CN={retired.certname}' is revoked" in done.output) == (1, True), done.output

    # The master's certificate is revoked: only who fetches the CRL again learns it.
    fetch = every if daily else _names(fetching)
    foretold = _foretold(found, revoked=_certificate(master, master.name))
    assert (foretold.breaks, foretold.works) == (fetch, every - fetch)
    master.revoke(master.name)
    _fails(stage, fetching, foretold, *REFRESH)
    _succeeds(stage, other)

    # A CA is revoked by the root: agents that check the leaf only do not care, nor does the master.
    for authority in x509.load_pem_x509_certificates((master.cadir / "ca_crt.pem").read_bytes()):
        foretold = _foretold(found, revoked=authority)
        assert (foretold.breaks, foretold.works) == (fetch, every - fetch)
        _revoke_authority(master, authority, crls)
        (fetching.ssldir / "crl.pem").unlink()
        _fails(stage, fetching, foretold)
    _succeeds(stage, fetching, "--certificate_revocation", "leaf")


def _foretold(found: Inventory, *terms: str, revoked: x509.Certificate | None = None) -> Foretold:
    """What is computed for a date, or if a certificate is revoked: another one may have its serial number."""
    now = time.time()
    terms = (*terms, f"revoke={revoked.serial_number}") if revoked else terms
    digest = fields.fingerprint(revoked.public_bytes(Encoding.DER)) if revoked else ""
    (one,) = [
        one
        for one in scenario.scenarios(scenario.assumptions(terms, now), found)
        if not revoked or one.revoked[0].fingerprint == digest
    ]
    result = radius(found, one, now)
    assert result.already == ()
    return Foretold(
        _with(result, Verdict.BREAKS),
        _with(result, Verdict.WORKS),
        {group.reason.prints for group in result.groups if group.reason.prints},
    )


def _with(result: Radius, verdict: Verdict) -> set[str]:
    groups = [group for group in result.groups if group.reason.verdict is verdict]
    return {affected.node.certname for group in groups for affected in group.nodes}


def _fails(stage: Stage, agent: RealAgent, foretold: Foretold, *words: str, clock: str = "") -> None:
    """The agent fails, as is foretold of it: with the same words."""
    assert agent.certname in foretold.breaks
    agent.clock = clock
    done = stage.direct.run(agent, *words)
    assert done.status == 1, done.output
    assert any(text in done.output for text in foretold.prints), (foretold.prints, done.output)


def _succeeds(stage: Stage, agent: RealAgent, *words: str, clock: str = "") -> None:
    agent.clock = clock
    done = stage.direct.run(agent, *words)
    assert done.status in (0, 2), done.output


def _names(*agents: RealAgent) -> set[str]:
    return {agent.certname for agent in agents}


def _now() -> datetime.datetime:
    """A second ago: OpenSSL uses a coarser clock."""
    return datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=1)


def _date(days: int) -> str:
    return f"date={datetime.datetime.now(datetime.UTC).date() + datetime.timedelta(days=days)}"


def _certificate(master: RealMaster, certname: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate((master.cadir / f"signed/{certname}.pem").read_bytes())


def _parsed(text: bytes) -> list[x509.CertificateRevocationList]:
    return [x509.load_pem_x509_crl(block) for block in pem.pem_blocks(text, "X509 CRL")]


def _revoke_authority(
    master: RealMaster, authority: x509.Certificate, crls: list[x509.CertificateRevocationList]
) -> None:
    """Put a CA's certificate on the root's CRL, and nothing on the CA's own one; the master serves it at once."""
    certificates = x509.load_pem_x509_certificates((master.cadir / "ca_crt.pem").read_bytes())
    root = pki.Authority(certificates[-1], pki.read_key(master.cadir / "root_key.pem"))
    revoking = pki.make_crl(root, [authority.serial_number], number=99)
    (master.cadir / "ca_crl.pem").write_bytes(pki.pem(crls[0], revoking))
