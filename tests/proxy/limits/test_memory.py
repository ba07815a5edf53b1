"""Memory after a flood."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING

from inspector.proxy.limits import memory

if TYPE_CHECKING:
    import pytest


def test_memory_is_given_back_once_after_a_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    trimmed: list[str] = []
    monkeypatch.setattr(memory, "DELAY", 0.0)
    monkeypatch.setattr(memory, "trim", lambda: trimmed.append("trimmed"))

    async def play(*numbers: int) -> None:
        peaks = memory.Peaks()
        for number in numbers:
            peaks.count(number)
        await asyncio.sleep(0.02)

    asyncio.run(play(1, 2, 1, 0))
    assert trimmed == [], "some connections are no flood"
    asyncio.run(play(1, memory.FLOOD, memory.FLOOD // 2))
    assert trimmed == [], "it goes on"
    asyncio.run(play(1, memory.FLOOD, memory.FLOOD // 4, 3, 2, 1, 0))
    assert trimmed == ["trimmed"]


def test_the_c_library_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def malloc_trim(pad: int) -> int:
        calls.append(pad)
        return 1

    monkeypatch.setattr("ctypes.CDLL", lambda _: SimpleNamespace(malloc_trim=malloc_trim))
    assert memory.trim()
    assert calls == [0]
    monkeypatch.setattr("ctypes.CDLL", lambda _: SimpleNamespace())
    assert not memory.trim()
