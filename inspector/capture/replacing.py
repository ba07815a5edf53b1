"""Put a capture in its place when it is complete: whatever ends the work before, nothing of it remains."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.capture import guard, paths
from inspector.capture.store import Capture
from inspector.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Iterator


def must_be_new(target: Path) -> None:
    """Raise CaptureError if something is at a path."""
    if os.path.lexists(target):
        raise CaptureError(f"{target} already exists.", "Choose another name.")


def close(capture: Capture) -> None:
    """Close a capture that was created, and remove it if it has no record."""
    empty = capture.last == 0 and not capture.pending
    capture.close()
    if empty:
        for ending in ("", *guard.BESIDE):
            paths.companion(capture.path, ending).unlink(missing_ok=True)


@contextlib.contextmanager
def created(target: Path, *, after: int = 0) -> Iterator[Capture]:
    """Create a capture, which is at its path when it is complete. Raises CaptureError, also if something is there.

    Records are numbered after ``after``.
    """
    must_be_new(target)
    with replacement(target) as path:
        try:
            made = Capture.create(path, after=after)
        except CaptureError as error:
            raise error.__cause__ or error from None  # it names a file that will not be there
        try:
            yield made
            made.close()
        finally:
            made.abandon()


@contextlib.contextmanager
def replacement(target: Path) -> Iterator[Path]:
    """Provide an empty file beside another one, which replaces that one when it is complete. Raises CaptureError."""
    written: list[Path] = []
    try:
        paths.make_folder(target.parent)
        # Mode 0600, and of a name that nobody knows: in a directory of another user it could be a link.
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        temporary = Path(name)
        written = [paths.companion(temporary, ending) for ending in ("", *guard.BESIDE)]
        os.close(descriptor)
        yield temporary
        temporary.replace(target)
    except (sqlite3.Error, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CaptureError(
            f"Cannot write {target}: {reason}.", "Check the input files for damage, and the disk for free space."
        ) from error
    finally:
        for path in written:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
