"""A record as pages to read: which tabs it has and what stands in them, for the terminal inspector and for `show`.

No widgets, no I/O: made in a thread, and tested without a terminal.
"""
