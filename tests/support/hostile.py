"""Records whose every text is hostile to a terminal, and what is harmless on one."""

from __future__ import annotations

import dataclasses
import unicodedata
from typing import TYPE_CHECKING

from inspector.model import Exchange, Gap, Handshake, Identity, Leg, Request, Response
from tests.support.conversations import START

if TYPE_CHECKING:
    from inspector.model import Record

HOSTILE = "\u200b\ufe0f\U000e0041\x1b[2J\x07\r\n\x9b31m\u202egnp\u2066\u200f\u061c\u2028\x7f\x00"


def harmless(text: str) -> bool:
    """No control character, no line or paragraph separator, nothing that turns text or is not seen."""
    turning = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    return all(
        unicodedata.category(char) not in ("Cc", "Cf", "Zl", "Zp", "Cs")
        and unicodedata.bidirectional(char) not in turning
        and char not in "\u200e\u200f\u061c\ufe0f"
        for char in text
    )


def hostile_records() -> list[Record]:
    leg = Leg(HOSTILE, "agent", HOSTILE, 1, sni=HOSTILE, cipher=HOSTILE, tls_version=HOSTILE, peer_chain=(b"x",),
              secured=START)  # fmt: skip
    headers = ((HOSTILE, HOSTILE), ("Content-Type", "application/json"), ("X-Puppet-Version", HOSTILE))
    body = b'{"message":"\\u001b[2J\\u202e\\u2028\\u200b\\ufe0f\\ud800","name":"\\u0007"}'
    exchange = Exchange(
        leg,
        Request(headers, b"transaction_uuid=%1B[2J%E2%80%AE", HOSTILE, START, START + 1, HOSTILE, f"/{HOSTILE}"),
        Response(headers, body, HOSTILE, START, START + 1, 500, HOSTILE),
        dataclasses.replace(leg, side="master"),
        Identity(HOSTILE, HOSTILE, HOSTILE),
        HOSTILE,
        (HOSTILE,),
        seq=1,
    )
    named = dataclasses.replace(
        exchange,
        request=dataclasses.replace(
            exchange.request, method="POST", target="/puppet/v3/catalog/%1B%5B2J%0A?environment=%1B"
        ),
        identity=Identity("keys", None, HOSTILE),
        seq=2,
    )
    silent = dataclasses.replace(named, response=None, seq=3)
    return [exchange, named, silent, Handshake(leg, START + 9, HOSTILE, HOSTILE, "agent", (HOSTILE,), 4),
            Gap(START, HOSTILE, 1, 5)]  # fmt: skip
