"""Contents of files that a run lists and does not fetch: an agent that is not as far as the recorded one asks for them.

Other runs of the capture may have fetched them. They are taken only if they have the digest that the run lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.model import Exchange, Phase
from inspector.protocol import decode, endpoints, files
from inspector.protocol import documents as d
from inspector.protocol.endpoints import KINDS
from inspector.protocol.kinds import CONTENT, Kind
from inspector.replay import answers, questions

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from inspector.analysis.analyzer import Step
    from inspector.model import Record
    from inspector.protocol.files import Checksum
    from inspector.replay.answers import Answer
    from inspector.replay.questions import Question

_PLUGIN, _FILE = (next(name for name, kind in KINDS.items() if kind is wanted)
                  for wanted in (Kind.PLUGIN_CONTENT, Kind.FILE_CONTENT))  # fmt: skip


def wanted(steps: Iterable[Step], answered: Container[Question]) -> dict[Question, Checksum]:
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


def found(wanted: Mapping[Question, Checksum], records: Iterable[Record]) -> dict[Question, Answer]:
    """Return the answers with wanted contents among records."""
    missing: dict[tuple[str, str], list[Question]] = {}
    for question in wanted:
        missing.setdefault((question.endpoint, question.subject), []).append(question)
    borrowed: dict[Question, Answer] = {}
    for record in records:
        asked = questions.of(record.request) if isinstance(record, Exchange) and _fetched(record) else None
        for question in missing.get((asked.endpoint, asked.subject), ()) if asked else ():
            assert isinstance(record, Exchange)  # noqa: S101 - as above
            assert record.response is not None  # noqa: S101
            content = decode.content(record.response)
            if content is not None and files.check(content, wanted[question]) is files.ChecksumResult.RIGHT:
                borrowed.setdefault(question, answers.of(record))
    return borrowed


def _fetched(exchange: Exchange) -> bool:
    response = exchange.response
    if response is None or response.status != 200 or response.lost:
        return False
    match = endpoints.match(exchange.request.method, exchange.request.target)
    return match is not None and match.endpoint.kind in CONTENT
