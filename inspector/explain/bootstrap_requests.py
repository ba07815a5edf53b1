"""The requests of one run of an agent for its certificate: the input for its bootstrap.

docs/protocol.md#bootstrap-up-to-5, docs/protocol.md#bootstrap-of-60-to-63, docs/protocol.md#ssl-state-machine
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from inspector.model import Exchange, Handshake
from inspector.protocol import bodies, kinds
from inspector.protocol import documents as d
from inspector.protocol.certificates import REQUESTED, REVOKED, SIGNED
from inspector.rules.words import cut, some
from inspector.runs.observations import Bounded
from inspector.text import brief, utc_day

if TYPE_CHECKING:
    from inspector.analysis.analyzer import Step
    from inspector.model import Leg
    from inspector.runs.run import Run

    type RequestDetails = tuple[tuple[str, str], ...]
    type KeyRole = Literal["csr", "certificate", "client"]

MANY = 100
"""Maximum number of keys and addresses per agent."""
ANSWERS = 5
"""Maximum number of different answers to one request."""
WORDS = 120
"""Characters of an answer's message."""
NEAR = 3
"""How many steps back a request counts as a repetition: polls alternate between two requests."""
AGAIN = "last sent as"
"""The fact that is the fingerprint of the latest request, if the CA accepted an earlier one."""
FEW = 50
"""Maximum number of certificates and CRLs read from one bundle: a server can send thousands."""


class BootstrapState(StrEnum):
    """A stage of the bootstrap (6.4 and later: a state of the agent's SSL state machine)."""

    CA = "CA"
    CRL = "CRL"
    CSR_LOOKUP = "CSR lookup"
    CSR = "CSR"
    CERTIFICATE = "certificate"
    RENEWAL = "renewal"
    RUN = "run"
    TLS = "TLS refused"


_STATES = {
    kinds.Kind.CA_BUNDLE: BootstrapState.CA,
    kinds.Kind.CRL: BootstrapState.CRL,
    kinds.Kind.CSR_LOOKUP: BootstrapState.CSR_LOOKUP,
    kinds.Kind.CSR: BootstrapState.CSR,
    kinds.Kind.CERTIFICATE: BootstrapState.CERTIFICATE,
    kinds.Kind.RENEWAL: BootstrapState.RENEWAL,
}

_NONE: RequestDetails = ()


@dataclass(slots=True, eq=False)
class StateVisit:
    """A step of the bootstrap, to which further requests are added."""

    state: BootstrapState
    same: str
    """What identifies a repetition of the request: digest, key, status."""
    began: float
    ended: float
    seqs: tuple[int, ...]
    verified: bool | None
    facts: RequestDetails
    times: int = 1
    answers: dict[str, None] = field(default_factory=dict)

    def again(self, other: StateVisit) -> None:
        """Add a repetition of the request."""
        self.times += other.times
        self.ended = max(self.ended, other.ended)
        self.seqs = (self.seqs[0], other.seqs[-1])
        self.facts = self._facts_with(other)
        if self.verified is not other.verified:
            self.verified = self.verified and other.verified
        for answer in other.answers:
            if len(self.answers) < ANSWERS:
                self.answers.setdefault(answer)

    @property
    def accepted(self) -> bool:
        """Whether the master accepted one of the requests."""
        return any(answer[:1] == "2" for answer in self.answers)

    def _facts_with(self, other: StateVisit) -> RequestDetails:
        """The facts of the latest request, or of the one that the CA accepted: with some keys each has its own
        fingerprint."""
        if self.state is not BootstrapState.CSR or other.accepted or not self.accepted:
            return other.facts or self.facts
        facts, latest = dict(self.facts), dict(other.facts).get("fingerprint")
        facts.pop(AGAIN, None)
        if latest and latest != facts.get("fingerprint"):
            facts[AGAIN] = latest
        return tuple(facts.items())


@dataclass(slots=True)
class Sighting:
    """A record in which a public key was seen."""

    kind: KeyRole
    key: str
    fingerprint: str
    time: float
    last: float
    seqs: tuple[int, ...]
    addresses: dict[str, None]
    accepted: bool = False
    """Whether the fingerprint is that of a request that the CA accepted."""


@dataclass(slots=True)
class Attempt:
    """The requests of one run for its certificate, and the answers."""

    run: Run
    visits: Bounded[StateVisit] = field(default_factory=Bounded)
    keys: dict[tuple[str, str], Sighting] = field(default_factory=dict)
    ca: d.Certificates | None = None
    crls: d.RevocationLists | None = None
    certificate: d.Certificate | None = None
    """As issued by the CA."""
    presented: d.Certificate | None = None
    refused: d.Certificate | None = None
    """Presented in a handshake that failed."""
    shown: tuple[bytes, ...] = ()
    """The chain presented to the agent as the master's."""
    host: str | None = None
    """The name by which it called the master."""
    worked: float | None = None
    """When it last did something that needs its certificate."""

    @property
    def name(self) -> str:
        """Its certname; the address if the certname is not known."""
        return self.run.certname or self.run.address or ""

    @property
    def began(self) -> float:
        return self.visits[0].began

    @property
    def last(self) -> StateVisit:
        """The step of its latest request."""
        return max(self.visits, key=lambda visit: visit.seqs[-1])

    def take(self, step: Step) -> None:
        """Add a step of the run, if it is about certificates."""
        record = step.record
        if isinstance(record, Handshake) and record.leg.side == "agent":
            self._connected(record.leg)
            self.refused = step.client or self.refused
            self._add(_refused(record))
        elif isinstance(record, Exchange):
            self._connected(record.agent)
            if step.client:
                self.presented = step.client
                self.see(_sighting("client", step.client, record))
            if state := _state(step):
                self._request(state, step, record)
            elif step.client:
                self._work(step.client, record)

    def _connected(self, leg: Leg) -> None:
        self.host = leg.sni or self.host
        if not leg.for_one_run:  # its CA is trusted, and gone after the run
            self.shown = leg.own_chain or self.shown

    def _request(self, state: BootstrapState, step: Step, exchange: Exchange) -> None:
        asked, answered, status = step.request, step.response, _status(exchange)
        same, facts = status, _NONE
        match answered:
            case d.Certificates() if state is BootstrapState.CA:
                same, facts = _digest(exchange), _bundle(exchange, answered)
                self.ca = answered
            case d.RevocationLists():
                same, facts = _digest(exchange), _lists(answered)
                self.crls = answered
            case d.Certificates() if state in (BootstrapState.CERTIFICATE, BootstrapState.RENEWAL):
                self.certificate = answered.certificates[0]
                same, facts = self.certificate.fingerprint, _certificate(self.certificate)
                self.see(_sighting("certificate", self.certificate, exchange))
        if state is BootstrapState.CSR and isinstance(asked, d.CertificateRequest):
            facts = _csr(asked)
            same = (
                asked.key
                if status[:1] == "2" or REQUESTED in _message(answered) or SIGNED in _message(answered)
                else status
            )
            self.see(replace(_sighting("csr", asked, exchange), accepted=status[:1] == "2"))
        visit = StateVisit(state, same, exchange.time, exchange.ended, (exchange.seq,),
                          _verified(self.run, state, exchange), facts)  # fmt: skip
        visit.answers[_answer(status, _message(answered))] = None
        self._add(visit)

    def _work(self, client: d.Certificate, exchange: Exchange) -> None:
        """Add a request that needs the certificate: the bootstrap succeeded, or the certificate is refused."""
        status = _status(exchange)
        refused = exchange.response is None or exchange.response.status in (401, 403)
        visit = StateVisit(
            BootstrapState.RUN,
            status if refused else "",
            exchange.time,
            exchange.ended,
            (exchange.seq,),
            verified=True,
            facts=(("with", client.fingerprint),),
        )
        if refused:
            visit.answers[status] = None
        else:
            self.worked = exchange.ended
        self._add(visit)

    def _add(self, visit: StateVisit) -> None:
        for known in reversed(self.visits[-NEAR:]):
            if (known.state, known.same) == (visit.state, visit.same):
                known.again(visit)
                return
            if (known.state, visit.state) == (BootstrapState.CSR, BootstrapState.CERTIFICATE):
                break  # there could be none before the request
        self.visits.append(visit)

    def see(self, sighting: Sighting) -> None:
        """Add a record in which a key was seen."""
        known = self.keys.get((sighting.kind, sighting.key))
        if known is None:
            if len(self.keys) < MANY:
                self.keys[sighting.kind, sighting.key] = sighting
            return
        known.last = max(known.last, sighting.last)
        if sighting.accepted or not known.accepted:
            known.fingerprint, known.accepted = sighting.fingerprint, sighting.accepted
        known.seqs = (known.seqs[0], sighting.seqs[-1])
        if len(known.addresses) < MANY:
            known.addresses |= sighting.addresses


def concerns(step: Step) -> bool:
    """Whether a step is part of the bootstrap, or was made with the certificate."""
    if isinstance(step.record, Handshake):
        return step.record.leg.side == "agent"
    return isinstance(step.record, Exchange) and step.match is not None and bool(step.client or _state(step))


def _state(step: Step) -> BootstrapState | None:
    return _STATES.get(step.match.endpoint.kind) if step.match else None


def _status(exchange: Exchange) -> str:
    return str(exchange.response.status) if exchange.response else "no answer"


def _message(answered: d.Document | None) -> str:
    return answered.message if isinstance(answered, d.ErrorDocument) else ""


def _answer(status: str, message: str) -> str:
    """A short form of the answer, without what its status already says."""
    for refusal in (REQUESTED, SIGNED, REVOKED):
        if refusal in message:
            return f"{status} {refusal}"
    plain = status < "4" or message.startswith(("Could not find", "Not Found"))
    return status if plain else f"{status} {brief(message, WORDS)}".strip()


def _verified(run: Run, state: BootstrapState, exchange: Exchange) -> bool | None:
    """Whether the agent's version verifies the server by default (docs/protocol.md#verification-by-request); B03
    reports an agent that does not."""
    if exchange.agent.peer_chain:
        return True
    if state is BootstrapState.CA and exchange.request.header("if-modified-since") is None:
        return False
    if run.major == (0, 0):
        return None
    return not run.old_engine


def _refused(record: Handshake) -> StateVisit:
    facts = [("reason", cut(record.reason))]
    facts += [("alert", f"{record.alert} from the {record.alert_by or 'other side'}")] if record.alert else []
    facts += [("wrong", cut(culprit)) for culprit in record.culprits[:NEAR] if culprit != record.reason]
    return StateVisit(BootstrapState.TLS, record.reason, record.time, record.ended, (record.seq,), None, tuple(facts))


def _digest(exchange: Exchange) -> str:
    """SHA-256 over the PEM text, for comparison with ca_fingerprint (docs/protocol.md#fingerprints)."""
    try:
        body = bodies.plain(exchange.response) if exchange.response else b""
    except bodies.Unreadable:
        body = b""
    return hashlib.sha256(body).hexdigest()


def _bundle(exchange: Exchange, answered: d.Certificates) -> RequestDetails:
    held = [
        f"{certificate.subject} until {utc_day(certificate.not_after)}" for certificate in answered.certificates[:FEW]
    ]
    return ("sha256", _digest(exchange)), ("certificates", some(held))


def _lists(answered: d.RevocationLists) -> RequestDetails:
    ends = [crl.next_update for crl in answered.crls if crl.next_update is not None]
    revoked = sum(len(crl.revoked) for crl in answered.crls)
    lists = [
        crl.issuer + (f" until {utc_day(crl.next_update)}" if crl.next_update else "") for crl in answered.crls[:FEW]
    ]
    facts = (("lists", some(lists)), ("revoked", str(revoked)))
    return (("expires", utc_day(min(ends))), *facts) if ends else facts


def _csr(asked: d.CertificateRequest) -> RequestDetails:
    names = some(asked.alt_names) if asked.alt_names else "none"
    kind = f"{asked.key_type} {asked.key_size or ''}".strip()
    more = sorted({*asked.extensions, *asked.attributes})
    facts = (("key", asked.key), ("type", kind), ("SANs", names), ("fingerprint", asked.fingerprint))
    return (*facts, ("asks for", some(more))) if more else facts


def _certificate(certificate: d.Certificate) -> RequestDetails:
    return (
        ("key", certificate.key),
        ("fingerprint", certificate.fingerprint),
        ("serial", str(certificate.serial)),
        ("until", utc_day(certificate.not_after)),
    )


def _sighting(kind: KeyRole, document: d.CertificateRequest | d.Certificate, exchange: Exchange) -> Sighting:
    addresses = {exchange.agent.address: None} if exchange.agent.address else {}
    return Sighting(kind, document.key, document.fingerprint, exchange.time, exchange.ended, (exchange.seq,), addresses)
