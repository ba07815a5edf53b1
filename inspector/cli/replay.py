"""``puppet-inspector replay``: a recorded master answers a real agent."""

from __future__ import annotations

import contextlib
import json
import queue
import shutil
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector import regex
from inspector.capture import paths, replacing
from inspector.cli.arguments import add_agent, add_capture, add_rules, add_run, capture_to_write
from inspector.cli.output import columns, print_line
from inspector.cli.progress import shown
from inspector.errors import InspectorError
from inspector.host.puppetconf import split_address
from inspector.model import Exchange
from inspector.replay import agent_command, recording
from inspector.replay.enrolment import ATTRIBUTES
from inspector.replay.journal import Journal
from inspector.replay.master import ReplayMaster
from inspector.replay.notices import notices
from inspector.summaries import filters, listing, summary, wording
from inspector.summaries.follow import Follower
from inspector.text import address, clean

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from inspector.replay.master import Served
    from inspector.replay.recording import Recording

EXAMPLE = "puppet-inspector replay captures/FILE.sqlite --agent web1.example"

LOOPBACK = ("127.0.0.1", "::1", "localhost")
_PACE = regex.compile(r"(\d{1,3}(?:\.\d{1,3})?)x?")
_NAME = regex.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,250}")
_LISTED = 20
"""Requests that are listed at the end."""
_POLL = 0.2
"""Seconds between two looks at what happened."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_capture(parser)
    add_run(parser, "the run to replay (default: the latest with a catalog, of the only agent)")
    add_agent(parser, "replay the latest run of this agent")
    parser.add_argument("--listen", metavar="HOST[:PORT]", default="127.0.0.1",
                        help="where to listen (default: a free port of 127.0.0.1)")  # fmt: skip
    parser.add_argument("--name", metavar="NAME", help="the name by which the agent calls the master (default: "
                        "localhost, or this host's name if it does not listen on loopback)")  # fmt: skip
    parser.add_argument("--dir", type=Path, metavar="DIR", help="a new directory for the CA and the agent's "
                        "directories, which stays (default: a temporary one)")  # fmt: skip
    parser.add_argument("--as-recorded", action="store_true", help="answer after the recorded delays")
    parser.add_argument("--slow", metavar="FACTOR", help="answer after the recorded delays times this: 3x")
    parser.add_argument("-o", "--output", metavar="CAPTURE", help="the capture to record in (default: "
                        "captures/<UTC time>.sqlite)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each event "
                        "(docs/json/replay.schema.json)")  # fmt: skip
    add_rules(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Be the master of a recorded run for a real agent, until Ctrl-C. There is no other master behind it: what was not
    recorded is answered with 404, and others than the agent of the printed command are refused; both are listed at the
    end. The exit status is 1 if a request was not recorded, or was refused."""
    if arguments.run is not None and arguments.agent is not None:
        raise InspectorError("--run and --agent cannot be used together.", "Leave one of them out.")
    pace = _pace(arguments)
    listen = split_address(arguments.listen, 0)
    name = _name(arguments.name, listen[0])
    target = capture_to_write(arguments)
    replacing.must_be_new(target)
    with shown() as watch:
        capture = paths.one(arguments.capture)
        replayed = recording.read(capture, watch, arguments.run, arguments.agent)
    with (
        contextlib.closing(Journal(target, f"{capture.name} run {replayed.run}")) as journal,
        _folder(arguments.dir) as folder,
    ):
        master = _listening(replayed, folder, name, listen, pace)
        printer = (_Events if arguments.json else _Lines)(master, journal, name, folder, capture)
        with master, contextlib.suppress(KeyboardInterrupt):
            printer.begin()
            while True:
                _take(master, journal, printer)
        _take(master, journal, printer)
        printer.end()
    return int(bool(journal.missing or journal.refused))


def _take(master: ReplayMaster, journal: Journal, printer: _Lines) -> None:
    """Record and print what happened since the last time."""
    with contextlib.suppress(queue.Empty):
        served = master.served.get(timeout=_POLL)
        while True:
            journal.take(served)
            printer.show(served)
            served = master.served.get_nowait()


# -- arguments --------------------------------------------------------------------------------------------


def _pace(arguments: argparse.Namespace) -> float:
    """Return the factor for the recorded delays. Raises InspectorError."""
    if arguments.slow is None:
        return 1.0 if arguments.as_recorded else 0.0
    if arguments.as_recorded:
        raise InspectorError("--slow and --as-recorded cannot be used together.", "--slow 1x is as recorded.")
    found = _PACE.fullmatch(arguments.slow.strip())
    if found is None:
        raise InspectorError(f"{arguments.slow!r} is no factor.", "Use the form 3x or 0.5x.")
    return float(found[1])


def _name(given: str | None, host: str) -> str:
    name = given or ("localhost" if host in LOOPBACK else socket.gethostname())
    if not _NAME.fullmatch(name):
        raise InspectorError(f"{name!r} is no host name.", "Name this host with --name, as the agent will.")
    return name.lower()


@contextlib.contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    """Provide the directory for the CA and the agent; one that was named stays. Raises InspectorError."""
    if given is None:
        with tempfile.TemporaryDirectory(prefix="puppet-replay-", ignore_cleanup_errors=True) as name:
            yield Path(name)
        return
    try:
        given.mkdir(mode=0o700, parents=True)
    except FileExistsError as error:
        raise InspectorError(f"{given} exists already.", "Name a new directory: its CA is made anew.") from error
    yield given.absolute()


def _listening(replayed: Recording, folder: Path, name: str, listen: tuple[str, int], pace: float) -> ReplayMaster:
    """Return the master, which listens. Raises InspectorError; then nothing of its directory remains."""
    try:
        return ReplayMaster(replayed, folder, name, listen, pace)
    except (OSError, OverflowError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        reason = error.strerror if isinstance(error, OSError) else error
        raise InspectorError(
            f"Cannot listen on {address(*listen)}: {reason}.", "Choose another address with --listen HOST:PORT."
        ) from error


# -- output -----------------------------------------------------------------------------------------------


class _Lines:
    """Prints for people."""

    def __init__(self, master: ReplayMaster, journal: Journal, name: str, folder: Path, source: Path) -> None:
        self._master, self._journal, self._folder, self._source = master, journal, folder, source
        self._replayed = master.recording
        self._command = agent_command.Command(master.recording, folder, name, master.address[1])
        self._follower = Follower(journal.target, filters.parse(""))

    def begin(self) -> None:
        replayed = self._replayed
        print_line(f"run {replayed.run} of {replayed.certname} in {self._source}: {replayed.count} answers")
        for notice in notices(replayed):
            print_line(f"  note: {clean(notice)}")
        print_line(f"listening on {address(*self._master.address)}; recording to {self._journal.target}")
        print_line(f"the CA and the agent's own directories are in {self._folder}")
        print("run the agent, of version 7 or later, with:")
        print(f"  {self._command}")
        print_line(f"one elsewhere is known by a challenge password: copy {self._folder / ATTRIBUTES} to its confdir")
        print("Ctrl-C ends the replay.", flush=True)

    def show(self, served: Served) -> None:
        for line in self._follower.look():
            if line.step:
                print(*listing.lines(summary.brief_of(line.step), line.step.run, columns()), sep="\n")
            else:
                print_line(line.text)
        if served.missing:
            print_line(f"  NOT RECORDED: {clean(served.missing.reason)}")
        if served.refused:
            print_line(f"  REFUSED: {clean(served.refused)}")
        print(end="", flush=True)

    def end(self) -> None:
        journal, steps = self._journal, self._replayed.steps
        print()
        if not journal.requests:
            print_line("no request came")
            return
        if journal.refused:
            print_line(f"refused: {journal.refused.total()} requests of others than the agent")
            self._list([f"{reason} ({times} times)" for reason, times in journal.refused.most_common()])
        if self._master.unwritten:
            print_line(f"not written: {self._master.unwritten} more requests without a certificate")
        if journal.missing:
            counts = ", ".join(f"{endpoint} {count}" for endpoint, count in journal.endpoints.most_common())
            print_line(f"asked and not recorded: {journal.missing.total()} requests ({counts})")
            self._list([reason + (f" ({times} times)" if times > 1 else "")
                        for reason, times in journal.missing.most_common()])  # fmt: skip
        if unused := [steps[seq] for seq in sorted(self._master.unused)]:
            print_line(f"recorded and never asked: {len(unused)} of {len(steps)} answers")
            self._list(
                [f"record {step.record.seq}  {wording.line(summary.brief_of(step), step.run)}" for step in unused]
            )
        all_recorded = "" if journal.missing or journal.refused else ", all answered as recorded"
        print_line(f"{journal.requests} requests{all_recorded}: {journal.target}")

    def _list(self, lines: list[str]) -> None:
        for line in lines[:_LISTED]:
            print_line(f"  {clean(line)}")
        if len(lines) > _LISTED:
            print_line(f"  and {len(lines) - _LISTED} more")


class _Events(_Lines):
    """Prints for programs."""

    def begin(self) -> None:
        replayed = self._replayed
        self._print(
            event="ready", run=replayed.run, certname=replayed.certname, answers=replayed.count,
            notices=notices(replayed), host=self._master.address[0], port=self._master.address[1],
            server=self._command.name, directory=str(self._folder), capture=str(self._journal.target),
            command=self._command.words,
        )  # fmt: skip

    def show(self, served: Served) -> None:
        match served.record:
            case Exchange(request=request, response=response):
                self._print(
                    event="request", method=request.method, target=request.target,
                    status=response.status if response else None,
                    missing=served.missing.reason if served.missing else None, refused=served.refused or None,
                )  # fmt: skip
            case refused:
                self._print(event="refused", reason=refused.reason)

    def end(self) -> None:
        journal, unused = self._journal, sorted(self._master.unused)
        self._print(event="ended", requests=journal.requests, missing=sorted(journal.missing), unused=unused,
                    refused=sorted(journal.refused), unwritten=self._master.unwritten)  # fmt: skip

    def _print(self, **fields: Any) -> None:
        print(json.dumps(fields), flush=True)
