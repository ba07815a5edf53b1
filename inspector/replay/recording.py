"""One recorded run as the answers of a master."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inspector import regex
from inspector.analysis.analyzer import retrace
from inspector.capture.store import Capture
from inspector.errors import InspectorError
from inspector.model import Exchange, Handshake
from inspector.progress import watched
from inspector.protocol import decode
from inspector.protocol import documents as d
from inspector.protocol.endpoints import KINDS
from inspector.protocol.kinds import BOOTSTRAP, Kind
from inspector.replay import answers, contents, questions
from inspector.summaries import reading
from inspector.summaries.indexed import IndexedCapture
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from inspector.analysis.analyzer import Step
    from inspector.model import Record
    from inspector.progress import Watch
    from inspector.replay.answers import Answer
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
    """It is a certificate for another key than the agent's."""


@dataclass(slots=True)
class Recording:
    """A run, ready to be replayed."""

    run: int
    certname: str
    environment: str | None
    """The one that the agent asked for first."""
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
        if wanted := contents.wanted(recording.steps.values(), recording.answers):
            recording.borrowed = contents.found(wanted, watched(capture.records(), watch, capture.count()))
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
        found = [run for run in real if run.brief.certname == agent.lower()]
        problem = f"There is no run of {clean(agent)!r} in {path}."
    else:
        agents = {run.brief.certname for run in real}
        if len(agents) > 1:
            raise InspectorError(
                f"{path} has runs of {len(agents)} agents.", f"Choose one with --agent or --run. {hint}"
            )
        found = real
        problem = f"There is no run of an agent in {path}."
    if not found:
        raise InspectorError(problem, hint)
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
                elif question := questions.of(exchange.request):
                    recording.answers.setdefault(question, []).append(answers.of(exchange))
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
