"""One line per record or run: wording, filters, the index, and following a capture."""
