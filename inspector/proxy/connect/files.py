"""The node's CA bundle and CRLs, and the copies that its agent uses in one run.

A copy has the content, the times, the owner and the mode of the node's own file, and besides it what the run adds. What
the agent writes there is written to the node's file as soon as it is complete, without the addition, so that a run that
is killed leaves what a direct run could have left; the same holds for another owner or mode that it gives the copy. A
file that was missing stays missing, and one at which an agent stops is left to it.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from inspector import inputs
from inspector.errors import InspectorError
from inspector.host import pki, replacing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CERTIFICATE, CRL = b"CERTIFICATE", b"X509 CRL"
"""The labels of what is in the two files."""
WRITTEN = 0.05
"""Seconds for which a copy must be unchanged: Puppet writes it in place, in several steps."""


class RunFile:
    """A file of the node, and its copy."""

    def __init__(self, own: Path, copy: Path, addition: bytes, removed: Callable[[bytes], bytes]) -> None:
        """Make the copy of the node's ``own`` file. ``removed`` takes the addition out of a content."""
        self.own, self.copy = own, copy
        self._removed = removed
        self._content = _read(own) if usable(own, _label(addition)) else None
        """The content of the node's file, as this run read or wrote it; None if there is none, or none that is used."""
        if self._content is not None:
            times = own.stat()
            # Before the rest, of which an agent then reads what it reads without.
            pki.write_private(copy, addition + self._content)
            with suppress(PermissionError):  # who is not root has files of its own only
                os.chown(copy, times.st_uid, times.st_gid)
            copy.chmod(times.st_mode & 0o777)
            os.utime(copy, ns=(times.st_atime_ns, times.st_mtime_ns))
        self._state = _state(copy)
        self._rights = _rights(copy)

    def sync(self, *, ended: bool = False) -> None:
        """Write to the node's file what the agent has written to the copy. ``ended``: the agent writes nothing more.

        Raises InspectorError: the node's file cannot be written, or somebody else has changed it.
        """
        self._sync_content(ended=ended)
        rights = _rights(self.copy)
        if rights != self._rights and rights is not None and self._content is not None:
            self._rights = rights
            replacing.give(self.own, *rights)

    @property
    def unsettled(self) -> bool:
        """Whether the agent has written the copy so recently that it is not passed on yet."""
        try:
            changed = time.time() - self.copy.stat().st_ctime
        except OSError:
            return False
        return changed <= WRITTEN and _state(self.copy) != self._state

    def _sync_content(self, *, ended: bool) -> None:
        state = _state(self.copy)
        if state == self._state or state is None:
            return
        content = _read(self.copy)
        changed = time.time() - self.copy.stat().st_ctime
        complete = content is not None and content.rstrip().endswith(b"-----")
        if _state(self.copy) != state or not complete or not (ended or changed > WRITTEN):
            return
        self._state = state
        cleaned = self._removed(content or b"")
        if cleaned == self._content:
            try:
                os.utime(self.own, ns=(state[0], state[0]))  # "not modified": the agent notes when it asked
            except OSError as error:
                raise InspectorError(f"{self.own} cannot be written: {error.strerror}.") from error
            return
        replacing.replace(self.own, cleaned, self._content, model=self.copy, modified=False)
        self._content = cleaned


def usable(path: Path, label: bytes) -> bool:
    """Whether an agent goes on with a file: it is not there yet, or has a PEM block with this label, as Puppet looks
    for it."""
    try:
        content = _read(path)
    except OSError:
        return False
    begin, end = (b"-----%s %s-----" % (word, label) for word in (b"BEGIN", b"END"))
    return content is None or end in content.partition(begin)[2]


def _label(block: bytes) -> bytes:
    return block.removeprefix(b"-----BEGIN ").partition(b"-----")[0]


def _read(path: Path) -> bytes | None:
    try:
        return inputs.read(path)
    except FileNotFoundError:
        return None


def _rights(path: Path) -> tuple[int, int, int] | None:
    """Return the owner, the group and the mode."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_uid, status.st_gid, status.st_mode & 0o777


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
