"""The mitmproxy addon between agents and their master: it turns mitmproxy's hooks into records.

What is done with an agent and its requests is decided in ``runtime`` and ``claims``, as for our own engine. A hook that
fails is recorded as a gap; it never stops a run. Flows that mitmproxy reads from files are no traffic (``reading``);
without a runtime there is nothing else, and no connection is made.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import logging
import sys
import time
import weakref
from typing import TYPE_CHECKING, Any, Literal

from mitmproxy import ctx as _untyped
from mitmproxy import http
from mitmproxy.flow import Error
from mitmproxy.hooks import UpdateHook
from mitmproxy.log import ALERT

from inspector import __version__
from inspector.errors import InspectorError
from inspector.formats import mitm_flows
from inspector.model import Identity
from inspector.proxy import claims, options, tls
from inspector.proxy.bodies import Body
from inspector.proxy.connect import acceptance, dialing, head
from inspector.proxy.connect import interception as interceptions
from inspector.proxy.connect.interception import ADDED, Way
from inspector.proxy.connection_state import AGENT_LEFT, AgentConnection, MasterConnection, closed
from inspector.proxy.console import Console
from inspector.proxy.engine import framing
from inspector.proxy.faults import ALARM
from inspector.proxy.faults.injection import Pace, plain_answer
from inspector.proxy.limits import BUSY, admission
from inspector.proxy.mitm import commands, contentviews, reading
from inspector.proxy.mitm.commands import PuppetCommands
from inspector.proxy.mitm.link import REFUSED, Link, Links
from inspector.proxy.mitm.listeners import Listeners
from inspector.proxy.mitm.reading import ReadFlows
from inspector.proxy.runtime import DRAIN, Runtime, guarded
from inspector.summaries import ruleset
from inspector.text import address, clean

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from mitmproxy import connection
    from mitmproxy.addonmanager import Loader
    from mitmproxy.proxy.server_hooks import ServerConnectionHookData
    from mitmproxy.tls import ClientHelloData, TlsData

    from inspector.model import Leg
    from inspector.proxy.analysis_client import AnalysisResult
    from inspector.proxy.bodies import Copy
    from inspector.proxy.connect.acceptance import Examination
    from inspector.proxy.connect.interception import Addition
    from inspector.proxy.faults.injection import Injection
    from inspector.proxy.runtime import Fields

ctx: Any = _untyped
"""mitmproxy's context; its option and addon managers have no type annotations."""

STREAM = 64 * 2**10
"""Bodies of more bytes, or of unknown length, are streamed: passed on as they arrive, and copied."""
RACES = 10
"""Ports to try, each of which was free and may be another program's by the time that mitmproxy listens on it."""
LOOK = 0.05
"""Seconds between looks whether the agent of a delayed request is still there."""
ONLY_READ = "flows are only read, and nothing is proxied"


class PuppetInspector:
    """The addon."""

    def __init__(self) -> None:
        self._runtime: Runtime | None = None
        """Once it has started, unless flows are only read."""
        self._reason: str | None = None
        """Why flows are only read; empty if they are not; None if this is not decided yet."""
        self._live: weakref.WeakSet[http.HTTPFlow] = weakref.WeakSet()
        """The flows that pass the proxy."""
        self._read = ReadFlows(self._is_live)
        self._errors: list[str] = []
        """Why it could not start."""
        self._ending = False
        self._agents: dict[str, AgentConnection] = {}
        self._masters: dict[str, MasterConnection] = {}
        self._bodies: dict[tuple[str, str], Body] = {}
        """By flow and side: the copies of bodies that pass."""
        self._sent: dict[str, tuple[str, Any, tuple[str, ...]]] = {}
        """By connection: the flow in progress, its headers as the agent sent them, and the claims removed from them."""
        self._injections: dict[str, Injection] = {}
        """By connection: the fault that is injected into the exchange in progress."""
        self._delayed: dict[str, http.HTTPFlow] = {}
        """By connection: the exchange that is delayed on purpose."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asked: dict[str, tuple[str, int]] = {}
        """By connection: the server that an agent asked for, as of an HTTP proxy."""
        self._unread: set[str] = set()
        """Connections that are passed on unread, or not made."""
        self._default_mode = False
        self._console: Console | None = None
        self._links = Links()
        self._listeners: Listeners | None = None
        self.addons = [self._links, PuppetCommands(self._capture)]
        """Further addons for mitmproxy."""

    # -- starting -----------------------------------------------------------------------------------

    def load(self, loader: Loader) -> None:
        options.declare(loader)
        contentviews.add()
        self._default_mode = list(ctx.options.mode) == ["regular"]
        if self._default_mode:
            # mitmproxy has already read the mode, and opens its default proxy on *:8080 in any case. It accepts no
            # connections (client_connected) and is closed at once. It may fail: 8080 is PuppetDB's port too.
            for name in ("mitmproxy.addons.proxyserver", "mitmproxy.proxy.mode_servers"):
                logging.getLogger(name).addFilter(_not_about_listening)
        # mitmproxy confuses who refused whom; our own line says what happened.
        logging.getLogger("mitmproxy.proxy.server").addFilter(_not_a_handshake)

    def configure(self, updated: set[str]) -> None:
        if self._reason is None and "puppet_master" in updated:
            interactive = ctx.master.addons.get("dumper") is None
            self._reason = reading.reason(ctx.options, own_mode=not self._default_mode, interactive=interactive)
            if self._reason:
                return
            # The connection to the master must wait until the agent's certificate is known.
            changes: dict[str, Any] = {
                "connection_strategy": "lazy",
                "keep_host_header": True,
                "http2": False,
                # mitmproxy refuses requests that two parsers may read in two ways.
                "validate_inbound_headers": True,
                # Agents may have public addresses, and a compilation may take longer than ten minutes without a byte:
                # the proxy allows what the master allows.
                "block_global": False,
                "tcp_timeout": 86_400,
            }
            if "onboarding" in ctx.options:
                # mitmproxy's page for browsers, which any agent could request by its host name.
                changes["onboarding"] = False
            if "flow_detail" in ctx.options and ctx.options.flow_detail == 1:
                changes["flow_detail"] = 0
            # Not in mitmweb, which prints its address and token so.
            if not interactive and "termlog_verbosity" in ctx.options and ctx.options.termlog_verbosity == "info":
                changes["termlog_verbosity"] = "warn"
            ctx.options.update(**changes)

    async def running(self) -> None:
        """Start, in one of mitmproxy's own tools."""
        console = Console() if ctx.master.addons.get("dumper") is not None else None
        try:
            for name in ctx.options.deferred:  # what no addon has declared: mitmproxy would ignore it
                if name.startswith("puppet_"):
                    options.check_name(name)
            self._read.watch()
            if self._reason:
                await self._only_read(console)
                return
            settings = options.resolve(ctx.options, own_mode=not self._default_mode)
            if settings.balancers:
                raise InspectorError(
                    "puppet_proxy_protocol is not possible with mitmproxy.", "Use `puppet-inspector proxy`."
                )
            if settings.wire:
                raise InspectorError("puppet_wire is not possible with mitmproxy.", "Use `puppet-inspector proxy`.")
            self.begin(settings, console)
        except InspectorError as error:
            self._fail(str(error))
            return
        server: Any = ctx.master.addons.get("proxyserver")
        _prefer_ours(ctx.master.addons)
        if self._default_mode:
            try:
                settings = await self._listen(server, settings)
            except InspectorError as error:
                self._fail(str(error))
                return
        tcp = (listening for mode in server.servers for listening in mode._servers if hasattr(listening, "sockets"))
        admission.lengthen(tcp)
        if ctx.options.connection_strategy != "lazy":
            self._fail(
                "connection_strategy must be lazy: the connection to the master needs the agent's certificate first."
            )
        listening = list(dict.fromkeys(address(*where[:2]) for where in server.listen_addrs()))
        for line in options.startup_lines(settings, listening):
            self._write_line(line)

    async def _only_read(self, console: Console | None) -> None:
        """Start without a proxy: close mitmproxy's own. Raises InspectorError."""
        warnings = ruleset.load_options(options.rules_options(ctx.options), time.time()).warnings
        self._console = console
        ctx.options.update(server=False)
        if (server := ctx.master.addons.get("proxyserver")) is not None:
            await server.servers.update([])
        self._write_line(
            f"puppet-inspector {__version__}: views, marks and commands only, nothing is proxied ({self._reason})",
            ALERT,
        )
        for warning in warnings:
            self._write_line(f"-- {warning}")

    def _fail(self, error: str) -> None:
        """Report an error while mitmproxy starts, which ends it with status 1."""
        self._errors.append(error)
        logging.error(error)

    def _capture(self) -> Awaitable[Path] | None:
        """Return the capture that commands read."""
        return _immediately(self._runtime.recorder.path) if self._runtime else self._read.capture()

    def begin(self, settings: options.Settings, console: Console | None) -> None:
        """Start to record. Raises CaptureError."""
        self._loop = asyncio.get_running_loop()
        self._console = console
        self._runtime = Runtime(settings, self._write_line)
        self._links.begin(self._runtime.admission)
        self._listeners = Listeners(ctx.master.addons)
        self._listeners.install()

    async def _listen(self, server: Any, settings: options.Settings) -> options.Settings:
        """Accept agents. Returns the settings with the port. Raises InspectorError."""
        for _ in range(RACES if settings.any_port else 1):
            if settings.any_port:
                settings = options.listen_again(settings)
            host, port = settings.listen
            mode = [f"{_mode(settings)}@{host}:{port}"]  # an IPv6 address without brackets
            ctx.options.update(mode=mode)
            if server is None:
                return settings
            # mitmproxy applies the new mode in another task; this call waits for the same servers.
            await server.servers.update(_modes(mode))
            if server.listen_addrs():
                return settings
        raise InspectorError(
            f"Cannot listen on {settings.listen_address}: is the port in use?",
            "Choose another with puppet_listen=HOST:PORT.",
        )

    async def done(self) -> None:
        """Accept no more connections, wait for the exchanges in progress, and write the rest of the capture."""
        # Connections that are open when mitmproxy ends are cancelled; asyncio reports each with a traceback.
        logging.getLogger("asyncio").addFilter(_not_a_cancellation)
        self._ending = True
        if self._listeners:
            self._listeners.uninstall()
        await self._finish_reading()
        if self._runtime:
            self._runtime.admission.close()
            until = time.monotonic() + DRAIN
            while self._sent and time.monotonic() < until:
                await asyncio.sleep(0.05)
            for agent in list(self._delayed):
                self._give_up(agent, "the proxy ended")
            await asyncio.to_thread(self._runtime.finish)
        if self._console:
            self._console.close()
        if self._errors and ctx.master.addons.get("consoleaddon") is not None:
            # mitmproxy has printed them on the screen that it left just now.
            print(*self._errors, sep="\n", file=sys.stderr)

    async def _finish_reading(self) -> None:
        """Forget the flows that were read; mitmdump, which shows no marks, prints what `check` says of them."""
        if self._console and (capture := self._read.capture()) is not None:
            await self._read.finish()
            with contextlib.suppress(InspectorError):
                for line in await commands.lines_of(["check", *commands.check_options(), "--", str(await capture)]):
                    self._write_line(line)
        await self._read.close()

    # -- connections --------------------------------------------------------------------------------

    def client_connected(self, client: connection.Client) -> None:
        """Refuse connections that the proxy must not serve.

        Not guarded like the other hooks: a bug here must not open mitmproxy's default proxy to anyone.
        """
        try:
            self._admit(client)
        except Exception as error:  # noqa: BLE001
            client.error = REFUSED
            self.internal_error("client_connected", error)

    def _admit(self, client: connection.Client) -> None:
        # mitmproxy's reverse mode for https also accepts HTTP/3 on UDP, which no agent speaks.
        ours = not self._default_mode or client.proxy_mode.custom_listen_port is not None
        if self._reason:
            client.error = ONLY_READ
        elif self._runtime is None or self._ending or not ours or client.transport_protocol != "tcp":
            client.error = REFUSED

    @guarded
    def client_disconnected(self, client: connection.Client) -> None:
        self._give_up(client.id, AGENT_LEFT)
        self._asked.pop(client.id, None)
        if client.id in self._unread:
            self._unread.discard(client.id)
            return
        state = self._agents.pop(client.id, None)
        self._forget(client)
        if self._runtime is None or client.error == REFUSED:
            return
        leg = self._agent_leg(state, client)
        self._runtime.record_agent_end(
            leg, closed(state.tls_state if state else None, close=bool(state and state.close))
        )

    @guarded
    def server_disconnected(self, data: ServerConnectionHookData) -> None:
        state = self._masters.pop(data.server.id, None)
        if self._runtime and state:
            leg = _master_leg(state, data.server)
            self._runtime.record_master_end(leg, closed(state.tls_state, close=False), data.client.id)

    # -- an agent that uses the proxy as its HTTP proxy ---------------------------------------------

    async def http_connect(self, flow: http.HTTPFlow) -> None:
        """Decide on the connection that an agent asks for. A failure here must not connect anybody."""
        try:
            await self._decide(flow)
        except Exception as error:  # noqa: BLE001
            flow.response = _refusal(502, "puppet-inspector failed")
            self.internal_error("http_connect", error)

    async def _decide(self, flow: http.HTTPFlow) -> None:
        interception = self._runtime.interception if self._runtime else None
        if interception is None:
            flow.response = _refusal(403, interceptions.FORBIDDEN)
            return
        server = flow.request.host.lower().rstrip("."), flow.request.port
        decision = await interception.decide(server)
        examination = decision.examination
        if decision.way is Way.REFUSED:
            flow.response = _refusal(403, interceptions.FORBIDDEN)
        elif decision.way is Way.INTERCEPTED or examination is None:
            self._asked[flow.client_conn.id] = server
        else:
            self._unread.add(flow.client_conn.id)
            if examination.unreachable is not None:
                reason, status = dialing.answer(server, examination.unreachable)
                flow.response = _refusal(status, reason)
            self._record_unused(flow.client_conn, server, examination)

    @guarded
    def _record_unused(self, client: connection.Client, server: tuple[str, int], examination: Examination) -> None:
        assert self._runtime  # noqa: S101 - nobody is served before
        self._runtime.recorder.put(acceptance.record(mitm_flows.leg_of(client), server, examination))

    @guarded
    def tls_clienthello(self, data: ClientHelloData) -> None:
        if data.context.client.id in self._unread:
            data.ignore_connection = True

    # -- the agent's leg ----------------------------------------------------------------------------

    def tls_start_client(self, data: TlsData) -> None:
        """Prepare the TLS connection to an agent.

        Not guarded like the other hooks: a bug here must not let mitmproxy present a certificate of its own.
        """
        try:
            self._meet_agent(data)
        except Exception as error:  # noqa: BLE001
            data.ssl_conn = tls.refusing(server=True)
            self.internal_error("tls_start_client", error)

    def _meet_agent(self, data: TlsData) -> None:
        if self._runtime is None:
            data.ssl_conn = tls.refusing(server=True)
            return
        if data.is_dtls:
            return
        asked = self._asked.get(data.conn.id)
        made, state = self._runtime.meet_agent(data.conn.id, _address(data.conn), asked)
        data.ssl_conn = Link.open[data.conn.id].fence_agent(made)
        self._agents[data.conn.id] = state

    @guarded
    def tls_established_client(self, data: TlsData) -> None:
        state = self._agents.get(data.conn.id)
        if state and self._runtime:
            connected = data.conn.timestamp_start or time.time()
            self._runtime.agent_secured(data.conn.id, state, _address(data.conn), connected)

    @guarded
    def tls_failed_client(self, data: TlsData) -> None:
        if link := Link.open.get(data.conn.id):
            link.send_rest(data.conn, data.ssl_conn)
        state = self._agents.get(data.conn.id)
        if state and self._runtime:
            if data.ssl_conn:
                state.tls_state.complete(data.ssl_conn)
            handshake = state.refused(self._agent_leg(state, data.conn), data.conn.error or "")
            self._runtime.record_refused_agent(state, handshake)

    # -- the master's leg ---------------------------------------------------------------------------

    @guarded
    def server_connect(self, data: ServerConnectionHookData) -> None:
        """Choose the master: of several, the one that the agent named by SNI. It can reach no other host but the CA."""
        if self._runtime is None:  # a flow that a user repeats
            data.server.error = ONLY_READ
        elif data.server.address == self._runtime.settings.authority:
            pass  # for a request to the CA
        elif len(self._runtime.settings.masters) > 1 and data.client.id not in self._asked:
            data.server.address, _ = self._runtime.settings.master_for(data.client.sni)

    def tls_start_server(self, data: TlsData) -> None:
        """Prepare the TLS connection to the master.

        Not guarded like the other hooks: a bug here must not let mitmproxy trust the public CAs.
        """
        try:
            self._meet_master(data)
        except Exception as error:  # noqa: BLE001
            data.ssl_conn = tls.refusing(server=False)
            self.internal_error("tls_start_server", error)

    def _meet_master(self, data: TlsData) -> None:
        if self._runtime is None:
            data.ssl_conn = tls.refusing(server=False)
            return
        if data.is_dtls:
            return
        client = data.context.client
        asked = self._asked.get(client.id)
        if data.context.server.address == self._runtime.settings.authority:
            asked = self._runtime.settings.authority
        made, state = self._runtime.meet_master(self._agents.get(client.id), client.sni, asked)
        link = Link.open.get(client.id)
        data.ssl_conn = link.fence_master(made, data.conn) if link else made  # a flow that a user repeats has none
        data.conn.sni = state.sni
        self._masters[data.conn.id] = state

    @guarded
    def tls_failed_server(self, data: TlsData) -> None:
        link = Link.open.get(data.context.client.id)
        if link:
            link.send_rest(data.conn, data.ssl_conn)
        state = self._masters.get(data.conn.id)
        # Without the agent the connection was given up, unless the master refused it before.
        if state and self._runtime and (data.context.client.connected or state.tls_state.alert):
            handshake = state.refused(_master_leg(state, data.conn), data.conn.error or "")
            if handshake and link:
                link.exchange.reason = handshake.reason  # this is what the agent is answered
            self._runtime.record_refused_master(state, handshake)

    # -- exchanges ----------------------------------------------------------------------------------

    def requestheaders(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Remove headers that claim an identity, add ours; wait before if there is no room for the request."""
        if not flow.live:
            self._on_read(flow)
            return None
        link = Link.open.get(flow.client_conn.id)
        if link is not None and not link.ticket.begin():
            return self._hold(flow, link)
        self._begin_exchange(flow)
        return None

    async def _hold(self, flow: http.HTTPFlow, link: Link) -> None:
        if await link.room():
            self._begin_exchange(flow)
        else:
            link.answer(framing.refusal(503, BUSY))
            flow.kill()  # type: ignore[no-untyped-call]

    def _begin_exchange(self, flow: http.HTTPFlow) -> None:
        """Begin an exchange. A failure here must not pass a claim on."""
        try:
            self._live.add(flow)
            self._replace_claims(flow)
        except Exception as error:  # noqa: BLE001
            flow.kill()  # type: ignore[no-untyped-call]
            self.internal_error("requestheaders", error)
        self._report_arrived(flow)

    def _is_live(self, flow: http.HTTPFlow) -> bool:
        """Whether a flow passes the proxy, or has: also one that was killed. All others were read from a file."""
        return flow.live or flow in self._live

    @guarded
    def _on_read(self, flow: http.HTTPFlow) -> None:
        self._read.add(flow)

    @guarded
    def _report_arrived(self, flow: http.HTTPFlow) -> None:
        agent, data, client = self._agents.get(flow.client_conn.id), flow.request.data, flow.client_conn
        if agent and self._runtime:
            began = data.timestamp_start
            self._runtime.request_arrived(client.id, agent, _address(client), began, data.method, data.path)

    def _replace_claims(self, flow: http.HTTPFlow) -> None:
        agent = self._agents.get(flow.client_conn.id)
        if agent and self._runtime:
            # First: it is recorded also of a request that is refused.
            agent.choose_identity(self._runtime.settings.identity_source)
        if not flow.client_conn.tls_established:
            flow.kill()  # type: ignore[no-untyped-call]  # no master answers in plain text
            return
        sent = flow.request.headers.fields
        if claims.ambiguous(sent):
            flow.kill()  # type: ignore[no-untyped-call]  # no agent sends that
            return
        fields, stripped = claims.removed(sent)
        self._forget(flow.client_conn)
        self._sent[flow.client_conn.id] = (flow.id, sent, stripped)
        if stripped:
            flow.request.headers.fields = fields
        for name, value in agent.headers if agent else ():
            flow.request.headers.add(name, value)
        if self._runtime and (
            authority := self._runtime.settings.authority_for(flow.request.method, flow.request.path)
        ):
            # Not by the attributes of the request, which would change its header Host.
            flow.request.data.host, flow.request.data.port = authority
        if self._addition_to(flow):
            flow.request.headers.fields = plain_answer(flow.request.headers.fields)
        if agent and self._runtime and (injection := self._fault_for(agent, flow, sent)):
            self._injections[flow.client_conn.id] = injection
            if injection.action.corrupt:
                flow.request.headers.fields = plain_answer(flow.request.headers.fields)
        elif _long(flow.request) and not _intercepts():
            flow.request.stream = self._copied(flow, "request")

    def _fault_for(self, agent: AgentConnection, flow: http.HTTPFlow, fields: Fields) -> Injection | None:
        assert self._runtime  # noqa: S101 - nobody is served before
        data, address = flow.request.data, _address(flow.client_conn)
        return self._runtime.fault_for(agent, address, data.method, data.path, fields)

    def request(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Inject a fault before the master is asked."""
        injection = self._injections.get(flow.client_conn.id)
        if injection is None or not self._is_live(flow):
            return None
        try:
            return self._inject(flow, injection)
        except Exception as error:  # noqa: BLE001 - then the request passes
            self.internal_error("request", error)
            return None

    def _inject(self, flow: http.HTTPFlow, injection: Injection) -> Awaitable[None] | None:
        if injection.action.reset:
            if link := Link.open.get(flow.client_conn.id):
                link.reset()
            flow.kill()  # type: ignore[no-untyped-call]
        elif injection.answer:
            answer = injection.answer
            flow.response = http.Response(
                b"HTTP/1.1", answer.status, answer.reason.encode(), answer.fields, answer.body, None, time.time(), None
            )
        elif injection.action.delay:
            self._delayed[flow.client_conn.id] = flow
            return self._delay(flow, injection.action.delay)
        elif injection.action.rate and (link := Link.open.get(flow.client_conn.id)):
            link.pace = Pace(injection.action.rate)
        return None

    async def _delay(self, flow: http.HTTPFlow, seconds: float) -> None:
        """Let a request wait, as long as its agent does."""
        agent, until = flow.client_conn, time.monotonic() + seconds
        while agent.id in self._delayed and (time.monotonic() < until or not agent.connected):
            await asyncio.sleep(min(max(until - time.monotonic(), 0.0), LOOK) or LOOK)
        if self._delayed.pop(agent.id, None) is None:
            await asyncio.sleep(LOOK)  # until nothing of this connection is processed any more
            flow.kill()  # type: ignore[no-untyped-call]

    def _give_up(self, agent: str, reason: str) -> None:
        """Record a delayed request that is never passed on, while its agent is still known."""
        if flow := self._delayed.pop(agent, None):
            flow.error = Error(reason)
            self._record(flow)
            flow.live = False
            self._live.discard(flow)

    @guarded
    def responseheaders(self, flow: http.HTTPFlow) -> None:
        if not self._is_live(flow):
            return
        master = self._masters.get(flow.server_conn.id)
        if master:
            master.answered = True
        injection = self._injections.get(flow.client_conn.id)
        passes = injection is not None and (injection.changes or injection.action.rate)
        whole = (injection is not None and injection.in_place) or self._addition(flow) is not None or _intercepts()
        if flow.response and (passes or (_long(flow.response) and not whole)):
            flow.response.stream = self._copied(flow, "response", injection)
            if link := Link.open.get(flow.client_conn.id):
                link.exchange.stream()

    @guarded
    def response(self, flow: http.HTTPFlow) -> None:
        if self._is_live(flow):
            addition = self._addition(flow)
            self._record(flow, added=ADDED if addition else "")
            if addition and flow.response:  # what was recorded is the master's own
                flow.response.raw_content = addition.added_to(flow.response.raw_content or b"")

    def _addition(self, flow: http.HTTPFlow) -> Addition | None:
        """Return what the agent gets besides the body of an answer."""
        if flow.response is None or flow.response.status_code != 200 or _values(flow.response, b"content-encoding"):
            return None
        return self._addition_to(flow)

    def _addition_to(self, flow: http.HTTPFlow) -> Addition | None:
        """Return what the agent gets besides the body of a good answer to a request."""
        interception = self._runtime.interception if self._runtime else None
        if interception is None:
            return None
        return interception.addition(flow.request.data.method, flow.request.data.path)

    @guarded
    def error(self, flow: http.HTTPFlow) -> None:
        if not self._is_live(flow):
            return
        master = self._masters.get(flow.server_conn.id)
        agent_left = flow.client_conn.timestamp_end is not None or (flow.error and "disconnected" in flow.error.msg)
        injection = self._injections.get(flow.client_conn.id)
        if injection and flow.error and (injection.cut_off or injection.action.reset):
            agent_left, flow.error.msg = True, injection.note
        elif agent_left and flow.error:
            # For mitmproxy the connection to the master was closed, which is what it then does itself.
            flow.error.msg = AGENT_LEFT
        link = Link.open.get(flow.client_conn.id)
        if link:
            self._answer_error(flow, link, agent_left=bool(agent_left))
        if master and self._runtime and not agent_left and not (link and link.exchange.reason):
            late = master.late_refusal(_master_leg(master, flow.server_conn))
            self._runtime.record_refused_master(master, late)
        self._record(flow)

    def _answer_error(self, flow: http.HTTPFlow, link: Link, *, agent_left: bool) -> None:
        """Give the agent the end of an answer that the master broke off, or the reason why it has none."""
        if link.exchange.reason and flow.error:
            flow.error.msg = link.exchange.reason
        if agent_left:
            return
        if flow.response is not None and not flow.response.stream:
            link.answer(b"".join(link.exchange.begun))  # mitmproxy would answer with an error of its own
        elif flow.response is None and link.exchange.reason:
            link.answer(framing.refusal(502, link.exchange.reason))  # mitmproxy knows no reasons of ours

    def _record(self, flow: http.HTTPFlow, *, added: str = "") -> None:
        if self._runtime is None:
            return
        state, master = self._agents.get(flow.client_conn.id), self._masters.get(flow.server_conn.id)
        copies = self._restore(flow)
        injection = self._injections.pop(flow.client_conn.id, None)
        if injection and injection.cut_off:
            flow.error = Error(injection.note)
        _, fields, stripped = self._sent.pop(flow.client_conn.id, ("", flow.request.headers.fields, ()))
        # A request in plain text has no state: no identity was used.
        unknown = Identity(self._runtime.settings.identity_source.mode)
        exchange = mitm_flows.exchange_of(
            flow,
            self._agent_leg(state, flow.client_conn) if state else None,
            _master_leg(master, flow.server_conn) if master else None,
            state.identity if state else unknown,
            stripped,
        )
        if injection:
            exchange = injection.marked(exchange)
        if added:
            exchange = dataclasses.replace(exchange, added=added)
        if fields is not flow.request.headers.fields:
            headers = mitm_flows.headers_of(http.Headers(fields))
            exchange = dataclasses.replace(exchange, request=dataclasses.replace(exchange.request, headers=headers))
        for side, copy in copies.items():
            if copy.lost:
                message = dataclasses.replace(getattr(exchange, side), lost=copy.lost, digest=copy.digest)
                exchange = dataclasses.replace(exchange, **{side: message})
        if state:
            state.close = any(
                b"close" in _values(message, b"connection").lower()
                for message in (flow.request, flow.response)
                if message
            )
        # mitmdump shows no flows, so it needs no marks on them.
        callback = None if self._console else functools.partial(self._on_result, flow)
        spools = {side: copy.spool for side, copy in copies.items() if copy.spool}
        self._runtime.record(exchange, state, callback, spools)

    def _forget(self, client: connection.Client) -> None:
        """Drop what is stored for a connection's exchange: something is left only if its hooks failed."""
        flow, *_ = self._sent.pop(client.id, ("",))
        self._injections.pop(client.id, None)
        for side in ("request", "response"):
            if body := self._bodies.pop((flow, side), None):
                body.close()

    def _agent_leg(self, state: AgentConnection | None, client: connection.Connection) -> Leg:
        facts = functools.partial(mitm_flows.leg_of, client)
        return state.leg(facts) if state else facts()

    def _copied(
        self, flow: http.HTTPFlow, side: Literal["request", "response"], injection: Injection | None = None
    ) -> Callable[[bytes], bytes | list[bytes]]:
        """Return a function that passes a body on and copies it; with an injected fault what is left of it."""
        assert self._runtime  # noqa: S101 - nobody is served before
        link = Link.open.get(flow.client_conn.id)
        body = self._bodies[flow.id, side] = Body(self._runtime.copies, link.ticket.payer if link else "")
        if link and side == "request":
            link.exchange.taken = 0

        def pass_on(data: bytes) -> bytes | list[bytes]:
            if injection and injection.changes:
                data = injection.change(data)
                if injection.cut_off and link:
                    link.cut_off(1 if data else 0)
            if link and link.exchange.taken is not None and side == "request":
                link.exchange.taken += len(data)
            body.add(data)
            return data or []  # an empty chunk would end the body

        return pass_on

    def _restore(self, flow: http.HTTPFlow) -> dict[str, Copy]:
        """Put streamed bodies back into the flow, also for mitmproxy's own views, and return their copies."""
        copies = {}
        for side, message in (("request", flow.request), ("response", flow.response)):
            body = self._bodies.pop((flow.id, side), None)
            if body is None:
                continue
            if message is None:
                body.close()
            else:
                copies[side] = copy = body.finish()
                message.raw_content = copy.data
        return copies

    # -- output -------------------------------------------------------------------------------------

    def _write_line(self, text: str, level: int = logging.INFO) -> None:
        """Print a line, from any thread: on mitmdump's output, or in the event log of the other tools."""
        if self._console:
            self._console.write_line(text)
        else:
            logging.log(ALERT if text.startswith(ALARM) else level, text)

    def _on_result(self, flow: http.HTTPFlow, result: AnalysisResult) -> None:
        if self._loop is None or not result.findings:
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed: mitmproxy has ended
            self._loop.call_soon_threadsafe(_annotate, flow, result)

    def internal_error(self, where: str, error: BaseException) -> None:
        """Record an internal error; without a proxy, report it."""
        if self._runtime:
            self._runtime.internal_error(where, error)
        else:
            logging.warning(f"internal error in {where}: {clean(repr(error))} (please report it)")


def _master_leg(state: MasterConnection, server: connection.Connection) -> Leg:
    return state.leg(functools.partial(mitm_flows.leg_of, server))


def _prefer_ours(addons: Any) -> None:
    """Move mitmproxy's TLS addon to the end: it only makes a certificate if no other addon prepared the connection, and
    ours always does."""
    tlsconfig = addons.get("tlsconfig")
    if tlsconfig in addons.chain:
        addons.chain = [*(addon for addon in addons.chain if addon is not tlsconfig), tlsconfig]


def _annotate(flow: http.HTTPFlow, result: AnalysisResult) -> None:
    """Show the findings in mitmproxy's own user interfaces."""
    reading.annotate(flow, result.findings)
    with contextlib.suppress(Exception):
        asyncio.get_running_loop().create_task(ctx.master.addons.handle_lifecycle(UpdateHook([flow])))


async def _immediately(path: Path) -> Path:
    return path


def _refusal(status: int, reason: str) -> http.Response:
    answer = http.Response.make(status)
    answer.reason = head.printable(reason)
    return answer


def _values(message: http.Request | http.Response, name: bytes) -> bytes:
    """Return a header's values. mitmproxy's own look-up takes longer than everything else in a hook."""
    return b", ".join(value for field, value in message.headers.fields if field.lower() == name)


def _long(message: http.Request | http.Response) -> bool:
    length = _values(message, b"content-length")
    if not length:
        # A response without a length ends when the master closes the connection.
        return b"chunked" in _values(message, b"transfer-encoding").lower() or isinstance(message, http.Response)
    return length.isdigit() and (len(length) > 15 or int(length) > STREAM)


def _intercepts() -> bool:
    """Whether a user holds flows, to look at them and to edit them: what is streamed has passed before it is held."""
    return "intercept" in ctx.options and bool(ctx.options.intercept_active and ctx.options.intercept)


def _address(client: connection.Connection) -> str:
    return str(client.peername[0]) if client.peername else ""


def _mode(settings: options.Settings) -> str:
    return "regular" if settings.connect else f"reverse:https://{settings.master_address}"


def _modes(specs: list[str]) -> list[Any]:
    from mitmproxy.proxy import mode_specs

    return [mode_specs.ProxyMode.parse(spec) for spec in specs]


def _not_about_listening(record: logging.LogRecord) -> bool:
    # Nobody needs to know of the default proxy, and what happens to ours is in a line of our own. If one failed to
    # start, stopping it logs an empty message.
    text = record.getMessage()
    return "failed to listen on " not in text and not text.startswith("HTTP(S) proxy ") and text != ""


def _not_a_cancellation(record: logging.LogRecord) -> bool:
    return "Exception in callback StreamReaderProtocol" not in record.getMessage()


def _not_a_handshake(record: logging.LogRecord) -> bool:
    return "TLS handshake failed" not in record.getMessage()
