"""An exchange under way: the request, the answer as far as it has come, and the record that is made of both."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING

from inspector.model import Exchange, Request, Response
from inspector.proxy.bodies import Body
from inspector.proxy.connect.interception import ADDED
from inspector.proxy.engine import framing
from inspector.proxy.engine.framing import CHUNKED, UNTIL_CLOSE, Refused
from inspector.proxy.limits import INTERIM

if TYPE_CHECKING:
    from inspector.capture.spool import Spool
    from inspector.model import Headers, Identity, Leg
    from inspector.proxy.bodies import Copies
    from inspector.proxy.connect.interception import Addition
    from inspector.proxy.engine.framing import Fields, Head, Reader
    from inspector.proxy.engine.sides import MasterEnd
    from inspector.proxy.faults.injection import Injection

HELD = 2**26
"""Bytes of an answer that is passed on when it is complete: a large site's CRL has some megabytes."""


class OpenExchange:
    """An exchange under way."""

    __slots__ = (
        "_answer_body", "_body", "_held", "_interim", "addition", "answer", "answered", "asked", "began", "ended",
        "head", "injection", "left", "master", "parts", "stripped",
    )  # fmt: skip

    def __init__(self, head: Head, began: float, copies: Copies, payer: str = "") -> None:
        """``began`` is when the request began; ``payer`` is who the copies of its bodies are charged to."""
        self.head = head
        self.began = began
        self.asked: float | None = None
        """When the request was complete."""
        self.stripped: tuple[str, ...] = ()
        """The headers that claimed an identity."""
        self.master: MasterEnd | None = None
        self.injection: Injection | None = None
        """A fault that is injected on purpose."""
        self.addition: Addition | None = None
        """What the agent gets besides the body of a good answer, at its end."""
        self._held = bytearray()
        """The body of such an answer, which is passed on when it is complete."""
        self.answer: Head | None = None
        self.answered: float | None = None
        """When the answer began."""
        self.ended: float | None = None
        """When the answer was complete."""
        self.left: float | None = None
        """When the agent left without the answer."""
        self.parts = False
        """Whether the agent is asked to close the connection after the answer."""
        self._interim = 0
        self._body, self._answer_body = Body(copies, payer), Body(copies, payer)

    def take_request(self, requests: Reader) -> bytes:
        """Read what there is of the request's body; return what is passed on. Raises Refused."""
        piece = requests.body()
        self._body.add(piece)
        if requests.complete:
            self.asked = time.time()
        return framed(self.head, piece, last=requests.complete)

    def take_answer(self, answers: Reader) -> bytes:
        """Read what there is of the answer; return what is passed on. Raises Refused."""
        passed_on = b""
        if self.answered is None:
            self.answered = time.time()
        while self.answer is None:
            head = answers.head(lambda data: framing.response(data, self.head.first[0]))
            if head is None:
                return passed_on
            if head.first[1] >= b"200":
                self.answer = head
                if not self._completes(head):
                    self.addition = None
                    passed_on += head.assembled(_last(head.fields) if self.parts else None)
            else:
                passed_on += self._interim_answer(head)
                self.answered = time.time() if answers.unread else None
        piece = answers.body()
        if self.injection is not None and self.injection.changes:
            piece = self.injection.change(piece)
        self._answer_body.add(piece)
        if self.injection is not None and self.injection.cut_off:
            if self.addition:  # nothing is passed on yet
                passed_on += self.answer.assembled()
                passed_on += framed(self.answer, bytes(self._held), last=False)
            return passed_on + framed(self.answer, piece, last=False)
        if answers.complete:
            self.ended = time.time()
        if self.addition:
            return passed_on + self._completed(self.addition, self.answer, piece, last=answers.complete)
        return passed_on + framed(self.answer, piece, last=answers.complete)

    def _completes(self, head: Head) -> bool:
        """Whether the addition is for this answer."""
        packed = any(name.lower() == b"content-encoding" for name, _ in head.fields)
        return self.addition is not None and head.first[1] == b"200" and head.length != UNTIL_CLOSE and not packed

    def _completed(self, addition: Addition, head: Head, piece: bytes, *, last: bool) -> bytes:
        """Return the whole answer with the addition, once it is complete. Raises Refused."""
        self._held += piece
        if len(self._held) > HELD:
            self.answer = None  # the agent has got nothing of it
            raise Refused(502, "its CA bundle or CRL is too large for the proxy to add its own")
        if not last:
            return b""
        body = bytes(self._held)
        if (completed := addition.added_to(body)) == body:
            self.addition = None
        body = completed
        framing_fields = (b"content-length", b"transfer-encoding")
        fields = tuple(field for field in head.fields if field[0].lower() not in framing_fields)
        return head.assembled((*fields, (b"Content-Length", b"%d" % len(body)))) + body

    @property
    def in_memory(self) -> int:
        """Bytes of it in memory."""
        return len(self._held) + self._body.in_memory + self._answer_body.in_memory

    @property
    def waits(self) -> bool:
        """Whether the agent sends the body when the master asks for it, which it has not done yet."""
        return self.head.expects and not self._interim and not self._body.size

    def invitation(self) -> bytes:
        """Return the interim answer to an agent that waits for it, in the master's place."""
        self._interim += 1
        return b"HTTP/1.1 100 Continue\r\n\r\n"

    def _interim_answer(self, head: Head) -> bytes:
        self._interim += 1
        if self._interim > INTERIM:
            raise Refused(502, f"there are more than {INTERIM} interim answers")
        # Others are left out, as with mitmproxy: no agent asks for them.
        return head.assembled() if self.head.expects and head.first[1] == b"100" else b""

    def record(self, error: str | None, agent: Leg, identity: Identity) -> tuple[Exchange, dict[str, Spool]]:
        """Return the record, and its large bodies. ``error`` is why there is no complete answer."""
        asked, answered = self._body.finish(), self._answer_body.finish()
        method, target, version = (part.decode("latin-1") for part in self.head.first)
        request = Request(
            headers=_text(self.head.fields), body=asked.data, http_version=version, started=self.began,
            ended=self.asked, method=method, target=target, lost=asked.lost, digest=asked.digest,
        )  # fmt: skip
        response = None
        spools = {"request": asked.spool, "response": answered.spool}
        if self.answer is not None and self.left is None:
            version, status, reason = (part.decode("latin-1") for part in self.answer.first)
            response = Response(
                headers=_text(self.answer.fields), body=answered.data, http_version=version, started=self.answered,
                ended=self.ended, status=int(status), reason=reason, lost=answered.lost, digest=answered.digest,
            )  # fmt: skip
        elif spool := spools.pop("response"):
            spool.close()
        exchange = Exchange(
            agent=agent,
            request=request,
            response=response,
            master=self.master.leg() if self.master else None,
            identity=identity,
            error=error,
            stripped=self.stripped,
            failed=None if error is None else self.left or time.time(),
        )
        if self.addition and self.ended is not None:
            exchange = dataclasses.replace(exchange, added=ADDED)
        if self.injection is not None:
            exchange = self.injection.marked(exchange)
        return exchange, {side: spool for side, spool in spools.items() if spool}

    def close(self) -> None:
        """Forget the bodies, unless they were handed on with the record."""
        self._body.close()
        self._answer_body.close()


def _last(fields: Fields) -> Fields:
    """Return the headers of an answer after which the connection is closed."""
    others = tuple(field for field in fields if field[0].lower() not in (b"connection", b"keep-alive"))
    return (*others, (b"Connection", b"close"))


def framed(head: Head, piece: bytes, *, last: bool) -> bytes:
    """Return a piece of a body as it is passed on: of a body in chunks as a chunk of its own."""
    if head.length != CHUNKED:
        return piece
    chunk = b"%x\r\n%s\r\n" % (len(piece), piece) if piece else b""
    return chunk + b"0\r\n\r\n" if last else chunk


def _text(fields: Fields) -> Headers:
    return tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in fields)
