"""A machine in a directory that costs nothing: the files of another one, with all changes in memory.

What a program left there is what lies in the layer of changes.
"""

from __future__ import annotations

import os
import stat
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.real.releases import System

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

VOLATILE = ("srv", "run", "tmp", "root", "var/log", "var/cache/debconf", "var/cache/ldconfig", "var/lib/dpkg",
            "var/backups", "var/lib/systemd", "var/cache/apt", "var/lib/apt")  # fmt: skip
"""What package manager and tests themselves leave."""


class Overlay(System):
    """A machine whose files are those of ``lower``; ``changes`` is the layer above them."""

    def __init__(self, lower: Path, base: Path, mounts: Sequence[str] = ()) -> None:
        super().__init__(base / "root")
        self.lower, self.changes = lower, base / "changes"
        self.mounts = mounts
        """Commands that mount more; ``{root}`` is where the machine is."""
        self._layers = f"lowerdir={lower},upperdir={self.changes},workdir={base / 'work'}"
        for path in (self.root, self.changes, base / "work"):
            path.mkdir()
        (self.changes / "srv").mkdir(mode=0o755)

    def command(self, script: str, *binds: Path) -> list[str]:
        """The command that runs a shell script in it."""
        *outer, inner = super().command(script, *binds)
        mounts = [f"mount -t overlay overlay -o {self._layers} {self.root}",
                  *(f"mkdir -p {self.root}{bind}" for bind in binds),
                  *(mount.format(root=self.root) for mount in self.mounts)]  # fmt: skip
        return [*outer, "\n".join([*mounts, inner])]

    def left(self, *without: str) -> list[str]:
        """The files and directories that were not there before, and those that were and are gone."""
        found = []
        for top, directories, files in os.walk(self.changes):
            for name in (*directories, *files):
                path = self.changes / os.path.relpath(top, self.changes) / name
                relative = path.relative_to(self.changes)
                try:
                    gone = stat.S_ISCHR(path.lstat().st_mode)
                except FileNotFoundError:  # it is being removed at this moment
                    continue
                new = not os.path.lexists(self.lower / relative)
                if (gone or new) and not str(relative).startswith((*VOLATILE, *without)):
                    found.append(f"{relative}{' is gone' * gone}")
        return sorted(found)


@contextmanager
def overlay(lower: Path, base: Path, mounts: Sequence[str] = ()) -> Iterator[Overlay]:
    """A machine above ``lower``, for as long as the block lasts; ``base`` is an empty directory."""
    # In memory: a layer may not lie in the file system of the one below it.
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "none", base], check=True)
    try:
        yield Overlay(lower, base, mounts)
    finally:
        subprocess.run(["umount", "--lazy", base], check=True)
