"""``puppet-inspector replay``: a recorded master answers a real agent."""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector import regex
from inspector.capture import replacing
from inspector.capture.store import Capture
from inspector.cli.arguments import capture_to_write
from inspector.cli.output import columns, print_line
from inspector.cli.progress import shown
from inspector.errors import InspectorError
from inspector.host.puppetconf import split_address
from inspector.model import Connection, Exchange
from inspector.replay import agent_command, recording
from inspector.replay.master import ReplayMaster
from inspector.replay.notices import notices
from inspector.summaries import filters, listing, summary, wording
from inspector.summaries.follow import Follower
from inspector.text import address, clean

if TYPE_CHECKING:
    import argparse

    from inspector.replay.master import Missing, Served
    from inspector.replay.recording import Recording

EXAMPLE = "puppet-inspector replay captures/FILE.sqlite --agent web1.example"

PACE = regex.compile(r"(\d{1,3}(?:\.\d{1,3})?)x?")
LOOPBACK = ("127.0.0.1", "::1", "localhost")
_NAME = regex.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,250}")
_LISTED = 20
"""Records that are listed at the end."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("capture", type=Path, help="the capture with the recorded run")
    parser.add_argument("--run", type=int, metavar="N", help="replay this run (default: the latest of the only agent)")
    parser.add_argument("--agent", metavar="CERTNAME", help="replay the latest run of this agent")
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


def execute(arguments: argparse.Namespace) -> int:
    """Be the master of a recorded run for a real agent, until Ctrl-C. There is no other master behind it: what was not
    recorded is answered with 404, and listed at the end. The exit status is 1 if there was such a request."""
    if arguments.run is not None and arguments.agent is not None:
        raise InspectorError("--run and --agent cannot be used together.", "Leave one of them out.")
    pace = _pace(arguments)
    listen = split_address(arguments.listen, 0)
    name = _name(arguments.name, listen[0])
    target = capture_to_write(arguments)
    replacing.must_be_new(target)
    with shown() as watch:
        replayed = recording.read(arguments.capture, watch, arguments.run, arguments.agent)
    with contextlib.ExitStack() as stack:
        folder = _folder(arguments.dir, stack)
        master = _listening(replayed, folder, name, listen, pace)
        agent = folder / "agent"
        agent.mkdir(mode=0o700)
        printer = _Events(target, name, agent) if arguments.json else _Lines(target, name, agent, arguments.capture)
        with master:
            printer.begin(master)
            served = _serve(master, target, printer)
    printer.end(master, served)
    return int(bool(served.missing))


class _Served:
    """What was served."""

    def __init__(self) -> None:
        self.requests = 0
        self.missing: Counter[str] = Counter()
        """Why requests were not answered as recorded."""
        self.kinds: Counter[str] = Counter()
        """The same by endpoint."""

    def add(self, missing: Missing) -> None:
        self.missing[missing.reason] += 1
        self.kinds[missing.question.endpoint if missing.question else "other"] += 1


def _serve(master: ReplayMaster, target: Path, printer: _Lines) -> _Served:
    """Record and print what is asked, until Ctrl-C."""
    done = _Served()
    capture: Capture | None = None
    try:
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                with contextlib.suppress(queue.Empty):
                    served = master.served.get(timeout=0.5)
                    capture = capture or Capture.create(target)
                    _record(capture, served)
                    done.requests += isinstance(served.record, Exchange)
                    if served.missing:
                        done.add(served.missing)
                    printer.show(served)
    finally:
        if capture:
            capture.close()
    return done


def _record(capture: Capture, served: Served) -> None:
    record = served.record
    capture.note(Connection(record.agent if isinstance(record, Exchange) else record.leg))
    capture.append(record)
    capture.flush()


# -- arguments --------------------------------------------------------------------------------------------


def _pace(arguments: argparse.Namespace) -> float:
    """Return the factor for the recorded delays. Raises InspectorError."""
    if arguments.slow is None:
        return 1.0 if arguments.as_recorded else 0.0
    if arguments.as_recorded:
        raise InspectorError("--slow and --as-recorded cannot be used together.", "--slow 1x is as recorded.")
    found = PACE.fullmatch(arguments.slow.strip())
    if found is None:
        raise InspectorError(f"{arguments.slow!r} is no factor.", "Use the form 3x or 0.5x.")
    return float(found[1])


def _name(given: str | None, host: str) -> str:
    name = given or ("localhost" if host in LOOPBACK else socket.gethostname())
    if not _NAME.fullmatch(name):
        raise InspectorError(f"{name!r} is no host name.", "Name the host with --name, as the agent will.")
    return name.lower()


def _folder(given: Path | None, stack: contextlib.ExitStack) -> Path:
    """Return the directory for the CA and the agent. Raises InspectorError."""
    if given is None:
        return Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="puppet-replay-", ignore_cleanup_errors=True))
        )
    try:
        given.mkdir(mode=0o700, parents=True)
    except FileExistsError as error:
        raise InspectorError(
            f"{given} exists already.", "Name a directory that does not: its CA is made anew."
        ) from error
    return given.absolute()


def _listening(
    replayed: Recording, folder: Path, name: str, listen: tuple[str, int], pace: float
) -> ReplayMaster:  # fmt: skip
    try:
        return ReplayMaster(replayed, folder, name, listen, pace)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InspectorError(
            f"Cannot listen on {address(*listen)}: {reason}.", "Choose another address with --listen HOST:PORT."
        ) from error


# -- output -----------------------------------------------------------------------------------------------


class _Lines:
    """Prints for people."""

    def __init__(self, target: Path, name: str, agent: Path, source: Path) -> None:
        self._target, self._server, self._agent, self._source = target, name, agent, source
        self._follower = Follower(target, filters.parse(""))

    def begin(self, master: ReplayMaster) -> None:
        replayed = master.recording
        print_line(f"run {replayed.run} of {replayed.certname} in {self._source}: {replayed.count} answers")
        for notice in notices(replayed):
            print_line(f"  note: {clean(notice)}")
        print_line(f"listening on {address(*master.address)}; recording to {self._target}")
        print_line(f"the CA and the agent's own directories are in {self._agent.parent}")
        print("run the agent, of version 7 or later, with:")
        print(f"  {agent_command.line(replayed, self._agent, self._server, master.address[1])}")
        print("Ctrl-C ends the replay.", flush=True)

    def show(self, served: Served) -> None:
        for line in self._follower.look():
            if line.step:
                print(*listing.lines(summary.of(line.step), line.step.run, columns()), sep="\n")
            else:
                print_line(line.text)
        if served.missing:
            print_line(f"  NOT RECORDED: {clean(served.missing.reason)}")
        print(end="", flush=True)

    def end(self, master: ReplayMaster, served: _Served) -> None:
        print()
        if served.missing:
            counts = ", ".join(f"{endpoint} {count}" for endpoint, count in served.kinds.most_common())
            print_line(f"asked and not recorded: {sum(served.kinds.values())} requests ({counts})")
            for reason, times in served.missing.most_common(_LISTED):
                print_line(f"  {clean(reason)}{f' ({times} times)' if times > 1 else ''}")
            if len(served.missing) > _LISTED:
                print_line(f"  and {len(served.missing) - _LISTED} more")
        unused = [master.recording.steps[seq] for seq in sorted(master.unused)]
        if unused and served.requests:
            print_line(f"recorded and never asked: {len(unused)} of {len(master.recording.steps)} answers")
            for step in unused[:_LISTED]:
                print_line(f"  record {step.record.seq} {wording.line(summary.of(step), step.run).strip()}")
            if len(unused) > _LISTED:
                print_line(f"  and {len(unused) - _LISTED} more")
        if not served.requests:
            print_line("no request came")
        elif not served.missing:
            print_line(f"{served.requests} requests, all answered as recorded: {self._target}")
        else:
            print_line(f"{served.requests} requests: {self._target}")


class _Events(_Lines):
    """Prints for programs."""

    def __init__(self, target: Path, name: str, agent: Path) -> None:
        super().__init__(target, name, agent, Path())

    def begin(self, master: ReplayMaster) -> None:
        replayed = master.recording
        self._print(
            event="ready", run=replayed.run, certname=replayed.certname, answers=replayed.count,
            notices=notices(replayed), host=master.address[0], port=master.address[1], server=self._server,
            directory=str(self._agent.parent), capture=str(self._target),
            command=agent_command.words(replayed, self._agent, self._server, master.address[1]),
        )  # fmt: skip

    def show(self, served: Served) -> None:
        match served.record:
            case Exchange(request=request, response=response):
                self._print(
                    event="request", method=request.method, target=request.target,
                    status=response.status if response else None,
                    missing=served.missing.reason if served.missing else None,
                )  # fmt: skip
            case refused:
                self._print(event="refused", reason=refused.reason)

    def end(self, master: ReplayMaster, served: _Served) -> None:
        self._print(
            event="ended", requests=served.requests, missing=sorted(served.missing), unused=sorted(master.unused)
        )  # fmt: skip

    def _print(self, **fields: Any) -> None:
        print(json.dumps(fields), flush=True)
