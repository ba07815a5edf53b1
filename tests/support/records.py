"""A record of each kind, and captures that hold nothing but given records."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from inspector.capture.store import Capture
from inspector.model import Connection, Exchange, Gap, Handshake, Identity, Leg, Request, Response

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from inspector.model import Record

AGENT = Leg("a-1", "agent", "192.0.2.1", 40000, None, 9.5, 9.75, "TLSv1.3", "TLS_AES", "puppet", "http/1.1", True,
            (b"leaf", b"ca"), (b"ours",))  # fmt: skip
MASTER = Leg("m-1", "master", "192.0.2.9", 8140, 1.0, 2.0, 3.0, peer_chain=(b"master", b"ca"))
FULL = Exchange(
    AGENT,
    Request((("Host", "x:8140"), ("x", "\xe4"), ("X", "")), b"\x00\xff", "HTTP/1.0", 10.125, 11.0, "PUT", "//a?\xff&"),
    Response((("A", "1"),), b"answer", "HTTP/1.1", 12.0, 13.1, 418, "I'm a \xe4"),
    MASTER,
    Identity("keys", None, "the agent's key is missing"),
    "cut off",
    ("X-Client-Verify", "Expect"),
)
BARE = Exchange(Leg("a-2", "agent"), Request())
FAILED = Handshake(AGENT, 14.5, "revoked", "certificate_revoked", "proxy", ("CN=a: revoked", "CN=b"))
LOST = Gap(15.5, "the disk is full", 3)
ALL: list[Exchange | Handshake | Gap] = [FULL, BARE, FAILED, LOST]


def written(path: Path, *records: Record, connections: tuple[Connection, ...] = ()) -> list[Record]:
    with Capture.create(path) as capture:
        for connection in connections:
            capture.note(connection)
        for record in records:
            for leg in record.legs:
                if leg.id not in {connection.leg.id for connection in connections}:
                    capture.note(Connection(leg))
        return [capture.append(record) for record in records]


def unnumbered(records: Iterable[Record]) -> list[Record]:
    """The records as the proxy gives them, without their numbers."""
    return [dataclasses.replace(record, seq=0) for record in records]


def read(path: Path, after: int = 0) -> list[Record]:
    with Capture.open(path) as capture:
        return list(capture.records(after))
