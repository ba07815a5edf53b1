"""What tables show of removals and changed defaults (``explain.readiness``) that no rule finds."""

from __future__ import annotations

from inspector.explain.readiness.signs import LEAST
from inspector.fleet.database import text
from inspector.fleet.statements import AGENTS, OF_AGENTS
from inspector.protocol.facts import LEGACY, LEGACY_STARTS

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
