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
import resource
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mitmproxy import ctx as _untyped
from mitmproxy import http

from inspector.capture.spool import KEEP, Spool
from inspector.errors import InspectorError
from inspector.formats import mitm_flows
from inspector.model import Connection, Gap, Handshake
from inspector.protocol import endpoints
from inspector.proxy import contentviews, options, tls
from inspector.proxy.commands import PuppetCommands
from inspector.proxy.connection_state import AgentEnd, MasterEnd, closed
from inspector.proxy.console import Console
from inspector.proxy.fast import handler
from inspector.proxy.fast.addon_trim import prefer_ours, slim
from inspector.proxy.probe import Probe
from inspector.proxy.recorder import Recorder
from inspector.proxy.recording_filter import Selection
from inspector.summaries import wording

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mitmproxy import connection
    from mitmproxy.addonmanager import Loader
    from mitmproxy.proxy.server_hooks import ServerConnectionHookData
    from mitmproxy.tls import TlsData

    from inspector.model import Exchange
    from inspector.proxy.analysis_client import Told

ctx: Any = _untyped
"""mitmproxy's context; its option and addon managers carry no types."""

STREAM = 2**20
"""Bodies of more bytes, or of unknown length, are passed on while they come (and kept on the way)."""
KEEP_ALL = 512 * 2**20
"""Bytes of all bodies that are under way: anybody who reaches the proxy can send some."""

CLAIMS = re.compile(r"x-client-(verify|dn|cert)|x-ssl-.*|ssl-client-.*", re.IGNORECASE)
"""Headers that claim an identity towards a master behind a TLS terminator (docs/protocol.md#identity-in-headers)."""
_PUNCTUATION = re.compile(r"[^0-9A-Za-z]")
"""What gateways (CGI, Rack) make no difference between in a header's name."""
_LINES = re.compile(rb"[\r\n\0]")
"""In a header's value: lines within a line, which another reader may take for headers (RFC 9112, 5.2)."""


REFUSED = "this proxy serves Puppet agents only"
WARNINGS = 1000
"""Different mistakes of our own that are said; all of them are recorded."""
DRAIN = 10.0
"""Seconds that exchanges have to end when the proxy ends."""


class _Tee:
    """Passes a body on and keeps a copy of it, as long as not too much is kept of all together."""

    def __init__(self, addon: PuppetInspector, spool: Spool) -> None:
        self._addon = addon
        self.spool = spool

    def __call__(self, data: bytes) -> bytes:
        self._addon.kept += len(data)
        self.spool.add(data, wanted=self._addon.kept <= KEEP_ALL)
        return data

    def finish(self) -> Spool:
        """The copy."""
        self._addon.kept -= self.spool.size
        return self.spool


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
        self._contexts = tls.Contexts()
        self._recorder: Recorder | None = None
        self._agents: dict[str, AgentEnd] = {}
        self._masters: dict[str, MasterEnd] = {}
        self._tees: dict[tuple[str, str], _Tee] = {}
        self._sent: dict[str, tuple[str, Any, tuple[str, ...]]] = {}
        """The flow that is under way on a connection, its headers as the agent sent them, and the claims among them."""
        self._warned: set[str] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._default_mode = False
        self._console: Console | None = None
        self._probe = Probe("", self._say)
        self._selection = Selection(None)
        self.addons = [PuppetCommands(lambda: self._recorder.path if self._recorder else None)]
        """What mitmproxy finds in here besides."""
        self.kept = 0
        """Bytes of bodies that are being passed on and kept meanwhile."""

    # -- starting -----------------------------------------------------------------------------------

    def load(self, loader: Loader) -> None:
        options.declare(loader)
        contentviews.add()
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
                # Its refusal of requests that two readers read in two ways.
                "validate_inbound_headers": True,
                # Agents may have public addresses, and a compile may be silent for longer than ten minutes:
                # what the master bears, the proxy bears.
                "block_global": False,
                "tcp_timeout": 86_400,
            }
            if "onboarding" in ctx.options:
                # mitmproxy's page for browsers, which any agent could ask for by its host's name.
                changes["onboarding"] = False
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
        prefer_ours(ctx.master.addons)
        if settings.lean and console:
            slim(ctx.master)
        if self._default_mode:
            await self._listen(server)
        if ctx.options.connection_strategy != "lazy":
            logging.error("connection_strategy must be lazy: the master's leg waits for the agent's certificate.")
        self.introduce([each[:2] for each in server.listen_addrs()])

    def begin(self, settings: options.Settings, console: Console | None, *, tells: bool = True) -> None:
        """Record from now on; ``tells``: and say what it means. Raises CaptureError."""
        # An agent's run takes two descriptors, and a thousand agents may come at once.
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        # A core dump would write the keys to the disk.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        self._loop = asyncio.get_running_loop()
        self._console = console
        self._recorder = Recorder(
            settings.capture,
            self._say,
            settings.rules,
            tells=tells,
            rotation=settings.rotation,
            redacts=settings.redact,
        )
        self._settings = settings
        self._probe = Probe(settings.probe, self._say)
        self._selection = Selection(settings.only)
        self._recorder.start()
        handler.install(ctx.master.addons)

    def introduce(self, addresses: Sequence[tuple[str, int]]) -> None:
        """Say what this is, and where it listens."""
        if self._settings:
            for text in options.introduction(self._settings, list(dict.fromkeys(map(options.whole, addresses)))):
                self._say(text)

    async def _listen(self, server: Any) -> None:
        assert self._settings  # noqa: S101 - it has begun
        if self._settings.any_port:
            self._settings = options.listen_again(self._settings)
        settings = self._settings
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
        handler.uninstall()
        until = time.monotonic() + DRAIN
        while self._sent and time.monotonic() < until:
            await asyncio.sleep(0.05)
        self._probe.ended()
        if self._recorder:
            await asyncio.to_thread(self._recorder.finish)
            if self._recorder.tells:
                self._say(f"The capture is {self._recorder.path}")
        if self._console:
            self._console.close()

    # -- connections --------------------------------------------------------------------------------

    def client_connected(self, client: connection.Client) -> None:
        """Not guarded like the others: a mistake here must not let anybody in through mitmproxy's default proxy."""
        try:
            self._let_in(client)
        except Exception as error:  # noqa: BLE001
            client.error = REFUSED
            self.stumble("client_connected", error)

    def _let_in(self, client: connection.Client) -> None:
        # mitmproxy's reverse mode for https also takes HTTP/3 on UDP, which no agent speaks.
        ours = not self._default_mode or client.proxy_mode.type_name == "reverse"
        if self._settings is None or self._ending or not ours or client.transport_protocol != "tcp":
            client.error = REFUSED

    @_guarded
    def client_disconnected(self, client: connection.Client) -> None:
        state = self._agents.pop(client.id, None)
        self._forget(client)
        if self._recorder is None or self._settings is None or client.error == REFUSED:
            return
        leg = state.leg(client) if state else mitm_flows.leg_of(client)
        end = closed(state.watch if state else None, close=bool(state and state.close))
        if self._selection.ended(client.id):
            self._recorder.put(Connection(leg, end))
        self._probe.ended(client.id)

    @_guarded
    def server_disconnected(self, data: ServerConnectionHookData) -> None:
        state = self._masters.pop(data.server.id, None)
        if self._recorder and state and self._selection.recorded(data.client.id):
            self._recorder.put(Connection(state.leg(data.server), closed(state.watch, close=False)))

    # -- the agent's leg ----------------------------------------------------------------------------

    def tls_start_client(self, data: TlsData) -> None:
        """Not guarded like the others: a mistake here must not let mitmproxy show a certificate of its own."""
        try:
            self._meet_agent(data)
        except Exception as error:  # noqa: BLE001
            data.ssl_conn = tls.refusing(server=True)
            self.stumble("tls_start_client", error)

    def _meet_agent(self, data: TlsData) -> None:
        settings = self._settings
        if settings is None or data.is_dtls:
            return
        settings.material.refresh()
        shown = settings.shown.refresh()
        self._warn_about(settings)
        probe = self._probe.meet(data.conn.id, _address(data.conn), shown)
        context = self._contexts.for_agent(settings.material, probe or shown)
        data.ssl_conn, watch = tls.agent_connection(context)
        self._agents[data.conn.id] = AgentEnd(watch, probe or shown, probed=probe is not None)

    @_guarded
    def tls_failed_client(self, data: TlsData) -> None:
        state = self._agents.get(data.conn.id)
        if state and self._recorder:
            if data.ssl_conn:
                state.watch.complete(data.ssl_conn)
            handshake = state.refused(data.conn, data.conn.error or "")
            if self._selection.wanted(state.named):
                self._recorder.put(handshake)
            self._probe.failed(handshake)

    # -- the master's leg ---------------------------------------------------------------------------

    @_guarded
    def server_connect(self, data: ServerConnectionHookData) -> None:
        """Of several masters, lead the agent to the one that it asked for; it can ask for no other."""
        if self._settings and len(self._settings.masters) > 1:
            data.server.address, _ = self._settings.toward(data.client.sni)

    def tls_start_server(self, data: TlsData) -> None:
        """Not guarded like the others: a mistake here must not let mitmproxy trust the world's CAs."""
        try:
            self._meet_master(data)
        except Exception as error:  # noqa: BLE001
            data.ssl_conn = tls.refusing(server=False)
            self.stumble("tls_start_server", error)

    def _meet_master(self, data: TlsData) -> None:
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
        asked = data.context.client.sni
        _, name = settings.toward(asked)
        data.conn.sni = name if asked is None or asked.lower() == name.lower() else None
        context = self._contexts.for_master(settings.material, lent)
        data.ssl_conn, watch = tls.master_connection(context, name, data.conn.sni, lent)
        self._masters[data.conn.id] = MasterEnd(watch, agent)

    @_guarded
    def tls_failed_server(self, data: TlsData) -> None:
        state = self._masters.get(data.conn.id)
        if state and self._settings:
            _, name = self._settings.toward(data.context.client.sni)
            self._put(state, state.refused(data.conn, name, data.conn.error or ""))

    def _put(self, master: MasterEnd, handshake: Handshake | None) -> None:
        if handshake and self._recorder and self._selection.wanted(master.agent.named if master.agent else None):
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
        if any(_LINES.search(value) for _, value in flow.request.headers.fields):
            flow.kill()  # type: ignore[no-untyped-call]  # no agent writes that
            return
        agent = self._agents.get(flow.client_conn.id)
        claims = [name for name in flow.request.headers if _claims(name)]
        stripped = (name.encode("utf-8", "surrogateescape").decode("latin-1") for name in dict.fromkeys(claims))
        self._forget(flow.client_conn)
        self._sent[flow.client_conn.id] = (flow.id, flow.request.headers.fields, tuple(stripped))
        for name in dict.fromkeys(claims):
            del flow.request.headers[name]
        if agent and self._settings:
            agent.decide(self._settings.source)
            for name, value in agent.headers:
                flow.request.headers.add(name, value)
        if _long(flow.request):
            flow.request.stream = self._tee(flow, "request")

    @_guarded
    def responseheaders(self, flow: http.HTTPFlow) -> None:
        master = self._masters.get(flow.server_conn.id)
        if master:
            master.answered = True
        if flow.response and _long(flow.response):
            flow.response.stream = self._tee(flow, "response")

    @_guarded
    def response(self, flow: http.HTTPFlow) -> None:
        self._record(flow)

    @_guarded
    def error(self, flow: http.HTTPFlow) -> None:
        master = self._masters.get(flow.server_conn.id)
        left = flow.client_conn.timestamp_end is not None or (flow.error and "disconnected" in flow.error.msg)
        if master and self._settings and not left:
            _, name = self._settings.toward(flow.client_conn.sni)
            self._put(master, master.late_refusal(flow.server_conn, name))
        self._record(flow)

    def _record(self, flow: http.HTTPFlow) -> None:
        if self._recorder is None:
            return
        state, master = self._agents.get(flow.client_conn.id), self._masters.get(flow.server_conn.id)
        spools = self._restore(flow)
        _, fields, stripped = self._sent.pop(flow.client_conn.id, ("", flow.request.headers.fields, ()))
        exchange = mitm_flows.exchange_of(
            flow,
            state.leg(flow.client_conn) if state else None,
            master.leg(flow.server_conn) if master else None,
            state.identity if state else None,
            stripped,
        )
        if fields is not flow.request.headers.fields:
            headers = mitm_flows.headers_of(http.Headers(fields))
            exchange = dataclasses.replace(exchange, request=dataclasses.replace(exchange.request, headers=headers))
        for side, spool in [each for each in spools.items() if each[1].cut]:
            del spools[side]
            message = dataclasses.replace(
                getattr(exchange, side), body=spool.head, lost=spool.size - len(spool.head), digest=spool.sha256.hex()
            )
            exchange = dataclasses.replace(exchange, **{side: message})
        if state:
            state.close = any(
                b"close" in _values(message, b"connection").lower()
                for message in (flow.request, flow.response)
                if message
            )
        # mitmdump shows no flows: nobody would see what is found out about one.
        then = None if self._console else functools.partial(self._understood, flow)
        keep = functools.partial(self._recorder.put, exchange, then, spools)
        client = flow.client_conn
        self._selection.admit(client.id, _address(client), self._name(state, exchange), keep)

    def _forget(self, client: connection.Client) -> None:
        """Nothing is under way any more on a connection; what is left of it is of an exchange whose hooks failed."""
        flow, *_ = self._sent.pop(client.id, ("",))
        for side in ("request", "response"):
            if tee := self._tees.pop((flow, side), None):
                tee.finish().close()

    def _name(self, state: AgentEnd | None, exchange: Exchange) -> str | None:
        """Whose an exchange is, as far as it must be known now: by the certificate, or else by the URL."""
        if self._selection.everything:
            return None
        named = state.named if state else None
        match = endpoints.match(exchange.request.method, exchange.request.target)
        return named or (match.certname if match else None)

    def _tee(self, flow: http.HTTPFlow, side: Literal["request", "response"]) -> _Tee:
        folder = self._settings.capture.parent if self._settings else Path(tempfile.gettempdir())
        tee = self._tees[flow.id, side] = _Tee(
            self, Spool(folder, self._settings.keep_body if self._settings else KEEP)
        )
        return tee

    def _restore(self, flow: http.HTTPFlow) -> dict[str, Spool]:
        """Give a body that was passed on while it came back to the flow, for mitmproxy's own views too; those that are
        too large for that are returned."""
        spools = {}
        for side, message in (("request", flow.request), ("response", flow.response)):
            tee = self._tees.pop((flow.id, side), None)
            if tee is None or message is None:
                continue
            spool = tee.finish()
            message.raw_content = spool.body or b""
            if spool.body is None:
                spools[side] = spool
        return spools

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
        key = f"{where}: {error!r}"[:500]
        if key not in self._warned and len(self._warned) < WARNINGS:
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
    flow.comment = "; ".join(f"{rule}: {wording.clean(message)}" for rule, _, message in told.findings)
    with contextlib.suppress(Exception):
        from mitmproxy.hooks import UpdateHook

        asyncio.get_running_loop().create_task(ctx.master.addons.handle_lifecycle(UpdateHook([flow])))


@functools.lru_cache(maxsize=1024)
def _claims(name: str) -> bool:
    return CLAIMS.fullmatch(_PUNCTUATION.sub("-", name)) is not None


def _values(message: http.Request | http.Response, name: bytes) -> bytes:
    """What a header says, without mitmproxy's own look-up, which takes longer than all else that is done in a hook."""
    return b", ".join(value for each, value in message.headers.fields if each.lower() == name)


def _long(message: http.Request | http.Response) -> bool:
    length = _values(message, b"content-length")
    if not length:
        # An answer without a length ends when the master closes.
        return b"chunked" in _values(message, b"transfer-encoding").lower() or isinstance(message, http.Response)
    return length.isdigit() and (len(length) > 15 or int(length) > STREAM)


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
