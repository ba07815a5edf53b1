"""Write the records of the proxy to the capture, on a separate thread.

The proxy's event loop only puts records into a queue; a few times a second the thread writes them. Writing can be slow,
fail or hang: the agents' runs never wait for it. Records that could not be written are recorded as a gap. Another
process analyzes the records (``analysis_client``), and if they are to be masked, one more masks them before
(``masking_client``).
"""

from __future__ import annotations

import contextlib
import math
import sqlite3
import threading
import time
from collections import OrderedDict, deque
from types import MappingProxyType
from typing import TYPE_CHECKING

from inspector.capture.places import PLACE
from inspector.capture.rotation import Rotation
from inspector.capture.store import Capture, Continued
from inspector.errors import CaptureError
from inspector.model import Connection, Exchange, Gap, Handshake
from inspector.proxy.analysis_client import AnalysisClient
from inspector.proxy.backlog import Backlog, Item
from inspector.proxy.masking_client import MaskingClient
from inspector.proxy.open_connections import OpenConnections
from inspector.proxy.telemetry.settings import NOTHING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from inspector.capture.spool import Spool
    from inspector.model import Record
    from inspector.proxy.analysis_client import AnalysisResult
    from inspector.proxy.backlog import Callback
    from inspector.proxy.masking_client import Redaction
    from inspector.proxy.telemetry.samples import Sample
    from inspector.proxy.telemetry.settings import Telemetry

NEVER = Rotation(free=0)
"""A single capture, even on a full disk."""
FLUSH = 0.2
"""Seconds between commits: a killed proxy loses about a second, more only if a commit is delayed."""
FINAL_RETRY = 5.0
"""Seconds during which writing the end of a capture is retried."""
RETRY = 1.0
"""Seconds between attempts while the capture cannot be written."""
CHANGED, SIGN_OF_LIFE = 1.0, 5.0
"""Seconds after which what is under way is written without any record: something began or ended; nothing did."""
BATCH = 500
"""Records per commit: a killed proxy loses about a second even under constant load."""
SPREAD = FLUSH / 2
"""Seconds over which a commit may be spread: written in one go, it would delay the answers that pass meanwhile."""
MEMORY = 256 * 2**20
"""Bytes of bodies kept in memory while the capture cannot be written; more are lost, and reported as lost."""
QUIET = 5.0
"""Seconds without a record after which starting another capture splits no run."""
QUEUE = 512 * 2**20
"""Bytes in the queue above which detail is dropped (``Backlog``)."""
MASKED_QUEUE = 64 * 2**20
"""The same if records are masked first: they may come in faster than that for hours."""
MASKING = 15.0
"""Seconds for masking the rest when the proxy ends."""
CONTINUES = "-- recording continues in "
"""The line, before the path, that reports that a capture continues in another one."""
DELETED = "-- deleted the old capture {} (puppet_keep)"
MAX_CALLBACKS = 10_000
"""Records whose analysis result is awaited by a callback."""


class Recorder(threading.Thread):
    """The thread that owns the capture of a running proxy."""

    def __init__(
        self,
        path: Path,
        write_line: Callable[[str], None],
        rules: Sequence[str] = (),
        *,
        analyzes: bool = True,
        connections: OpenConnections | None = None,
        rotation: Rotation = NEVER,
        redact: Redaction = "",
        telemetry: Telemetry = NOTHING,
        observe: Callable[[list[Sample]], None] = lambda _: None,
        report_waiting: Callable[[int], None] = lambda _: None,
        place: str = "",
    ) -> None:
        """Open the capture.

        ``write_line`` gets each console line, on any thread. ``rules`` are the options with the site's rules.
        ``connections``: what is under way, which is written beside the records. ``rotation`` says when another capture
        is started. ``redact`` says what is masked before it is written. ``telemetry`` says what the analysis measures,
        which ``observe`` gets; ``report_waiting`` gets the bytes that wait to be recorded. ``place``: where the proxy
        stands, which the capture says.

        Raises CaptureError.
        """
        super().__init__(name="recorder", daemon=True)
        self._place = place
        self._capture = self._create(path)
        self._write_line = write_line
        self._rules = rules
        self._telemetry = telemetry
        self._observe = observe
        self._report_waiting = report_waiting
        self.analyzes = analyzes
        self._connections = OpenConnections() if connections is None else connections
        self._queued = (-1, -math.inf)
        """The number of changes with which it was written last, and when."""
        self._ended = False
        """Whether nothing more comes."""
        self._rotation = rotation
        self._began = self._busy = time.monotonic()
        self._has_records = False
        """Whether any record was written to this capture."""
        self._previous_last: int | None = None
        """The last record of the previous capture: once a later one was analyzed, old captures may be deleted."""
        self._queue: deque[Item | None] = deque()
        """None is the end."""
        self._finishing = False
        self._wake = threading.Event()
        self._backlog = Backlog(MASKED_QUEUE, "masked", names=False) if redact else Backlog(QUEUE, "written")
        self._masking = (
            MaskingClient(path.parent, self._deliver, write_line, closed=redact == "closed") if redact else None
        )
        self._buffered_bytes = 0
        self._lost = 0
        self._failure: str | None = None
        self._last_attempt = 0.0
        self._analysis: AnalysisClient | None = None
        self._callbacks: list[Callback | None] = []
        """The callbacks of the pending records, in their order."""
        self._awaiting_result: OrderedDict[int, Callback] = OrderedDict()
        """The callbacks of written records, by record number."""

    def put(
        self,
        record: Record | Connection,
        callback: Callback | None = None,
        spools: Mapping[str, Spool] = MappingProxyType({}),
    ) -> None:
        """Queue a record or the state of a connection. Never blocks, never raises: the event loop calls it.

        ``callback`` gets the analysis result, on another thread. ``spools`` are the record's large bodies.
        """
        if item := self._backlog.add(record, callback, spools):
            self._enqueue(item)

    def _enqueue(self, item: Item | None) -> None:
        if self._masking:
            self._masking.put(item)
        else:
            self._deliver(item)

    def _deliver(self, item: Item | None) -> None:
        """Queue what may be written; None is the end."""
        self._queue.append(item)
        if item is None:
            self._wake.set()

    @property
    def path(self) -> Path:
        """The current capture."""
        return self._capture.path

    @property
    def waiting(self) -> int:
        """About as many bytes of memory as what waits to be recorded takes."""
        return self._backlog.waiting

    def finish(self, timeout: float = 30.0) -> None:
        """Write and analyze the rest of the queue, then end the thread."""
        if self._masking:
            self._masking.finish(MASKING)
        self._enqueue(None)
        self.join(timeout)

    def run(self) -> None:
        self._guard(self._begin)
        while not self._finishing:
            # At intervals, not for each record: every switch of the interpreter's lock costs more than a record.
            self._wake.wait(FLUSH)
            self._report_waiting(self.waiting)
            while self._process_batch():
                self._guard(self._flush)
            self._guard(self._flush)
            self._report_waiting(self.waiting)
        self._guard(self._end)

    def _process_batch(self) -> bool:
        """Take a batch off the queue; return whether it was a full one."""
        number = min(BATCH, len(self._queue))
        for _ in range(number):
            item = self._queue.popleft()
            if item is None:
                self._finishing = True
                return False
            self._backlog.remove(item)
            self._guard(self._process, item)
        return number == BATCH

    def _begin(self) -> None:
        if self._masking:
            self._masking.start()
        if self.analyzes:
            # An existing capture is continued: its records are needed to tell runs apart, but were reported before.
            self._analysis = AnalysisClient(
                lambda: self.path, self._capture.last, self._rules, self._on_result, self._telemetry
            )

    def _guard[*Args](self, act: Callable[[*Args], None], *args: *Args) -> None:
        try:
            act(*args)
        except BaseException as error:  # noqa: BLE001 - a bug of ours (or a panic in a library) must not end this thread
            self._write_line(f"-- internal error: {error!r} (please report it)")
            # What an error quotes may have to be masked.
            reason = type(error).__name__ if self._masking else repr(error)
            self._append(Gap(time.time(), f"puppet-inspector failed: {reason}"))

    # -- writing ------------------------------------------------------------------------------------

    def _process(self, item: Item) -> None:
        record = item.record
        if self._failure and self._buffered_bytes + item.weight > MEMORY:
            self._lost += not isinstance(record, Connection)
            item.close()
            return
        self._buffered_bytes += item.weight
        if isinstance(record, Connection):
            self._capture.note(record)
            return
        if isinstance(record, Exchange):
            self._capture.note(Connection(record.agent))
            if record.master:
                self._capture.note(Connection(record.master))
        elif isinstance(record, Handshake):
            self._capture.note(Connection(record.leg))
        self._append(record, item.callback, item.spools)

    def _append(
        self, record: Record, callback: Callback | None = None, spools: Mapping[str, Spool] = MappingProxyType({})
    ) -> None:
        self._capture.append(record, spools)
        self._callbacks.append(callback)

    def _flush(self) -> None:
        """Write the pending records, and start another capture if this one has reached its limits."""
        now = time.monotonic()
        self._record_drops()
        if self._failure and now - self._last_attempt < RETRY and not self._finishing:
            return
        self._last_attempt = now
        try:
            written = self._attempt()
        except Exception as error:  # noqa: BLE001 - whatever failed, do not retry it five times a second
            self._report_failure(str(error).rstrip("."))
            return
        self._expect_results(written)
        if written:
            self._busy, self._has_records = now, True
        self._report_recovery()
        self._rotate(now)
        self._retire()

    def _record_drops(self) -> None:
        """Record what ``put`` dropped since the last time."""
        for text, lost in self._backlog.drops():
            self._append(Gap(time.time(), text, lost))
            self._write_line(f"-- {text}")

    def _attempt(self) -> list[Record]:
        """Write the pending records and return them. Raises OSError, sqlite3.Error or CaptureError."""
        if self._capture.lost():
            self._recreate()
        if reason := self._rotation.room(self._capture.path):
            raise OSError(reason)
        self._queue_present_when_due()
        return self._write_pending()

    def _queue_present_when_due(self) -> None:
        """Have what is under way written: with the next records, or soon if there are none."""
        changes, since = self._queued[0], time.monotonic() - self._queued[1]
        if self._connections.changes != changes:
            if self._capture.pending or since >= CHANGED:
                self._queue_present()
        elif since >= SIGN_OF_LIFE and len(self._connections):
            self._queue_present()

    def _queue_present(self) -> None:
        """Have what is under way written the next time anything is."""
        self._queued = self._connections.changes, time.monotonic()
        self._capture.set_present(self._connections.present(time.time(), "ended" if self._ended else "open"))

    def _report_failure(self, reason: str) -> None:
        if self._failure is None:
            self._write_line(f"-- cannot write the capture ({reason}): keeping records in memory, retrying")
        self._failure = f"the capture could not be written ({reason})"

    def _report_recovery(self) -> None:
        """Record which records were lost while the capture could not be written, if it could not."""
        if self._failure:
            self._append(Gap(time.time(), self._failure, self._lost))
            self._write_line(f"-- the capture is being written again; {self._lost} records were lost")
        self._failure, self._lost, self._buffered_bytes = None, 0, 0

    def _expect_results(self, written: list[Record]) -> None:
        """Keep the callbacks of written records until the analysis has read these."""
        for record, callback in zip(written, self._callbacks, strict=True):
            if callback:
                self._awaiting_result[record.seq] = callback
        while len(self._awaiting_result) > MAX_CALLBACKS:
            self._awaiting_result.popitem(last=False)
        self._callbacks.clear()
        if written and self._analysis:
            self._analysis.wake()

    def _rotate(self, now: float) -> None:
        """Start another capture if this one has reached its limits."""
        under_way = now - self._busy < QUIET
        if not self._has_records or not self._rotation.due(self._capture.path, self._began, now, under_way=under_way):
            return
        try:
            self._continue_in(self._capture.continue_in(self._rotation.next(self._capture.path)))
        except (OSError, sqlite3.Error, CaptureError) as error:
            self._has_records = False  # not again before more is written
            self._write_line(f"-- cannot start another capture ({str(error).rstrip('.')})")

    def _retire(self) -> None:
        """Delete old captures beyond the limits, once the analysis has found the capture that follows them."""
        if self._previous_last is None or (self._analysis and self._analysis.analyzed <= self._previous_last):
            return
        self._previous_last = None
        # A recorder without analysis does not know how far that is: the process that started it deletes.
        if self.analyzes:
            for deleted in self._rotation.retire(self._capture.path):
                self._write_line(DELETED.format(deleted))

    def _write_pending(self) -> list[Record]:
        """Write the pending records to the current capture, which may have changed: several processes may share it."""
        while True:
            try:
                # Also with nothing to write: a capture that a process has open is never deleted.
                if not self._capture.pending and (following := self._capture.continued_in):
                    self._continue_in(following)
                return self._capture.flush(self._spread())
            except Continued as continued:
                self._continue_in(continued.following)

    def _spread(self) -> float:
        """Return over how many seconds the next commit is spread: it locks the capture, also for other processes."""
        alone, behind = self.analyzes, len(self._capture.pending) >= BATCH
        return SPREAD if alone and not behind and not self._finishing else 0.0

    def _continue_in(self, path: Path) -> None:
        self._previous_last = last = self._capture.last
        following = self._create(path, last)
        following.adopt(self._capture)
        self._capture.abandon()
        self._capture, self._began, self._has_records = following, time.monotonic(), False
        self._queue_present()
        self._write_line(f"{CONTINUES}{path}")

    def _create(self, path: Path, after: int = 0) -> Capture:
        """Create a capture that says where it is recorded, or open one. Raises CaptureError."""
        capture = Capture.create(path, after=after)
        with contextlib.suppress(sqlite3.Error):  # it must not cost a record
            capture.set_meta([(PLACE, self._place)] if self._place else [])
        return capture

    def _recreate(self) -> None:
        recreated = self._create(self._capture.path)
        recreated.adopt(self._capture)
        self._capture.abandon()
        self._capture = recreated
        self._queue_present()
        self._append(Gap(time.time(), "the capture was deleted during recording; this file replaces it"))
        self._write_line(f"-- the capture {self._capture.path} was deleted: created again")

    def _end(self) -> None:
        self._ended = True
        self._write_the_rest()
        if self._analysis and not self._analysis.close():
            self._write_line("-- the analysis did not finish in time: `puppet-inspector runs` shows the rest")
        self._retire()
        if self._masking:
            self._masking.close()
        while self._queue:  # gaps of internal errors
            if item := self._queue.popleft():
                self._guard(self._process, item)
        self._write_the_rest()
        self._capture.abandon()

    def _write_the_rest(self) -> None:
        if self._capture.pending and (reason := self._rotation.room(self._capture.path)):
            lost = self._capture.drop()
            self._callbacks.clear()
            self._append(Gap(time.time(), f"the capture could not be written ({reason})", self._lost + lost))
            self._write_line(f"-- the end of the capture was not written ({reason}): {lost} records lost")
        self._queue_present()
        until = time.monotonic() + FINAL_RETRY
        while True:
            try:
                self._write_pending()
                return
            except Exception as error:  # noqa: BLE001 - no later attempt
                if time.monotonic() > until:
                    lost = len(self._capture.pending)
                    self._write_line(f"-- the end of the capture could not be written ({error}): {lost} records lost")
                    return
                time.sleep(FLUSH)

    # -- results ------------------------------------------------------------------------------------

    def _on_result(self, result: AnalysisResult) -> None:
        if result.text:
            self._write_line(result.text)
        self._observe(result.samples)
        for line in result.error_lines():
            self._write_line(line)
        for error in result.errors:
            self.put(Gap(time.time(), error))
        if result.seq is not None and (callback := self._awaiting_result.pop(result.seq, None)):
            callback(result)
