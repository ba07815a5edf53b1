"""Deviations that only several captures show: computed from the tables of all of them.

Each is a rule that the analyzer applies to what one capture shows; here it is asked again of the runs of all captures,
and answers if it takes more than one of them. Which capture a run is in, and in which order they were converted, makes
no difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from inspector.fleet.statements import AGENTS, ENDED, RUN, SERIES

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

RUNS = f"""
CREATE OR REPLACE TEMP TABLE agent_runs AS
SELECT capture, run, certname, address, time, {ENDED} AS ended, key,
       transaction_uuid AS uuid, compile_time, compiler, master_version, catalog_time IS NOT NULL AS asked,
       report_status, {RUN} AS name
FROM runs
WHERE {AGENTS}
"""
"""The runs of agents; what the statements below are about."""
OVERLAPS = """
CREATE OR REPLACE TEMP TABLE overlapping AS
SELECT certname, time, least(earlier.address, address) AS one, greatest(earlier.address, address) AS other,
       earlier.key = key AS copied, earlier.uuid <> uuid AS uuids, earlier.asked AND asked AS asked,
       [earlier.name, name] AS names
FROM (
    SELECT certname, time, address, key, uuid, asked, name, unnest(before) AS earlier
    FROM (
        SELECT *, list({'address': address, 'ended': ended, 'key': key, 'uuid': uuid, 'asked': asked, 'name': name})
                  OVER (PARTITION BY certname ORDER BY time, name ROWS BETWEEN 4 PRECEDING AND 1 PRECEDING) AS before
        FROM agent_runs
    )
)
WHERE earlier.ended > time
"""
"""Runs of one node that are going on when another begins. Of the runs before it, four are looked at: the time that this
takes does not grow with the square of a node's runs."""


class Spanning(NamedTuple):
    """A rule that is asked of all captures together."""

    rule: str
    sql: str
    """Selects certname, time, severity, message, names: the runs that show it."""


SPANNING = (
    Spanning("B20", """
WITH keys AS (
    SELECT certname, key, min(time) AS began, max(ended) AS ended, arg_min(name, (time, name)) AS first,
           arg_max(name, (ended, name)) AS last
    FROM agent_runs WHERE key IS NOT NULL GROUP BY ALL
), changes AS (
    SELECT certname, began AS time, before.ended > began AS alternate, before.ended AS until,
           [before.first, first, before.last, last] AS names
    FROM (
        SELECT *, max({'ended': ended, 'key': key, 'first': first, 'last': last})
                  OVER (PARTITION BY certname ORDER BY began, key ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
                  AS before
        FROM keys
    )
    WHERE before IS NOT NULL
)
SELECT certname, min(time) AS time, 'warning' AS severity,
       'uses two keys in turns: two hosts, or two ssldirs on one host' AS message,
       list_distinct(flatten(list(names))) AS names
FROM changes WHERE alternate GROUP BY certname
UNION ALL
SELECT certname, time, 'notice', format('has a new key; the old one was last used until {}',
                                        strftime(until, '%Y-%m-%d %H:%M:%S UTC')), names
FROM changes WHERE NOT alternate
"""),
    Spanning("B21", """
SELECT NULL AS certname, max(first) AS time, 'error' AS severity,
       format('one public key has {} certnames: {} (SHA-256 {}...)', count(*),
              array_to_string(list(certname ORDER BY certname)[:5], ', '), key[:16]) AS message,
       list(name ORDER BY first, name) AS names
FROM (
    SELECT key, certname, min(time) AS first, arg_min(name, (time, name)) AS name
    FROM agent_runs WHERE key IS NOT NULL GROUP BY ALL
)
GROUP BY key HAVING count(*) > 1
"""),
    Spanning("B46", """
SELECT certname, min(time) AS time, 'error' AS severity,
       format('{} and {} use this name at the same time, {}', one, other,
              if(copied, 'with the same key: the key was copied', 'each with its own key')) AS message,
       list_distinct(flatten(list(names))) AS names
FROM overlapping WHERE one <> other AND copied IS NOT NULL AND uuids IS DISTINCT FROM false
GROUP BY certname, copied, one, other
"""),
    Spanning("R17", """
SELECT certname, min(time) AS time, 'error' AS severity,
       format('two runs with the same certificate overlap, {}',
              if(one = other, format('both from {}', one), format('one from {}, one from {}', one, other))) AS message,
       list_distinct(flatten(list(names))) AS names
FROM overlapping WHERE copied AND uuids AND asked
GROUP BY certname, one, other
"""),
    Spanning("R16", """
WITH starts AS (
    SELECT name, time, epoch(time) AS began, certname FROM agent_runs WHERE asked AND key IS NOT NULL
), counted AS (
    SELECT began, count(*) OVER (ORDER BY began RANGE BETWEEN CURRENT ROW AND 10 FOLLOWING) AS number FROM starts
), firsts AS (
    SELECT DISTINCT began FROM (
        SELECT began, number,
               max(number) OVER (ORDER BY began RANGE BETWEEN 10 PRECEDING AND 0.000001 PRECEDING) AS before
        FROM counted
    ) WHERE number >= 20 AND coalesce(before, 0) < 20
)
SELECT NULL AS certname, min(time) AS time, 'notice' AS severity,
       format('{} agents began their runs within 10 s', count(DISTINCT certname)) AS message,
       list(name ORDER BY time, name) AS names
FROM firsts JOIN starts ON starts.began BETWEEN firsts.began AND firsts.began + 10
GROUP BY firsts.began HAVING count(DISTINCT certname) >= 20
"""),
    Spanning("P11", f"""
WITH {SERIES}
SELECT certname, max(time) AS time, if(exec OR max(long) < 5, 'notice', 'warning') AS severity,
       format('changed in each of {{}} runs: {{}}{{}}', max(long), array_to_string(list(ref ORDER BY ref)[:5], ', '),
              if(count(*) > 5, format(' and {{}} more', count(*) - 5), '')) AS message,
       arg_max(names, (long, ref)) AS names
FROM series GROUP BY certname, exec, until
"""),
    Spanning("S20", """
WITH answered AS (
    SELECT certname, 'compilers' AS what, compiler AS who, time, name FROM agent_runs WHERE compiler IS NOT NULL
    UNION ALL
    SELECT certname, 'versions of the master', master_version, time, name FROM agent_runs
    WHERE master_version IS NOT NULL
), each AS (
    SELECT certname, what, who, min(time) AS began, max(time) AS ended, arg_min(name, (time, name)) AS first,
           arg_max(name, (time, name)) AS last
    FROM answered GROUP BY ALL
)
SELECT if(count(*) = 1, any_value(certname), NULL) AS certname, max(time) AS time, 'notice' AS severity,
       format('{} {} take turns in answering {}: {}', len(masters), what,
              if(count(*) = 1, any_value(certname), format('{} nodes', count(*))),
              array_to_string(masters[:5], ', ')) AS message,
       list_sort(flatten(list(names)))[:100] AS names
FROM (
    SELECT a.certname, a.what, max(b.began) AS time, list_sort(list_distinct(list(a.who) || list(b.who))) AS masters,
           list_distinct(list(a.first) || list(b.first) || list(a.last)) AS names
    FROM each a JOIN each b ON a.certname = b.certname AND a.what = b.what AND (a.began, a.who) < (b.began, b.who)
                           AND b.began < a.ended
    GROUP BY a.certname, a.what
)
GROUP BY what, masters
"""),
    Spanning("S29", """
WITH compiled AS (
    SELECT certname, time, name, capture, compile_time AS took,
           median(compile_time) OVER before AS usual, count(*) OVER before AS number,
           count(*) OVER here AS own, list(name) OVER before AS names
    FROM agent_runs WHERE compile_time IS NOT NULL
    WINDOW before AS (PARTITION BY certname ORDER BY time, name ROWS BETWEEN 8 PRECEDING AND 1 PRECEDING),
           here AS (PARTITION BY certname, capture ORDER BY time, name ROWS BETWEEN 8 PRECEDING AND 1 PRECEDING)
)
SELECT certname, time, 'notice' AS severity,
       format('the catalog took {:.1f} s; in the last {} runs the median was {:.1f} s', took, number, usual) AS message,
       names || [name] AS names
FROM compiled WHERE number >= 5 AND own < 5 AND took >= 2 * usual AND took - usual >= 1
"""),
)  # fmt: skip


def statement(spanning: Spanning) -> str:
    """A statement that selects the rows of ``fleet_findings`` for a rule: those that take several captures."""
    return f"""
SELECT split_part(names[1], ':', 1) AS capture, certname, time, '{spanning.rule}' AS rule, severity, message,
       list_sort(list_distinct(names))[:100] AS runs
FROM ({spanning.sql})
WHERE len(list_distinct(list_transform(names, lambda name: split_part(name, ':', 1)))) > 1
"""


def find(connection: DuckDBPyConnection) -> str:
    """Prepare a database that shows the tables; return the statement that selects all rows of ``fleet_findings``."""
    connection.execute(RUNS)
    connection.execute(OVERLAPS)
    return " UNION ALL BY NAME ".join(statement(each) for each in SPANNING)
