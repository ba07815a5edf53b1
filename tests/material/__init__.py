"""Material that nobody here wrote, measured (docs/coverage.md#material-of-others)."""
