"""What the time of waiting for a master was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.explain.master_log.measured import NOTHING, MasterTime, MasterTimes

SECONDS = st.floats(0, 1e6)
MAYBE = st.none() | SECONDS
TIMES = st.builds(MasterTime, MAYBE, MAYBE, MAYBE, st.booleans())


def parts(time: MasterTime, waited: float, receiving: float = 0.0) -> dict[str, float]:
    found: dict[str, float] = {}
    for kind, took in time.parts(waited, receiving):
        found[kind] = round(found.get(kind, 0.0) + took, 6)
    return found


@given(TIMES, SECONDS, SECONDS)
def test_parts_add_up_and_none_is_negative(time: MasterTime, waited: float, receiving: float) -> None:
    found = list(time.parts(waited, receiving))
    assert all(took > 0 for _, took in found)
    assert sum(took for _, took in found) == pytest.approx(waited)


@pytest.mark.parametrize(
    ("time", "waited", "receiving", "expected"),
    [
        # As measured on a real master: four agents, one JRuby.
        (MasterTime(4.223, 2.1, 2.06), 4.223, 0.0, {"queue": 2.123, "serve": 0.04, "compile": 2.06}),
        (MasterTime(0.1, 0.08), 0.12, 0.0, {"network": 0.02, "queue": 0.02, "serve": 0.08}),
        # A slow download is part of what the master measured, and no queue.
        (MasterTime(2.09, 0.046), 0.059, 2.04, {"network": 0.009, "queue": 0.004, "serve": 0.046}),
        # A slow upload holds a JRuby before the proxy waits for an answer.
        (MasterTime(2.06, 2.05), 0.06, 0.0, {"serve": 0.06}),
        # Without borrow-time.
        (MasterTime(3.0), 3.2, 0.1, {"network": 0.3, "waiting": 2.9}),
        (MasterTime(3.0, None, 2.0), 3.0, 0.0, {"waiting": 1.0, "compile": 2.0}),
        # Without an access log.
        (MasterTime(compiled=2.0), 3.0, 0.0, {"waiting": 1.0, "compile": 2.0}),
        (MasterTime(compiled=2000.0), 3.0, 0.0, {"compile": 3.0}),
        (MasterTime(refused=True), 8.02, 0.0, {"queue": 8.02}),
        # Turned away after a wait in vain.
        (MasterTime(8.02, 8.02, refused=True), 8.024, 0.0, {"network": 0.004, "queue": 8.02}),
    ],
)
def test_what_is_what(time: MasterTime, waited: float, receiving: float, expected: dict[str, float]) -> None:
    assert parts(time, waited, receiving) == pytest.approx(expected)


def test_what_is_not_known_of_a_record() -> None:
    assert NOTHING.get(1) is None
    assert MasterTimes({1: MasterTime(1.0)}).get(1) == MasterTime(1.0)
