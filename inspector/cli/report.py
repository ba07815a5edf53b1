"""``puppet-inspector report``: write what a capture shows into one file to pass on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from inspector import inputs
from inspector.capture import paths
from inspector.cli.arguments import (
    add_agent,
    add_captures,
    add_filter,
    add_master_logs,
    add_opening,
    add_rules,
    add_run,
    logs_named,
    opened_by,
)
from inspector.cli.master_logs import times_of
from inspector.cli.progress import shown
from inspector.cli.reading import as_one
from inspector.errors import InspectorError
from inspector.formats import files
from inspector.formats.outgoing import summary
from inspector.report import page
from inspector.report.answers import answers_of
from inspector.report.content import gathered
from inspector.report.copies import Selection, chosen, leaving
from inspector.report.fields import fields
from inspector.report.markdown import lines
from inspector.text import as_json, size

if TYPE_CHECKING:
    import argparse

    from inspector.explain.master_log.measured import MasterTimes
    from inspector.progress import Watch
    from inspector.report.copies import LeavingCapture

EXAMPLE = "puppet-inspector report captures/FILE.sqlite --agent web1.example"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_captures(parser)
    add_run(parser)
    add_agent(parser)
    add_filter(parser)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="the file to create (default for HTML: the "
                        "capture's name with .html, in the working directory; otherwise: standard output)")  # fmt: skip
    parser.add_argument("--format", choices=("html", "markdown", "json"), default="html", help="default: html; "
                        "markdown is the answer for a ticket")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="same as --format json (docs/json/report.schema.json)")
    add_opening(parser)
    parser.add_argument("--shared", action="store_true", help="make it for strangers, as `share` does: names and "
                        "addresses are replaced, certificates issued again")  # fmt: skip
    parser.add_argument("--no-bodies", dest="bodies", action="store_false", help="leave out headers and bodies of the "
                        "records: the file is smaller")  # fmt: skip
    add_master_logs(parser)
    add_rules(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Write what a capture shows into one file that any browser opens without a network: the answer first (what failed,
    since when, where, why, what to do), then runs, waterfalls, bootstraps, certificates and records. Secrets are
    masked. Facts, parameters, logs and file contents are withheld unless `--with` opens them."""
    kind = "json" if arguments.json else arguments.format
    if logs_named(arguments) and kind != "html":
        raise InspectorError("Only the page in HTML shows what a master's logs say.", "Leave out --format and --json.")
    opened = opened_by(arguments.opened)
    selection = Selection(arguments.run, arguments.agent, arguments.filter)
    with shown() as watch, as_one(arguments.captures, watch, arguments.run) as capture:
        output = arguments.output or (paths.made_from(capture, ".html") if kind == "html" else None)
        if output is not None:
            if inputs.exists(output):
                chosen(capture, selection, watch)  # a run that is not there comes before a file that is
            files.must_be_new(output, files.OPTION)
        # The lines are about the requests as they were; their numbers are the same in the copy.
        times = times_of(arguments, capture, watch)
        with leaving(capture, selection, opened, watch, shared=arguments.shared) as copy:
            text = _text(copy, kind, watch, times, bodies=arguments.bodies)
            withheld = summary(copy.withheld)
    if output is None:
        print(text)
        return 0
    files.write([text], output)
    written = len(text.encode())
    advice = ": --no-bodies makes it smaller" if written > page.LARGE and arguments.bodies else ""
    print(f"{output} written, {size(written)}{advice}")
    if withheld and kind == "html":
        print(f"puppet-inspector: {withheld}", file=sys.stderr)
    return 0


def _text(copy: LeavingCapture, kind: str, watch: Watch, times: MasterTimes, *, bodies: bool) -> str:
    if kind == "html":
        return page.html(gathered(copy, watch, bodies=bodies, times=times))
    answers = answers_of(copy)
    return "\n".join(lines(answers, copy)) if kind == "markdown" else as_json(fields(answers, copy))
