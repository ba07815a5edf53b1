"""Questions about nodes and their runs."""

from __future__ import annotations

from inspector.fleet.queries.query import AT, DAYS, LATEST, WINDOW, Parameter, Query, seconds
from inspector.fleet.statements import AGENTS, NAMED

QUERIES = (
    Query(
        "failing",
        "Which nodes' latest run failed, or waits for the CA, why, and since when?",
        f"""
        WITH {NAMED}, latest AS (
            SELECT certname, max(time) AS last,
                   arg_max({{'outcome': outcome, 'cause': cause, 'reason': reason, 'state': state,
                             'standing_cause': standing_cause, 'standing_reason': standing_reason,
                             'standing_since': standing_since}}, (time, capture, run)) AS run
            FROM agents WHERE time <= $at AND state IS NOT NULL GROUP BY certname
        ), well AS (
            SELECT certname, max(time) AS last_complete FROM agents
            WHERE outcome = 'complete' AND time <= $at GROUP BY certname
        ), failed AS (
            SELECT certname, min(time) AS since, count(*) AS failures
            FROM agents LEFT JOIN well USING (certname)
            WHERE state IN ('failing', 'waiting') AND time <= $at AND (last_complete IS NULL OR time > last_complete)
            GROUP BY certname
        )
        SELECT certname, last, run.outcome AS outcome, run.cause AS cause, run.reason AS reason, since, failures,
               last_complete, run.state AS state, run.standing_cause AS standing_cause,
               run.standing_reason AS standing_reason, run.standing_since AS standing_since
        FROM latest LEFT JOIN failed USING (certname) LEFT JOIN well USING (certname)
        WHERE run.state IN ('failing', 'waiting') ORDER BY since, certname""",
        (AT,),
        judged=True,
    ),
    Query(
        "silent",
        "Which nodes stopped reporting?",
        f"""
        WITH latest AS ({LATEST})
        SELECT certname, last, date_diff('hour', last, $at) AS hours, run.outcome AS outcome,
               agent_version, address, runs
        FROM latest WHERE last < $at - to_hours($hours::INTEGER) ORDER BY last, certname""",
        (Parameter("hours", 24, "how many hours without a run are silence"), AT),
    ),
    Query(
        "versions",
        "Which versions of agents and masters are in use?",
        f"""
        WITH latest AS ({LATEST})
        SELECT agent_version, master_version, count(*) AS nodes,
               min(certname) AS example, max(last) AS last
        FROM latest GROUP BY ALL ORDER BY nodes DESC, agent_version, master_version""",
        (AT,),
    ),
    Query(
        "environments",
        "Which environments do nodes run in, and how do they fare there?",
        f"""
        SELECT environment, count(DISTINCT certname) AS nodes, count(*) AS runs,
               count(*) FILTER (outcome IN ('failed', 'refused')) AS failed,
               count(*) FILTER (environment_asked <> environment) AS asked_for_another, max(time) AS last
        FROM runs WHERE {AGENTS} AND {WINDOW} GROUP BY environment ORDER BY nodes DESC, environment""",
        (DAYS, AT),
    ),
    Query(
        "addresses",
        "Which certname came from several addresses?",
        f"""
        SELECT certname, count(DISTINCT address) AS addresses, list_sort(list(DISTINCT address))[:10] AS which,
               count(*) AS runs, count(DISTINCT key) AS keys, max(time) AS last
        FROM runs WHERE {AGENTS} AND address IS NOT NULL AND {WINDOW}
        GROUP BY certname HAVING count(DISTINCT address) > 1 ORDER BY addresses DESC, certname""",
        (DAYS, AT),
    ),
    Query(
        "clocks",
        "Whose clock is wrong?",
        f"""
        WITH measured AS (
            SELECT 'agent' AS what, certname AS name, agent_clock AS ahead, time FROM runs
            WHERE certname IS NOT NULL AND agent_clock IS NOT NULL AND {WINDOW}
            UNION ALL
            SELECT 'master', coalesce(compiler, server), master_clock, time FROM runs
            WHERE master_clock IS NOT NULL AND {WINDOW}
        )
        SELECT what, name, {seconds("arg_max(ahead, time)")} AS seconds_ahead, max(time) AS last
        FROM measured GROUP BY what, name HAVING abs(arg_max(ahead, time)) > $seconds
        ORDER BY abs(arg_max(ahead, time)) DESC, what, name""",
        (Parameter("seconds", 60, "how many seconds off are too many"), DAYS, AT),
    ),
    Query(
        "noop",
        "Which nodes only say what they would change?",
        f"""
        WITH latest AS ({LATEST})
        SELECT certname, last, environment, agent_version
        FROM latest WHERE noop ORDER BY certname""",
        (AT,),
    ),
    Query(
        "cached",
        "Which nodes applied a catalog from their cache?",
        f"""
        SELECT certname, cached_catalog, count(*) AS runs, min(time) AS first, max(time) AS last,
               arg_max({{'cause': cause}}, time).cause AS cause
        FROM runs WHERE cached_catalog NOT IN ('not_used', '') AND {AGENTS} AND {WINDOW}
        GROUP BY certname, cached_catalog ORDER BY last DESC, certname""",
        (DAYS, AT),
    ),
    Query(
        "facts",
        "Which values does a fact have, on how many nodes?",
        f"""
        WITH latest AS ({LATEST}), sent AS (
            SELECT certname, arg_max({{'value': value, 'type': type}}, time) AS fact, max(time) AS time
            FROM facts JOIN latest USING (certname)
            WHERE path = $path AND time <= $at
                  AND (volatile OR (facts.capture = latest.facts.capture AND facts.run = latest.facts.run))
            GROUP BY certname
        )
        SELECT fact.value AS value, fact.type AS type, count(*) AS nodes, min(certname) AS example, max(time) AS last
        FROM sent GROUP BY ALL ORDER BY nodes DESC, value""",
        (Parameter("path", "os.release.major", "names joined by dots"), AT),
    ),
)
