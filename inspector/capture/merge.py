"""Maintenance of captures: merging several into one (``merge``), and removing unused space (``vacuum``).

Both write a new file and put it in place when it is complete. They read and write records through the store.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import heapq
import itertools
import os
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from inspector.capture import guard, paths
from inspector.capture.identity import SOURCES, sources_item
from inspector.capture.places import (
    PLACE,
    PLACES,
    Comparison,
    Link,
    PlaceClock,
    corrected,
    corrected_leg,
    corrected_present,
    place_of,
)
from inspector.capture.present import together
from inspector.capture.replacing import created, replacement
from inspector.capture.store import Capture
from inspector.clocks import HOUR
from inspector.errors import CaptureError
from inspector.model import NOTHING_OPEN, Connection, Exchange, Handshake, Leg
from inspector.progress import unwatched, watched
from inspector.text import size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from inspector.model import Present, Record
    from inspector.progress import Watch

BATCH = 500
"""Records or connections per write."""
WEIGHT = 32 * 2**20
"""Bytes of bodies per write."""
INTERVAL = 0.1
"""Seconds between two looks at a statement that takes long."""
WINDOW = HOUR
"""Seconds by which the order of two captures may differ for a record that is in both, to be recognized as one."""


class Merged(NamedTuple):
    """The result of a merge."""

    records: int
    twice: int
    """Records that were in more than one of the captures: the new one has them once."""
    renamed: int
    """Connections that were renamed because another capture has one of the same name."""
    joined: int = 0
    """Exchanges that two places recorded, one behind the other: the new capture has them once, with both legs."""
    places: tuple[PlaceClock, ...] = ()
    """Where the captures were recorded, and how the clocks there were; empty: in one place, or it is not known."""
    present: Present = NOTHING_OPEN
    """What was under way where they were still recorded, or when that ended."""


class Vacuumed(NamedTuple):
    """The result of a vacuum."""

    before: int
    """Bytes."""
    after: int
    dropped: int
    """Bodies and certificates that no record and no connection referred to."""


# -- merge ------------------------------------------------------------------------------------------------


def merge(sources: Sequence[Path], target: Path, watch: Watch = unwatched) -> Merged:
    """Merge captures into a new one: their records in the order in which they ended, with new numbers.

    A connection that is in several captures (it lasted while the proxy started another capture) becomes one; different
    connections with the same name stay separate. Of captures from several places the clocks are compared: the times of
    a place whose clock was off are corrected. Raises CaptureError, also if ``target`` exists.
    """
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(Capture.open(path, whole=True)) for path in sources]
        found = [_Source(capture, place_of(capture)) for capture in opened]
        compared = _compare(found, watch)
        with created(target) as made:
            for source in found:
                source.names = _connections(source, made, watch)
            merged = _records(found, compared.links, made, watch)
            # After the records: what ended meanwhile is under way no more, though its record is not here.
            present = _present(found, time.time())
            if present.recording != "unknown":
                made.set_present(present)
            made.set_meta(_meta(opened, made, compared.clocks))
        return merged._replace(places=tuple(compared.clocks), present=present)


@dataclass(slots=True)
class _Source:
    """A capture that is merged."""

    capture: Capture
    place: str | None
    """Where it was recorded; None: it does not say so, or all were recorded there."""
    ahead: float = 0.0
    """Seconds that its clock was ahead."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The new names of its connections whose names another capture uses."""

    def records(self) -> Iterator[Record]:
        """Return its records, as if its clock had been right."""
        return (corrected(record, self.ahead) for record in self.capture.records())

    def present(self, now: float) -> Present:
        """Return what is under way there, or was when the recording ended."""
        return corrected_present(self.capture.present(now), self.ahead, self.names)


class _Compared(NamedTuple):
    clocks: list[PlaceClock]
    links: list[Link]


def _compare(found: Sequence[_Source], watch: Watch) -> _Compared:
    """Compare the clocks of the places, if there are several."""
    if len({source.place for source in found}) < 2 or all(source.place is None for source in found):
        for source in found:
            source.place = None
        return _Compared([], [])
    comparison = Comparison([source.place for source in found])
    total = sum(source.capture.count() for source in found)
    numbered = ((number, record) for number, source in enumerate(found) for record in source.capture.records())
    for number, record in watched(numbered, watch, total, "comparing record"):
        comparison.add(number, record)
    clocks = comparison.clocks()
    ahead = {clock.name: clock.ahead for clock in clocks}
    for source in found:
        source.ahead = ahead.get(source.place or "", 0.0)
    return _Compared(clocks, comparison.links)


def _present(found: Sequence[_Source], now: float) -> Present:
    """Return what is under way where captures are recorded, or was when that ended: of each place in its last one."""
    ended: dict[str | None, Present] = {}
    still = []
    for source in found:
        present = source.present(now)
        if present.recording == "open":
            still.append(present)
        elif present.recording != "unknown" and present.time >= ended.get(source.place, NOTHING_OPEN).time:
            ended[source.place] = present
    return together([*still, *ended.values()])


def _connections(found: _Source, made: Capture, watch: Watch) -> Mapping[str, str]:
    """Copy a capture's connections; return the new names of those whose names another capture uses."""
    source = found.capture
    renamed: dict[str, str] = {}
    idents = _idents(source.path)
    for some in itertools.batched(watched(idents, watch, len(idents), "reading connection"), BATCH):
        for ident in some:
            connection = source.connection(ident)
            if connection is None:
                continue
            connection = corrected_leg(connection, found.ahead, found.place)
            before = made.connection(ident)
            if before is not None and _same(before.leg, connection.leg):
                connection = _fuller(before, connection)
            elif before is not None:
                names = (f"{ident}~{number}" for number in itertools.count(2))
                name = next(free for free in names if not (made.connection(free) or source.connection(free)))
                connection = Connection(dataclasses.replace(connection.leg, id=name), connection.closed)
                renamed[ident] = name
            made.note(connection)
        made.flush()
    return renamed


def _idents(path: Path) -> list[str]:
    """Return the names of a capture's connections, in the order in which they were opened."""
    live = "" if os.path.lexists(paths.companion(path.resolve(), "-wal")) else "&immutable=1"
    with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro{live}", uri=True)) as db:
        guard.distrust(db)
        return [ident for (ident,) in db.execute("SELECT id FROM connection ORDER BY opened, id")]


def _same(one: Leg, other: Leg) -> bool:
    """Whether two legs of the same name are one connection, perhaps recorded at different moments."""

    def place(leg: Leg) -> tuple[object, ...]:
        return leg.side, leg.address, leg.port, leg.connected

    return one == other or (one.connected is not None and place(one) == place(other))


def _fuller(one: Connection, other: Connection) -> Connection:
    """Return the more complete of two records of one connection."""
    leg = one.leg if other.leg.secured is None else other.leg
    return Connection(leg, other.closed or one.closed)


def _records(sources: Sequence[_Source], links: Sequence[Link], made: Capture, watch: Watch) -> Merged:
    numbered = [zip(source.records(), itertools.repeat(number)) for number, source in enumerate(sources)]
    inner = {link.inner for link in links}
    outer = {link.outer: (link.inner[0], iter(link.masters)) for link in links}
    recent: dict[bytes, tuple[int, float]] = {}
    records = twice = weight = joined = 0
    merged = heapq.merge(*numbered, key=lambda item: item[0].ended)
    total = sum(source.capture.count() for source in sources)
    for record, number in watched(merged, watch, total, "merging record"):
        if isinstance(record, Exchange) and (number, record.agent.id) in inner:
            joined += 1
            continue
        beyond = outer.get((number, record.master.id)) if isinstance(record, Exchange) and record.master else None
        record = _renamed(record, sources[number].names)
        if beyond and isinstance(record, Exchange) and (ident := next(beyond[1], "")):
            answered = made.connection(sources[beyond[0]].names.get(ident, ident))
            record = dataclasses.replace(record, master=answered.leg if answered else record.master)
        digest = _digest(record)
        if recent.get(digest, (number, 0.0))[0] != number:
            twice += 1
            continue
        recent[digest] = number, record.ended
        while recent and record.ended - next(iter(recent.values()))[1] > WINDOW:
            del recent[next(iter(recent))]
        made.append(record)
        records += 1
        weight += _weight(record)
        if weight > WEIGHT or records % BATCH == 0:
            made.flush()
            weight = 0
    return Merged(records, twice, sum(len(source.names) for source in sources), joined)


def _renamed(record: Record, names: Mapping[str, str]) -> Record:
    def leg(old: Leg) -> Leg:
        return dataclasses.replace(old, id=names[old.id]) if old.id in names else old

    if isinstance(record, Exchange):
        master = leg(record.master) if record.master else None
        return dataclasses.replace(record, agent=leg(record.agent), master=master)
    return dataclasses.replace(record, leg=leg(record.leg)) if isinstance(record, Handshake) else record


def _digest(record: Record) -> bytes:
    """Return a digest of a record without its number. Its connections are identified by name."""
    if isinstance(record, Exchange):
        agent, master = Leg(record.agent.id, "agent"), Leg(record.master.id, "master") if record.master else None
        record = dataclasses.replace(record, agent=agent, master=master, seq=0)
    elif isinstance(record, Handshake):
        record = dataclasses.replace(record, leg=Leg(record.leg.id, record.leg.side), seq=0)
    else:
        record = dataclasses.replace(record, seq=0)
    return hashlib.sha256(msgspec.msgpack.encode((type(record).__name__, record))).digest()


def _weight(record: Record) -> int:
    if not isinstance(record, Exchange):
        return 0
    return len(record.request.body) + (len(record.response.body) if record.response else 0)


def _meta(opened: Sequence[Capture], made: Capture, places: Sequence[PlaceClock]) -> list[tuple[str, str]]:
    """Return the metadata of the captures, and their names; without the links to the next captures."""
    meta: dict[str, dict[str, None]] = {}
    for capture in (*opened, made):
        for key, value in capture.meta().items():
            if key not in ("continued_in", PLACES, SOURCES) and not (key == PLACE and places):
                meta.setdefault(key, {})[value] = None
    if places:
        meta[PLACES] = {msgspec.json.encode(places).decode(): None}
    meta["merged"] = dict.fromkeys(capture.path.name for capture in opened)
    meta[SOURCES] = {sources_item(opened): None}
    return [(key, ", ".join(values)) for key, values in meta.items()]


# -- vacuum -----------------------------------------------------------------------------------------------


def vacuum(path: Path, watch: Watch = unwatched) -> Vacuumed:
    """Rewrite a capture without unused space, and remove the files that a killed proxy left beside it.

    Its records keep their numbers, so its index and its notes stay valid. Raises CaptureError, also while another
    process has it open.
    """
    with Capture.open(path, whole=True) as capture:
        path = capture.path.resolve()
    before, status = paths.size(path), path.stat()
    with _exclusive(path) as db, replacement(path) as temporary:

        def look() -> None:
            watch(paths.size(temporary), before, "copying", size)

        _execute(db, "VACUUM INTO ?", str(temporary), look=look)
        dropped = _drop(temporary, watch)
        with contextlib.suppress(PermissionError):
            os.chown(temporary, status.st_uid, status.st_gid)
    return Vacuumed(before, paths.size(path), dropped)


@contextlib.contextmanager
def _exclusive(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a capture exclusively; everything written to it is then in the one file."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=1, check_same_thread=False)
    with contextlib.closing(connection) as db:
        guard.distrust(db)
        try:
            db.execute("PRAGMA journal_mode = DELETE")
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
            db.execute("BEGIN EXCLUSIVE")
            db.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                raise CaptureError(f"{path} is being written.", "First stop the proxy that writes it.") from error
            raise CaptureError(f"Cannot change {path}: {error}.", "Check its permissions and its disk.") from error
        yield db


def _execute(
    db: sqlite3.Connection, statement: str, *values: str, look: Callable[[], None] = lambda: None
) -> sqlite3.Cursor:
    """Execute a statement that may take minutes; ``look`` is called meanwhile, and a signal ends it. The connection
    must not be bound to this thread."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(db.execute, statement, values)
        try:
            while not wait([future], INTERVAL).done:
                look()
        except BaseException:
            db.interrupt()
            raise
        return future.result()


def _drop(path: Path, watch: Watch) -> int:
    """Delete the bodies and certificates that nothing refers to; return their number."""
    digests: set[bytes] = set()
    with Capture.open(path, whole=True) as capture:
        for record in watched(capture.records(), watch, capture.count()):
            if isinstance(record, Exchange):
                digests.add(hashlib.sha256(record.request.body).digest())
                if record.response:
                    digests.add(hashlib.sha256(record.response.body).digest())
        for ident in _idents(path):
            if connection := capture.connection(ident):
                chains = connection.leg.peer_chain + connection.leg.own_chain
                digests.update(hashlib.sha256(der).digest() for der in chains)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as db:
        guard.distrust(db)
        db.execute("BEGIN")
        db.execute("CREATE TEMP TABLE digests (sha256 BLOB PRIMARY KEY)")
        db.executemany("INSERT INTO digests VALUES (?)", ((digest,) for digest in digests))
        dropped = _execute(db, "DELETE FROM blob WHERE sha256 NOT IN (SELECT sha256 FROM digests)").rowcount
        db.execute("COMMIT")
        if dropped:
            _execute(db, "VACUUM")
    return dropped
