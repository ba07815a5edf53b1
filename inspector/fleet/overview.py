"""What a directory of tables shows of a fleet: the numbers of the fleet report and of the fleet's screen.

Everything is computed by SQL and bounded, except what there is of each node and of each day.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from inspector import clocks
from inspector.explain.readiness.changes import CHANGES
from inspector.fleet.causes import EXPLAINED, Troubled, causes_of, title_of
from inspector.fleet.directory import OLDER
from inspector.fleet.names import CaptureNames
from inspector.fleet.statements import AGENTS, ENDED, NAMED, RANK, RUN, RUNS, SERIES, SIGNS, asked_for
from inspector.fleet.trust import inventory, listing, text
from inspector.progress import unwatched
from inspector.protocol.ca_service import OPENVOX_CA
from inspector.protocol.kinds import Kind
from inspector.rules import fixes
from inspector.rules.puppet_commands import UNKNOWN, FixContext
from inspector.runs.snapshot import RunState
from inspector.summaries import judgement
from inspector.summaries.judgement import NodeState, Standing, in_words
from inspector.text import utc

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duckdb import DuckDBPyConnection

    from inspector.fleet.causes import Cause
    from inspector.fleet.directory import TableDirectory
    from inspector.fleet.trust.listing import Entry
    from inspector.progress import Watch
    from inspector.runs.snapshot import Outcome

TOP = 50
"""Rows of a list."""
SOON = 90
"""Days within which a certificate ends soon."""
MONTHS = 36
"""Months of the calendar."""
RULES = 500
"""Rules with findings."""
DAYS = 3653
"""Days of which there is a number: the latest ones."""
WHAT = "reading tables"
_MOMENTS = frozenset({"began", "ended", "last", "since", "first"})
"""Fields that are times."""
OUTCOMES = ("failed", "refused", "waiting", "unfinished", "silent", "complete")
"""The values of ``state``: the outcome of the run that decides, or silent if there was none for long."""
_NODES = f"""
WITH {NAMED}, ordered AS (
    SELECT *, {ENDED} AS ended,
           time - lag(time) OVER (PARTITION BY certname ORDER BY time, capture, run) AS pause
    FROM agents
), each AS (
    SELECT certname, count(*) AS runs, count(*) FILTER (WHERE outcome <> 'complete') AS bad,
           max(ended) AS last, median(epoch(pause)) AS pause, count(DISTINCT capture) AS captures,
           arg_max(agent_version, time) AS version, arg_max(environment, time) AS environment,
           arg_max(site, (time, capture)) AS site,
           arg_max({{'outcome': outcome, 'run_state': run_state}}, (time, capture, run)) AS latest,
           arg_max({{'outcome': outcome, 'state': state, 'cause': standing_cause, 'reason': standing_reason,
                     'since': standing_since, 'run': {RUN}, 'server': server, 'master': master_version,
                     'ca': ca_service}}, (time, capture, run)) FILTER (WHERE state IS NOT NULL) AS deciding
    FROM ordered GROUP BY certname
), ends AS (SELECT site, max(coalesce(until, last)) AS until FROM captures GROUP BY site)
SELECT certname, runs, bad, epoch(last), pause, captures, version, environment, latest.outcome,
       coalesce(latest.run_state, 'over'), epoch(until), deciding.outcome, deciding.state, deciding.cause,
       deciding.reason, epoch(deciding.since), deciding.run, deciding.server, deciding.master, deciding.ca
FROM each LEFT JOIN ends USING (site) ORDER BY certname
"""
_SERIES = f"""
WITH {NAMED}, judged AS (
    SELECT certname, time, capture, run, state, cause, reason, epoch(standing_since) AS since, certainty
    FROM agents SEMI JOIN (SELECT unnest(?) AS certname) chosen USING (certname) WHERE state IS NOT NULL
), ordered AS (
    SELECT *, last_value(state) OVER (
        PARTITION BY certname ORDER BY time, capture, run ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    ) AS latest FROM judged
)
SELECT certname, state, cause, reason, since, certainty, {RUN} FROM ordered
QUALIFY coalesce(sum((state <> latest)::INTEGER) OVER (
    PARTITION BY certname ORDER BY time, capture, run ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
), 0) = 0
ORDER BY certname, time, capture, run
"""
"""Selects, for nodes in several captures, the runs since their state last changed."""


class Node(NamedTuple):
    """One node."""

    certname: str
    """Its address, as long as it failed before it showed a name."""
    state: str
    """One of ``OUTCOMES``."""
    version: str | None
    environment: str | None
    runs: int
    bad: int
    """Runs that did not complete."""
    last: float
    cause: str | None
    """The rule that explains what it is now."""
    now: NodeState
    """Its state now, as the judgement has it."""
    since: float | None
    """When it got into this state; None: its first run is under way."""


class _Found(NamedTuple):
    """A node, and what is only known of it meanwhile."""

    node: Node
    reason: str
    several: bool
    """Whether it is in several captures."""
    latest: RunState
    """Whether its latest run is over."""
    run: str = ""
    """The run with the cause of its state, as ``capture:run``."""
    context: FixContext = UNKNOWN

    @property
    def troubled(self) -> Troubled:
        """The node as its cause is found."""
        node = self.node
        return Troubled(node.certname, node.now, cast("Outcome", node.state), node.cause, self.reason,
                        node.since or 0.0, node.last, self.run, self.context)  # fmt: skip

    @property
    def again(self) -> bool:
        """Whether another run than the one that decides is under way, or was when the recording ended."""
        return self.node.now is not NodeState.OPEN and self.latest is not RunState.OVER


class RuleLine(NamedTuple):
    """A rule's findings."""

    rule: str
    title: str
    severity: str
    """The worst."""
    findings: int
    nodes: int
    first: float
    node: str | None
    """Where it was found first."""
    days: tuple[int, ...]
    """Findings of each day of ``Overview.days``."""


class Day(NamedTuple):
    """A day of the fleet."""

    date: str
    runs: int
    bad: int
    compile: float | None
    """Seconds: the median, and what 90 and 95 of 100 were faster than."""
    compile_90: float | None
    compile_95: float | None


class Times(NamedTuple):
    """How long runs and compilations took, in seconds."""

    kind: str
    """The kind of group: master, version of the master, environment."""
    name: str
    runs: int
    duration: tuple[float, float, float]
    """The median, 90 and 99 of 100."""
    compile: tuple[float, float, float] | None


class Month(NamedTuple):
    """How many certificates and CRLs end in a month without a successor."""

    month: str
    agents: int
    masters: int
    cas: int
    crls: int


class InUse(NamedTuple):
    """A format, a type of checksum or a version, and how many nodes use it."""

    kind: str
    name: str
    nodes: int


class Readiness(NamedTuple):
    """A removal or change of a newer version, and how many nodes it concerns."""

    title: str
    since: int
    nodes: int
    names: tuple[str, ...]


class Unsettled(NamedTuple):
    """A resource that changes in run after run."""

    resource: str
    file: str | None
    line: int | None
    nodes: int
    changes: int
    runs: int
    """How many runs these nodes had."""


class Spanning(NamedTuple):
    """A finding that only several captures show."""

    rule: str
    certname: str | None
    """None: it is about several."""
    severity: str
    message: str
    runs: tuple[str, ...]
    """As ``capture:run``, with the identity of the capture."""
    places: tuple[str, ...]
    """The same with the names of the captures' files."""


@dataclass(frozen=True, slots=True)
class Overview:
    """What the tables show of a fleet. Times are seconds since the epoch."""

    began: float
    ended: float
    captures: int
    runs: int
    records: int
    """Records of all captures."""
    sites: tuple[str, ...]
    nodes: tuple[Node, ...]
    """By name."""
    states: dict[str, int]
    """Nodes in each of ``OUTCOMES``."""
    standing: dict[NodeState, int]
    """Nodes in each state, the worst first."""
    headline: str
    """The whole answer in one line."""
    causes: tuple[Cause, ...]
    rules: tuple[RuleLine, ...]
    days: tuple[Day, ...]
    times: tuple[Times, ...]
    calendar: tuple[Month, ...]
    ending: tuple[Entry, ...]
    """Certificates and CRLs that end soon, or have ended; those with a successor come last."""
    in_use: tuple[InUse, ...]
    readiness: tuple[Readiness, ...]
    unsettled: tuple[Unsettled, ...]
    silent: tuple[Node, ...]
    """Nodes that stopped reporting, the longest ago first."""
    spanning: tuple[Spanning, ...]


def overview_of(directory: TableDirectory, watch: Watch = unwatched) -> Overview:
    """Compute what a directory shows. Raises InspectorError."""
    watch(0, 1, WHAT)
    with directory.reading() as connection:
        directory.must_be_judged(connection.execute(OLDER).fetchall())
        found = overview(connection)
    watch(1, 1, WHAT)
    return found


def fields(found: Overview) -> dict[str, Any]:
    """Return the JSON of ``--json``; times are texts."""
    plain: dict[str, Any] = {}
    for each in dataclasses.fields(found):
        value = getattr(found, each.name)
        rows = isinstance(value, tuple) and value and hasattr(value[0], "_asdict")
        plain[each.name] = [_dated(row._asdict()) for row in value] if rows else value
    for cause in plain["causes"]:
        cause["fix"] = fixes.fields(cause.pop("steps"))
    plain["ending"] = [text.plain_entry(entry, found.ended) for entry in found.ending]
    return _dated(plain)


def _dated(row: dict[str, Any]) -> dict[str, Any]:
    return {name: utc(value) if name in _MOMENTS and isinstance(value, float) else value for name, value in row.items()}


def overview(connection: DuckDBPyConnection) -> Overview:
    """Compute it from the views of the tables (``TableDirectory.show``)."""

    def rows(statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return connection.execute(statement, values).fetchall()

    ((began, ended, captures, records),) = rows(
        "SELECT coalesce(epoch(min(time)), 0), coalesce(epoch(max(last)), 0), count(*), coalesce(sum(records), 0) "
        "FROM captures"
    )
    found = _nodes(rows)
    nodes = tuple(each.node for each in found)
    days = _days(rows)
    names = CaptureNames.of(connection)
    known = Counter(node.state for node in nodes)
    standing = Counter(node.now for node in nodes)
    going = any(each.latest is RunState.OPEN for each in found)
    headline = in_words(standing, sum(each.again for each in found), going=going)
    silent = sorted((node for node in nodes if node.now is NodeState.SILENT), key=lambda node: node.last)
    entries = listing.entries(inventory.read(connection))
    return Overview(
        began, ended, captures, sum(day.runs for day in days), int(records),
        tuple(site for (site,) in rows("SELECT DISTINCT site FROM captures ORDER BY site")),
        nodes, {state: known[state] for state in OUTCOMES}, {state: standing[state] for state in NodeState}, headline,
        _causes(rows, found, names), _rules(rows, [day.date for day in days]), days, _times(rows),
        _calendar(entries, ended), _ending(entries, ended), _in_use(rows), _readiness(rows),
        _unsettled(rows), tuple(silent[:TOP]), _spanning(rows, names),
    )  # fmt: skip


type _Rows = Any


def _nodes(rows: _Rows) -> list[_Found]:
    """Return each node's state by the run that decides it; silent nodes are found here."""
    found = []
    for row in rows(_NODES):
        (name, runs, bad, last, pause, captures, version, environment, outcome, latest, until,
         decided, state, cause, reason, since, place, server, master, ca) = row  # fmt: skip
        now = NodeState(state) if state else NodeState.OPEN
        run = RunState(latest)
        if (
            now is NodeState.WELL
            and run is RunState.OVER
            and judgement.silent(last, pause, last if until is None else until)
        ):
            now = NodeState.SILENT
        shown = "silent" if now is NodeState.SILENT else decided or outcome
        node = Node(name, shown, version, environment, runs, bad, last, cause, now, since)
        context = FixContext.of_versions(name, server, version, master, OPENVOX_CA if ca == OPENVOX_CA else None)
        found.append(_Found(node, reason or "", captures > 1, run, place or "", context))
    return _across(rows, found)


def _across(rows: _Rows, found: list[_Found]) -> list[_Found]:
    """Return the nodes with beginning and cause of their states, where those are in an earlier capture."""
    names = [each.node.certname for each in found if each.several and each.node.now in EXPLAINED]
    standing: dict[str, tuple[Standing, str]] = {}
    for name, state, cause, reason, since, certainty, run in rows(_SERIES, names) if names else ():
        explained = certainty is not None and certainty != "not visible"
        before, earlier = standing.get(name, (None, ""))
        now = Standing(NodeState(state), cause, reason, since, explained).after(before)
        standing[name] = now, earlier if now is before else run
    return [_with(each, *standing[each.node.certname]) if each.node.certname in standing else each for each in found]


def _with(found: _Found, standing: Standing, run: str) -> _Found:
    node = found.node._replace(cause=standing.cause, since=standing.since)
    return found._replace(node=node, reason=standing.reason or "", run=run)


def _causes(rows: _Rows, found: Iterable[_Found], names: CaptureNames) -> tuple[Cause, ...]:
    firsts = {
        rule: (since, node)
        for rule, since, node in rows(
            "SELECT rule, epoch(min(time)), arg_min(certname, (time, certname)) FROM findings WHERE cause GROUP BY rule"
        )
    }
    return causes_of((each.troubled for each in found if each.node.now in EXPLAINED), firsts, names)


def _rules(rows: _Rows, days: Iterable[str]) -> tuple[RuleLine, ...]:
    counted: dict[str, dict[str, int]] = {}
    for rule, day, number in rows("SELECT rule, time::DATE::VARCHAR, count(*) FROM findings GROUP BY ALL"):
        counted.setdefault(rule, {})[day] = number
    found = rows(
        f"""
        SELECT rule, arg_min(severity, {RANK}) AS worst, count(*) AS number, count(DISTINCT certname) AS nodes,
               epoch(min(time)) AS first, arg_min(certname, (time, certname)) AS node
        FROM findings GROUP BY rule ORDER BY min({RANK}), nodes DESC, rule LIMIT {RULES}
        """
    )
    return tuple(
        RuleLine(rule, title_of(rule), severity, number, nodes, first, node,
                 tuple(counted[rule].get(day, 0) for day in days))
        for rule, severity, number, nodes, first, node in found
    )  # fmt: skip


def _days(rows: _Rows) -> tuple[Day, ...]:
    return tuple(
        Day(*row)
        for row in rows(
            f"""
            SELECT date::VARCHAR, count(outcome), count(*) FILTER (WHERE outcome <> 'complete'),
                   quantile_cont(compile_time, 0.5), quantile_cont(compile_time, 0.9), quantile_cont(compile_time, 0.95)
            FROM (
                SELECT date, outcome, compile_time FROM runs WHERE {RUNS}
                UNION ALL
                SELECT DISTINCT date, NULL, NULL FROM findings
            )
            GROUP BY date ORDER BY date DESC LIMIT {DAYS}
            """
        )
    )[::-1]


def _times(rows: _Rows) -> tuple[Times, ...]:
    quantiles = "[0.5, 0.9, 0.99]"
    made = []
    for kind, column in (
        ("master", "coalesce(compiler, answered, server)"), ("master's version", "master_version"),
        ("run's environment", "environment::VARCHAR"),
    ):  # fmt: skip
        for name, number, duration, compiled in rows(
            f"""
            WITH answers AS (  -- behind one name there may be several masters, and only some send theirs
                SELECT capture, run, arg_max(master, time) AS answered FROM exchanges
                WHERE {asked_for(Kind.CATALOG)} AND master IS NOT NULL GROUP BY ALL
            )
            SELECT {column} AS name, count(*) AS number, quantile_cont(duration, {quantiles}),
                   quantile_cont(compile_time, {quantiles})
            FROM runs LEFT JOIN answers USING (capture, run)
            WHERE tool IS NULL AND outcome = 'complete' AND {column} IS NOT NULL
            GROUP BY name ORDER BY number DESC, name LIMIT 20
            """
        ):
            made.append(Times(kind, name, number, tuple(duration), tuple(compiled) if compiled else None))
    return tuple(made)


_COUNTED = {"issued": "agent", "master and agent": "master"}
"""As what certificates with other roles are counted."""


def _calendar(entries: Iterable[Entry], now: float) -> tuple[Month, ...]:
    """From the month before: what ended then is to be looked for."""
    first = clocks.date(now).replace(day=1) - datetime.timedelta(days=1)
    months: dict[str, Counter[str]] = {}
    for entry in entries:
        if entry.end is not None and not entry.replaced and (month := utc(entry.end)[:7]) >= f"{first:%Y-%m}":
            months.setdefault(month, Counter())[_COUNTED.get(entry.role, entry.role)] += 1
    return tuple(
        Month(month, counts["agent"], counts["master"], counts["CA"], counts["CRL"])
        for month, counts in sorted(months.items())[:MONTHS]
    )


def _ending(entries: Iterable[Entry], now: float) -> tuple[Entry, ...]:
    found = (entry for entry in entries if entry.end is not None and entry.end < now + SOON * clocks.DAY)
    return tuple(sorted(found, key=lambda entry: entry.replaced)[: 4 * TOP])


def _in_use(rows: _Rows) -> tuple[InUse, ...]:
    statement = f"""
        SELECT 'format of catalogs', catalog_format, count(DISTINCT certname) FROM runs
        WHERE catalog_format IS NOT NULL AND {AGENTS} GROUP BY ALL
        UNION ALL
        SELECT 'checksums asked for', checksum_type, count(DISTINCT certname) FROM runs
        WHERE checksum_type IS NOT NULL AND {AGENTS} GROUP BY ALL
        UNION ALL
        SELECT 'version of the agent', version, count(*) FROM (
            SELECT arg_max(agent_version, time) AS version FROM runs WHERE {AGENTS} GROUP BY certname
        ) WHERE version IS NOT NULL GROUP BY ALL
        UNION ALL
        SELECT 'version of TLS', tls, count(DISTINCT certname) FROM connections
        WHERE side = 'agent' AND tls IS NOT NULL AND certname IS NOT NULL GROUP BY ALL
    """
    # An agent may send any text: of each kind those that most nodes use.
    ranked = f"""
        SELECT * FROM ({statement}) t(kind, name, nodes)
        QUALIFY row_number() OVER (PARTITION BY kind ORDER BY nodes DESC, name) <= {TOP}
        ORDER BY kind, nodes DESC, name
    """
    return tuple(InUse(*row) for row in rows(ranked))


def _readiness(rows: _Rows) -> tuple[Readiness, ...]:
    found = dict(rows("SELECT rule, list(DISTINCT certname ORDER BY certname) FROM findings "
                      "WHERE certname IS NOT NULL GROUP BY rule"))  # fmt: skip
    signs = {key: [name for (name,) in rows(statement)] for key, statement in SIGNS.items()}
    made = []
    for change in CHANGES:
        names = sorted({name for rule in change.rules for name in found.get(rule, ())} | {*signs.get(change.key, ())})
        if names:
            made.append(Readiness(change.title, change.since, len(names), tuple(names[:20])))
    return tuple(sorted(made, key=lambda each: (-each.nodes, each.title)))


def _unsettled(rows: _Rows) -> tuple[Unsettled, ...]:
    found = rows(
        f"""
        WITH {SERIES}
        SELECT ref, any_value(file), any_value(line), count(*) AS nodes, sum(changes)::BIGINT AS changes,
               sum(reports)::BIGINT
        FROM (
            SELECT ref, any_value(file) AS file, any_value(line) AS line, sum(long) AS changes,
                   any_value(reports) AS reports
            FROM series GROUP BY ref, certname
        )
        GROUP BY ref ORDER BY nodes DESC, changes DESC, ref LIMIT {TOP}
        """
    )
    return tuple(Unsettled(*row) for row in found)


def _spanning(rows: _Rows, names: CaptureNames) -> tuple[Spanning, ...]:
    found = rows(
        f"SELECT rule, certname, severity, message, runs FROM fleet_findings "
        f"ORDER BY {RANK}, rule, certname, time LIMIT {TOP}"
    )
    return tuple(Spanning._make((*about, tuple(runs), tuple(sorted(map(names.run, runs))))) for *about, runs in found)
