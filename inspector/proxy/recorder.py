"""Keeping what the proxy sees, on a thread of its own.

The proxy's event loop only puts records here; a few times a second the thread writes what has come. Writing can be
slow, fail or hang: the agents' runs never wait for it. What could not be kept is itself recorded as a gap. What the
records mean is found out by another process (``commentary``).
"""

from __future__ import annotations

import dataclasses
import sqlite3
import threading
import time
from collections import Counter, OrderedDict, deque
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from inspector.capture.rotation import Rotation
from inspector.capture.store import Capture, Continued
from inspector.errors import CaptureError
from inspector.model import Connection, Exchange, Gap, Handshake
from inspector.privacy import redact
from inspector.proxy.analysis_client import Commentary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from inspector.capture.spool import Spool
    from inspector.model import Record
    from inspector.proxy.analysis_client import Told

    type Then = Callable[[Told], None]

NEVER = Rotation(free=0)
"""One capture, as long as there is a byte left."""
FLUSH = 0.2
"""Seconds between commits: a killed proxy loses less than a second."""
LAST = 5.0
"""Seconds for which it is tried to write the end of a capture."""
RETRY = 1.0
"""Seconds between attempts while the capture can't be written."""
BATCH = 500
"""Records that are written in one go: a killed proxy loses less than a second also while ever more comes in."""
MEMORY = 256 * 2**20
"""Bytes of bodies kept in memory while the capture can't be written; more is lost (and said to be)."""
QUIET = 5.0
"""Seconds without a record after which no run is cut in two by another capture."""
QUEUE = 512 * 2**20
"""Bytes of bodies that wait to be recorded. From half of it on the bodies of files are left out, beyond it exchanges
about files, and beyond twice of it everything; each time it is said."""
BEGINS = "-- another capture begins: "
"""What is said, with its path, when a capture goes on in another one."""
DELETED = "-- the capture {} was deleted: more are not to be kept"
AWAITED = 10_000
"""Records of which somebody waits to hear what they mean."""
_FILES = ("/file_content", "/file_metadata", "/file_bucket_file", "/static_file_content")

DROPS = {
    "body": "the bodies of {} exchanges about files were not kept: more came in than could be recorded",
    "file": "{} exchanges about files were lost: more came in than could be recorded",
    "record": "{} records were lost: more came in than could be recorded",
}


class Recorder(threading.Thread):
    """Owns the capture of a running proxy."""

    def __init__(
        self,
        path: Path,
        say: Callable[[str], None],
        rules: Path | None = None,
        *,
        tells: bool = True,
        rotation: Rotation = NEVER,
        redacts: bool = False,
    ) -> None:
        """Open the capture. ``say`` gets each line to show, from any thread; ``rules`` is a file that says which rules
        to ask. Not ``tells``: somebody else finds out what the records mean. ``rotation``: when another capture begins;
        ``redacts``: secrets are taken out first.

        Raises CaptureError.
        """
        super().__init__(name="recorder", daemon=True)
        self._capture = Capture.create(path)
        self._say = say
        self._rules = rules
        self.tells = tells
        self._rotation = rotation
        self._redact = redacts
        self._began = self._busy = time.monotonic()
        self._holds = False
        """Whether anything was written to this capture."""
        self._ended: int | None = None
        """The last record of the capture before: when a later one was told, old captures may go."""
        self._queue: deque[tuple[Record | Connection, Then | None, Mapping[str, Spool]] | None] = deque()
        self._wake = threading.Event()
        self._put = self._taken = 0
        self._dropped: Counter[str] = Counter()
        self._held = 0
        self._lost = 0
        self._trouble: str | None = None
        self._tried = 0.0
        self._commentary: Commentary | None = None
        self._asked: list[Then | None] = []
        """Who waits for what is pending, in its order."""
        self._awaited: OrderedDict[int, Then] = OrderedDict()
        """The same by number, once it is written."""

    def put(
        self, item: Record | Connection, then: Then | None = None, spools: Mapping[str, Spool] = MappingProxyType({})
    ) -> None:
        """Take a record or the state of a connection; never blocks, never raises. For the event loop.

        ``then`` hears what the record means, on another thread; ``spools`` are its large bodies.
        """
        waiting = self._put - self._taken
        if waiting > QUEUE // 2 and (kept := self._reduced(item, waiting)) is not item:
            spools = {}
            if kept is None:
                return
            item = kept
        self._put += _weight(item)
        self._queue.append((item, then, spools))

    def _reduced(self, item: Record | Connection, waiting: int) -> Record | Connection | None:
        """What is kept of an item when too much waits: detail goes before exchanges, and exchanges before runs."""
        about_files = isinstance(item, Exchange) and any(each in item.request.target for each in _FILES)
        if waiting > 2 * QUEUE:
            self._dropped["record"] += 1
            return None
        if waiting > QUEUE and about_files:
            self._dropped["file"] += 1
            return None
        if isinstance(item, Exchange) and about_files and (bare := _without_bodies(item)) is not item:
            self._dropped["body"] += 1
            return bare
        return item

    @property
    def path(self) -> Path:
        """The capture that is written now."""
        return self._capture.path

    def finish(self, timeout: float = 30.0) -> None:
        """Write and tell what is left."""
        self._queue.append(None)
        self._wake.set()
        self.join(timeout)

    def run(self) -> None:
        self._guard(self._begin)
        ended = False
        while not ended:
            # By the clock, not for each record: every hand-over of the interpreter's lock costs more than a record.
            self._wake.wait(FLUSH)
            while self._queue and not ended:
                for _ in range(min(BATCH, len(self._queue))):
                    item = self._queue.popleft()
                    if item is None:
                        ended = True
                        break
                    self._taken += _weight(item[0])
                    self._guard(self._take, *item)
                self._guard(partial(self._flush, ended=ended))
            self._guard(partial(self._flush, ended=ended))
        self._guard(self._end)

    def _begin(self) -> None:
        if self.tells:
            # An existing capture is continued: what it holds tells runs apart, and is told already.
            self._commentary = Commentary(self._capture.path, self._capture.last, self._rules, self._heard)

    def _guard[*Args](self, act: Callable[[*Args], None], *args: *Args) -> None:
        try:
            act(*args)
        except BaseException as error:  # noqa: BLE001 - our own bug (or a library's panic) must not end this thread
            self._say(f"-- puppet-inspector stumbled: {error!r} (please report it)")
            self._append(Gap(time.time(), f"puppet-inspector failed: {error!r}"))

    # -- keeping ------------------------------------------------------------------------------------

    def _take(self, item: Record | Connection, then: Then | None, spools: Mapping[str, Spool]) -> None:
        held = _weight(item)
        if self._trouble and self._held + held > MEMORY:
            self._lost += not isinstance(item, Connection)
            return
        self._held += held
        if isinstance(item, Connection):
            self._capture.note(dataclasses.replace(item, leg=redact.leg(item.leg)) if self._redact else item)
            return
        if self._redact:
            item, spools = redact.redacted(_loaded(item, spools)), {}
        if isinstance(item, Exchange):
            self._capture.note(Connection(item.agent))
            if item.master:
                self._capture.note(Connection(item.master))
        elif isinstance(item, Handshake):
            self._capture.note(Connection(item.leg))
        self._append(item, then, spools)

    def _append(
        self, record: Record, then: Then | None = None, spools: Mapping[str, Spool] = MappingProxyType({})
    ) -> None:
        self._capture.append(record, spools)
        self._asked.append(then)

    def _flush(self, *, ended: bool) -> None:
        now = time.monotonic()
        for kind in list(self._dropped):
            number = self._dropped.pop(kind)
            text = DROPS[kind].format(number)
            self._append(Gap(time.time(), text, 0 if kind == "body" else number))
            self._say(f"-- {text}")
        if self._trouble and now - self._tried < RETRY and not ended:
            return
        self._tried = now
        try:
            if self._capture.lost():
                self._begin_anew()
            if reason := self._rotation.room(self._capture.path):
                raise OSError(reason)
            written = self._written()
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not be tried five times a second
            reason = str(error).rstrip(".")
            if self._trouble is None:
                self._say(f"-- the capture can't be written ({reason}): kept in memory, trying again")
            self._trouble = f"the capture could not be written ({reason})"
            return
        for record, then in zip(written, self._asked, strict=True):
            if then:
                self._awaited[record.seq] = then
        while len(self._awaited) > AWAITED:
            self._awaited.popitem(last=False)
        self._asked.clear()
        if written:
            self._busy = now
            if self._commentary:
                self._commentary.more()
        if self._trouble:
            self._append(Gap(time.time(), self._trouble, self._lost))
            self._say(f"-- the capture is written again, {self._lost} records were lost")
        self._trouble, self._lost, self._held = None, 0, 0
        self._holds |= bool(written)
        under_way = now - self._busy < QUIET
        if self._holds and self._rotation.due(self._capture.path, self._began, now, under_way=under_way):
            try:
                self._go_on(self._capture.continue_in(self._rotation.next(self._capture.path)))
            except (OSError, sqlite3.Error, CaptureError) as error:
                self._holds = False  # not again before more is written
                self._say(f"-- another capture can't be begun ({str(error).rstrip('.')})")
        # Who tells learns from a capture which one goes on: not before that has happened.
        if self._ended is not None and (self._commentary is None or self._commentary.at > self._ended):
            self._ended = None
            # Who only records does not know what was told: whoever started it does, and sees to that.
            for each in self._rotation.retire(self._capture.path) if self.tells else ():
                self._say(DELETED.format(each))

    def _written(self) -> list[Record]:
        """Write, wherever it is to go: another process may have begun another capture."""
        while True:
            try:
                # Also with nothing to write: a capture that somebody holds open is never deleted.
                if not self._capture.pending and (following := self._capture.continued_in):
                    self._go_on(following)
                return self._capture.flush()
            except Continued as continued:
                self._go_on(continued.following)

    def _go_on(self, path: Path) -> None:
        self._ended = last = self._capture.last
        fresh = Capture.create(path, after=last)
        fresh.adopt(self._capture)
        self._capture.abandon()
        self._capture, self._began, self._holds = fresh, time.monotonic(), False
        self._say(f"{BEGINS}{path}")

    def _begin_anew(self) -> None:
        fresh = Capture.create(self._capture.path)
        fresh.adopt(self._capture)
        self._capture.abandon()
        self._capture = fresh
        self._append(Gap(time.time(), "the capture was deleted while it was written; this one begins anew"))
        self._say(f"-- the capture {self._capture.path} was deleted: begun anew")

    def _end(self) -> None:
        self._write_the_rest()
        if self._commentary and not self._commentary.end():
            self._say("-- not all of it was told in time (`puppet-inspector runs` does)")
        while self._queue:  # what it stumbled over
            if item := self._queue.popleft():
                self._guard(self._take, *item)
        self._write_the_rest()
        self._capture.abandon()

    def _write_the_rest(self) -> None:
        if self._capture.pending and (reason := self._rotation.room(self._capture.path)):
            lost = self._capture.drop()
            self._asked.clear()
            self._append(Gap(time.time(), f"the capture could not be written ({reason})", self._lost + lost))
            self._say(f"-- the end of the capture was not written ({reason}): {lost} records are lost")
        until = time.monotonic() + LAST
        while True:
            try:
                self._written()
                return
            except Exception as error:  # noqa: BLE001 - there is no later
                if time.monotonic() > until:
                    lost = len(self._capture.pending)
                    self._say(f"-- the end of the capture could not be written ({error}): {lost} records are lost")
                    return
                time.sleep(FLUSH)

    # -- telling ------------------------------------------------------------------------------------

    def _heard(self, told: Told) -> None:
        self._say(told.text)
        for line in told.complaints():
            self._say(line)
        for trouble in told.trouble:
            self.put(Gap(time.time(), trouble))
        if told.seq is not None and (then := self._awaited.pop(told.seq, None)):
            then(told)


def _weight(record: Record | Connection) -> int:
    if isinstance(record, Exchange):
        return 1000 + len(record.request.body) + (len(record.response.body) if record.response else 0)
    return 1000


def _loaded(record: Record, spools: Mapping[str, Spool]) -> Record:
    """A record with its large bodies in it. Raises OSError."""
    for side, spool in spools.items():
        body = b"".join(spool.chunks())
        spool.close()
        record = dataclasses.replace(record, **{side: dataclasses.replace(getattr(record, side), body=body)})
    return record


def _without_bodies(exchange: Exchange) -> Exchange:
    request, response = exchange.request, exchange.response
    if not request.body and not (response and response.body):
        return exchange
    return dataclasses.replace(
        exchange,
        request=dataclasses.replace(request, body=b"", lost=request.lost + len(request.body)),
        response=response and dataclasses.replace(response, body=b"", lost=response.lost + len(response.body)),
    )
