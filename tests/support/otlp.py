"""Traces data of OTLP, read with the definitions of OpenTelemetry, and a collector that takes it."""

from __future__ import annotations

import base64
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from google.protobuf import json_format  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

IDENTIFIERS = {"traceId": 16, "spanId": 8, "parentSpanId": 8}


def parsed(text: str) -> Any:
    """Parse what a collector would get. Its JSON has identifiers in hexadecimal, protobuf's own JSON in base64; nothing
    else differs, and what is unknown is refused."""

    def converted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        for name in IDENTIFIERS.keys() & fields.keys():
            raw = bytes.fromhex(fields[name])
            assert len(raw) == IDENTIFIERS[name]
            assert any(raw)
            fields[name] = base64.b64encode(raw).decode()
        return fields

    document = json.loads(text, object_pairs_hook=converted)
    return json_format.ParseDict(document, ExportTraceServiceRequest(), ignore_unknown_fields=False)


def spans_of(text: str) -> list[Any]:
    """The spans, all of one resource."""
    (resource,) = parsed(text).resource_spans
    (scope,) = resource.scope_spans
    assert {item.key for item in resource.resource.attributes} >= {"service.name", "service.version"}
    return list(scope.spans)


def attributes(of: Any) -> dict[str, Any]:
    """Attributes as a mapping; a repeated key is a mistake."""
    found = {}
    for item in of.attributes:
        assert item.key not in found
        kind = item.value.WhichOneof("value")
        value = getattr(item.value, kind)
        found[item.key] = [each.string_value for each in value.values] if kind == "array_value" else value
    return found


class Collector:
    """What a small collector received."""

    def __init__(self) -> None:
        self.url = ""
        self.bodies: list[str] = []
        self.answers: list[tuple[int, bytes]] = []
        """Status and body of the next answers; then 200 and an empty object."""


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector that listens."""
    collector = Collector()

    class Server(ThreadingHTTPServer):
        daemon_threads = True

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            assert self.headers["Content-Type"] == "application/json"
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            status, answer = collector.answers.pop(0) if collector.answers else (200, b"{}")
            if status == 200:
                collector.bodies.append(body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        collector.url = f"http://127.0.0.1:{server.server_port}/v1/traces"
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
