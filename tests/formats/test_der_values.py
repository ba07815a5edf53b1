"""Values in DER."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inspector.formats import der_values
from inspector.formats.der_values import Changes, rewritten, value
from inspector.protocol.der import places

CHANGES = Changes(str.upper, lambda packed: packed[::-1], b"salt", {b"identifier": b"IDENTIFIER"})


def changed(der: bytes) -> bytes:
    (place,) = places(der, 0, len(der))
    return rewritten(der, place, CHANGES)


def test_texts_addresses_and_identifiers_are_replaced_at_any_depth() -> None:
    inner = value(0x0C, b"name") + value(0x87, b"\1\2\3\4") + value(0x02, b"\5") + value(0x04, b"identifier")
    made = changed(value(0x30, value(0x04, value(0x30, inner))))
    expected = value(0x0C, b"NAME") + value(0x87, b"\4\3\2\1") + value(0x02, b"\5") + value(0x04, b"IDENTIFIER")
    assert made == value(0x30, value(0x04, value(0x30, expected)))


def test_octets_that_are_neither_text_nor_number_become_a_digest() -> None:
    assert changed(value(0x04, b"plain text")) == value(0x04, b"PLAIN TEXT")
    assert changed(value(0x04, b"\xff\xfe")) == value(0x04, b"\xff\xfe")
    made = changed(value(0x04, b"\xff" * 20))
    assert (len(made), made == value(0x04, b"\xff" * 20)) == (22, False)
    other = rewritten(value(0x04, b"\xff" * 20), (0, 0x04, 2, 22), CHANGES._replace(salt=b"other"))
    assert other != made


def test_a_serial_number_with_the_tag_of_a_name_stays() -> None:
    assert changed(value(0x82, b"\x01\x02ab")) == value(0x82, b"\x01\x02ab")
    assert changed(value(0x82, b"host")) == value(0x82, b"HOST")


@given(st.binary(max_size=60))
def test_what_is_not_der_stays_or_is_read_to_its_end(data: bytes) -> None:
    for place in places(data, 0, len(data)):
        assert der_values.rewritten(data, place, CHANGES)
