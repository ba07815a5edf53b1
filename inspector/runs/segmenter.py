"""Separates agent runs from each other.

``Segmenter.place`` decides to which run a step belongs: by connection, by certname and key, by address for an agent
whose certname is unknown, and by the order of phases (``PHASE_FOLLOWS``).
"""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING

from inspector.clocks import DAY
from inspector.model import REHEARSAL, TO_PUPPETDB, Exchange, Gap, Handshake, Phase
from inspector.protocol.kinds import PLUGIN_LISTINGS, Kind
from inspector.runs.observations import is_redirect
from inspector.runs.run import Run, listing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.model import Record
    from inspector.protocol.endpoints import Match
    from inspector.runs.run import Placed

PHASE_FOLLOWS: dict[Phase, frozenset[Phase]] = {
    Phase.CERTIFICATES: frozenset(set(Phase)),
    Phase.NODE: frozenset({Phase.NODE, Phase.PLUGINS, Phase.CATALOG, Phase.FILES, Phase.REPORT, Phase.OTHER}),
    Phase.PLUGINS: frozenset({Phase.PLUGINS, Phase.CATALOG, Phase.FILES, Phase.REPORT, Phase.OTHER}),
    # Back to the plugins: another environment (docs/protocol.md#change-of-environment); ``_begins_again`` checks that.
    Phase.CATALOG: frozenset({Phase.CATALOG, Phase.PLUGINS, Phase.FILES, Phase.REPORT, Phase.OTHER}),
    Phase.FILES: frozenset({Phase.FILES, Phase.REPORT, Phase.OTHER}),
    # Facts that are sent again come before the report; both are phase ``report``. Nothing follows a report.
    Phase.REPORT: frozenset({Phase.REPORT, Phase.OTHER}),
    Phase.OTHER: frozenset(set(Phase)),
}
"""The phases that may follow each phase; any other change starts a new run."""

BURST = 10.0
"""Seconds within which a request without a certname belongs to the current run of its address."""
SILENT = DAY
"""Seconds of silence after which an open run is over."""
BUSY = (429, 503)
"""Answers after which an agent repeats its request."""
RETRIES = 100
"""How often an agent from version 6 on repeats a request that was answered so; then it gives up."""
RETRY = 120.0
"""Seconds within which failed handshakes of one agent are one attempt (an agent repeats them per request)."""


def _may_follow(run: Run, step: Placed) -> bool:
    """Whether a step can be a further step of a run."""
    if run.closed:
        return False
    if step.tool == REHEARSAL:  # asks for several catalogs of a node, in any order
        return run.tool == step.tool and run.certname == step.certname
    return (
        step.phase in PHASE_FOLLOWS[run.phase]
        and _is_same_client(run, step)
        and _is_same_agent(run, step)
        and (step.leg_id in run.legs or not (run.single or step.single or _is_over(run, step)))
        and not _begins_again(run, step)
    )


def _is_same_client(run: Run, step: Placed) -> bool:
    """Whether a step may be a request of the client that made those of a run, by how it shows itself."""
    # Who shows no certificate after others did, or where one is needed, is somebody else behind the same address.
    if step.stranger != run.stranger or (run.authenticated and not step.authenticated):
        return False
    if run.tool != step.tool and run.legs:
        return False
    # Of a tool nothing says that the requests without a certificate were its too.
    return not (step.tool and step.authenticated and not run.authenticated and run.seqs)


def _is_same_agent(run: Run, step: Placed) -> bool:
    """Whether certname, key and transaction_uuid are the same, as far as both sides are known."""
    if run.certname and step.certname and run.certname != step.certname:
        return False
    if run.key and step.key and run.key != step.key:
        return False
    return not (run.transaction_uuid and step.transaction_uuid and run.transaction_uuid != step.transaction_uuid)


def _begins_again(run: Run, step: Placed) -> bool:
    """Whether a step is what an agent does once in a run, and this run did (docs/protocol.md#order-of-requests)."""
    phase = step.phase
    if phase is Phase.FILES:
        return False
    kind = step.match.endpoint.kind if step.match else None
    if phase is Phase.CERTIFICATES:
        return bool(run.reports) or (kind is Kind.CSR_LOOKUP and run.old_engine and _has_its_request(run))
    if phase is Phase.NODE:
        return run.phase is Phase.NODE and step.transaction_uuid is None
    # Of 2.7, which has no transaction_uuid, each catalog begins another run.
    again = phase is Phase.PLUGINS or (phase is Phase.CATALOG and step.transaction_uuid is None)
    if again and run.phase is Phase.CATALOG and not run.tool and _has_its_catalog(run):
        return True
    return step.match is not None and kind in PLUGIN_LISTINGS and _has_its_list(run, step.match)


def _has_its_list(run: Run, match: Match) -> bool:
    """Whether the agent got a list of plugins in this round, or others before the check of its environment.

    It asks for each list once per round, and again only after a redirect, a failure or a missing answer.
    """
    key = listing(match)
    status = run.listings.get(key)
    got = status is not None and 0 < status < 300
    return got or (match.endpoint.kind is Kind.ENVIRONMENT_CHECK and bool(run.listings.keys() - {key}))


def _is_repeated(run: Run, record: Record) -> bool:
    """Whether the agent repeats its report, at another address or later (docs/protocol.md#retry-after)."""
    if not isinstance(record, Exchange) or record.response is None:
        return False
    status = record.response.status
    if is_redirect(status):
        return True
    waits = run.major >= (5, 3) and not run.fails_to_wait and run.reports.total <= RETRIES
    return waits and status in BUSY and record.response.header("retry-after") is not None


def _has_its_catalog(run: Run) -> bool:
    """Whether the agent got the catalog that it asked for, or was told that there is none."""
    last = run.catalogs[-1] if run.catalogs else None
    if last is None:
        return False
    if last.usable:
        return last.environment in (None, last.requested)
    return last.status is not None and last.status >= 400 and last.status not in BUSY


def _has_its_request(run: Run) -> bool:
    """Whether an agent up to 6.3 has a signing request that the CA has too: the process looks for it no more.

    docs/protocol.md#starts-of-an-agent-up-to-63
    """
    found = any(looked.endpoint.kind is Kind.CSR_LOOKUP and looked.status == 200 for looked in run.anonymous)
    return found or any(submission.status == 200 for submission in run.csrs)


def _is_another_process(waiting: Run, beginning: Run, step: Placed) -> bool:
    """Whether an agent up to 6.3 that asked for the CA, and now names itself, is not the process that waits.

    A process keeps the CA that it got before it asked for its certificate the first time. It gets it twice, but in one
    burst (docs/protocol.md#starts-of-an-agent-up-to-63).
    """
    in_one_burst = step.record.time - beginning.ended <= BURST
    return waiting.old_engine and in_one_burst and beginning.started - waiting.ended > BURST


def _is_over(run: Run, step: Placed) -> bool:
    """Whether a run's process ended before this step, which came on another connection."""
    kind = step.match.endpoint.kind if step.match else None
    if kind is Kind.FACTS:
        return True  # an agent that sends them again sends its report next: ``_resubmitting``
    if kind is Kind.CERTIFICATE and isinstance(step.record, Exchange) and run.certificate is not None:
        response = step.record.response
        if response is not None and response.status == 404:
            return True  # who has a certificate asks for none
    # An agent goes on as soon as it has its certificate; `puppet ssl` ends with it.
    if _has_what_it_came_for(run):
        return kind is Kind.RENEWAL or step.record.time - run.ended > BURST
    command = run.command  # computed anew each time, from all that is known of the run by now
    if command is None or not command.certain:
        return False
    # Without a signing request only a command gets a certificate; an agent backs files up only late in its run.
    return any(answer.certificate for answer in run.certificates) or kind is Kind.BACKUP


def _has_what_it_came_for(run: Run) -> bool:
    """Return whether a run has its certificate and asked for nothing else so far."""
    renewed = Kind.RENEWAL in run.kinds and run.kinds <= {Kind.RENEWAL, Kind.SERVER_STATUS}
    enrolled = run.bootstrapping and not run.old_engine and run.csrs and run.certificate is not None
    return bool(renewed or enrolled)


class Segmenter:
    """Keeps the open runs and finds the one to which a step belongs."""

    def __init__(self) -> None:
        self.open: dict[Run, None] = {}
        """The open runs, the longest silent first; includes those that turn out to be calls of a tool."""
        self.over: list[Run] = []
        """Runs that were closed since the caller last emptied this list."""
        self._numbered = 0
        self._by_leg: dict[str, Run] = {}
        self._named: dict[str | None, list[Run]] = {}
        """The open runs of each certname (None: certname unknown), in the order of ``runs``."""
        self._at: dict[str | None, list[Run]] = {}
        """The open runs of each address, in the order of ``runs``."""
        self._begun = 0
        self._legs_limit = 1000

    def place(self, step: Placed) -> Run | None:
        """Add a step to its run and return that run. None for a gap, for a refused verification probe, and for a
        handshake that comes after its run's end: they belong to no run."""
        if isinstance(step.record, Gap) or (isinstance(step.record, Handshake) and step.record.leg.probed):
            return None
        if isinstance(step.record, Handshake) and (ended := self._by_leg.get(step.leg_id or "")) and ended.closed:
            return None  # of the exchange that ended its run, in an imported flow
        run = self._find(step)
        if run is None:
            self._begun += 1
            run = Run(address=step.address, place=self._begun)
            self._end_silent(step.record.time)
            self._named.setdefault(None, []).append(run)
            self._at.setdefault(run.address, []).append(run)
        before = run.certname
        run.add(step)
        self.open.pop(run, None)
        self.open[run] = None
        if run.number is None and run.real:
            self._numbered += 1
            run.number = self._numbered
        if run.certname != before:
            self._named[before].remove(run)
            insort(self._named.setdefault(run.certname, []), run, key=lambda other: other.place)
            for other in [other for other in self._open(run.certname) if other is not run]:
                if _has_what_it_came_for(other) and run.started - other.ended > BURST:
                    self._end(other)  # `puppet ssl`: an agent would have gone on at once
        if step.leg_id:
            self._by_leg[step.leg_id] = run
        if isinstance(step.record, Exchange) and step.record.error and step.record.master:
            self._by_leg[step.record.master.id] = run  # of an imported flow, the failed handshake comes after it
        if step.match and step.match.endpoint.kind is Kind.REPORT and not _is_repeated(run, step.record):
            self._close(run)
        elif step.tool == TO_PUPPETDB:
            self._end(run)  # each belongs to another node's run: together they would have no end
        return run

    def _end_silent(self, now: float) -> None:
        """Close runs after a day of silence: killed agents must not stay in memory."""
        while self.open and (run := next(iter(self.open))).ended < now - SILENT:
            self._end(run)

    def _close(self, run: Run) -> None:
        self._end(run)
        same = self._open(run.certname)
        if run.certname is None:  # its address says whose it is
            same = (other for other in reversed(self._at.get(run.address, [])) if other.certname is None)
        for other in list(same):
            # A run of the same agent that fell silent before this one started is over.
            if other.key in (None, run.key) and other.ended <= run.started:
                self._end(other)
        if len(self._by_leg) > self._legs_limit:  # not at every step: that would be quadratic
            self._by_leg = {leg: owner for leg, owner in self._by_leg.items() if not owner.closed or owner is run}
            self._legs_limit = max(1000, 2 * len(self._by_leg))

    def _end(self, run: Run) -> None:
        run.closed = True
        self.over.append(run)
        self._forget(run)

    def _forget(self, run: Run) -> None:
        """Close a run: nothing more can belong to it."""
        self.open.pop(run, None)
        for index, value in ((self._named, run.certname), (self._at, run.address)):
            index[value].remove(run)
            if not index[value]:
                del index[value]

    def _open(self, certname: str | None) -> Iterator[Run]:
        """Open runs of a certname (None: certname unknown), the latest first."""
        return reversed(self._named.get(certname, []))

    def _find(self, step: Placed) -> Run | None:
        same_leg = self._by_leg.get(step.leg_id or "")
        if isinstance(step.record, Handshake) or (step.match and step.match.endpoint.kind is Kind.CONNECTION):
            return same_leg if same_leg and not same_leg.closed else self._find_for_connection(step)
        if owner := self._resubmitting(step):
            return owner
        if same_leg and _may_follow(same_leg, step):
            return same_leg
        if step.certname is None:
            return self._find_unnamed(step)
        named = next((run for run in self._open(step.certname) if self._continues(run, step, same_leg)), None)
        unnamed = self._unnamed_beginning(step)
        if named and unnamed and (step.authenticated or not (named.bootstrapping and unnamed.bootstrapping)):
            return named  # a CA download after the run had moved on comes from another agent
        anew = step.phase is Phase.CERTIFICATES and not step.authenticated
        if anew and named and unnamed and unnamed.cas and any(answer.certificate for answer in named.certificates):
            return unnamed  # nothing was missing up to its certificate: the agent discarded it and starts again
        if named and unnamed and unnamed.cas and unnamed.started < named.ended:
            return named  # it had moved on before that started: the start of another agent
        if anew and named and unnamed and unnamed.cas and _is_another_process(named, unnamed, step):
            return unnamed
        if named and unnamed:
            # The agent started again (its files were removed) with the same certname and key: one bootstrap.
            self._merge(named, unnamed)
        return named or unnamed

    def _merge(self, run: Run, other: Run) -> None:
        """Make another open run part of a run."""
        self._forget(other)
        if other.number == self._numbered and run.number is not None:
            self._numbered -= 1
        run.absorb(other)
        self._by_leg = {leg: run if owner is other else owner for leg, owner in self._by_leg.items()}

    def _resubmitting(self, step: Placed) -> Run | None:
        """The run whose report a step is and whose agent sent its facts again right before it (resubmit_facts)."""
        if step.transaction_uuid is None or step.match is None or step.match.endpoint.kind is not Kind.REPORT:
            return None
        open_runs = self._open(step.certname)
        run = next((r for r in open_runs if r.transaction_uuid == step.transaction_uuid and _may_follow(r, step)), None)
        if run is None:
            return None
        facts = (r for r in self._open(step.certname) if r.kinds == {Kind.FACTS} and r.started >= run.ended)
        sent = next((r for r in facts if step.record.time - r.ended <= BURST and _may_follow(r, step)), None)
        if sent is not None:
            self._merge(run, sent)
        return run

    def _continues(self, run: Run, step: Placed, same_leg: Run | None) -> bool:
        if run is same_leg or not _may_follow(run, step):
            return False
        if step.transaction_uuid and run.transaction_uuid == step.transaction_uuid:
            return True
        if step.phase is Phase.CERTIFICATES and run.csrs and step.key is None and not step.authenticated:
            # A poll on a separate connection: if a certname has two keys, the one that made the latest request.
            latest = max((r for r in self._open(step.certname) if r.csrs), key=lambda r: r.csrs[-1].seq)
            return run is latest
        return True

    def _find_unnamed(self, step: Placed) -> Run | None:
        """The run of a request without a client identity: the current run of its address."""
        for run in reversed(self._at.get(step.address, [])):
            if run.stranger != step.stranger:
                continue
            recent = step.record.time - run.ended <= BURST
            if run.certname is None:
                # A fresh agent downloads CA and CRL once: a repeated request after an answer comes from another agent.
                fresh = step.phase is Phase.CERTIFICATES
                another = _repeats(run, step, answered=recent) if fresh or not recent else False
                if _may_follow(run, step) and not another:
                    return run
            elif (
                recent
                and run.old_engine
                and run.bootstrapping
                and step.phase is Phase.CERTIFICATES
                # Up to 6.3 an agent downloads the CA twice in the first burst, before it is signed.
                # docs/protocol.md#bootstrap-up-to-5
                and not any(answer.certificate for answer in run.certificates)
            ):
                return run
        return None

    def _unnamed_beginning(self, step: Placed) -> Run | None:
        """The run without a certname at a step's address that this step, which has a certname, continues."""
        for run in reversed(self._at.get(step.address, [])):
            if run.certname is not None or not _may_follow(run, step):
                continue
            if run.started > step.record.time:
                continue  # an agent asks one after the other: it is the beginning of another one
            if run.agent_version and step.agent_version and run.agent_version != step.agent_version:
                continue
            fresh = any(not ca.refresh for ca in run.cas)
            if step.phase is Phase.CERTIFICATES and not step.authenticated:
                return run
            # An agent with a certificate refreshes CA and CRL without it (8.1), or lost only those files.
            if step.record.time - run.ended <= (BURST if not fresh else BURST / 2):
                return run
        return None

    def _find_for_connection(self, step: Placed) -> Run | None:
        """The run of a connection that was not made."""
        named = step.certname is not None
        for run in self._open(step.certname) if named else reversed(self._at.get(step.address, [])):
            if run.stranger or step.record.time - run.ended > RETRY:
                continue
            # Without a certificate its name is known by the host that it ran on (`run`).
            same = step.key is None or run.key in (None, step.key)
            if same if named else not run.authenticated:
                return run
        return None


class OneRun(Segmenter):
    """Puts everything into one run, for records that are already separated."""

    def __init__(self) -> None:
        super().__init__()
        self._run: Run | None = None

    def place(self, step: Placed) -> Run | None:
        """Add a step to the only run, and return that run."""
        if self._run is None:
            self._run = Run(address=step.address, place=1, number=1)
            self.open[self._run] = None
        self._run.add(step)
        return self._run


def _repeats(run: Run, step: Placed, *, answered: bool = False) -> bool:
    """True if a run without a certname already made this request (and got an answer): another agent, or the next
    attempt."""
    endpoint = step.match.endpoint if step.match else None
    earlier = [request for request in run.anonymous if request.endpoint is endpoint]
    return any(not answered or (request.status or 500) < 400 for request in earlier)
