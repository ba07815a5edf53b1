"""What a measurement with other people's material gives: a case with a verdict, and why."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class Verdict(StrEnum):
    AGREED = "agreed"
    DISAGREED = "disagreed"
    UNDECIDED = "undecided"
    """The material does not say what is right, or it is about something that we do not read."""


class Case(NamedTuple):
    """One file, or one expectation of its authors."""

    name: str
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    """Why it did not agree, each reason once."""

    @property
    def why(self) -> str:
        """The reasons in a line."""
        return "; ".join(self.reasons)


def judged(name: str, troubles: Iterable[str]) -> Case:
    """A case that agreed if there is no trouble."""
    reasons = tuple(dict.fromkeys(troubles))
    return Case(name, Verdict.DISAGREED if reasons else Verdict.AGREED, reasons)


def undecided(name: str, reason: str) -> Case:
    """A case that cannot be decided."""
    return Case(name, Verdict.UNDECIDED, (reason,))
