"""A capture as lines of JSON, and back: records as ``show --json`` has them, with bodies, and their connections."""

from __future__ import annotations

import base64
import functools
import json
import os
from typing import TYPE_CHECKING, Any

import msgspec

from inspector import inputs
from inspector.analysis import limits
from inspector.analysis.analyzer import Analyzer
from inspector.formats import json_output, lossless
from inspector.model import Connection, Exchange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from inspector.analysis.analyzer import Step
    from inspector.formats.lossless import CaptureItem
    from inspector.model import Message, Record
    from inspector.summaries.summary import RunBrief


def lines(
    items: Iterable[CaptureItem],
    owner: Callable[[int], RunBrief | None] = lambda _: None,
    sentence: Callable[[str], str] | None = None,
) -> Iterator[str]:
    """Yield one line per record and connection (docs/json/export.schema.json). ``owner`` returns the run of a record
    number, ``sentence`` a finding's sentence as it may leave; without it nothing is withheld."""
    analyzer = Analyzer(rules=())
    for item in items:
        if isinstance(item, Connection):
            yield json.dumps(lossless.connection(item), separators=(",", ":"))
        else:
            yield _line(item, _read(analyzer, item), owner(item.seq), sentence or str)


def _read(analyzer: Analyzer, record: Record) -> Step:
    try:
        limits.begin(limits.SECONDS)
        return analyzer.read(record)
    finally:
        limits.end()


def _line(record: Record, step: Step, run: RunBrief | None, sentence: Callable[[str], str]) -> str:
    """Return a record as one JSON object (docs/json/export.schema.json) with its run."""
    shown = json_output.show(step, run)
    for finding in shown.findings:
        finding.message = sentence(finding.message)
    if isinstance(record, Exchange) and isinstance(shown, json_output.PlainExchange):
        shown.request.body = _content(record.request)
        if record.response is not None and shown.response is not None:
            shown.response.body = _content(record.response)
    shown.exact = lossless.exact(record)
    # Even in a file captured text must not contain terminal commands: the file may be printed on a terminal.
    return json.dumps(msgspec.to_builtins(shown), separators=(",", ":"))


def _content(message: Message) -> json_output.PlainBody:
    """Return a body as on the wire (with its Content-Encoding), as text if that is lossless; ``lost`` is the number of
    bytes that were passed on but not recorded."""
    try:
        return json_output.PlainBody(message.body.decode(), msgspec.UNSET, message.lost)
    except UnicodeDecodeError:
        return json_output.PlainBody(msgspec.UNSET, base64.b64encode(message.body).decode(), message.lost)


class _EncodedBody(msgspec.Struct):
    text: str | None = None
    base64: str | None = None

    def bytes(self) -> bytes:
        return (self.text or "").encode() if self.base64 is None else base64.b64decode(self.base64, validate=True)


class _Message(msgspec.Struct):
    headers: list[tuple[str, str]]
    body: _EncodedBody


class _RecordLine(msgspec.Struct):
    """The part of a record's line that is read: the rest repeats the same facts."""

    exact: dict[str, Any]
    request: _Message | None = None
    response: _Message | None = None


def read(path: Path, look: Callable[[float], None] = lambda _: None) -> Iterator[CaptureItem]:
    """Read what ``lines`` wrote, in that order; ``look`` is called with the share that was read. Raises OSError, and
    ValueError at the first line that is something else."""
    with inputs.opened(path) as file:
        size = os.fstat(file.fileno()).st_size or 1
        for number, line in enumerate(iter(functools.partial(file.readline, inputs.LARGE), b""), 1):
            look(file.tell() / size)
            if not line.strip():
                continue
            try:
                yield _item(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise ValueError(f"line {number} is not a record ({error})") from error


def _item(fields: Any) -> CaptureItem:
    if isinstance(fields, dict) and fields.get("kind") == "connection":
        return lossless.connection_of(fields)
    line = msgspec.convert(fields, _RecordLine)
    return lossless.record(line.exact, _message(line.request), _message(line.response))


def _message(message: _Message | None) -> lossless.MessageContent:
    return (lossless.headers(message.headers), message.body.bytes()) if message else lossless.NONE
