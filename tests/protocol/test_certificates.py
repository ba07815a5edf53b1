"""Serial numbers are printed as the CA lists them."""

from __future__ import annotations

import pytest

from inspector.protocol.certificates import printed_serial


@pytest.mark.parametrize(("number", "expected"), [(5, "0x0005"), (0x1F2A3, "0x1F2A3"), (0, "0x0000")])
def test_serials_are_as_the_ca_lists_them(number: int, expected: str) -> None:
    assert printed_serial(number) == expected
