"""``puppet-inspector readiness``: what captures already show of the next major version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.capture.store import Capture
from inspector.cli.arguments import add_captures, add_rules
from inspector.cli.output import columns, print_json, print_line
from inspector.cli.progress import shown
from inspector.cli.reading import Unreadable, of_nodes
from inspector.cli.rows import print_rows
from inspector.explain.readiness import survey_text
from inspector.explain.readiness.changes import TARGETS
from inspector.explain.readiness.survey import Survey
from inspector.progress import named, watched
from inspector.text import clean

if TYPE_CHECKING:
    import argparse

EXAMPLE = "puppet-inspector readiness captures/FILE.sqlite --for 8"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_captures(parser)
    parser.add_argument(
        "--for", dest="target", type=int, choices=TARGETS, default=TARGETS[-1],
        help="8: Puppet 8 and OpenVox 8; 9: OpenVox 9, with all that came before (default)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON (docs/json/readiness.schema.json)")
    add_rules(parser)


def execute(arguments: argparse.Namespace) -> int:
    """List what a newer version of Puppet or OpenVox removed or changed: the nodes that it concerns, the record that
    shows it and what to do; and what traffic does not show. The exit status is 1 if something concerns a node."""
    captures = of_nodes(arguments.captures)
    unreadable = Unreadable(captures)
    survey = Survey(arguments.target)
    with shown() as watch:
        for path in captures:
            one = named(watch, clean(path.name)) if len(captures) > 1 else watch
            with unreadable.reported(), Capture.open(path) as capture:
                survey.add(str(path), watched(capture.records(), one, capture.count()))
    if arguments.json:
        print_json(survey_text.plain(survey))
    else:
        _print(survey)
    return unreadable.status or int(bool(survey.affected))


def _print(survey: Survey) -> None:
    print_line(survey_text.head(survey))
    print()
    if survey.affected:
        print_rows(survey_text.COLUMNS, survey_text.rows(survey))
        print()
    for change in survey.affected:
        print(*survey_text.details(survey, change, columns()), "", sep="\n")
    print(*survey_text.rest(survey, columns()), sep="\n")
