"""The certificates of a page on one axis of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector import clocks
from inspector.report.validity import WIDTH, validity
from tests.support.pages import copied, sample

if TYPE_CHECKING:
    from inspector.report import validity as module


def axis_of(name: str, later: float = 0.0) -> module.ValidityAxis | None:
    from inspector.explain import bootstrap_reading

    with copied(sample(name)) as copy:
        found = bootstrap_reading.read(copy.source, lambda *_: True)
        at = (copy.source.latest() or 0.0) + later
        return validity([found.of(name, at) for name in found.names()], at)


def test_all_certificates_and_crls_are_on_the_axis_those_that_end_first_first() -> None:
    found = axis_of("first-run")
    assert found is not None
    assert sorted(bar.kind for bar in found.bars) == ["CA", "CA", "CRL", "CRL", "agent", "master"]
    assert [bar.ended for bar in found.bars] == sorted(bar.ended for bar in found.bars)
    assert {bar.state for bar in found.bars} == {"valid"}
    assert all(0 <= bar.x <= found.now <= bar.x + bar.width <= WIDTH + 3 for bar in found.bars)


def test_what_is_over_is_marked() -> None:
    found = axis_of("first-run", 6 * 365 * clocks.DAY)
    assert found is not None
    assert {bar.kind: bar.state for bar in found.bars if bar.state != "valid"} == {
        "agent": "expired",
        "master": "expired",
    }
    before = axis_of("first-run", -365 * clocks.DAY)
    assert before is not None
    assert {bar.state for bar in before.bars} == {"not yet valid"}


def test_without_certificates_there_is_no_axis() -> None:
    assert validity([], 0.0) is None
