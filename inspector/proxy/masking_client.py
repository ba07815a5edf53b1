"""The masking process (``masking_worker``) as its proxy sees it."""

from __future__ import annotations

import select
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Literal

import msgspec

from inspector.model import Connection, Gap
from inspector.proxy import masking_channel, side_process
from inspector.proxy.backlog import Item
from inspector.proxy.masking_channel import Answer, Question
from inspector.proxy.side_process import SideProcess

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Collection
    from pathlib import Path

    from inspector.proxy.masking_channel import Channel, Frame

INTERVAL = 0.2
"""Seconds between looks for items that wait: each switch of the interpreter's lock costs more than an item."""
BATCH = 100
"""Items that are sent at once; each has two large bodies at most."""
BYTES = 2**20
"""Bytes of items after which no more are sent at once."""
PATIENCE = 180.0
"""Seconds to wait for an answer: a process that is stopped uses no CPU time."""
JOIN = 5.0
"""Seconds to wait for the thread when everything is masked."""


type Redaction = Literal["", "write", "closed"]
"""What is masked before it is recorded: nothing, secrets, or everything that is not known to be harmless."""


class MaskingClient(SideProcess):
    """Passes what is to be recorded through the masking process, in order.

    An item goes on masked or not at all: what cannot be masked becomes a gap. While there is no process, items wait.
    """

    def __init__(
        self,
        folder: Path,
        deliver: Callable[[Item | None], None],
        write_line: Callable[[str], None],
        *,
        closed: bool = False,
    ) -> None:
        """``folder`` has room for large masked bodies. ``deliver`` gets the items and the ends (None) that were put.
        ``closed`` records only what is known to be harmless."""
        super().__init__("masking client")
        self._folder = folder
        self._options = ["closed"] if closed else []
        if closed:
            masking_channel.make_key()
        self._deliver = deliver
        self._write_line = write_line
        self._queue: deque[Item | None] = deque()
        self._batch: deque[Item] = deque()
        """The items that the process masks now."""
        self._wake = threading.Event()
        self._closed = False
        self._channel: Channel | None = None
        self._done = 0
        """The number of items that were passed on or lost."""

    def put(self, item: Item | None) -> None:
        """Queue an item. Never blocks: the event loop calls it."""
        self._queue.append(item)

    def finish(self, timeout: float) -> None:
        """Give up after some seconds, and wait for nothing else any more."""
        self._end(timeout)
        self._wake.set()

    def close(self) -> None:
        """End the process and the thread once everything is passed on; only after ``finish``."""
        self._closed = True
        self._wake.set()
        self._thread.join(JOIN)

    @property
    def _finished(self) -> bool:
        return self._closed and not self._queue and not self._batch

    def _run(self) -> None:
        super()._run()
        while not self._finished:  # without a process: what is left is lost
            self._pass_on()
            self._sleep()

    def _sleep(self) -> None:
        self._wake.wait(INTERVAL)
        self._wake.clear()

    def _serve(self, process: subprocess.Popen[bytes]) -> None:
        while process.poll() is None:
            try:
                self._pass_on()
            except Exception:  # noqa: BLE001 - whatever failed, nothing goes on that is not masked
                break
            if self._finished:
                break
            self._sleep()
        self._close_channel()

    def _pass_on(self) -> None:
        """Mask and deliver what waits. May raise anything: then the process is of no use any more."""
        while self._queue or self._batch:
            if not self._batch and self._queue[0] is None:
                self._deliver(self._queue.popleft())
                continue
            self._fill_batch()
            if self._expired:
                self._lose(self._batch, "the proxy ended before they were masked")
                self._batch.clear()
            else:
                assert self._channel  # noqa: S101 - there is a process
                self._ask(self._batch, self._channel)

    def _fill_batch(self) -> None:
        """Take the next items off the queue; all of them if they will be lost."""
        size = sum(item.weight for item in self._batch)
        while self._queue and ((len(self._batch) < BATCH and size < BYTES) or self._expired):
            item = self._queue[0]
            if item is None:
                break
            self._queue.popleft()
            self._batch.append(item)
            size += item.weight

    @property
    def _expired(self) -> bool:
        return time.monotonic() >= self._until

    def _ask(self, items: deque[Item], channel: Channel) -> None:
        """Send items to the process, and deliver what comes back. Raises OSError, MsgspecError."""
        questions: list[Question] = []
        descriptors: list[int] = []
        for place, item in enumerate(items):
            bodies, more = masking_channel.sent(item.spools)
            try:
                record = masking_channel.pack(item.record)
            except Exception as error:  # noqa: BLE001 - for example a number that is too large for any capture
                items[place] = _gap([item], f"it could not be packed ({type(error).__name__})")
                record, bodies, more = masking_channel.pack(items[place].record), [], []
            questions.append(Question(type(items[place].record).__name__, record, bodies))
            descriptors += more
        channel.send(msgspec.msgpack.encode(questions), descriptors)
        while items:
            frame = channel.receive()
            if frame is None:
                raise EOFError
            try:
                self._accept(items[0], frame)
            finally:
                frame.close()
            items.popleft()
            self._done += 1

    def _accept(self, item: Item, frame: Frame) -> None:
        """Deliver an item as the process has answered. Raises MsgspecError."""
        answer = msgspec.msgpack.decode(frame.content, type=Answer)
        if answer.failure:
            self._lose([item], f"masking it failed ({answer.failure})")
        elif bytes(answer.record) == bytes(masking_channel.NIL):
            self._deliver(item)
        else:
            record = masking_channel.unpack(answer.record, type(item.record))
            masked = item._replace(record=record, spools=masking_channel.received(answer.bodies, frame))
            item.close()
            self._deliver(masked)

    def _lose(self, items: Collection[Item], reason: str) -> None:
        gap = _gap(items, reason)
        self._deliver(gap)
        if isinstance(gap.record, Gap):
            self._write_line(f"-- {gap.record.reason}")

    # -- the process --------------------------------------------------------------------------------

    def _launch(self) -> subprocess.Popen[bytes]:
        self._channel, theirs = masking_channel.pair(self._await_process)
        with theirs:
            return self._popen(
                "inspector.proxy.masking_worker", str(self._folder), str(theirs.fileno()), *self._options,
                descriptors=[theirs.fileno()],
                errors=False,  # what it prints may quote what should have been masked
            )  # fmt: skip

    def _report_failure(self, error: OSError) -> None:
        self._close_channel()
        self._write_line(f"-- masking cannot be started ({error.strerror}); records wait")

    def _report_end(self, status: int) -> None:
        """Report that the process has ended, and give up the first item if that is its fault."""
        reason = "a record took too long" if side_process.took_too_long(status) else f"exit status {status}"
        self._write_line(f"-- masking has stopped ({reason}); records wait, and it is started again")
        if self._restarts.gives_up(self._done + 1 if self._batch else 0, status):
            self._lose([self._batch.popleft()], f"masking it ended the process ({reason})")
            self._done += 1

    def _close_channel(self) -> None:
        if self._channel:
            self._channel.close()
            self._channel = None

    def _await_process(self, descriptor: int, event: int) -> None:
        """Wait until the process has taken or sent something. Raises TimeoutError."""
        poll = select.poll()
        poll.register(descriptor, event)
        patience = time.monotonic() + PATIENCE
        while not poll.poll(INTERVAL * 1000):
            if time.monotonic() > min(patience, self._until):
                raise TimeoutError


def _gap(items: Collection[Item], reason: str) -> Item:
    """Return what is recorded in place of items that could not be masked."""
    for item in items:
        item.close()
    lost = sum(not isinstance(item.record, Connection) for item in items)
    words = {0: "a connection was", 1: "a record was"}.get(lost, f"{lost} records were")
    gap = Gap(time.time(), f"{words} not recorded: {reason}", lost)
    return Item(gap, weight=sum(item.weight for item in items))
