"""Questions before an upgrade."""

from __future__ import annotations

from inspector.explain.readiness.signs import LEAST
from inspector.fleet.queries.query import AT, DAYS, LATEST, WINDOW, Query
from inspector.fleet.readiness import LEGACY_FACT, RECEIVED, SENT
from inspector.fleet.statements import OF_AGENTS

QUERIES = (
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
