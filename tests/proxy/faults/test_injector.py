"""Whom a fault is injected for, how often, and what is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector import regex
from inspector.proxy.faults import fault, injector
from inspector.proxy.faults.injector import Injector

if TYPE_CHECKING:
    from inspector.proxy.faults.injection import Injection

WEB1 = "web1.example"
CATALOG = f"/puppet/v3/catalog/{WEB1}?environment=production"
HEADERS = ((b"X-Puppet-Version", b"7.23.0"),)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Scene:
    def __init__(self, *lines: str, only: str | None = None) -> None:
        self.lines: list[str] = []
        self.clock = Clock()
        pattern = regex.compile(only) if only else None
        self.injector = Injector([fault.parse(line) for line in lines], pattern, self.lines.append, self.clock)

    def ask(
        self, certname: str = WEB1, address: str = "192.0.2.7", method: str = "POST", target: str = CATALOG
    ) -> Injection | None:
        return self.injector.on_request(address, certname, method, target, HEADERS)


@pytest.mark.parametrize(
    ("terms", "chosen"),
    [
        (f"agent:{WEB1}", True),
        ("agent:web*", True),
        ("agent:192.0.2.7", True),
        ("agent:web2.example", False),
        (f"agent:{WEB1} phase:catalog endpoint:catalog method:post path:/catalog/ env:production version:7.23", True),
        (f"agent:{WEB1} version:8", False),
        (f"agent:{WEB1} -phase:catalog", False),
        (f"agent:{WEB1} env:test", False),
    ],
)
def test_what_a_fault_is_for(terms: str, chosen: bool) -> None:
    assert (Scene(f"500 {terms}").ask() is not None) is chosen


def test_a_name_that_is_only_claimed_does_not_count() -> None:
    """In the URL, without a certificate."""
    scene = Scene(f"500 agent:{WEB1}")
    assert scene.ask(certname="") is None
    assert scene.ask(certname="web2.example") is None
    assert scene.lines == []


def test_requests_are_counted_for_each_agent() -> None:
    scene = Scene("500 agent:web* nth:2")
    assert [scene.ask(name) is not None for name in (WEB1, "web2.example", WEB1, WEB1, "web2.example")] == [
        False, False, True, False, True,
    ]  # fmt: skip


def test_others_do_not_count() -> None:
    scene = Scene(f"500 agent:{WEB1} phase:catalog nth:2")
    scene.ask()
    for certname, method, target in (("", "POST", CATALOG), ("evil", "POST", CATALOG), (WEB1, "GET", "/status")):
        scene.ask(certname, method=method, target=target)
    assert scene.ask() is not None


def test_no_more_agents_are_counted_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(injector, "AGENTS", 3)
    scene = Scene("500 agent:web* nth:2")
    for number in range(100):
        scene.ask(f"web{number}")
    assert {len(counts) for counts in scene.injector._counts.values()} == {3}


def test_it_ends() -> None:
    scene = Scene(f"500 agent:{WEB1} for:10m")
    scene.clock.now += 600
    assert scene.ask()
    scene.clock.now += 1
    assert scene.ask() is None


def test_the_first_fault_that_fits_happens() -> None:
    scene = Scene("empty-catalog agent:web1*", "503=1 agent:web*", "500 agent:web*")
    first, second = scene.ask(), scene.ask(target="/puppet/v3/node/web1.example", method="GET")
    assert first
    assert second
    assert (first.note, second.note) == ("answered with an empty catalog", "answered 503 with Retry-After: 1")


def test_agents_that_are_not_recorded_are_left_alone() -> None:
    scene = Scene("500", only=WEB1)
    assert scene.ask()
    assert scene.ask("web2.example") is None
    assert scene.ask("") is None
    assert Scene("500 agent:192.0.2.7", only=WEB1).ask("") is not None
    assert Scene("500 agent:192.0.2.7", only=WEB1).ask("web2.example") is None


def test_handshakes() -> None:
    scene = Scene("refuse agent:192.0.2.7 nth:1", f"500 agent:{WEB1}")
    assert scene.injector.on_handshake("192.0.2.8") is None
    refused = scene.injector.on_handshake("192.0.2.7")
    assert refused
    assert refused.action.refuse
    assert scene.injector.on_handshake("192.0.2.7") is None
    assert scene.lines == ["-- fault: handshake refused: a connection from 192.0.2.7"]


def test_what_is_printed_is_harmless() -> None:
    scene = Scene("500 agent:192.0.2.7")
    scene.ask("", target="/a\x1b[2J" + "b" * 9999 + "?secret=1")
    (line,) = scene.lines
    assert "\x1b" not in line
    assert "secret" not in line
    assert len(line) < 400
    assert line.startswith("-- fault: answered 500: POST /a")


def test_without_faults_nothing_is_looked_at() -> None:
    scene = Scene()
    assert not scene.injector.waits
    assert scene.ask() is None
    assert scene.injector.on_handshake("192.0.2.7") is None
