"""What is assumed: as it is written, and which certificates it means."""

from __future__ import annotations

import pytest

from inspector.errors import InspectorError
from inspector.fleet.trust.scenario import SCENARIOS, Assumptions, assumptions, scenarios, serial_of
from inspector.protocol.certificates import printed_serial
from inspector.text import utc
from tests.support.trust import NOW, certificate, inventory

ROOT, OTHER = certificate("root", serial=0x10), certificate("other root", serial=0xAB)
WEB, DB = (certificate(name, ROOT, serial=serial, roles=("agent",)) for name, serial in (("web", 5), ("db", 0x20)))
FOUND = inventory([ROOT, OTHER, WEB, DB], [])


def test_serial_numbers(subtests: pytest.Subtests) -> None:
    for written, number in [
        ("0x0004", 4),
        ("4", 4),
        ("10", 10),
        ("0x10", 16),
        ("00:0a", 10),
        ("0A:FF", 0xAFF),
        ("1f", 31),
        (" 7 ", 7),
    ]:
        with subtests.test(written=written):
            assert serial_of(written) == number
            assert serial_of(printed_serial(number)) == number


def test_what_is_none(subtests: pytest.Subtests) -> None:
    for written in ["", "x", "0x", "-4", "4.5", "a:b:", "4 5", "1g", "٤", "9" * 500, "\x1b[2J"]:
        with subtests.test(written=written):
            with pytest.raises(InspectorError, match="is not a serial number") as raised:
                serial_of(written)
            assert raised.value.message.isprintable()
            assert len(raised.value.message) < 200


def test_today_is_now() -> None:
    assert assumptions([f"date={utc(NOW)[:10]}"], NOW).at == NOW


def test_several_together() -> None:
    asked = assumptions(["revoke=4", "date=2030-01-02", "crl=none", "revoke=0x5"], NOW)
    assert asked == Assumptions(1_893_542_400.0, dated=True, serials=(4, 5), without_crls=True)


def test_mistakes(subtests: pytest.Subtests) -> None:
    for term, message in [
        ("revoke", "is not a serial number"),
        ("date=soon", "'soon' is not a date"),
        ("date=2030-13-01", "is not a date"),
        ("date=", "is not a date"),
        ("date=2020-01-01", "2020-01-01 is in the past"),
        ("crl=some", "Cannot suppose 'crl=some'"),
        ("key=4", "Cannot suppose 'key=4'"),
        ("", "Cannot suppose ''"),
    ]:
        with subtests.test(term=term):
            with pytest.raises(InspectorError, match=message):
                assumptions([term], NOW)
            with pytest.raises(InspectorError, match="two dates"):
                assumptions(["date=2030-01-01", "date=2031-01-01"], NOW)


def test_a_serial_number_that_several_cas_gave_is_a_scenario_for_each() -> None:
    twin = certificate("elsewhere", OTHER, serial=5, roles=("agent",))
    found = inventory([*FOUND.certificates.values(), twin], [])
    assert {one.revoked for one in scenarios(Assumptions(NOW, serials=(5, 5)), found)} == {(WEB,), (twin,)}
    assert {one.revoked for one in scenarios(Assumptions(NOW, serials=(5, 0x20)), found)} == {(WEB, DB), (twin, DB)}
    many = [certificate(f"n{number}", certificate(f"ca{number}"), serial=5) for number in range(SCENARIOS + 1)]
    with pytest.raises(InspectorError, match="too many"):
        scenarios(Assumptions(NOW, serials=(5,)), inventory(many, []))


def test_one_that_is_not_there_names_those_that_are_near() -> None:
    with pytest.raises(InspectorError, match="0x0006 was recorded") as raised:
        scenarios(Assumptions(NOW, serials=(6,)), FOUND)
    assert (raised.value.hint or "").startswith("Near: 0x0005 (CN=web), 0x0010 (CN=root), ")
    # OpenSSL prints 20 for 0x20.
    with pytest.raises(InspectorError) as raised:
        scenarios(Assumptions(NOW, serials=(20,)), FOUND)
    assert (raised.value.hint or "").startswith("Near: 0x0020 (CN=db), ")


def test_without_certificates() -> None:
    with pytest.raises(InspectorError, match="no certificate"):
        scenarios(Assumptions(NOW, serials=(5,)), inventory([], []))
