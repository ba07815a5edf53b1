"""Exchanges from mitmproxy's flow files, and back to such files.

Besides ``proxy/`` the only module that imports mitmproxy. ``exchange_of`` and ``leg_of`` convert its objects to ours,
``flow_of`` ours to its. A flow file contains no failed handshakes and no connections without requests: what it does not
contain stays None.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, cast, get_args

from mitmproxy import certs, flow, http
from mitmproxy.connection import Client, Server, TlsVersion
from mitmproxy.io import FlowReader, FlowWriter

from inspector import inputs
from inspector.formats.files import created
from inspector.model import Exchange, Leg, Request, Response
from inspector.protocol import alerts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from io import BufferedReader
    from pathlib import Path

    from mitmproxy import connection
    from mitmproxy.certs import Cert

    from inspector.model import Headers, Identity, Record


PARSED = 0.75
"""The share of the work that is done when a file was parsed."""
LARGEST = 1e15
"""Limit for the numbers of a flow: times, ports and statuses are far below it."""


def leg_of(conn: connection.Connection) -> Leg:
    """Convert mitmproxy's connection to a leg."""
    server = conn if isinstance(conn, Server) else None
    client = conn if isinstance(conn, Client) else None
    peer = conn.peername or (server.address if server else None)
    return Leg(
        id=conn.id,
        side="master" if server else "agent",
        address=str(peer[0]) if peer else None,
        port=int(peer[1]) if peer else None,
        connecting=server.timestamp_start if server else None,
        connected=server.timestamp_tcp_setup if server else conn.timestamp_start,
        secured=conn.timestamp_tls_setup,
        tls_version=conn.tls_version,
        cipher=conn.cipher,
        sni=conn.sni,
        alpn=conn.alpn.decode("ascii", "replace") if conn.alpn else None,
        peer_chain=_ders(conn.certificate_list),
        own_chain=_ders([client.mitmcert]) if client and client.mitmcert else (),
    )


def _ders(certificates: Iterable[Cert]) -> tuple[bytes, ...]:
    from cryptography.hazmat.primitives.serialization import Encoding

    chain: list[bytes] = []
    for certificate in certificates:
        # A certificate that cannot be encoded again is omitted; the handshake took place nevertheless.
        with contextlib.suppress(ValueError):
            chain.append(certificate.to_cryptography().public_bytes(Encoding.DER))
    return tuple(chain)


def headers_of(headers: http.Headers) -> tuple[tuple[str, str], ...]:
    """Return names and values in order, byte for byte (Latin-1)."""
    return tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in headers.fields)


def request_of(request: http.Request) -> Request:
    """Return a request's head and body as on the wire."""
    return Request(
        headers=headers_of(request.headers),
        body=request.raw_content or b"",
        http_version=request.data.http_version.decode("latin-1"),
        started=request.timestamp_start,
        ended=request.timestamp_end,
        method=request.data.method.decode("latin-1"),
        target=request.data.path.decode("latin-1"),
    )


def response_of(response: http.Response) -> Response:
    """Return a response's head and body as on the wire."""
    return Response(
        headers=headers_of(response.headers),
        body=response.raw_content or b"",
        http_version=response.data.http_version.decode("latin-1"),
        started=response.timestamp_start,
        ended=response.timestamp_end,
        status=response.status_code,
        reason=response.data.reason.decode("latin-1"),
    )


def exchange_of(
    flow: http.HTTPFlow,
    agent: Leg | None = None,
    master: Leg | None = None,
    identity: Identity | None = None,
    stripped: tuple[str, ...] = (),
) -> Exchange:
    """Convert a flow to an exchange. ``agent`` and ``master`` replace the flow's own connections; the other arguments
    are facts that a flow does not contain."""
    if master is None and flow.server_conn.timestamp_start is not None:
        master = leg_of(flow.server_conn)
    return Exchange(
        agent=agent or leg_of(flow.client_conn),
        request=request_of(flow.request),
        response=response_of(flow.response) if flow.response else None,
        master=master,
        identity=identity,
        error=flow.error.msg.encode("utf-8", "replace").decode() if flow.error else None,
        stripped=stripped,
        failed=flow.error.timestamp if flow.error else None,
    )


class _Bounded:
    """A file from which no more is read than it has: memory is reserved for the lengths in it, which may be any."""

    def __init__(self, file: BufferedReader) -> None:
        self._file = file
        self._size = self._left = os.fstat(file.fileno()).st_size
        self.peek = file.peek

    @property
    def share(self) -> float:
        """The part of it that was read."""
        return 1 - self._left / self._size

    def read(self, size: int = -1) -> bytes:
        if size > max(self._left, 1):  # one byte: to find the end
            raise ValueError("a length in it is larger than the file")
        data = self._file.read(size)
        self._left -= len(data)
        return data

    def close(self) -> None:
        self._file.close()


def flows(source: Path, look: Callable[[float], None] = lambda _: None) -> Iterator[Exchange]:
    """Yield the HTTP flows of a flow file, in the order in which they ended; ``look`` is called with the share of the
    work that is done.

    Raises OSError, and ValueError if it is not a flow file; if it is cut off, after the flows before its end.
    """
    found: list[Exchange] = []
    broken: Exception | None = None
    with inputs.opened(source) as file:
        try:
            reader = FlowReader(bounded := _Bounded(file))  # type: ignore[arg-type]
            for flow in reader.stream():
                look(PARSED * bounded.share)
                if isinstance(flow, http.HTTPFlow):
                    found.append(recorded(flow))
        except OSError:
            raise
        except RecursionError:
            broken = ValueError("it is nested too deeply")
        except Exception as error:  # noqa: BLE001 - mitmproxy checks little of what it reads, and asserts the rest
            broken = error
    for done, exchange in enumerate(sorted(found, key=lambda exchange: exchange.ended)):
        look(PARSED + (1 - PARSED) * done / len(found))
        yield exchange
    if broken:
        reason = str(broken) or type(broken).__name__
        raise ValueError(reason if found else f"it is not a flow file of mitmproxy: {reason}") from broken


def recorded(flow: http.HTTPFlow) -> Exchange:
    """Convert a flow that mitmproxy recorded to an exchange that can be stored. Raises ValueError."""
    # Of a connection that failed before it was ready, mitmproxy notes nothing but where to. An alert came from there.
    refused = flow.error is not None and alerts.refusal(flow.error.msg) is not None
    return checked(exchange_of(flow, master=leg_of(flow.server_conn) if refused else None))


def checked(exchange: Exchange) -> Exchange:
    """Return an exchange that can be stored. Raises ValueError."""
    request, response = exchange.request, exchange.response
    numbers: list[float | None] = [request.started, request.ended, exchange.failed]
    if response is not None:
        numbers += [response.started, response.ended, response.status]
    for leg in exchange.legs:
        numbers += [leg.port, leg.connecting, leg.connected, leg.secured]
    if any(number is not None and not -LARGEST < number < LARGEST for number in numbers):
        raise ValueError("a number in it is too large")
    return exchange


# -- writing --------------------------------------------------------------------------------------------


def export_flows(records: Iterable[Record], path: Path) -> int:
    """Write the exchanges among some records to a flow file that mitmproxy opens; return their number.

    A flow cannot contain the identity that was used, the headers that
    were removed, the size of bodies that were not recorded whole, or whether a TLS session was resumed. The file is new
    and has mode 0600; raises InspectorError if it exists.
    """
    number = 0
    with created(path) as file:
        writer = FlowWriter(file)  # type: ignore[no-untyped-call]
        for record in records:
            if isinstance(record, Exchange):
                writer.add(flow_of(record))
                number += 1
    return number


def flow_of(exchange: Exchange) -> http.HTTPFlow:
    """Convert an exchange to mitmproxy's flow."""
    agent, request, response = exchange.agent, exchange.request, exchange.response
    server = _server(exchange.master)
    made = http.HTTPFlow(_client(agent), server)
    host, port = server.address or (agent.sni or "", 8140)
    began = request.started or exchange.time
    made.timestamp_created = began
    made.request = http.Request(
        host=host,
        port=port,
        method=request.method.encode("latin-1", "replace"),
        scheme=b"https" if agent.tls_version or agent.secured else b"http",
        authority=b"",
        path=request.target.encode("latin-1", "replace"),
        http_version=request.http_version.encode("latin-1", "replace"),
        headers=_headers(request.headers),
        content=request.body,
        trailers=None,
        timestamp_start=began,
        timestamp_end=request.ended,
    )
    if response is not None:
        made.response = http.Response(
            http_version=response.http_version.encode("latin-1", "replace"),
            status_code=response.status,
            reason=response.reason.encode("latin-1", "replace"),
            headers=_headers(response.headers),
            content=response.body,
            trailers=None,
            timestamp_start=response.started or response.ended or began,
            timestamp_end=response.ended,
        )
    if exchange.error is not None:
        made.error = flow.Error(exchange.error, exchange.failed or exchange.ended)
    return made


def _headers(headers: Headers) -> http.Headers:
    return http.Headers(
        (name.encode("latin-1", "replace"), value.encode("latin-1", "replace")) for name, value in headers
    )


def _client(leg: Leg) -> Client:
    own = _certs(leg.own_chain[:1])
    made = Client(
        peername=(leg.address or "", leg.port or 0),
        sockname=("", 0),
        mitmcert=own[0] if own else None,
        timestamp_start=leg.connected or leg.secured or 0.0,
    )
    _secure(made, leg)
    return made


def _server(leg: Leg | None) -> Server:
    if leg is None:
        return Server(address=None)
    address = (leg.address or "", leg.port or 0)
    made = Server(address=address, peername=address if leg.address else None)
    made.timestamp_start, made.timestamp_tcp_setup = leg.connecting, leg.connected
    _secure(made, leg)
    return made


def _secure(made: connection.Connection, leg: Leg) -> None:
    made.id = leg.id
    made.tls = leg.tls_version is not None or leg.secured is not None
    made.timestamp_tls_setup = leg.secured
    known = leg.tls_version in get_args(TlsVersion)
    made.tls_version = cast("TlsVersion", leg.tls_version) if known else None
    made.cipher, made.sni = leg.cipher, leg.sni
    made.alpn = leg.alpn.encode("ascii", "replace") if leg.alpn else None
    made.certificate_list = _certs(leg.peer_chain)


def _certs(chain: Iterable[bytes]) -> list[Cert]:
    from cryptography import x509

    made: list[Cert] = []
    for der in chain:
        with contextlib.suppress(ValueError):  # a flow cannot contain an invalid certificate
            made.append(certs.Cert(x509.load_der_x509_certificate(der)))
    return made
