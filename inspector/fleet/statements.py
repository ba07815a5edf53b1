"""Parts that several SQL statements about tables have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.explain.readiness.signs import LEAST
from inspector.fleet.database import text
from inspector.protocol.endpoints import ENDPOINTS
from inspector.protocol.facts import LEGACY, LEGACY_STARTS

if TYPE_CHECKING:
    from inspector.protocol.kinds import Kind

RUNS = "tool IS NULL AND command IS NULL"
"""The condition of runs of agents, not calls of tools and of other commands."""
AGENTS = f"certname IS NOT NULL AND {RUNS}"
"""The condition of runs of agents that showed a name."""
RANK = "CASE severity WHEN 'error' THEN 1 WHEN 'warning' THEN 2 ELSE 3 END"
"""The worst severity is the lowest number."""
RUN = "format('{}:{}', capture, run)"
"""A run as it is printed, and as commands take it."""
NAMED = f"""
named AS (
    SELECT site, address, certname, min(time) AS first, max(time) AS last FROM runs
    WHERE certname IS NOT NULL AND tool IS NULL AND address IS NOT NULL GROUP BY ALL
), firsts AS (
    SELECT site, address, first, min(certname) AS name FROM named GROUP BY ALL
), alone AS (
    SELECT site, address, any_value(certname) AS name, max(last) AS last FROM named GROUP BY site, address
    HAVING count(*) = 1
), agents AS (
    SELECT * FROM runs WHERE {AGENTS}
    UNION ALL
    SELECT runs.* REPLACE (
        coalesce(firsts.name, CASE WHEN alone.last > runs.time THEN alone.name END, runs.address, '-') AS certname
    )
    FROM runs ASOF LEFT JOIN firsts
    ON runs.site = firsts.site AND runs.address = firsts.address AND runs.time < firsts.first
    LEFT JOIN alone ON runs.site = alone.site AND runs.address = alone.address
    WHERE certname IS NULL AND {RUNS}
)
"""
"""An expression for WITH; ``agents``: the runs of agents. One that failed before it showed a name is of the node that
came up at its address later for the first time, or of the only one there if it ran again; else the address is its
node's name, as the judgement has it."""
OF_AGENTS = "exchanges ANTI JOIN (SELECT capture, run FROM runs WHERE tool IS NOT NULL) USING (capture, run)"
"""The exchanges that are no calls of tools."""
LATEST_CRLS = """(
    SELECT * REPLACE (max(last) OVER (PARTITION BY fingerprint) AS last) FROM crls
    QUALIFY row_number() OVER (
        PARTITION BY issuer, issuer_key
        ORDER BY last_update DESC, length(number) DESC NULLS LAST, number DESC NULLS LAST, fingerprint, capture
    ) = 1
)"""
"""The latest CRL of each CA: of the same second, the one with the highest number."""
LONGEST = 1e9
"""Seconds that a run takes at most: thirty years."""
ENDED = f"time + to_microseconds((least(duration, {LONGEST}) * 1e6)::BIGINT)"
"""When a run ended; a damaged capture may hold any duration."""
SERIES = f"""
reports AS (
    SELECT capture, run, certname, time, {RUN} AS name,
           row_number() OVER (PARTITION BY certname ORDER BY time, capture, run) AS place,
           count(*) OVER (PARTITION BY certname) AS number
    FROM runs WHERE report_status IS NOT NULL AND {AGENTS}
), changes AS (
    SELECT certname, format('{{}}[{{}}]', type, title) AS ref, type = 'Exec' AS exec, place, name, number, reports.time,
           any_value(file) AS file, any_value(line) AS line
    FROM resource_events e JOIN reports USING (capture, run, certname)
    WHERE e.status = 'success' AND type <> 'Notify' GROUP BY ALL
), islands AS (
    SELECT *, place - row_number() OVER (PARTITION BY certname, ref ORDER BY place) AS island FROM changes
), series AS (
    SELECT certname, ref, exec, count(*) AS long, max(place) AS until, max(time) AS time,
           list(name ORDER BY place) AS names, any_value(number) AS reports, any_value(file) AS file,
           any_value(line) AS line
    FROM islands GROUP BY certname, ref, exec, island HAVING count(*) >= 3
)
"""
"""Expressions for WITH; ``series``: the resources that a node changed in three or more runs, one after another."""


def asked_for(*kinds: Kind) -> str:
    """Return the condition of exchanges with endpoints of these kinds."""
    names = sorted({endpoint.name for endpoint in ENDPOINTS if endpoint.kind in kinds})
    return f"endpoint IN ({', '.join(map(text, names))})"


# -- removals and changed defaults (explain.readiness) that no rule finds --------------------------------------

LEGACY_FACT = " OR ".join(
    [
        f"path IN ({', '.join(map(text, sorted(LEGACY)))})",
        *(f"starts_with(path, {text(start)})" for start in LEGACY_STARTS),
    ]
)
"""The condition of facts that have structured successors."""
SENT = "contains(coalesce(request_format, ''), 'pson')"
RECEIVED = "contains(coalesce(format, ''), 'pson')"
"""The conditions of exchanges with PSON."""
SIGNS = {
    "legacy-url": f"SELECT DISTINCT certname FROM runs WHERE dialect = 'legacy' AND {AGENTS}",
    "legacy-facts": f"""
        WITH latest AS (
            SELECT certname, arg_max({{'capture': capture, 'run': facts}}, time) AS facts
            FROM runs WHERE facts IS NOT NULL AND {AGENTS} GROUP BY certname
        )
        SELECT latest.certname FROM facts JOIN latest ON facts.capture = latest.facts.capture
                                                         AND facts.run = latest.facts.run
        WHERE {LEGACY_FACT} GROUP BY latest.certname HAVING count(DISTINCT path) >= {LEAST}
    """,
    "pson": f"SELECT DISTINCT certname FROM {OF_AGENTS} WHERE ({SENT} OR {RECEIVED}) AND certname IS NOT NULL",
}
"""Statements that select the nodes that a change concerns, by the key of the change."""
