"""The public keys in recorded traffic, which ``doctor`` compares with those on a disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from inspector.model import Exchange
from inspector.protocol import documents as d
from inspector.protocol.kinds import Kind
from inspector.text import clock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.analysis.analyzer import Step

MOST = 20_000
"""Maximum number of keys of a capture: any client can invent names and keys."""


class WireKey(msgspec.Struct, frozen=True, array_like=True):
    """A public key in recorded traffic."""

    kind: Literal["csr", "certificate", "client"]
    """Where the key is: in a signing request, in a certificate that a CA served, or in one that an agent presented."""
    certname: str
    key: str
    """The digest, as in ``Certificate.key``."""
    time: float
    seq: int
    """The number of the latest record that contains the key."""
    fingerprint: str = ""
    """That of a signing request, as the CA lists it."""

    def __str__(self) -> str:
        return f"{clock(self.time)[:5]} (record {self.seq})"


class WireKeys:
    """The keys of a capture, each with its latest record."""

    def __init__(self) -> None:
        self._keys: dict[tuple[str, str, str], WireKey] = {}
        self._changed: dict[tuple[str, str, str], WireKey] = {}

    def add(self, step: Step) -> None:
        """Add the keys in a record."""
        for found in _of(step):
            ident = found.kind, found.certname, found.key
            if ident in self._keys or len(self._keys) < MOST:
                self._keys[ident] = self._changed[ident] = found

    def all(self) -> list[WireKey]:
        return list(self._keys.values())

    def changed(self) -> list[WireKey]:
        """Return those that were added, or met again, since the last call."""
        changed, self._changed = list(self._changed.values()), {}
        return changed


def _of(step: Step) -> Iterator[WireKey]:
    record = step.record
    if not isinstance(record, Exchange):
        return
    if step.client and step.client.common_name:
        yield WireKey("client", step.client.common_name, step.client.key, record.time, record.seq)
    name = step.match.certname if step.match else None
    if name is None or step.match is None or step.match.endpoint.area != "ca":
        return
    if isinstance(step.request, d.CertificateRequest):
        yield WireKey("csr", name, step.request.key, record.time, record.seq, step.request.fingerprint)
    if step.match.endpoint.kind is Kind.CERTIFICATE and isinstance(step.response, d.Certificates):
        yield WireKey("certificate", name, step.response.certificates[0].key, record.time, record.seq)
