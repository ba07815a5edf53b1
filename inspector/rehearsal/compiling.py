"""One node at another master: its catalogs, and the files that they name. Works in a thread of its own."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from inspector import regex
from inspector.model import REHEARSED
from inspector.rehearsal import answered, requests
from inspector.rehearsal.client import Client, Unreachable
from inspector.rehearsal.requests import Unsendable

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator, Mapping

    from inspector.model import Exchange, Identity, Request, Response
    from inspector.protocol.documents import Catalog
    from inspector.proxy.identity import Credentials
    from inspector.rehearsal.client import Target
    from inspector.rehearsal.requests import Asked

UNAVAILABLE = 503
ATTEMPTS = 8
"""Requests for one catalog, if the master is busy."""
LONGEST = 300.0
"""Seconds to wait at most, whatever the master says."""
FILES = 10_000
"""Files of one catalog that are asked for."""
_HERE = regex.compile(r"puppet:///+(.*[^/])/*", regex.DOTALL)


class Role(StrEnum):
    """Why a catalog is compiled."""

    PLAIN = "plain"
    """As it was recorded."""
    AGAIN = "again"
    """The same once more: what differs is noise."""
    CHANGED = "changed"
    """With other facts."""


@dataclass(frozen=True, slots=True)
class Task:
    """What one node asks."""

    name: str
    asked: Asked
    requests: Mapping[Role, Request]
    credentials: Credentials
    identity: Identity
    files: bool
    """Whether the files are asked for, too."""
    known: Mapping[str, str] = field(default_factory=dict)
    """The digests of files that the agent has seen: their contents need not be fetched."""


@dataclass(slots=True)
class Compiled:
    """What was answered to a node."""

    exchanges: dict[Role, list[Exchange]] = field(default_factory=dict)
    unreachable: str = ""
    """Why there was no connection; empty if there was one."""
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


def compile_all(target: Target, task: Task, stop: threading.Event) -> Compiled:
    """Ask for a node's catalogs. ``stop`` ends what waits."""
    found = Compiled()
    for role, request in task.requests.items():
        if stop.is_set():
            break
        with Client(target, task.credentials, task.identity, connection_name(task.name, role)) as client:
            try:
                exchanges = [_patiently(client, request, found, stop)]
                if task.files and role is not Role.AGAIN:
                    exchanges += _files(client, task, exchanges[0], stop)
            except Unreachable as error:
                found.unreachable = str(error)
                break
        found.exchanges[role] = exchanges
    return found


def _patiently(client: Client, request: Request, found: Compiled, stop: threading.Event) -> Exchange:
    """Ask for a catalog until the master is no longer too busy."""
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
    if text.isdigit():
        return min(float(text[:9]), LONGEST)
    try:
        return min(max(0.0, parsedate_to_datetime(text).timestamp() - time.time()), LONGEST)
    except (ValueError, TypeError, OverflowError):
        return min(default, LONGEST)


# -- files ------------------------------------------------------------------------------------------------


def _files(client: Client, task: Task, compiled: Exchange, stop: threading.Event) -> Iterator[Exchange]:
    """Ask for the metadata of the files that a catalog names, and for contents that the agent has not seen."""
    documents = answered.gathered(task.asked, [compiled], "")
    if documents.catalog is None:
        return
    environment = documents.catalog.environment or task.asked.document.environment or "production"
    kinds = (task.asked.document.checksum_type or "").split(".")
    checksum = next((kind for kind in kinds if kind in ("sha256", "md5", "sha512", "sha384", "sha224")), "sha256")
    for number, sources in enumerate(sources_of(documents.catalog)):
        if stop.is_set() or number == FILES:
            return
        for source in sources:
            try:
                asked = client.ask(requests.metadata(task.asked, source, environment, checksum))
            except Unsendable:
                continue
            yield asked
            if asked.response is None or asked.response.status == 404:
                continue  # the next source of this file
            yield from _content(client, task, asked, source, environment)
            break


def _content(client: Client, task: Task, asked: Exchange, source: str, environment: str) -> Iterator[Exchange]:
    use = next(iter(answered.gathered(task.asked, [asked], "").files), None)
    if use is None or use.metadata is None or use.metadata.type not in ("", "file"):
        return
    checksum = use.metadata.checksum
    if checksum is None or task.known.get(source) != checksum.digest:
        yield client.ask(requests.content(task.asked, source, environment))


def sources_of(catalog: Catalog) -> Iterator[list[str]]:
    """Yield, for each file resource, the names of its sources at this master; not those whose metadata is in the
    catalog, nor directories with everything in them."""
    for resource in catalog.resources:
        parameters = resource.parameters
        if resource.type.lower() != "file" or resource.title in catalog.metadata or parameters.get("recurse"):
            continue
        given = parameters.get("source")
        texts = given if isinstance(given, list) else [given]
        found = [match[1] for text in texts if isinstance(text, str) and (match := _HERE.fullmatch(text))]
        if found:
            yield found
