"""The metrics of a proxy, in the form that Prometheus reads, and the endpoint that serves them.

One endpoint for all workers: the process that starts the analysis has it. A scraper can delay no agent: each is
answered by a thread, there are few, and the oldest is given up for a new one.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import socket
import socketserver
import struct
import threading
from collections import OrderedDict
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.exposition import choose_encoder

from inspector import __version__
from inspector.errors import InspectorError
from inspector.model import Phase
from inspector.proxy.telemetry.samples import OTHER, Ended, Exported, Found, Lost, Refused, Served, UnderWayCounts
from inspector.text import address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from inspector.proxy.telemetry.samples import Sample
    from inspector.proxy.telemetry.settings import Telemetry

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
"""Seconds of a request: a catalog may take as long as agents wait for it, ten minutes."""
RUN_BUCKETS = (1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600)
"""Seconds of a run."""
CERTNAMES = 10_000
"""Certnames that are labels; of more, runs are counted together."""
SCRAPERS = 8
"""Scrapers that are served at the same time."""
PATIENCE = 10.0
"""Seconds in which a scraper must send or take something."""
_NUMBER = struct.Struct("<q")


class Metrics:
    """Counts what happens, and is served at an address. One thread observes, others read."""

    def __init__(self, where: tuple[str, int], *, certnames: bool = False) -> None:
        """Serve metrics at an address; ``certnames``: count runs by certname too. Raises InspectorError."""
        # When a series began says nothing that Prometheus does not know, and would double their number.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        Gauge("puppet_inspector_build_info", "The version of puppet-inspector.", ["version"], registry=registry).labels(
            __version__
        ).set(1)
        self._requests = Histogram(
            "puppet_inspector_request_duration_seconds", "Time from a request's first byte to its answer's last.",
            ["route", "phase", "status"], buckets=BUCKETS, registry=registry,
        )  # fmt: skip
        self._runs = Counter(
            "puppet_inspector_runs", "Agent runs that are over, by how they ended.",
            ["outcome", *(["certname"] if certnames else [])], registry=registry,
        )  # fmt: skip
        self._run_durations = Histogram(
            "puppet_inspector_run_duration_seconds", "Time from a run's first byte to its last.",
            ["outcome"], buckets=RUN_BUCKETS, registry=registry,
        )  # fmt: skip
        self._findings = Counter(
            "puppet_inspector_findings", "Runs in which a rule found a deviation from the protocol.",
            ["rule", "severity"], registry=registry,
        )  # fmt: skip
        self._handshakes = Counter(
            "puppet_inspector_handshake_failures",
            "TLS handshakes that failed: with whom, with which alert (none: without), and who sent it.",
            ["side", "reason", "by"], registry=registry,
        )  # fmt: skip
        self._identities = Counter(
            "puppet_inspector_identities_missing",
            "Requests of agents with a certificate that were passed on without their identity.", registry=registry,
        )  # fmt: skip
        self._gaps = Counter("puppet_inspector_gaps", "Gaps in the recording.", registry=registry)
        self._lost = Counter("puppet_inspector_records_lost", "Records that are lost in gaps.", registry=registry)
        self._spans = Counter(
            "puppet_inspector_spans_sent", "Spans that the collector of puppet_otlp has taken.", registry=registry
        )
        self._dropped = Counter(
            "puppet_inspector_spans_dropped", "Spans that could not be sent to the collector of puppet_otlp.",
            ["reason"], registry=registry,
        )  # fmt: skip
        self._open_requests = Gauge(
            "puppet_inspector_requests_under_way", "Requests without a complete answer yet, by phase.",
            ["phase"], registry=registry,
        )  # fmt: skip
        self._open_runs = Gauge(
            "puppet_inspector_runs_under_way", "Agent runs that are not over, by the phase that they are in.",
            ["phase"], registry=registry,
        )  # fmt: skip
        self._show(UnderWayCounts({}, {}))
        for outcome in ("complete", "failed", "waiting", "refused", "unfinished"):
            self._run_durations.labels(outcome)  # a rate needs the zero before the first run
            if not certnames:
                self._runs.labels(outcome)
        self._certnames: set[str] | None = set() if certnames else None
        self._endpoint = _Endpoint(where, registry)
        self.close = self._endpoint.close

    def watch(self, capture: Callable[[], Path], waiting: Callable[[], float]) -> None:
        """Show the size of the capture, and the bytes that wait to be recorded."""
        Gauge(
            "puppet_inspector_capture_bytes", "Size of the capture that is being written.", registry=self.registry
        ).set_function(lambda: _size(capture()))
        Gauge(
            "puppet_inspector_recorder_queue_bytes", "Memory of what waits to be recorded, in all processes.",
            registry=self.registry,
        ).set_function(waiting)  # fmt: skip

    def observe(self, samples: Iterable[Sample]) -> None:
        """Count what the analysis has measured."""
        for sample in samples:
            match sample:
                case Served():
                    self._requests.labels(sample.route, sample.phase, sample.status).observe(sample.seconds)
                    self._identities.inc(sample.identity_missing)
                case Refused():
                    self._handshakes.labels(sample.side, sample.alert, sample.by).inc()
                case Lost():
                    self._gaps.inc()
                    self._lost.inc(max(0, sample.records))
                case Found():
                    self._findings.labels(sample.rule, sample.severity).inc()
                case Ended():
                    self._runs.labels(sample.outcome, *self._certname(sample.certname)).inc()
                    self._run_durations.labels(sample.outcome).observe(sample.seconds)
                case Exported():
                    self._spans.inc(sample.sent)
                    if sample.dropped:
                        self._dropped.labels(sample.reason).inc(sample.dropped)
                case UnderWayCounts():
                    self._show(sample)

    def _show(self, sample: UnderWayCounts) -> None:
        for phase in Phase:
            self._open_requests.labels(phase).set(sample.requests.get(phase, 0))
            self._open_runs.labels(phase).set(sample.runs.get(phase, 0))

    def _certname(self, name: str) -> tuple[str, ...]:
        if self._certnames is None:
            return ()
        if name not in self._certnames:
            if len(self._certnames) >= CERTNAMES:
                return (OTHER,)
            self._certnames.add(name)
        return (name,)


def _size(path: Path) -> int:
    """Return the size of a capture with what SQLite has beside it."""
    total = 0
    for name in (path, path.with_name(f"{path.name}-wal")):
        with contextlib.suppress(OSError):
            total += name.stat().st_size
    return total


class _Endpoint(socketserver.ThreadingTCPServer):
    """Serves metrics to scrapers."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = SCRAPERS

    def __init__(self, where: tuple[str, int], registry: CollectorRegistry) -> None:
        """Listen. Raises InspectorError."""
        self.registry = registry
        self._serving: OrderedDict[Any, None] = OrderedDict()
        """The connections of scrapers, the oldest first."""
        self._lock = threading.Lock()
        self.address_family = socket.AF_INET6 if ":" in where[0] else socket.AF_INET
        try:
            super().__init__(where, _Handler)
        except OSError as error:
            raise InspectorError(
                f"Cannot serve metrics on {address(*where)}: {error.strerror}.",
                "Choose another address with puppet_metrics=HOST:PORT.",
            ) from error
        threading.Thread(target=self.serve_forever, name="metrics", daemon=True).start()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._serving[request] = None
            if len(self._serving) > SCRAPERS:
                oldest, _ = self._serving.popitem(last=False)
                with contextlib.suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)  # its thread ends with that
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._serving.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore what goes wrong with a scraper: it will be back."""

    def close(self) -> None:
        """Listen no more."""
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: _Endpoint
    timeout = PATIENCE
    server_version = "puppet-inspector"
    sys_version = ""

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(404, explain="Metrics are at /metrics.")
            return
        encode, content_type = choose_encoder(self.headers.get("Accept", ""))
        body = encode(self.server.registry)
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing: scrapers come every few seconds."""


def served(telemetry: Telemetry) -> Metrics | None:
    """Return the metrics, if they are wanted. Raises InspectorError."""
    return Metrics(telemetry.metrics, certnames=telemetry.certnames) if telemetry.metrics else None


class Waiting:
    """The bytes that wait to be recorded in each worker, in memory that it shares with the process that serves
    metrics."""

    def __init__(self, workers: int) -> None:
        self.descriptor = os.memfd_create("waiting")
        """What workers inherit."""
        os.ftruncate(self.descriptor, workers * _NUMBER.size)
        self._shared = mmap.mmap(self.descriptor, 0)

    def total(self) -> float:
        """Return the sum of all."""
        return float(sum(number for (number,) in _NUMBER.iter_unpack(self._shared[:])))

    def close(self) -> None:
        """Release the memory."""
        self._shared.close()
        os.close(self.descriptor)


def reporter(descriptor: int, worker: int) -> Callable[[int], None]:
    """Return what a worker reports its number with."""
    shared = mmap.mmap(descriptor, 0)
    return lambda number: _NUMBER.pack_into(shared, worker * _NUMBER.size, number)
