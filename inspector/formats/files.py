"""New files for what is exported: never over another file, and their owner's only."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from typing import IO, TYPE_CHECKING

from inspector.errors import InspectorError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


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
