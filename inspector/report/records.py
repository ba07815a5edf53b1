"""Runs and records in columns, for the lists of a page and their filters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from inspector.clocks import finite
from inspector.summaries import wording
from inspector.summaries.wording import agent
from inspector.text import clean, utc_second

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from inspector.summaries.summary import Brief, RunBrief

MILLION = 1_000_000


@dataclass(slots=True)
class _Names:
    """Texts that occur often, and the place of each."""

    places: dict[str | None, int] = field(default_factory=dict)

    def place(self, text: str | None) -> int:
        known = text if text is None else clean(text)
        return self.places.setdefault(known, len(self.places))


@dataclass(slots=True)
class RecordColumns:
    """The records of a page, property by property: equal values stand beside each other, so they pack well."""

    _names: _Names = field(default_factory=_Names)
    _columns: dict[str, list[Any]] = field(default_factory=dict)
    _last: tuple[int, int] = (0, 0)

    def add(self, brief: Brief, run: RunBrief | None) -> None:
        """Add the next record."""
        name, time = self._names.place, round(finite(brief.time) * 1000)
        signs = " ".join(f"{sign.rule}:{sign.severity}" for sign in brief.signs)
        if brief.kind == "exchange":
            reason = brief.reason or brief.identity_missing or ""
        else:
            reason = wording.refusal(brief.reason, brief.alert, brief.alert_by) if brief.alert else brief.reason
        values: dict[str, Any] = {
            "seq": brief.seq - self._last[0],  # the distance from the record before
            "time": time - self._last[1],
            "us": round(finite(brief.duration) * MILLION),
            "kind": name(brief.kind),
            "phase": name(str(brief.phase)),
            "run": (run.number if run else 0),
            "certname": name(brief.certname),
            "address": name(brief.address),
            "endpoint": name(brief.endpoint),
            "env": name(brief.environment),
            "method": name(brief.method),
            "target": clean(brief.target),
            "status": brief.status or 0,
            "sent": brief.sent,
            "received": brief.received,
            "reason": name(reason),
            "identity": name(brief.identity),
            "signs": name(signs),
        }
        for column, value in values.items():
            self._columns.setdefault(column, []).append(value)
        self._last = brief.seq, time

    def __len__(self) -> int:
        return len(self._columns.get("seq", ()))

    def plain(self) -> dict[str, Any]:
        """Return the columns as a JSON-able structure."""
        return {"names": list(self._names.places), "columns": self._columns}


def runs_plain(runs: Iterable[RunBrief]) -> list[dict[str, Any]]:
    """Return runs for a page's list: its cells, and what its filter looks at."""
    return [
        {
            "number": run.number,
            "cells": _cells(run),
            "certname": clean(run.certname or ""),
            "address": clean(run.address or ""),
            "outcome": run.ending,
            "version": clean(run.agent_version or ""),
            "env": [clean(name or "") for name in (run.environment, run.environment_asked)],
            "started": run.started,
            "ended": run.ended,
            "ms": round(finite(run.duration) * 1000),
            "size": run.sent + run.received,
            "findings": [f"{finding.rule}:{finding.severity}" for finding in run.findings],
            "words": clean(wording.words(run).replace("\n", " ")),
        }
        for run in runs
    ]


COLUMNS = ("run", "began (UTC)", "agent", "version", "environment", "outcome", "time", "findings")
"""The columns of the list of runs."""


def _cells(run: RunBrief) -> list[str]:
    row = wording.run_row(run)
    began = moment_of(run)
    return [row[0], began, agent(run), row[3], row[4], run.ending, row[6], row[8]]


def moment_of(run: RunBrief) -> str:
    """When a run began, in UTC, to the second."""
    return utc_second(run.started)


def order(runs: Sequence[RunBrief]) -> list[RunBrief]:
    """Return runs, those that did not go well first, then the latest first."""

    def rank(run: RunBrief) -> tuple[bool, int, float]:
        worst = max((finding.severity.rank for finding in run.findings), default=0)
        return run.verdict is None, -worst if run.verdict else 0, -run.started

    return sorted(runs, key=rank)
