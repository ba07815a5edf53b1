"""The access log of this host's master: which agents are at which address, and how many requests fail."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from inspector import inputs
from inspector.explain.master_log import access
from inspector.protocol import endpoints

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from inspector.explain.master_log.access import AccessLine

LATEST = 2**24
"""Bytes that are read of a log, from its end."""
BEFORE = 3600.0
"""Seconds before a tap whose requests it is compared with."""
FEWEST = 10
"""Failed requests that mean something."""
MORE = 0.1
"""By which part of all requests twice as many as before may be exceeded."""


class AccessLog:
    """A log that grows."""

    def __init__(self, path: Path | None) -> None:
        """None: the server writes none."""
        self._path = path
        self._file: tuple[int, int] | None = None
        self._at = 0
        self._rest = b""

    def latest(self) -> Iterator[AccessLine]:
        """Yield the last requests; after them, ``new`` goes on."""
        self._file, self._at, self._rest = None, 0, b""
        yield from self.new()

    def new(self) -> Iterator[AccessLine]:
        """Yield the requests that were logged since the last call, also when the log was rotated meanwhile."""
        if self._path is None:
            return
        try:
            with inputs.opened(self._path) as file:
                state = os.fstat(file.fileno())
                if self._file != (state.st_dev, state.st_ino) or state.st_size < self._at:
                    self._file = state.st_dev, state.st_ino
                    self._at, self._rest = max(0, state.st_size - LATEST), b""
                file.seek(self._at)
                data = file.read(LATEST)
        except OSError:
            return
        self._at += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._rest = self._rest[-LATEST:]
        for line in lines:
            if found := access.parse(line.decode(errors="replace")):
                yield found


def nodes(lines: Iterable[AccessLine]) -> dict[str, set[str]]:
    """Return the certnames for which was asked from each address."""
    found: dict[str, set[str]] = {}
    for line in lines:
        match = endpoints.match(line.method, line.target)
        if match and match.certname and (at := plain(line.host)):
            found.setdefault(at, set()).add(match.certname)
    return found


def plain(host: str) -> str:
    """Return an address as Python writes it; empty if it is none."""
    try:
        at = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return ""
    mapped = at.ipv4_mapped if isinstance(at, ipaddress.IPv6Address) else None
    return str(mapped or at)


@dataclass(slots=True)
class Share:
    """How many of how many requests failed."""

    failed: int = 0
    requests: int = 0

    def count(self, lines: Iterable[AccessLine], since: float = 0.0) -> None:
        """Count agents' requests. What is not found is no failure: a bootstrap asks until there is a certificate."""
        for line in lines:
            if line.time >= since and endpoints.match(line.method, line.target):
                self.requests += 1
                self.failed += line.status >= HTTPStatus.BAD_REQUEST and line.status != HTTPStatus.NOT_FOUND

    def exceeds(self, before: Share) -> bool:
        """Whether clearly more failed than before."""
        usual = before.failed / before.requests if before.requests else 0.0
        return self.failed >= FEWEST and self.failed > self.requests * (2 * usual + MORE)
