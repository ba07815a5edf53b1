"""What slows an answer down."""

from __future__ import annotations

import asyncio

import pytest

from inspector.proxy.faults.pace import BEAT, Pace


@pytest.mark.parametrize("rate", [1, 7, 15, 1000, 10_000_000])
def test_so_many_bytes_pass_in_a_second(rate: int) -> None:
    pace = Pace(rate)
    assert pace._size / pace._delay == pytest.approx(rate)
    assert pace._delay >= BEAT * 0.66


def test_it_passes_on_piece_by_piece() -> None:
    pace = Pace(20)
    assert not pace.pending
    assert pace.add(b"abc")
    assert not pace.add(b"de"), "somebody is at it already"
    assert [pace.piece(), pace.piece()] == [b"ab", b"cd"]
    assert pace.pending
    pace.clear()
    assert not pace.pending
    assert not pace.add(b"")


def test_the_next_piece_is_due_later() -> None:
    async def main() -> list[str]:
        done: list[str] = []
        Pace(1000).later(lambda: done.append("piece"))
        assert done == []
        await asyncio.sleep(BEAT * 3)
        return done

    assert asyncio.run(main()) == ["piece"]
