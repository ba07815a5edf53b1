"""``puppet-inspector why``: why a resource changed, failed or stayed as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector import regex
from inspector.capture.store import Capture
from inspector.cli.arguments import add_agent, add_captures, add_rules, add_run
from inspector.cli.output import print_json, print_lines
from inspector.cli.progress import shown
from inspector.cli.reading import as_one, documents_of
from inspector.compare import why, why_text
from inspector.compare.why import Resources
from inspector.errors import InspectorError
from inspector.summaries import pairing, reading
from inspector.text import clean, excerpt

if TYPE_CHECKING:
    import argparse

    from inspector.explain.resource_outcomes import Applied
    from inspector.summaries.pairing import ChosenRun
    from inspector.summaries.reading import CaptureRuns

EXAMPLE = "puppet-inspector why captures/FILE.sqlite 'File[/etc/motd]'"
RUNS = 20
"""The latest runs that are looked through for the resource, unless one is named."""
REASON = 200
"""Characters of the reason why a run got no catalog."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_captures(parser)
    parser.add_argument("resource", help="the resource, for example 'File[/etc/motd]'")
    add_agent(parser)
    add_run(parser, "the run (default: the latest in which the resource changed or failed, or that has it)")
    parser.add_argument("--full", action="store_true", help="print whole values and texts")
    parser.add_argument("--json", action="store_true", help="print JSON (docs/json/why.schema.json)")
    add_rules(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Explain the outcome of a resource: what the report says of it, where it is declared, its containers,
    relationships and parameters, the requests for its file and the bytes that came, and what the run before had
    instead. Secrets are masked."""
    if not regex.fullmatch(r"[\w:]+\[.+\]", arguments.resource, regex.DOTALL):
        raise InspectorError(f"{arguments.resource!r} is no resource.", "Use the form 'File[/etc/motd]'.")
    with shown() as watch, as_one(arguments.captures, watch, arguments.run) as path:
        found = reading.read(path, watch=watch)
        runs = _runs(found, arguments.agent, arguments.run)
        with Capture.open(found.capture) as capture:
            resources, applied, chosen = _search(capture, runs, arguments.resource)
            earlier = pairing.previous(chosen)
            before = documents_of(capture, earlier) if earlier else None
            explained = why.explain(resources, applied, before)
    if arguments.json:
        print_json(why_text.fields(explained))
    else:
        print_lines(why_text.lines(explained, full=arguments.full))
    return 0


def _runs(found: CaptureRuns, pattern: str | None, number: int | None) -> list[ChosenRun]:
    """The runs that may have the resource, the latest first. Raises InspectorError."""
    names = pairing.agents([found], pattern)
    if number is not None:
        run = pairing.numbered(found, number)
        if pattern is not None and run.brief.name not in names:
            raise InspectorError(
                f"Run {number} is one of {clean(run.brief.name)}, not of {pattern!r}.", "Leave --agent out."
            )
        return [run]
    return pairing.latest_first(found, names)[:RUNS]


def _search(capture: Capture, runs: list[ChosenRun], ref: str) -> tuple[Resources, Applied, ChosenRun]:
    """The run to explain, and the resource in it. Raises InspectorError."""
    first: tuple[Resources, Applied, ChosenRun] | None = None
    near: list[str] = []
    without: set[str] = set()
    for run in runs:
        resources = Resources(documents_of(capture, run))
        without.add(_why_none(resources))
        applied = resources.find(ref)
        if applied is None:
            near = near or resources.near(ref)
        elif applied.status.differs:
            return resources, applied, run
        else:
            first = first or (resources, applied, run)
    if first is None:
        where = f"run {runs[0].brief.number}" if len(runs) == 1 else f"the latest {len(runs)} runs"
        listed = ", ".join(map(clean, near))
        if "" not in without:
            raise InspectorError(
                f"{clean(ref)} is not in {where} of {capture.path}: no catalog came ({', '.join(sorted(without))}).",
                "`puppet-inspector doctor` says why." if len(runs) == 1 else "--run names a run that got one.",
            )
        raise InspectorError(
            f"{clean(ref)} is not in {where} of {capture.path}.",
            f"Did you mean {listed}?" if near else "`puppet-inspector runs` lists the runs; --run names one.",
        )
    return first


def _why_none(resources: Resources) -> str:
    """Why a run has no catalog; empty if it has one."""
    documents = resources.documents
    if documents.catalog is not None:
        return ""
    return clean(excerpt(documents.catalog_failure, REASON)) if documents.catalog_failure else documents.without_catalog
