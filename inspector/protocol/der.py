"""The places of values in DER."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

type DerValue = tuple[int, int, int, int]
"""A value in DER: its start, its tag, the start and the end of its contents."""

_ENDLESS = 0x80


def places(data: bytes, begin: int, end: int) -> list[DerValue]:
    """Return the values of a sequence, up to the first that is not DER."""
    return [*each_place(data, begin, end)]


def each_place(data: bytes, begin: int, end: int) -> Iterator[DerValue]:
    """Yield what ``places`` returns."""
    while begin + 2 <= end:
        tag, size, at = data[begin], data[begin + 1], begin + 2
        if size == _ENDLESS:
            return
        if size > _ENDLESS:
            at, size = at + size - _ENDLESS, int.from_bytes(data[at : at + size - _ENDLESS])
        if at + size > end:
            return
        yield begin, tag, at, at + size
        begin = at + size
