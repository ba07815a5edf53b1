"""Questions about findings and errors."""

from __future__ import annotations

from inspector.fleet.queries.query import AT, DAYS, WINDOW, Query

QUERIES = (
    Query(
        "first_finding",
        "When and on which node did each finding appear first?",
        """
        WITH found AS (
            SELECT rule,
                   arg_min({'severity': severity, 'certname': certname, 'capture': capture, 'run': run}, time) AS one,
                   min(time) AS first, max(time) AS last, count(*) AS findings, count(DISTINCT certname) AS nodes
            FROM findings GROUP BY rule
        )
        SELECT rule, one.severity AS severity, first, one.certname AS certname, one.capture AS capture, one.run AS run,
               findings, nodes, last
        FROM found ORDER BY first DESC, rule""",
    ),
    Query(
        "findings",
        "How many findings were there each day, by rule?",
        f"""
        SELECT date AS day, rule, severity, count(*) AS findings, count(DISTINCT certname) AS nodes,
               count(*) FILTER (cause) AS causes
        FROM findings WHERE {WINDOW} GROUP BY ALL ORDER BY day DESC, findings DESC, rule, severity""",
        (DAYS, AT),
    ),
    Query(
        "errors",
        "Which requests are answered with an error, or not at all?",
        f"""
        SELECT endpoint, status, error, count(*) AS requests, count(DISTINCT certname) AS nodes,
               min(certname) AS example, min(path) AS path, min(time) AS first, max(time) AS last
        FROM exchanges WHERE (status >= 400 OR status IS NULL) AND {WINDOW}
        GROUP BY endpoint, status, error ORDER BY requests DESC, endpoint, status""",
        (DAYS, AT),
    ),
    Query(
        "gaps",
        "Of which captures is something missing?",
        """
        SELECT name, site, time, last, records, lost, unanalyzed, trouble, complete
        FROM captures WHERE lost > 0 OR unanalyzed > 0 OR trouble IS NOT NULL ORDER BY time, name""",
    ),
)
