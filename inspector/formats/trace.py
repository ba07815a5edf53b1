"""A capture as trace events, which Perfetto (ui.perfetto.dev), chrome://tracing and speedscope show on a time axis.

Agents are processes. Their threads are their runs, with phases, and their connections, with requests; those to the
master too. Findings are instants. A flow leads from the agent's connection to the master's.

Source: Trace Event Format (Chromium), in its JSON object form; its schema is docs/json/trace.schema.json.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from inspector import __version__
from inspector.analysis.analyzer import outline
from inspector.clocks import nanoseconds
from inspector.explain import timeline
from inspector.explain.master_log.measured import NOTHING
from inspector.formats.stretches import Stretches
from inspector.model import Connection, Exchange, Gap, Handshake
from inspector.summaries import summary
from inspector.summaries.summary import shown_by
from inspector.text import address, clean, short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from inspector.explain.master_log.measured import MasterTimes
    from inspector.formats.lossless import CaptureItem
    from inspector.formats.stretches import Stretch
    from inspector.model import Finding, Leg, Record
    from inspector.summaries.summary import Brief, RunBrief

WORK: dict[timeline.Work, str] = {
    "connect": "connect to the master",
    "tls": "TLS handshake",
    "sending": "request",
    "waiting": "the master works",
    "receiving": "answer",
    "proxy": "proxy",
    "network": "network",
    "queue": "queue: no JRuby is free",
    "serve": "the master serves",
    "compile": "the master compiles",
}
"""The names of the parts of a request's time."""
_PROXY = 1
"""The process, and the thread, of what belongs to no agent."""
_TARGET = 200
"""Characters of a path in a name."""


def lines(
    items: Iterable[CaptureItem],
    owner: Callable[[int], RunBrief | None] = lambda _: None,
    sentence: Callable[[str], str] | None = None,
    times: MasterTimes = NOTHING,
) -> Iterator[str]:
    """Yield the trace, one line per event. ``owner`` returns the run of a record number, ``sentence`` a finding's
    sentence as it may leave; without it nothing is withheld. ``times`` is what a master's logs say."""
    about = {"version": f"puppet-inspector {__version__}"}
    yield f'{{"displayTimeUnit":"ms","otherData":{json.dumps(about)},"traceEvents":['
    comma = ""
    for event in _Trace(owner, sentence or str, times).events(items):
        yield comma + json.dumps(event, separators=(",", ":"))
        comma = ","
    yield "]}"


def _micros(time: float | None) -> int:
    return nanoseconds(time) // 1000


class _Trace:
    """Assigns processes and threads, and makes the events. On one thread nothing overlaps: viewers would nest it."""

    def __init__(
        self, owner: Callable[[int], RunBrief | None], sentence: Callable[[str], str], times: MasterTimes
    ) -> None:
        self._owner, self._sentence, self._times = owner, sentence, times
        self._made: list[dict[str, Any]] = []
        """The events that were not yielded yet."""
        self._processes: dict[str, int] = {}
        """By the agent's name."""
        self._legs: dict[str, tuple[int, int]] = {}
        """The process and the thread of each connection."""
        self._busy: dict[int, int] = {_PROXY: 0}
        """Until when something goes on, by thread, in microseconds."""
        self._lanes: dict[int, list[int]] = {}
        """The threads of the runs of each process: one, unless some overlap."""
        self._runs: dict[int, tuple[RunBrief, int, int]] = {}
        """Each run with its process and its thread, by its number."""
        self._shown: set[tuple[int, Finding]] = set()
        self._stretches = Stretches()

    def events(self, items: Iterable[CaptureItem]) -> Iterator[dict[str, Any]]:
        """Yield the events of all items."""
        self._name("process_name", _PROXY, _PROXY, "puppet-inspector")
        self._name("thread_name", _PROXY, _PROXY, "gaps")
        for item in items:
            if not isinstance(item, Connection):
                self._add(item)
                yield from self._made
                self._made.clear()
        for stretch in self._stretches.rest():
            self._phase(stretch)
        for run, process, thread in self._runs.values():
            for finding in run.findings:
                self._finding(run, finding, _micros(run.ended), process, thread)
        yield from self._made

    def _add(self, record: Record) -> None:
        brief, run = summary.brief_of(outline(record)), self._owner(record.seq)
        if isinstance(record, Gap):
            args = {"record": record.seq, "lost": record.lost}
            self._instant(f"gap: {clean(record.reason)}", "gap", _micros(record.time), _PROXY, _PROXY, "g", args)
            return
        name = clean((run.name if run else brief.certname or brief.address) or "unknown agent")
        process = self._process(name)
        if run and run.number:
            self._run(run, process)
            if ended := self._stretches.add(brief, run)[1]:
                self._phase(ended)
        if isinstance(record, Exchange):
            process, thread = self._exchange(record, brief, name, process)
        else:
            process, thread = self._handshake(record, process)
        if run and run.number:
            for finding in shown_by(record.seq, run):
                self._finding(run, finding, self._busy[thread], process, thread)

    # -- processes and threads ----------------------------------------------------------------------------

    def _process(self, name: str) -> int:
        if name not in self._processes:
            self._processes[name] = number = self._thread()
            self._name("process_name", number, number, name)
        return self._processes[name]

    def _thread(self) -> int:
        """Return a number that no process and no thread has."""
        number = len(self._busy) + 1
        self._busy[number] = 0
        return number

    def _leg(self, leg: Leg, process: int) -> tuple[int, int]:
        """Return process and thread of a connection. It stays with the agent that used it first."""
        if leg.id not in self._legs:
            self._legs[leg.id] = process, (thread := self._thread())
            peer = clean(address(leg.address or "?", leg.port or 0))
            self._name("thread_name", process, thread, f"{'from' if leg.side == 'agent' else 'to'} {peer}")
            if leg.connecting is not None and leg.connected is not None:
                self._slice("TCP connect", "connection", leg.connecting, leg.connected, process, thread)
            if leg.connected is not None and leg.secured is not None:
                args = {"version": leg.tls_version, "cipher": leg.cipher, "sni": leg.sni, "connection": leg.id}
                self._slice("TLS handshake", "connection", leg.connected, leg.secured, process, thread, args)
        return self._legs[leg.id]

    # -- events -------------------------------------------------------------------------------------------

    def _name(self, kind: str, process: int, thread: int, name: str) -> None:
        self._made.append({"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}})

    def _slice(
        self, name: str, category: str, began: float | None, ended: float | None, process: int, thread: int,
        args: dict[str, Any] | None = None,
    ) -> tuple[int, int]:  # fmt: skip
        """Add a slice behind the others of its thread; return its beginning and its end."""
        at = max(self._busy[thread], _micros(began))
        self._busy[thread] = until = max(at, _micros(ended))
        self._part(name, category, at, until, process, thread, args)
        return at, until

    def _part(
        self, name: str, category: str, at: int, until: int, process: int, thread: int, args: dict[str, Any] | None
    ) -> None:
        event = {"ph": "X", "name": name, "cat": category, "ts": at, "dur": until - at, "pid": process, "tid": thread}
        cleaned = {key: clean(value) if isinstance(value, str) else value for key, value in (args or {}).items()}
        self._made.append(event | {"args": {key: value for key, value in cleaned.items() if value is not None}})

    def _instant(
        self, name: str, category: str, at: int, process: int, thread: int, scope: str, args: dict[str, Any]
    ) -> None:
        self._made.append({"ph": "i", "name": name, "cat": category, "ts": at, "pid": process, "tid": thread,
                           "s": scope, "args": args})  # fmt: skip

    def _run(self, run: RunBrief, process: int) -> None:
        if run.number in self._runs:
            return
        began, ended = _micros(run.started), _micros(run.ended)
        lanes = self._lanes.setdefault(process, [])
        thread = next((lane for lane in lanes if self._busy[lane] <= began), None)
        if thread is None:
            thread = self._thread()
            lanes.append(thread)
            self._name("thread_name", process, thread, "runs")
            # Above the connections.
            self._made.append({"ph": "M", "name": "thread_sort_index", "pid": process, "tid": thread,
                               "args": {"sort_index": -1}})  # fmt: skip
        self._runs[run.number] = run, process, thread
        verdict = run.verdict
        args = {
            "outcome": run.result, "verdict": self._sentence(verdict.message) if verdict else None,
            "fix": self._sentence(run.fix) if verdict else None, "environment": run.environment,
            "agent version": run.agent_version, "master version": run.master_version,
        }  # fmt: skip
        shown = {key: self._sentence(value) if value else None for key, value in args.items()}
        self._slice(f"run {run.number}: {run.ending}", "run", run.started, run.ended, process, thread, shown)
        self._busy[thread] = max(self._busy[thread], ended)

    def _phase(self, stretch: Stretch) -> None:
        run, process, thread = self._runs[stretch.run.number]
        began, ended = _micros(run.started), _micros(run.ended)
        at, until = (max(began, min(_micros(time), ended)) for time in (stretch.began, stretch.ended))
        args = {"records": stretch.records}
        self._part(str(stretch.phase), "phase", at, max(at, until), process, thread, args)

    def _exchange(self, exchange: Exchange, brief: Brief, name: str, process: int) -> tuple[int, int]:
        process, thread = self._leg(exchange.agent, process)
        title = f"{clean(brief.method)} {short(brief.target, name, _TARGET)}"
        args = {
            "record": brief.seq, "status": brief.status, "path": brief.target.partition("?")[0], "endpoint":
            brief.endpoint, "environment": brief.environment, "bytes sent": brief.sent, "bytes received":
            brief.received, "identity": brief.identity, "identity missing": brief.identity_missing,
            "error": exchange.error,
        }  # fmt: skip
        at, until = self._slice(title, f"request,{brief.phase}", brief.time, brief.ended, process, thread, args)
        first = exchange.master is not None and exchange.master.id not in self._legs
        master = self._times.get(brief.seq)
        for piece in timeline.pieces(brief, opens_agent_leg=False, opens_master_leg=first, master=master):
            began, ended = (max(at, min(_micros(time), until)) for time in (piece.began, piece.ended))
            self._part(WORK[piece.kind], "part", began, max(began, ended), process, thread, None)
        if exchange.master is not None:
            _, below = self._leg(exchange.master, process)
            sent, answered = exchange.request.ended, exchange.response and exchange.response.ended
            there, _ = self._slice(title, f"request,{brief.phase}", sent or brief.time, answered or brief.ended,
                                   process, below, {"record": brief.seq, "status": brief.status})  # fmt: skip
            flow = {"name": "passed on", "cat": "flow", "id": brief.seq, "pid": process}
            self._made.append(flow | {"ph": "s", "ts": min(max(at, there), until), "tid": thread})
            self._made.append(flow | {"ph": "f", "bp": "e", "ts": there, "tid": below})
        return process, thread

    def _handshake(self, record: Handshake, process: int) -> tuple[int, int]:
        process, thread = self._leg(record.leg, process)
        args = {"record": record.seq, "reason": record.reason, "alert": record.alert, "alert by": record.alert_by}
        began = record.leg.secured or record.leg.connected or record.time
        self._slice("TLS handshake failed", "handshake", began, record.time, process, thread, args)
        return process, thread

    def _finding(self, run: RunBrief, finding: Finding, at: int, process: int, thread: int) -> None:
        if (run.number, finding) in self._shown:
            return
        self._shown.add((run.number, finding))
        args = {"message": clean(self._sentence(finding.message)), "records": list(finding.seqs), "run": run.number}
        self._instant(
            f"{finding.rule} {finding.severity}", f"finding,{finding.severity}", at, process, thread, "t", args
        )
