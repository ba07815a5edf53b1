"""Records for other programs: one JSON object a line, as ``show --json`` has it and with the bodies.

Secrets are masked unless they are wanted. The files are new, and their owner's only.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import errno
import json
import os
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from inspector.analysis.analyzer import retrace
from inspector.errors import InspectorError
from inspector.formats import json_output, lossless
from inspector.model import Exchange
from inspector.privacy.redact import redacted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from inspector.analysis.analyzer import Step
    from inspector.model import Message, Record
    from inspector.summaries.summary import RunBrief


def jsonl(
    records: Iterable[Record], owner: Callable[[int], RunBrief | None] = lambda _: None, *, secrets: bool = False
) -> Iterator[str]:
    """A line for each record (docs/json/export.schema.json), secrets masked unless they are wanted. ``owner`` tells
    whose a record is, by its number."""
    for each in records:
        record = each if secrets else redacted(each)
        run = owner(record.seq)
        (step,) = retrace([record])
        told = json_output.show(step, [each for each in run.findings if record.seq in each.seqs] if run else [])
        told["run"] = (run.number or None) if run else None
        told["certname"] = (run.certname if run else None) or step.certname
        if isinstance(record, Exchange):
            told["request"]["body"] = body(record.request)
            if record.response is not None:
                told["response"]["body"] = body(record.response)
        told["exact"] = lossless.told(record)
        # Not even in a file may captured text be a terminal's command: whoever looks at it uses one.
        yield json.dumps(told, separators=(",", ":"))


def masked(step: Step) -> Step:
    """A step without its record's secrets."""
    record = redacted(step.record)
    if record is step.record:
        return step
    (again,) = retrace([record])
    return dataclasses.replace(step, record=record, match=again.match, request=again.request, response=again.response)


def body(message: Message) -> dict[str, Any]:
    """A body as on the wire (with its Content-Encoding), as text if that says all of it; ``lost`` are the bytes that
    were passed on and not kept."""
    try:
        told = {"text": message.body.decode()}
    except UnicodeDecodeError:
        told = {"base64": base64.b64encode(message.body).decode()}
    return told | {"lost": message.lost}


def write(lines: Iterable[str], path: Path) -> int:
    """Write lines to a new file; returns their number. Raises InspectorError."""
    number = 0
    with created(path) as file:
        for number, line in enumerate(lines, 1):  # noqa: B007 - it is what is returned
            file.write(line.encode() + b"\n")
    return number


def named(text: str) -> Path:
    """The path that a user typed, where ``~`` may stand for a home directory. Raises InspectorError."""
    try:
        path = Path(text.strip()).expanduser()
    except RuntimeError as error:
        raise InspectorError(f"{text.strip()} can't be written: {error}", "Choose another place.") from error
    if not path.name or "\0" in text:
        raise InspectorError(f"{text.strip()!r} is no file's name.", "Choose another one.")
    return path


@contextlib.contextmanager
def created(path: Path) -> Iterator[IO[bytes]]:
    """A new file to write to, mode 0600; what could not be written whole is taken away again. Raises InspectorError,
    also where there is a file already."""
    made = False
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        made = True
        with os.fdopen(descriptor, "wb") as file:
            yield file
    except BaseException as error:
        if made:
            with contextlib.suppress(OSError):
                path.unlink()
        if not isinstance(error, OSError):
            raise
        if error.errno == errno.EEXIST and not made:
            raise InspectorError(f"There is a file at {path} already.", "Choose another name.") from error
        raise InspectorError(f"{path} can't be written: {error.strerror}.", "Choose another place.") from error
