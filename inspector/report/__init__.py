"""One HTML file of a capture, to pass on: the answer first, then runs, records, certificates; and the same in brief."""
