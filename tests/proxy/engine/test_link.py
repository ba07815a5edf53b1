"""A link without a network: what it reads when, and when it gives an agent up."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from inspector.capture.spool import KEEP
from inspector.model import Identity, Leg
from inspector.proxy.bodies import Copies
from inspector.proxy.connect.acceptance import Examination
from inspector.proxy.connect.interception import Decision, Way
from inspector.proxy.connection_state import AGENT_LEFT
from inspector.proxy.engine import link as module
from inspector.proxy.engine.ends import STUCK
from inspector.proxy.engine.link import DELIVERY, HALF_CLOSED, MASTER_LEFT, Link
from inspector.proxy.engine.sides import AgentEnd, MasterEnd
from inspector.proxy.faults import actions
from inspector.proxy.faults.injection import Injection
from inspector.proxy.identity import NoIdentity
from inspector.proxy.limits import BODY_TIME, CHUNKS, FULL, HANDSHAKE, HEAD_TIME, IDLE
from inspector.proxy.limits.admission import Admission
from inspector.proxy.limits.agents import RESTING
from inspector.proxy.limits.waiting_bytes import CONNECTION
from inspector.proxy.tls import TlsState
from tests.support.ends import Tls, Transport

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inspector.model import Exchange

GET = b"GET /a HTTP/1.1\r\nHost: n\r\n\r\n"
PUT = b"PUT /a HTTP/1.1\r\nHost: n\r\nContent-Length: %d\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class Runtime:
    """What a link uses of a running proxy."""

    def __init__(self, folder: Path) -> None:
        self.records: list[Exchange] = []
        self.bugs: list[str] = []
        self.silent: list[str] = []
        self.gaps: list[str] = []
        self.parting = False
        self.stands_in = False
        self.direct: list[tuple[str, str]] = []
        """Whose next connections are to be direct, and why."""
        self.injection: Injection | None = None
        self.settings = SimpleNamespace(
            identity_source=NoIdentity(),
            balanced=lambda _: False,
            master_for=lambda _: (("192.0.2.2", 8140), "m"),
            authority_for=lambda *_: None,
        )
        self.admission = Admission(4096, self.bugs.append)
        self.copies = Copies(folder, KEEP)
        self.wire = None
        self.interception: Any = None
        self.recorder = SimpleNamespace(put=self.records.append)

    def meet_master(self, *_: object) -> tuple[Tls, Any]:
        state = SimpleNamespace(
            answered=False, tls_state=TlsState(), sni=None, late_refusal=lambda leg: None,
            leg=lambda facts: Leg(id="m", side="master"),
        )  # fmt: skip
        return Tls(), state

    def fault_for(self, *_: object) -> Injection | None:
        return self.injection

    def record(self, exchange: Exchange, *_: object) -> None:
        self.records.append(exchange)

    def yields(self, _: str) -> bool:
        return self.stands_in

    def pass_by(self, address: str, reason: str) -> None:
        self.direct.append((address, reason))

    def agent_silent(self, connection: str) -> None:
        self.silent.append(connection)

    def gap(self, reason: str) -> None:
        self.gaps.append(reason)

    def record_refused_master(self, *_: object) -> None:
        pass

    def internal_error(self, where: str, error: BaseException) -> None:
        self.bugs.append(f"{where}: {error!r}")


class Site:
    """A link whose agent has no verified certificate."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.links: set[Link] = set()
        self.link = Link(runtime, self.links)  # type: ignore[arg-type]
        self.agent = self.link.agent
        self.wire = Transport()
        self.agent.connection_made(self.wire)  # type: ignore[arg-type]

    def secure(self) -> None:
        self.agent.tls, self.agent.secured = Tls(), 1.0  # type: ignore[assignment]
        self.link.agent_secured()

    @property
    def errors(self) -> list[str | None]:
        assert not self.runtime.bugs
        return [record.error for record in self.runtime.records]

    def master(self) -> tuple[MasterEnd, Transport]:
        """The connection to the master, which is made now."""
        master = self.link._master
        assert master
        wire = Transport()
        master.connection_made(wire)  # type: ignore[arg-type]
        return master, wire


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


@pytest.fixture
def site(
    tmp_path: Path, loop: asyncio.AbstractEventLoop, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Site]:
    monkeypatch.setattr(MasterEnd, "open", lambda *_: None)
    asyncio.events._set_running_loop(loop)
    yield Site(Runtime(tmp_path))
    asyncio.events._set_running_loop(None)


# -- deadlines --------------------------------------------------------------------------------------------


def given_up(site: Site, clock: list[float], after: float) -> bool:
    """Whether the link ends when the clock has passed these seconds from now, and not before."""
    began = clock[0]
    clock[0] = began + after - 1
    site.link.check(clock[0])
    early = bool(site.wire.ended)
    clock[0] = began + after + 1
    site.link.check(clock[0])
    return not early and site.wire.ended == "aborted"


def test_a_handshake_has_a_deadline(site: Site, clock: list[float]) -> None:
    assert given_up(site, clock, HANDSHAKE)


def test_an_idle_connection_has_none_as_long_as_the_master_keeps_it(site: Site, clock: list[float]) -> None:
    site.secure()
    site.link.agent_sent(GET)
    master, _ = site.master()
    site.link.master_sent(master, OK)
    site.wire.size = 0
    clock[0] += 86_400
    site.link.check(clock[0])
    assert not site.agent.closed
    site.link.master_ended(master, None)
    site.link.check(clock[0])
    assert site.agent.closed


def test_it_ends_after_the_masters_but_not_while_the_agent_may_ask_again(site: Site, clock: list[float]) -> None:
    """The master may restart in the middle of a run."""
    site.secure()
    site.link.agent_sent(GET)
    master, _ = site.master()
    site.link.master_sent(master, OK)
    site.wire.size = 0
    site.link.master_ended(master, None)
    clock[0] += RESTING - 1
    site.link.check(clock[0])
    assert not site.agent.closed
    site.link.agent_sent(GET)
    master, _ = site.master()
    clock[0] += 86_400
    site.link.check(clock[0])
    assert not site.agent.closed, "a request is under way"
    site.link.master_sent(master, OK)
    site.wire.size = 0
    site.link.master_ended(master, None)
    assert site.errors == [None, None]
    clock[0] += RESTING + 1
    site.link.check(clock[0])
    assert site.agent.closed


def test_who_asks_nothing_has_as_long_as_a_master_gives(site: Site, clock: list[float]) -> None:
    site.secure()
    clock[0] += IDLE - 1
    site.link.check(clock[0])
    assert not site.agent.closed
    clock[0] += 2
    site.link.check(clock[0])
    assert site.agent.closed
    assert site.errors == []


def test_who_has_not_taken_its_answer_is_not_idle(site: Site, clock: list[float]) -> None:
    site.secure()
    site.link.agent_sent(GET)
    master, _ = site.master()
    site.link.master_sent(master, OK)
    site.link.master_ended(master, None)
    site.wire.size = 1000
    clock[0] += RESTING + 1
    site.link.check(clock[0])
    assert not site.agent.closed


def test_a_head_has_a_deadline_that_no_byte_postpones(site: Site, clock: list[float]) -> None:
    site.secure()
    clock[0] += 5000
    site.link.agent_sent(GET[:5])
    for _ in range(3):
        clock[0] += HEAD_TIME / 4
        site.link.agent_sent(b"a")
    assert given_up(site, clock, HEAD_TIME / 4)
    assert site.errors == []


def test_a_body_has_one_that_each_piece_postpones(site: Site, clock: list[float]) -> None:
    site.secure()
    site.link.agent_sent(PUT % 100 + b"\r\n")
    site.master()
    for _ in range(3):
        clock[0] += BODY_TIME - 1
        site.link.check(clock[0])
        site.link.agent_sent(b"a")
    assert given_up(site, clock, BODY_TIME)
    assert site.errors == ["the agent did not finish what it began to send"]


def test_who_waits_for_the_answer_has_none(site: Site, clock: list[float]) -> None:
    site.secure()
    site.link.agent_sent(GET)
    site.master()
    clock[0] += 7200
    site.link.check(clock[0])
    assert not site.wire.ended


def test_who_may_not_send_the_body_yet_has_none_until_it_may(site: Site, clock: list[float]) -> None:
    site.secure()
    site.link.agent_sent(PUT % 100 + b"Expect: 100-continue\r\n\r\n")
    master, _ = site.master()
    clock[0] += 7200
    site.link.check(clock[0])
    assert not site.wire.ended
    site.link.master_sent(master, b"HTTP/1.1 100 Continue\r\n\r\n")
    assert given_up(site, clock, BODY_TIME)


def test_who_is_not_read_as_the_master_takes_nothing_has_none(site: Site, clock: list[float]) -> None:
    site.secure()
    site.link.agent_sent(PUT % 10**6 + b"\r\n")
    master, _ = site.master()
    master.pause_writing()
    clock[0] += 7200
    site.link.check(clock[0])
    assert not site.wire.ended
    master.resume_writing()
    assert given_up(site, clock, BODY_TIME)


def test_what_has_arrived_and_waits_for_its_turn_is_our_delay(site: Site, clock: list[float]) -> None:
    site.agent.arrived(memoryview(b"\x16"))
    clock[0] += HANDSHAKE * 10
    site.link.check(clock[0])
    assert not site.wire.ended


def test_who_takes_nothing_of_the_answer_is_given_up(site: Site, clock: list[float]) -> None:
    site.secure()
    site.link.agent_sent(GET)
    master, _ = site.master()
    site.link.master_sent(master, b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc")
    site.link.check(clock[0])
    assert given_up(site, clock, STUCK)
    assert site.errors == ["the agent took nothing more of the answer"]


# -- what is read ------------------------------------------------------------------------------------------


def test_an_agent_is_not_read_while_the_master_takes_nothing(site: Site) -> None:
    site.secure()
    site.link.agent_sent(PUT % 10**6 + b"\r\n")
    master, _ = site.master()
    master.pause_writing()
    assert not site.wire.reading
    master.resume_writing()
    assert site.wire.reading


def test_nor_while_there_is_no_master_yet(site: Site) -> None:
    site.secure()
    site.link.agent_sent(PUT % 10**6 + b"\r\n" + bytes(FULL))
    assert not site.wire.reading
    master, wire = site.master()
    assert wire.size > FULL
    assert master.tls
    assert site.wire.reading


def test_nor_further_ahead_than_one_request(site: Site) -> None:
    site.secure()
    site.link.agent_sent(GET * 2)
    master, _ = site.master()
    assert not site.wire.reading
    site.link.master_sent(master, OK)
    assert site.wire.reading, "the second is under way"
    assert site.errors == [None]


@pytest.mark.parametrize("way", ["ends", "sends what nobody asked for"])
def test_it_is_read_again_when_such_a_master_is_gone(way: str, site: Site) -> None:
    """It answered a request that it has not taken completely: that lies, encrypted, on the way to it."""
    site.secure()
    site.link.agent_sent(PUT % 5 + b"\r\nhello")
    master, _ = site.master()
    master.pause_writing()
    site.link.master_sent(master, OK)
    assert site.errors == [None]
    assert not site.wire.reading
    if way == "ends":
        site.link.master_ended(master, None)
    else:
        site.link.master_sent(master, OK)
    assert site.wire.reading
    site.link.agent_sent(GET)
    other, wire = site.master()
    assert other is not master
    assert b"GET /a" in wire.data


def test_a_master_is_not_read_while_the_agent_takes_nothing(site: Site) -> None:
    site.secure()
    site.link.agent_sent(GET)
    _, wire = site.master()
    site.agent.pause_writing()
    assert not wire.reading
    site.agent.resume_writing()
    assert wire.reading


def test_what_a_master_sent_ahead_is_no_answer(site: Site) -> None:
    site.secure()
    site.link.agent_sent(GET)
    master, _ = site.master()
    site.link.master_sent(master, OK + OK)
    assert master.closed
    site.link.agent_sent(GET)
    other, _ = site.master()
    site.link.master_sent(other, OK.replace(b"{}", b"[]"))
    assert [record.response and record.response.body for record in site.runtime.records] == [b"{}", b"[]"]


def turn(site: Site) -> bool:
    """Do what is due in turns; return whether there was anything."""
    turns = site.runtime.admission.turns
    due = bool(turns._due)
    if due:
        turns._due.pop()()
    return due


def test_of_a_body_in_many_chunks_some_are_read_in_a_turn(site: Site) -> None:
    """A chunk costs the same, however small it is."""
    site.secure()
    site.link.agent_sent(b"PUT /a HTTP/1.1\r\nHost: n\r\nTransfer-Encoding: chunked\r\n\r\n")
    _, wire = site.master()
    head = wire.data
    site.link.agent_sent(b"1\r\na\r\n" * CHUNKS * 3 + b"0\r\n\r\n")
    assert wire.data.count(b"a" * CHUNKS) == 1
    assert not site.wire.reading
    site.agent.eof_received()
    turns = 0
    while turn(site):
        turns += 1
    assert turns == 3
    assert wire.data[len(head) :] == b"100\r\n" + b"a" * 256 + (b"\r\n100\r\n" + b"a" * 256) * 2 + b"\r\n0\r\n\r\n"
    assert site.link.abandoned, "it has sent all of it, and then its end"


def test_so_are_those_of_an_answer_and_its_end_comes_last(site: Site) -> None:
    site.secure()
    site.link.agent_sent(GET)
    master, wire = site.master()
    site.link.master_sent(master, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nz\r\n" * CHUNKS * 2)
    assert site.wire.data.count(b"z") == CHUNKS
    assert not wire.reading
    master.eof_received()
    assert site.runtime.records == []
    while turn(site):
        pass
    assert site.wire.data.count(b"z") == CHUNKS * 2
    assert site.errors == ["the master closed the connection"]


def test_what_waits_in_memory_is_counted(site: Site) -> None:
    waiting = site.runtime.admission.bytes
    site.secure()
    site.link.agent_sent(PUT % 10 + b"\r\n12345")
    master, wire = site.master()
    wire.size = 0
    site.link.room()
    assert waiting.total == 5, "its copy for the record"
    site.link.agent_sent(b"67890" + GET)
    wire.size = 0
    site.link.room()
    assert waiting.total == 10 + len(GET), "and what was sent ahead"
    site.link.master_sent(master, OK[:-1])
    untaken = len(OK[:-1]) + CONNECTION
    assert waiting.total == 10 + len(GET) + untaken + 1, "an answer that is not taken, and its copy"
    assert master.slow, "little more of it is read at a time"
    site.wire.size = 0
    site.link.room()
    assert not master.slow
    site.wire.size = 0
    site.link.agent_lost()
    assert waiting.total == 0


def test_whoever_is_closed_for_others_while_it_takes_nothing_leaves_nothing_in_the_system(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.secure()
    site.link.agent_sent(GET)
    _, wire = site.master()
    options: list[tuple[int, int]] = []
    monkeypatch.setattr(Transport, "setsockopt", lambda _, level, option, value: options.append((level, option)))
    site.link._expel("others needed the room")
    assert options == []
    assert (site.wire.ended, wire.ended) == ("aborted", "aborted")
    site.wire.ended, site.wire.size = "", 1
    site.link._expel("others needed the room")
    assert options == [(socket.SOL_SOCKET, socket.SO_LINGER)]


# -- the end -----------------------------------------------------------------------------------------------


def test_who_sends_nothing_any_more_waits_for_an_answer_for_a_while(site: Site, clock: list[float]) -> None:
    """Most often it has closed its connection: then its request is over since then."""
    site.secure()
    site.link.agent_sent(GET)
    site.master()
    clock[0] += 300  # a long compilation
    site.link.check(clock[0])
    site.link.agent_ended(None)
    assert len(site.runtime.silent) == 1  # nothing of it is under way from now on
    ended = site.link._ended
    assert given_up(site, clock, HALF_CLOSED)
    assert site.errors == [AGENT_LEFT]
    assert site.runtime.records[0].failed == ended


def test_who_sends_nothing_any_more_has_left_before_the_proxy_ends(site: Site) -> None:
    site.secure()
    site.link.agent_sent(GET)
    site.master()
    assert not site.link.abandoned
    site.link.agent_ended(None)
    ended = site.link._ended
    assert site.link.abandoned
    site.link.shut()
    assert site.errors == [AGENT_LEFT]
    assert site.runtime.records[0].failed == ended


def test_who_sends_nothing_any_more_gets_a_slow_answer_that_has_begun(site: Site, clock: list[float]) -> None:
    site.secure()
    site.link.agent_sent(GET)
    master, _ = site.master()
    site.link.agent_ended(None)
    site.link.master_sent(master, OK[:-1])
    clock[0] += HALF_CLOSED + 1
    site.link.check(clock[0])
    assert not site.wire.ended


def settled(
    site: Site, clock: list[float], loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch,
    left: list[int | None],
) -> float:  # fmt: skip
    """Let an agent that sends nothing any more be answered, of which so many bytes are not acknowledged at each look;
    return how long the link waited."""
    looks = iter(left)
    last = left[-1]
    monkeypatch.setattr(AgentEnd, "unacknowledged", property(lambda _: next(looks, last)))

    async def sleep(seconds: float) -> None:
        clock[0] += seconds

    monkeypatch.setattr("asyncio.sleep", sleep)
    site.secure()
    site.link.agent_sent(GET)
    master, _ = site.master()
    site.link.agent_ended(None)
    assert not site.agent.closed
    began = clock[0]
    site.link.master_sent(master, OK)
    asyncio.events._set_running_loop(None)
    loop.run_until_complete(asyncio.gather(*module._tasks))
    asyncio.events._set_running_loop(loop)
    assert site.agent.closed
    return clock[0] - began


def test_who_acknowledges_all_has_the_answer(
    site: Site, clock: list[float], loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert settled(site, clock, loop, monkeypatch, [100, 100, 50, 0]) < DELIVERY
    assert site.errors == [None]


def test_who_acknowledges_slowly_has_time(
    site: Site, clock: list[float], loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = int(DELIVERY * 0.9 / module.LOOK)
    slowly = [size for size in range(100, -1, -10) for _ in range(looks)]
    assert settled(site, clock, loop, monkeypatch, [100, *slowly]) > DELIVERY * 8
    assert site.errors == [None]


@pytest.mark.parametrize("left", [[100], [100, 50], [100, None], [None]])
def test_who_does_not_has_left(
    left: list[int | None],
    site: Site,
    clock: list[float],
    loop: asyncio.AbstractEventLoop,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert settled(site, clock, loop, monkeypatch, left) < DELIVERY * 2
    assert site.errors == [AGENT_LEFT]
    (record,) = site.runtime.records
    assert record.response is None


def test_a_master_that_ends_a_first_request_is_answered_for(site: Site) -> None:
    site.secure()
    site.link.agent_sent(GET)
    master, _ = site.master()
    site.link.master_ended(master, None)
    assert site.errors == [f"{MASTER_LEFT} without an answer"]
    assert site.wire.data.startswith(b"HTTP/1.1 502 ")


@pytest.mark.parametrize(
    ("examination", "errors"),
    [(Examination(1.0, silent=15.0), ["the master did not answer the TLS handshake for 15 s"]), (Examination(1.0), [])],
)
def test_why_an_agent_has_left_that_waited_for_its_connection(
    examination: Examination, errors: list[str], site: Site
) -> None:
    async def decide(_: object) -> Decision:
        return Decision(Way.TUNNELLED, examination)

    site.runtime.interception = SimpleNamespace(decide=decide, leg=lambda leg: leg)
    site.agent.closed = True
    with pytest.raises(StopIteration):
        site.link._decide(site.runtime.interception, ("puppet.example", 8140)).send(None)
    assert site.errors == errors


@pytest.mark.parametrize("farewell", [True, False])
def test_an_agent_that_uses_an_http_proxy_sees_how_the_master_ends_it(farewell: bool, site: Site) -> None:
    site.link._server = ("puppet.example", 8140)
    site.secure()
    site.link.agent_sent(GET)
    master, _ = site.master()
    master.farewell = farewell
    site.link.master_ended(master, None)
    assert site.errors == [f"{MASTER_LEFT} without an answer"]
    assert site.wire.data == b""
    assert site.agent.closed
    assert (site.agent.tls and site.agent.tls.shut) is farewell


def test_on_a_connection_that_served_before_the_agent_is_left_to_ask_again(site: Site) -> None:
    site.secure()
    site.link.agent_sent(GET)
    master, _ = site.master()
    site.link.master_sent(master, OK)
    size = site.wire.size
    site.link.agent_sent(GET)
    site.link.master_ended(master, None)
    assert site.errors == [None, MASTER_LEFT]
    assert site.wire.size == size
    assert site.agent.closed


# -- faults that are injected on purpose ------------------------------------------------------------------


def _injected(site: Site, name: str, value: str) -> Injection:
    site.runtime.injection = Injection(actions.make(name, value), None, lambda: None)
    return site.runtime.injection


def test_a_delayed_request_has_no_deadline_and_is_not_read_without_limit(site: Site, clock: list[float]) -> None:
    _injected(site, "delay", "1h")
    site.secure()
    site.link.agent_sent(PUT % 1_000_000 + b"\r\n")
    assert site.link._master is None
    clock[0] += 2 * BODY_TIME
    site.link.check(clock[0])
    assert not site.wire.ended
    assert site.wire.reading
    site.link.agent_sent(b"a" * (FULL + 1))
    assert not site.wire.reading
    site.link.shut()
    assert site.errors == ["the proxy ended"]


def test_a_delayed_request_is_passed_on_whole(site: Site) -> None:
    _injected(site, "delay", "1h")
    site.secure()
    site.link.agent_sent(PUT % 3 + b"\r\na")
    exchange = site.link._exchange
    assert exchange
    site.link._release(exchange)
    _, wire = site.master()
    site.link.agent_sent(b"bc")
    assert wire.data.startswith(b"PUT /a HTTP/1.1\r\n")
    assert wire.data.endswith(b"\r\n\r\nabc")
    site.link.shut()
    assert site.errors == ["the proxy ended"]


def test_a_delayed_request_whose_agent_has_left_is_not_passed_on(site: Site) -> None:
    _injected(site, "delay", "1h")
    site.secure()
    site.link.agent_sent(GET)
    exchange = site.link._exchange
    assert exchange
    site.link.agent_ended(None)
    site.link._release(exchange)
    assert site.link._master is None
    assert site.errors == [AGENT_LEFT]
    assert [record.injected for record in site.runtime.records] == ["delayed by 3600 s"]


def test_a_master_is_not_read_while_its_answer_is_slowed_down(site: Site) -> None:
    _injected(site, "throttle", "100")
    site.secure()
    site.link.agent_sent(GET)
    master, wire = site.master()
    site.link.master_sent(master, OK)
    assert not wire.reading
    pace = site.link._pace
    assert pace
    site.link.master_ended(master, None)  # it has closed the connection behind the answer
    assert site.runtime.records == []
    while pace.pending:
        site.link._hurry_on(pace, master)
    (record,) = site.runtime.records
    assert record.response
    assert (record.response.body, record.error) == (b"{}", None)
    assert record.injected == "answer throttled to 100 bytes a second"


# -- in the master's place -------------------------------------------------------------------------------


def test_whom_the_proxy_has_no_identity_for_asks_again_and_directly(site: Site) -> None:
    site.runtime.stands_in = True
    site.secure()
    reason = "its certificate has pp_cli_auth"
    state: Any = SimpleNamespace(identity=Identity("mint", reason=reason), choose_identity=lambda _: None)
    site.link._state = state
    site.link.agent_sent(GET)
    assert site.link._master is None
    assert site.wire.data.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nRetry-After: 5\r\n" in site.wire.data
    assert site.runtime.direct == [("192.0.2.1", reason)]
    assert site.runtime.records == []


def test_whom_the_master_cannot_be_reached_for_asks_again(site: Site) -> None:
    """By then nothing is handed over any more, or the master is there again."""
    site.runtime.stands_in = True
    site.secure()
    site.link.agent_sent(GET)
    master, _ = site.master()
    site.link.master_unreachable(master, "connection refused")
    assert site.wire.data.startswith(b"HTTP/1.1 503 ")
    assert site.errors == ["connection refused"]
    assert site.runtime.direct == []


def test_whose_request_the_proxy_refuses_asks_again_and_directly(site: Site) -> None:
    """The server may take it."""
    site.runtime.stands_in = True
    site.secure()
    site.link.agent_sent(b"GET a HTTP/1.1\r\nHost: n\r\n\r\n")
    assert site.wire.data.startswith(b"HTTP/1.1 503 ")
    assert [address for address, _ in site.runtime.direct] == ["192.0.2.1"]


def test_whose_request_a_new_connection_to_the_master_does_not_answer_gets_the_same(site: Site) -> None:
    site.runtime.stands_in = True
    site.secure()
    site.link.agent_sent(GET)
    master, _ = site.master()
    site.link.master_ended(master, None)
    assert site.wire.data == b""
    assert site.agent.closed
    assert site.errors == [f"{MASTER_LEFT} without an answer"]


def test_agents_leave_with_the_next_answer(site: Site) -> None:
    site.secure()
    site.link.agent_sent(GET)
    master, _ = site.master()
    site.runtime.parting = True
    site.link.master_sent(master, OK)
    assert site.wire.data.startswith(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
    assert site.agent.closed
    assert site.errors == [None]


def test_an_answer_that_has_begun_does_not_change(site: Site, clock: list[float]) -> None:
    site.secure()
    site.link.agent_sent(GET)
    master, _ = site.master()
    site.link.master_sent(master, OK[:-1])
    site.runtime.parting = True
    site.link.master_sent(master, OK[-1:])
    assert site.wire.data == OK
    assert not site.agent.closed
    clock[0] += 4
    site.link.part(5)
    assert not site.agent.closed
    clock[0] += 2
    site.link.part(5)
    assert site.agent.closed


def test_nobody_is_asked_to_leave_who_waits_for_an_answer(site: Site, clock: list[float]) -> None:
    site.secure()
    site.link.agent_sent(GET)
    clock[0] += 60
    site.link.part(5)
    assert not site.agent.closed
