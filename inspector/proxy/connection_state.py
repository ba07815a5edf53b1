"""The state of the connections from agents and to the master: who the peer is, which identity is used towards the
master, and a refused handshake as a record, worded as the agent itself would report it.

Each connection has one of these objects; what OpenSSL reported is in its ``TlsState``. Who moves the bytes knows the
other facts of a connection, and gives them as a leg.
"""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from inspector.errors import IdentityError
from inspector.model import Closed, Handshake, Identity
from inspector.protocol import x509
from inspector.proxy import identity
from inspector.proxy.probe import refuses
from inspector.proxy.tls import parsed_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from inspector.model import Leg
    from inspector.proxy.identity import Credentials, IdentitySource
    from inspector.proxy.tls import TlsState

CLOSED_SILENTLY = (
    "the master closed the connection right after the handshake, before it answered anything: "
    "it may have refused the agent's certificate"
)
AGENT_LEFT = "the agent disconnected"
"""Why an exchange has no answer, in the words of both proxies."""

REFUSAL_WINDOW = 3.0
"""Seconds after the handshake within which a closed connection may be a refusal. Later it is a master that failed while
it worked on the request, or an agent that disconnected."""


@dataclass(slots=True)
class AgentConnection:
    """A connection from an agent."""

    tls_state: TlsState
    presented: Credentials
    probed: bool = False
    """``presented`` is the verification probe's certificate: over this connection no identity is used."""
    injected: str = ""
    """The fault that was injected into its handshake; empty: none. Over this connection no identity is used."""
    certname: str = ""
    """The agent's certname, once its certificate is verified; empty without a certificate."""
    credentials: Credentials | None = None
    identity: Identity | None = None
    foreign_key: bool = False
    """Whether the identity's key is another one than the agent's: the CA would renew the certificate for that key."""
    headers: tuple[tuple[str, str], ...] = ()
    """Headers to add to the requests, which tell the master who the agent is."""
    close: bool = False
    """Whether the last message announced that the connection will be closed."""
    _leg: Leg | None = None

    def leg(self, facts: Callable[[], Leg]) -> Leg:
        """This connection as a record; the same object for all its exchanges. ``facts`` is called for what is not known
        here."""
        if self._leg is None or self._leg.secured is None:
            leg = facts()
            self._leg = dataclasses.replace(
                leg,
                resumed=False if leg.secured else None,
                peer_chain=self.tls_state.peer_chain,
                own_chain=self.presented.ders,
            )
        return self._leg

    @property
    def claimed_name(self) -> str | None:
        """The name in the agent's certificate, verified or not; None without a certificate, or without a name in it."""
        leaf = x509.certificate(parsed_of(self.tls_state.chain[0])) if self.tls_state.chain.get(0) else None
        return leaf.common_name if leaf else None

    @property
    def verified_name(self) -> str:
        """The certname in the agent's certificate, if that is verified; empty otherwise."""
        if not self.tls_state.verified:
            return ""
        try:
            return self.certname or identity.certname_of(parsed_of(self.tls_state.chain[0]))
        except IdentityError:
            return ""

    def choose_identity(self, source: IdentitySource) -> None:
        """Choose the identity to use towards the master, once per connection. In doubt, none is used."""
        if self.identity is not None:
            return
        if not self.tls_state.chain:
            self.identity = Identity(source.mode)
            return
        reasons = "; ".join(str(problem) for problem in self.tls_state.problems)
        self.identity = Identity(source.mode, reason=f"its certificate could not be verified: {reasons}")
        certificate = parsed_of(self.tls_state.chain[0])
        if not self.tls_state.verified and not source.recognizes(certificate):
            return
        try:
            self.certname = certname = identity.certname_of(certificate)
            if self.probed:
                raise IdentityError("it was presented with the certificate of the verification probe")
            if self.injected:
                raise IdentityError("a fault was injected into its handshake on purpose")
            credentials, headers = source.credentials_for(certificate, certname), source.headers(certificate)
        except IdentityError as error:
            self.identity = Identity(source.mode, reason=str(error))
            return
        self.credentials, self.headers = credentials, headers
        self.foreign_key = credentials is not None and credentials.key.public_key() != certificate.public_key()
        self.identity = Identity(source.mode, certname if credentials or headers else None)

    def refused(self, leg: Leg, error: str) -> Handshake:
        """Return the failed handshake: the proxy refused the agent, or the agent refused the proxy."""
        tls_state = self.tls_state
        worst = next((problem for problem in tls_state.problems if not problem.undecided), None)
        reason = str(worst) if worst else self._reason(leg, error)
        handshake = _handshake(leg, reason, tls_state, "agent")
        return dataclasses.replace(handshake, injected=self.injected) if self.injected else handshake

    def _reason(self, leg: Leg, error: str) -> str:
        """Return what an agent prints when it sends this alert, as far as the alert tells."""
        if self.injected and self.tls_state.alert_by == "proxy":
            return "the proxy refused the handshake"
        if self.probed and self.tls_state.alert_by == "peer" and refuses(self.tls_state.alert, "agent"):
            return "the agent refused the certificate of the verification probe, as it should"
        leaf = x509.certificate(self.presented.chain[0])
        if leg.sni and not x509.names_match(leaf, leg.sni):
            return name_mismatch(leg.sni, ", ".join(leaf.alt_names) or leaf.subject)
        match self.tls_state.alert:
            case "unknown_ca":
                return (
                    f"certificate verify failed [unable to get local issuer certificate for {leaf.subject}]: "
                    "the agent trusts another CA, or has no CRL of a CA in the chain"
                )
            case "certificate_expired":
                return f"the agent considers {leaf.subject}, its CA or a CRL expired; verify time is synchronized"
            case "certificate_revoked":
                return f"Certificate '{leaf.subject}' is revoked"
            case None:
                return f"the agent disconnected during the handshake{f': {error}' if error else ''}"
        return f"the agent refused the proxy's certificate ({self.tls_state.alert})"


class Refusal(NamedTuple):
    """Why a master refuses an agent's certificate, as far as that was found out."""

    problems: tuple[str, ...] = ()
    ahead: float | None = None
    """Seconds by which the master's clock is ahead of this host's; None: not known."""


@dataclass(slots=True)
class MasterConnection:
    """A connection to the master, made for one agent."""

    tls_state: TlsState
    agent: AgentConnection | None
    name: str
    """The name that the master's certificate must contain."""
    sni: str | None
    """The name that is sent as SNI."""
    answered: bool = False
    refusal_recorded: bool = False
    why_refused: Refusal | None = None
    _leg: Leg | None = None

    def leg(self, facts: Callable[[], Leg]) -> Leg:
        """This connection as a record; the same object for all its exchanges. ``facts`` is called for what is not known
        here."""
        if self._leg is None or self._leg.secured is None:
            leg = facts()
            credentials = self.agent.credentials if self.agent else None
            self._leg = dataclasses.replace(
                leg,
                resumed=False if leg.secured else None,
                peer_chain=leg.peer_chain or self.tls_state.peer_chain,
                own_chain=credentials.ders if credentials else (),
            )
        return self._leg

    def refused(self, leg: Leg, error: str) -> Handshake | None:
        """Return the failed handshake: the proxy refused the master, or the master refused the agent.

        None if it was recorded before.
        """
        if self.refusal_recorded:
            return None
        self.refusal_recorded = True
        tls_state = self.tls_state
        if tls_state.wrong_name:
            reason = name_mismatch(self.name, tls_state.wrong_name)
        elif tls_state.problems:
            reason = str(tls_state.problems[0])
        elif tls_state.alert_by == "peer":
            reason = f"the master refused the connection with the alert {tls_state.alert}"
        else:
            reason = error
        handshake = _handshake(leg, reason, tls_state, "master")
        problems, ahead = self.why_refused or ((), None)
        return dataclasses.replace(handshake, culprits=handshake.culprits + problems, master_ahead=ahead)

    def late_refusal(self, leg: Leg) -> Handshake | None:
        """Return a refusal after the handshake: in TLS 1.3 the master refuses the agent's certificate when the
        handshake is complete for the other side.

        None if the master answered anything, or if nothing indicates a refusal.
        """
        if self.answered or not leg.secured:
            return None
        with_certificate = self.agent is not None and self.agent.credentials is not None
        soon = with_certificate and time.time() - leg.secured < REFUSAL_WINDOW
        if not (soon or self.tls_state.alert_by == "peer"):
            return None
        return self.refused(leg, CLOSED_SILENTLY)


def name_mismatch(name: str, names: str) -> str:
    """Return what an agent prints for a master that it called by another name than those in its certificate."""
    return f"Server hostname '{name}' did not match server certificate; expected one of {names}"


def _handshake(leg: Leg, reason: str, tls_state: TlsState, peer: str) -> Handshake:
    by = peer if tls_state.alert_by == "peer" else tls_state.alert_by
    culprits = tuple(str(problem) for problem in tls_state.problems)
    return Handshake(leg, time.time(), reason, tls_state.alert, by, culprits)  # type: ignore[arg-type]


def closed(tls_state: TlsState | None, *, close: bool) -> Closed:
    """Return who closed a connection, as far as it is known."""
    if tls_state and (tls_state.closed_by_peer or tls_state.alert_by == "peer"):
        return Closed(time.time(), "peer")
    return Closed(time.time(), "proxy" if close else None)
