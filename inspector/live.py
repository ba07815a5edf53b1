"""mitmproxy's hooks become records: the addon that stands between agents and their master.

With ``transfer`` the only module that knows mitmproxy. What is decided here is who is shown what and who
speaks to the master as whom (``legs``, ``identity``); what is seen goes to the ``Recorder``, which thinks
on a thread of its own. A hook that fails is noted as a gap; it never stops a run.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import logging
import re
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cryptography import x509 as cx509
from mitmproxy import ctx as _untyped
from mitmproxy import http

from inspector import legs, options, present, transfer
from inspector.errors import IdentityError, InspectorError
from inspector.model import Closed, Connection, Gap, Handshake, Identity, Leg
from inspector.protocol import x509
from inspector.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable

    from mitmproxy import connection, tls
    from mitmproxy.addonmanager import Loader
    from mitmproxy.proxy.server_hooks import ServerConnectionHookData

    from inspector.analyzer import Step
    from inspector.identity import Credentials

ctx: Any = _untyped
"""mitmproxy's context; its option and addon managers carry no types."""

STREAM = 2**20
"""Bodies of more bytes, or of unknown length, are passed on while they come (and kept on the way)."""
KEEP = 256 * 2**20
"""Bytes of one body that are kept; more is passed on, but not recorded."""

CLAIMS = re.compile(r"x-client-(verify|dn|cert)|x-ssl-.*|ssl-client-.*", re.IGNORECASE)
"""Headers that claim an identity towards a master behind a TLS terminator (protocol 7, T16)."""


REFUSED = "this proxy serves Puppet agents only"
SILENT = (
    "the master closed the connection right after the handshake, before it answered anything: "
    "it may have refused the agent's certificate"
)


@dataclass(slots=True)
class _Agent:
    """What we know of one connection from an agent."""

    watch: legs.Watch
    leg: Leg | None = None
    lent: Credentials | None = None
    identity: Identity | None = None
    headers: tuple[tuple[str, str], ...] = ()
    decided: bool = False
    close: bool = False
    """The last message on it asked for the connection to be closed."""
    failed: bool = False


@dataclass(slots=True)
class _Master:
    """What we know of one connection to the master."""

    watch: legs.Watch
    agent: _Agent | None
    answered: bool = False
    failed: bool = False


@dataclass(slots=True)
class _Tee:
    """Passes a body on and keeps a copy of it."""

    parts: list[bytes] = field(default_factory=list)
    size: int = 0

    def __call__(self, data: bytes) -> bytes:
        self.size += len(data)
        if self.size <= KEEP:
            self.parts.append(data)
        return data

    @property
    def body(self) -> bytes:
        return b"".join(self.parts)


def _guarded[**P](hook: Callable[P, None]) -> Callable[P, None]:
    """Our own bug must never stop an agent's run: note it as a gap and go on."""

    @functools.wraps(hook)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        self = args[0]
        assert isinstance(self, PuppetInspector)  # noqa: S101 - methods only
        try:
            hook(*args, **kwargs)
        except Exception as error:  # noqa: BLE001
            self.stumble(hook.__name__, error)

    return guarded


class PuppetInspector:
    """The addon."""

    def __init__(self) -> None:
        self._settings: options.Settings | None = None
        self._contexts = legs.Contexts()
        self._recorder: Recorder | None = None
        self._agents: dict[str, _Agent] = {}
        self._masters: dict[str, _Master] = {}
        self._tees: dict[tuple[str, str], _Tee] = {}
        self._sent: dict[str, tuple[Any, tuple[str, ...]]] = {}
        self._warned: set[str] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._default_mode = False

    # -- starting -----------------------------------------------------------------------------------

    def load(self, loader: Loader) -> None:
        options.declare(loader)
        self._default_mode = list(ctx.options.mode) == ["regular"]
        if self._default_mode:
            # mitmproxy has read the mode already and opens its default proxy on *:8080 whatever we say now;
            # it serves nobody (client_connected), is closed at once, and may fail: 8080 is PuppetDB's too.
            logging.getLogger("mitmproxy.addons.proxyserver").addFilter(_not_the_default_proxy)
        # mitmproxy words a refused agent the wrong way round; our own line says what happened.
        logging.getLogger("mitmproxy.proxy.server").addFilter(_not_a_handshake)

    def configure(self, updated: set[str]) -> None:
        if self._settings is None and "puppet_master" in updated:
            # The master's leg must wait until the agent's certificate is known.
            changes: dict[str, Any] = {"connection_strategy": "lazy", "keep_host_header": True, "http2": False}
            if "flow_detail" in ctx.options and ctx.options.flow_detail == 1:
                changes["flow_detail"] = 0
            if "termlog_verbosity" in ctx.options and ctx.options.termlog_verbosity == "info":
                changes["termlog_verbosity"] = "warn"
            ctx.options.update(**changes)

    async def running(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            settings = options.settle(ctx.options, own_mode=not self._default_mode)
            self._recorder = Recorder(settings.capture, self._say)
        except InspectorError as error:
            logging.error(error)  # while mitmproxy starts, that ends it with status 1
            return
        self._settings = settings
        self._recorder.start()
        server: Any = ctx.master.addons.get("proxyserver")
        if self._default_mode:
            await self._listen(server, settings)
        if ctx.options.connection_strategy != "lazy":
            logging.error("connection_strategy must be lazy: the master's leg waits for the agent's certificate.")
        addresses = list(dict.fromkeys(f"{host}:{port}" for host, port, *_ in server.listen_addrs()))
        for text in options.introduction(settings, addresses):
            self._say(text)

    async def _listen(self, server: Any, settings: options.Settings) -> None:
        mode = [f"reverse:https://{settings.master_address}@{settings.listen_address}"]
        ctx.options.update(mode=mode)
        # The update runs as a task of its own; this one waits for it, and then has nothing to do.
        if server is not None:
            await server.servers.update(_modes(mode))
            if not server.listen_addrs():
                logging.error(
                    f"The proxy can't listen on {settings.listen_address}: is the port in use? "
                    "Choose another with puppet_listen=HOST:PORT."
                )

    def done(self) -> None:
        # Connections that are open when mitmproxy ends are cancelled; asyncio reports each with a traceback.
        logging.getLogger("asyncio").addFilter(_not_a_cancellation)
        if self._recorder:
            self._recorder.finish()
            self._say(f"The capture is {self._settings.capture if self._settings else ''}")

    # -- connections --------------------------------------------------------------------------------

    def client_connected(self, client: connection.Client) -> None:
        # mitmproxy's reverse mode for https also takes HTTP/3 on UDP, which no agent speaks.
        ours = not self._default_mode or client.proxy_mode.type_name == "reverse"
        if self._settings is None or not ours or client.transport_protocol != "tcp":
            client.error = REFUSED

    @_guarded
    def client_disconnected(self, client: connection.Client) -> None:
        state = self._agents.pop(client.id, None)
        if self._recorder is None or self._settings is None or client.error == REFUSED:
            return
        leg = transfer.leg_of(client) if state is None else self._agent_leg(client, state)
        self._recorder.put(
            Connection(leg, self._closed(state.watch if state else None, close=bool(state and state.close)))
        )

    @_guarded
    def server_disconnected(self, data: ServerConnectionHookData) -> None:
        state = self._masters.pop(data.server.id, None)
        if self._recorder and state:
            leg = self._master_leg(data.server, state)
            self._recorder.put(Connection(leg, self._closed(state.watch, close=False)))

    @staticmethod
    def _closed(watch: legs.Watch | None, *, close: bool) -> Closed:
        if watch and (watch.closed_by_peer or watch.alert_by == "peer"):
            return Closed(time.time(), "peer")
        return Closed(time.time(), "proxy" if close else None)

    # -- the agent's leg ----------------------------------------------------------------------------

    def tls_start_client(self, data: tls.TlsData) -> None:
        settings = self._settings
        if settings is None or data.is_dtls:
            return
        settings.material.refresh()
        shown = settings.shown.refresh()
        self._warn_about(settings)
        context = self._contexts.for_agent(settings.material, shown)
        data.ssl_conn, watch = legs.agent_connection(context)
        self._agents[data.conn.id] = _Agent(watch)

    @_guarded
    def tls_failed_client(self, data: tls.TlsData) -> None:
        state = self._agents.get(data.conn.id)
        if state is None or self._recorder is None:
            return
        state.failed = True
        if data.ssl_conn:
            state.watch.complete(data.ssl_conn)
        leg = self._agent_leg(data.conn, state)
        watch = state.watch
        if watch.problems and watch.refused:
            worst = next(problem for problem in watch.problems if not problem.undecided)
            reason = str(worst)
        else:
            reason = self._why_the_agent_left(watch, leg, data.conn.error or "")
        self._recorder.put(
            Handshake(
                leg,
                time.time(),
                reason,
                watch.alert,
                "agent" if watch.alert_by == "peer" else watch.alert_by,
                tuple(str(problem) for problem in watch.problems),
            )
        )

    def _why_the_agent_left(self, watch: legs.Watch, leg: Leg, error: str) -> str:
        """What an agent prints when it sends this alert, as far as the alert says it."""
        assert self._settings  # noqa: S101 - there are no connections without settings
        shown = self._settings.shown.credentials.chain[0]
        leaf = x509.certificate(shown)
        if leg.sni and not x509.names_match(leaf, leg.sni):
            names = ", ".join(leaf.alt_names) or leaf.subject
            return f"Server hostname '{leg.sni}' did not match server certificate; expected one of {names}"
        match watch.alert:
            case "unknown_ca":
                return (
                    f"certificate verify failed [unable to get local issuer certificate for {leaf.subject}]: "
                    "the agent trusts another CA, or holds no CRL of one in the chain"
                )
            case "certificate_expired":
                return f"the agent finds {leaf.subject}, its CA or a CRL of theirs expired; verify time is synchronized"
            case "certificate_revoked":
                return f"Certificate '{leaf.subject}' is revoked"
            case None | "close_notify":
                return f"the agent left during the handshake: {error}" if error else "the agent left"
        return f"the agent refused the proxy's certificate ({watch.alert})"

    # -- the master's leg ---------------------------------------------------------------------------

    def tls_start_server(self, data: tls.TlsData) -> None:
        settings = self._settings
        if settings is None or data.is_dtls:
            return
        settings.material.refresh()
        agent = self._agents.get(data.context.client.id)
        if agent:
            self._decide(agent)
        lent = agent.lent if agent else None
        # The name that is verified is never what the agent asked for: any certificate of the fleet could pose
        # as the master under its own name. SNI is that name, or nothing: Jetty answers 400 "Host does not
        # match SNI" to an agent that calls the proxy (in Host, which stays as it is) by another name.
        name, asked = settings.master_name, data.context.client.sni
        data.conn.sni = name if asked is None or asked.lower() == name.lower() else None
        context = self._contexts.for_master(settings.material, lent)
        data.ssl_conn, watch = legs.master_connection(context, name, data.conn.sni, lends=lent is not None)
        self._masters[data.conn.id] = _Master(watch, agent)

    def _decide(self, agent: _Agent) -> None:
        """Choose as whom to speak to the master, once a connection. Fails closed: as nobody."""
        if agent.decided or self._settings is None:
            return
        agent.decided = True
        source, watch = self._settings.source, agent.watch
        if not watch.chain:
            agent.identity = Identity(source.mode)
            return
        agent.identity = Identity(source.mode, reason="the agent's certificate could not be verified")
        if not watch.verified:
            reasons = "; ".join(str(problem) for problem in watch.problems)
            agent.identity = Identity(source.mode, reason=f"its certificate could not be verified: {reasons}")
            return
        certificate = cx509.load_der_x509_certificate(watch.chain[0])
        certname = x509.common_name(certificate.subject) or ""
        try:
            agent.lent = source.lend(certificate, certname)
            agent.headers = source.headers(certificate)
        except IdentityError as error:
            agent.identity = Identity(source.mode, reason=str(error))
            return
        known = agent.lent is not None or bool(agent.headers)
        agent.identity = Identity(source.mode, certname if known else None)

    @_guarded
    def tls_failed_server(self, data: tls.TlsData) -> None:
        state = self._masters.get(data.conn.id)
        if state:
            self._master_refused(data.conn, state, data.conn.error or "")

    def _master_refused(self, server: connection.Connection, state: _Master, error: str) -> None:
        if self._recorder is None or self._settings is None or state.failed:
            return
        state.failed = True
        watch, name = state.watch, self._settings.master_name
        if watch.wrong_name:
            reason = f"Server hostname '{name}' did not match server certificate; expected one of {watch.wrong_name}"
        elif watch.problems:
            reason = str(watch.problems[0])
        elif watch.alert_by == "peer":
            reason = f"the master refused the connection with the alert {watch.alert}"
        else:
            reason = error
        leg = self._master_leg(server, state)
        by = "master" if watch.alert_by == "peer" else watch.alert_by
        self._recorder.put(
            Handshake(leg, time.time(), reason, watch.alert, by, tuple(str(problem) for problem in watch.problems))
        )

    # -- exchanges ----------------------------------------------------------------------------------

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        """Strip claims to an identity, add ours. Not guarded: a failure here must not pass a claim on."""
        agent = self._agents.get(flow.client_conn.id)
        claims = [name for name in flow.request.headers if CLAIMS.fullmatch(name.replace("_", "-"))]
        self._sent[flow.id] = (flow.request.headers.fields, tuple(dict.fromkeys(claims)))
        for name in dict.fromkeys(claims):
            del flow.request.headers[name]
        if agent and self._settings:
            self._decide(agent)
            for name, value in agent.headers:
                flow.request.headers.add(name, value)
        if _long(flow.request):
            flow.request.stream = self._tees[flow.id, "request"] = _Tee()

    @_guarded
    def responseheaders(self, flow: http.HTTPFlow) -> None:
        master = self._masters.get(flow.server_conn.id)
        if master:
            master.answered = True
        if flow.response and _long(flow.response):
            flow.response.stream = self._tees[flow.id, "response"] = _Tee()

    @_guarded
    def response(self, flow: http.HTTPFlow) -> None:
        self._record(flow)

    @_guarded
    def error(self, flow: http.HTTPFlow) -> None:
        master = self._masters.get(flow.server_conn.id)
        established = master and not master.answered and flow.server_conn.timestamp_tls_setup
        if master and established and (master.watch.alert_by == "peer" or (master.agent and master.agent.lent)):
            # TLS 1.3: the master's refusal of the agent's certificate comes after the handshake.
            self._master_refused(flow.server_conn, master, SILENT)
        self._record(flow)

    def _record(self, flow: http.HTTPFlow) -> None:
        if self._recorder is None:
            return
        state, master = self._agents.get(flow.client_conn.id), self._masters.get(flow.server_conn.id)
        self._restore(flow)
        exchange = transfer.exchange_of(
            flow,
            self._agent_leg(flow.client_conn, state) if state else None,
            self._master_leg(flow.server_conn, master) if master else None,
        )
        fields, stripped = self._sent.pop(flow.id, (flow.request.headers.fields, ()))
        request = dataclasses.replace(exchange.request, headers=transfer.headers_of(http.Headers(fields)))
        exchange = dataclasses.replace(
            exchange,
            request=request,
            identity=state.identity if state else None,
            stripped=stripped,
        )
        if state:
            state.close = any(
                "close" in (message.headers.get("connection") or "").lower()
                for message in (flow.request, flow.response)
                if message
            )
        self._recorder.put(exchange, functools.partial(self._understood, flow))

    def _restore(self, flow: http.HTTPFlow) -> None:
        """Give a body that was passed on while it came back to the flow, for mitmproxy's own views too."""
        for side, message in (("request", flow.request), ("response", flow.response)):
            tee = self._tees.pop((flow.id, side), None)
            if tee is None or message is None:
                continue
            message.raw_content = tee.body
            if tee.size > KEEP:
                self.gap(f"a {side} body of {tee.size} bytes is kept up to its first {KEEP} bytes only")

    # -- legs ---------------------------------------------------------------------------------------

    def _agent_leg(self, client: connection.Connection, state: _Agent) -> Leg:
        assert self._settings  # noqa: S101 - there are no connections without settings
        if state.leg is not None and state.leg.secured is not None:
            return state.leg
        leg = transfer.leg_of(client)
        state.leg = dataclasses.replace(
            leg,
            resumed=False if leg.secured else None,
            peer_chain=state.watch.presented,
            own_chain=self._settings.shown.credentials.ders,
        )
        return state.leg

    def _master_leg(self, server: connection.Connection, state: _Master) -> Leg:
        leg = transfer.leg_of(server)
        lent = state.agent.lent if state.agent else None
        return dataclasses.replace(
            leg,
            resumed=False if leg.secured else None,
            peer_chain=leg.peer_chain or state.watch.presented,
            own_chain=lent.ders if lent else (),
        )

    # -- telling ------------------------------------------------------------------------------------

    def _say(self, text: str) -> None:
        """Show a line: on mitmdump's output, in the other tools' event log. From any thread."""
        if ctx.master.addons.get("dumper") is not None:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.write(text + "\n")
                sys.stdout.flush()
        else:
            logging.info(text)

    def _understood(self, flow: http.HTTPFlow, step: Step) -> None:
        if self._loop is None or not step.findings:
            return
        with contextlib.suppress(RuntimeError):  # the loop is gone: nobody looks any more
            self._loop.call_soon_threadsafe(_annotate, flow, step)

    def gap(self, reason: str) -> None:
        """Record that something could not be recorded."""
        if self._recorder:
            self._recorder.put(Gap(time.time(), reason))

    def stumble(self, where: str, error: Exception) -> None:
        """Record a mistake of our own; once each, it may come with every request."""
        key = f"{where}: {error!r}"
        if key not in self._warned:
            self._warned.add(key)
            self._say(f"-- puppet-inspector stumbled in {key} (please report it)")
        self.gap(f"puppet-inspector failed in {key}")

    def _warn_about(self, settings: options.Settings) -> None:
        for warning in filter(None, (settings.material.trouble, settings.shown.trouble)):
            if warning not in self._warned:
                self._warned.add(warning)
                self._say(f"-- {warning}")
                self.gap(warning)


def _annotate(flow: http.HTTPFlow, step: Step) -> None:
    """Show the findings in mitmproxy's own user interfaces."""
    flow.marked = ":red_circle:" if any(each.severity == "error" for each in step.findings) else ":warning:"
    flow.comment = "; ".join(f"{each.rule}: {present.clean(each.message)}" for each in step.findings)
    with contextlib.suppress(Exception):
        from mitmproxy.hooks import UpdateHook

        asyncio.get_running_loop().create_task(ctx.master.addons.handle_lifecycle(UpdateHook([flow])))


def _long(message: http.Request | http.Response) -> bool:
    length = message.headers.get("content-length")
    if length is None:
        return "chunked" in message.headers.get("transfer-encoding", "").lower()
    return length.isdigit() and int(length) > STREAM


def _modes(specs: list[str]) -> list[Any]:
    from mitmproxy.proxy import mode_specs

    return [mode_specs.ProxyMode.parse(spec) for spec in specs]


def _not_the_default_proxy(record: logging.LogRecord) -> bool:
    # Ours names its address; the default one has none. One that failed to start fails to stop, without a word.
    return "failed to listen on *:" not in (text := record.getMessage()) and text != ""


def _not_a_cancellation(record: logging.LogRecord) -> bool:
    return "Exception in callback StreamReaderProtocol" not in record.getMessage()


def _not_a_handshake(record: logging.LogRecord) -> bool:
    return "TLS handshake failed" not in record.getMessage()
