"""Runs and records in brief, as commands and views get them."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from inspector.formats import json_output
from inspector.summaries import conclusions
from inspector.summaries.index import Index
from tests.support.json_output import builtins

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inspector.runs.run import Run
    from inspector.summaries.indexed import IndexedCapture
    from inspector.summaries.summary import Brief, Conclusion


def documents(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """What ``runs --json`` prints of runs."""
    return [builtins(json_output.run(conclusions.of_run(run), run.seqs)) for run in runs]


def verdict_of(run: Run) -> Conclusion | None:
    """A run's verdict in words."""
    return conclusions.of_run(run).verdict


def why(run: Run) -> str | None:
    """Why a run failed, in words."""
    return conclusions.of_run(run).why


def all_briefs(found: Index | IndexedCapture) -> list[Brief]:
    """All records of an index in brief."""
    pages = found.pages(last=found.state().last) if isinstance(found, Index) else found.pages()
    return list(chain.from_iterable(pages))
