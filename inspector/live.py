"""mitmproxy's hooks become records: the addon that stands between agents and their master.

With ``transfer`` the only module that knows mitmproxy. What is decided here is who is shown what and who
speaks to the master as whom (``legs``, ``identity``); what is seen goes to the ``Recorder``, which writes it on a
thread of its own. A hook that fails is noted as a gap; it never stops a run.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import logging
import re
import time
from typing import TYPE_CHECKING, Any

from mitmproxy import ctx as _untyped
from mitmproxy import http

from inspector import legs, options, present, transfer
from inspector.console import Console
from inspector.ends import AgentEnd, MasterEnd, closed
from inspector.errors import InspectorError
from inspector.model import Connection, Gap, Handshake
from inspector.probe import Probe
from inspector.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mitmproxy import connection, tls
    from mitmproxy.addonmanager import Loader
    from mitmproxy.proxy.server_hooks import ServerConnectionHookData

    from inspector.commentary import Told

ctx: Any = _untyped
"""mitmproxy's context; its option and addon managers carry no types."""

STREAM = 2**20
"""Bodies of more bytes, or of unknown length, are passed on while they come (and kept on the way)."""
KEEP = 64 * 2**20
"""Bytes of one body that are kept; more is passed on, but not recorded."""
KEEP_ALL = 512 * 2**20
"""Bytes of all bodies that are under way: anybody who reaches the proxy can send some."""

CLAIMS = re.compile(r"x-client-(verify|dn|cert)|x-ssl-.*|ssl-client-.*", re.IGNORECASE)
"""Headers that claim an identity towards a master behind a TLS terminator (protocol 7, T16)."""


REFUSED = "this proxy serves Puppet agents only"
DRAIN = 10.0
"""Seconds that exchanges have to end when the proxy ends."""


class _Tee:
    """Passes a body on and keeps a copy of it, within what may be kept of one body and of all together."""

    def __init__(self, addon: PuppetInspector) -> None:
        self._addon = addon
        self._parts: list[bytes] = []
        self._kept = 0
        self.size = 0
        self.cut = False

    def __call__(self, data: bytes) -> bytes:
        self.size += len(data)
        if self._kept + len(data) > KEEP or self._addon.kept + len(data) > KEEP_ALL:
            self.cut = True
        if not self.cut:
            self._parts.append(data)
            self._kept += len(data)
            self._addon.kept += len(data)
        return data

    def finish(self) -> bytes:
        """The copy."""
        self._addon.kept -= self._kept
        self._kept = 0
        return b"".join(self._parts)


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
        self._ending = False
        self._contexts = legs.Contexts()
        self._recorder: Recorder | None = None
        self._agents: dict[str, AgentEnd] = {}
        self._masters: dict[str, MasterEnd] = {}
        self._tees: dict[tuple[str, str], _Tee] = {}
        self._sent: dict[str, tuple[Any, tuple[str, ...]]] = {}
        self._warned: set[str] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._default_mode = False
        self._console: Console | None = None
        self._probe = Probe("", self._say)
        self.kept = 0
        """Bytes of bodies that are being passed on and kept meanwhile."""

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
            changes: dict[str, Any] = {
                "connection_strategy": "lazy",
                "keep_host_header": True,
                "http2": False,
                # Agents may have public addresses, and a compile may be silent for longer than ten minutes:
                # what the master bears, the proxy bears.
                "block_global": False,
                "tcp_timeout": 86_400,
            }
            if "flow_detail" in ctx.options and ctx.options.flow_detail == 1:
                changes["flow_detail"] = 0
            if "termlog_verbosity" in ctx.options and ctx.options.termlog_verbosity == "info":
                changes["termlog_verbosity"] = "warn"
            ctx.options.update(**changes)

    async def running(self) -> None:
        """Begin, in one of mitmproxy's own tools."""
        console = Console() if ctx.master.addons.get("dumper") is not None else None
        try:
            settings = options.settle(ctx.options, own_mode=not self._default_mode)
            self.begin(settings, console)
        except InspectorError as error:
            logging.error(error)  # while mitmproxy starts, that ends it with status 1
            return
        server: Any = ctx.master.addons.get("proxyserver")
        if self._default_mode:
            await self._listen(server, settings)
        if ctx.options.connection_strategy != "lazy":
            logging.error("connection_strategy must be lazy: the master's leg waits for the agent's certificate.")
        self.introduce([each[:2] for each in server.listen_addrs()])

    def begin(self, settings: options.Settings, console: Console | None, *, tells: bool = True) -> None:
        """Record from now on; ``tells``: and say what it means. Raises CaptureError."""
        self._loop = asyncio.get_running_loop()
        self._console = console
        self._recorder = Recorder(settings.capture, self._say, settings.rules, tells=tells)
        self._settings = settings
        self._probe = Probe(settings.probe, self._say)
        self._recorder.start()

    def introduce(self, addresses: Sequence[tuple[str, int]]) -> None:
        """Say what this is, and where it listens."""
        if self._settings:
            for text in options.introduction(self._settings, list(dict.fromkeys(map(options.whole, addresses)))):
                self._say(text)

    async def _listen(self, server: Any, settings: options.Settings) -> None:
        host, port = settings.listen
        mode = [f"reverse:https://{settings.master_address}@{host}:{port}"]  # an IPv6 address without brackets
        ctx.options.update(mode=mode)
        # The update runs as a task of its own; this one waits for it, and then has nothing to do.
        if server is not None:
            await server.servers.update(_modes(mode))
            if not server.listen_addrs():
                logging.error(
                    f"The proxy can't listen on {settings.listen_address}: is the port in use? "
                    "Choose another with puppet_listen=HOST:PORT."
                )

    async def done(self) -> None:
        """Let nobody in any more, wait for what is under way, and write what was seen."""
        # Connections that are open when mitmproxy ends are cancelled; asyncio reports each with a traceback.
        logging.getLogger("asyncio").addFilter(_not_a_cancellation)
        self._ending = True
        until = time.monotonic() + DRAIN
        while self._sent and time.monotonic() < until:
            await asyncio.sleep(0.05)
        self._probe.ended()
        if self._recorder:
            await asyncio.to_thread(self._recorder.finish)
            self._say(f"The capture is {self._settings.capture if self._settings else ''}")
        if self._console:
            self._console.close()

    # -- connections --------------------------------------------------------------------------------

    def client_connected(self, client: connection.Client) -> None:
        # mitmproxy's reverse mode for https also takes HTTP/3 on UDP, which no agent speaks.
        ours = not self._default_mode or client.proxy_mode.type_name == "reverse"
        if self._settings is None or self._ending or not ours or client.transport_protocol != "tcp":
            client.error = REFUSED

    @_guarded
    def client_disconnected(self, client: connection.Client) -> None:
        state = self._agents.pop(client.id, None)
        if self._recorder is None or self._settings is None or client.error == REFUSED:
            return
        leg = state.leg(client) if state else transfer.leg_of(client)
        end = closed(state.watch if state else None, close=bool(state and state.close))
        self._recorder.put(Connection(leg, end))
        self._probe.ended(client.id)

    @_guarded
    def server_disconnected(self, data: ServerConnectionHookData) -> None:
        state = self._masters.pop(data.server.id, None)
        if self._recorder and state:
            self._recorder.put(Connection(state.leg(data.server), closed(state.watch, close=False)))

    # -- the agent's leg ----------------------------------------------------------------------------

    def tls_start_client(self, data: tls.TlsData) -> None:
        """Not guarded like the others: a mistake here must not let mitmproxy show a certificate of its own."""
        try:
            self._meet_agent(data)
        except Exception as error:  # noqa: BLE001
            data.ssl_conn = legs.refusing(server=True)
            self.stumble("tls_start_client", error)

    def _meet_agent(self, data: tls.TlsData) -> None:
        settings = self._settings
        if settings is None or data.is_dtls:
            return
        settings.material.refresh()
        shown = settings.shown.refresh()
        self._warn_about(settings)
        probe = self._probe.meet(data.conn.id, _address(data.conn), shown)
        context = self._contexts.for_agent(settings.material, probe or shown)
        data.ssl_conn, watch = legs.agent_connection(context)
        self._agents[data.conn.id] = AgentEnd(watch, probe or shown, probed=probe is not None)

    @_guarded
    def tls_failed_client(self, data: tls.TlsData) -> None:
        state = self._agents.get(data.conn.id)
        if state and self._recorder:
            if data.ssl_conn:
                state.watch.complete(data.ssl_conn)
            handshake = state.refused(data.conn, data.conn.error or "")
            self._recorder.put(handshake)
            self._probe.failed(handshake)

    # -- the master's leg ---------------------------------------------------------------------------

    def tls_start_server(self, data: tls.TlsData) -> None:
        """Not guarded like the others: a mistake here must not let mitmproxy trust the world's CAs."""
        try:
            self._meet_master(data)
        except Exception as error:  # noqa: BLE001
            data.ssl_conn = legs.refusing(server=False)
            self.stumble("tls_start_server", error)

    def _meet_master(self, data: tls.TlsData) -> None:
        settings = self._settings
        if settings is None or data.is_dtls:
            return
        settings.material.refresh()
        agent = self._agents.get(data.context.client.id)
        if agent:
            agent.decide(settings.source)
        lent = agent.lent if agent else None
        # The name that is verified is never what the agent asked for: any certificate of the fleet could pose
        # as the master under its own name. SNI is that name, or nothing: Jetty answers 400 "Host does not
        # match SNI" to an agent that calls the proxy (in Host, which stays as it is) by another name.
        name, asked = settings.master_name, data.context.client.sni
        data.conn.sni = name if asked is None or asked.lower() == name.lower() else None
        context = self._contexts.for_master(settings.material, lent)
        data.ssl_conn, watch = legs.master_connection(context, name, data.conn.sni, lent)
        self._masters[data.conn.id] = MasterEnd(watch, agent)

    @_guarded
    def tls_failed_server(self, data: tls.TlsData) -> None:
        state = self._masters.get(data.conn.id)
        if state and self._settings:
            self._put(state.refused(data.conn, self._settings.master_name, data.conn.error or ""))

    def _put(self, handshake: Handshake | None) -> None:
        if handshake and self._recorder:
            self._recorder.put(handshake)

    # -- exchanges ----------------------------------------------------------------------------------

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        """Strip claims to an identity, add ours. A failure here must not pass a claim on."""
        try:
            self._claim(flow)
        except Exception as error:  # noqa: BLE001
            flow.kill()  # type: ignore[no-untyped-call]
            self.stumble("requestheaders", error)
        self._tell_probe(flow)

    @_guarded
    def _tell_probe(self, flow: http.HTTPFlow) -> None:
        agent, data = self._agents.get(flow.client_conn.id), flow.request.data
        if agent:
            method, target = data.method.decode("latin-1"), data.path.decode("latin-1")
            self._probe.asked(flow.client_conn.id, _address(flow.client_conn), agent.certname, method, target)

    def _claim(self, flow: http.HTTPFlow) -> None:
        if not flow.client_conn.tls_established:
            flow.kill()  # type: ignore[no-untyped-call]  # no master answers in clear
            return
        agent = self._agents.get(flow.client_conn.id)
        claims = [name for name in flow.request.headers if CLAIMS.fullmatch(name.replace("_", "-"))]
        stripped = (name.encode("utf-8", "surrogateescape").decode("latin-1") for name in dict.fromkeys(claims))
        self._sent[flow.id] = (flow.request.headers.fields, tuple(stripped))
        for name in dict.fromkeys(claims):
            del flow.request.headers[name]
        if agent and self._settings:
            agent.decide(self._settings.source)
            for name, value in agent.headers:
                flow.request.headers.add(name, value)
        if _long(flow.request):
            flow.request.stream = self._tees[flow.id, "request"] = _Tee(self)

    @_guarded
    def responseheaders(self, flow: http.HTTPFlow) -> None:
        master = self._masters.get(flow.server_conn.id)
        if master:
            master.answered = True
        if flow.response and _long(flow.response):
            flow.response.stream = self._tees[flow.id, "response"] = _Tee(self)

    @_guarded
    def response(self, flow: http.HTTPFlow) -> None:
        self._record(flow)

    @_guarded
    def error(self, flow: http.HTTPFlow) -> None:
        master = self._masters.get(flow.server_conn.id)
        left = flow.client_conn.timestamp_end is not None or (flow.error and "disconnected" in flow.error.msg)
        if master and self._settings and not left:
            self._put(master.late_refusal(flow.server_conn, self._settings.master_name))
        self._record(flow)

    def _record(self, flow: http.HTTPFlow) -> None:
        if self._recorder is None:
            return
        state, master = self._agents.get(flow.client_conn.id), self._masters.get(flow.server_conn.id)
        lost = self._restore(flow)
        fields, stripped = self._sent.pop(flow.id, (flow.request.headers.fields, ()))
        exchange = transfer.exchange_of(
            flow,
            state.leg(flow.client_conn) if state else None,
            master.leg(flow.server_conn) if master else None,
            state.identity if state else None,
            stripped,
        )
        if fields is not flow.request.headers.fields:
            headers = transfer.headers_of(http.Headers(fields))
            exchange = dataclasses.replace(exchange, request=dataclasses.replace(exchange.request, headers=headers))
        for side, number in lost.items():
            message = dataclasses.replace(getattr(exchange, side), lost=number)
            exchange = dataclasses.replace(exchange, **{side: message})
        if state:
            state.close = any(
                "close" in (message.headers.get("connection") or "").lower()
                for message in (flow.request, flow.response)
                if message
            )
        # mitmdump shows no flows: nobody would see what is found out about one.
        self._recorder.put(exchange, None if self._console else functools.partial(self._understood, flow))

    def _restore(self, flow: http.HTTPFlow) -> dict[str, int]:
        """Give a body that was passed on while it came back to the flow, for mitmproxy's own views too.

        Returns how many bytes of each side's were not kept.
        """
        lost = {}
        for side, message in (("request", flow.request), ("response", flow.response)):
            tee = self._tees.pop((flow.id, side), None)
            if tee is None or message is None:
                continue
            message.raw_content = tee.finish()
            if tee.cut:
                lost[side] = tee.size - len(message.raw_content)
                self.gap(f"of a {side} body of {tee.size} bytes only the first {len(message.raw_content)} were kept")
        return lost

    # -- telling ------------------------------------------------------------------------------------

    def _say(self, text: str) -> None:
        """Show a line: on mitmdump's output, in the other tools' event log. From any thread."""
        if self._console:
            self._console.say(text)
        else:
            logging.info(text)

    def _understood(self, flow: http.HTTPFlow, told: Told) -> None:
        if self._loop is None or not told.findings:
            return
        with contextlib.suppress(RuntimeError):  # the loop is gone: nobody looks any more
            self._loop.call_soon_threadsafe(_annotate, flow, told)

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


def _annotate(flow: http.HTTPFlow, told: Told) -> None:
    """Show the findings in mitmproxy's own user interfaces."""
    flow.marked = ":red_circle:" if any(severity == "error" for _, severity, _ in told.findings) else ":warning:"
    flow.comment = "; ".join(f"{rule}: {present.clean(message)}" for rule, _, message in told.findings)
    with contextlib.suppress(Exception):
        from mitmproxy.hooks import UpdateHook

        asyncio.get_running_loop().create_task(ctx.master.addons.handle_lifecycle(UpdateHook([flow])))


def _long(message: http.Request | http.Response) -> bool:
    length = message.headers.get("content-length")
    if length is None:
        # An answer without a length ends when the master closes.
        chunked = "chunked" in message.headers.get("transfer-encoding", "").lower()
        return chunked or isinstance(message, http.Response)
    return length.isdecimal() and (len(length) > 15 or int(length) > STREAM)


def _address(client: connection.Connection) -> str:
    return str(client.peername[0]) if client.peername else ""


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
