"""What no healthy pair does, and what one format or the other has no place for."""

from __future__ import annotations

import dataclasses
import gzip
from typing import TYPE_CHECKING

from inspector.model import Closed, Connection, Exchange, Gap, Handshake, Identity, Leg, Request, Response
from tests.support.conversations import START, certificate

if TYPE_CHECKING:
    from inspector.model import Record

AGENT = Leg("a", "agent", "192.0.2.1", 40000, None, START + 0.1, START + 0.123456789, "TLSv1.3", "X", "puppet", "h2",
            False, (certificate("c.example", "c.example"), b"no DER"), (certificate("m", "m"),))  # fmt: skip
MASTER = Leg("m", "master", "192.0.2.9", 8140, START + 1.1, START + 1.2, START + 1.3, "TLSv1.3", "X", "puppet", None,
             True, (certificate("m", "m"),), (certificate("c.example", "c.example"),))  # fmt: skip
ODD: tuple[Record, ...] = (
    Handshake(dataclasses.replace(AGENT, id="refused"), START, "CA \x1b[2J\u202e", "unknown_ca", "agent", ("x",)),
    Exchange(AGENT, Request((("Host", "puppet:8140"), ("X", "\x1b\xe4\x00"), ("X", "")), b"\xff\x00", "HTTP/1.0",
                            START + 1, START + 1.05, lost=7, method="PUT", target="/a b\xff?x=%zz&y&x=\x1b#?"),
             Response((("Content-Type", "text/plain"), ("Content-Encoding", "gzip")),
                      gzip.compress(b"text" * 99, mtime=0), "HTTP/1.1", START + 1.4, START + 1.5, lost=3, status=200,
                      reason="OK\x9b"),
             MASTER, Identity("keys", "", "why"), "cut off", ("X-Client-DN", "x"), failed=START + 2),
    Gap(START + 3, "", 12),
    Exchange(AGENT, Request((("Content-Encoding", "gzip"),), b"no gzip", method="POST", target="*"), failed=START + 4,
             error=""),
    Exchange(AGENT, Request((("Content-Encoding", "gzip"),), gzip.compress(b"a=1", mtime=0)),
             Response((("Content-Encoding", "gzip"),), b"\xffno gzip", status=999)),
    Exchange(Leg("", "agent"), Request(target="http://other/x", method=""), Response(status=204), None),
)  # fmt: skip
"""What no healthy pair does, and what one format or the other has no place for."""
EMPTY = (
    Connection(Leg("empty", "agent", "192.0.2.7", 5), Closed(START + 9.25, "peer")),
    Connection(dataclasses.replace(MASTER, id="unused", port=None), Closed(START + 9)),
)
