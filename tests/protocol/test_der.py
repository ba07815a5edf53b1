"""The places of values in DER."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.formats.der_values import value
from inspector.protocol.der import places

if TYPE_CHECKING:
    import pytest


def test_a_value_is_read_as_it_was_written(subtests: pytest.Subtests) -> None:
    for size in [0, 1, 127, 128, 255, 256, 70_000]:
        with subtests.test(size=size):
            made = value(0x04, b"x" * size)
            assert [made[begin:end] for _, _, begin, end in places(made, 0, len(made))] == [b"x" * size]


def test_reading_stops_at_what_is_not_der() -> None:
    good = value(0x02, b"\1")
    for bad in (b"\x30\x80\0\0", b"\x04\x7f", b"\x04", b"\x04\x84\xff\xff\xff\xff"):
        assert [tag for _, tag, _, _ in places(good + bad, 0, len(good + bad))] == [0x02]
