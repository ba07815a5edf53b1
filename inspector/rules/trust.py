"""Certificates and CRLs that an agent has or was presented, for several rules."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from inspector.clocks import SKEW
from inspector.lazily import Lazily
from inspector.protocol import documents as d

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from inspector.model import Exchange, Handshake
    from inspector.protocol import signatures, x509
    from inspector.rules.cases import Case, ExchangeCase
    from inspector.runs.history import Presented
    from inspector.runs.run import Run
else:
    signatures, x509 = Lazily("inspector.protocol.signatures"), Lazily("inspector.protocol.x509")


def leaf(chain: Sequence[bytes]) -> d.Certificate | None:
    """Return the first certificate of a chain as TLS carried it; None if it is missing or cannot be parsed."""
    return _read(chain[0]) if chain else None


@lru_cache(maxsize=1024)
def _read(der: bytes) -> d.Certificate | None:
    try:
        return x509.read_der(der)
    except x509.Malformed:
        return None


def serial(certificate: d.Certificate) -> str:
    """Return a serial number as Puppet's inventory writes it."""
    return f"0x{certificate.serial:04x}"[:50]


def without_identity(exchange: Exchange) -> bool:
    """Whether the agent presented its certificate, and the proxy used no identity for it towards the master."""
    used = exchange.identity
    if not exchange.agent.peer_chain or used is None or used.certname:
        return False
    return bool(used.reason) or used.mode == "none"


def signed_for_proxy(case: ExchangeCase) -> bool:
    """Whether the CA renewed a certificate for the key of the identity that the proxy used, not for the agent's."""
    answer, client, used = case.step.response, case.step.client, case.exchange.master
    presented = leaf(used.own_chain) if used else None
    if not isinstance(answer, d.Certificates) or client is None or presented is None:
        return False
    return answer.certificates[0].key == presented.key != client.key


def bundle_of(run: Run) -> list[d.Certificate]:
    """Return the CA bundle that was downloaded in this run; empty if none was."""
    return next((ca_answer.items for ca_answer in reversed(run.cas) if ca_answer.items), None) or []


def lists_of(run: Run) -> list[d.RevocationList]:
    """Return the CRLs that were downloaded in this run; empty if none were."""
    return next((crl.items for crl in reversed(run.crls) if crl.items), None) or []


def made_by(crl: d.RevocationList, authorities: Iterable[d.Certificate]) -> list[d.Certificate]:
    """Return the CAs that may have issued a CRL: those with its issuer's name, preferably also with its key."""
    by_name = [authority for authority in authorities if authority.subject == crl.issuer]
    by_key = [authority for authority in by_name if authority.key_identifier == crl.authority_key_identifier]
    return by_key or by_name


def forged(crl: d.RevocationList, authorities: Iterable[d.Certificate]) -> bool:
    """Return True if a CA with the CRL's issuer name is known and no such CA signed it."""
    signers = made_by(crl, authorities)
    return bool(signers) and not any(signatures.signed_by(crl, authority) is not False for authority in signers)


def crl_trouble(run: Run, at: float) -> bool:
    """Return True if the agent trusts no master because of the CRLs of this run (B10, B12, B13, B14)."""
    crls, authorities = lists_of(run), bundle_of(run)
    if not crls:
        return False
    issuers = {crl.issuer for crl in crls}
    return any(
        (crl.next_update is not None and crl.next_update < at)
        or crl.last_update > at + SKEW
        or forged(crl, authorities)
        for crl in crls
    ) or any(authority.is_ca and authority.subject not in issuers for authority in authorities)


def presented_in_run(case: Case) -> Presented | None:
    """Return the agent's certificate, if it was used in this run."""
    run = case.run
    presented = case.ledger.known(run.certname).presented
    if presented is None or not run.seqs or run.authenticated is None:
        return None
    return presented if run.seqs[0] <= presented.last_seq and presented.seq <= run.seqs[-1] else None


def agent_certificate(handshake: Handshake) -> d.Certificate | None:
    """Return the agent's certificate in a failed handshake.

    The agent presented it to the proxy, or the proxy used it towards the master on the agent's behalf.
    """
    leg = handshake.leg
    return leaf(leg.peer_chain if leg.side == "agent" else leg.own_chain)
