"""Which agents are recorded."""

from __future__ import annotations

from inspector import regex
from inspector.proxy.recording_filter import ADDRESSES, WAITING, RecordingFilter


def test_only_the_agents_that_were_asked_for_are_kept() -> None:
    retained: list[str] = []
    chosen = RecordingFilter(regex.compile(r"web.*\.example"))
    chosen.admit("a", "192.0.2.1", "web1.example", lambda: retained.append("a1"))
    chosen.admit("b", "192.0.2.2", "db1.example", lambda: retained.append("b1"))
    chosen.admit("a", "192.0.2.1", None, lambda: retained.append("a2"))
    chosen.admit("b", "192.0.2.2", None, lambda: retained.append("b2"))
    assert retained == ["a1", "a2"]
    assert chosen.close("a")
    assert not chosen.close("b")


def test_what_says_no_name_waits_for_one_from_its_address() -> None:
    retained: list[int] = []
    chosen = RecordingFilter(regex.compile("new"))
    for number in range(WAITING + 5):
        chosen.admit("a", "192.0.2.1", None, lambda number=number: retained.append(number))  # type: ignore[misc]
    chosen.admit("b", "192.0.2.2", None, lambda: retained.append(-1))
    assert retained == []
    assert not chosen.recorded("a")
    chosen.admit("c", "192.0.2.1", "new", lambda: retained.append(99))
    chosen.admit("b", "192.0.2.2", "other", lambda: retained.append(-2))
    assert retained == [*range(5, WAITING + 5), 99]
    assert chosen.recorded("a")


def test_what_waits_is_bounded() -> None:
    retained: list[int] = []
    chosen = RecordingFilter(regex.compile("new"))
    for number in range(ADDRESSES + 1):
        chosen.admit(str(number), str(number), None, lambda number=number: retained.append(number))  # type: ignore[misc]
    for number in (0, 1):
        chosen.admit("x", str(number), "new", lambda: None)
    assert retained == [1]


def test_without_a_choice_everything_is_kept_at_once() -> None:
    retained: list[int] = []
    chosen = RecordingFilter(None)
    assert chosen.records_all
    chosen.admit("a", "192.0.2.1", None, lambda: retained.append(1))
    assert retained == [1]
    assert chosen.close("a")
