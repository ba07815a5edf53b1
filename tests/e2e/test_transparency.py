"""What the master receives through the proxy is what it receives without, and so is what the agent gets."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING

import pytest

from inspector.model import Exchange, Headers, Response
from tests.e2e.wire import Peer
from tests.support.proxies import exchanges, records

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.lab import Lab
    from tests.support.proxies import Proxied

BIG = os.urandom(3 * 2**20)


def chunked(body: bytes, size: int = 1000) -> bytes:
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def request(line: str, *headers: str, body: bytes = b"") -> bytes:
    return "\r\n".join([f"{line} HTTP/1.1", *headers, "", ""]).encode() + body


N = "Host: n"
REQUESTS: dict[str, bytes] = {
    "header order and case": request("GET /status/v1/simple", "zEBRA: 1", N, "accept: s", "X-Puppet-Version: 7"),
    "repeated headers": request("GET /status/v1/simple", N, "X-A: 1", "X-B: 2", "X-A: 3"),
    "double slash": request("HEAD /puppet/v3/file_bucket_file/sha256/ab12//srv/dst.txt?environment=production", N),
    "trailing question mark": request("GET /production/certificate/ca?", N),
    "trailing ampersand": request("GET /puppet/v3/node/n?environment=production&", N),
    "percent encoding": request("GET /puppet/v3/file_content/modules/m/a%20b%2Fc%C3%A4?environment=a%2fb", N),
    "dots": request("GET /puppet/v3/file_content/modules/m/../../x/./y", N),
    "no accept": request("GET /puppet/v3/environments", N),
    "body": request("PUT /puppet/v3/report/n", N, "Content-Type: application/json", "Content-Length: 3", body=b"{} "),
    "binary": request("PUT /puppet/v3/file_bucket_file/md5/0", N, "Content-Length: 256", body=bytes(range(256))),
    "empty body": request("POST /puppet-ca/v1/certificate_renewal", N, "Content-Length: 0"),
    "big body": request("PUT /puppet/v3/report/n", N, f"Content-Length: {len(BIG)}", body=BIG),
    "connection close": request("GET /status/v1/simple", N, "Connection: close"),
}


@pytest.mark.both_roads
def test_the_master_receives_the_same(lab: Lab, proxied: Proxied, capture: Path) -> None:
    place = lab.agent("web1.lab.example", enrolled=True).place
    straight = answers(Peer.of(lab.master_address, lab.master_name, place))
    with proxied(lab) as proxy:
        through = answers(Peer.of(proxy.address, lab.proxy_name, place))
    first, second = lab.master.received[: len(REQUESTS)], lab.master.received[len(REQUESTS) :]
    assert through == straight
    assert {received.certname for received in lab.master.received} == {"web1.lab.example"}
    for name, expected, received, exchange in zip(REQUESTS, first, second, records(capture), strict=True):
        assert received.request.method == expected.request.method, name
        assert received.request.target == expected.request.target, name
        assert received.request.headers == expected.request.headers, name
        assert received.request.body == expected.request.body, name
        assert isinstance(exchange, Exchange)
        assert exchange.request.target.encode("latin-1") in REQUESTS[name]
        assert exchange.request.body == expected.request.body, name
        assert exchange.response
        assert exchange.response.body == straight[name][1], name


def answers(peer: Peer) -> dict[str, tuple[int, bytes, list[tuple[str, str]]]]:
    """What each request is answered with: status, body, headers."""
    found = {}
    for name, request_ in REQUESTS.items():
        answer = peer.send(request_, head=request_.startswith(b"HEAD"))
        found[name] = (answer.status, answer.body, without_date(answer.headers))
    return found


def only(capture: Path) -> Exchange:
    (record,) = records(capture)
    assert isinstance(record, Exchange)
    return record


def without_date(headers: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers if name != "Date"]


@pytest.mark.both_roads
def test_answers_of_any_size_and_framing(lab: Lab, proxied: Proxied, capture: Path) -> None:
    path = "/puppet/v3/file_content/modules/m/f"
    place = lab.agent("web1.lab.example", enrolled=True).place
    bodies = []
    with proxied(lab) as proxy:
        for size, framing in itertools.product((10, 5 * 2**20), ((), (("Transfer-Encoding", "chunked"),))):
            body = os.urandom(size)
            headers: Headers = (("Content-Type", "application/octet-stream"), ("x-LowerCase", "kept"), *framing)
            lab.master.instead["GET", path] = Response(headers=headers, body=body, status=200)
            answer = Peer.of(proxy.address, lab.proxy_name, place).ask("GET", path)
            assert answer.body == body, (size, framing)
            assert ("x-LowerCase", "kept") in answer.headers
            bodies.append(body)
    recorded = [record.response for record in exchanges(capture)]
    assert [response and response.body for response in recorded] == bodies


@pytest.mark.both_roads
def test_a_chunked_request_arrives_whole(lab: Lab, proxied: Proxied, capture: Path) -> None:
    place = lab.agent("web1.lab.example", enrolled=True).place
    head = b"PUT /puppet/v3/report/web1.lab.example HTTP/1.1\r\nHost: n\r\nTransfer-Encoding: chunked\r\n\r\n"
    with proxied(lab) as proxy:
        answer = Peer.of(proxy.address, lab.proxy_name, place).send(head + chunked(BIG))
    assert answer.status == 200
    assert lab.master.received[0].request.body == BIG
    assert only(capture).request.body == BIG


@pytest.mark.both_roads
def test_expect_is_answered(lab: Lab, proxied: Proxied) -> None:
    place = lab.agent("web1.lab.example", enrolled=True).place
    head = request("PUT /puppet/v3/report/web1.lab.example", N, "Expect: 100-continue", "Content-Length: 2")
    with proxied(lab) as proxy, Peer.of(proxy.address, lab.proxy_name, place).connect() as connection:
        connection.sendall(head)
        assert connection.recv(100).startswith(b"HTTP/1.1 100")
        connection.sendall(b"{}")
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
    assert lab.master.received[0].request.body == b"{}"
