"""Faults of real agents and masters: how each is made, which cause must be named, and what heals it.

Each module holds the faults of one or more kinds; ``ALL`` is all of them, in the order of the table in
docs/diagnosis.md, which ``python -m tests.real.faults --write`` (or: make faults) plays and writes.
"""
