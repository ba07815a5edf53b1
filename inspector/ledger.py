"""What a capture has shown so far of names, keys, certificates and lists: for deviations that span runs.

Everything in it is bounded: whoever can reach the CA can invent names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from inspector.fleet import Fleet
from inspector.model import Exchange
from inspector.protocol import documents as d

if TYPE_CHECKING:
    from inspector.model import Record
    from inspector.protocol.endpoints import Match
    from inspector.runs import Run

NAMES = 10_000
"""Certnames that are remembered; who was silent for longest is forgotten first."""
KEYS = 8
"""Different keys that are remembered of one certname."""


class Understood(Protocol):
    """The part of an analyzer's step that rules read."""

    record: Record
    match: Match | None
    request: d.Document | None
    response: d.Document | None
    certname: str | None
    client: d.Certificate | None
    """The certificate that the agent presented on its connection."""


@dataclass(slots=True)
class CsrSeen:
    """A signing request with one key, sent once or many times."""

    key: str
    seq: int
    time: float
    """Of the first one."""
    last_seq: int
    last_time: float
    status: int | None
    """What the last one was answered."""
    taken: bool = False
    """The CA took one of them: it waits there, or is signed."""
    times: int = 1


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate that was served for a name."""

    seq: int
    time: float
    certificate: d.Certificate


@dataclass(slots=True)
class Presented:
    """A client certificate in use: the last one of a name."""

    seq: int
    time: float
    last_time: float
    certificate: d.Certificate
    address: str | None


@dataclass(slots=True)
class Known:
    """What was seen of one certname."""

    csrs: dict[str, CsrSeen] = field(default_factory=dict)
    """By key, in the order in which the keys were last used."""
    issued: Issued | None = None
    """The last certificate that was served for it."""
    presented: Presented | None = None


@dataclass(slots=True)
class Ledger:
    """The memory of an analyzer."""

    names: dict[str, Known] = field(default_factory=dict)
    keys: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Public keys of signing requests: the certname that used it first, and where."""
    fleet: Fleet = field(default_factory=Fleet)
    now: float = 0.0
    """The latest moment that a record told of."""

    def known(self, certname: str | None) -> Known:
        """What was seen of a name; empty if nothing was."""
        return self.names.get(certname or "") or Known()

    def remember(self, run: Run, step: Understood) -> None:
        """Take in a step, after the rules were asked about it."""
        record, match = step.record, step.match
        self.now = max(self.now, record.ended)
        if not isinstance(record, Exchange):
            return
        if step.client and step.client.common_name:
            self._present(self._name(step.client.common_name), record, step.client)
        if match is None or match.certname is None or match.endpoint.area != "ca":
            return
        if isinstance(step.request, d.CertificateRequest) and run.csrs:
            status = record.response.status if record.response else None
            self._ask(match.certname, step.request.key, record, status)
        if match.endpoint.name == "certificate" and isinstance(step.response, d.Certificates):
            known = self._name(match.certname)
            known.issued = Issued(record.seq, record.time, step.response.certificates[0])

    def _name(self, certname: str) -> Known:
        known = self.names.pop(certname, None) or Known()
        if len(self.names) >= NAMES:
            del self.names[next(iter(self.names))]
        self.names[certname] = known
        return known

    def _ask(self, certname: str, key: str, record: Exchange, status: int | None) -> None:
        csrs = self._name(certname).csrs
        seen = csrs.pop(key, None)
        if seen is None:
            seen = CsrSeen(key, record.seq, record.time, record.seq, record.time, status, times=0)
            if len(csrs) >= KEYS:
                del csrs[next(iter(csrs))]
        csrs[key] = seen
        seen.taken = seen.taken or (status is not None and status < 400)
        seen.last_seq, seen.last_time, seen.status, seen.times = record.seq, record.time, status, seen.times + 1
        if key not in self.keys:
            if len(self.keys) >= NAMES:
                del self.keys[next(iter(self.keys))]
            self.keys[key] = (certname, record.seq)

    def _present(self, known: Known, record: Exchange, certificate: d.Certificate) -> None:
        now = known.presented
        if now is None or now.certificate.der != certificate.der:
            address = record.agent.address
            known.presented = Presented(record.seq, record.time, record.ended, certificate, address)
        else:
            now.last_time = record.ended
