"""Named queries: questions about a fleet, and the SQL that answers them (docs/sql.md)."""
