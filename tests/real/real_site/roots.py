"""A release of Debian to throw away: what is done in it is in a directory of its own, the release stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.real.releases import System

if TYPE_CHECKING:
    from pathlib import Path

_NO_SERVICES = "#!/bin/sh\nexit 101\n"
"""Its packages start nothing: it has the network of this machine."""


class Throwaway(System):
    """A release under a layer that takes all changes; the layer is what is in ``directory``."""

    def __init__(self, release: System, directory: Path) -> None:
        """``directory`` is new or was used for the same before."""
        super().__init__(directory / "root")
        self.release, self._changes, self._work = release, directory / "changes", directory / "work"
        for path in (self.root, self._changes / "usr/sbin", self._work):
            path.mkdir(parents=True, exist_ok=True)
        policy = self._changes / "usr/sbin/policy-rc.d"
        policy.write_text(_NO_SERVICES)
        policy.chmod(0o755)

    def command(self, script: str, *binds: Path) -> list[str]:
        """As of a release; the layer is mounted for this command only, and what it starts ends with it."""
        for bind in binds:
            place = bind.relative_to("/")
            if not (self.release.root / place).exists():
                (self._changes / place).mkdir(parents=True, exist_ok=True)
        layers = f"lowerdir={self.release.root},upperdir={self._changes},workdir={self._work}"
        program, *outer, inner = super().command(script, *binds)
        # Processes of its own: a daemon that a module started would stay, and keep the layer mounted.
        own = ["--pid", "--fork", "--kill-child"]
        return [program, *own, *outer, f"mount -t overlay overlay -o {layers} {self.root}\n{inner}"]
