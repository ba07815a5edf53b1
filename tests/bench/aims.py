"""What a figure should be, and whether it is: a cell of a table."""

from __future__ import annotations


def at_most(figure: float, aim: float, unit: str = "") -> str:
    """The cell of a figure that should not be larger."""
    return f"≤ {aim:g}{unit}: {_met(figure <= aim)}"


def at_least(figure: float, aim: float, unit: str = "") -> str:
    """The cell of a figure that should not be smaller."""
    return f"≥ {aim:g}{unit}: {_met(figure >= aim)}"


def _met(met: bool) -> str:
    return "met" if met else "**missed**"
