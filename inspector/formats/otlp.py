"""A capture as OpenTelemetry spans: traces data of OTLP in its JSON encoding, as collectors take it.

A run is a trace: its root span is the run, below it are its phases, below those its requests. A request is a span of
kind SERVER, for the agent's connection, with one of kind CLIENT in it for the master's. Findings are events. Attributes
of HTTP are those of the stable semantic conventions; those that begin with ``puppet.`` are ours.

Source: OTLP 1.x (opentelemetry-proto), Semantic Conventions for HTTP Spans 1.23.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING

import msgspec

from inspector import __version__, regex
from inspector.analysis.analyzer import outline
from inspector.clocks import nanoseconds
from inspector.explain.master_log.measured import NOTHING
from inspector.explain.reference import templates
from inspector.formats.stretches import Stretches
from inspector.model import Connection, Exchange, Gap, Handshake
from inspector.summaries import summary
from inspector.summaries.summary import shown_by
from inspector.text import address, clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from inspector.analysis.analyzer import Step
    from inspector.explain.master_log.measured import MasterTime, MasterTimes
    from inspector.formats.lossless import CaptureItem
    from inspector.formats.stretches import Stretch
    from inspector.model import Finding, Leg, Record
    from inspector.summaries.summary import RunBrief


INTERNAL, SERVER, CLIENT = 1, 2, 3
"""Kinds of spans."""
QUERY = frozenset(
    """
    environment configured_environment code_id checksum_type links recurse recurselimit max_files source_permissions
    fail_on_404 static_catalog
    """.split()  # noqa: SIM905 - names in a row are easier to read
)
"""The parameters of queries that leave: facts and others do not."""
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"))
_FAILED = frozenset(("failed", "refused"))
_AT_MASTER = ("queue", "compile", "serve")
"""The parts of a master's time in its logs, in seconds."""
_UUID = regex.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}")


def lines(
    items: Iterable[CaptureItem],
    owner: Callable[[int], RunBrief | None] = lambda _: None,
    sentence: Callable[[str], str] | None = None,
    times: MasterTimes = NOTHING,
) -> Iterator[str]:
    """Yield traces data, one line per span. ``owner`` returns the run of a record number, ``sentence`` a finding's
    sentence as it may leave; without it nothing is withheld. ``times`` is what a master's logs say."""
    resource = {"attributes": attributes_of({"service.name": "puppet-inspector", "service.version": __version__})}
    scope = {"name": "puppet-inspector", "version": __version__}
    yield f'{{"resourceSpans":[{{"resource":{encoded(resource)},"scopeSpans":[{{"scope":{encoded(scope)},"spans":['
    comma = ""
    for span in spans(items, owner, sentence or str, times):
        yield comma + encoded(span)
        comma = ","
    yield "]}]}]}"


def spans(
    items: Iterable[CaptureItem],
    owner: Callable[[int], RunBrief | None],
    sentence: Callable[[str], str],
    times: MasterTimes,
) -> Iterator[Span]:
    """Yield the spans of records: those of a run after those within it."""
    traces = _Traces(owner, sentence, times)
    for item in items:
        if not isinstance(item, Connection):
            yield from traces.record(item)
    yield from traces.rest()


class _Traces:
    """Makes the spans. The same record has the same identifiers wherever it is sent from."""

    def __init__(
        self, owner: Callable[[int], RunBrief | None], sentence: Callable[[str], str], times: MasterTimes
    ) -> None:
        self._owner, self._sentence, self._times = owner, sentence, times
        self._runs: dict[int, RunBrief] = {}
        self._shown: set[tuple[int, Finding]] = set()
        self._stretches = Stretches()

    def record(self, record: Record) -> Iterator[Span]:
        step = outline(record)
        run = self._owner(record.seq)
        run = run if run and run.number else None
        trace, parent = trace_id(run, record), ""
        if run:
            self._runs[run.number] = run
            stretch, ended = self._stretches.add(summary.brief_of(step), run)
            parent = _stretch_id(stretch)
            if ended:
                yield self._phase(ended)
        match record:
            case Exchange():
                server = self._server(record, step, run, trace, parent)
                yield server
                if record.master:
                    yield _client(record, record.master, step, server, self._times.get(record.seq))
            case Handshake():
                yield self._handshake(record, run, trace, parent)
            case Gap():
                yield span_of(trace, _id(trace, "gap", record.seq), "gap", INTERNAL, record.time, record.time,
                            {"puppet.record": record.seq, "puppet.records.lost": record.lost},
                            error=record.reason or "not recorded")  # fmt: skip

    def rest(self) -> Iterator[Span]:
        for stretch in self._stretches.rest():
            yield self._phase(stretch)
        for run in self._runs.values():
            verdict = run.verdict
            attributes: dict[str, Value] = {
                "puppet.run": run.number, "puppet.outcome": run.result, "puppet.certname": run.certname,
                "client.address": run.address, "puppet.environment": self._text(run.environment),
                "puppet.agent.version": self._text(run.agent_version),
                "puppet.master.version": self._text(run.master_version),
                "puppet.transaction_uuid": uuid_of(run),
                "puppet.verdict": self._text(verdict.message if verdict else None),
                "puppet.fix": self._text(run.fix if verdict else None),
            }  # fmt: skip
            span = span_of(trace_id(run), _run_id(run), f"puppet run {run.result}", INTERNAL, run.started, run.ended,
                         attributes, error=run.result if run.result in _FAILED else None)  # fmt: skip
            self._add_events(span, run, run.findings, run.ended)
            yield span

    def _text(self, text: str | None) -> str | None:
        return self._sentence(text) if text else None

    def _add_events(self, span: Span, run: RunBrief, findings: Iterable[Finding], at: float) -> None:
        """Add the findings that no other span has."""
        new = [finding for finding in findings if (run.number, finding) not in self._shown]
        self._shown.update((run.number, finding) for finding in new)
        span.events = [
            Event(str(nanoseconds(at)), "finding", attributes_of({
                "puppet.rule": finding.rule, "puppet.severity": str(finding.severity),
                "puppet.message": self._sentence(finding.message), "puppet.records": list(map(str, finding.seqs)),
            })) for finding in new
        ]  # fmt: skip

    def _phase(self, stretch: Stretch) -> Span:
        run = stretch.run
        return span_of(trace_id(run), _stretch_id(stretch), f"phase {stretch.phase}", INTERNAL, stretch.began,
                     stretch.ended, {"puppet.phase": str(stretch.phase), "puppet.records": stretch.records},
                     parent=_run_id(run))  # fmt: skip

    def _server(self, exchange: Exchange, step: Step, run: RunBrief | None, trace: str, parent: str) -> Span:
        request, agent, match, identity = exchange.request, exchange.agent, step.match, exchange.identity
        host, port = _host(request.header("host") or agent.sni or "")
        attributes = _http(exchange) | {
            "http.route": templates(match.endpoint)[match.dialect] if match else None,
            "url.scheme": "https" if agent.secured or agent.tls_version else "http",
            "url.path": request.path, "url.query": query(request.query), "server.address": host, "server.port": port,
            "client.address": agent.address, "client.port": agent.port,
            "user_agent.original": request.header("user-agent"),
            "puppet.record": exchange.seq, "puppet.phase": str(step.phase),
            "puppet.endpoint": match.endpoint.name if match else None,
            "puppet.environment": match.environment if match else None,
            "puppet.certname": identity.certname if identity else None,
            "puppet.identity.missing": identity.reason if identity else None,
            "error.type": (failure := _failure(exchange, 500)),
        }  # fmt: skip
        span = span_of(trace, _id(trace, "server", exchange.seq), _title(step, exchange), SERVER, exchange.time,
                     exchange.ended, attributes, parent, _error(exchange, failure))  # fmt: skip
        if run:
            self._add_events(span, run, shown_by(exchange.seq, run), exchange.ended)
        return span

    def _handshake(self, record: Handshake, run: RunBrief | None, trace: str, parent: str) -> Span:
        leg, agents = record.leg, record.leg.side == "agent"
        attributes: dict[str, Value] = {
            "client.address" if agents else "server.address": leg.address,
            "client.port" if agents else "server.port": leg.port,
            "puppet.record": record.seq, "puppet.alert": record.alert, "puppet.alert.by": record.alert_by,
            "error.type": record.alert or "tls_handshake",
        }  # fmt: skip
        began = min(leg.connected or record.time, record.time)
        span = span_of(trace, _id(trace, "handshake", record.seq), "TLS handshake", SERVER if agents else CLIENT, began,
                     record.time, attributes, parent, record.reason or "failed")  # fmt: skip
        if run:
            self._add_events(span, run, shown_by(record.seq, run), record.time)
        return span


def _client(exchange: Exchange, master: Leg, step: Step, server: Span, time: MasterTime | None) -> Span:
    """Return the span of the master's connection, with what its logs say of the time."""
    request, response = exchange.request, exchange.response
    host = clean(address(master.address or "unknown", master.port or 0))
    asked = query(request.query)
    failure = _failure(exchange, 400)
    attributes = _http(exchange) | {
        "server.address": master.sni or master.address, "server.port": master.port,
        "network.peer.address": master.address, "network.peer.port": master.port,
        "url.full": f"https://{host}{request.path}{f'?{asked}' if asked else ''}", "error.type": failure,
        "puppet.record": exchange.seq,
    }  # fmt: skip
    if time and response and request.ended and response.started and response.ended:
        parts = time.parts(max(0.0, response.started - request.ended), max(0.0, response.ended - response.started))
        attributes |= {
            f"puppet.master.{kind}": took for kind, took in parts if kind in _AT_MASTER and math.isfinite(took)
        }
    began = request.ended or exchange.time
    if master.connecting is not None and master.connecting >= exchange.time:  # the connection was made for it
        began = min(began, master.connecting)
    ended = (response.ended if response else None) or exchange.ended
    return span_of(server.trace_id, _id(server.trace_id, "client", exchange.seq), _title(step, exchange), CLIENT, began,
                 ended, attributes, server.span_id, _error(exchange, failure))  # fmt: skip


def _http(exchange: Exchange) -> dict[str, Value]:
    request, response = exchange.request, exchange.response
    known = request.method in METHODS
    return {
        "http.request.method": request.method if known else "_OTHER",
        "http.request.method_original": None if known else request.method,
        "http.response.status_code": response.status if response else None,
        "network.protocol.name": "http", "network.protocol.version": request.http_version.removeprefix("HTTP/"),
    }  # fmt: skip


def _title(step: Step, exchange: Exchange) -> str:
    """Return a span's name: few, whatever is requested."""
    method = exchange.request.method if exchange.request.method in METHODS else "HTTP"
    return f"{method} {templates(step.match.endpoint)[step.match.dialect]}" if step.match else method


def _failure(exchange: Exchange, least: int) -> str | None:
    """Return the type of an error; None without one. An answer is one from a status on, for the client earlier."""
    if exchange.response is None:
        return "no_response"
    if exchange.response.status >= least:
        return str(exchange.response.status)
    return "incomplete" if exchange.error else None


def _error(exchange: Exchange, failure: str | None) -> str | None:
    """Return the description of an error: of a status nothing that its number does not say."""
    return None if failure is None else (exchange.error or "")


def query(text: str) -> str | None:
    """Return a query without what it says about the node: only parameters that the protocol itself needs."""
    found = [pair for pair in text.split("&") if pair.partition("=")[0] in QUERY]
    return "&".join(found) or None


def _host(text: str) -> tuple[str | None, int | None]:
    host, _, port = text.rpartition(":")
    if host and port.isascii() and port.isdecimal() and len(port) <= 5:
        return host.strip("[]"), int(port)
    return text or None, None


# -- identifiers ------------------------------------------------------------------------------------------


def trace_id(run: RunBrief | None, record: Record | None = None) -> str:
    """Return the identifier of a run's trace: its transaction_uuid, or a hash where there is none."""
    if run is None:
        return _hash(16, "record", record.seq if record else 0, record.time if record else 0)
    if uuid := uuid_of(run):
        return uuid.replace("-", "")
    return _hash(16, "run", run.name, run.number, run.started)


def uuid_of(run: RunBrief) -> str | None:
    """Return a run's transaction_uuid, which agents make at random and reports contain; None if it is none."""
    uuid = (run.transaction_uuid or "").lower()
    return uuid if _UUID.fullmatch(uuid) and uuid.strip("-0") else None


def _run_id(run: RunBrief) -> str:
    # With its number: another run may claim the same transaction_uuid.
    return _id(trace_id(run), "run", run.number)


def _stretch_id(stretch: Stretch) -> str:
    return _id(trace_id(stretch.run), "phase", stretch.run.number, stretch.place)


def _id(trace: str, *parts: object) -> str:
    return _hash(8, trace, *parts)


def _hash(size: int, *parts: object) -> str:
    made = hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).digest()[:size]
    return (made if any(made) else b"\1" * size).hex()


# -- messages --------------------------------------------------------------------------------------------------

ERROR = 2
"""A status; otherwise there is none."""

type Value = str | int | float | bool | list[str] | None


class AnyValue(msgspec.Struct, omit_defaults=True, rename="camel"):
    string_value: str | None = None
    bool_value: bool | None = None
    int_value: str | None = None
    """JSON has no integers of 64 bits: as text."""
    double_value: float | None = None
    array_value: ArrayValue | None = None


class ArrayValue(msgspec.Struct):
    values: list[AnyValue]


class KeyValue(msgspec.Struct):
    key: str
    value: AnyValue


class Event(msgspec.Struct, rename="camel"):
    time_unix_nano: str
    name: str
    attributes: list[KeyValue]


class Status(msgspec.Struct, omit_defaults=True, frozen=True):
    code: int = 0
    message: str = ""


class Span(msgspec.Struct, omit_defaults=True, rename="camel"):
    trace_id: str
    span_id: str
    name: str
    kind: int
    start_time_unix_nano: str
    end_time_unix_nano: str
    attributes: list[KeyValue]
    parent_span_id: str = ""
    events: list[Event] = []
    status: Status = Status()


def span_of(
    trace: str, ident: str, name: str, kind: int, began: float, ended: float, attributes: dict[str, Value],
    parent: str = "", error: str | None = None,
) -> Span:  # fmt: skip
    """Return a span from one time to another; ``error`` is the description of what went wrong, None: nothing."""
    start = nanoseconds(began)
    status = Status() if error is None else Status(ERROR, clean(error))
    return Span(trace, ident, name, kind, str(start), str(max(start, nanoseconds(ended))), attributes_of(attributes),
                parent, status=status)  # fmt: skip


def attributes_of(values: dict[str, Value]) -> list[KeyValue]:
    """Return attributes, without those that have no value."""
    return [KeyValue(key, _value(value)) for key, value in values.items() if value is not None and value != ""]


def _value(value: Value) -> AnyValue:
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=str(value))
        case float():
            return AnyValue(double_value=value)
        case list():
            return AnyValue(array_value=ArrayValue([_value(item) for item in value]))
    return AnyValue(string_value=clean(value or ""))


def encoded(message: object) -> str:
    """Return a message in JSON."""
    return msgspec.json.encode(message).decode()
