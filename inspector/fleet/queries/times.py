"""Questions about time and size."""

from __future__ import annotations

from inspector.fleet.queries.query import AT, DAYS, TOP, WINDOW, Query, seconds, share_of
from inspector.fleet.statements import AGENTS, asked_for
from inspector.protocol.kinds import Kind

_CATALOG = asked_for(Kind.CATALOG)
_FILES = asked_for(Kind.FILE_CONTENT, Kind.STATIC_CONTENT, Kind.PLUGIN_CONTENT)

QUERIES = (
    Query(
        "compile_times",
        "Is compiling slower since the upgrade?",
        f"""
        SELECT date AS day, master_version, count(*) AS catalogs, {share_of(0.5, "compile_time")} AS median,
               {share_of(0.95, "compile_time")} AS p95, {seconds("max(compile_time)")} AS longest,
               round(avg(resources)) AS resources
        FROM runs WHERE compile_time IS NOT NULL AND {WINDOW} GROUP BY ALL ORDER BY day, master_version""",
        (DAYS, AT),
    ),
    Query(
        "slow_masters",
        "Which master is the slow one?",
        f"""
        SELECT master, count(*) AS requests, {share_of(0.5, "waited")} AS median, {share_of(0.95, "waited")} AS p95,
               count(*) FILTER ({_CATALOG}) AS catalogs,
               {share_of(0.5, "waited", _CATALOG)} AS catalog_median,
               {share_of(0.95, "waited", _CATALOG)} AS catalog_p95,
               count(*) FILTER (status >= 500 OR status IS NULL) AS failed
        FROM exchanges WHERE master IS NOT NULL AND {WINDOW}
        GROUP BY master ORDER BY catalog_median DESC NULLS LAST, median DESC, master""",
        (DAYS, AT),
    ),
    Query(
        "endpoints",
        "What do nodes ask for most, and what takes the masters' time?",
        f"""
        SELECT endpoint, count(*) AS requests, {seconds("sum(waited)")} AS seconds, {share_of(0.5, "waited")} AS median,
               {share_of(0.95, "waited")} AS p95, sum(received)::UBIGINT AS received,
               count(*) FILTER (status >= 400 OR status IS NULL) AS failed
        FROM exchanges WHERE {WINDOW} GROUP BY endpoint ORDER BY seconds DESC NULLS LAST, endpoint""",
        (DAYS, AT),
    ),
    Query(
        "slow_runs",
        "Which runs took longest, and where did the time go?",
        f"""
        SELECT certname, time, {seconds("duration")} AS duration, outcome,
               {seconds("certificates_time")} AS certificates, {seconds("node_time")} AS node,
               {seconds("plugins_time")} AS plugins, {seconds("facts_wait")} AS facts,
               {seconds("catalog_time")} AS catalog, {seconds("compile_time")} AS compiling,
               {seconds("files_time")} AS files, {seconds("apply_wait")} AS applying,
               {seconds("report_time")} AS report, capture, run
        FROM runs WHERE {AGENTS} AND {WINDOW} ORDER BY runs.duration DESC, certname LIMIT $top""",
        (TOP, DAYS, AT),
    ),
    Query(
        "big_catalogs",
        "Which nodes have the largest catalogs?",
        f"""
        WITH answers AS (
            SELECT certname, max(received) AS bytes, count(*) AS catalogs, {share_of(0.5, "waited")} AS median
            FROM exchanges WHERE {_CATALOG} AND status = 200 AND {WINDOW} GROUP BY certname
        ), sizes AS (
            SELECT certname, max(resources) AS resources FROM runs WHERE {WINDOW} GROUP BY certname
        )
        SELECT certname, bytes, resources, catalogs, median
        FROM answers LEFT JOIN sizes USING (certname) ORDER BY bytes DESC, certname LIMIT $top""",
        (TOP, DAYS, AT),
    ),
    Query(
        "big_files",
        "Which files cost most to transfer?",
        f"""
        SELECT path, max(received) AS bytes, count(*) AS transfers, count(DISTINCT certname) AS nodes,
               sum(received)::UBIGINT AS transferred
        FROM exchanges
        WHERE {_FILES} AND status = 200 AND {WINDOW}
        GROUP BY path ORDER BY transferred DESC, path LIMIT $top""",
        (TOP, DAYS, AT),
    ),
)
