"""What an agent writes into its own connection never speaks for another: not by framing that two readers read in two
ways, not by lines within lines, not by claims in headers, whatever their spelling.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

import pytest

from tests.e2e.wire import Listener, Peer, requests
from tests.support.proxies import exchanges

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.lab import Lab
    from tests.support.proxies import Proxied


NAME, OTHER = "web1.lab.example", "web2.lab.example"
CLAIMS = (b"X-Client-Verify: SUCCESS", b"X-Client-DN: CN=" + OTHER.encode())
INNER = b"\r\n".join([b"GET /inner HTTP/1.1", b"Host: n", *CLAIMS, b"", b""])
LENGTH = b"Content-Length: %d" % len(INNER)
CHUNKED = b"Transfer-Encoding: chunked"
LAST = b"0\r\n\r\n"
WHOLE = b"%x\r\n%s\r\n" % (len(INNER), INNER) + LAST
"""The inner request as a chunk."""


def post(*headers: bytes, body: bytes = INNER, line: bytes = b"POST /outer HTTP/1.1") -> bytes:
    """A request with a body that is a request."""
    return b"\r\n".join([line, b"Host: n", *headers, b"", b""]) + body


HOSTILE = {
    "both, the length counts": post(LENGTH, CHUNKED, body=LAST + INNER),
    "both, the chunks count": post(b"Content-Length: 4", CHUNKED, body=WHOLE),
    "two lengths": post(b"Content-Length: 0", LENGTH),
    "one length twice": post(LENGTH, LENGTH),
    "a list of lengths": post(b"Content-Length: %d, %d" % (len(INNER), len(INNER))),
    "a length with a sign": post(b"Content-Length: +%d" % len(INNER)),
    "a negative length": post(b"Content-Length: -1"),
    "a length in hex": post(b"Content-Length: 0x%x" % len(INNER)),
    "a length with a zero before it": post(b"Content-Length: 0%d" % len(INNER)),
    "chunked, then identity": post(b"Transfer-Encoding: chunked, identity", body=WHOLE),
    "identity, then chunked": post(b"Transfer-Encoding: identity, chunked", body=WHOLE),
    "an unknown coding": post(b"Transfer-Encoding: xchunked", LENGTH),
    "a coding after a vertical tab": post(b"Transfer-Encoding: \x0bchunked", LENGTH, body=LAST + INNER),
    "a coding with a NUL": post(b"Transfer-Encoding: chunked\0", LENGTH, body=LAST + INNER),
    "two codings": post(CHUNKED, b"Transfer-Encoding: identity", body=WHOLE),
    "a blank before the colon": post(b"Transfer-Encoding : chunked", LENGTH, body=LAST + INNER),
    "a folded coding": post(b"Transfer-Encoding:\r\n chunked", LENGTH, body=LAST + INNER),
    "a coding in a folded line": post(b"X-A: b\r\n Transfer-Encoding: chunked", LENGTH, body=LAST + INNER),
    "claims in folded lines": post(b"X-A: b\r\n " + b"\r\n\t".join(CLAIMS), LENGTH),
    "a fold at the very start": post(b"", line=b"POST /outer HTTP/1.1\r\n " + CLAIMS[1]),
    "claims after a carriage return": post(b"X-A: b\r" + b"\r".join(CLAIMS), LENGTH),
    "a coding after a carriage return": post(b"X-A: b\rTransfer-Encoding: chunked", LENGTH, body=LAST + INNER),
    "claims after a NUL": post(b"X-A: b\0" + b"\0".join(CLAIMS), LENGTH),
    "a NUL in a name": post(b"X-Client\0-DN: CN=" + OTHER.encode(), LENGTH),
    "line feeds alone": post(*CLAIMS, CHUNKED, body=WHOLE).replace(b"\r\n", b"\n"),
    "chunk extensions": post(CHUNKED, body=WHOLE.replace(b"\r\n", b";a=b\r\n", 1)),
    "a chunk extension with a line feed": post(CHUNKED, body=b"1;a=\nx\r\nb\r\n" + LAST + INNER),
    "a chunk of a huge size": post(CHUNKED, body=b"1" + b"0" * 20 + b"\r\n" + INNER),
    "a chunk size with 0x": post(CHUNKED, body=b"0x" + WHOLE),
    "a negative chunk": post(CHUNKED, body=b"-1\r\n" + INNER),
    "chunks without carriage returns": post(CHUNKED, body=b"0\n\n" + INNER),
    "a request in many chunks": post(CHUNKED, body=b"".join(b"1\r\n%c\r\n" % byte for byte in INNER) + LAST),
    "a request behind chunks": post(CHUNKED, body=WHOLE + INNER),
    "claims in trailers": post(CHUNKED, body=b"0\r\n" + b"\r\n".join(CLAIMS) + b"\r\n\r\n"),
    "chunks in HTTP/1.0": post(CHUNKED, body=WHOLE, line=b"POST /outer HTTP/1.0"),
    "chunks in what calls itself HTTP/2.0": post(CHUNKED, body=WHOLE, line=b"POST /outer HTTP/2.0"),
    "a GET with a body": post(LENGTH, line=b"GET /outer HTTP/1.1"),
    "a second request right behind": post() + INNER,
    "claims": post(*CLAIMS, LENGTH),
    "claims with blanks before the colon": post(*(claim.replace(b":", b" :") for claim in CLAIMS), LENGTH),
    "claims with underscores": post(*(claim.replace(b"-", b"_") for claim in CLAIMS), LENGTH),
    "claims with other punctuation": post(*(claim.replace(b"-", b".") for claim in CLAIMS), LENGTH),
    "claims in mixed case": post(*(claim.swapcase() for claim in CLAIMS), LENGTH),
    "claims of other terminators": post(
        b"X-SSL-Subject: CN=x", b"SSL_CLIENT_S_DN: CN=x", b"SSL-Client-Verify: SUCCESS"
    ),
    "claims that the next hop is to drop": post(b"Connection: X-Client-DN, X-Client-Verify", LENGTH),
    "a target with a vertical tab": post(line=b"POST /outer\x0bHTTP/1.1"),
    "a carriage return in the first line": post(line=b"POST /outer HTTP/1.1\rX-Client-DN: CN=x"),
    "an absolute target": post(LENGTH, line=b"POST https://elsewhere.example:1/outer HTTP/1.1"),
    "a tunnel": post(line=b"CONNECT elsewhere.example:1 HTTP/1.1"),
    "an upgrade to HTTP/2": post(b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABk"),
    "HTTP/2 at once": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + INNER,
    "an upgrade to a websocket": post(b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Key: AA=="),
    "mitmproxy's own page": post(LENGTH).replace(b"Host: n", b"Host: mitm.it"),
    "a wait for 100": post(b"Expect: 100-continue", LENGTH),
}


def send(peer: Peer, data: bytes) -> None:
    """Send it all, and read what comes until the other end has had enough."""
    with contextlib.suppress(OSError), peer.connect() as connection:
        connection.settimeout(0.5)
        connection.sendall(data)
        while connection.recv(65536):
            pass


def claims(head: list[bytes]) -> list[bytes]:
    """The lines that a master, or what stands before it, could take for an identity, in any spelling."""
    names = (re.sub(rb"[^a-z0-9]", b"-", line.partition(b":")[0].lower().strip()) for line in head[1:])
    return [line for line, name in zip(head[1:], names, strict=True) if re.match(rb"x-client-|x-ssl-|ssl-", name)]


@pytest.mark.both_roads
@pytest.mark.parametrize("who", ["nobody", NAME])
def test_what_reaches_the_master_reads_in_one_way_and_claims_nothing(who: str, lab: Lab, proxied: Proxied) -> None:
    """In the mode ``headers``, where a header that slips through is an identity."""
    place = None if who == "nobody" else lab.agent(NAME, enrolled=True).place
    with (
        Listener(lab.master.context) as master,
        proxied(lab, puppet_master="{}:{}".format(*master.address), puppet_identity="headers") as proxy,
    ):
        for data in HOSTILE.values():
            send(Peer.of(proxy.address, lab.proxy_name, place), data)
    own = [] if place is None else [b"X-Client-Verify: SUCCESS", b"X-Client-DN: CN=" + NAME.encode(), b"X-Client-Cert"]
    assert len(master.heard) > 10
    for heard in master.heard:
        for head, _ in requests(bytes(heard.data)):
            message = claims(head)
            assert [*message[:2], *(line.partition(b":")[0] for line in message[2:])] == own
    assert not any("-- internal error" in line for line in proxy.lines)


@pytest.mark.both_roads
def test_what_is_hostile_leaves_the_proxy_standing(lab: Lab, proxied: Proxied, capture: Path) -> None:
    place = lab.agent(NAME, enrolled=True).place
    with proxied(lab) as proxy:
        for data in HOSTILE.values():
            send(Peer(proxy.address, lab.proxy_name), data)
        answer = Peer.of(proxy.address, lab.proxy_name, place).ask(
            "GET", f"/puppet/v3/node/{NAME}?environment=production"
        )
        assert answer.status == 200
    assert all(line.isprintable() for line in proxy.lines)
    last = exchanges(capture)[-1]
    assert last.identity
    assert last.identity.certname == NAME


@pytest.mark.both_roads
def test_a_connection_to_the_master_belongs_to_one_agent(lab: Lab, proxied: Proxied) -> None:
    places = {name: lab.agent(name, enrolled=True).place for name in (NAME, OTHER)}
    with (
        Listener(lab.master.context) as master,
        proxied(lab, puppet_master="{}:{}".format(*master.address)) as proxy,
    ):
        peers = {name: Peer.of(proxy.address, lab.proxy_name, place) for name, place in places.items()}
        with contextlib.ExitStack() as stack:
            open_ = {name: stack.enter_context(peer.connect()) for name, peer in peers.items()}
            open_["nobody"] = stack.enter_context(Peer(proxy.address, lab.proxy_name).connect())
            for turn in range(3):
                for name, connection in open_.items():
                    # Two at once, and a third that is not whole yet.
                    whole = b"GET /of/%s/%d HTTP/1.1\r\nHost: n\r\n\r\n" % (name.encode(), turn)
                    connection.sendall(whole * 2 + whole[:-2] if turn == 0 else whole[-2:] + whole + whole[:-2])
                for connection in open_.values():
                    connection.settimeout(5)
                    answers = b""
                    while answers.count(b"HTTP/1.1 200") < 2:
                        answers += connection.recv(65536)
    assert {heard.certname for heard in master.heard} == {NAME, OTHER, None}
    for heard in master.heard:
        asked = {head[0].split(b"/")[2].decode() for head, _ in requests(bytes(heard.data))}
        assert asked == {heard.certname or "nobody"}
        assert not heard.resumed
