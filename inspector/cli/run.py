"""``puppet-inspector run -- puppet agent -t``: run this host's agent once through a proxy of its own.

Determines the command's servers and certname from puppet.conf and from its options, starts the proxy, and appends the
options that lead the agent to it (``run_road``). What the agent prints is passed on unchanged. The proxy's lines are
printed only if the agent fails.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import shlex
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from inspector import installation, regex, rules
from inspector.analysis import known_errors
from inspector.capture import agent_end as stored_end
from inspector.capture.agent_end import AgentEnd
from inspector.capture.store import Capture
from inspector.cli.arguments import add_rules, capture_to_write
from inspector.cli.output import print_line
from inspector.cli.relay import Relay, signals
from inspector.cli.run_road import FIRST_WITH_PROXY, AsHttpProxy, AsMaster
from inspector.cli.runs import print_runs
from inspector.doctor import agent_end, clock_check, findings, report
from inspector.errors import CaptureError, InspectorError
from inspector.explain import reference
from inspector.host import puppetconf
from inspector.host.puppetconf import split_address
from inspector.model import Severity
from inspector.privacy import patterns
from inspector.proxy.connect.plan import UNREAD
from inspector.proxy.console import coloured
from inspector.proxy.faults import ALARM, fault
from inspector.proxy.faults.actions import KINDS
from inspector.proxy.launcher import Proxy
from inspector.proxy.options import of_rules
from inspector.summaries import reading
from inspector.text import address, clean, excerpt, size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import FrameType

    from inspector.cli.run_road import Road
    from inspector.doctor.findings import Diagnosis
    from inspector.host.puppetconf import PuppetConf
    from inspector.summaries.reading import CaptureRuns

_FOREGROUND = regex.compile(
    r"-[a-zA-Z]*[tThV][a-zA-Z]*|--(test|no-daemonize|fingerprint|enable|disable|help|version|genconfig|configprint)(=.*)?"
)
_UNRECORDED = regex.compile(r"^-- (?:cannot write the capture|the end of the capture)")
"""Lines of the proxy without which an empty capture looks as if nothing had happened."""
_TROUBLE = regex.compile(r"^-- |  -- gap: |TLS refused: |no answer: |sent without the agent's identity: ")
"""Lines of the proxy that may explain why the agent failed."""
PATIENCE = (3.0, 10.0)
"""Seconds in which an agent may end by itself after Ctrl-C, and after SIGTERM."""
LOCAL = {
    "apply", "config", "describe", "doc", "epp", "help", "module", "parser", "resource", "script",
    ("ssl", "clean"), ("ssl", "show"), ("ssl", "verify"),
}  # fmt: skip
"""Puppet's commands that ask no server."""
WATCH = 0.5
"""Seconds between looks whether the proxy still runs."""

OF_MASTER, OF_IDENTITY = {"T06", "T07", "T18", "T19", "T20", "T21", "T22"}, {"T05", "T06", "T23"}
"""Rules about the master that is asked, and about what the proxy presents and trusts."""

DIAGNOSES = 5
"""Diagnoses of the agent's directory that are printed."""

LINES, LINE = 20, 1000
"""Errors and warnings of an agent that are stored, and characters of each."""
_LEVEL = regex.compile(r"(?:Error|Warning|err|warning): ")
_FULL = regex.compile(r"No space left on device|Disk quota exceeded|Could not save last run local report")

EXAMPLE = "puppet-inspector run -- puppet agent -t"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", metavar="CAPTURE", help="the capture to write (default: captures/<UTC time>.sqlite)"
    )
    parser.add_argument("--master", metavar="HOST[:PORT]", help="the master (default: from puppet.conf)")
    parser.add_argument("--ssldir", metavar="DIR", help="the agent's ssldir (default: from puppet.conf)")
    parser.add_argument(
        "--confdir", metavar="DIR", help="the directory of puppet.conf (default: the standard locations)"
    )
    parser.add_argument(
        "--listen", metavar="HOST[:PORT]", help="the address to listen on (default: 127.0.0.1, a port of root's own)"
    )
    parser.add_argument(
        "--also", action="append", default=[], metavar="HOST:PORT",
        help="record the connections to this server, too, besides those of puppet.conf; several are possible",
    )  # fmt: skip
    parser.add_argument(
        "--as-master", action="store_true",
        help="stand in for the agent's master, as for agents before 6.4, instead of being its HTTP proxy",
    )  # fmt: skip
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="FAULT",
        help="inject a fault on purpose, as in '503=10 phase:catalog nth:1'; several are possible; `list` lists them",
    )
    parser.add_argument(
        "--on", metavar="HOST", help="do it on this node over ssh, as root: nothing stays there, a copy comes here"
    )
    parser.add_argument(
        "--program",
        type=Path,
        metavar="FILE",
        help="with --on: the one-file build to bring (default: this one, or dist/'s)",
    )
    parser.add_argument(
        "--raw", action="store_true", help="with --on: bring the capture itself, with its secrets, not a shared copy"
    )
    parser.add_argument("--json", action="store_true", help="print the runs as JSON, after the agent's own output")
    add_rules(parser)
    parser.add_argument("agent", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="e.g. -- puppet agent -t")


def execute(arguments: argparse.Namespace) -> int:
    """Run this host's agent once through a proxy of its own, whatever the state of its certificate. The agent's output
    and exit status are passed on; then the run and its findings are printed."""
    if {"list", "help"} & set(arguments.fault):
        for line in fault_help():
            print_line(line)
        return 0
    command = arguments.agent[1:] if arguments.agent[:1] == ["--"] else arguments.agent
    if arguments.on is not None:
        return _on(arguments, command)
    if arguments.program or arguments.raw:
        raise InspectorError("--program and --raw are for a run on another node.", "Name it: --on HOST.")
    finished = run(
        command,
        output=capture_to_write(arguments),
        master=arguments.master,
        ssldir=arguments.ssldir,
        confdir=arguments.confdir,
        listen=arguments.listen,
        faults=arguments.fault,
        also=arguments.also,
        as_master=arguments.as_master,
    )
    print_runs([finished.capture], as_json=arguments.json, ends=False)
    if finished.bootstrapped and not arguments.json:
        print_line(f"the bootstrap, step by step: {installation.typed('bootstrap', str(finished.capture))}")
    return finished.status


def _on(arguments: argparse.Namespace, command: Sequence[str]) -> int:
    """Run it on another node. Raises InspectorError."""
    from inspector.cli import run_on

    _must_have_command(command)
    if arguments.rules or arguments.rules_dir:
        raise InspectorError(
            "--rules and --rules-dir name files of this host.", "Apply them to the copy: `puppet-inspector check`."
        )
    given = {name: getattr(arguments, name) for name in ("master", "ssldir", "confdir", "listen")}
    words = [f"--{name}={value}" for name, value in given.items() if value is not None]
    words += [f"--{name}={value}" for name in ("also", "fault") for value in getattr(arguments, name)]
    words += ["--as-master"] * arguments.as_master + ["--json"] * arguments.json
    return run_on.run(
        run_on.Wanted(
            arguments.on, arguments.program, [*words, "--", *command], capture_to_write(arguments), arguments.raw,
            arguments.json,
        )
    )  # fmt: skip


class Finished(NamedTuple):
    """A command that was run."""

    status: int
    """Its exit status; 128 plus the number of the signal that ended it or this process."""
    capture: Path
    bootstrapped: bool
    """Whether it asked for a certificate, or got one."""


def run(
    command: Sequence[str],
    *,
    output: Path,
    master: str | None = None,
    ssldir: str | None = None,
    confdir: str | None = None,
    listen: str | None = None,
    faults: Sequence[str] = (),
    also: Sequence[str] = (),
    as_master: bool = False,
) -> Finished:
    """Run the agent's command through a proxy of its own. The ``faults`` are injected into this run; ``also`` are
    further servers to record; ``as_master``: the proxy stands in for the master. Raises InspectorError."""
    _must_have_command(command)
    if shutil.which(command[0]) is None:
        raise InspectorError(f"Command {command[0]} not found.", "Put the agent's command after `--`.")
    conf = puppetconf.read(ssldir, confdir, puppetconf.settings_of(command))
    _must_stay(command, conf)
    version = _version(command)
    old = "as asked" if as_master else _why_as_master(command, version)
    if old and also:
        raise InspectorError("--also is for an agent that uses the proxy as its HTTP proxy.", "Omit it.")
    given = split_address(master) if master else None
    with contextlib.ExitStack() as stack:
        road: Road
        if old:
            road = AsMaster.build(conf, version, given, listen, stack)
        else:
            road = AsHttpProxy.build(conf, version, given, listen, also, stack)
        of_this_run = tuple(_of_this_run(line, road.listen) for line in faults)
        for note in (*((f"this run takes the proxy for its master: {old}.",) if old else ()), *road.notes):
            _print_note(note)
        options = road.proxy_options | {
            "puppet_capture": output, "puppet_fault": of_this_run, **of_rules(rules.in_use().arguments),
        }  # fmt: skip
        proxy = stack.enter_context(Proxy(options, own=True, plan=road.plan, on_line=_announce))
        local = _asks_nobody(command)
        if local:
            _print_note("this command asks no server: it is run as it is, and there is nothing to record.")
        full = [*command, *(() if local else road.options(proxy.address[1]))]
        began = time.time()
        status, printed = _run(full, road.environment, proxy)
        proxy_status = proxy.process.poll()
    clock = functools.cache(functools.partial(clock_check.master_time, *road.master))
    diagnoses = [] if status in agent_end.WELL else _of_directory(conf, clock)
    end = _end_of(AgentEnd(began, time.time(), status), printed, diagnoses, clock)
    # The agent has ended, and with it what was under way.
    with contextlib.suppress(CaptureError, sqlite3.Error), Capture.create(output) as capture:
        capture.settle()
        stored_end.write(capture, end)
    found = reading.read(output)
    _report(proxy, status, proxy_status, found)
    causes = {run.cause for run in found.briefs}
    for note in _origins(conf, command, master, road.master, causes, as_master=road.plan is None):
        _print_note(note)
    _explain(conf, end, found, diagnoses)
    for note in _disk(conf, printed):
        _print_note(note)
    return Finished(status, output, any(key.kind != "client" for key in found.keys))


def fault_help() -> Iterator[str]:
    """Yield the lines that `--fault list` prints."""
    for name, kind in KINDS.items():
        value = kind.value.strip("[]")
        given = f"[={value}]" if kind.value.startswith("[") else f"={value}" if value else ""
        yield f"{name}{given}"
        yield f"    {kind.meaning}"
        yield f"    shows {kind.shows}"
        yield f"    {kind.example}"
    yield ""
    yield "Which requests: agent:, phase:, endpoint:, method:, path:, env:, version: as in --filter."
    yield "How often:"
    for name, meaning in fault.OWN.items():
        yield f"    {name}: {meaning}"
    yield "In a run without agent: a fault is for this host's agent (docs/faults.md)."


def _of_this_run(line: str, where: str) -> str:
    """Return a fault that only what comes from this host can meet. Raises InspectorError."""
    if fault.names_agent(line):
        fault.parse(line)
        return line
    # Whoever connects to an address of its own host comes from there: also before it has a certificate.
    host, _ = split_address(where, 0)
    with contextlib.closing(
        socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
    ) as own:
        own.connect((host, 9))
        line = f"{line} agent:{own.getsockname()[0]}"
    fault.parse(line)
    return line


def _announce(line: str) -> None:
    """Print what the proxy says of an injected fault, on a terminal in red, of a connection that it cannot read, or of
    a capture that it cannot write."""
    if line.startswith(ALARM):
        text = f"puppet-inspector: {line.removeprefix('-- ')}"
        print(coloured(text) if sys.stderr.isatty() else text, file=sys.stderr, flush=True)
    elif _is_urgent(line):
        _print_note(line.removeprefix("-- "))


def _is_urgent(line: str) -> bool:
    """Whether a line of the proxy is printed at once, whatever becomes of the agent."""
    return line.startswith(UNREAD) or _UNRECORDED.search(line) is not None


# -- what the command would do without the proxy -----------------------------------------------------------------


def _puppet(command: Sequence[str]) -> int | None:
    """Return the index of Puppet's own program in the command (after sudo, timeout, ...)."""
    return next((i for i, word in enumerate(command) if Path(word).name in ("puppet", "puppetd")), None)


def _words(command: Sequence[str]) -> list[str]:
    """Return the words after Puppet's own program."""
    index = _puppet(command)
    return list(command[index + 1 :]) if index is not None else []


def _asks_nobody(command: Sequence[str]) -> bool:
    """Whether the command is one of Puppet's that only reads or changes files of this host."""
    words = _words(command)
    return bool(words) and (words[0] in LOCAL or tuple(words[:2]) in LOCAL)


def _must_have_command(command: Sequence[str]) -> None:
    if not command:
        raise InspectorError("There is no agent command.", "For example: puppet-inspector run -- puppet agent -t")


def _must_stay(command: Sequence[str], conf: PuppetConf) -> None:
    """Raise InspectorError for an agent that goes to the background, and would outlive the proxy."""
    index = _puppet(command)
    if index is None:
        return
    arguments = list(command[index + 1 :])
    is_agent = Path(command[index]).name == "puppetd" or arguments[:1] == ["agent"]
    if is_agent and conf.daemonize and not any(_FOREGROUND.fullmatch(word) for word in arguments):
        raise InspectorError(
            "This command runs the agent in the background, where it would outlive the proxy.",
            "Add --test (or --no-daemonize): puppet-inspector run -- puppet agent --test",
        )


def _version(command: Sequence[str]) -> tuple[int, int] | None:
    """Return the agent's version; None if not known.

    Calls only what certainly is Puppet: a script might run the agent.
    """
    index = _puppet(command)
    program = list(command[: index + 1]) if index is not None else ["puppet"]
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        query = [*program, "--version"]
        answer = subprocess.run(query, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        if version := regex.search(r"^(\d+)\.(\d+)", answer.stdout, regex.MULTILINE):
            return int(version[1]), int(version[2])
    return None


def _why_as_master(command: Sequence[str], version: tuple[int, int] | None) -> str:
    """Return why the agent cannot use the proxy as its HTTP proxy; empty if it can."""
    if version is not None and version < FIRST_WITH_PROXY:
        own, first = (".".join(map(str, each)) for each in (version, FIRST_WITH_PROXY))
        return f"{own} is older than {first}, the first that can use it as an HTTP proxy"
    words = _words(command)
    if words[:1] == ["device"] and not any(word.partition("=")[0] in ("--target", "-t") for word in words):
        return "puppet device without --target changes its certname and its directories while it runs"
    return ""


# -- running the agent -------------------------------------------------------------------------------------------


class _Stopped(BaseException):
    """A signal to this process; its number is the argument."""


def _stop(number: int, _frame: FrameType | None) -> None:
    raise _Stopped(number)


def _run(command: Sequence[str], environment: Mapping[str, str], proxy: Proxy) -> tuple[int, str]:
    """Run the agent; return its exit status, and what it printed first and last. It ends with the proxy, and with this
    process."""
    sys.stdout.flush()
    process = None
    module = "inspector.proxy.launched"
    tied = installation.command(module, str(os.getpid()), f"{module}:execute", *command)
    with signals(_stop), Relay() as relay:
        try:
            process = subprocess.Popen(tied, env=environment, stdout=relay.stdout, stderr=relay.stderr)
            relay.start()
            while (status := _ended(process)) is None:
                if proxy.process.poll() is not None:
                    _end(process, has_signal=False)
        except _Stopped as stopped:
            if process is not None:
                _end(process, has_signal=stopped.args[0] == signal.SIGINT)
            return 128 + int(stopped.args[0]), relay.text
        except OSError as error:
            raise InspectorError(
                f"{command[0]} cannot be run: {error.strerror}.", "Check that it is a program."
            ) from error
    return 128 - status if status < 0 else status, relay.text


def _ended(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(WATCH)
    except subprocess.TimeoutExpired:
        return None


def _end(process: subprocess.Popen[bytes], *, has_signal: bool) -> None:
    """End the agent; ``has_signal``: the terminal has sent the Ctrl-C to the agent too.

    Another signal to this process skips the rest of a wait.
    """
    steps = [(None, PATIENCE[0])] if has_signal else []
    for number, patience in [*steps, (signal.SIGTERM, PATIENCE[1]), (signal.SIGKILL, None)]:
        try:
            if number:
                process.send_signal(number)
            process.wait(patience)
        except (subprocess.TimeoutExpired, _Stopped):
            continue
        return


def _report(proxy: Proxy, status: int, proxy_status: int | None, found: CaptureRuns) -> None:
    """Print what the proxy said of an agent's failure, each reason once."""
    notes: dict[str, str] = {}
    known = any(run.cause for run in found.briefs)
    lines = (line for line in proxy.lines if not _is_urgent(line))
    for line in lines if status not in (0, 2) else ():
        # Why there was no answer is in the verdict, if there is one.
        if (trouble := _TROUBLE.search(line)) and not (known and "no answer: " in trouble[0]):
            notes.setdefault(line[trouble.start() :], line)
    printed = list(notes.values())[-20:]
    if proxy_status is not None:
        printed = [f"the proxy exited before the agent (status {proxy_status}); its last lines:", *proxy.lines[-5:]]
    for line in printed:
        _print_note(line)


def _origins(
    conf: PuppetConf,
    command: Sequence[str],
    given: str | None,
    master: tuple[str, int],
    causes: set[str | None],
    *,
    as_master: bool,
) -> Iterator[str]:
    """Yield where those settings of the proxy come from that a cause is about: its user has set none of them."""
    options, file = puppetconf.settings_of(command), conf.path or "puppet.conf"
    if causes & OF_MASTER:
        names = ("server_list",) if conf.server_list else ("server", "serverport")
        chosen = [f"--{name} of the command" for name in names if name in options]
        origin = "--master" if given else " and ".join(chosen) or f"{' and '.join(names)} in {file}"
        servers = " or ".join(address(*each) for each in (conf.server_list if not given else ()) or (master,))
        yield f"in this run the master is {servers}: {origin}"
    if causes & OF_IDENTITY and as_master:
        yield f"in this run puppet_identity, puppet_ca and puppet_crl are the ssldir {conf.ssldir}: ssldir in {file}"


def _of_directory(conf: PuppetConf, clock: Callable[[], float | None]) -> list[Diagnosis]:
    """Return what is wrong in the agent's directory; ``clock`` returns the time by the master's clock."""
    try:
        return report.of_directories(conf.ssldir, None, conf.certname, master=clock)
    except InspectorError as error:
        return [findings.warning("the directory cannot be examined", str(error))]


def _end_of(end: AgentEnd, printed: str, diagnoses: Sequence[Diagnosis], clock: Callable[[], float | None]) -> AgentEnd:
    """Return how an agent ended with what it printed: first the message that is known, then its errors and warnings.
    If the message may come from a wrong clock, the master's is asked for."""
    known = known_errors.find(printed)
    lines = [known_errors.plain(line) for line in printed.splitlines()]
    first = known_errors.plain(known.text).splitlines()[:1] if known else []
    chosen = [*dict.fromkeys([*first, *(line for line in lines if _LEVEL.match(line))])]
    bounded = chosen[: LINES // 2] + chosen[LINES // 2 :][-LINES // 2 :]
    there = None
    if known and agent_end.is_of_time(known.known) and end.status not in agent_end.WELL:
        there = clock()
    # What is wrong by both clocks is no matter of the clocks.
    wrong = any(each.rule in findings.OF_TIME and each.severity is Severity.ERROR for each in diagnoses)
    if there is not None and wrong and findings.clocks_differ(end.ended, there):
        there = None
    return msgspec.structs.replace(
        end,
        lines=tuple(excerpt(clean(patterns.text(line)), LINE) for line in bounded),
        master_ahead=None if there is None else there - end.ended,
    )


def _explain(conf: PuppetConf, end: AgentEnd, found: CaptureRuns, diagnoses: Sequence[Diagnosis]) -> None:
    """Print what explains an agent that stopped where the proxy sees nothing: whether its clock is wrong, the meaning
    of its own message, and what is wrong in its directory."""
    runs = agent_end.of_agent(end, found.briefs)
    is_empty = not runs and not found.unanalyzed
    # With another name than its own, it did not read its settings.
    renamed = any(run.certname not in (None, conf.certname) for run in runs)
    if end.status in agent_end.WELL or (agent_end.explained(runs) and not renamed):
        return
    how = agent_end.diagnosis(end, before_request=is_empty)
    by_clock = [each for each in (*diagnoses, how) if each.rule == "T10" and each.severity is Severity.ERROR][:1]
    for diagnosis in by_clock:
        _print_diagnosis(diagnosis)
    explanation = reference.explain_output("\n".join(end.lines))
    if explanation:
        _print_note(f"the agent printed: {explanation['message']}")
        # Only the clock is mended, and nothing deleted.
        parts = (("meaning", "meaning"), ("check", "check"), ("fix", "remedy"))[: 1 if by_clock else None]
        for label, key in parts:
            print(f"  {label + ':':<9}{explanation[key]}", file=sys.stderr)
    elif is_empty:
        _print_note(
            "the proxy received nothing: see the agent's output; if the command is a script, it must pass the "
            "options that are appended to it on to the agent."
        )
    others = [each for each in diagnoses if each.severity is not Severity.NOTICE and each.rule != "T10"]
    for diagnosis in others[:DIAGNOSES]:
        _print_diagnosis(diagnosis, f"in {conf.ssldir}: ")


def _print_diagnosis(diagnosis: Diagnosis, where: str = "") -> None:
    _print_note(f"{where}{diagnosis.title}: {diagnosis.detail}")
    if diagnosis.fix:
        _print_note(f"  fix: {diagnosis.fix}")


def _disk(conf: PuppetConf, printed: str) -> Iterator[str]:
    """Yield how full the disk is on which the agent stores its state, if it could not write there."""
    # What the master quotes is about its own disk.
    own = (line for line in printed.splitlines() if "on SERVER" not in line)
    full = next((found for line in own if (found := _FULL.search(line))), None)
    if full is None:
        return
    with contextlib.suppress(OSError):
        place = next(each for each in (conf.statedir, *conf.statedir.parents) if each.is_dir())
        disk = shutil.disk_usage(place)
        yield (
            f"the agent could not write ({full[0]}): of the disk with {place} {size(disk.free)} of {size(disk.total)} "
            "are free"
        )
        command = f"df -h {shlex.quote(str(place))}; df -i {shlex.quote(str(place))}"
        yield f"  fix: see what is full, space or inodes, make room, and run the agent again: `{command}`"


def _print_note(text: str) -> None:
    print(f"puppet-inspector: {text}", file=sys.stderr, flush=True)
