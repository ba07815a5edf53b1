"""A running proxy, whichever code moves its bytes: the TLS of both sides, what is recorded, and what is reported.

``addon`` (mitmproxy) and ``engine`` (our own) call it.
"""

from __future__ import annotations

import dataclasses
import functools
import resource
import time
from typing import TYPE_CHECKING, Concatenate, Protocol

from inspector.errors import InspectorError
from inspector.model import Connection, Gap
from inspector.protocol import endpoints
from inspector.protocol.kinds import Kind
from inspector.proxy import tls
from inspector.proxy.bodies import Copies
from inspector.proxy.connect.plan import RunInterception
from inspector.proxy.connect.site import SiteInterception
from inspector.proxy.connection_state import AgentConnection, MasterConnection
from inspector.proxy.faults.actions import Action, no_renewal
from inspector.proxy.faults.injection import WITHHELD, Injection, Injector
from inspector.proxy.limits.admission import Admission
from inspector.proxy.open_connections import OpenConnections
from inspector.proxy.probe import Probe
from inspector.proxy.recorder import Recorder
from inspector.proxy.recording_filter import RecordingFilter
from inspector.proxy.tables_writer import TablesWriter
from inspector.proxy.tap.plan import DIRECT
from inspector.proxy.telemetry import metrics
from inspector.proxy.wire import Wire
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from OpenSSL import SSL

    from inspector.capture.spool import Spool
    from inspector.model import Closed, Exchange, Handshake, Leg
    from inspector.proxy.backlog import Callback
    from inspector.proxy.connect.interception import Interception
    from inspector.proxy.faults.fault import Fault
    from inspector.proxy.identity import Credentials
    from inspector.proxy.options import Settings

    type Fields = tuple[tuple[bytes, bytes], ...]

WARNINGS = 1000
"""Limit for the different internal errors that are printed; all of them are recorded."""
DRAIN = 10.0
"""Seconds that the exchanges in progress have to finish when the proxy ends."""


WATCHERS = frozenset({"127.0.0.1", "::1"})
"""The addresses from which a tap watches its proxy: no agent has them."""


class _Guarded(Protocol):
    """Something that reports its own bugs."""

    def internal_error(self, where: str, error: BaseException) -> None: ...


def guarded[S: _Guarded, **P](method: Callable[Concatenate[S, P], None]) -> Callable[Concatenate[S, P], None]:
    """Wrap a method so that a bug of ours never stops an agent's run: it is recorded as a gap."""

    @functools.wraps(method)
    def guarded(self: S, /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            method(self, *args, **kwargs)
        except Exception as error:  # noqa: BLE001
            self.internal_error(method.__name__, error)

    return guarded


class Runtime:
    """The parts of a proxy that exist from its start to its end, whichever code moves its bytes."""

    def __init__(
        self,
        settings: Settings,
        write_line: Callable[[str], None],
        *,
        analyzes: bool = True,
        workers: int = 1,
        report_waiting: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Start to record; ``analyzes``: and to analyze the records. ``write_line`` prints a line, on any thread;
        ``report_waiting`` gets the bytes that wait to be recorded; ``workers`` processes serve agents.

        Raises InspectorError.
        """
        # An agent's run takes two descriptors, and a thousand agents may connect at once.
        _, maximum = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (maximum, maximum))
        # A core dump would write the keys to the disk.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        self.settings = settings
        self.write_line = write_line
        self.parting = False
        """Whether each connection of an agent is closed with the next answer."""
        self.interception = _interception(settings, write_line)
        """Decides on the connections that agents ask for as of an HTTP proxy; None: they use this as their master."""
        self._contexts = tls.Contexts(tls.key_log_writer(), secrets=settings.wire or settings.interposes)
        self._warned: set[str] = set()
        self._metrics = metrics.served(settings.telemetry) if analyzes else None
        self.connections = OpenConnections(settings.only, redacts=bool(settings.redact))
        self.recorder = Recorder(
            settings.capture,
            write_line,
            settings.rules,
            connections=self.connections,
            analyzes=analyzes,
            rotation=settings.rotation,
            redact=settings.redact,
            telemetry=settings.telemetry,
            observe=self._metrics.observe if self._metrics else lambda _: None,
            report_waiting=report_waiting,
            place=settings.place,
        )
        if self._metrics:
            self._metrics.watch(lambda: self.recorder.path, lambda: float(self.recorder.waiting))
        self.copies = Copies(settings.capture.parent, settings.keep_body)
        self.probe = Probe(settings.probe, write_line)
        self.injector = Injector(settings.faults, settings.only, write_line)
        self._filter = RecordingFilter(settings.only, WATCHERS if settings.stands_in else frozenset())
        self.recorder.start()
        self._tables = (
            TablesWriter(settings.tables, lambda: self.recorder.path, settings.rules, write_line)
            if settings.tables and analyzes
            else None
        )
        self.wire = Wire(settings.capture, self._report_wire, settings.rotation.room) if settings.wire else None
        """Records the bytes of both legs; None: that is not wanted."""
        self.admission = Admission(maximum if maximum != resource.RLIM_INFINITY else 2**20, self.gap, workers)

    # -- TLS ----------------------------------------------------------------------------------------

    def meet_agent(
        self, connection: str, address: str, server: tuple[str, int] | None = None
    ) -> tuple[SSL.Connection, AgentConnection]:
        """Return the TLS of a connection from an agent at an address, and its state; ``server``: what it asked for, as
        of an HTTP proxy. May raise anything: then the agent must be refused."""
        settings = self.settings
        settings.trust.refresh()
        presented = self._presented(server)
        untrusted = self.probe.certificate_for(connection, address, presented)
        fault = self._fault_in_handshake(address)
        shown = (fault and fault.action.credentials) or untrusted or presented
        if fault and fault.action.refuse:
            made, tls_state = tls.refused_agent()
        else:
            made, tls_state = tls.agent_connection(self._contexts.for_agent(settings.trust, shown), settings.trust)
        injected = fault.action.note if fault else ""
        return made, AgentConnection(tls_state, shown, probed=shown is untrusted, injected=injected)

    def _presented(self, server: tuple[str, int] | None) -> Credentials:
        settings = self.settings
        if self.interception and server:
            return self.interception.credentials_for(server)
        if settings.presented is None:
            raise InspectorError("There is no certificate to present.")
        presented = settings.presented.refresh()
        for warning in filter(None, (settings.trust.error, settings.presented.error)):
            self._warn(warning)
        return presented

    def agent_secured(self, connection: str, agent: AgentConnection, address: str, connected: float) -> None:
        """An agent's handshake is finished."""
        if agent.tls_state.verified or self.settings.plan:  # whose user is known
            self.admission.verify(connection, agent.verified_name)
        if not self._filter.excepts(address):
            self.connections.connect(connection, agent, address, connected)

    def yields(self, address: str) -> bool:
        """Whether an agent that cannot be served is asked to try again: it then reaches the master without us."""
        return self.settings.stands_in and not self._filter.excepts(address)

    def pass_by(self, address: str, reason: str) -> None:
        """Ask for the next connections of an agent to reach the master without us."""
        if self.yields(address):
            self.write_line(f"{DIRECT}{address}: {clean(reason)}")

    def request_arrived(
        self, connection: str, agent: AgentConnection, address: str, began: float, method: bytes, target: bytes
    ) -> None:
        """The head of an agent's request has arrived; its identity is chosen."""
        self.connections.begin(connection, began, method, target)
        self.probe.on_request(connection, address, agent.certname, method.decode("latin-1"), target.decode("latin-1"))

    def agent_silent(self, connection: str) -> None:
        """An agent sends nothing any more. Most often it has left, and waits for no answer."""
        self.connections.end(connection, time.time())

    def _fault_in_handshake(self, address: str) -> Fault | None:
        try:
            return self.injector.on_handshake(address)
        except Exception as error:  # noqa: BLE001 - it must not stop a run that was not chosen
            self.internal_error("fault_in_handshake", error)
            return None

    def fault_for(
        self, agent: AgentConnection | None, address: str, method: bytes, target: bytes, fields: Fields
    ) -> Injection | None:
        """Return the fault that is injected into a request, or the proxy's own answer to a renewal that must not reach
        the CA; its agent's identity is chosen."""
        if agent and agent.foreign_key and (own := _own_answer(method, target)):
            return own
        if not self.injector.waits:
            return None
        try:
            return self.injector.on_request(
                address, agent.certname if agent else "", method.decode("latin-1"), target.decode("latin-1"), fields
            )
        except Exception as error:  # noqa: BLE001 - it must not stop a run that was not chosen
            self.internal_error("fault_for", error)
            return None

    def meet_master(
        self, agent: AgentConnection | None, sni: str | None, server: tuple[str, int] | None = None
    ) -> tuple[SSL.Connection, MasterConnection]:
        """Return the TLS of the connection to the master for an agent that sent this SNI, and its state; ``server``:
        what it asked for, as of an HTTP proxy, or the CA's. May raise anything: then no connection must be made."""
        settings = self.settings
        settings.trust.refresh()
        if agent:
            agent.choose_identity(settings.identity_source)
        credentials = agent.credentials if agent else None
        # The name that is verified never comes from the agent: else any certificate of the fleet could pass for the
        # master's, under its own name. SNI is the verified name, or absent: Jetty answers 400 "Host does not match SNI"
        # if the agent calls the proxy by another name in Host, which is not changed.
        name = server[0] if server else settings.master_for(sni)[1]
        indicated = name if sni is None or sni.lower() == name.lower() else None
        context = self._contexts.for_master(settings.trust, credentials)
        made, tls_state = tls.master_connection(context, settings.trust, name, indicated, credentials)
        return made, MasterConnection(tls_state, agent, name, indicated)

    # -- records ------------------------------------------------------------------------------------

    def record(
        self,
        exchange: Exchange,
        agent: AgentConnection | None,
        callback: Callback | None = None,
        spools: Mapping[str, Spool] | None = None,
    ) -> None:
        """Record an exchange, if its agent is one to be recorded. ``spools`` are its large bodies."""
        leg = exchange.agent
        self.connections.end(leg.id, exchange.ended)
        if agent and agent.injected and not exchange.injected:
            exchange = dataclasses.replace(exchange, injected=agent.injected)
        self._filter.admit(
            leg.id, leg.address or "", self._name(agent, exchange),
            lambda: self.recorder.put(exchange, callback, spools or {}),
        )  # fmt: skip

    def _name(self, agent: AgentConnection | None, exchange: Exchange) -> str | None:
        """Return the agent's name for the filter: from its certificate, or else from the URL."""
        if self._filter.records_all:
            return None
        match = endpoints.match(exchange.request.method, exchange.request.target)
        return (agent.claimed_name if agent else None) or (match.certname if match else None)

    def record_refused_agent(self, agent: AgentConnection, handshake: Handshake) -> None:
        """Record a failed handshake with an agent."""
        if self._filter.excepts(handshake.leg.address):
            return
        if self._filter.includes(agent.claimed_name):
            self.recorder.put(handshake)
        if handshake.leg.address:
            self.pass_by(handshake.leg.address, handshake.reason)
        self.probe.on_handshake_failure(handshake)

    def record_refused_master(self, master: MasterConnection, handshake: Handshake | None) -> None:
        """Record a failed handshake with the master, if there is one."""
        if handshake and self._filter.includes(master.agent.claimed_name if master.agent else None):
            self.recorder.put(handshake)

    def record_agent_end(self, leg: Leg, end: Closed) -> None:
        """Record the end of a connection from an agent."""
        self.connections.close(leg.id)
        if self._filter.close(leg.id):
            self.recorder.put(Connection(leg, end))
        self.probe.on_close(leg.id)

    def record_master_end(self, leg: Leg, end: Closed, agent: str) -> None:
        """Record the end of a connection to the master, made for a connection from an agent."""
        if self._filter.recorded(agent):
            self.recorder.put(Connection(leg, end))

    # -- output -------------------------------------------------------------------------------------

    def _report_wire(self, reason: str) -> None:
        self.write_line(f"-- {reason}")
        self.gap(reason)

    def gap(self, reason: str) -> None:
        """Record that something could not be recorded."""
        self.recorder.put(Gap(time.time(), reason))

    def internal_error(self, where: str, error: BaseException) -> None:
        """Record an internal error. It is printed once, as it may happen in every request."""
        key = f"{where}: {error!r}"[:500]
        if key not in self._warned and len(self._warned) < WARNINGS:
            self._warned.add(key)
            self.write_line(f"-- internal error in {key} (please report it)")
        self.gap(f"puppet-inspector failed in {key}")

    def _warn(self, warning: str) -> None:
        if warning not in self._warned:
            self._warned.add(warning)
            self.write_line(f"-- {warning}")
            self.gap(warning)

    def finish(self) -> None:
        """Write and analyze the rest, and say where; waits for it. No connection is open any more."""
        self.probe.on_close()
        if self.interception:
            self.interception.sync(ended=True)
        if self.wire:
            self.wire.close()
        if self._tables:
            self._tables.close()
        self.recorder.finish()
        if self._metrics:
            self._metrics.close()
        if self.recorder.analyzes:
            self.write_line(f"The capture is {self.recorder.path}")


def _interception(settings: Settings, write_line: Callable[[str], None]) -> Interception | None:
    if settings.plan:
        return RunInterception(settings.plan, settings.trust, write_line)
    if settings.connect:
        servers = (*settings.masters, *([settings.authority] if settings.authority else ()))
        return SiteInterception(settings.connect, servers, settings.trust, write_line)
    return None


def _own_answer(method: bytes, target: bytes) -> Injection | None:
    """Return the answer to a request that is not passed on, as the identity's key is not the agent's: a renewal."""
    match = endpoints.match(method.decode("latin-1"), target.decode("latin-1"))
    if match is None or match.endpoint.kind is not Kind.RENEWAL:
        return None
    return Injection(Action(""), no_renewal(), lambda: None, withheld=WITHHELD)
