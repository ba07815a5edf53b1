"""What masters asked of PuppetDB and stored there, joined to the agents' runs that caused it.

A catalog and a report carry the run's transaction_uuid. Facts, and queries about a node, have its name: they belong to
the request of that node that its master worked on then. Any other query belongs to the only request that a master
worked on then; of several nothing says which.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Literal

from inspector.model import Exchange
from inspector.protocol import documents as d
from inspector.protocol import puppetdb
from inspector.protocol.kinds import PUPPETDB, Kind
from inspector.text import beginning

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inspector.analysis.analyzer import Step
    from inspector.model import Finding
    from inspector.runs.run import Run

type By = Literal["transaction_uuid", "name and time", "time"]

CAUSES = (Kind.NODE, Kind.CATALOG, Kind.FACTS, Kind.REPORT)
"""Requests of an agent for which a master asks PuppetDB."""
SLACK = 0.5
"""Seconds by which the clocks of two proxies may differ."""
QUERY = 1000
"""Characters of a query that stay in memory."""
MANY = 100
"""Requests of agents that a master works on at once, of which more are not looked at."""
CANDIDATES = 3
"""Runs that are named where any of them may have caused a request."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a master did for an agent's request: from its last byte to the first one of the answer."""

    run: Run
    certname: str | None
    kind: Kind
    transaction_uuid: str | None
    begin: float
    end: float


@dataclass(slots=True)
class Call:
    """A request of a master to PuppetDB."""

    seq: int
    time: float
    master: str | None
    """The name in its certificate."""
    command: str
    """Empty for a query."""
    version: str
    """The command's; empty for a query."""
    certname: str
    """The node that it is about; empty if it is about others."""
    query: str
    sent: int
    """Bytes of the body, as on the wire."""
    unpacked: int | None
    """The same without compression; None if the master does not say it."""
    received: int
    status: int | None
    seconds: float
    transaction_uuid: str | None
    findings: list[Finding]
    run: Run | None = None
    """The one that caused it; None if it is not known, or not recorded."""
    by: By | None = None
    """By what the run is known."""
    candidates: list[Run] = field(default_factory=list)
    """The first of the runs of which any may have caused it."""
    cause: Kind | None = None
    """The agent's request that it belongs to."""

    @property
    def what(self) -> str:
        """The command and its node, or the query."""
        return f"{self.command} of {self.certname}" if self.command else f"query {self.query}"


@dataclass(slots=True)
class Served:
    """A run, and what its master asked of PuppetDB for it."""

    run: Run
    calls: list[Call] = field(default_factory=list)
    compile: float | None = None
    """Seconds of the master's work on its latest catalog."""

    @property
    def seconds(self) -> float:
        """Of all requests to PuppetDB."""
        return sum(call.seconds for call in self.calls)

    @property
    def compile_waited(self) -> float:
        """Seconds of them within the work on the catalog."""
        return sum(call.seconds for call in self.calls if call.cause is Kind.CATALOG)


@dataclass(slots=True)
class Joined:
    """The runs with requests to PuppetDB, in the order of these, and requests of no run that is known."""

    runs: list[Served]
    others: list[Call]
    recorded: int
    """How many agents' requests were recorded for which a master asks PuppetDB."""


def joined(steps: Iterable[Step]) -> Joined:
    """Join the requests to PuppetDB in analyzed records to the runs in them."""
    calls: list[Call] = []
    works: list[Work] = []
    for step in steps:
        record = step.record
        if not isinstance(record, Exchange) or step.match is None:
            continue
        if step.match.endpoint.kind in PUPPETDB:
            calls.append(_call(step, record))
        elif step.match.endpoint.kind in CAUSES and step.run is not None:
            works.append(_work(step, record, step.run))
    _join(sorted(calls, key=attrgetter("time")), sorted(works, key=attrgetter("begin")))
    return _by_run(calls, works)


def _call(step: Step, exchange: Exchange) -> Call:
    match, request, response = step.match, exchange.request, exchange.response
    assert match is not None  # noqa: S101 - it is one of PuppetDB's
    command = puppetdb.command(match)
    return Call(
        seq=exchange.seq, time=exchange.time, master=step.certname, command=command[:QUERY],
        version=puppetdb.parameter(match, "version")[:QUERY] if command else "", certname=puppetdb.node(match)[:QUERY],
        query="" if command else beginning(puppetdb.query(match, step.request), QUERY), sent=request.size,
        unpacked=puppetdb.unpacked(request),
        received=response.size if response else 0, status=response.status if response else None,
        seconds=max(0.0, exchange.ended - exchange.time), findings=list(step.findings),
        transaction_uuid=step.request.transaction_uuid if isinstance(step.request, d.Command) else None,
    )  # fmt: skip


def _work(step: Step, exchange: Exchange, run: Run) -> Work:
    assert step.match is not None  # noqa: S101 - it is one of ``CAUSES``
    response = exchange.response
    uuid = step.request.transaction_uuid if isinstance(step.request, d.CatalogRequest | d.Report) else None
    return Work(
        run, step.match.certname or step.certname, step.match.endpoint.kind, uuid,
        exchange.request.ended or exchange.time, (response.started if response else None) or exchange.ended,
    )  # fmt: skip


def _join(calls: list[Call], works: list[Work]) -> None:
    """Go through both in the order of time, with what is worked on at each moment."""
    by_uuid: dict[tuple[str, Kind], Work] = {}
    for work in works:
        if work.transaction_uuid:
            by_uuid.setdefault((work.transaction_uuid, work.kind), work)
    active: dict[int, Work] = {}
    ends: list[tuple[float, int]] = []
    named: dict[str | None, dict[int, Work]] = {}
    begun = 0
    for call in calls:
        while begun < len(works) and works[begun].begin - SLACK <= call.time:
            work = works[begun]
            active[begun] = work
            named.setdefault(work.certname, {})[begun] = work
            heapq.heappush(ends, (work.end + SLACK, begun))
            begun += 1
        while ends and ends[0][0] < call.time:
            number = heapq.heappop(ends)[1]
            own = named[active.pop(number).certname]
            own.pop(number)
        _place(call, by_uuid, active, named.get(call.certname) or {})


def _place(call: Call, by_uuid: dict[tuple[str, Kind], Work], active: dict[int, Work], named: dict[int, Work]) -> None:
    uuid, kind = call.transaction_uuid, Kind.REPORT if call.command == "store report" else Kind.CATALOG
    if uuid and (work := by_uuid.get((uuid, kind))):
        call.run, call.by, call.cause = work.run, "transaction_uuid", work.kind
        return
    by: By = "name and time" if named or call.command else "time"
    found = active if by == "time" else named
    first = [work for work in islice(found.values(), MANY) if _may_be(work, uuid)]
    runs = list({id(work.run): work.run for work in first}.values())
    if len(runs) == 1:
        within = [work for work in first if work.begin <= call.time <= work.end] or first
        call.run, call.by, call.cause = runs[0], by, within[-1].kind
    else:
        call.candidates = runs[:CANDIDATES]


def _may_be(work: Work, uuid: str | None) -> bool:
    return uuid is None or work.run.transaction_uuid in (None, uuid)


def _by_run(calls: list[Call], works: list[Work]) -> Joined:
    served: dict[int, Served] = {}
    for call in calls:
        if call.run is not None:
            served.setdefault(id(call.run), Served(call.run)).calls.append(call)
    for work in works:
        if work.kind is Kind.CATALOG and (of := served.get(id(work.run))):
            of.compile = max(0.0, work.end - work.begin)
    return Joined(list(served.values()), [call for call in calls if call.run is None], len(works))
