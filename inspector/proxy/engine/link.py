"""A link: a connection from an agent, and the one to the master that is made for it.

Bytes are passed on as they come; what they mean is only observed. Of each exchange one record is made. The connection
to the master is opened for the first request, when it is known who the agent is, and serves no other agent.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from http import HTTPStatus
from typing import TYPE_CHECKING

from inspector.formats.packet_capture import AGENTS, MASTERS
from inspector.model import Exchange, Identity
from inspector.proxy import claims
from inspector.proxy.connect import acceptance, dialing, tunnel
from inspector.proxy.connect import head as connect_head
from inspector.proxy.connect.alert import SentRecords
from inspector.proxy.connect.interception import FORBIDDEN, Way
from inspector.proxy.connection_state import AGENT_LEFT, closed
from inspector.proxy.engine import framing
from inspector.proxy.engine.ends import STUCK
from inspector.proxy.engine.exchange import OpenExchange
from inspector.proxy.engine.framing import UNTIL_CLOSE, Reader, Refused
from inspector.proxy.engine.sides import AgentEnd, MasterEnd
from inspector.proxy.faults.injection import Pace, end_with_reset, plain_answer
from inspector.proxy.limits import BODY_TIME, BUSY, FULL, HANDSHAKE, HEAD_TIME, IDLE
from inspector.proxy.limits.admission import PATIENCE
from inspector.proxy.limits.agents import RESTING
from inspector.proxy.limits.waiting_bytes import untaken
from inspector.proxy.runtime import guarded
from inspector.proxy.wire import Tap

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from inspector.model import Leg
    from inspector.proxy.connect.acceptance import Examination
    from inspector.proxy.connect.dialing import SiteProxy
    from inspector.proxy.connect.interception import Interception
    from inspector.proxy.connection_state import AgentConnection
    from inspector.proxy.engine.framing import Fields, Head
    from inspector.proxy.engine.handover import Handover
    from inspector.proxy.faults.injection import Injection
    from inspector.proxy.limits.pool import Ticket
    from inspector.proxy.runtime import Runtime

LOOK = 0.05
"""Seconds between looks whether there is room for an exchange, or whether an answer was delivered."""
HALF_CLOSED = 10.0
"""Seconds within which the answer must begin for an agent that has shut down its sending side. Nothing tells it from
one that has closed its connection, whose request is recorded when they have passed: no Puppet agent half-closes."""
DELIVERY = 2.0
"""Seconds in which an agent that has shut down its sending side must acknowledge the answer."""
MASTER_LEFT = "the master closed the connection"
UNANSWERED = f"{MASTER_LEFT} without an answer"
FAILED = "the proxy failed"
_tasks: set[asyncio.Task[None]] = set()
"""Tasks that run; the event loop itself keeps only weak references to them."""


class Link:
    """What connects one agent to the master."""

    def __init__(self, runtime: Runtime, links: set[Link], handover: Handover | None = None) -> None:
        """``links`` contains the link as long as it has a connection; ``handover`` leads to the other workers."""
        self.runtime = runtime
        self.internal_error = runtime.internal_error
        self._handover = handover
        self.agent = AgentEnd(self)
        if runtime.wire:
            self.agent.tap = Tap(runtime.wire, self.agent.id, AGENTS)
        self._links = links
        self._nobody = Identity(runtime.settings.identity_source.mode)
        """Of a request in plain text, for which no identity is used."""
        self._state: AgentConnection | None = None
        self._ticket: Ticket | None = None
        self._master: MasterEnd | None = None
        self._master_left = False
        """Whether the master has closed its connection after the last exchange."""
        self._dropped: set[MasterEnd] = set()
        """Connections to the master that end, in order."""
        self._alone = False
        """Whether the connection from the agent is gone."""
        self._requests = Reader()
        self._exchange: OpenExchange | None = None
        self._server: tuple[str, int] | None = None
        """The server that the agent asked for, as of an HTTP proxy."""
        self._authority: tuple[str, int] | None = None
        """The CA's server with which ``_master`` connects; None: it is the master."""
        self._leg: Leg | None = None
        """A connection that is not intercepted, as it was recorded."""
        self._deciding = False
        """Whether it is not decided yet what happens with the connection."""
        self._elsewhere = False
        """Whether another worker serves the agent."""
        self._over = False
        """Whether no further request is served."""
        self._began: float | None = None
        """When the head that is arriving began."""
        self._since = 0.0
        """When the agent last got on with what it is sending."""
        self._ended: float | None = None
        """When the agent had sent all it would send."""
        self._waiting: Head | None = None
        """A request that waits for room, since ``_held``."""
        self._held = 0.0
        self._detained = b""
        """The head of a request that is delayed on purpose."""
        self._pace: Pace | None = None
        """What slows the answer down on purpose."""

    # -- the beginning ------------------------------------------------------------------------------

    def agent_connected(self) -> None:
        """Admit the agent, which has connected; behind a balancer when it is known where it is."""
        self._links.add(self)
        self._since = time.monotonic()
        if interception := self.runtime.interception:
            own = self.agent.transport.get_extra_info("sockname")
            if not interception.admits(self.agent.peer, (str(own[0]), int(own[1]))):
                self.agent.abort()
                return
            self.agent.asking = True
        if self.runtime.settings.balanced(self.agent.peer[0]):
            self.agent.balanced = True
        else:
            self.agent_located()

    def agent_misled(self, reason: str) -> None:
        """Close a balancer's connection that does not say where the agent is."""
        self.runtime.gap(f"refused a connection of {self.agent.peer[0]}, a balancer (puppet_proxy_protocol): {reason}")
        self._close()

    def agent_located(self) -> None:
        """Admit the agent, here or in the worker that serves its address."""
        if self._handover and self._handover.elsewhere(self.agent.peer[0]):
            self.agent.pause(paused=True)
            _start(self._pass_on(self._handover))
        else:
            self._enter()

    async def _pass_on(self, handover: Handover) -> None:
        agent = self.agent
        if await handover.pass_on(agent.socket, agent.header + agent.early, agent.peer[0]):
            self._elsewhere = True
            agent.abort()  # this is one of two descriptors by now
        elif not agent.closed:
            agent.pause(paused=False)
            self._enter()

    def _enter(self) -> None:
        agent, admission = self.agent, self.runtime.admission
        ticket = self._ticket = agent.ticket = admission.enter(
            agent.id, agent.peer[0], agent.socket.fileno(), self._expel, sent=bool(agent.early)
        )
        if not ticket.admitted.done():
            agent.pause(paused=True)
            _start(self._wait(ticket))
        elif ticket.admitted.result():
            agent.take_early()
        else:
            agent.abort()

    # -- an agent that uses the proxy as an HTTP proxy ----------------------------------------------

    def agent_strays(self, reason: str) -> None:
        """Close a connection that asks for no server, unless the site's own HTTP proxy is for it: what an agent starts
        uses that too, also without TLS."""
        interception = self.runtime.interception
        if interception is not None and interception.site is not None:
            self.agent.asking, self._deciding = False, True
            self.agent.pause(paused=True)
            _start(self._pass_to(interception.site))
            return
        self.runtime.gap(f"refused a connection of {self.agent.peer[0]}: {reason}")
        self._close()

    async def _pass_to(self, site: SiteProxy) -> None:
        try:
            connection = await asyncio.to_thread(dialing.connect, (site.host, site.port), HANDSHAKE)
            early, self.agent.early = self.agent.early, b""
            await tunnel.join(self.agent.transport, connection, b"", self.agent_lost, early)
        except OSError:
            self._close()
        except Exception as error:  # noqa: BLE001 - it must concern no other connection
            self.failed(error)

    def agent_asks(self, server: tuple[str, int]) -> None:
        """Find out what happens with the connection that the agent asks for."""
        interception = self.runtime.interception
        assert interception is not None  # noqa: S101 - else it is not asked
        self._server, self._deciding = server, True
        self.agent.pause(paused=True)
        _start(self._decide(interception, server))

    async def _decide(self, interception: Interception, server: tuple[str, int]) -> None:
        try:
            decision = await interception.decide(server)
            if self.agent.closed:
                if decision.examination and not decision.examination.accepted:
                    self._write_decision(server, decision.examination)  # why it gave up
                return
            if decision.way is Way.INTERCEPTED:
                self._deciding, self._since = False, time.monotonic()
                self.agent.answer(connect_head.ESTABLISHED)
                self.agent.pause(paused=False)
                self.agent.take_early()
                return
            if decision.way is Way.REFUSED:
                self.agent.answer(connect_head.refusal(FORBIDDEN, 403))
                self._close()
                return
            examination = decision.examination
            if examination is not None:
                self._write_decision(server, examination)
            try:
                if examination is not None and examination.unreachable is not None:
                    raise examination.unreachable
                connection = await asyncio.to_thread(interception.dial, server)
            except OSError as error:
                self.agent.answer(connect_head.refusal(*dialing.answer(server, error)))
                self._close()
                return
            early, self.agent.early = self.agent.early, b""
            await tunnel.join(self.agent.transport, connection, connect_head.ESTABLISHED, self.agent_lost, early)
        except Exception as error:  # noqa: BLE001 - it must concern no other connection
            self.failed(error)

    @guarded
    def _write_decision(self, server: tuple[str, int], examination: Examination) -> None:
        record = acceptance.record(self._facts(), server, examination)
        self._leg = record.agent if isinstance(record, Exchange) else record.leg
        self.runtime.recorder.put(record)

    def _expel(self, reason: str) -> None:
        if self.agent.unsent and not self.agent.transport.is_closing():
            end_with_reset(self.agent.socket)  # as in ``check``
        self._break(f"the proxy closed the connection: {reason}")
        self._abort_masters()

    def _abort_masters(self) -> None:
        """Close the connections to the master at once that would end in order."""
        for master in self._dropped:
            master.abort()

    async def _wait(self, ticket: Ticket) -> None:
        if await self.runtime.admission.wait(ticket) and not self.agent.closed:
            self._since = time.monotonic()
            self.agent.pause(paused=False)
            self.agent.take_early()
        else:
            self.agent.abort()

    def meet_agent(self) -> None:
        """Prepare TLS: the agent's first bytes have come. A failure here must let nobody through."""
        try:
            self._meet_agent()
        except Exception as error:  # noqa: BLE001
            self.internal_error("meet_agent", error)
            self.agent.tls = None
            self.agent.abort()

    def _meet_agent(self) -> None:
        self.agent.tls, self._state = self.runtime.meet_agent(self.agent.id, self.agent.peer[0], self._server)
        if self.agent.tap:
            self._state.tls_state.on_secret = self.agent.tap.secret
        elif self._server:
            self._state.tls_state.on_secret = self.agent.on_secret
            self.agent.sent_records = SentRecords()

    def agent_sent_plain(self, data: bytes) -> None:
        """Record a request in plain text, and answer nothing: no master answers in plain text."""
        self._requests.feed(data)
        with contextlib.suppress(Refused):
            if head := self._requests.head(framing.request):
                self._exchange = OpenExchange(head, time.time(), self.runtime.copies)
                self._record("the request is in plain text")
        self._close()

    def agent_secured(self) -> None:
        """The agent's handshake is finished."""
        self._since = time.monotonic()
        if self._state and self.agent.connected is not None:
            self.runtime.agent_secured(self.agent.id, self._state, self.agent.peer[0], self.agent.connected)

    @guarded
    def agent_refused(self, error: str) -> None:
        """The agent's handshake has failed."""
        state = self._state
        if state and self.agent.tls:
            state.tls_state.complete(self.agent.tls)
            self.runtime.record_refused_agent(state, state.refused(self._agent_leg(), error))

    # -- requests -----------------------------------------------------------------------------------

    def agent_sent(self, data: bytes) -> None:
        """Data of the agent arrived."""
        if self._over:
            return  # it was answered already
        now = time.monotonic()
        if self._ticket is not None:
            self._ticket.hear(now)
            if not self._ticket.add(len(data)):
                self._ticket.refuse(BUSY)
                self._fail(503, BUSY)
                return
        if not self._requests.complete:
            self._since = now
        elif not self._requests.unread:
            self._since, self._began = now, time.time()
        self._requests.feed(data)
        self._advance()

    def _advance(self) -> None:
        """Go on with what the agent has sent so far."""
        head = b""
        try:
            if self._exchange is None and not self._over:
                head = self._begin()
            exchange, master = self._exchange, self._master
            if exchange is None or exchange.asked is not None:
                pass
            elif exchange.injection is not None and exchange.injection.in_place:
                self._answer_in_place(exchange, exchange.injection)
            elif master is not None:
                master.send(head + exchange.take_request(self._requests))
                self._read_more_later()
                if self._ticket is not None and exchange.asked is not None:
                    self._ticket.answering = True
        except Refused as refused:
            if self._exchange is None:
                self._report_refused(refused.message)
            busy = refused.status == HTTPStatus.SERVICE_UNAVAILABLE
            self._fail(refused.status, refused.message if busy else f"the proxy refused the request: {refused.message}")
        if self._ended is not None and self._exchange is None and self._waiting is None:
            self._close()
        self._regulate()

    def _read_more_later(self) -> None:
        """Go on with a body of many chunks when it is the agent's turn."""
        if self._requests.more:
            self.agent.postpone(self._advance)

    def _begin(self) -> bytes:
        """Begin an exchange, if a head is there; return what is passed on: the head without claims, with our own
        headers. Raises Refused."""
        head = self._waiting or self._requests.head(framing.request)
        if head is None or not self._admit(head):
            return b""
        self._yield()
        payer = self._ticket.payer if self._ticket is not None else ""
        exchange = self._exchange = OpenExchange(head, self._began or time.time(), self.runtime.copies, payer)
        self._began = time.time()  # of a request that has come already, behind this one
        try:
            fields = self._replace_claims(exchange)
        except Refused:
            raise
        except Exception as error:  # noqa: BLE001 - a failure here must pass no claim on
            self.internal_error("replace_claims", error)
            self._break(FAILED)
            return b""
        self._report_arrived(exchange)
        method, target, _ = head.first
        if interception := self.runtime.interception:
            interception.sync()
            exchange.addition = interception.addition(method, target)
            fields = plain_answer(fields) if exchange.addition else fields
        injection = self.runtime.fault_for(self._state, self.agent.peer[0], method, target, head.fields)
        exchange.injection = injection
        if injection is not None:
            if injection.in_place:
                return b""
            if injection.action.corrupt:
                fields = plain_answer(fields)
            if injection.action.delay:
                self._detain(exchange, head.assembled(fields), injection.action.delay)
                return b""
            if injection.action.rate:
                self._pace = Pace(injection.action.rate)
        self._ask(exchange)
        return head.assembled(fields)

    def _ask(self, exchange: OpenExchange) -> None:
        """Begin to ask the master, or the CA if that is another server."""
        method, target, _ = exchange.head.first
        authority = self.runtime.settings.authority_for(method.decode("latin-1"), target.decode("latin-1"))
        if authority != self._authority:
            self._drop_master()
        self._authority = authority
        self._master_left = False
        exchange.master = self._master = self._master or self._connect()
        if self._master is None:
            self._break(FAILED)

    # -- faults that are injected on purpose --------------------------------------------------------

    def _answer_in_place(self, exchange: OpenExchange, injection: Injection) -> None:
        """Read the request; when it is complete, answer it in the master's place, or reset the connection. Raises
        Refused."""
        exchange.take_request(self._requests)
        self._read_more_later()
        if exchange.asked is None:
            if exchange.waits:
                self.agent.send(exchange.invitation())
            return
        if injection.answer is None:
            end_with_reset(self.agent.socket)
            self._break(injection.note)
            return
        answers = Reader()
        answers.feed(injection.answer.assembled(exchange.head.first[0].decode("latin-1")))
        self.agent.send(exchange.take_answer(answers))
        self._finish(exchange, exchange.answer)

    def _detain(self, exchange: OpenExchange, head: bytes, seconds: float) -> None:
        """Let a request wait before it is passed on."""
        self._drop_master()  # it might close the connection meanwhile
        self._detained = head
        asyncio.get_running_loop().call_later(seconds, self._release, exchange)

    def _release(self, exchange: OpenExchange) -> None:
        """Pass on a request that has waited long enough."""
        if exchange is self._exchange and not self.agent.closed:
            self.agent.guard(lambda: self._pass_on_late(exchange))

    def _pass_on_late(self, exchange: OpenExchange) -> None:
        head, self._detained = self._detained, b""
        self._since = time.monotonic()
        self._ask(exchange)
        if self._master is not None:
            self._master.send(head)
        self._advance()

    def _hurry_on(self, pace: Pace, master: MasterEnd) -> None:
        """Pass on the next piece of an answer that is slowed down."""
        if pace is not self._pace:
            return
        if self.agent.blocked:
            pace.later(lambda: self._hurry_on(pace, master))
            return
        self.agent.guard(lambda: self._master_sent(master, pace.piece()))
        if pace is not self._pace:
            return
        if pace.pending:
            pace.later(lambda: self._hurry_on(pace, master))
        elif pace.after is not None:
            self.agent.guard(pace.after)
        self._regulate()

    def _admit(self, head: Head) -> bool:
        """Return whether there is room for a request; else it waits. Raises Refused."""
        if self._ticket is None or self._ticket.begin():
            self._waiting = None
            return True
        now = time.monotonic()
        if self._waiting is None:
            self._waiting, self._held = head, now
        elif now - self._held > PATIENCE:
            self._waiting = None
            raise Refused(503, BUSY)
        asyncio.get_running_loop().call_later(LOOK, self._look)
        return False

    def _look(self) -> None:
        if self._waiting is not None and not self.agent.closed:
            self.agent.guard(self._advance)

    def _yield(self) -> None:
        """Leave an agent to the master whose place the proxy has taken, if it has a certificate and no identity can be
        used for it. Raises Refused."""
        if self._state and self.runtime.yields(self.agent.peer[0]):
            self._state.choose_identity(self.runtime.settings.identity_source)
            if self._state.identity and (reason := self._state.identity.reason):
                self.runtime.pass_by(self.agent.peer[0], reason)
                raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, reason)

    def _replace_claims(self, exchange: OpenExchange) -> Fields:
        state = self._state
        if state:
            # First: it is recorded also of a request that is refused.
            state.choose_identity(self.runtime.settings.identity_source)
        if reason := claims.ambiguous(exchange.head.fields):
            raise Refused(400, reason)
        fields, exchange.stripped = claims.removed(exchange.head.fields)
        own = state.headers if state else ()
        return fields + tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in own)

    @guarded
    def _report_arrived(self, exchange: OpenExchange) -> None:
        if self._state:
            method, target, _ = exchange.head.first
            self.runtime.request_arrived(self.agent.id, self._state, self.agent.peer[0], exchange.began, method, target)

    @guarded
    def _report_refused(self, reason: str) -> None:
        """Report a request that is not recorded, as its head could not be read."""
        if self._ticket is not None and not self._ticket.verified:
            self._ticket.refuse(reason)
        else:
            self.runtime.gap(f"the proxy refused a request of {self.agent.peer[0]}: {reason}")

    def agent_ended(self, error: str | None) -> None:
        """The agent sends nothing any more; with an error, its connection is broken."""
        exchange = self._exchange
        self._ended, self._since = time.time(), time.monotonic()
        if error is not None or (exchange is not None and exchange.asked is None):
            self._break(AGENT_LEFT)
        elif exchange is None and self._waiting is None:
            self._close()
        else:  # it may only have shut down its sending side; then it still gets the answer
            self.runtime.agent_silent(self._agent_leg().id)

    # -- the master ---------------------------------------------------------------------------------

    def _connect(self) -> MasterEnd | None:
        """Begin to connect to the master. A failure here must trust nobody."""
        try:
            master = self._meet_master()
        except Exception as error:  # noqa: BLE001
            self.internal_error("meet_master", error)
            return None
        interception = self.runtime.interception
        address, _ = self.runtime.settings.master_for(self.agent.sni)
        master.open(*self._server or self._authority or address, interception.dial if interception else None)
        return master

    def _meet_master(self) -> MasterEnd:
        tls, state = self.runtime.meet_master(self._state, self.agent.sni, self._server or self._authority)
        master = MasterEnd(self, tls, state, self._ticket)
        if self.runtime.wire:
            master.tap = Tap(self.runtime.wire, master.id, MASTERS)
            state.tls_state.on_secret = master.tap.secret
        return master

    def master_unreachable(self, master: MasterEnd, reason: str) -> None:
        """There is no connection to the master."""
        if master is self._master:
            away = self.runtime.yields(self.agent.peer[0])  # and without us it is, too
            self._fail(HTTPStatus.SERVICE_UNAVAILABLE if away else HTTPStatus.BAD_GATEWAY, reason)

    def master_refused(self, master: MasterEnd, error: str) -> None:
        """The handshake with the master has failed."""
        error = error or f"{MASTER_LEFT} during the handshake"
        if self._judged(master):
            _start(self._refuse_judged(master, lambda: self._record_refused_master(master, error)))
            return
        reason = self._record_refused_master(master, error)
        if master is self._master:
            self._refuse(master, reason)

    def _judged(self, master: MasterEnd) -> bool:
        """Whether it is found out first why the master refuses the agent's certificate."""
        return bool(self._server and master.state.tls_state.alert_by == "peer" and master.state.agent)

    async def _refuse_judged(self, master: MasterEnd, record: Callable[[], str]) -> None:
        """Find out why the master refuses the agent's certificate, record it, and answer."""
        agent, interception, exchange = master.state.agent, self.runtime.interception, self._exchange
        try:
            if interception and agent and agent.credentials:
                master.state.why_refused = await interception.why_refused(agent.credentials.ders)
            reason = record()
            if self._exchange is exchange and exchange is not None:
                self._refuse(master, reason)
        except Exception as error:  # noqa: BLE001 - it must concern no other connection
            self.failed(error)

    def _refuse(self, master: MasterEnd, reason: str) -> None:
        """Answer a request that the master does not hear. An agent that uses this as its HTTP proxy gets what it gets
        in a direct run: the master's alert if that is possible, or the end of the connection."""
        alert = master.state.tls_state.alert_code
        if self._server and alert and self.agent.send_alert(alert):
            self._over = True
            self._record(reason)
            self._drop_master()
        elif not alert and reason == UNANSWERED and (self._server or self.runtime.yields(self.agent.peer[0])):
            self._record(reason)
            self._close(farewell=master.farewell)
        else:
            self._fail(502, reason)

    def _record_refused_master(self, master: MasterEnd, error: str) -> str:
        """Record the failed handshake; return why it failed."""
        try:
            handshake = master.state.refused(master.leg(), error)
            self.runtime.record_refused_master(master.state, handshake)
        except Exception as failure:  # noqa: BLE001 - the agent gets an answer nevertheless
            self.internal_error("record_refused_master", failure)
            return error
        return handshake.reason if handshake else error

    def master_sent(self, master: MasterEnd, data: bytes) -> None:
        """Data of the master arrived."""
        pace = self._pace
        if pace is None or master is not self._master:
            self._master_sent(master, data)
        elif pace.add(data):
            pace.later(lambda: self._hurry_on(pace, master))
            self._regulate()

    def _master_sent(self, master: MasterEnd, data: bytes) -> None:
        exchange = self._exchange
        if master is not self._master:
            return
        if data:
            master.answers.feed(data)
        if exchange is None:
            self._drop_master()  # it sent what nobody asked for
            self._regulate()
            return
        exchange.parts = exchange.parts or (self.runtime.parting and exchange.answer is None)
        try:
            passed_on = exchange.take_answer(master.answers)
        except Refused as refused:
            self._fail(502, f"the proxy refused the master's answer: {refused.message}")
            return
        if master.answers.more:
            master.postpone(lambda: self._master_sent(master, b""))
        if exchange.answer is not None:
            self._note_answer(master)
        elif passed_on:
            self._since = time.monotonic()  # it sends the body from now on
        self.agent.send(passed_on)
        if exchange.injection is not None and exchange.injection.cut_off:
            self._record(exchange.injection.note)
            self._break_off()
        elif exchange.ended is not None:
            self._finish(exchange, exchange.answer)
        self._regulate()

    @guarded
    def _note_answer(self, master: MasterEnd) -> None:
        master.state.answered = True

    def _finish(self, exchange: OpenExchange, answer: Head | None, *, farewell: bool = True) -> None:
        """End an exchange: its answer is complete. Without ``farewell`` the master ended it without one of TLS's."""
        # If the answer came before the end of the request, the rest of that is not read.
        last = exchange.head.close or answer is None or answer.close or exchange.parts or exchange.asked is None
        if self._state:
            self._state.close = last
        if exchange.master is not None:
            exchange.master.used = True
            if exchange.master.answers.unread and exchange.master is self._master:
                self._drop_master()  # it sent what nobody asked for
        if self._ended is not None and (last or not self._requests.unread):
            self._over = True
            _start(self._settle(exchange))
            return
        self._record(None)
        if last:
            self._close(farewell=farewell)
        else:
            self._since = time.monotonic()
            self._advance()

    async def _settle(self, exchange: OpenExchange) -> None:
        """Wait until an agent that sends nothing any more has the answer, or turns out to have left."""
        least, until = self.agent.unacknowledged, time.monotonic() + DELIVERY
        while (left := self.agent.unacknowledged) and time.monotonic() < until:
            if least is None or left < least:
                least, until = left, time.monotonic() + DELIVERY
            await asyncio.sleep(LOOK)
        if left == 0:
            self._record(None)
        else:
            exchange.left = self._ended
            self._record(AGENT_LEFT)
        self._close()

    def master_ended(self, master: MasterEnd, error: str | None) -> None:
        """The master sends nothing any more; with an error, its connection is broken."""
        if master is not self._master:
            return
        if self._pace is not None and self._pace.pending:
            self._pace.after = lambda: self.master_ended(master, error)
            return
        exchange, self._master = self._exchange, None
        if exchange is None:
            self._master_left = True  # the next request opens another connection
        elif exchange.answer is not None and exchange.answer.length == UNTIL_CLOSE and error is None:
            exchange.ended = time.time()
            self._finish(exchange, exchange.answer, farewell=master.farewell)
        elif exchange.answer is None and not master.used and self._judged(master):
            _start(self._refuse_judged(master, lambda: self._record_late_refusal(master)))
        else:
            if exchange.answer is None:
                self._record_late_refusal(master)
            if exchange.answer is None and not master.used:
                self._refuse(master, UNANSWERED)
            else:
                # As without the proxy: on a connection that served before, an agent sends the request again.
                self._record(f"{MASTER_LEFT}{f' ({error})' if error else ''}")
                self._break_off()
        master.close()
        self._regulate()

    def _record_late_refusal(self, master: MasterEnd) -> str:
        """Record a refusal after the handshake, if it was one; return why there is no answer."""
        try:
            self.runtime.record_refused_master(master.state, master.state.late_refusal(master.leg()))
        except Exception as error:  # noqa: BLE001 - the agent gets an answer nevertheless
            self.internal_error("record_late_refusal", error)
        return UNANSWERED

    # -- the end ------------------------------------------------------------------------------------

    def _fail(self, status: int, reason: str) -> None:
        """Answer in the master's place, or break off an answer that has begun, and close the connection."""
        exchange = self._exchange
        self._record(reason)
        if exchange is not None and exchange.answer is not None:
            self._break_off()
            return
        if self.runtime.yields(self.agent.peer[0]):
            if status != HTTPStatus.SERVICE_UNAVAILABLE:
                self.runtime.pass_by(self.agent.peer[0], reason)
            status = HTTPStatus.SERVICE_UNAVAILABLE  # agents ask again, by then directly
        self.agent.send(framing.refusal(status, reason))
        self._close()

    def _break_off(self) -> None:
        """Leave the agent a broken connection, with what came of the answer."""
        self._over = True
        self.agent.break_off()
        self._drop_master()

    def _break(self, reason: str) -> None:
        """End everything at once."""
        self._over = True
        self._record(reason)
        self.agent.abort()
        self._drop_master()

    def _close(self, *, farewell: bool = True) -> None:
        """End the connections in order."""
        self._over = True
        if farewell:
            self.agent.close()
        else:
            self.agent.break_off()
        self._drop_master()

    def _drop_master(self) -> None:
        master, self._master = self._master, None
        if master is not None:
            master.drop()
            if master.connected is not None:
                self._dropped.add(master)

    def failed(self, error: Exception) -> None:
        """A bug of ours ends this link; no other one is concerned."""
        self.internal_error("a connection", error)
        self._break(FAILED)

    def agent_lost(self) -> None:
        """The connection from the agent is gone."""
        self._alone = True
        if self._elsewhere:
            self._leave()
            return
        self._over = True
        if self._exchange is not None and self._exchange.ended is None:
            self._record(AGENT_LEFT)
        self._drop_master()
        if self._ticket is not None:
            self.runtime.admission.leave(self._ticket)
        self._requests = Reader()  # as with TLS, what was not read is large and would be freed late
        self._leave()
        self._record_agent_end()

    def _leave(self) -> None:
        if self._alone and not self._dropped:
            self._links.discard(self)

    @guarded
    def _record_agent_end(self) -> None:
        state = self._state
        end = closed(state.tls_state if state else None, close=bool(state and state.close))
        self.runtime.record_agent_end(self._agent_leg(), end)

    @guarded
    def master_lost(self, master: MasterEnd) -> None:
        """A connection to the master is gone."""
        self._dropped.discard(master)
        self._leave()
        master.answers = Reader()
        self.runtime.record_master_end(master.leg(), closed(master.state.tls_state, close=False), self.agent.id)

    @property
    def busy(self) -> bool:
        """Whether an exchange is under way."""
        return self._exchange is not None

    @property
    def abandoned(self) -> bool:
        """Whether the agent sends nothing any more while it has no answer: most often it has closed its connection."""
        return self._ended is not None and self._exchange is not None and self._exchange.answered is None

    def part(self, silent: float) -> None:
        """Close a connection in order on which nothing was asked for so many seconds."""
        if self.agent.secured and not (self.busy or self._requests.unread) and time.monotonic() - self._since > silent:
            self._close()

    def shut(self) -> None:
        """End the link: the proxy ends."""
        if self.abandoned and self._exchange:
            self._exchange.left = self._ended
        self._break(AGENT_LEFT if self.abandoned else "the proxy ended")
        self._abort_masters()

    # -- flow ---------------------------------------------------------------------------------------

    @property
    def _blocked(self) -> bool:
        """Whether the master takes no more of what the agent sends."""
        if self._detained:
            return self._requests.unread > FULL
        return self._master is not None and self._master.blocked

    def _regulate(self) -> None:
        """Read no more than can be passed on."""
        if self._ticket is None or not self._ticket.admitted.done():
            return
        asked = self._exchange is not None and self._exchange.asked is not None
        ahead = self._requests.unread > 0 and (asked or self._waiting is not None)
        self.agent.pause(paused=not self._over and (ahead or self._blocked))
        if self._master is not None:
            self._master.slow = self.agent.unsent > 0
            self._master.pause(paused=self.agent.blocked or (self._pace is not None and self._pace.pending))
        self._ticket.note_waiting(self._waiting_bytes)

    @property
    def _waiting_bytes(self) -> int:
        """Bytes that wait in memory until somebody takes them."""
        exchange, master = self._exchange, self._master
        if self._alone:
            return 0
        size = untaken(self.agent.unsent) + self._requests.unread
        if exchange is not None:
            size += exchange.in_memory
        if master is not None:
            size += master.unsent + master.answers.unread
        return size

    def room(self) -> None:
        """An end has more or less unsent data than before."""
        self._since = time.monotonic()
        self._regulate()

    def stalled(self, now: float) -> bool:
        """Whether the agent does not finish what it began to send."""
        ticket = self._ticket
        if self.agent.closed or (ticket is not None and not ticket.admitted.done()):
            return False
        if ticket is not None and ticket.due:
            self._since = max(self._since, now - HANDSHAKE / 2)  # what has arrived and is due is our delay
        silent = now - self._since
        if self._deciding:
            return False
        if self.agent.secured is None:
            return silent - (ticket.delay if ticket is not None else 0.0) > HANDSHAKE
        if self._exchange is None:
            return self._requests.unread > 0 and self._waiting is None and silent > HEAD_TIME
        held = self._blocked or bool(self._detained) or self._exchange.waits
        return not self._requests.complete and not held and silent > BODY_TIME

    def check(self, now: float) -> None:
        """Close the connection of an agent that does not finish what it began to send, that takes nothing more of its
        answer, or that has left."""
        agent, exchange = self.agent, self._exchange
        if agent.closed:
            return
        if agent.paused and agent.broken:
            agent.abort()
        elif exchange and self.abandoned and now - self._since > HALF_CLOSED:
            exchange.left = self._ended
            self._break(AGENT_LEFT)
        elif agent.stuck(now) > STUCK:
            end_with_reset(agent.socket)  # else the system holds for minutes what it does not take
            self._break("the agent took nothing more of the answer")
        elif self.stalled(now):
            self._break("the agent did not finish what it began to send")
        elif self._idle(now):
            self._close()
        else:
            self._regulate()

    def _idle(self, now: float) -> bool:
        """Whether the connection ends as a master ends it over which nothing is asked: when the master has done so, but
        not while an agent might still ask."""
        if not self.agent.secured or self._exchange or self._waiting or self._requests.unread or self.agent.unsent:
            return False
        if self._master is not None:
            return False  # it may have another patience
        return now - self._since > (RESTING if self._master_left else IDLE)

    # -- records ------------------------------------------------------------------------------------

    def _agent_leg(self) -> Leg:
        if self._state:
            return self._state.leg(self._facts)
        return self._leg or self._facts()

    def _facts(self) -> Leg:
        facts, interception = self.agent.facts(), self.runtime.interception
        return interception.leg(facts) if interception else facts

    def _record(self, error: str | None) -> None:
        """Record the exchange, which has ended; with an error, without a complete answer."""
        exchange, self._exchange = self._exchange, None
        self._pace, self._detained = None, b""
        if exchange is not None:
            if self._ticket is not None:
                self._ticket.end()
            self._write(exchange, error)
            exchange.close()

    @guarded
    def _write(self, exchange: OpenExchange, error: str | None) -> None:
        identity = self._state.identity if self._state else None
        record, spools = exchange.record(error, self._agent_leg(), identity or self._nobody)
        self.runtime.record(record, self._state, None, spools)


def _start(coroutine: Coroutine[None, None, None]) -> None:
    task = asyncio.get_running_loop().create_task(coroutine)
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
