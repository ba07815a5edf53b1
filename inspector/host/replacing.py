"""Replace a file of Puppet at once, so that no reader sees half of it, and keep a copy of the old one.

The new file has the owner, the group, the mode and the extended attributes of the old one.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from inspector import inputs
from inspector.errors import InspectorError

if TYPE_CHECKING:
    from pathlib import Path


def replace(
    path: Path, new: bytes, old: bytes | None, *, model: Path, suffix: str = "", modified: bool = True
) -> Path | None:
    """Replace a file, and return the path of the copy of the old one.

    ``old`` is the content that was read before; None: there was no file, so there is no copy. ``model`` has the owner
    and the mode for the new file, and its times unless that is ``modified`` now. ``suffix`` is for the name of the
    copy; without it there is none.

    Raises InspectorError if the file cannot be written, or if it does not have its old content any more; then it is
    unchanged.
    """
    copy = path.with_name(f"{path.name}.{suffix}") if old is not None and suffix else None
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            _create(fresh, new, model, modified=modified)  # a server answers If-Modified-Since by its time
            if copy and old is not None:
                _create(copy, old, path)
            # A server that runs writes this file, too.
            if _content(path) != old:
                if copy:
                    copy.unlink()
                raise InspectorError(f"{path} was changed by another process meanwhile.", "Run this again.")
            fresh.replace(path)
        finally:
            fresh.unlink(missing_ok=True)
        _persist(path.parent)
    except FileExistsError as error:
        raise InspectorError(f"{error.filename} already exists.", "Run this again in a second.") from error
    except OSError as error:
        raise InspectorError(
            f"{path} cannot be written: {error.strerror}. It is unchanged.",
            "Run this as root, and check that the disk is neither full nor read-only.",
        ) from error
    return copy


def give(path: Path, owner: int, group: int, mode: int) -> None:
    """Give a file to an owner and a group, with a mode; what a link leads to stays as it is. Raises InspectorError."""
    try:
        with inputs.opened(path, links=False) as file:
            os.fchown(file.fileno(), owner, group)
            os.fchmod(file.fileno(), mode)
    except OSError as error:
        raise InspectorError(
            f"The owner of {path} cannot be changed: {error.strerror}.", "Run this as root."
        ) from error


def _create(path: Path, data: bytes, model: Path, *, modified: bool = False) -> None:
    """Write a new file with the attributes of another one; its times are other ones only if it is ``modified``."""
    # By descriptors only: root must not follow a link that the directory's owner puts in place of the file.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file, inputs.opened(model, links=False) as like:
            file.write(data)
            file.flush()
            status = os.fstat(like.fileno())
            _copy_attributes(like.fileno(), descriptor, status)
            if not modified:
                os.utime(descriptor, ns=(status.st_atime_ns, status.st_mtime_ns))
            os.fsync(descriptor)
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


def _copy_attributes(source: int, target: int, status: os.stat_result) -> None:
    """Copy owner, group, mode and, where the file system has them, extended attributes (SELinux, access lists)."""
    own = os.fstat(target)
    if (status.st_uid, status.st_gid) != (own.st_uid, own.st_gid):
        os.fchown(target, status.st_uid, status.st_gid)
    os.fchmod(target, stat.S_IMODE(status.st_mode))
    with suppress(OSError):
        for name in os.listxattr(source):
            os.setxattr(target, name, os.getxattr(source, name))


def _content(path: Path) -> bytes | None:
    try:
        return inputs.read(path, links=False)
    except FileNotFoundError:
        return None


def _persist(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
