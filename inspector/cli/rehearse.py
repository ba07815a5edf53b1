"""``puppet-inspector rehearse``: recorded agents against another master."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from inspector import regex
from inspector.capture import paths
from inspector.cli.arguments import (
    add_agent,
    add_captures,
    add_ignoring,
    add_opening,
    add_rules,
    capture_to_write,
    ignored_of,
    opened_by,
)
from inspector.cli.output import print_json, print_line, print_lines
from inspector.cli.progress import shown
from inspector.cli.reading import of_nodes
from inspector.compare.comparison import Choices
from inspector.errors import InspectorError
from inspector.formats import files
from inspector.formats.outgoing import summary
from inspector.host import puppetconf
from inspector.model import Phase
from inspector.progress import named
from inspector.rehearsal import fact_changes, junit, plain, roads, text
from inspector.rehearsal.bisection import Bisection
from inspector.rehearsal.client import Target
from inspector.rehearsal.fact_changes import FactChanges
from inspector.rehearsal.plan import Plan
from inspector.rehearsal.rehearsal import Rehearsal
from inspector.report.copies import closed_texts
from inspector.report.lines import html
from inspector.summaries import pairing, reading
from inspector.summaries.incidents import went_well
from inspector.text import clean

if TYPE_CHECKING:
    import argparse

    from inspector.progress import Watch
    from inspector.rehearsal.bisection import Bisected
    from inspector.rehearsal.result import Result
    from inspector.rehearsal.roads import Road
    from inspector.summaries.pairing import ChosenRun

EXAMPLE = "puppet-inspector rehearse captures/FILE.sqlite --master new.example"
MOST_JOBS = 64
_RESOURCE = regex.compile(r"[A-Za-z][A-Za-z0-9_:]*\[.+\]", regex.DOTALL)
_ENVIRONMENT = regex.compile(r"[A-Za-z0-9_]{1,255}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_captures(parser)
    parser.add_argument("--master", metavar="HOST[:PORT]", required=True, help="the master to ask; nothing is sent to "
                        "any other")  # fmt: skip
    add_agent(parser, "only these nodes")
    parser.add_argument("--environment", metavar="NAME", help="ask for catalogs of this environment, instead of the "
                        "recorded one")  # fmt: skip
    parser.add_argument("--road", metavar="ROAD", default="v4", help="v4: compile with one certificate and store "
                        "nothing (default); keys:DIR: as each agent, with its own key; mint:CADIR: the same, with "
                        "certificates that are made with the key of a throw-away CA")  # fmt: skip
    parser.add_argument("--stores-data-of-nodes", action="store_true", help="with keys: and mint:, let the master "
                        "store facts and catalogs of the nodes, if it does")  # fmt: skip
    parser.add_argument("--cert", type=Path, metavar="PEM", help="for v4: the certificate (default: this "
                        "host's)")  # fmt: skip
    parser.add_argument("--key", type=Path, metavar="PEM", help="for v4: its key, if that is in another file")
    parser.add_argument("--ca", type=Path, metavar="PEM", help="the CA bundle by which the master's certificate is "
                        "verified (default: the one beside the certificates)")  # fmt: skip
    parser.add_argument("--crl", type=Path, metavar="PEM", help="the CRLs of all CAs in its chain, by which is checked "
                        "that it is not revoked")  # fmt: skip
    parser.add_argument("--files", action="store_true", help="also compare the files that the catalogs name")
    parser.add_argument("--twice", action="store_true", help="compile each catalog twice, and leave out what differs "
                        "between the two")  # fmt: skip
    parser.add_argument("--old-master", metavar="HOST[:PORT]", help="with --twice: the recorded master, which compiles "
                        "each catalog twice, too")  # fmt: skip
    parser.add_argument("--without-legacy-facts", action="store_true", help="show what depends on the flat facts that "
                        "Puppet 8 does not send")  # fmt: skip
    parser.add_argument("--fact", action="append", default=[], metavar="NAME=VALUE", help="show what depends on this "
                        "value of a fact; may be repeated")  # fmt: skip
    parser.add_argument("--drop-fact", action="append", default=[], metavar="PATTERN", help="show what depends on "
                        "these facts; may be repeated")  # fmt: skip
    parser.add_argument("--bisect-facts", metavar="RESOURCE", help="find the smallest set of these facts that changes "
                        "a resource, like 'File[/etc/motd]', of one node")  # fmt: skip
    add_ignoring(parser)
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="catalogs that are compiled at the same time "
                        "(default: 2)")  # fmt: skip
    parser.add_argument("--timeout", type=float, default=600.0, metavar="SECONDS", help="how long to wait for a "
                        "catalog (default: 600)")  # fmt: skip
    parser.add_argument("-o", "--output", metavar="CAPTURE", help="the capture to record in (default: "
                        "captures/<UTC time>.sqlite)")  # fmt: skip
    parser.add_argument("--resume", action="store_true", help="continue the rehearsal in the capture that -o names")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="also write JUnit XML, with a case for each node")
    parser.add_argument("--full", action="store_true", help="print all differences with whole values")
    parser.add_argument("--format", choices=("text", "json", "html"), default="text", help="default: text; html is a "
                        "page to pass on, in which values are withheld")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="same as --format json (docs/json/rehearse.schema.json)")
    add_opening(parser)
    add_rules(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Ask another master for the catalogs of recorded agents, with the recorded facts, and compare them with what the
    agents really received. Nothing but reads and compiles is sent. The exit status is 1 if a catalog is different, 2 if
    one could not be compared, because it does not compile for example."""
    plan = _plan(arguments)
    kind = "json" if arguments.json else arguments.format
    output = _output(arguments, kind)
    with shown() as watch:
        nodes = _nodes(arguments.captures, arguments.agent, watch)
        if arguments.bisect_facts:
            with Bisection(plan, nodes, output) as bisection:
                _print_warnings(bisection)
                found = bisection.bisect(arguments.bisect_facts, watch)
    if arguments.bisect_facts:
        return _print_bisected(found, plan, output, kind, full=arguments.full)
    with shown() as watch, Rehearsal(plan, nodes, output, resume=arguments.resume) as rehearsal:
        _print_warnings(rehearsal)
        rehearsal.result.each = {} if arguments.junit else None
        try:
            result = rehearsal.run(watch)
        except KeyboardInterrupt:
            _print_interrupted(rehearsal, output)
            raise
    match kind:
        case "html":
            print(_page(result, plan, output, arguments))
        case "json":
            print_json(plain.plain_result(plan, result, output))
        case _:
            print_lines(text.lines(plan, result, full=arguments.full))
            if output.exists():
                print_line(f"recorded in {output}")
    if arguments.junit:
        with files.created(arguments.junit) as file:
            file.write(junit.document(result).encode())
    return result.groups.status


def _page(result: Result, plan: Plan, output: Path, arguments: argparse.Namespace) -> str:
    """The result as a page: its lines are made of what was recorded, and closed like an export of it."""
    opened = opened_by(arguments.opened)
    recorded = [*paths.chosen(arguments.captures), *([output] if output.exists() else [])]
    with shown() as watch, closed_texts(recorded, opened, watch) as (closed, withheld):
        named = str(plan.target)  # whom the user asked is no secret
        lines = [
            line._replace(text=named.join(map(closed, line.text.split(named))))
            for line in text.lines(plan, result, full=arguments.full)
        ]
    return html(lines, "Recorded agents, rehearsed", summary(withheld))


def _print_bisected(found: Bisected, plan: Plan, output: Path, kind: str, *, full: bool) -> int:
    if kind == "json":
        print_json(plain.plain_bisected(found, plan, output))
    else:
        print_lines(text.bisected(found, full=full))
        print_line(f"recorded in {output}")
    return int(bool(found.facts))


def _print_warnings(rehearsal: Rehearsal) -> None:
    for warning in rehearsal.result.warnings:
        print(f"puppet-inspector: {warning}. The rehearsal says little about them.", file=sys.stderr)


def _print_interrupted(rehearsal: Rehearsal, output: Path) -> None:
    if not rehearsal.recorded:
        print("puppet-inspector: Interrupted before the first answer: nothing is recorded.", file=sys.stderr)
        return
    print(
        f"puppet-inspector: Interrupted after {rehearsal.done:,} of {len(rehearsal.nodes):,} nodes.\n"
        f"  The same command with -o {clean(str(output))} --resume continues.",
        file=sys.stderr,
    )


def _plan(arguments: argparse.Namespace) -> Plan:
    """Raises InspectorError."""
    host, port = puppetconf.split_address(arguments.master)
    if arguments.environment is not None and not _ENVIRONMENT.fullmatch(arguments.environment):
        raise InspectorError(f"{arguments.environment!r} is no environment.", "Use letters, digits and underscores.")
    if not 1 <= arguments.jobs <= MOST_JOBS:
        raise InspectorError(f"--jobs {arguments.jobs} is not possible.", f"Use a number from 1 to {MOST_JOBS}.")
    if not 0 < arguments.timeout < 1e6:
        raise InspectorError(f"--timeout {arguments.timeout:g} is not possible.", "Use a number of seconds.")
    given = tuple(fact_changes.given(each) for each in arguments.fact)
    facts = FactChanges(arguments.without_legacy_facts, given, tuple(arguments.drop_fact))
    if arguments.bisect_facts and not facts:
        raise InspectorError(
            "--bisect-facts needs facts that are changed.",
            "Add --without-legacy-facts, --drop-fact PATTERN ('*' for each) or --fact NAME=VALUE.",
        )
    if arguments.bisect_facts and not _RESOURCE.fullmatch(arguments.bisect_facts):
        raise InspectorError(f"{arguments.bisect_facts!r} is no resource.", "Name one like 'File[/etc/motd]'.")
    choices = Choices(ignored_of(arguments), tags=arguments.tags)
    road = roads.road_of(arguments.road, arguments.cert, arguments.key, stores=arguments.stores_data_of_nodes)
    target = Target(host, port, _ca(arguments.ca, road), arguments.timeout, arguments.crl)
    return Plan(
        target, road, choices, arguments.environment, facts, arguments.twice, _old(arguments, target, facts),
        arguments.files, arguments.jobs,
    )  # fmt: skip


def _old(arguments: argparse.Namespace, target: Target, facts: FactChanges) -> Target | None:
    """The recorded master, if its noise is measured. Raises InspectorError."""
    if arguments.old_master is None:
        return None
    if not arguments.twice or facts:
        raise InspectorError(
            "--old-master is only of use with --twice, and without other facts.",
            "Add --twice: it says by which two compiles of the old master differ." if not facts else "Leave it out.",
        )
    host, port = puppetconf.split_address(arguments.old_master)
    return Target(host, port, target.ca, target.timeout, target.crl)


def _ca(given: Path | None, road: Road) -> Path:
    found = given or road.ca
    if found is None:
        raise InspectorError(
            "There is no CA bundle by which the master's certificate could be verified.",
            "Name the new master's: --ca PEM (on an agent of it: $(puppet config print localcacert)).",
        )
    return found


def _output(arguments: argparse.Namespace, kind: str) -> Path:
    if arguments.junit:
        files.must_be_new(arguments.junit)
        if not arguments.junit.parent.is_dir():  # found at the end, it would cost the rehearsal
            raise InspectorError(f"There is no directory {arguments.junit.parent}.", "Choose another path for --junit.")
    if arguments.opened and kind != "html":
        raise InspectorError("--with is for pages.", "Add --format html, or leave it out: nothing is withheld.")
    opened_by(arguments.opened)
    if arguments.bisect_facts and (arguments.resume or arguments.junit or kind == "html"):
        raise InspectorError(
            "--bisect-facts cannot be used with --resume, --junit or --format html.", "Leave them out."
        )
    if arguments.resume and not arguments.output:
        raise InspectorError("--resume needs the capture to continue.", "Name it: -o CAPTURE --resume.")
    return capture_to_write(arguments)


def _nodes(captures: list[Path], pattern: str | None, watch: Watch) -> list[ChosenRun]:
    """The run of each node that is rehearsed: the latest that went well, or else that asked for a catalog. Raises
    InspectorError."""
    found = [reading.read(path, watch=named(watch, clean(path.name))) for path in of_nodes(captures)]

    def order(run: ChosenRun) -> tuple[bool, bool, float]:
        asked = any(span.phase == Phase.CATALOG for span in run.brief.spans)
        return went_well(run.brief), asked, run.brief.started

    return [
        max((run for one in found for run in pairing.latest_first(one, [name])), key=order)
        for name in pairing.agents(found, pattern)
    ]
