"""Summaries of records and runs: one-line texts, filters, the index, and following a capture."""
