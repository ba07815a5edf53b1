"""``puppet-inspector doctor``: what is wrong and what to do: in a capture, a directory, at a live master."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.output import print_json
from inspector.doctor import report
from inspector.errors import InspectorError
from inspector.formats import json_output
from inspector.model import Severity

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("capture", type=Path, nargs="?", help="the verdicts of its runs, worst first")
    parser.add_argument("--ssldir", type=Path, metavar="DIR", help="look into an agent's ssldir (nothing is changed)")
    parser.add_argument("--cadir", type=Path, metavar="DIR", help="look into a CA's directory (nothing is changed)")
    parser.add_argument("--certname", metavar="NAME", help="whose keys, where an ssldir holds several")
    parser.add_argument("--live", metavar="HOST[:PORT]", help="ask a running master as this host's agents would")
    parser.add_argument("--cert", type=Path, metavar="PEM", help="with --live: show this certificate")
    parser.add_argument("--key", type=Path, metavar="PEM", help="with --live: its key")
    parser.add_argument("--json", action="store_true", help="as JSON (docs/json/doctor.schema.json)")


def execute(arguments: argparse.Namespace) -> int:
    """What is wrong, why, and what to do now: the verdicts of a capture's runs, the state of an agent's or a CA's
    directory, what a running master would be for this host's agents; or several of them joined. Reads only.
    The exit status is 1 when a run's outcome or anything found is an error (`check` goes by --fail-on, and by its
    findings only)."""

    capture, directories = arguments.capture, arguments.ssldir or arguments.cadir
    if not (capture or directories or arguments.live):
        raise InspectorError(
            "There is nothing to look at.", "Name a capture, --ssldir DIR, --cadir DIR or --live HOST."
        )
    agents, runs, keys = report.of_capture(capture) if capture else ([], 0, [])
    diagnoses = []
    if directories:
        diagnoses += report.of_directories(arguments.ssldir, arguments.cadir, arguments.certname, keys)
    if arguments.live:
        diagnoses += report.of_master(arguments.live, arguments.ssldir, arguments.cert, arguments.key)
    if arguments.json:
        verdicts = [{"run": agent.run.number, "certname": agent.run.certname, "runs": agent.times,
                     **(json_output.verdict(agent.run) or {})} for agent in agents]  # fmt: skip
        print_json({"verdicts": verdicts, "diagnoses": report.plain(diagnoses)})
    else:
        for line in report.verdict_lines(agents, runs) if capture else ():
            print(line)
        for line in report.diagnosis_lines(diagnoses) if directories or arguments.live else ():
            print(line)
    failed = any(agent.rank == Severity.ERROR.rank for agent in agents)
    return int(failed or any(diagnosis.severity is Severity.ERROR for diagnosis in diagnoses))
