"""Who is served, who waits and who is refused, at sockets of this process."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from inspector.proxy.limits import admission, agents, pool
from inspector.proxy.limits.admission import Admission
from inspector.proxy.limits.pool import Ticket
from inspector.proxy.limits.quota import Share

if TYPE_CHECKING:
    from collections.abc import Coroutine


class Door:
    """An admission with few places, and who comes to it."""

    def __init__(self, descriptors: int = 100_000) -> None:
        self.reports: list[str] = []
        self.closed: list[Ticket] = []
        self.admission = Admission(descriptors, self.reports.append)
        self._pairs = contextlib.ExitStack()

    def enter(self, host: str = "a", *, sends: bool = True) -> Ticket:
        """A connection comes, and sends something or not."""
        ours, theirs = (self._pairs.enter_context(end) for end in socket.socketpair())
        if sends:
            theirs.send(b"hello")
        ticket = self.admission.enter(f"{id(ours)}", host, ours.fileno(), lambda _: self.closed.append(ticket))
        self._pairs.callback(lambda: (ours, theirs))
        return ticket

    def identifier(self, ticket: Ticket) -> str:
        return next(name for name, other in Ticket.open.items() if other is ticket)

    def verify(self, ticket: Ticket, certname: str = "") -> None:
        self.admission.verify(self.identifier(ticket), certname)

    def end(self) -> None:
        self.admission.close()
        self._pairs.close()


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that few connections are enough."""
    for name, share in (("KNOWN", (4, 6)), ("STRANGERS", (2, 3)), ("WAITING", (3, 5)), ("EXCHANGES", (1, 2))):
        monkeypatch.setattr(admission, name, Share(*share))
    monkeypatch.setattr(admission, "NEEDED", 16)
    monkeypatch.setattr(admission, "BYTES", Share(100, 150))
    monkeypatch.setattr(admission, "SWEEP", 0.01)


def run(play: Coroutine[Any, Any, None]) -> None:
    asyncio.run(play)


def served(*tickets: Ticket) -> list[bool | None]:
    """Of each whether it is served; None: it waits."""
    return [ticket.admitted.result() if ticket.admitted.done() else None for ticket in tickets]


async def round_of_the_loop() -> None:
    for _ in range(3):
        await asyncio.sleep(0.001)


def test_as_many_are_served_as_there_are_places_and_the_newest_is_next() -> None:
    async def play() -> None:
        door = Door()
        first, second, third, fourth = (door.enter() for _ in range(4))
        assert served(first, second, third, fourth) == [True, True, None, None]
        await round_of_the_loop()
        door.admission.leave(first)
        assert served(third, fourth) == [None, True]
        door.verify(second)
        assert served(third) == [True]
        door.end()

    run(play())


def test_who_has_sent_nothing_waits_until_it_does() -> None:
    async def play() -> None:
        door = Door()
        first, _ = door.enter(), door.enter()
        third, fourth = door.enter(sends=False), door.enter()
        await round_of_the_loop()
        door.admission.leave(first)
        assert served(third, fourth) == [None, True]
        door.end()

    run(play())


def test_one_address_leaves_places_for_others() -> None:
    async def play() -> None:
        door = Door()
        tickets = [door.enter(host) for host in "aaabb"]
        assert served(*tickets) == [True, True, None, True, None]
        door.end()

    run(play())


def test_a_thousand_agents_behind_one_address_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()

    async def play() -> None:
        door = Door()
        waiting = [door.enter() for _ in range(1000)]
        for _ in range(1000):
            ticket = next(ticket for ticket in waiting if ticket.admitted.done())
            assert ticket.admitted.result()
            waiting.remove(ticket)
            door.verify(ticket)
            if waiting and not any(ticket.admitted.done() for ticket in waiting):
                await round_of_the_loop()
        assert not waiting
        door.end()
        assert door.reports == []

    run(play())


def test_a_verified_agent_has_no_limits_and_its_address_more_places() -> None:
    async def play() -> None:
        door = Door()
        agent = door.enter()
        door.verify(agent)
        assert agent.add(10**9)
        assert agent.begin()
        more = [door.enter() for _ in range(5)]
        strangers = [door.enter(host) for host in "bcde"]
        assert served(*more) == [True] * 4 + [None]
        assert served(*strangers) == [True] * 3 + [None], "they have their own places"
        door.admission.leave(agent)
        assert door.admission.agents.total == 0
        door.end()

    run(play())


def test_those_that_wait_profit_when_their_address_gets_known() -> None:
    async def play() -> None:
        door = Door()
        agent, _, third, fourth, fifth = (door.enter() for _ in range(5))
        await round_of_the_loop()
        door.verify(agent)
        assert served(third, fourth, fifth) == [True] * 3
        door.end()

    run(play())


def test_an_address_is_known_for_some_time_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "LATELY", 0.0)

    async def play() -> None:
        door = Door()
        door.verify(door.enter())
        tickets = [door.enter() for _ in range(3)]
        assert served(*tickets) == [True, True, None]
        door.end()

    run(play())


def test_known_addresses_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "ADDRESSES", 2)

    async def play() -> None:
        door = Door()
        for host in "abc":
            door.verify(door.enter(host))
        assert list(door.admission._addresses) == ["b", "c"]
        door.end()

    run(play())


def test_who_is_silent_loses_its_place_to_one_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "SILENT", 0.02)

    async def play() -> None:
        door = Door()
        silent, unread, third = door.enter(sends=False), door.enter(), door.enter("b")
        assert served(silent, unread, third) == [True] * 3
        await asyncio.sleep(0.03)
        newcomer = door.enter()
        await asyncio.sleep(0.03)
        assert set(door.closed) == {silent}, "what was sent is only not read yet; the other address has room"
        door.admission.leave(silent)
        assert served(newcomer) == [True]
        door.end()
        assert "it was silent while others waited" in door.reports[0]

    run(play())


def test_of_too_many_that_wait_the_one_that_sent_nothing_gives_way() -> None:
    async def play() -> None:
        door = Door()
        for _ in range(2):
            door.enter()
        idle = [door.enter(sends=False) for _ in range(3)]
        newcomer = door.enter()
        assert served(*idle, newcomer) == [False, None, None, None]
        await round_of_the_loop()
        for _ in range(2):
            door.enter()
        await round_of_the_loop()
        assert served(door.enter()) == [False], "all others have sent something"
        assert served(door.enter("b")) == [True], "another address has its own places"
        door.end()
        assert "1: too many waited" in door.reports[0]

    run(play())


def test_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "PATIENCE", 0.01)

    async def play() -> None:
        door = Door()
        tickets = [door.enter() for _ in range(3)]
        assert [await door.admission.wait(ticket) for ticket in tickets] == [True, True, False]
        assert door.admission.waiting.total == 0
        door.end()

    run(play())


def test_who_is_cancelled_while_it_waits_leaves_nothing_behind() -> None:
    async def play() -> None:
        door = Door()
        first, second, third, fourth = (door.enter() for _ in range(4))
        await round_of_the_loop()
        for ticket in (fourth, third, second, first):
            door.admission.leave(ticket)
        quotas = (door.admission.waiting, *door.admission._pools)
        assert [quota.total for quota in quotas] == [0, 0, 0]
        door.end()

    run(play())


def test_requests_under_way_are_limited_and_given_back() -> None:
    async def play() -> None:
        door = Door()
        first, second, other = door.enter("a"), door.enter("a"), door.enter("b")
        assert [first.add(60), second.add(60), other.add(60), first.add(40)] == [True, False, True, False]
        assert [first.begin(), first.begin(), second.begin(), other.begin()] == [True, True, False, True]
        first.end()
        assert second.begin()
        door.admission.leave(second)
        door.verify(other)
        assert (door.admission.sizes.total, door.admission.exchanges.total) == (0, 0)
        door.end()

    run(play())


def test_with_few_descriptors_verified_agents_have_half_of_them() -> None:
    async def play() -> None:
        door = Door(admission.SPARE + 16)
        assert door.admission.scale == 0.5
        for number in range(4):
            door.verify(door.enter(f"agent{number}"))
        strangers = served(*[door.enter(host) for host in "xyzxyzxyz"])
        assert (strangers.count(True), strangers.count(None)) == (2, 2)
        agent = door.enter("agent0")
        door.verify(agent)
        tickets = [door.enter("agent1") for _ in range(3)]
        assert served(agent, *tickets) == [True, True, True, False]
        door.end()
        assert "ulimit" in door.reports[0]

    run(play())


def test_one_agent_takes_no_other_its_descriptors() -> None:
    """However many connections it holds, and whether they ask for something or not."""

    async def play() -> None:
        door = Door(admission.SPARE + 160)
        bad = []
        for number in range(200):
            ticket = door.enter("a")
            if not ticket.admitted.done() or not ticket.admitted.result():
                break
            door.verify(ticket, "bad.example")
            bad.append(ticket)
            if number % 2:
                ticket.begin()
            await asyncio.sleep(0)
        assert len(bad) == 200
        assert door.admission.agents.total == 70, "an eighth is for whoever comes"
        good = []
        for number in range(40):
            ticket = door.enter("b" if number % 2 else "a")
            assert served(ticket) == [True]
            door.verify(ticket, f"good{number}.example")
            ticket.begin()
            good.append(ticket)
            await asyncio.sleep(0)
        assert set(door.closed) < set(bad)
        for ticket in (*bad, *good):
            door.admission.leave(ticket)
        assert door.admission.agents.total == 0
        door.end()
        assert door.reports[-1].startswith("closed, as others needed the room: ")
        assert door.reports[-1].endswith(" of bad.example")

    run(play())


def test_one_agent_has_its_share_of_idle_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "SHARE", 5)

    async def play() -> None:
        door = Door()
        good = door.enter("b")
        door.verify(good, "good.example")
        bad = []
        for _ in range(8):
            bad.append(door.enter("b"))
            door.verify(bad[-1], "bad.example")
            bad[-1].begin()
            bad[-1].end()
            await round_of_the_loop()
        assert door.closed == bad[:3]
        assert door.admission.agents.total == 1 + 5
        door.end()
        assert door.reports == [
            "closed, as others needed the room: 3: a certname had too many that were idle; 3 of bad.example"
        ]

    run(play())


def test_if_nobody_has_too_many_the_newcomer_is_one_too_many() -> None:
    async def play() -> None:
        door = Door(admission.SPARE + 16)
        agents = []
        for number in range(8):
            agents.append(door.enter("ab"[number % 2]))
            door.verify(agents[-1], f"agent{number}")
        await asyncio.sleep(0)
        assert door.closed == agents[-1:]
        door.end()

    run(play())


def test_several_workers_share_what_they_have_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    one, four = Admission(65536, print), Admission(65536, print, workers=4)
    assert four.exchanges.share.total == one.exchanges.share.total // 4
    assert four.sizes.share.total == one.sizes.share.total // 4
    assert four.bytes.share.total == one.bytes.share.total // 4
    assert four.agents.limit == one.agents.limit // 4
    assert all(4 * part.share.total <= pool.share.total for part, pool in zip(four._pools, one._pools, strict=True))


def test_where_many_have_a_place_silence_gets_none() -> None:
    """Else those who send nothing kept an agent of the same address waiting until they have been silent for long."""

    async def play() -> None:
        door = Door()
        silent = [door.enter(sends=False) for _ in range(2)]
        assert served(*silent) == [True, True], "of two places"
        others = [door.enter("b", sends=False), door.enter("b")]
        assert served(*others) == [None, True], "more than half of all places are taken"
        door.end()

    run(play())


def test_who_was_read_already_is_not_silent() -> None:
    """A balancer's header may come with the first bytes of the agent."""

    async def play() -> None:
        door = Door()
        first, second = door.enter(), door.enter()
        near, far = socket.socketpair()
        with near, far:
            third = door.admission.enter("third", "a", near.fileno(), print, sent=True)
            assert served(first, second, third) == [True, True, None]
            door.admission.leave(second)
            assert served(third) == [True]
            door.admission.leave(third)
        door.end()

    run(play())


def test_when_the_proxy_ends_nobody_waits_any_longer() -> None:
    async def play() -> None:
        door = Door()
        tickets = [door.enter(sends=number % 2 == 0) for number in range(4)]
        await round_of_the_loop()
        door.end()
        assert served(*tickets) == [True, True, False, False]

    run(play())


def test_memory_is_given_back_once_after_a_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    trimmed: list[str] = []
    monkeypatch.setattr(admission, "TRIM_DELAY", 0.0)
    monkeypatch.setattr(admission, "trim", lambda: trimmed.append("trimmed"))

    async def play(*numbers: int) -> None:
        peaks = admission.Peaks()
        for number in numbers:
            peaks.count(number)
        await asyncio.sleep(0.02)

    asyncio.run(play(1, 2, 1, 0))
    assert trimmed == [], "some connections are no flood"
    asyncio.run(play(1, admission.FLOOD, admission.FLOOD // 2))
    assert trimmed == [], "it goes on"
    asyncio.run(play(1, admission.FLOOD, admission.FLOOD // 4, 3, 2, 1, 0))
    assert trimmed == ["trimmed"]


def test_connections_of_agents_are_such_a_flood_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> None:
        door = Door()
        counted: list[int] = []
        monkeypatch.setattr(door.admission._peaks, "count", counted.append)
        tickets = [door.enter() for _ in range(2)]
        for ticket in tickets:
            door.verify(ticket)
        for ticket in tickets:
            door.admission.leave(ticket)
        door.end()
        assert counted == [0, 1, 1, 0]

    run(play())


def test_the_c_library_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def malloc_trim(pad: int) -> int:
        calls.append(pad)
        return 1

    monkeypatch.setattr("ctypes.CDLL", lambda _: SimpleNamespace(malloc_trim=malloc_trim))
    assert admission.trim()
    assert calls == [0]
    monkeypatch.setattr("ctypes.CDLL", lambda _: SimpleNamespace())
    assert not admission.trim()


def test_more_wait_than_are_accepted_at_a_time() -> None:
    async def play() -> int:
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0, backlog=1)
        admission.lengthen([server])
        address = server.sockets[0].getsockname()
        callers = [socket.socket() for _ in range(50)]
        for caller in callers:  # nobody accepts them meanwhile: the event loop is busy here
            caller.settimeout(0.5)
            caller.connect(address)
        for caller in callers:
            caller.close()
        server.close()
        return len(callers)

    assert asyncio.run(play()) == 50
