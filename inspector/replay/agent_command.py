"""The command that runs a real agent against a replay, with directories of its own."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector.protocol.files import DIGESTS
from inspector.protocol.kinds import Kind
from inspector.replay.notices import missing_plugins

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.replay.recording import Recording

FOLDER = "agent"
"""The agent's directory, beside that of the master."""
DIRECTORIES = ("conf", "var", "ssl", "run", "log", "public")
DEFAULT_ENVIRONMENT = "production"
DEFAULT_DIGEST = "sha256"
"""Agents up to 6 ask for MD5: what they asked for is found again only with it."""


@dataclass(frozen=True, slots=True)
class Command:
    """The command of an agent of version 7 or later. Nothing of its host's own Puppet is read or changed: its
    configuration, identity and state are below ``folder``."""

    recording: Recording
    folder: Path
    name: str
    """The name by which it calls the master."""
    port: int

    @property
    def words(self) -> list[str]:
        command = ["puppet", "agent", "-t", "--noop", "--server", self.name, "--serverport", str(self.port)]
        command += ["--certname", self.recording.certname]
        for directory in DIRECTORIES:
            command += [f"--{directory}dir", str(self.folder / FOLDER / directory)]
        return command + self._options()

    def __str__(self) -> str:
        """For a shell."""
        return shlex.join(self.words)

    def _options(self) -> list[str]:
        recording, options = self.recording, []
        environment = recording.environment or DEFAULT_ENVIRONMENT
        if environment != DEFAULT_ENVIRONMENT or not recording.asked(Kind.NODE):
            options += ["--environment", environment]  # with it an agent does not ask for its node
        digests = {value for one in recording.answers for name, value in one.parameters if name == "checksum_type"}
        if len(digests) == 1 and digests != {DEFAULT_DIGEST} and digests <= DIGESTS:
            options += ["--digest_algorithm", *digests]
        if missing_plugins(recording):
            options.append("--ignore_plugin_errors")
        statuses = [signing.status for signing in recording.signings if signing.kind is Kind.CERTIFICATE]
        if 404 in statuses and 200 in statuses:
            options += ["--waitforcert", "2"]
        return options
