"""The master of a replay: it answers a real agent from one recorded run, and asks nobody else."""

from __future__ import annotations

import functools
import queue
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self
from urllib.parse import unquote

from cryptography import x509

from inspector.host import pki
from inspector.lab.ca import LabCA
from inspector.lab.master import allowed
from inspector.lab.server import LabServer
from inspector.model import Exchange, Handshake, Response
from inspector.protocol import endpoints
from inspector.protocol.kinds import BOOTSTRAP, Kind
from inspector.replay import questions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

    from inspector.model import Request
    from inspector.replay.questions import Question
    from inspector.replay.recording import Answer, Recording, Signing

_TEXT = (("Content-Type", "text/plain"), ("X-Puppet-Version", "7.23.0"))


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


class ReplayMaster:
    """The master; it serves while its context is entered. What happens is put into ``served``.

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
        """Create the CA and the certificate for ``name`` in a directory, and listen. Raises OSError."""
        self.recording = recording
        self.served: queue.Queue[Served] = queue.Queue()
        self.unused = {answer.seq for answers in recording.answers.values() for answer in answers}
        """The records that nobody asked for yet."""
        self._enrolment = Enrolment(recording.signings, revoked=recording.revoked)
        self._place = self._enrolment.ca.enrol(folder / "master", name)
        self._pace = pace
        self._turns: dict[Question, int] = {}
        self._missing: dict[int, Missing] = {}
        self._closing = threading.Event()
        self._lock = threading.Lock()
        context = functools.partial(self._enrolment.ca.server_context, self._place)
        self._server = LabServer(context, self._answer, address, self._report)
        self.address = self._server.address

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.close()

    # -- answering ------------------------------------------------------------------------------------

    def _answer(self, request: Request, certname: str | None) -> Response:
        match = endpoints.match(request.method, request.target)
        if match is not None and match.endpoint.kind in BOOTSTRAP:
            found = self._enrolment.answer(match.endpoint.kind, request, match.certname or "")
            if found is not None:
                return found
        elif match is not None and match.dialect == "v3" and not allowed(request, certname):
            path = unquote(request.path)
            text = f"Forbidden request: {path} (method :{request.method.lower()}). "
            return Response(status=403, body=(text + "Please see the server logs for details.").encode())
        return self._recorded(request)

    def _recorded(self, request: Request) -> Response:
        question = questions.question_of(request)
        answers = self._answers(question)
        if question is None or not answers:
            return self._refuse(request, question, self._explained(question))
        with self._lock:
            turn = self._turns.get(question, 0)
            self._turns[question] = turn + 1
            answer = answers[min(turn, len(answers) - 1)]
            self.unused.discard(answer.seq)
        self._wait(answer)
        if answer.trouble:
            return self._refuse(request, question, f"record {answer.seq} has no usable answer: {answer.trouble}")
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

    def _refuse(self, request: Request, question: Question | None, reason: str) -> Response:
        with self._lock:
            self._missing[id(request)] = Missing(question, reason)
        return Response(status=404, headers=_TEXT, body=f"puppet-inspector replay: {reason}".encode())

    def _wait(self, answer: Answer) -> None:
        if self._pace and answer.delay:
            self._closing.wait(answer.delay * self._pace)

    def _report(self, record: Exchange | Handshake) -> None:
        missing = None
        if isinstance(record, Exchange):
            with self._lock:
                missing = self._missing.pop(id(record.request), None)
        self.served.put(Served(record, missing))


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


# -- enrolment -----------------------------------------------------------------------------------------


class Enrolment:
    """The CA of a replay: it signs the agent's own key, with the states of the recorded bootstrap in their order.

    It answers for ``/puppet-ca/v1``, and is safe to use from several threads. A signing request with another key begins
    the bootstrap anew. ``revoked``: the certificate is revoked as soon as it is issued.
    """

    def __init__(self, signings: Sequence[Signing] = (), *, revoked: bool = False) -> None:
        self.ca = LabCA("puppet-inspector replay")
        self._signings = signings
        self._revoked = revoked
        self._asked = {Kind.CSR: 0, Kind.CERTIFICATE: 0}
        self._key: CertificatePublicKeyTypes | None = None
        self._lock = threading.Lock()

    def answer(self, kind: Kind, request: Request, name: str) -> Response | None:
        """Answer a request about a name; None: there is nothing to answer it with."""
        with self._lock:
            match kind:
                case Kind.CA_BUNDLE:
                    return _text(200, self.ca.ca_bundle)
                case Kind.CRL:
                    return _text(200, self.ca.crl_bundle)
                case Kind.CSR_LOOKUP:
                    return _found(self.ca.request(name), request)
                case Kind.CSR:
                    return self._submit(name, request.body)
                case Kind.CERTIFICATE:
                    return self._certificate(name, request)
        return None

    def _submit(self, name: str, body: bytes) -> Response:
        self._begin(name, body)
        status, text = self.ca.submit(name, body)
        recorded = self._next(Kind.CSR)
        if self.ca.state(name) is None or recorded is None:
            return _text(status, text.encode())
        return _text(recorded.status, recorded.body)

    def _begin(self, name: str, body: bytes) -> None:
        """Forget what there is of a certname, if the key is another one."""
        try:
            key = x509.load_pem_x509_csr(body).public_key()
        except ValueError:
            return
        if key != self._key:
            self.ca.clean(name)
            self._key, self._asked = key, dict.fromkeys(self._asked, 0)

    def _certificate(self, name: str, request: Request) -> Response:
        recorded = self._next(Kind.CERTIFICATE)
        if recorded is not None and recorded.status != 200:
            return _text(recorded.status, recorded.body)
        if recorded is not None and recorded.foreign:
            return _text(200, pki.pem(pki.sign(self.ca.authority, pki.new_key().public_key(), name)))
        if self.ca.state(name) == "requested":
            self.ca.sign(name)
            if self._revoked:
                self.ca.revoke(name)
        return _found(self.ca.certificate(name), request)

    def _next(self, kind: Kind) -> Signing | None:
        """Return the recorded answer whose turn it is; the last one repeats, unless a certificate was issued."""
        recorded = [signing for signing in self._signings if signing.kind is kind]
        at = self._asked[kind]
        self._asked[kind] += 1
        if at < len(recorded):
            return recorded[at]
        issued = any(signing.kind is Kind.CERTIFICATE and signing.status == 200 for signing in self._signings)
        return None if issued or not recorded or kind is Kind.CSR else recorded[-1]


def _text(status: int, body: bytes) -> Response:
    return Response(status=status, headers=_TEXT, body=body)


def _found(body: bytes | None, request: Request) -> Response:
    if body is not None:
        return _text(200, body)
    kind, _, name = unquote(request.path).rpartition("/")
    return _text(404, f"Could not find {kind.rpartition('/')[2]} {name}".encode())
