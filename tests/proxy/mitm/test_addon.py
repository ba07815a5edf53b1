"""The addon's hooks, without a network: what a mistake of ours may do, and what other views get to see."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import socket
import time
from io import FileIO
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest
from mitmproxy import eventsequence, http
from mitmproxy.addons import intercept
from mitmproxy.addons.proxyserver import Proxyserver
from mitmproxy.test import taddons, tflow
from OpenSSL import SSL

from inspector.capture.spool import HEAD, KEEP, Spool
from inspector.capture.store import Capture
from inspector.errors import InspectorError
from inspector.host import pki
from inspector.model import Exchange, Gap, Leg
from inspector.proxy import identity, tls
from inspector.proxy.analysis_client import AnalysisResult
from inspector.proxy.bodies import Copies
from inspector.proxy.connect import acceptance
from inspector.proxy.connect.acceptance import Examination
from inspector.proxy.connect.interception import Decision, Way
from inspector.proxy.connection_state import AgentConnection, MasterConnection
from inspector.proxy.mitm import addon as addon_module
from inspector.proxy.mitm.link import REFUSED
from inspector.proxy.recorder import NEVER, Recorder
from inspector.proxy.runtime import Runtime
from inspector.proxy.telemetry.settings import NOTHING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def addon(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[addon_module.PuppetInspector]:
    """An addon that records, but does not listen; with the parameter True it analyzes, too."""
    addon = addon_module.PuppetInspector()
    settings: Any = SimpleNamespace(
        capture=tmp_path / "c.sqlite", rules=(), rotation=NEVER, redact=False, probe="", only=None, keep_body=KEEP,
        identity_source=identity.NoIdentity(), faults=(), telemetry=NOTHING, tables=None, wire=False, plan=None,
        connect=None, place="here", interposes=False, stands_in=False, authority=None, authority_for=lambda *_: None,
    )  # fmt: skip
    addon._runtime, addon._reason = Runtime(settings, lambda _line: None, analyzes=getattr(request, "param", False)), ""
    with taddons.context():  # type: ignore[no-untyped-call]
        yield addon
        if addon._runtime.recorder.is_alive():
            addon._runtime.recorder.finish()


def finish(addon: addon_module.PuppetInspector) -> None:
    """Let everything be recorded."""
    assert addon._runtime
    addon._runtime.recorder.finish()


def recorded(tmp_path: Path) -> list[Any]:
    with Capture.open(tmp_path / "c.sqlite") as capture:
        return list(capture.records())


@pytest.mark.slow
def test_a_port_that_another_program_takes_first(
    addon: addon_module.PuppetInspector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first = SimpleNamespace(any_port=True, master_address="127.0.0.1:1", listen=("127.0.0.1", 0), connect=None)

    async def listen(*ports: int) -> list[int]:
        later = iter(SimpleNamespace(**vars(first) | {"listen": ("127.0.0.1", port)}) for port in ports)
        monkeypatch.setattr("inspector.proxy.options.listen_again", lambda _: next(later))
        server = Proxyserver()  # type: ignore[no-untyped-call]
        with taddons.context(addon, server):  # type: ignore[no-untyped-call]
            await addon._listen(server, first)  # type: ignore[arg-type]
            listening = [address[1] for address in server.listen_addrs()]
            await server.servers.update([])
        return listening

    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as other:
        free = other.getsockname()[1]
        other.close()
        assert set(asyncio.run(listen(taken.getsockname()[1], free))) == {free}
    assert not [record for record in caplog.records if record.levelname == "ERROR"]  # else mitmproxy ends


def test_a_port_that_is_taken_for_good_is_one_error(addon: addon_module.PuppetInspector) -> None:
    async def listen(port: int) -> None:
        server, where = Proxyserver(), f"127.0.0.1:{port}"  # type: ignore[no-untyped-call]
        settings: Any = SimpleNamespace(
            any_port=False, master_address="127.0.0.1:1", listen=("127.0.0.1", port), listen_address=where,
            connect=None,
        )  # fmt: skip
        with taddons.context(addon, server):  # type: ignore[no-untyped-call]
            await addon._listen(server, settings)

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InspectorError, match=f"Cannot listen on 127.0.0.1:{port}"):
            asyncio.run(listen(port))


def test_a_connection_that_cannot_be_recorded_is_answered_nevertheless(
    addon: addon_module.PuppetInspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that uses mitmdump as its HTTP proxy gets why its server cannot be reached."""
    gone = Examination(1.0, unreachable=ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"))

    async def decide(_: object) -> Decision:
        return Decision(Way.NONE, gone)

    assert addon._runtime
    addon._runtime.interception = Mock(decide=decide)
    monkeypatch.setattr(acceptance, "record", Mock(side_effect=RuntimeError("a mistake of ours")))
    flow = tflow.tflow()
    flow.request.host, flow.request.port = "puppet.example", 8140
    asyncio.run(addon.http_connect(flow))
    assert flow.response
    assert flow.response.status_code == 502
    assert flow.response.reason.startswith("Failed to open TCP connection to puppet.example:8140 (Connection refused")


HOOKS = ("client_disconnected", "server_disconnected", "tls_failed_client", "tls_failed_server",
         "responseheaders", "response", "error")  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_that_fails_is_a_gap_and_not_an_exception(
    hook: str, addon: addon_module.PuppetInspector, tmp_path: Path
) -> None:
    getattr(addon, hook)(object())  # nothing that mitmproxy would pass: every attribute is missing
    finish(addon)
    (gap,) = recorded(tmp_path)
    assert isinstance(gap, Gap)
    assert hook in gap.reason


@pytest.mark.slow
def test_a_record_is_what_was_sent(addon: addon_module.PuppetInspector, tmp_path: Path) -> None:
    flow = tflow.tflow(resp=True)
    flow.request.headers = http.Headers(
        [(b"X-Client-DN", b"CN=root"), (b"hOST", b"a"), (b"X-Client-Verify", b"SUCCESS")]
    )
    addon.requestheaders(flow)
    assert flow.request.headers.fields == ((b"hOST", b"a"),)
    addon.response(flow)
    finish(addon)
    (exchange,) = recorded(tmp_path)
    assert isinstance(exchange, Exchange)
    assert [name for name, _ in exchange.request.headers] == ["X-Client-DN", "hOST", "X-Client-Verify"]
    assert exchange.stripped == ("X-Client-DN", "X-Client-Verify")


@pytest.mark.slow
@pytest.mark.parametrize("addon", [True], indirect=True)
def test_findings_show_in_mitmproxys_own_views(addon: addon_module.PuppetInspector, tmp_path: Path) -> None:
    async def show() -> http.HTTPFlow:
        flow = tflow.tflow(resp=True)
        flow.request.path = "/puppet-ca/v1/certificate/ca"
        addon._loop = asyncio.get_running_loop()
        addon.response(flow)
        until = time.monotonic() + 300
        while not flow.comment and time.monotonic() < until:
            await asyncio.sleep(0.02)
        return flow

    flow = asyncio.run(show())
    assert flow.marked == ":red_circle:"  # what comes is no CA bundle, which is the worse of the two
    assert "B01: the CA bundle was downloaded without verifying" in flow.comment
    assert "B05: " in flow.comment


@pytest.mark.slow
def test_a_flow_that_is_read_is_neither_changed_nor_recorded(
    addon: addon_module.PuppetInspector, tmp_path: Path
) -> None:
    async def read() -> None:
        for flow in (tflow.tflow(resp=True), tflow.tflow(err=True), tflow.tflow(resp=True, err=True)):
            flow.live = False
            flow.request.headers = http.Headers([(b"X-Client-DN", b"CN=root"), (b"Content-Length", b"100000")])
            flow.request.raw_content = b"x" * 100_000
            if flow.response:
                flow.response.status_code = 101
                flow.response.headers.pop("content-length", None)
            before = flow.get_state()
            for event in eventsequence.iterate(flow):
                if (hook := getattr(addon, event.name, None)) is not None:
                    hook(flow)
            assert flow.get_state() == before
            assert not flow.request.stream
            assert not (flow.response and flow.response.stream)
        await addon._read.close()

    asyncio.run(read())
    finish(addon)
    assert recorded(tmp_path) == []
    assert not addon._sent
    assert not addon._bodies


def test_a_live_flow_that_is_killed_is_recorded(addon: addon_module.PuppetInspector, tmp_path: Path) -> None:
    flow = tflow.tflow()
    flow.client_conn.timestamp_tls_setup = flow.client_conn.timestamp_end = None  # in plain text
    addon.requestheaders(flow)
    assert not flow.live
    addon.error(flow)
    finish(addon)
    (exchange,) = recorded(tmp_path)
    assert exchange.error == "Connection killed."


@pytest.fixture
def reader() -> Iterator[addon_module.PuppetInspector]:
    """An addon that only reads flows."""
    addon = addon_module.PuppetInspector()
    addon._reason = "there is no CA bundle"
    with taddons.context():  # type: ignore[no-untyped-call]
        yield addon


def test_without_a_proxy_nobody_is_served_and_nothing_is_sent(reader: addon_module.PuppetInspector) -> None:
    client = tflow.tclient_conn()
    reader.client_connected(client)
    assert client.error == addon_module.ONLY_READ
    server = tflow.tserver_conn()
    server.error = None
    reader.server_connect(SimpleNamespace(server=server, client=client))  # type: ignore[arg-type]
    assert server.error == addon_module.ONLY_READ


@pytest.mark.parametrize("datagrams", [False, True])
def test_without_a_proxy_no_handshake_succeeds(reader: addon_module.PuppetInspector, datagrams: bool) -> None:
    """Were a connection made nevertheless, mitmproxy would present a certificate of its own, and trust public CAs."""
    for hook in (reader.tls_start_client, reader.tls_start_server):
        data = SimpleNamespace(ssl_conn=None, is_dtls=datagrams)
        hook(data)  # type: ignore[arg-type]
        connection: Any = data.ssl_conn
        assert connection.get_certificate() is None
        assert connection.get_verify_mode() == SSL.VERIFY_PEER


def test_before_it_has_started_every_connection_is_refused() -> None:
    addon = addon_module.PuppetInspector()
    client = tflow.tclient_conn()
    addon.client_connected(client)
    assert client.error == REFUSED


def test_a_late_alert_ends_the_connection() -> None:
    connection = tls._Connection(SSL.Context(SSL.TLS_CLIENT_METHOD))
    connection.tls_state = tls.TlsState()
    connection.set_shutdown(SSL.RECEIVED_SHUTDOWN)
    assert connection.get_shutdown() & SSL.RECEIVED_SHUTDOWN
    connection.tls_state.alert_by = "peer"
    assert not connection.get_shutdown() & SSL.RECEIVED_SHUTDOWN


def test_an_error_is_red() -> None:
    flow = tflow.tflow()
    addon_module._annotate(flow, AnalysisResult("", 1, [("B10", "error", "expired\x1b[31m")]))
    assert flow.marked == ":red_circle:"
    assert "\x1b" not in flow.comment


@pytest.mark.parametrize(
    ("after", "alert", "refused"),
    [(0.1, None, True), (60.0, None, False), (60.0, "certificate_unknown", True)],
)
def test_a_late_refusal_comes_soon_or_with_an_alert(after: float, alert: str | None, refused: bool) -> None:
    """A master that dies over a long compile has not refused anybody's certificate."""
    leg = Leg("m", "master", secured=time.time() - after)
    agent = AgentConnection(tls.TlsState(), identity.Credentials((), pki.new_key()))
    agent.credentials = agent.presented
    end = MasterConnection(tls.TlsState(alert=alert, alert_by="peer" if alert else None), agent, "puppet.example", None)
    assert (end.late_refusal(leg) is not None) == refused
    assert end.late_refusal(leg) is None  # said once


@pytest.mark.slow
def test_an_agent_that_left_was_not_refused(addon: addon_module.PuppetInspector, tmp_path: Path) -> None:
    flow = tflow.tflow(err=True)
    assert flow.error
    flow.error.msg = "Client disconnected."
    flow.request.timestamp_start = flow.error.timestamp - 5
    flow.server_conn.timestamp_tls_setup = time.time()
    agent = AgentConnection(tls.TlsState(), identity.Credentials((), pki.new_key()))
    agent.credentials = agent.presented
    addon._masters[flow.server_conn.id] = MasterConnection(tls.TlsState(), agent, "puppet.example", None)
    addon.error(flow)
    finish(addon)
    (exchange,) = recorded(tmp_path)
    assert isinstance(exchange, Exchange)
    assert exchange.response is None
    assert exchange.ended - exchange.time == pytest.approx(5)


def test_a_hook_that_meets_an_end_fails_closed(
    addon: addon_module.PuppetInspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mistake of ours must not let mitmproxy show its own certificate, or trust the world's CAs."""
    monkeypatch.setattr(addon, "_meet_agent", lambda _data: 1 / 0)
    monkeypatch.setattr(addon, "_meet_master", lambda _data: 1 / 0)
    monkeypatch.setattr(addon, "_replace_claims", lambda _flow: 1 / 0)
    for hook in (addon.tls_start_client, addon.tls_start_server):
        data = SimpleNamespace(ssl_conn=None)
        hook(data)  # type: ignore[arg-type]
        connection: Any = data.ssl_conn
        assert connection.get_certificate() is None  # nothing to show
        assert connection.get_verify_mode() == SSL.VERIFY_PEER  # and nobody to trust
    flow = tflow.tflow()
    flow.live = True
    addon.requestheaders(flow)
    assert flow.error


def streamed(addon: addon_module.PuppetInspector, tmp_path: Path, *parts: bytes, keep: int) -> Exchange:
    """The record of an answer that came in these parts."""
    flow = tflow.tflow(resp=True)
    assert addon._runtime
    copies = addon._runtime.copies = Copies(tmp_path, keep)
    pass_on = addon._copied(flow, "response")
    assert [pass_on(part) for part in parts] == list(parts)
    addon.response(flow)
    finish(addon)
    assert copies.size == 0
    (exchange,) = recorded(tmp_path)
    assert isinstance(exchange, Exchange)
    return exchange


def test_of_a_body_that_is_too_large_the_record_has_head_size_and_digest(
    addon: addon_module.PuppetInspector, tmp_path: Path
) -> None:
    exchange = streamed(addon, tmp_path, b"x" * 70_000, b"y" * 10, keep=70_005)
    assert exchange.response
    assert exchange.response.body == b"x" * HEAD
    assert exchange.response.lost == 70_010 - HEAD
    assert exchange.response.digest == hashlib.sha256(b"x" * 70_000 + b"y" * 10).hexdigest()
    assert (exchange.request.lost, exchange.request.digest) == (0, "")


@pytest.mark.slow
def test_a_large_body_is_kept_whole_without_being_held_in_memory(
    addon: addon_module.PuppetInspector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inspector.capture.spool.MEMORY", 1000)
    monkeypatch.setattr("inspector.capture.spool.CHUNK", 700)
    held: list[int] = []
    addon_put = Recorder.put

    def put(self: Recorder, item: Any, *more: Any) -> None:
        held.append(len(item.response.body))
        addon_put(self, item, *more)

    monkeypatch.setattr(Recorder, "put", put)
    parts = [bytes([number]) * 600 for number in range(10)]
    exchange = streamed(addon, tmp_path, *parts, keep=10_000)
    assert exchange.response
    assert exchange.response.body == b"".join(parts)
    assert (exchange.response.lost, exchange.response.digest) == (0, "")
    assert held == [0]


def test_a_body_whose_disk_is_full_keeps_its_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.capture.spool.MEMORY", 100)
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: FileIO("/dev/full", "r+"))
    spool = Spool(tmp_path)
    for _ in range(3):
        spool.add(b"x" * 80)
    assert (spool.cut, spool.head, spool.size) == (True, b"x" * 160, 240)
    assert spool.sha256 == hashlib.sha256(b"x" * 240).digest()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "killed"),
    [
        (((b"Connection", b"keep-alive"),), False),
        (((b"Connection", b"close, X-Client-DN"),), True),
        (((b"Connection", b"x_client_verify"),), True),
        (((b"Content-Length", b"1"),), False),
        (((b"Content_Length", b"1"),), True),
        (((b"Content-Length", b"1"), (b"content-length-", b"2")), True),
        (((b"Transfer_Encoding", b"chunked"),), True),
    ],
)
def test_headers_that_a_gateway_may_read_in_another_way_are_refused(
    fields: tuple[tuple[bytes, bytes], ...], killed: bool, addon: addon_module.PuppetInspector
) -> None:
    flow = tflow.tflow()
    flow.live, flow.client_conn.timestamp_tls_setup = True, 1.0
    flow.request.headers.fields = fields
    addon.requestheaders(flow)
    assert (flow.error is not None) == killed


@pytest.mark.slow
def test_claims_are_withheld_by_their_family_in_any_spelling(addon: addon_module.PuppetInspector) -> None:
    flow = tflow.tflow()
    flow.live, flow.client_conn.timestamp_tls_setup = True, 1.0
    claims = (
        b"X-Client-DN", b"x_client__verify", b"X-ClientCert", b"X-SSL-Subject", b"SSL_CLIENT_S_DN", b"SSL-Cipher",
        b"Client-Cert", b"Client-Cert-Chain", b"X-Forwarded-Client-Cert", b"-X-Client-Cert-", b"X..SSL..Issuer",
        b"x-client-dn",
    )  # fmt: skip
    others = (b"Host", b"X-Puppet-Version", b"Accept", b"X-Authentication", b"Ssl2")
    flow.request.headers.fields = tuple((name, b"x") for name in (*claims, *others))
    addon.requestheaders(flow)
    assert flow.error is None
    assert [name for name, _ in flow.request.headers.fields] == list(others)
    assert addon._sent[flow.client_conn.id][2] == tuple(name.decode() for name in claims[:-1])


@pytest.mark.parametrize("held", ["", "~s"])
def test_what_a_user_holds_is_not_streamed(held: str) -> None:
    """An answer in chunks has passed when it is shown otherwise, and cannot be edited."""
    kind: Any = intercept.Intercept()
    with taddons.context(kind) as running:  # type: ignore[no-untyped-call]
        assert not addon_module._intercepts()
        running.configure(kind, intercept=held)
        assert addon_module._intercepts() is bool(held)
    with taddons.context():  # type: ignore[no-untyped-call]
        assert not addon_module._intercepts(), "mitmdump holds nothing"
