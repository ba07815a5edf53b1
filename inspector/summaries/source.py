"""The data source of the views: a capture through its index, and single records from the capture itself.

The index is built and updated by a separate process. It is only read here, so every request of a view takes no longer
than reading a file.
"""

from __future__ import annotations

import contextlib
import dataclasses
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from inspector import installation, rules
from inspector.errors import CaptureError
from inspector.model import NOTHING_OPEN
from inspector.summaries import index
from inspector.summaries.indexed import IndexedCapture

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from inspector.analysis.analyzer import Step
    from inspector.model import Connection, Present, Record


SOON = 0.5
"""Seconds in which the indexing process ends by itself if it only follows."""
LOOK, IDLE = 1.0, 60.0
"""Seconds between two looks at runs that are under way, and where there are none: nodes may fall silent."""
BUSY = 20
"""Of this many seconds at most one goes into looking again."""
AGAIN = 2.0
"""Seconds between two attempts to start indexing, if another process does it or if it fails."""
PATIENCE = 2
"""Attempts to replace an index beside the capture that is not ours."""
_NOTHING = index.IndexState(0, 0, complete=False, trouble="")


class Source(IndexedCapture):
    """One capture, and what is known of it so far. ``poll`` reads what was added."""

    def __init__(self, path: Path) -> None:
        """Open a capture, and start the indexing process if necessary. Raises CaptureError."""
        super().__init__(path)
        self.total = 0
        """The capture's last record."""
        self.state = _NOTHING
        self.open = False
        """Whether a proxy may still write it."""
        self.present = NOTHING_OPEN
        """What is under way."""
        self._present = NOTHING_OPEN
        self._looked = self._took = 0.0
        """What was judged last, when (monotonic), and how many seconds it took."""
        self.unanalyzed: dict[int, str] = {}
        """The numbers of records that were not analyzed, and why."""
        self._place = index.place(path)
        self._indexer: subprocess.Popen[bytes] | None = None
        self._begun = -AGAIN
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - the output of the process, open until close
        self._failure = ""
        self._inode = 0
        self._spoiled = False
        """The content of the index cannot be read."""
        self._displaced = 0
        """How often an index was begun where one that is not ours stands."""
        self._apart: tempfile.TemporaryDirectory[str] | None = None
        """Where the index is, if not beside the capture."""
        self.poll()

    def close(self) -> None:
        """Stop the indexing process."""
        self._take(None)
        if self._indexer:
            if self._indexer.stdin:
                self._indexer.stdin.close()
            try:
                self._indexer.wait(SOON)
            except subprocess.TimeoutExpired:
                self._indexer.kill()  # in the middle of a large capture; what it wrote stays valid
                self._indexer.wait()
                self._place.with_name(f"{self._place.name}.lock").unlink(missing_ok=True)
            self._indexer = None
        self._errors.close()
        if self._apart:
            self._apart.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- what is new ----------------------------------------------------------------------------------

    def poll(self) -> bool:
        """Read what was added since the last call. Returns True if anything was. Raises CaptureError."""
        if self._index is not None and (self._spoiled or index.inode(self._place) != self._inode):
            self._take(None)  # another process rebuilt it, or has to rebuild it
        with self.capture() as capture:
            self.total = capture.last
            self.open = capture.live
            self.present = capture.present(time.time())
            if self._index is None:
                found = index.Index.open(self._place)
                if found is not None and not found.fits(capture):
                    found.close()
                    found = None
                self._take(found)
        if self._index is None:
            self._begin()
            return False
        try:
            state = self._index.state()
            changed = self._index.changes(self.state.change) if state.change != self.state.change else None
            unanalyzed = self._index.unanalyzed()
        except CaptureError as error:
            self._doubt(error)
            return False
        if state.last != self.total or not state.complete:
            self._begin()
        if changed is None:
            return self._look_again()
        self.state, self.last, self.unanalyzed = state, state.last, unanalyzed
        self._take_changes(changed)
        self.judge(self.present, time.time())
        return True

    def _look_again(self) -> bool:
        """Judge again what is under way: it changes with time alone. Returns True if it was judged."""
        going = self.present.requests or any(node.open for node in self.judgement.nodes.values())
        same = dataclasses.replace(self.present, time=0.0) == dataclasses.replace(self._present, time=0.0)
        pause = LOOK if going or not same else IDLE
        if time.monotonic() - self._looked < max(pause, BUSY * self._took):
            return False
        if same and self.present.recording != "open":
            return False
        self.judge(self.present, time.time())
        self.revision += 1
        return True

    def judge(self, present: Present, now: float) -> None:
        began = time.monotonic()
        super().judge(present, now)
        self._present, self._looked = present, time.monotonic()
        self._took = self._looked - began

    def _take(self, found: index.Index | None) -> None:
        """Read another index from its beginning."""
        if self._index:
            self._index.close()
        self._index = found
        self._inode, self._spoiled = index.inode(self._place), False
        self.state, self.last, self.unanalyzed = _NOTHING, 0, {}
        self._forget_all()

    def _doubt(self, error: CaptureError) -> None:
        """Handle an unreadable index: rebuild it, unless it was only busy."""
        if not isinstance(error, index.Busy):
            self._place.unlink(missing_ok=True)
            self._spoiled = True

    def _begin(self) -> None:
        """Start the indexing process. If another one is already running, the new one ends at once."""
        now = time.monotonic()
        if not self._ended() or now - self._begun < AGAIN:
            return
        self._begun = now
        self._displaced += self._index is None and self._place.exists()
        if self._displaced > PATIENCE and self._apart is None:
            # Another version, or one with other rules, makes its own index there, and would forever.
            self._apart = tempfile.TemporaryDirectory(prefix="puppet-inspector-")
            self._place = Path(self._apart.name) / self._place.name
        if self._indexer and self._indexer.stdin:
            self._indexer.stdin.close()
        self._errors.truncate(0)
        paths = str(self.path), str(self._place)
        command = installation.command("inspector.summaries.indexer", *paths, *rules.in_use().arguments)
        self._indexer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self._errors)

    def _ended(self) -> bool:
        """Whether no index is being built. Stores why the last attempt failed, until one succeeds."""
        status = self._indexer.poll() if self._indexer else 0
        if status:
            self._errors.seek(0)
            words = self._errors.read().decode(errors="replace").strip().splitlines()
            self._failure = f"its index could not be built: {words[-1] if words else f'exit status {status}'}"
        elif status == 0 and self._indexer:
            self._failure = ""
        return status is not None

    @contextlib.contextmanager
    def opened_index(self) -> Iterator[index.Index | None]:
        """Open the index for one thread's use; None if there is none yet."""
        found = index.Index.open(self._place)
        try:
            yield found
        finally:
            if found is not None:
                found.close()

    @property
    def indexing(self) -> bool:
        """Whether part of the capture is not indexed yet."""
        return self.state.last < self.total

    @property
    def progress(self) -> str:
        """How far the capture is indexed, for a title."""
        newest = ", the newest first" if any(place < 0 for place in self._runs) else ""
        return f"reading record {self.state.last:,} of {self.total:,}{newest}"

    @property
    def trouble(self) -> str:
        """What prevents the capture from being indexed completely; empty if nothing does."""
        self._ended()
        return self.state.trouble or self._failure

    # -- records --------------------------------------------------------------------------------------

    def record(self, seq: int) -> Record | None:
        """A record with its bodies. Raises CaptureError."""
        with self.capture() as capture:
            return capture.record(seq)

    def step(self, seq: int) -> Step | None:
        """A record, decoded, unless that failed when it was indexed. Its ``run`` contains only this record; ``owner``
        returns its real run. Raises CaptureError."""
        record = self.record(seq)
        return next(self._decoded([record])) if record else None

    def steps(self, number: int) -> Iterator[Step]:
        """A run's records, decoded; all have the same ``run``, which grows with each record. Raises CaptureError."""
        with self.capture() as capture:
            yield from self._decoded(record for seq in self.seqs(number) if (record := capture.record(seq)))

    def _decoded(self, records: Iterable[Record]) -> Iterator[Step]:
        from inspector.analysis.analyzer import retrace

        # What did not end when it was indexed would not end now either: only the main thread of a process is limited.
        return retrace(records, self.unanalyzed)

    def connection(self, ident: str) -> Connection | None:
        """A connection by its id, and how it ended. Raises CaptureError."""
        with self.capture() as capture:
            return capture.connection(ident)
