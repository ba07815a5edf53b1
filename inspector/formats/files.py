"""New files for exports: never over an existing file, and readable by their owner only."""

from __future__ import annotations

import contextlib
import errno
import os
from typing import IO, TYPE_CHECKING

from inspector import inputs
from inspector.errors import InspectorError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


def write(lines: Iterable[str], path: Path) -> int:
    """Write lines to a new file; return their number. Raises InspectorError."""
    number = 0
    with created(path) as file:
        for number, line in enumerate(lines, 1):  # noqa: B007 - it is what is returned
            file.write(line.encode() + b"\n")
    return number


def named(text: str) -> Path:
    """Return the path that a user typed, with ``~`` expanded. Raises InspectorError."""
    path = inputs.expanded(text.strip())
    if not path.name or "\0" in text:
        raise InspectorError(f"{text.strip()!r} is not a file name.", "Choose another name.")
    return path


OPTION = "Choose another name with -o."
"""The hint where an option names the file."""


def must_be_new(path: Path, hint: str = "Choose another name.") -> None:
    """Raise InspectorError if something is at a path."""
    if os.path.lexists(path):
        raise InspectorError(f"{path} already exists.", hint)


@contextlib.contextmanager
def created(path: Path) -> Iterator[IO[bytes]]:
    """Create a file to write to, mode 0600; it is deleted again if writing fails. Raises InspectorError, also if it
    exists."""
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
            raise InspectorError(f"{path} already exists.", "Choose another name.") from error
        raise InspectorError(f"Cannot write {path}: {error.strerror}.", "Choose another path.") from error
