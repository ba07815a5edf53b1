"""Rows of the certificates and CRLs that a capture shows, each once."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from inspector.fleet.spools import micros, short
from inspector.fleet.tables import CertificateRow, CrlRow
from inspector.privacy import secrets
from inspector.protocol import documents as d
from inspector.protocol import x509
from inspector.protocol.certificates import printed_serial
from inspector.protocol.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from inspector.analysis.analyzer import Step
    from inspector.fleet.tables import TableRow
    from inspector.model import Exchange, Handshake

MOST = 20_000
"""Certificates that are held in memory; then they are written, and may be written again."""
NAMES = 100
"""Alternative names of a certificate."""
SERIALS = 100_000
"""Serial numbers of a CRL."""
LARGEST = 2**16
"""Bytes of a certificate that is read."""


@lru_cache(maxsize=4096)
def read(der: bytes) -> d.Certificate | None:
    """A certificate; None if it cannot be read."""
    if len(der) > LARGEST:
        return None
    try:
        return x509.read_der(der)
    except x509.Malformed:
        return None


def leaf(chain: Sequence[bytes]) -> d.Certificate | None:
    """The first certificate of a chain; None if there is none, or if it cannot be read."""
    return read(chain[0]) if chain else None


class Certificates:
    """Collects what a capture shows of certificates and CRLs. The same one is one row in each of its roles."""

    def __init__(self, capture: str, write: Callable[[TableRow], None]) -> None:
        self._capture = capture
        self._write = write
        self._rows: dict[tuple[str, str], CertificateRow] = {}
        self._crls: dict[bytes, CrlRow] = {}
        self._legs: dict[str, str | None] = {}
        """The fingerprint of what the peer of a connection presented: of the connections that were used last."""

    def of_agent(self, step: Step, exchange: Exchange) -> str | None:
        """Note what an agent presented; return its fingerprint, None if it presented nothing."""
        leg = exchange.agent
        if leg.id not in self._legs:
            self._connected(leg.id, self._add(step.client, "agent", exchange.time))
            self._add_issuers(leg.peer_chain, exchange.time)
        return self._legs[leg.id]

    def of_master(self, exchange: Exchange) -> str | None:
        """Note what the master presented; return its fingerprint, None if that is not known."""
        leg = exchange.master
        if leg is None:
            return None
        if leg.id not in self._legs:
            self._connected(leg.id, self._add(leaf(leg.peer_chain), "master", exchange.time))
            self._add_issuers(leg.peer_chain, exchange.time)
        return self._legs[leg.id]

    def refused(self, handshake: Handshake) -> str | None:
        """Note what the peer of a failed handshake presented; return its fingerprint, None if it presented nothing."""
        leg = handshake.leg
        return self._add(leaf(leg.peer_chain), leg.side, handshake.time)

    def answered(self, step: Step, exchange: Exchange) -> None:
        """Note the certificates and CRLs in an answer."""
        match step.response:
            case d.Certificates() as answer:
                bundle = step.match is not None and step.match.endpoint.kind is Kind.CA_BUNDLE
                for certificate in answer.certificates[:NAMES]:
                    self._add(certificate, "ca" if bundle or certificate.is_ca else "issued", exchange.time)
            case d.RevocationLists() as answer:
                for crl in answer.crls[:NAMES]:
                    self._add_crl(crl, exchange.time)

    def finish(self) -> None:
        """Write what is not written yet."""
        for row in (*self._rows.values(), *self._crls.values()):
            self._write(row)
        self._rows.clear()
        self._crls.clear()

    def _connected(self, leg: str, fingerprint: str | None) -> None:
        if len(self._legs) >= MOST:
            del self._legs[next(iter(self._legs))]
        self._legs[leg] = fingerprint

    def _add_issuers(self, chain: Iterable[bytes], time: float) -> None:
        for der in islice(chain, 1, 10):
            self._add(read(der), "ca", time)

    def _add(self, certificate: d.Certificate | None, role: str, time: float) -> str | None:
        if certificate is None:
            return None
        key = certificate.fingerprint, role
        known = self._rows.get(key)
        if known is not None:
            known.last = max(known.last, micros(time))
            return certificate.fingerprint
        if len(self._rows) >= MOST:
            self.finish()
        self._rows[key] = _certificate(self._capture, certificate, role, micros(time))
        return certificate.fingerprint

    def _add_crl(self, crl: d.RevocationList, time: float) -> None:
        known = self._crls.get(crl.der)
        if known is not None:
            known.last = max(known.last, micros(time))
            return
        if len(self._crls) >= NAMES:
            self.finish()
        self._crls[crl.der] = CrlRow(
            capture=self._capture,
            time=micros(time),
            last=micros(time),
            fingerprint=hashlib.sha256(crl.der).digest().hex(":").upper(),
            issuer=short(crl.issuer) or "",
            issuer_key=crl.authority_key_identifier,
            number=None if crl.number is None else str(crl.number),
            last_update=micros(crl.last_update),
            next_update=None if crl.next_update is None else micros(crl.next_update),
            revoked=len(crl.revoked),
            serials=[printed_serial(number) for number in crl.revoked[:SERIALS]],
        )


def _certificate(capture: str, certificate: d.Certificate, role: str, time: int) -> CertificateRow:
    extensions = {name: str(value) for name, value in islice(secrets.extensions(certificate).items(), NAMES)}
    return CertificateRow(
        capture=capture,
        time=time,
        last=time,
        fingerprint=certificate.fingerprint,
        role=role,
        certname=short(certificate.common_name),
        subject=short(certificate.subject) or "",
        names=[name[:255] for name in certificate.alt_names[:NAMES]],
        serial=printed_serial(certificate.serial),
        issuer=short(certificate.issuer) or "",
        issuer_key=certificate.authority_key_identifier,
        not_before=micros(certificate.not_before),
        not_after=micros(certificate.not_after),
        ca=certificate.is_ca,
        key=certificate.key,
        key_identifier=certificate.key_identifier,
        key_type=certificate.key_type,
        key_size=certificate.key_size,
        signature=certificate.signature,
        extensions=short(msgspec.json.encode(extensions).decode()) if extensions else None,
    )
