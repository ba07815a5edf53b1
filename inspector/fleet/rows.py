"""Rows of the tables, made of one capture's steps and runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from inspector.explain.master_log.measured import NOTHING
from inspector.fleet import certificates
from inspector.fleet.certificates import Certificates
from inspector.fleet.contents import Contents
from inspector.fleet.spools import Place, masked, message, micros, short
from inspector.fleet.tables import ConnectionRow, ExchangeRow, FindingRow, HandshakeRow, RunRow
from inspector.model import NOTHING_OPEN, Exchange, Gap, Handshake, Phase, Severity
from inspector.protocol import documents as d
from inspector.protocol.bodies import content_type
from inspector.runs.snapshot import RunColumns
from inspector.summaries import conclusions
from inspector.summaries.judgement import Recorded, judge

if TYPE_CHECKING:
    from inspector.analysis.analyzer import Step
    from inspector.explain.master_log.measured import MasterTimes
    from inspector.fleet.spools import Spools
    from inspector.model import Connection, Present, Record
    from inspector.runs.run import Run
    from inspector.summaries.judgement import Standing
    from inspector.summaries.summary import RunBrief

_SEQS = 100
"""Records of a finding."""
HELD = 5_000
"""Runs that wait to be judged; of more, the older half is judged with these alone."""
NODES = 100_000
"""Nodes of which is known what they were before the runs that wait."""


@dataclass(slots=True)
class _Extras:
    """Values of a run's row that the run itself does not store."""

    certificate: str | None = None
    master: str | None = None


class _Held(NamedTuple):
    """A run that waits to be judged: later ones say whether it is over, and what the CA is like."""

    brief: RunBrief
    row: RunRow


class Rows:
    """Makes the rows of one capture and adds them to its spools."""

    def __init__(
        self,
        capture: str,
        spools: Spools,
        key: bytes,
        times: MasterTimes = NOTHING,
        present: Present = NOTHING_OPEN,
        now: float = math.inf,
    ) -> None:
        """``capture`` identifies it; ``key`` is that of the hashes of parameters; ``times`` is what the master's logs
        say; ``present`` is what is under way ``now``."""
        self._capture = capture
        self._times = times
        self._spools = spools
        self._contents = Contents(capture, spools.add, key)
        self._certificates = Certificates(capture, spools.add)
        self._extras: dict[Run, _Extras] = {}
        self._bootstraps: set[Run] = set()
        """The runs that are not over: one may become part of another run."""
        self._present, self._now = present, now
        self._held: list[_Held] = []
        self._before: dict[str, Standing] = {}
        """The states of nodes before the runs that wait."""
        self.records = self.lost = self.unanalyzed = self.first = self.last = 0
        self.begun, self.ended = math.inf, 0.0

    def add(self, step: Step) -> None:
        """Add the rows of a record, and of the runs that are over at it."""
        record = step.record
        self._count(record)
        self.unanalyzed += bool(step.unanalyzed)
        run = step.run
        if run is not None and run.bootstrapping:
            self._bootstraps.add(run)
        if isinstance(record, Exchange):
            self._spools.add(self._exchange(step, record))
            extras = self._extras.setdefault(run, _Extras()) if run is not None else _Extras()
            extras.certificate = self._certificates.of_agent(step, record) or extras.certificate
            extras.master = self._certificates.of_master(record) or extras.master
            self._certificates.answered(step, record)
            if run is not None:
                self._contents.add(step, record, run)
        elif isinstance(record, Handshake):
            self._spools.add(self._handshake(step, record))
        else:
            self.lost += record.lost
        for over in step.over:
            self.end(over)

    def _count(self, record: Record) -> None:
        self.records += 1
        self.first, self.last = self.first or record.seq, record.seq
        if not isinstance(record, Gap) or record.time:
            self.begun, self.ended = min(self.begun, record.time), max(self.ended, record.ended)

    def end(self, run: Run) -> None:
        """Take a run to which no record comes any more; its row, and its findings, are added once it is judged."""
        if run.number is not None:
            brief = conclusions.of_run(run)
            self._held.append(_Held(brief, self._run(run, brief)))
            if len(self._held) > HELD:
                self._settle(HELD // 2)
        parts = [other for other in self._bootstraps if other is not run and _whole(other) is run]
        for one in (run, *parts):
            self._spools.add_place(Place(one.place, run.number, _named(run)))
            self._bootstraps.discard(one)
            self._extras.pop(one, None)
            self._contents.end(one)

    def finish(self) -> None:
        """Add what is only known at the end."""
        self._settle(len(self._held))
        self._certificates.finish()

    @property
    def until(self) -> float:
        """Until when the capture is known to have been recorded."""
        return max(self.ended, self._now if self._present.recording == "open" else self._present.time)

    def _settle(self, number: int) -> None:
        """Judge the runs that wait, and add the rows of so many of them, in the order in which they began."""
        self._held.sort(key=lambda held: held.brief.started)
        made = judge([Recorded([held.brief for held in self._held], present=self._present)], self._now, self._before)
        judged = {each.run.number: (name, each) for name, node in made.nodes.items() for each in node.runs}
        for held in self._held[:number]:
            name, found = judged.get(held.brief.number, ("", None))
            brief = found.run if found else made.runs[Path(), held.brief.number]
            standing = found.standing if found else None
            if standing:
                self._before[name] = standing
            self._add(held.row, brief, standing)
        del self._held[:number]
        while len(self._before) > NODES:
            del self._before[next(iter(self._before))]

    def _add(self, row: RunRow, brief: RunBrief, standing: Standing | None) -> None:
        """Add the row of a run that was judged, and its findings."""
        verdict = brief.verdict
        self._spools.add(
            msgspec.structs.replace(
                row,
                cause=brief.cause,
                reason=message(verdict.reason) if verdict else None,
                certainty=verdict.certainty if verdict else None,
                run_state=str(brief.state),
                state=str(standing.state) if standing else None,
                standing_cause=standing.cause if standing else None,
                standing_reason=message(standing.reason) if standing and standing.reason else None,
                standing_since=micros(standing.since) if standing else None,
            )
        )
        for finding in brief.findings:
            self._spools.add(
                FindingRow(
                    capture=self._capture,
                    run=row.run,
                    certname=row.certname,
                    time=micros(finding.since),
                    rule=finding.rule,
                    severity=str(finding.severity),
                    message=message(finding.message),
                    seqs=list(finding.seqs[:_SEQS]),
                    cause=finding.rule == brief.cause,
                    consequence=finding.rule in brief.symptoms,
                )
            )

    def connection(self, connection: Connection) -> None:
        """Add the row of a connection."""
        leg, closed = connection.leg, connection.closed
        peer = certificates.leaf(leg.peer_chain)
        opened = leg.connected or leg.connecting or leg.secured or 0.0
        self._spools.add(
            ConnectionRow(
                capture=self._capture,
                time=micros(opened),
                connection=leg.id,
                side=leg.side,
                certname=short(peer.common_name) if peer else None,
                address=leg.address,
                port=leg.port if leg.port is not None and 0 <= leg.port < 2**16 else None,
                handshake=max(0.0, leg.secured - leg.connected) if leg.secured and leg.connected else None,
                duration=max(0.0, closed.at - opened) if closed else None,
                closed_by=closed.by if closed else None,
                tls=leg.tls_version,
                cipher=leg.cipher,
                sni=short(leg.sni),
                certificate=peer.fingerprint if peer else None,
            )
        )

    def _exchange(self, step: Step, exchange: Exchange) -> ExchangeRow:
        request, response, match = exchange.request, exchange.response, step.match
        waited = None
        if response is not None and response.started and request.ended:
            waited = max(0.0, response.started - request.ended)
        return ExchangeRow(
            capture=self._capture,
            run=step.run.place if step.run else 0,
            certname=step.certname,
            seq=exchange.seq,
            time=micros(exchange.time),
            duration=max(0.0, exchange.ended - exchange.time),
            waited=waited,
            phase=str(step.phase),
            endpoint=match.endpoint.name if match else None,
            method=request.method[:20],
            path=short(masked(request.path)) or "",
            environment=short(match.environment) if match else None,
            status=response.status if response else None,
            error=message(masked(exchange.error)) if exchange.error else None,
            sent=request.size,
            received=response.size if response else 0,
            request_format=_format(content_type(request)),
            format=_format(content_type(response)) if response else None,
            encoding=_format(response.header("content-encoding")) if response else None,
            connection=exchange.agent.id,
            master=exchange.master.address if exchange.master else None,
            authenticated=bool(exchange.agent.peer_chain),
            identity=exchange.identity.certname if exchange.identity else None,
            **self._parts(exchange, waited),
        )

    def _parts(self, exchange: Exchange, waited: float | None) -> dict[str, float]:
        """Return the parts of a request's time in the master's logs, by column."""
        time, response = self._times.get(exchange.seq), exchange.response
        if time is None or waited is None or response is None:
            return {}
        receiving = max(0.0, (response.ended or 0.0) - (response.started or 0.0))
        sums: dict[str, float] = {}
        for kind, took in time.parts(waited, receiving):
            if kind in ("queue", "compile", "serve"):
                sums[kind] = sums.get(kind, 0.0) + took
        return sums

    def _handshake(self, step: Step, handshake: Handshake) -> HandshakeRow:
        leg = handshake.leg
        return HandshakeRow(
            capture=self._capture,
            run=step.run.place if step.run else 0,
            certname=step.certname,
            seq=handshake.seq,
            time=micros(handshake.time),
            side=leg.side,
            address=leg.address,
            sni=short(leg.sni),
            reason=message(masked(handshake.reason)),
            alert=handshake.alert,
            alert_by=handshake.alert_by,
            certificate=self._certificates.refused(handshake),
        )

    def _run(self, run: Run, brief: RunBrief) -> RunRow:
        extras = self._extras.get(run, _Extras())
        contents = self._contents.of(run)
        spans = {span.phase: span.duration for span in brief.spans}
        severities = [finding.severity for finding in brief.findings]
        report = next((sent.report for sent in reversed(run.reports) if sent.report), d.Report())
        return RunRow(
            **_in_common(brief) | {"certname": _named(run)},
            capture=self._capture,
            run=run.place,
            time=micros(run.started),
            errors=severities.count(Severity.ERROR),
            warnings=severities.count(Severity.WARNING),
            notices=severities.count(Severity.NOTICE),
            server=run.server,
            key=run.key,
            certificate=extras.certificate,
            master_certificate=extras.master,
            requests=len(run.seqs),
            certificates_time=spans.get(Phase.CERTIFICATES),
            node_time=spans.get(Phase.NODE),
            plugins_time=spans.get(Phase.PLUGINS),
            catalog_time=spans.get(Phase.CATALOG),
            files_time=spans.get(Phase.FILES),
            report_time=spans.get(Phase.REPORT),
            facts_wait=run.waits.get("facts"),
            apply_wait=run.waits.get("applying"),
            compile_time=brief.compile_time,
            agent_clock=run.clocks["agent"].seconds if "agent" in run.clocks else None,
            master_clock=run.clocks["master"].seconds if "master" in run.clocks else None,
            catalog_format=contents.catalog_format,
            checksum_type=contents.checksum_type,
            static_catalog=contents.static,
            resources=contents.resources,
            catalog=contents.catalog,
            facts=contents.facts,
            report_status=short(report.status),
            cached_catalog=short(report.cached_catalog_status),
            noop=report.noop,
            corrective=report.corrective_change,
            changed=contents.changed,
            failed=contents.failed,
            command=short(brief.command),
        )


def _in_common(brief: RunBrief) -> dict[str, Any]:
    """Return the columns that a row shares with a run; long texts are shortened."""
    values = {name: getattr(brief, name) for name in RunColumns.__struct_fields__}
    return {name: short(value) if isinstance(value, str) else value for name, value in values.items()}


def _named(run: Run) -> str | None:
    """The node; None: it showed no certificate where one is needed, and its name is a claim."""
    return None if run.stranger else run.certname


def _whole(run: Run) -> Run:
    """The run that a run became part of."""
    while run.joined is not None:
        run = run.joined
    return run


def _format(value: str | None) -> str | None:
    return value[:100].lower() if value else None
