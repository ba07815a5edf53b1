"""The search through the bodies of a capture: what it finds, and what it shows of it."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

from inspector.model import Exchange, Gap, Handshake, Leg, Request, Response
from inspector.pages import body_search as searched
from inspector.pages.body_search import Needle, hits

if TYPE_CHECKING:
    import pytest

    from inspector.model import Record


def answer(body: bytes, *headers: tuple[str, str], target: str = "/", seq: int = 1) -> Exchange:
    return Exchange(Leg("a", "agent", address="192.0.2.1"), Request(target=target, started=seq), Response(headers, body, status=200), seq=seq)  # fmt: skip  # noqa: E501


def found(record: Record, text: str) -> list[tuple[str, str, str, str]]:
    return [(hit.where, hit.before, hit.found, hit.behind) for hit in hits(record, Needle(text))]


def test_a_hit_has_its_line_and_says_where() -> None:
    record = answer(b"one\ntwo Needle three\nfour", ("X-Some", "needles"), target="/a%20needle/b")
    assert found(record, "NEEDLE") == [
        ("target", "/a ", "needle", "/b"),
        ("response header", "X-Some: ", "needle", "s"),
        ("response body", "two ", "Needle", " three"),
    ]
    assert found(record, "needle/") == [("target", "/a ", "needle/", "b")]
    assert found(record, "absent") == []


def test_it_reads_what_is_encoded() -> None:
    zipped = answer(gzip.compress('say "häh"'.encode()), ("Content-Encoding", "gzip"))
    assert found(zipped, "HÄH") == [("response body", 'say "', "häh", '"')]
    quoted = answer(json.dumps({"message": 'say "häh"'}).encode())
    assert found(quoted, 'say "häh"') == [("response body", '{"message": "', 'say \\"h\\u00e4h\\"', '"}')]
    facts = Request((("Content-Type", "application/x-www-form-urlencoded"),), b"facts=%257B%2522a%2522%253A1")
    assert found(Exchange(Leg("a", "agent"), facts), '{"a"') == [("request body", "facts=", '{"a"', ":1")]


def test_handshakes_and_gaps_say_something_too() -> None:
    refused = Handshake(Leg("a", "agent"), 1.0, "certificate is revoked", culprits=("CN=x revoked",))
    assert [hit[0] for hit in found(refused, "revoked")] == ["TLS", "TLS"]
    assert found(Gap(1.0, "the disk is full"), "disk") == [("gap", "the ", "disk", " is full")]


def test_of_a_huge_body_only_what_is_near_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searched, "PIECE", 1000)
    text = ("x" * 2495 + "needle") * 8  # across the pieces, too
    got = found(answer(text.encode()), "needle")
    assert len(got) == searched.PLACES
    assert all(len(before) == len(behind) == searched.AROUND for _, before, _, behind in got[:-1])
    for shift in range(12):  # wherever a piece ends
        assert len(found(answer(b"y" * (990 + shift) + b"needle" + b"y" * 3000), "needle")) == 1


def test_folding_may_change_the_length() -> None:
    ((where, _, _, _),) = found(answer("Die Straße".encode()), "STRASSE")
    assert where == "response body"
