"""The masking process (``masking_worker``) as its proxy sees it."""

from __future__ import annotations

import math
import os
import select
import subprocess
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

import msgspec

from inspector import installation
from inspector.model import Connection, Gap
from inspector.proxy import masking_channel, side_process
from inspector.proxy.backlog import Item
from inspector.proxy.masking_channel import Answer, Question

if TYPE_CHECKING:
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


class MaskingClient:
    """Passes what is to be recorded through the masking process, in order.

    An item goes on masked or not at all: what cannot be masked becomes a gap. The process is started again whenever it
    ends; items wait meanwhile.
    """

    def __init__(self, folder: Path, deliver: Callable[[Item | None], None], write_line: Callable[[str], None]) -> None:
        """``folder`` has room for large masked bodies. ``deliver`` gets the items and the ends (None) that were put."""
        self._folder = folder
        self._deliver = deliver
        self._write_line = write_line
        self._queue: deque[Item | None] = deque()
        self._wake = threading.Event()
        self._closing = False
        self._until = math.inf
        """When the rest is given up: the proxy ends."""
        self._restarts = side_process.Restarts()
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._began = self._next_start = 0.0
        self._done = 0
        """The number of items that were passed on or lost."""
        self._thread = threading.Thread(target=self._run, name="masking client", daemon=True)

    def start(self) -> None:
        """Start the thread, and the process."""
        self._thread.start()

    def put(self, item: Item | None) -> None:
        """Queue an item. Never blocks: the event loop calls it."""
        self._queue.append(item)

    def finish(self, timeout: float) -> None:
        """Give up after some seconds, and wait for nothing else any more."""
        self._until = time.monotonic() + timeout
        self._wake.set()

    def close(self) -> None:
        """End the process and the thread once everything is passed on; only after ``finish``."""
        self._closing = True
        self._wake.set()
        self._thread.join(JOIN)

    def _run(self) -> None:
        while True:
            if self._process is None:
                self._start()
            elif self._process.poll() is not None:
                self._bury(deque())
            while self._queue:
                if self._queue[0] is None:
                    self._deliver(self._queue.popleft())
                else:
                    self._pass_on(self._batch())
            if self._closing:
                break
            self._wake.wait(INTERVAL)
            self._wake.clear()
        self._stop()

    def _batch(self) -> deque[Item]:
        """Take the next items off the queue; all of them if they will be lost."""
        batch: deque[Item] = deque()
        size = 0
        while self._queue and ((len(batch) < BATCH and size < BYTES) or self._expired):
            item = self._queue[0]
            if item is None:
                break
            self._queue.popleft()
            batch.append(item)
            size += item.weight
        return batch

    @property
    def _expired(self) -> bool:
        return time.monotonic() > self._until

    def _pass_on(self, items: deque[Item]) -> None:
        """Mask and deliver items, however many processes that takes."""
        while items:
            if self._expired:
                self._lose(items, "the proxy ended before they were masked")
                items.clear()
            elif self._channel is None:
                self._start()
            else:
                try:
                    self._ask(items, self._channel)
                except Exception:  # noqa: BLE001 - whatever failed, nothing goes on that is not masked
                    self._bury(items)

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

    def _start(self) -> None:
        """Start the process, after a pause if it has ended before; not if the pause is not over yet."""
        hurries = self._until < math.inf
        pause = INTERVAL if hurries and self._restarts.deaths else self._next_start - time.monotonic()
        if pause > 0:
            time.sleep(min(pause, INTERVAL))
            if pause > INTERVAL:
                return
        try:
            self._channel, theirs = masking_channel.pair(self._wait)
            with theirs:
                self._process = subprocess.Popen(
                    installation.command(
                        "inspector.proxy.masking_worker", str(self._folder), str(os.getpid()), str(theirs.fileno())
                    ),
                    # What it prints may quote what should have been masked.
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    start_new_session=True, pass_fds=[theirs.fileno()],
                )  # fmt: skip
        except OSError as error:  # no process or no descriptor is left
            self._stop()
            self._pause(0.0)
            self._write_line(f"-- masking cannot be started ({error.strerror}); records wait")
        else:
            self._began = time.monotonic()

    def _bury(self, items: deque[Item]) -> None:
        """Note that the process has ended or must, and give up the first of the items if that is its fault."""
        status = self._stop()
        self._pause(time.monotonic() - self._began)
        reason = "a record took too long" if side_process.took_too_long(status) else f"exit status {status}"
        self._write_line(f"-- masking has stopped ({reason}); records wait, and it is started again")
        if self._restarts.gives_up(self._done + 1 if items else 0, status):
            self._lose([items.popleft()], f"masking it ended the process ({reason})")
            self._done += 1

    def _pause(self, lived: float) -> None:
        self._restarts.note(lived)
        self._next_start = time.monotonic() + self._restarts.pause

    def _stop(self) -> int:
        """End the process; return its exit status."""
        if self._channel:
            self._channel.close()
        process, self._process, self._channel = self._process, None, None
        if process is None:
            return 0
        process.kill()
        return process.wait()

    def _wait(self, descriptor: int, event: int) -> None:
        """Wait for the process. Raises TimeoutError."""
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
