"""Captures from mitmproxy's flow files, whoever recorded them.

With ``live`` the only module that knows mitmproxy; ``exchange_of`` and ``leg_of`` are where its objects
become ours. A flow file holds no failed handshakes and no empty connections: what it does not say stays
None.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from mitmproxy import exceptions, http
from mitmproxy.connection import Client, Server
from mitmproxy.io import FlowReader

from inspector.errors import CaptureError
from inspector.model import Connection, Exchange, Leg, Request, Response
from inspector.store import Capture

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from mitmproxy import connection
    from mitmproxy.certs import Cert


def leg_of(conn: connection.Connection) -> Leg:
    """A TLS connection as mitmproxy knows it."""
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
        # A certificate that can't be encoded again is left out; the handshake took place all the same.
        with contextlib.suppress(ValueError):
            chain.append(certificate.to_cryptography().public_bytes(Encoding.DER))
    return tuple(chain)


def headers_of(headers: http.Headers) -> tuple[tuple[str, str], ...]:
    """Names and values in order, byte for byte (Latin-1)."""
    return tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in headers.fields)


def request_of(request: http.Request) -> Request:
    """A request's head and body as on the wire."""
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
    """A response's head and body as on the wire."""
    return Response(
        headers=headers_of(response.headers),
        body=response.raw_content or b"",
        http_version=response.data.http_version.decode("latin-1"),
        started=response.timestamp_start,
        ended=response.timestamp_end,
        status=response.status_code,
        reason=response.data.reason.decode("latin-1"),
    )


def exchange_of(flow: http.HTTPFlow, agent: Leg | None = None, master: Leg | None = None) -> Exchange:
    """A flow as an exchange. ``agent`` and ``master`` replace what the flow says of its connections."""
    if master is None and flow.server_conn.timestamp_start is not None:
        master = leg_of(flow.server_conn)
    return Exchange(
        agent=agent or leg_of(flow.client_conn),
        request=request_of(flow.request),
        response=response_of(flow.response) if flow.response else None,
        master=master,
        error=flow.error.msg.encode("utf-8", "replace").decode() if flow.error else None,
        failed=flow.error.timestamp if flow.error else None,
    )


def import_flows(sources: Iterable[Path], target: Path) -> int:
    """Append the HTTP flows of flow files to a capture, in the order in which they ended.

    Returns their number. Raises CaptureError for a file that is no flow file; what a file that is cut off
    holds before its end is kept, and then the error is raised.
    """
    flows: list[Exchange] = []
    broken: CaptureError | None = None
    for source in sources:
        try:
            with source.open("rb") as file:
                for flow in FlowReader(file).stream():
                    if isinstance(flow, http.HTTPFlow):
                        flows.append(exchange_of(flow))
        except OSError as error:
            raise CaptureError(f"{source} can't be read: {error.strerror}.", "Check the path.") from error
        except (exceptions.FlowReadException, ValueError, TypeError, KeyError, AttributeError) as error:
            if not flows:
                raise CaptureError(
                    f"{source} is no flow file of mitmproxy: {str(error).rstrip('.')}.",
                    "Give a file that `mitmdump -w` wrote.",
                ) from error
            broken = CaptureError(
                f"{source} is cut off after {len(flows)} exchanges ({error}).",
                f"What came before is in {target}.",
            )
    flows.sort(key=lambda exchange: exchange.ended)
    with Capture.create(target) as capture:
        for number, exchange in enumerate(flows, 1):
            capture.note(Connection(exchange.agent))
            if exchange.master:
                capture.note(Connection(exchange.master))
            capture.append(exchange)
            if number % 500 == 0:
                capture.flush()
        capture.set_meta([("source", "imported from mitmproxy flow files")])
    if broken:
        raise broken
    return len(flows)
