"""The master of a replay: it answers a real agent from one recorded run, and asks nobody else."""

from __future__ import annotations

import functools
import queue
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self
from urllib.parse import unquote

from inspector.lab.master import allowed
from inspector.lab.server import LabServer
from inspector.model import Exchange, Handshake, Response
from inspector.protocol import endpoints
from inspector.protocol.kinds import BOOTSTRAP
from inspector.replay import questions
from inspector.replay.enrolment import Enrolment, Peer, Prepared, Refused, text

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.model import Request
    from inspector.replay.questions import Question
    from inspector.replay.recording import Answer, Recording

SIGNING_REQUEST = 2**14
"""Bytes of the largest body of who has no certificate: a signing request has 2 kB."""
PLACES = 64
"""Connections without a certificate: an agent has one at a time."""
STRANGERS = 10_000
"""Records of connections without a certificate that are written: anybody who reaches the port causes them."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a request was not answered from the recording."""

    question: Question | None
    """None: it is no request of Puppet."""
    reason: str


@dataclass(frozen=True, slots=True)
class Served:
    """A request and its answer, or a failed handshake."""

    record: Exchange | Handshake
    missing: Missing | None = None
    refused: str = ""
    """Why it was refused: who asked does not have the one key that is signed."""


class _Connection(threading.local):
    """What is known of the connection that a thread serves, and of the request under way."""

    def __init__(self) -> None:
        self.peer = Peer()
        self.missing: Missing | None = None
        self.refused = ""


class ReplayMaster:
    """The master; it serves while its context is entered. What happens is put into ``served``.

    It answers only who has the certificate of the one key that it signs; others get what the CA has for everybody.
    ``pace`` is the factor for the recorded delays; 0: no delay.
    """

    def __init__(
        self,
        recording: Recording,
        folder: Path,
        name: str = "localhost",
        address: tuple[str, int] = ("127.0.0.1", 0),
        pace: float = 0.0,
    ) -> None:
        """Create the CA, the certificate for ``name`` and the agent's key, and listen. Raises OSError."""
        self.recording = recording
        self.served: queue.Queue[Served] = queue.Queue()
        self.unused = {answer.seq for answers in recording.answers.values() for answer in answers}
        """The records that nobody asked for yet."""
        prepared = Prepared.create(folder, recording.certname)
        self._enrolment = Enrolment(prepared, recording.signings, revoked=recording.revoked)
        self._place = self._enrolment.ca.enrol(folder / "master", name)
        self._pace = pace
        self._turns: dict[Question, int] = {}
        self._connection = _Connection()
        self._strangers = 0
        self._closing = threading.Event()
        self._lock = threading.Lock()
        context = functools.partial(self._enrolment.ca.server_context, self._place)
        self._server = LabServer(context, self._answer, address, self._report, SIGNING_REQUEST, PLACES)
        self.address = self._server.address

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.close()

    @property
    def unwritten(self) -> int:
        """How many records of connections without a certificate are not in ``served``."""
        return max(0, self._strangers - STRANGERS)

    # -- answering ------------------------------------------------------------------------------------

    def _answer(self, request: Request, certname: str | None) -> Response:
        self._connection.missing, self._connection.refused = None, ""
        self._connection.peer.agent |= certname == self.recording.certname
        try:
            return self._permitted(request, certname)
        except Refused as refused:
            self._connection.refused = str(refused)
            return text(403, f"puppet-inspector replay: refused: {refused}".encode())

    def _permitted(self, request: Request, certname: str | None) -> Response:
        match = endpoints.match(request.method, request.target)
        if match is not None and match.endpoint.kind in BOOTSTRAP:
            found = self._enrolment.answer(match.endpoint.kind, request, match.certname or "", self._connection.peer)
            if found is not None:
                return found
        # The CA has signed this name for one key only, which the handshake has proven. Nobody else gets anything of the
        # recording, nor learns what it has, in no dialect.
        if certname != self.recording.certname:
            raise Refused("without the certificate of the key that was signed, nothing of the recording is given")
        if match is not None and match.dialect == "v3" and not allowed(request, certname):
            path = unquote(request.path)
            reason = f"Forbidden request: {path} (method :{request.method.lower()}). "
            return Response(status=403, body=(reason + "Please see the server logs for details.").encode())
        return self._recorded(request)

    def _recorded(self, request: Request) -> Response:
        question = questions.question_of(request)
        answers = self._answers(question)
        if question is None or not answers:
            return self._refuse(question, self._explained(question))
        with self._lock:
            turn = self._turns.get(question, 0)
            self._turns[question] = turn + 1
            answer = answers[min(turn, len(answers) - 1)]
            self.unused.discard(answer.seq)
        self._wait(answer)
        if answer.trouble:
            return self._refuse(question, f"record {answer.seq} has no usable answer: {answer.trouble}")
        if answer.response is None:
            raise ConnectionAbortedError(f"record {answer.seq} has no answer either")
        return _sendable(answer.response)

    def _answers(self, question: Question | None) -> list[Answer]:
        if question is None:
            return []
        borrowed = self.recording.borrowed.get(question)
        return self.recording.answers.get(question) or ([borrowed] if borrowed else [])

    def _explained(self, question: Question | None) -> str:
        """Return what is known of a request that was not recorded."""
        if question is None:
            return "it is no request of an agent that was recorded"
        near = questions.closest(question, self.recording.answers)
        if near is None:
            return f"{question} was not recorded, and nothing like it"
        seq = self.recording.answers[near][0].seq
        differs = "; ".join(questions.differences(question, near))
        return f"{question} was not recorded ({differs}); the closest is record {seq}, {near}"

    def _refuse(self, question: Question | None, reason: str) -> Response:
        self._connection.missing = Missing(question, reason)
        return text(404, f"puppet-inspector replay: {reason}".encode())

    def _wait(self, answer: Answer) -> None:
        if self._pace and answer.delay:
            self._closing.wait(answer.delay * self._pace)

    def _report(self, record: Exchange | Handshake) -> None:
        missing, refused = None, ""
        if isinstance(record, Exchange):
            missing, refused = self._connection.missing, self._connection.refused
        if not any(leg.peer_chain for leg in record.legs):
            with self._lock:
                self._strangers += 1
            if self._strangers > STRANGERS:
                return
        self.served.put(Served(record, missing, refused))


def _sendable(response: Response) -> Response:
    """Return a recorded answer without what would be another header, or another answer, on the wire."""
    headers = tuple(
        (name, value)
        for name, value in response.headers
        if name.isascii() and name.isprintable() and not any(mark in name + value for mark in "\r\n\0")
        and _is_latin(value)
    )  # fmt: skip
    reason = response.reason if response.reason.isprintable() and _is_latin(response.reason) else ""
    return replace(response, headers=headers, reason=reason)


def _is_latin(text: str) -> bool:
    """Whether a text has nothing but what can be in a header on the wire."""
    return all(character <= "\xff" for character in text)
