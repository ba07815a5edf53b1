"""Headers and bodies of a page: each body once."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from inspector.model import Exchange, Handshake, Leg, Request, Response
from inspector.report import messages as module
from inspector.report.messages import MessageBlocks

if TYPE_CHECKING:
    import pytest

    from inspector.report.packing import Block

LEG = Leg("a", "agent")
HEADERS = (("Content-Type", "text/plain"), ("X", "\x1b[2J"))


def exchange(seq: int, body: bytes, **changed: Any) -> Exchange:
    response = dataclasses.replace(Response(HEADERS, body, status=200), **changed)
    return Exchange(LEG, Request(HEADERS, b"", target="/a"), response, seq=seq)


def unpacked(blocks: MessageBlocks) -> dict[str, Any]:
    found: list[Block] = list(blocks.blocks())
    return {block.name: block.unpacked() for block in found}


def test_equal_bodies_and_headers_are_there_once() -> None:
    made = MessageBlocks()
    for seq, body in enumerate((b"same", b"other", b"same"), 1):
        made.add(exchange(seq, body))
    found = unpacked(made)
    assert found["bodies-0"] == ["same", "other"]
    assert found["records-0"]["headers"] == [[["Content-Type", "text/plain"], ["X", "\\x1b[2J"]]]
    assert {seq: record[1][1] for seq, record in found["records-0"]["records"].items()} == {"1": 0, "2": 1, "3": 0}
    assert found["messages"] == {"bodies": [0], "records": [1]}


def test_bytes_that_are_no_text_are_base64_and_a_cut_body_says_so() -> None:
    made = MessageBlocks()
    made.add(exchange(1, b"\xff\x00", lost=7))
    found = unpacked(made)
    assert found["bodies-0"] == [{"base64": "/wA="}]
    assert found["records-0"]["records"]["1"][1][2:] == [9, 7]


def test_many_records_and_bodies_are_in_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECORDS", 2)
    monkeypatch.setattr(module, "BODIES", 10)
    made = MessageBlocks()
    for seq in range(1, 6):
        made.add(exchange(seq, f"body number {seq}".encode()))
    found = unpacked(made)
    assert found["messages"] == {"bodies": [0, 1, 2, 3, 4], "records": [1, 3, 5]}
    assert found["bodies-4"] == ["body number 5"]
    assert list(found["records-1"]["records"]) == ["3", "4"]


def test_a_failed_handshake_has_what_was_wrong() -> None:
    made = MessageBlocks()
    made.add(Handshake(LEG, 1.0, "refused", culprits=("expired \x07",), seq=4))
    assert unpacked(made)["records-0"]["records"] == {"4": [None, None, ["expired \\x07"]]}
