"""The two ends of a proxied connection, while they live: who was met, as whom the master is spoken to, and a
refused handshake as a record, in the words that the refusing agent would use.

``live`` keeps one of these for each connection; what OpenSSL saw is in their ``Watch``.
"""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector.errors import IdentityError
from inspector.formats import mitm_flows
from inspector.model import Closed, Handshake, Identity
from inspector.protocol import x509
from inspector.proxy import identity
from inspector.proxy.probe import refuses
from inspector.proxy.tls import parsed_of

if TYPE_CHECKING:
    from mitmproxy import connection

    from inspector.model import Leg
    from inspector.proxy.identity import Credentials, Source
    from inspector.proxy.tls import Watch

SILENT = (
    "the master closed the connection right after the handshake, before it answered anything: "
    "it may have refused the agent's certificate"
)


AT_ONCE = 3.0
"""Seconds after the handshake within which a closed connection may be a refusal; later it is a master that
died over its work, or an agent that left."""


@dataclass(slots=True)
class AgentEnd:
    """One connection from an agent."""

    watch: Watch
    shown: Credentials
    probed: bool = False
    """``shown`` is the verification probe's: whoever goes on over it is nobody."""
    certname: str = ""
    """The agent's, once it is verified; empty if it showed no certificate."""
    lent: Credentials | None = None
    identity: Identity | None = None
    headers: tuple[tuple[str, str], ...] = ()
    """What is added to its requests to tell the master who it is."""
    close: bool = False
    """The last message on it asked for the connection to be closed."""
    _leg: Leg | None = None

    def leg(self, client: connection.Connection) -> Leg:
        """This connection as a record; the same object for all its exchanges."""
        if self._leg is None or self._leg.secured is None:
            leg = mitm_flows.leg_of(client)
            self._leg = dataclasses.replace(
                leg,
                resumed=False if leg.secured else None,
                peer_chain=self.watch.presented,
                own_chain=self.shown.ders,
            )
        return self._leg

    @property
    def named(self) -> str | None:
        """Who it says it is, verified or not; None if it showed no certificate, or one without a name."""
        leaf = x509.certificate(parsed_of(self.watch.chain[0])) if self.watch.chain.get(0) else None
        return leaf.common_name if leaf else None

    def decide(self, source: Source) -> None:
        """Choose as whom to speak to the master, once a connection. Fails closed: as nobody."""
        if self.identity is not None:
            return
        if not self.watch.chain:
            self.identity = Identity(source.mode)
            return
        reasons = "; ".join(str(problem) for problem in self.watch.problems)
        self.identity = Identity(source.mode, reason=f"its certificate could not be verified: {reasons}")
        if not self.watch.verified:
            return
        certificate = parsed_of(self.watch.chain[0])
        try:
            self.certname = certname = identity.certname_of(certificate)
            if self.probed:
                raise IdentityError("it was shown the certificate of the verification probe")
            lent, headers = source.lend(certificate, certname), source.headers(certificate)
        except IdentityError as error:
            self.identity = Identity(source.mode, reason=str(error))
            return
        self.lent, self.headers = lent, headers
        self.identity = Identity(source.mode, certname if lent or headers else None)

    def refused(self, client: connection.Connection, error: str) -> Handshake:
        """Its failed handshake: we refused the agent, or the agent refused us."""
        leg, watch = self.leg(client), self.watch
        worst = next((problem for problem in watch.problems if not problem.undecided), None)
        reason = str(worst) if worst else self._why_it_left(leg, error)
        return _handshake(leg, reason, watch, "agent")

    def _why_it_left(self, leg: Leg, error: str) -> str:
        """What an agent prints when it sends this alert, as far as the alert says it."""
        if self.probed and self.watch.alert_by == "peer" and refuses(self.watch.alert, "agent"):
            return "the agent refused the certificate of the verification probe, as it must"
        leaf = x509.certificate(self.shown.chain[0])
        if leg.sni and not x509.names_match(leaf, leg.sni):
            names = ", ".join(leaf.alt_names) or leaf.subject
            return f"Server hostname '{leg.sni}' did not match server certificate; expected one of {names}"
        match self.watch.alert:
            case "unknown_ca":
                return (
                    f"certificate verify failed [unable to get local issuer certificate for {leaf.subject}]: "
                    "the agent trusts another CA, or holds no CRL of one in the chain"
                )
            case "certificate_expired":
                return f"the agent finds {leaf.subject}, its CA or a CRL of theirs expired; verify time is synchronized"
            case "certificate_revoked":
                return f"Certificate '{leaf.subject}' is revoked"
            case None:
                return f"the agent left during the handshake: {error}" if error else "the agent left"
        return f"the agent refused the proxy's certificate ({self.watch.alert})"


@dataclass(slots=True)
class MasterEnd:
    """One connection to the master, made for one agent."""

    watch: Watch
    agent: AgentEnd | None
    answered: bool = False
    told: bool = False
    """Its refusal was recorded already."""
    _leg: Leg | None = None

    def leg(self, server: connection.Connection) -> Leg:
        """This connection as a record; the same object for all its exchanges."""
        if self._leg is None or self._leg.secured is None:
            self._leg = self._made(server)
        return self._leg

    def _made(self, server: connection.Connection) -> Leg:
        leg = mitm_flows.leg_of(server)
        lent = self.agent.lent if self.agent else None
        return dataclasses.replace(
            leg,
            resumed=False if leg.secured else None,
            peer_chain=leg.peer_chain or self.watch.presented,
            own_chain=lent.ders if lent else (),
        )

    def refused(self, server: connection.Connection, name: str, error: str) -> Handshake | None:
        """Its failed handshake: we refused the master, or it refused the agent. None if that was said before."""
        if self.told:
            return None
        self.told = True
        watch = self.watch
        if watch.wrong_name:
            reason = f"Server hostname '{name}' did not match server certificate; expected one of {watch.wrong_name}"
        elif watch.problems:
            reason = str(watch.problems[0])
        elif watch.alert_by == "peer":
            reason = f"the master refused the connection with the alert {watch.alert}"
        else:
            reason = error
        return _handshake(self.leg(server), reason, watch, "master")

    def late_refusal(self, server: connection.Connection, name: str) -> Handshake | None:
        """TLS 1.3: the master refuses the agent's certificate when the handshake is over for everybody else.

        None if it answered anything, or if nothing points that way.
        """
        if self.answered or not server.timestamp_tls_setup:
            return None
        lends = self.agent is not None and self.agent.lent is not None
        at_once = lends and time.time() - server.timestamp_tls_setup < AT_ONCE
        if not (at_once or self.watch.alert_by == "peer"):
            return None
        return self.refused(server, name, SILENT)


def _handshake(leg: Leg, reason: str, watch: Watch, peer: str) -> Handshake:
    by = peer if watch.alert_by == "peer" else watch.alert_by
    culprits = tuple(str(problem) for problem in watch.problems)
    return Handshake(leg, time.time(), reason, watch.alert, by, culprits)  # type: ignore[arg-type]


def closed(watch: Watch | None, *, close: bool) -> Closed:
    """How a connection ended, as far as it can be known."""
    if watch and (watch.closed_by_peer or watch.alert_by == "peer"):
        return Closed(time.time(), "peer")
    return Closed(time.time(), "proxy" if close else None)
