"""``puppet-inspector doctor``: diagnose a capture, a directory or a live master."""

from __future__ import annotations

import dataclasses
import functools
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from inspector import inputs
from inspector.capture import paths
from inspector.cli.arguments import add_full, add_rules
from inspector.cli.output import columns, print_block, print_failed, print_json, print_line, print_unanalyzed
from inspector.cli.progress import shown
from inspector.cli.reading import Unreadable, across_places, show_newest, whole_message
from inspector.doctor import findings, fix_script, migration_text, report
from inspector.doctor.cross_check import CONSEQUENCE
from inspector.errors import InspectorError
from inspector.host.auth_conf import reading
from inspector.model import Severity
from inspector.summaries import wording
from inspector.text import clean

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from inspector.doctor.findings import Diagnosis
    from inspector.doctor.report import CaptureReport
    from inspector.host.auth_conf.rules import AuthConf
    from inspector.summaries.whole_messages import Whole

EXAMPLE = "puppet-inspector doctor --live puppet.example:8140"
_NOT_COMPARED = ("auth_conf", "server_log", "ssldir", "certname", "live", "cert", "key", "full", "rules", "rules_dir")
"""The options that --compare does not know."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("captures", metavar="capture", type=Path, nargs="*", help="print the verdicts of its runs, "
                        "worst first; also several, and directories (default: the newest in captures/, if nothing else "
                        "is given)")  # fmt: skip
    parser.add_argument("--auth-conf", type=Path, metavar="FILE", help="with a capture: name the rule of the master's "
                         "auth.conf behind each request that was refused")  # fmt: skip
    parser.add_argument("--server-log", type=Path, metavar="FILE", action="append", default=[], help="with a capture: "
                        "quote the errors of the master's puppetserver.log at the moment of what failed, with what "
                        "they mean and their fix: `doctor FILE --server-log puppetserver.log`; also compressed, may be "
                        "repeated (default: the logs of a master on this host)")  # fmt: skip
    parser.add_argument("--ssldir", type=Path, metavar="DIR", help="check an agent's ssldir (read-only)")
    parser.add_argument("--cadir", type=Path, metavar="DIR", help="check a CA's directory (read-only)")
    parser.add_argument("--compare", metavar="NEW", help="with --cadir OLD, or with one capture: which nodes another "
                        "CA refuses, or accepts again, in the place of this one (`doctor --cadir OLD --compare NEW`): "
                        "its directory, HOST[:PORT] where it runs, or a capture")  # fmt: skip
    parser.add_argument("--certname", metavar="NAME", help="the agent to check, if the ssldir has files of several")
    parser.add_argument("--live", metavar="HOST[:PORT]", help="check a running master as this host's agents would")
    parser.add_argument("--cert", type=Path, metavar="PEM", help="with --live: present this certificate")
    parser.add_argument("--key", type=Path, metavar="PEM", help="with --live: the key of the certificate")
    parser.add_argument("--fix-script", type=Path, metavar="FILE", help="write the fixes of the worst problems as a "
                         "shell script, for example `doctor FILE --fix-script heal.sh`: say in it how the hosts are "
                         "reached, then run it")  # fmt: skip
    add_full(parser, "doctor captures/FILE.sqlite")
    parser.add_argument("--json", action="store_true", help="print JSON (docs/json/doctor.schema.json)")
    add_rules(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Diagnose a capture, an agent's or a CA's directory, or a running master, and print what is wrong and how to fix
    it. Several of them are also compared with each other. With --compare: what a CA answers differently that takes the
    place of another one, and which nodes notice. Nothing is changed: --fix-script writes one file, and `fix new-crl`
    signs a CA's CRL anew. The exit status is 1 if an agent's latest run, a diagnosis or a difference is an error
    (`check` uses --fail-on and only its findings)."""
    if arguments.compare:
        return _compare(arguments)
    captures = _captures(arguments)
    with across_places(captures, arguments.captures) as (chosen, named):
        return _diagnose(arguments, chosen, named)


def _diagnose(arguments: argparse.Namespace, captures: Sequence[Path], named: Mapping[Path, Path]) -> int:
    """Diagnose captures and what else is named; return the exit status."""
    conf = reading.read(arguments.auth_conf) if arguments.auth_conf else None
    unreadable = Unreadable(captures)
    show_newest(captures)
    with shown() as watch:
        found = (
            report.of_captures(captures, time.time(), watch, unreadable.report) if captures else report.CaptureReport()
        )
    print_failed(found.failed)
    if captures:
        report.by_server_log(found, arguments.server_log)
        if arguments.server_log and not found.logged:
            names = ", ".join(clean(str(log)) for log in arguments.server_log)
            print(f"puppet-inspector: no error in {names} at the moment of what failed", file=sys.stderr)
    diagnoses = _diagnoses(arguments, found, conf)
    problems = report.worst(found, diagnoses) if arguments.fix_script else []
    written: Path | None = None
    try:
        if problems:
            fix_script.write(problems, arguments.fix_script, time.time())
            written = arguments.fix_script
    finally:  # the verdict needs no script
        if arguments.json:
            print_json(report.plain(found, diagnoses, written, _whole if arguments.full else None), named)
        else:
            _print_text(found, diagnoses, full=arguments.full, others=_examines_more(arguments))
    _print_script(arguments, written=written is not None)
    failed = found.judgement.bad or any(diagnosis.severity is Severity.ERROR for diagnosis in diagnoses)
    return unreadable.status or int(failed)


def _compare(arguments: argparse.Namespace) -> int:
    """Print what NEW answers otherwise than OLD. Raises InspectorError."""
    used = [f"--{name.replace('_', '-')}" for name in _NOT_COMPARED if getattr(arguments, name)]
    if used:
        raise InspectorError(f"{used[0]} cannot be used with --compare.", "Compare first, then examine each alone.")
    captures: Sequence[Path] = arguments.captures
    if len(captures) > 1 or not (captures or arguments.cadir):
        raise InspectorError(
            "--compare needs one CA to compare with.", "For example: `doctor --cadir OLD --compare NEW`."
        )
    given = arguments.cadir or captures[0]
    if _one_place(given, inputs.expanded(arguments.compare)):
        raise InspectorError(
            f"OLD and NEW are the same: {given}.", "Name the directory of the CA that is to take over."
        )
    capture = captures[0] if captures and arguments.cadir else None
    with shown() as watch:
        found = report.of_migration(given, arguments.compare, capture, time.time(), watch)
    diagnoses = [one.diagnosis for one in found.differences]
    problems = report.worst(report.CaptureReport(), diagnoses) if arguments.fix_script else []
    if problems:
        fix_script.write(problems, arguments.fix_script, time.time())
    if arguments.json:
        print_json(migration_text.plain(found, arguments.fix_script if problems else None))
    else:
        for block in migration_text.blocks(found, columns()):
            print_block(block)
    _print_script(arguments, written=bool(problems))
    return int(any(diagnosis.severity is Severity.ERROR for diagnosis in diagnoses))


def _print_script(arguments: argparse.Namespace, *, written: bool) -> None:
    """Say what became of --fix-script."""
    if arguments.fix_script and not arguments.json:
        done = "wrote {}: say in it how the hosts are reached, then run it"
        print((done if written else "{} was not written: there is nothing to heal").format(arguments.fix_script))


def _one_place(old: Path, new: Path) -> bool:
    """Whether two paths are one directory or file."""
    try:
        return old.samefile(new)
    except OSError:  # one of them is not there, or is an address
        return False


def _examines_more(arguments: argparse.Namespace) -> bool:
    """Whether more than captures is examined."""
    return bool(arguments.ssldir or arguments.cadir or arguments.live)


def _captures(arguments: argparse.Namespace) -> list[Path]:
    """Return the captures to examine: the newest one if nothing is named. Raises InspectorError."""
    given: Sequence[Path] = arguments.captures
    try:
        captures = paths.chosen(given) if given or not _examines_more(arguments) else []
    except InspectorError as error:
        hint = error.hint if given else "Pass a capture, --ssldir DIR, --cadir DIR or --live HOST."
        raise InspectorError(error.message, hint) from error
    if arguments.server_log and not captures:
        raise InspectorError("--server-log needs a capture.", "It is about what failed in one.")
    if arguments.auth_conf and not captures:
        raise InspectorError("--auth-conf needs a capture.", "`puppet-inspector auth --request` decides without one.")
    return captures


def _diagnoses(arguments: argparse.Namespace, found: CaptureReport, conf: AuthConf | None) -> list[Diagnosis]:
    """Return what is wrong by an auth.conf, in directories and at a live master. Raises InspectorError."""
    diagnoses = report.by_auth_conf(found, conf) if conf else []
    if arguments.ssldir or arguments.cadir:
        diagnoses += report.of_directories(
            arguments.ssldir,
            arguments.cadir,
            arguments.certname,
            found.keys,
            master=functools.partial(report.master_time, arguments.live, arguments.ssldir),
        )
    ended = report.of_agents(found) if found.captures else []
    if not arguments.live:
        return findings.worst_first(_together(ended, diagnoses))
    details = {diagnosis.detail.partition(CONSEQUENCE)[0] for diagnosis in diagnoses}
    live = report.of_master(arguments.live, arguments.ssldir, arguments.cert, arguments.key)
    others = [*diagnoses, *(each for each in live[1:] if each.detail not in details)]
    together = _together(ended, [*live[:1], *others])
    # First whether there is a master at all, then whether the clocks differ: what only one of them shows is no cause.
    clocks = [each for each in (*others, *together) if each.rule == "T10"][:1]
    return [*live[:1], *clocks, *(each for each in together if each.rule != "T10" and each not in live[:1])]


def _together(ended: Sequence[Diagnosis], others: Sequence[Diagnosis]) -> list[Diagnosis]:
    """Return how agents ended with what is wrong in a directory or with a master: beside an error of these, which
    explains it, it is a fact."""
    if all(each.severity is not Severity.ERROR for each in others):
        return [*ended, *others]
    return [*others, *(dataclasses.replace(each, severity=Severity.NOTICE, steps=()) for each in ended)]


def _print_text(found: CaptureReport, diagnoses: list[Diagnosis], *, full: bool, others: bool) -> None:
    """Print verdicts and diagnoses; ``others``: not only captures were examined."""
    if lead := report.summary(found, diagnoses):
        print_line(lead)
    for line in wording.going_on(found.judgement, most=report.SCREEN):
        print_line(line)
    if found.captures:
        for block in report.verdict_blocks(found, _whole if full else None, columns()):
            print_block(block)
    for capture, seq, reason in found.unanalyzed:
        print_unanalyzed([(seq, reason)], found.where(capture))
    if diagnoses or others:
        for block in report.diagnosis_blocks(diagnoses, columns()):
            print_block(block)


def _whole(capture: Path) -> Whole:
    """Return what reads the whole messages of a capture."""
    return functools.partial(whole_message, capture)
