"""Files that somebody else may have made are opened here: regular files only, and no more of them than can be used.

A pipe without a writer would be waited for, and a device (through a link, for example) has no end.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SMALL = 2**24
"""Bytes of a file that a person writes, or of a certificate or key."""
LARGE = 2**30
"""Bytes of a file that a program writes."""


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


def regular(path: Path, *, links: bool = True) -> bool:
    """Whether there is a regular file at a path, or nothing; without ``links`` a link is none."""
    try:
        return stat.S_ISREG(path.stat(follow_symlinks=links).st_mode)
    except FileNotFoundError:
        return True
    except OSError:
        return False
