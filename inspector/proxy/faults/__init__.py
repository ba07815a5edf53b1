"""Faults that the proxy injects on purpose, to see what an agent does with them (docs/faults.md)."""

ALARM = "-- fault: "
"""How a line about an injected fault begins: on a terminal it is red."""
