"""One recorded run as the answers of a master."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inspector import regex
from inspector.analysis.analyzer import retrace
from inspector.capture.store import Capture
from inspector.errors import InspectorError
from inspector.model import Exchange, Handshake, Phase
from inspector.progress import watched
from inspector.protocol import decode, endpoints, files
from inspector.protocol import documents as d
from inspector.protocol.endpoints import KINDS
from inspector.protocol.kinds import BOOTSTRAP, CONTENT, Kind
from inspector.replay import questions
from inspector.summaries import reading
from inspector.summaries.indexed import IndexedCapture
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping
    from pathlib import Path

    from inspector.analysis.analyzer import Step
    from inspector.model import Record, Response
    from inspector.progress import Watch
    from inspector.protocol.files import Checksum
    from inspector.replay.questions import Question
    from inspector.summaries.index import IndexedRun

UNNAMED = "agent.example"
"""The certname for a run whose own was not recorded."""
_CERTNAME = regex.compile(r"[a-z0-9_][a-z0-9._-]{0,254}")
_ENVIRONMENT = regex.compile(r"[A-Za-z0-9_]{1,255}")


@dataclass(frozen=True, slots=True)
class Signing:
    """A recorded answer of the CA to a signing request, or to the question for the certificate."""

    kind: Kind
    status: int
    body: bytes
    foreign: bool = False
    """Whether it is a certificate for another key than the agent's."""


@dataclass(slots=True)
class Recording:
    """A run, ready to be replayed."""

    run: int
    certname: str
    environment: str | None
    """The environment that the agent asked for first."""
    shared: bool
    """Values were withheld from the capture, and names replaced."""
    answers: dict[Question, list[Answer]] = field(default_factory=dict)
    signings: list[Signing] = field(default_factory=list)
    steps: dict[int, Step] = field(default_factory=dict)
    """The exchanges that are answered, decoded, by their numbers."""
    borrowed: dict[Question, Answer] = field(default_factory=dict)
    """Contents of files that other runs of the capture fetched, and this one lists."""
    revoked: bool = False
    """The agent's certificate was refused because it was revoked."""
    refusals: int = 0
    """Handshakes that failed for another reason."""

    @property
    def count(self) -> int:
        """How many answers there are."""
        return len(self.steps)

    @property
    def catalogs(self) -> Iterator[tuple[int, d.Catalog]]:
        """The catalogs, each with its record."""
        for seq, step in self.steps.items():
            if isinstance(step.response, d.Catalog):
                yield seq, step.response

    def plugins(self) -> list[str]:
        """Return the plugins whose content it can give."""
        known = [*self.answers, *self.borrowed]
        return sorted(one.subject for one in known if KINDS[one.endpoint] is Kind.PLUGIN_CONTENT)

    def asked(self, kind: Kind) -> bool:
        """Whether the run has a request of a kind."""
        return any(step.match and step.match.endpoint.kind is kind for step in self.steps.values())


def read(path: Path, watch: Watch, number: int | None = None, agent: str | None = None) -> Recording:
    """Return the run with a number, or the latest of an agent; without either the latest of the only agent.

    Raises InspectorError.
    """
    chosen = _chosen(path, _runs(path, watch), number, agent)
    brief = chosen.brief
    certname, environment = brief.certname or UNNAMED, brief.environment_asked
    if not _CERTNAME.fullmatch(certname):
        raise InspectorError(
            f"Run {brief.number} of {path} is of {clean(certname)!r}, which is no certname.", "Choose another run."
        )
    if environment and not _ENVIRONMENT.fullmatch(environment):
        environment = None
    with Capture.open(path) as capture:
        recording = Recording(brief.number or 0, certname, environment, "shared" in capture.meta())
        _fill(recording, (record for seq in chosen.seqs if (record := capture.record(seq)) is not None))
        if wanted := contents_listed(recording.steps.values(), recording.answers):
            recording.borrowed = contents_found(wanted, watched(capture.records(), watch, capture.count()))
    return recording


def _runs(path: Path, watch: Watch) -> list[IndexedRun]:
    """Return the runs of a capture."""
    with IndexedCapture.whole(path) as indexed:
        if indexed is not None:
            return indexed.indexed_runs
    (found,) = reading.read_together([path], watch)
    return found.runs


def _chosen(path: Path, runs: list[IndexedRun], number: int | None, agent: str | None) -> IndexedRun:
    real = [run for run in runs if run.brief.number and not run.brief.tool]
    hint = f"`puppet-inspector runs {path}` lists the runs."
    if number is not None:
        found = [run for run in real if run.brief.number == number]
        problem = f"There is no run {number} of an agent in {path}."
    elif agent is not None:
        wanted = regex.glob(agent.lower())
        found = [run for run in real if run.brief.certname and wanted.fullmatch(run.brief.certname)]
        problem = f"There is no run of {clean(agent)!r} in {path}."
    else:
        found = real
        problem = f"There is no run of an agent in {path}."
    if not found:
        raise InspectorError(problem, hint)
    agents = {run.brief.certname for run in found}
    if len(agents) > 1:
        which = f" that {clean(agent)!r} means" if agent is not None else ""
        raise InspectorError(
            f"{path} has runs of {len(agents)} agents{which}.", f"Choose one with --agent or --run. {hint}"
        )
    return next((run for run in reversed(found) if any(span.phase == "catalog" for span in run.brief.spans)), found[-1])


def _fill(recording: Recording, records: Iterable[Record]) -> None:
    key = None
    for step in retrace(records):
        match step.record:
            case Handshake() as handshake:
                if "revoked" in (handshake.alert or "") or "revoked" in handshake.reason:
                    recording.revoked = True
                else:
                    recording.refusals += 1
            case Exchange() as exchange if step.match is not None:
                kind = step.match.endpoint.kind
                if isinstance(step.request, d.CertificateRequest):
                    key = step.request.key
                if kind in BOOTSTRAP:
                    _sign(recording, step, exchange, key)
                elif question := questions.question_of(exchange.request):
                    recording.answers.setdefault(question, []).append(answer_of(exchange))
                    recording.steps[exchange.seq] = step
            case _:
                pass


def _sign(recording: Recording, step: Step, exchange: Exchange, key: str | None) -> None:
    assert step.match is not None  # noqa: S101 - the caller looked
    kind = step.match.endpoint.kind
    if kind not in (Kind.CSR, Kind.CERTIFICATE) or exchange.response is None:
        return
    keys = {found.key for found in step.response.certificates} if isinstance(step.response, d.Certificates) else set()
    foreign = bool(keys and key and key not in keys)
    body = b"" if keys else decode.content(exchange.response) or b""
    recording.signings.append(Signing(kind, exchange.response.status, body, foreign))


# -- answers ---------------------------------------------------------------------------------------------------

LONGEST = 600.0
"""Seconds that an answer is delayed at most: agents wait as long."""
REDIRECTS = (301, 302, 303, 307, 308)


@dataclass(frozen=True, slots=True)
class Answer:
    """A recorded answer."""

    seq: int
    response: Response | None
    """None: the connection ended without one, or it cannot be given."""
    delay: float
    """Seconds from the request to the answer."""
    trouble: str = ""
    """Why it cannot be given; empty if it can."""


def answer_of(exchange: Exchange) -> Answer:
    """Return the answer of an exchange."""
    response = exchange.response
    if response is None:
        return Answer(exchange.seq, None, 0.0)
    delay = (response.started or 0.0) - (exchange.request.ended or response.started or 0.0)
    delay = min(max(delay, 0.0), LONGEST) if delay == delay else 0.0  # NaN
    if response.lost:
        trouble = f"only {len(response.body)} of its {response.size} bytes were recorded (puppet_keep_body)"
        return Answer(exchange.seq, None, delay, trouble)
    if response.status in REDIRECTS:
        return Answer(exchange.seq, None, delay, "it leads to another server")
    return Answer(exchange.seq, response, delay)


# -- contents of files that a run lists and does not fetch -----------------------------------------------------

_PLUGIN, _FILE = (next(name for name, kind in KINDS.items() if kind is wanted)
                  for wanted in (Kind.PLUGIN_CONTENT, Kind.FILE_CONTENT))  # fmt: skip


def contents_listed(steps: Iterable[Step], answered: Container[Question]) -> dict[Question, Checksum]:
    """Return what a run lists and does not fetch, with the checksums that it lists."""
    listed: dict[Question, Checksum] = {}
    for step in steps:
        listed.update(_listed(step))
    return {question: checksum for question, checksum in listed.items() if question not in answered}


def _listed(step: Step) -> Iterator[tuple[Question, Checksum]]:
    match = step.match
    if match is None or not isinstance(step.response, d.FileMetadata | d.FileMetadatas):
        return
    entries = step.response.files if isinstance(step.response, d.FileMetadatas) else [step.response]
    name = _PLUGIN if match.endpoint.phase is Phase.PLUGINS else _FILE
    for entry in entries:
        if entry.type == "file" and entry.checksum is not None:
            path = f"{match.key}/{entry.relative_path}" if entry.relative_path else match.key or ""
            yield questions.Question(name, "GET", path, match.environment or "", frozenset()), entry.checksum


def contents_found(wanted: Mapping[Question, Checksum], records: Iterable[Record]) -> dict[Question, Answer]:
    """Return the answers with wanted contents among records."""
    missing: dict[tuple[str, str], list[Question]] = {}
    for question in wanted:
        missing.setdefault((question.endpoint, question.subject), []).append(question)
    borrowed: dict[Question, Answer] = {}
    for record in records:
        asked = questions.question_of(record.request) if isinstance(record, Exchange) and _fetched(record) else None
        for question in missing.get((asked.endpoint, asked.subject), ()) if asked else ():
            assert isinstance(record, Exchange)  # noqa: S101 - as above
            assert record.response is not None  # noqa: S101
            content = decode.content(record.response)
            if content is not None and files.check(content, wanted[question]) is files.ChecksumResult.RIGHT:
                borrowed.setdefault(question, answer_of(record))
    return borrowed


def _fetched(exchange: Exchange) -> bool:
    response = exchange.response
    if response is None or response.status != 200 or response.lost:
        return False
    match = endpoints.match(exchange.request.method, exchange.request.target)
    return match is not None and match.endpoint.kind in CONTENT
