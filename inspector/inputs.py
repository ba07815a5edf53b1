"""Files that somebody else may have made are opened here: regular files only, and no more of them than can be used.

A pipe without a writer would be waited for, and a device (through a link, for example) has no end.
"""

from __future__ import annotations

import errno
import gzip
import os
import stat
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING

from inspector.errors import InspectorError

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALL = 2**24
"""Bytes of a file that a person writes, or of a certificate or key."""
LARGE = 2**30
"""Bytes of a file that a program writes."""
LINE = 2**20
"""Bytes of a line of a log."""
GZIP = b"\x1f\x8b"
"""How a file begins that gzip compressed."""


def expanded(text: str | Path) -> Path:
    """Return the path that a user named, with ``~`` expanded. Raises InspectorError."""
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise InspectorError(f"{text} has no home directory: {error}", "Use an absolute path.") from error


def opened(path: Path, *, links: bool = True) -> IO[bytes]:
    """Open a file to read; without ``links`` not through one. Raises OSError, also if it is not a regular file."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | (0 if links else os.O_NOFOLLOW)
    file = os.fdopen(os.open(path, flags), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return file


def read(path: Path, most: int = LARGE, *, links: bool = True) -> bytes:
    """Return the content of a file. Raises OSError, also if it is larger than ``most`` bytes."""
    with opened(path, links=links) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EINVAL, f"it is larger than {most} bytes", str(path))
    return data


def exists(path: Path) -> bool:
    """Tell whether something is at a path, or where a link there points to. Raises OSError if this user may not know.

    ``Path.exists``, ``is_file`` and ``is_dir`` answer False then, from Python 3.14 on: what is said of a file that is
    missing would be said of one that this user may not read.
    """
    return _mode(path) != 0


def is_file(path: Path) -> bool:
    """Tell whether a regular file is at a path, or where a link there points to. Raises OSError as ``exists``."""
    return stat.S_ISREG(_mode(path))


def is_directory(path: Path) -> bool:
    """Tell whether a directory is at a path, or where a link there points to. Raises OSError as ``exists``."""
    return stat.S_ISDIR(_mode(path))


def _mode(path: Path) -> int:
    """Return the mode of what is at a path; 0 if there is nothing, nor can be."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a name with a NUL
        return 0
    except OSError as error:
        if error.errno == errno.ELOOP:
            return 0
        raise


def lines(path: Path, longest: int = LINE, start: int = 0) -> Iterator[tuple[bytes, int]]:
    """Yield the lines of a file, also of one that gzip compressed, each with the bytes of the file that were read so
    far. A longer line is cut. ``start``: the first whole line is the one after this byte, unless the file is
    compressed. Raises OSError."""
    with opened(path) as file:
        compressed = file.peek(2)[:2] == GZIP  # type: ignore[attr-defined]
        text: IO[bytes] = gzip.GzipFile(fileobj=file) if compressed else file  # type: ignore[assignment]
        if start and not compressed:
            file.seek(start)
            while (rest := text.readline(longest)) and rest[-1:] != b"\n":
                pass
        try:
            while line := text.readline(longest):
                yield line, file.tell()
                while line[-1:] != b"\n" and (line := text.readline(longest)):
                    pass
        except (EOFError, zlib.error) as error:
            raise OSError(errno.EINVAL, f"it is damaged: {error}", str(path)) from error


def regular(path: Path, *, links: bool = True) -> bool:
    """Whether there is a regular file at a path, or nothing; without ``links`` a link is none."""
    try:
        return stat.S_ISREG(path.stat(follow_symlinks=links).st_mode)
    except FileNotFoundError:
        return True
    except OSError:
        return False
