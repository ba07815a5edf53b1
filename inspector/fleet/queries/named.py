"""The named queries, by subject."""

from __future__ import annotations

import difflib
from types import MappingProxyType
from typing import TYPE_CHECKING

from inspector.errors import InspectorError
from inspector.explain.readiness.signs import LEAST
from inspector.fleet.queries.query import AT, DAYS, LATEST, TOP, WINDOW, Parameter, Query, seconds, share_of
from inspector.fleet.statements import AGENTS, LATEST_CRLS, LEGACY_FACT, NAMED, OF_AGENTS, RECEIVED, SENT, asked_for
from inspector.protocol.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping


# -- nodes and their runs --------------------------------------------------------------------------------------

_NODES = (
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


# -- findings and errors ---------------------------------------------------------------------------------------

_FINDINGS = (
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


# -- certificates, CRLs, keys and TLS --------------------------------------------------------------------------

_TRUST = (
    Query(
        "expiring",
        "Which certificates expire soon, and did their nodes try to renew them?",
        f"""
        WITH latest AS (
            SELECT if(role = 'issued', 'agent', role) AS role, coalesce(certname, subject) AS name, issuer, issuer_key,
                   arg_max(not_after, not_before) AS not_after, arg_max(serial, not_before) AS serial,
                   min(time) AS first, max(last) AS observed
            FROM certificates GROUP BY 1, 2, 3, 4
        ), renewals AS (
            SELECT certname AS name, max(time) AS renewal, arg_max({{'status': status}}, time).status AS renewal_status
            FROM exchanges WHERE {asked_for(Kind.RENEWAL)} GROUP BY certname
        )
        SELECT role, latest.name AS name, not_after, date_diff('day', $at, not_after) AS days_left, renewal,
               renewal_status, observed, serial, issuer
        FROM latest LEFT JOIN renewals ON latest.role = 'agent' AND renewals.name = latest.name
        WHERE not_after < $at + to_days($days::INTEGER)
              AND NOT EXISTS (FROM latest later WHERE later.role = latest.role AND later.name = latest.name
                                                      AND later.first > latest.observed)
        ORDER BY not_after, role, latest.name""",
        (Parameter("days", 30, "how many days after that are considered"), AT),
    ),
    Query(
        "crls",
        "Which CRLs expire soon, or have expired?",
        f"""
        SELECT issuer, number, last_update, next_update, date_diff('day', $at, next_update) AS days_left, revoked,
               last AS observed
        FROM {LATEST_CRLS} WHERE next_update < $at + to_days($days::INTEGER)
        ORDER BY next_update, issuer""",
        (Parameter("days", 30, "how many days after that are considered"), AT),
    ),
    Query(
        "revoked",
        "Which nodes still present a certificate that is revoked: by a CRL, or as the master that refuses it says?",
        f"""
        WITH listed AS (
            SELECT issuer, issuer_key, last_update, unnest(serials) AS serial FROM {LATEST_CRLS}
        ), by_crl AS (
            SELECT certname, serial, issuer, last_update AS crl, min(time) AS first, max(last) AS last
            FROM certificates c JOIN listed USING (issuer, serial)
            WHERE role = 'agent' AND last > last_update
                  AND coalesce(c.issuer_key = listed.issuer_key, true)
            GROUP BY ALL
        )
        FROM by_crl
        UNION ALL
        SELECT certname, NULL, NULL, NULL, min(time), max(time) FROM findings
        WHERE rule = 'T05' AND certname NOT IN (SELECT certname FROM by_crl WHERE certname IS NOT NULL)
        GROUP BY certname
        ORDER BY last DESC, certname""",
    ),
    Query(
        "keys",
        "Which certname has several keys, and which key has several certnames?",
        """
        WITH presented AS (
            SELECT DISTINCT coalesce(certname, subject) AS certname, key FROM certificates
            WHERE role IN ('agent', 'issued')
        )
        SELECT 'several keys' AS what, certname AS name, count(*) AS number, list_sort(list(key))[:10] AS others
        FROM presented GROUP BY certname HAVING count(*) > 1
        UNION ALL
        SELECT 'several certnames', key, count(*), list_sort(list(certname))[:10]
        FROM presented GROUP BY key HAVING count(*) > 1
        ORDER BY what, number DESC, name""",
    ),
    Query(
        "unverified",
        "Which agents do not verify their master?",
        f"""
        SELECT certname, rule, count(*) AS findings, min(time) AS first, max(time) AS last,
               arg_max(message, time) AS message
        FROM findings WHERE rule IN ('B01', 'B03') AND {WINDOW}
        GROUP BY certname, rule ORDER BY last DESC, certname, rule""",
        (DAYS, AT),
    ),
    Query(
        "anonymous",
        "Which nodes send requests without a certificate, after their bootstrap?",
        f"""
        SELECT certname, endpoint, status, count(*) AS requests, min(time) AS first, max(time) AS last
        FROM exchanges WHERE NOT authenticated AND phase NOT IN ('certificates', 'other') AND {WINDOW}
        GROUP BY ALL ORDER BY requests DESC, certname, endpoint, status""",
        (DAYS, AT),
    ),
    Query(
        "refused",
        "Why do TLS handshakes fail, and whose?",
        f"""
        SELECT reason, alert, alert_by, side, count(*) AS handshakes, count(DISTINCT certname) AS nodes,
               count(DISTINCT address) AS addresses, min(certname) AS example, min(time) AS first, max(time) AS last
        FROM handshakes WHERE {WINDOW} GROUP BY ALL ORDER BY handshakes DESC, reason""",
        (DAYS, AT),
    ),
    Query(
        "tls",
        "Which versions of TLS and which ciphers are in use?",
        f"""
        SELECT side, tls, cipher, count(*) AS connections, count(DISTINCT coalesce(certname, address)) AS peers,
               min(coalesce(certname, address)) AS example, max(time) AS last
        FROM connections WHERE tls IS NOT NULL AND {WINDOW} GROUP BY ALL ORDER BY side, tls, connections DESC""",
        (DAYS, AT),
    ),
)


# -- resources -------------------------------------------------------------------------------------------------

_RESOURCES = (
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


# -- time and size ---------------------------------------------------------------------------------------------

_CATALOG = asked_for(Kind.CATALOG)
_FILES = asked_for(Kind.FILE_CONTENT, Kind.STATIC_CONTENT, Kind.PLUGIN_CONTENT)

_TIMES = (
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


# -- before an upgrade -----------------------------------------------------------------------------------------

_UPGRADES = (
    Query(
        "pson",
        "Who still uses PSON?",
        f"""
        WITH users AS (
            SELECT certname, count(*) FILTER ({SENT}) AS sent, count(*) FILTER ({RECEIVED}) AS received,
                   list_sort(list(DISTINCT endpoint)) AS endpoints, max(time) AS last
            FROM {OF_AGENTS} WHERE ({SENT} OR {RECEIVED}) AND {WINDOW} GROUP BY certname
        ), latest AS ({LATEST})
        SELECT users.certname AS certname, agent_version, master_version, sent,
               received, endpoints, users.last AS last
        FROM users LEFT JOIN latest USING (certname) ORDER BY certname""",
        (DAYS, AT),
    ),
    Query(
        "upgrade",
        "Which nodes have what Puppet 8, OpenVox 8 or 9 no longer accept or send?",
        f"""
        WITH latest AS ({LATEST}), pson AS (
            SELECT certname, true AS pson FROM {OF_AGENTS} WHERE ({SENT} OR {RECEIVED}) AND {WINDOW} GROUP BY certname
        ), old AS (
            SELECT certname, min(tls) AS old_tls FROM connections
            WHERE side = 'agent' AND tls IN ('SSLv3', 'TLSv1', 'TLSv1.0', 'TLSv1.1') AND {WINDOW} GROUP BY certname
        ), digests AS (
            SELECT certname, true AS md5 FROM findings WHERE rule = 'F06' AND {WINDOW} GROUP BY certname
        ), flat AS (
            SELECT latest.certname AS certname, count(DISTINCT path) AS legacy_facts
            FROM facts JOIN latest ON facts.capture = latest.facts.capture AND facts.run = latest.facts.run
            WHERE {LEGACY_FACT} GROUP BY latest.certname
        )
        SELECT certname, agent_version, coalesce(pson, false) AS pson, coalesce(md5, false) AS md5,
               old_tls, coalesce(legacy_facts, 0) AS legacy_facts, last
        FROM latest LEFT JOIN pson USING (certname) LEFT JOIN old USING (certname) LEFT JOIN digests USING (certname)
             LEFT JOIN flat USING (certname)
        WHERE pson OR md5 OR old_tls IS NOT NULL OR legacy_facts >= {LEAST} ORDER BY certname""",
        (DAYS, AT),
    ),
    Query(
        "checksums",
        "Which checksum types do agents ask for?",
        f"""
        WITH latest AS ({LATEST})
        SELECT checksum_type, count(*) AS nodes,
               list_sort(list(DISTINCT agent_version)) AS agent_versions, min(certname) AS example
        FROM latest WHERE checksum_type IS NOT NULL GROUP BY 1 ORDER BY nodes DESC, checksum_type""",
        (AT,),
    ),
    Query(
        "formats",
        "Which formats are requests and answers in?",
        f"""
        SELECT endpoint, request_format, format, encoding, count(*) AS requests, count(DISTINCT certname) AS nodes,
               sum(sent)::UBIGINT AS sent, sum(received)::UBIGINT AS received
        FROM exchanges WHERE {WINDOW} GROUP BY ALL ORDER BY endpoint, requests DESC""",
        (DAYS, AT),
    ),
)

QUERIES: Mapping[str, Query] = MappingProxyType(
    {query.name: query for query in (*_NODES, *_FINDINGS, *_TRUST, *_RESOURCES, *_TIMES, *_UPGRADES)}
)
"""By name, in the order of the list."""


def named(name: str) -> Query:
    """Return the query of this name. Raises InspectorError."""
    if name not in QUERIES:
        near = difflib.get_close_matches(name, QUERIES, 1)
        raise InspectorError(
            f"There is no query {name!r}.",
            f"Did you mean `{near[0]}`?" if near else "`puppet-inspector sql --list` lists them.",
        )
    return QUERIES[name]
