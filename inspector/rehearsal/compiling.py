"""One node at another master: its catalogs. Works in a thread of its own."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from inspector.model import REHEARSED
from inspector.rehearsal import fetching
from inspector.rehearsal.client import Client, Unreachable

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping

    from inspector.model import Exchange, Identity, Request, Response
    from inspector.proxy.identity import Credentials
    from inspector.rehearsal.client import Target
    from inspector.rehearsal.requests import Asked

UNAVAILABLE = 503
ATTEMPTS = 8
"""Requests for one catalog, if the master is busy."""
LONGEST = 1800.0
"""Seconds to wait at most, whatever the master says: puppetserver names no more by default (max-retry-delay)."""


class Role(StrEnum):
    """Why a catalog is compiled."""

    PLAIN = "plain"
    """The recorded request."""
    AGAIN = "again"
    """The recorded request once more: differences are noise."""
    CHANGED = "changed"
    """With other facts."""
    OLD = "old"
    """The recorded request, to the recorded master."""
    OLD_AGAIN = "old-again"

    @property
    def of_old(self) -> bool:
        """Whether it is for the recorded master, of which only the noise is wanted."""
        return self in (Role.OLD, Role.OLD_AGAIN)


class Question(NamedTuple):
    """A request for a catalog, and the master to ask."""

    target: Target
    request: Request


@dataclass(frozen=True, slots=True)
class Task:
    """The requests of one node."""

    name: str
    asked: Asked
    questions: Mapping[Role, Question]
    credentials: Credentials
    identity: Identity
    files: bool
    """Whether the files are asked for, too."""
    known: Mapping[str, str] = field(default_factory=dict)
    """The digests of files that the agent has received: their contents need not be fetched."""


@dataclass(slots=True)
class Compiled:
    """The answers to a node."""

    exchanges: dict[Role, list[Exchange]] = field(default_factory=dict)
    unreachable: str = ""
    """To which master there was no connection, and why; empty if there was one."""
    waited: float = 0.0
    """Seconds for which the master was busy."""


def connection_name(node: str, role: Role) -> str:
    """Return the name of a node's connection in the capture."""
    return f"{REHEARSED}{node}#{role}"


def read_name(leg: str) -> tuple[str, Role] | None:
    """Return the node and the role from the name of a connection; None if it is none of a rehearsal."""
    node, _, rest = leg.removeprefix(REHEARSED).rpartition("#")
    role = rest.partition(".")[0]
    return (node, Role(role)) if node and role in set(Role) else None


def compile_all(task: Task, stop: threading.Event) -> Compiled:
    """Ask for a node's catalogs. ``stop`` ends what waits."""
    found = Compiled()
    for role, (target, request) in task.questions.items():
        if stop.is_set():
            break
        with Client(target, task.credentials, task.identity, connection_name(task.name, role)) as client:
            try:
                exchanges = [_patiently(client, request, found, stop)]
                if task.files and role in (Role.PLAIN, Role.CHANGED):
                    ask = functools.partial(_patiently, client, found=found, stop=stop)
                    exchanges += fetching.fetched(ask, task.asked, task.known, exchanges[0], stop)
            except Unreachable as error:
                found.unreachable = f"no connection to {target}: {error}"
                break
        found.exchanges[role] = exchanges
    return found


def _patiently(client: Client, request: Request, found: Compiled, stop: threading.Event) -> Exchange:
    """Ask until the master is no longer too busy."""
    for attempt in range(ATTEMPTS):
        exchange = client.ask(request)
        response = exchange.response
        if response is None or response.status != UNAVAILABLE or attempt + 1 == ATTEMPTS:
            break
        pause = retry_after(response, 2.0**attempt)
        found.waited += pause
        client.close()
        if stop.wait(pause):
            break
    return exchange


def retry_after(response: Response, default: float) -> float:
    """Return for how many seconds the master wants us to wait."""
    text = (response.header("retry-after") or "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), LONGEST)
    try:
        return min(max(0.0, parsedate_to_datetime(text).timestamp() - time.time()), LONGEST)
    except (ValueError, TypeError, OverflowError):
        return min(default, LONGEST)
