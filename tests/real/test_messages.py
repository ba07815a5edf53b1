"""The real master takes the same bytes for the same messages as the engine does (`make soak` asks it for an hour)."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from inspector.proxy.engine import framing
from tests.support import message_fuzz

if TYPE_CHECKING:
    import pytest

    from inspector.proxy.engine.framing import Head
    from tests.real.puppet import RealMaster

SECONDS = 60.0


def test_we_and_the_master_take_the_same_bytes_for_the_same_messages(master: RealMaster) -> None:
    result = message_fuzz.compare((master.host, master.port), 0, SECONDS)
    assert result.differences == []
    assert 0.3 < result.accepted / result.tried < 0.7, "some are messages, and some only look like it"


def test_a_parser_that_knows_no_chunks_would_be_found(master: RealMaster, monkeypatch: pytest.MonkeyPatch) -> None:
    parse = framing.request

    def without_chunks(data: bytes) -> Head:
        return replace(parse(re.sub(rb"(?i)transfer-encoding", b"X-Coding", data)), fields=parse(data).fields)

    monkeypatch.setattr(framing, "request", without_chunks)
    assert message_fuzz.compare((master.host, master.port), 0, 1.0).differences
