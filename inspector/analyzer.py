"""Records go in, steps come out: match, decode, place in a run, ask the rules.

``Analyzer.feed`` is the whole product; live and offline call the same, so they cannot disagree. No clock,
no I/O. Our own mistakes (a rule that raises) are kept as ``Step.trouble`` and never stop anything.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inspector.model import Exchange, Finding, Handshake, Phase
from inspector.protocol import decode, endpoints, x509
from inspector.protocol import documents as d
from inspector.rules import Case, Ledger, On, all_rules
from inspector.runs import Placed, Run
from inspector.segmenter import Segmenter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from inspector.model import Message, Record
    from inspector.protocol.endpoints import Match
    from inspector.rules import Rule

KEPT = 4096
"""Agents whose certificates are kept decoded."""
_USER_AGENT = re.compile(r"Puppet/([0-9]+(?:\.[0-9]+)+)")


@dataclass(slots=True)
class Step:
    """One record, understood."""

    record: Record
    phase: Phase = Phase.OTHER
    match: Match | None = None
    request: d.Document | None = None
    response: d.Document | None = None
    certname: str | None = None
    run: Run | None = None
    findings: list[Finding] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)
    """Mistakes of our own while understanding it."""

    @property
    def exchange(self) -> Exchange | None:
        return self.record if isinstance(self.record, Exchange) else None


class Analyzer:
    """Understands a sequence of records, one at a time."""

    def __init__(self, rules: Iterable[Rule] | None = None) -> None:
        chosen = tuple(all_rules() if rules is None else rules)
        self._rules = {on: tuple(rule for rule in chosen if rule.on is on) for on in On}
        self._segmenter = Segmenter()
        self._ledger = Ledger()
        self._chains: dict[bytes, d.Certificate | None] = {}

    @property
    def runs(self) -> list[Run]:
        """The runs so far, in the order in which they began; a run's number is its place, from 1."""
        return [run for run in self._segmenter.runs if run.real]

    def number(self, run: Run | None) -> int | None:
        """A run's number as the command line and the JSON show it."""
        for number, each in enumerate(self.runs, 1):
            if run is not None and each.seqs is run.seqs:  # one that was absorbed shares its run's
                return number
        return None

    def feed(self, record: Record) -> Step:
        """Understand the next record."""
        step = Step(record)
        if isinstance(record, Exchange):
            self._read(step, record)
        self._place(step)
        self._ask(On.EXCHANGE if isinstance(record, Exchange) else On.HANDSHAKE, step, step.run)
        if step.run is not None:
            while self._segmenter.over:
                over = self._segmenter.over.pop(0)
                found = self.judge(over, keep=True, trouble=step.trouble)
                step.findings += found if over is step.run else []
            self._ledger.remember(step.run, step)
        return step

    def finish(self) -> list[Run]:
        """Judge the runs that are still open; returns all runs."""
        for run in self.runs:
            if not run.closed:
                run.closed = True
                self.judge(run, keep=True)
        return self.runs

    def judge(self, run: Run, *, keep: bool = False, trouble: list[str] | None = None) -> list[Finding]:
        """What the rules that look at a whole run say of it as it is now. ``keep`` makes that final;
        mistakes of our own are added to ``trouble``."""
        step = Step(record=None, run=run, trouble=[] if trouble is None else trouble)  # type: ignore[arg-type]
        self._ask(On.RUN_END, step, run, keep=keep)
        return step.findings

    # -- understanding --------------------------------------------------------------------------------

    def _read(self, step: Step, exchange: Exchange) -> None:
        step.match = match = endpoints.match(exchange.request.method, exchange.request.target)
        if match is None:
            return
        step.phase = match.endpoint.phase
        # What the master refused unread is not read here either: anybody can send it.
        if exchange.response is None or exchange.response.status not in (401, 403):
            step.request = self._decode(step, match.endpoint.request, exchange.request)
        if exchange.response is not None:
            answered = functools.partial(decode.answer, match.endpoint.response, exchange.request)
            step.response = self._decode(step, answered, exchange.response)

    def _decode[M: Message](self, step: Step, decoder: Callable[[M], d.Document], message: M) -> d.Document:
        try:
            return decoder(message)
        except Exception as error:  # noqa: BLE001 - our own bug must never stop an agent's run
            step.trouble.append(f"decoding failed: {error!r}")
            return d.Undecodable(f"puppet-inspector could not read it: {error!r}")

    def _place(self, step: Step) -> None:
        record, match = step.record, step.match
        chain: tuple[bytes, ...] = ()
        if isinstance(record, Exchange):
            chain = record.agent.peer_chain
        elif isinstance(record, Handshake):
            # On the master's leg the agent is whoever's certificate the proxy showed.
            chain = record.leg.peer_chain if record.leg.side == "agent" else record.leg.own_chain
            step.phase = Phase.CERTIFICATES
        peer = self._leaf(chain)
        step.certname = (peer.common_name if peer else None) or (match.certname if match else None)
        placed = Placed(
            record,
            step.phase,
            match,
            step.request,
            step.response,
            certname=step.certname,
            key=peer.key if peer else None,
        )
        if isinstance(step.request, d.CertificateRequest) and match and match.endpoint.name == "certificate_request":
            placed.key = placed.key or step.request.key
        if isinstance(record, Exchange):
            placed.agent_version, placed.version_from = _agent_version(record, step.request)
            placed.tool = _tool(record, match)
            placed.transaction_uuid = _transaction(match, step.request)
        step.run = self._segmenter.place(placed)

    def _leaf(self, chain: tuple[bytes, ...]) -> d.Certificate | None:
        if not chain:
            return None
        if chain[0] not in self._chains:
            if len(self._chains) >= KEPT:
                del self._chains[next(iter(self._chains))]
            try:
                self._chains[chain[0]] = x509.read_der(chain[0])
            except x509.Malformed:
                self._chains[chain[0]] = None
        return self._chains[chain[0]]

    # -- rules ----------------------------------------------------------------------------------------

    def _ask(self, on: On, step: Step, run: Run | None, *, keep: bool = True) -> None:
        if run is None:
            return
        case = Case(step, run, self._ledger)
        for rule in self._rules[on]:
            try:
                for finding in rule.ask(case):
                    step.findings.append(_keep(run, finding) if keep else finding)
            except Exception as error:  # noqa: BLE001 - a broken rule must not stop anything
                step.trouble.append(f"rule {rule.id} failed: {error!r}")


def _keep(run: Run, finding: Finding) -> Finding:
    """Add a finding to its run; the same said again only adds its proof."""
    for place, known in enumerate(run.findings):
        if known.rule == finding.rule and known.message == finding.message:
            seqs = tuple(sorted({*known.seqs, *finding.seqs}))
            run.findings[place] = dataclasses.replace(known, seqs=seqs)
            return run.findings[place]
    run.findings.append(finding)
    return finding


def _transaction(match: Match | None, request: d.Document | None) -> str | None:
    if isinstance(request, d.CatalogRequest | d.Report):
        return request.transaction_uuid
    if match:
        return next((value for key, value in match.parameters if key == "transaction_uuid"), None)
    return None


def _agent_version(exchange: Exchange, request: d.Document | None) -> tuple[str | None, str | None]:
    """The agent's version and what tells it: header (4.0 and later) or user agent; for older ones their
    facts and reports."""
    if version := exchange.request.header("x-puppet-version"):
        return version, "header"
    if found := _USER_AGENT.search(exchange.request.header("user-agent") or ""):
        return found.group(1), "user agent"
    if isinstance(request, d.CatalogRequest) and isinstance(request.facts, d.Facts):
        return request.facts.puppet_version, "facts"
    return (request.puppet_version, "report") if isinstance(request, d.Report) else (None, None)


def _tool(exchange: Exchange, match: Match | None) -> str | None:
    """Who calls, if it is no agent (R22). Agents say X-Puppet-Version or call themselves Puppet; up to 5.5
    they are Ruby's own client, in 4 and 5 for their file downloads only."""
    name = exchange.request.header("user-agent") or ""
    if match is None or exchange.request.header("x-puppet-version") or name.startswith(("Puppet/", "Ruby")):
        return None
    return name.partition(" ")[0] or None
