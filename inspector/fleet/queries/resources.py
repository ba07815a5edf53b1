"""Questions about resources."""

from __future__ import annotations

from inspector.fleet.queries.query import AT, DAYS, WINDOW, Parameter, Query
from inspector.fleet.statements import AGENTS

QUERIES = (
    Query(
        "changing_resources",
        "Which resources change in every run?",
        f"""
        WITH reported AS (
            SELECT capture, run, certname FROM runs
            WHERE report_status IS NOT NULL AND noop IS NOT TRUE AND {AGENTS} AND {WINDOW}
        ), often AS (
            SELECT certname, count(*) AS runs FROM reported GROUP BY certname HAVING count(*) >= $runs
        ), changed AS (
            SELECT DISTINCT reported.certname AS certname, capture, run, type, title, file, line
            FROM resource_events JOIN reported USING (capture, run)
            WHERE status = 'success' AND type <> 'Notify' AND date >= ($at - to_days($days::INTEGER))::DATE
        ), every AS (
            SELECT certname, type, title, file, line, count(*) AS runs FROM changed GROUP BY ALL
        )
        SELECT type, title, file, line, count(*) AS nodes, min(certname) AS example, sum(runs)::UBIGINT AS changes
        FROM every JOIN often USING (certname, runs)
        GROUP BY type, title, file, line ORDER BY nodes DESC, type, title""",
        (Parameter("runs", 3, "how many runs a node has at least"), DAYS, AT),
    ),
    Query(
        "corrective",
        "What did something else change, so that agents had to correct it?",
        f"""
        SELECT type, title, property, count(*) AS changes, count(DISTINCT certname) AS nodes, min(certname) AS example,
               min(time) AS first, max(time) AS last
        FROM resource_events WHERE corrective AND status = 'success' AND {WINDOW}
        GROUP BY type, title, property ORDER BY changes DESC, type, title, property""",
        (DAYS, AT),
    ),
    Query(
        "failed_resources",
        "Which resources fail?",
        f"""
        SELECT type, title, file, line, count(*) AS failures, count(DISTINCT certname) AS nodes,
               min(certname) AS example, max(time) AS last, arg_max(message, time) AS message
        FROM resource_events WHERE status = 'failure' AND {WINDOW}
        GROUP BY type, title, file, line ORDER BY nodes DESC, failures DESC, type, title""",
        (DAYS, AT),
    ),
)
