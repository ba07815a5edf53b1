"""Sends spans to a collector (OTLP over HTTP), on a thread of its own in the analysis process: nobody waits for it.

What a collector does not take is dropped and counted: because too much waits, because it cannot be reached for some
time, or because it refuses.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import threading
from collections import Counter, deque
from urllib.parse import urlsplit

from inspector import __version__
from inspector.proxy.telemetry.samples import Exported

QUEUE = 16 * 2**20
"""Bytes that wait to be sent; what comes on top is dropped."""
TIMEOUT = 10.0
"""Seconds in which the collector must answer something."""
DEADLINE = 30.0
"""Seconds in which its answer must be complete."""
ANSWER = 2**16
"""Bytes of its answer that are read."""
PAUSES = (1.0, 2.0, 4.0, 8.0)
"""Seconds between attempts."""
LATER = (429, 502, 503, 504)
"""Answers after which the same may be sent again (OTLP/HTTP)."""
END = 4.0
"""Seconds for the rest when the proxy ends."""


class Sender:
    """Sends traces data, and counts what became of it."""

    def __init__(self, url: str) -> None:
        """``url`` is where a collector takes traces."""
        self._url = urlsplit(url)
        self._shown = f"{self._url.scheme}://{self._url.netloc}{self._url.path}"
        self._queue: deque[tuple[bytes, int]] = deque()
        """Bodies, each with the number of its spans."""
        self._bytes = 0
        self._changed = threading.Condition()
        self._closing = False
        self._ending = threading.Event()
        self._sent = 0
        self._dropped: Counter[str] = Counter()
        self._failing = False
        self._lines: list[str] = []
        self._thread = threading.Thread(target=self._run, name="spans", daemon=True)
        self._thread.start()

    def put(self, body: bytes, spans: int) -> None:
        """Send something soon. Never waits."""
        with self._changed:
            if self._bytes + len(body) > QUEUE or self._closing:
                self._dropped["queue full"] += spans
                return
            self._queue.append((body, spans))
            self._bytes += len(body)
            self._changed.notify()

    def drop(self, reason: str, spans: int) -> None:
        """Count what cannot even be queued."""
        with self._changed:
            self._dropped[reason] += spans

    def report(self) -> tuple[list[Exported], list[str]]:
        """Return what became of spans since the last call, and lines about it for the console."""
        with self._changed:
            samples = [Exported(0, number, reason) for reason, number in self._dropped.items()]
            if self._sent:
                samples.append(Exported(self._sent, 0, ""))
            lines, self._lines = self._lines, []
            self._sent = 0
            self._dropped.clear()
        return samples, lines

    def close(self) -> None:
        """Send the rest, but not for long; what is left is dropped."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(END)
        self._ending.set()
        with self._changed:
            self._dropped["the proxy ended"] += sum(spans for _, spans in self._queue)
            self._queue.clear()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._queue and not self._closing:
                    self._changed.wait()
                if not self._queue:
                    return
                body, spans = self._queue[0]
            outcome, rejected = self._deliver(body)
            with self._changed:
                if not self._queue:
                    return  # given up meanwhile
                self._queue.popleft()
                self._bytes -= len(body)
                if outcome:
                    self._dropped[outcome] += spans
                else:
                    rejected = max(0, min(rejected, spans))
                    self._sent += spans - rejected
                    if rejected:
                        self._dropped["rejected"] += rejected

    def _deliver(self, body: bytes) -> tuple[str, int]:
        """Return why something could not be sent (empty: it was), and how many spans of it were rejected."""
        for pause in (*PAUSES, None):
            reason, rejected, again = self._attempt(body)
            self._note(reason)
            if not again or pause is None or self._ending.wait(pause) or self._closing:
                break
        return ("" if not reason else "unreachable" if again else "refused"), rejected

    def _note(self, reason: str) -> None:
        """Tell the console when sending begins to fail, and when it works again."""
        failing = bool(reason)
        if failing is self._failing:
            return
        self._failing = failing
        text = f"spans cannot be sent to {self._shown} ({reason})" if failing else "spans are being sent again"
        with self._changed:
            self._lines.append(f"-- {text}")

    def _attempt(self, body: bytes) -> tuple[str, int, bool]:
        """Return what went wrong (empty: nothing), how many spans were rejected, and whether to try again."""
        host, port = self._url.hostname or "", self._url.port
        if self._url.scheme == "https":
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port or 443, timeout=TIMEOUT, context=ssl.create_default_context()
            )
        else:
            connection = http.client.HTTPConnection(host, port or 80, timeout=TIMEOUT)
        watch = threading.Timer(DEADLINE, _cut, (connection,))
        watch.daemon = True
        watch.start()
        try:
            headers = {"Content-Type": "application/json", "User-Agent": f"puppet-inspector/{__version__}"}
            connection.request("POST", self._url.path, body, headers)
            answer = connection.getresponse()
            text = answer.read(ANSWER)
        except (OSError, http.client.HTTPException, ValueError) as error:
            return getattr(error, "strerror", None) or type(error).__name__, 0, True
        finally:
            watch.cancel()
            connection.close()
        if 200 <= answer.status < 300:
            return "", _rejected(text), False
        return f"status {answer.status}", 0, answer.status in LATER


def _cut(connection: http.client.HTTPConnection) -> None:
    """End a connection that another thread waits for."""
    with contextlib.suppress(OSError, AttributeError):
        connection.sock.shutdown(socket.SHUT_RDWR)


def _rejected(text: bytes) -> int:
    """Return how many spans a collector says that it rejected; what is no answer says nothing."""
    with contextlib.suppress(ValueError, TypeError, LookupError, OverflowError, RecursionError):
        return int(json.loads(text)["partialSuccess"]["rejectedSpans"])
    return 0
