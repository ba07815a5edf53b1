"""Questions about certificates, CRLs, keys and TLS."""

from __future__ import annotations

from inspector.fleet.queries.query import AT, DAYS, WINDOW, Parameter, Query
from inspector.fleet.statements import LATEST_CRLS, asked_for
from inspector.protocol.kinds import Kind

QUERIES = (
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
