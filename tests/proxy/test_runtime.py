"""What every running proxy has: our own mistakes stop nobody, and are reported."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from inspector.capture.spool import KEEP
from inspector.capture.store import Capture
from inspector.model import Exchange, Gap, Handshake, Leg
from inspector.proxy import identity, runtime
from inspector.proxy.faults import fault
from inspector.proxy.recorder import NEVER
from inspector.proxy.runtime import Runtime, guarded
from inspector.proxy.telemetry.settings import NOTHING
from tests.support.records import FULL

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inspector.model import Record


class Site:
    """A running proxy without a network."""

    def __init__(self, capture: Path, **settings: Any) -> None:
        self.capture = capture
        self.lines: list[str] = []
        values: Any = SimpleNamespace(
            **{
                "capture": capture, "rules": None, "rotation": NEVER, "redact": False, "probe": "", "only": None,
                "keep_body": KEEP, "faults": (), "telemetry": NOTHING, "wire": False, "tables": None,
                "identity_source": identity.NoIdentity(), "plan": None, "connect": None, "place": "here",
                "interposes": False, "stands_in": False, **settings,
            }
        )  # fmt: skip
        self.runtime = Runtime(values, self.lines.append, analyzes=False)

    def records(self) -> list[Record]:
        self.runtime.recorder.finish()
        with Capture.open(self.capture) as capture:
            return list(capture.records())


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path / "c.sqlite")
    yield made
    if made.runtime.recorder.is_alive():
        made.runtime.recorder.finish()


class Part:
    """Something of a running proxy."""

    def __init__(self, site: Site) -> None:
        self.internal_error = site.runtime.internal_error

    @guarded
    def fail(self, why: str) -> None:
        """Fail."""
        raise RuntimeError(why)


def test_a_mistake_of_ours_is_a_gap_each_time_and_a_line_once(site: Site) -> None:
    part = Part(site)
    for _ in range(3):
        part.fail("oh")
    assert [record.reason for record in site.records() if isinstance(record, Gap)] == [
        "puppet-inspector failed in fail: RuntimeError('oh')"
    ] * 3
    assert [line for line in site.lines if "internal error" in line] == [
        "-- internal error in fail: RuntimeError('oh') (please report it)"
    ]


def test_lines_about_mistakes_are_limited(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "WARNINGS", 2)
    for number in range(5):
        site.runtime.internal_error("x", RuntimeError(number))
    assert sum("internal error" in line for line in site.lines) == 2
    assert len(site.records()) == 5


def test_an_exchange_is_recorded(site: Site) -> None:
    site.runtime.record(FULL, None)
    (record,) = site.records()
    assert isinstance(record, Exchange)
    assert record.request == FULL.request


def test_only_agents_of_the_wanted_names_are_recorded(tmp_path: Path) -> None:
    from inspector import regex

    site = Site(tmp_path / "c.sqlite", only=regex.compile("other"))
    site.runtime.record(FULL, None)
    state: Any = SimpleNamespace(claimed_name="web1")
    handshake = Handshake(Leg("a", "agent"), 1.0, "no")
    site.runtime.record_refused_agent(state, handshake)
    site.runtime.record_refused_master(SimpleNamespace(agent=state), handshake)  # type: ignore[arg-type]
    state.claimed_name = "other"
    site.runtime.record_refused_agent(state, handshake)
    assert [type(record) for record in site.records()] == [Handshake]


def test_a_mistake_of_ours_with_faults_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a request nor a connection that was not chosen."""
    lines = ("500 agent:web1.example", "refuse agent:192.0.2.7")
    site = Site(tmp_path / "c.sqlite", faults=tuple(map(fault.parse, lines)))

    def wrong(*_: object) -> bool:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(fault.Fault, "wants", wrong)
    monkeypatch.setattr(fault.Fault, "over", lambda *_: False)
    assert site.runtime.fault_for(None, "192.0.2.9", b"GET", b"/puppet/v3/node/a", ()) is None
    assert site.runtime._fault_in_handshake("192.0.2.9") is None
    reasons = [record.reason for record in site.records() if isinstance(record, Gap)]
    assert [reason.partition(":")[0] for reason in reasons] == [
        "puppet-inspector failed in fault_for", "puppet-inspector failed in fault_in_handshake",
    ]  # fmt: skip


def test_what_comes_over_a_connection_with_a_fault_is_marked(tmp_path: Path) -> None:
    site = Site(tmp_path / "c.sqlite")
    marked: Any = SimpleNamespace(injected="presented another certificate (a)", claimed_name=None)
    site.runtime.record(FULL, marked)
    site.runtime.record(dataclasses.replace(FULL, injected="answered 500"), marked)
    site.runtime.record(FULL, SimpleNamespace(injected="", claimed_name=None))  # type: ignore[arg-type]
    found = [record.injected for record in site.records() if isinstance(record, Exchange)]
    assert found == ["presented another certificate (a)", "answered 500", ""]
