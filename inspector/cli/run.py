"""``puppet-inspector run -- puppet agent -t``: run this host's agent once through a proxy of its own.

Determines the command's master and certname from puppet.conf and from its options, starts the proxy with this host's
certificate, and appends the options that send the agent to it. What the agent prints is passed on unchanged. The
proxy's lines are printed only if the agent fails.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from inspector import inputs, regex, rules
from inspector.capture.store import Capture
from inspector.cli.arguments import add_rules, capture_to_write
from inspector.cli.output import print_line
from inspector.cli.relay import Relay
from inspector.cli.runs import print_runs
from inspector.doctor import report
from inspector.errors import CaptureError, InspectorError
from inspector.explain import reference
from inspector.host import puppetconf
from inspector.host.puppetconf import split_address
from inspector.model import Severity
from inspector.proxy.console import coloured
from inspector.proxy.faults import ALARM, fault
from inspector.proxy.faults.actions import KINDS
from inspector.proxy.launcher import Proxy
from inspector.proxy.options import of_rules
from inspector.summaries import reading
from inspector.text import address

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import FrameType

    from inspector.host.puppetconf import PuppetConf
    from inspector.summaries.reading import CaptureRuns

_FOREGROUND = regex.compile(
    r"-[a-zA-Z]*[tThV][a-zA-Z]*|--(test|no-daemonize|fingerprint|enable|disable|help|version|genconfig|configprint)(=.*)?"
)
_TROUBLE = regex.compile(r"^-- |  -- gap: |TLS refused: |no answer: |sent without the agent's identity: ")
"""Lines of the proxy that may explain why the agent failed."""
PATIENCE = (3.0, 10.0)
"""Seconds in which an agent may end by itself after Ctrl-C, and after SIGTERM."""
REACH = 5.0
"""Seconds in which a master of server_list must accept a connection before the next one is tried."""

OF_MASTER, OF_IDENTITY = {"T06", "T07", "T18", "T19", "T20", "T21", "T22"}, {"T05", "T06", "T23"}
"""Rules about the master that is asked, and about what the proxy presents and trusts."""

DIAGNOSES = 5
"""Diagnoses of the agent's directory that are printed."""

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
        "--listen", metavar="HOST[:PORT]", help="the address to listen on (default: the address of the certname)"
    )
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="FAULT",
        help="inject a fault on purpose, as in '503=10 phase:catalog nth:1'; several are possible; `help` lists them",
    )
    parser.add_argument("--json", action="store_true", help="print the runs as JSON, after the agent's own output")
    add_rules(parser)
    parser.add_argument("agent", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="e.g. -- puppet agent -t")


def execute(arguments: argparse.Namespace) -> int:
    """Start the proxy with this host's own certificate and run the agent through it. The agent's output and exit
    status are passed on; then the run and its findings are printed."""
    if "help" in arguments.fault:
        for line in fault_help():
            print_line(line)
        return 0
    command = arguments.agent[1:] if arguments.agent[:1] == ["--"] else arguments.agent
    status, capture = run(
        command,
        output=capture_to_write(arguments),
        master=arguments.master,
        ssldir=arguments.ssldir,
        confdir=arguments.confdir,
        listen=arguments.listen,
        faults=arguments.fault,
    )
    print_runs([capture], as_json=arguments.json)
    return status


def run(
    command: Sequence[str],
    *,
    output: Path,
    master: str | None = None,
    ssldir: str | None = None,
    confdir: str | None = None,
    listen: str | None = None,
    faults: Sequence[str] = (),
) -> tuple[int, Path]:
    """Run the agent's command through a proxy of its own, and return its exit status and the capture. The ``faults``
    are injected into this run.

    If a signal ends the agent or this process, the status is 128 plus the signal's number. Raises InspectorError.
    """
    if not command:
        raise InspectorError("There is no agent command.", "For example: puppet-inspector run -- puppet agent -t")
    if shutil.which(command[0]) is None:
        raise InspectorError(f"Command {command[0]} not found.", "Put the agent's command after `--`.")
    conf = puppetconf.read(ssldir, confdir, puppetconf.settings_of(command))
    _must_stay(command, conf)
    target = split_address(master) if master else _master(conf)
    if not _resolve(target[0]):
        raise InspectorError(f"The master's name {target[0]} does not resolve.", "Pass it: --master HOST[:PORT].")
    _must_be_lower_case(conf)
    _must_have_certificate(conf)
    where = _listen(conf.certname, listen)
    of_this_run = tuple(_of_this_run(line, where) for line in faults)
    for note in _detours(conf, target):
        _print_note(note)
    with contextlib.ExitStack() as stack:
        proxy_ssldir = conf.ssldir
        if puppetconf.read(conf.ssldir).certname != conf.certname:
            proxy_ssldir = _only(
                conf, Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="puppet-inspector-")))
            )
        options: dict[str, str | Path | tuple[str, ...]] = {
            "puppet_master": f"{_host(target[0])}:{target[1]}", "puppet_listen": where, "puppet_ssldir": proxy_ssldir,
            "puppet_ca": conf.ca, "puppet_crl": conf.crl, "puppet_identity": f"keys:{conf.ssldir}",
            "puppet_capture": output, "puppet_fault": of_this_run, **of_rules(rules.in_use().arguments),
        }  # fmt: skip
        proxy = stack.enter_context(Proxy(options, own=True, on_line=_announce))
        full = [*command, *redirections(conf, proxy.address[1], _major(command))]
        status, printed = _run(full, _environment(conf))
        proxy_status = proxy.process.poll()
    # The agent has ended, and with it what was under way.
    with contextlib.suppress(CaptureError, sqlite3.Error), Capture.create(output) as capture:
        capture.settle()
    found = reading.read(output)
    _report(proxy, status, proxy_status, found)
    for note in _origins(conf, command, master, target, {run.cause for run in found.briefs}):
        _print_note(note)
    _explain(conf, status, printed, found)
    return status, output


def fault_help() -> Iterator[str]:
    """Yield the lines that `--fault help` prints."""
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
    """Print what the proxy says of an injected fault, on a terminal in red."""
    if line.startswith(ALARM):
        text = f"puppet-inspector: {line.removeprefix('-- ')}"
        print(coloured(text) if sys.stderr.isatty() else text, file=sys.stderr, flush=True)


# -- what the command would do without the proxy -----------------------------------------------------------------


def _puppet(command: Sequence[str]) -> int | None:
    """Return the index of Puppet's own program in the command (after sudo, timeout, ...)."""
    return next((i for i, word in enumerate(command) if Path(word).name in ("puppet", "puppetd")), None)


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


def _master(conf: PuppetConf) -> tuple[str, int]:
    """Return the master that the agent would use: of a server_list, the first that accepts a connection."""
    for server in conf.server_list if len(conf.server_list) > 1 else ():
        with contextlib.suppress(OSError, UnicodeError), socket.create_connection(server, REACH):
            return server
    return conf.server, conf.port


def _must_be_lower_case(conf: PuppetConf) -> None:
    if conf.certname != conf.certname.lower():
        meaning = reference.explain_output("Certificate names must be lower case") or {}
        raise InspectorError(
            f"The certname {conf.certname} is not in lower case: the agent stops before it connects.",
            meaning.get("remedy", ""),
        )


def _must_have_certificate(conf: PuppetConf) -> None:
    try:
        for file in (conf.certificate, conf.key):
            with inputs.opened(file):
                pass
    except FileNotFoundError as error:
        raise InspectorError(
            f"This host has no certificate yet that the proxy could present: {error.filename} is missing.",
            "Enrol the agent without the proxy first (puppet agent -t, puppet ssl bootstrap), or pass its --ssldir. "
            "To record a bootstrap, use a proxy with another certificate: puppet-inspector provision.",
        ) from error
    except OSError as error:
        raise InspectorError(
            f"{error.filename} cannot be read: {error.strerror}.", "Run as the agent's user (root)."
        ) from error


def _detours(conf: PuppetConf, master: tuple[str, int]) -> Iterator[str]:
    """Yield a note for every setting whose requests go to another host, but in this run to the one master."""
    for name, server in (("ca_server", conf.ca_server), ("report_server", conf.report_server)):
        if server and server.lower() != master[0].lower():
            yield f"{name} is {server}, but in this run all requests go to {master[0]}."
    if _has_http_proxy(conf):
        yield "An HTTP proxy is configured, through which the agent reaches its master; in this run it does not use it."


# -- how the agent reaches the proxy ----------------------------------------------------------------------------


def _listen(certname: str, listen: str | None) -> str:
    """Return where the proxy listens: an address of this host that the certname resolves to."""
    fix = f"Make it resolve to this host: add the line `127.0.0.1 {certname}` to /etc/hosts."
    why = "the agent connects to the proxy by its own certname"
    addresses = _resolve(certname)
    if not addresses:
        raise InspectorError(f"{certname} does not resolve, but {why}.", fix)
    own = sorted(
        (address for address, is_own in addresses.items() if is_own), key=lambda address: ":" in address
    )  # IPv4 first
    if not own:
        raise InspectorError(f"{certname} resolves to {', '.join(addresses)}, which is not this host, but {why}.", fix)
    if listen is None:
        return _host(own[0])
    host = split_address(listen)[0]
    if host not in ("0.0.0.0", "::") and not {host, *_resolve(host)} & set(own):  # noqa: S104
        raise InspectorError(
            f"The proxy would listen on {host}, but {certname} resolves to {own[0]}, and {why}.", "Omit --listen."
        )
    return listen


def _resolve(name: str) -> dict[str, bool]:
    """Return the addresses of a name, each with whether it is one of this host's; none if it does not resolve."""
    addresses: dict[str, bool] = {}
    with contextlib.suppress(OSError, UnicodeError):
        for family, kind, *_, sockaddr in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM):
            addresses[str(sockaddr[0])] = False
            with contextlib.suppress(OSError), socket.socket(family, kind) as probe:
                probe.bind(sockaddr)  # the port is 0: any
                addresses[str(sockaddr[0])] = True
    return addresses


def _only(conf: PuppetConf, directory: Path) -> Path:
    """Fill a directory with links to this certname's files only, so that the proxy uses no other identity."""
    for link, file in (
        (directory / "certs" / conf.certificate.name, conf.certificate),
        (directory / "private_keys" / conf.key.name, conf.key),
    ):
        link.parent.mkdir()
        link.symlink_to(file.absolute())
    return directory


def redirections(conf: PuppetConf, port: int, major: int | None) -> list[str]:
    """Return the options that send every request of the agent to the proxy; they override those before them."""
    name = conf.certname
    options = ["--server", name, "--masterport" if major is not None and major <= 6 else "--serverport", str(port)]
    if conf.server_list:
        options += ["--server_list", f"{name}:{port}"]
    for setting, value in (("ca_server", conf.ca_server), ("report_server", conf.report_server)):
        options += [f"--{setting}", name] if value else []
    for setting, number in (("ca_port", conf.ca_port), ("report_port", conf.report_port)):
        options += [f"--{setting}", str(port)] if number else []
    return [*options, "--no-use_srv_records"] if conf.use_srv_records else options


def _major(command: Sequence[str]) -> int | None:
    """Return the agent's major version; None if not known.

    Calls only what certainly is Puppet: a script might run the agent.
    """
    index = _puppet(command)
    program = list(command[: index + 1]) if index is not None else ["puppet"]
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        query = [*program, "--version"]
        answer = subprocess.run(query, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        if version := regex.search(r"^(\d+)\.\d+", answer.stdout, regex.MULTILINE):
            return int(version[1])
    return None


def _has_http_proxy(conf: PuppetConf) -> bool:
    return bool(conf.http_proxy or os.environ.get("http_proxy") or os.environ.get("HTTP_PROXY"))


def _environment(conf: PuppetConf) -> Mapping[str, str]:
    """Return the agent's environment, in which no HTTP proxy is used for the proxy."""
    environment = dict(os.environ)
    if _has_http_proxy(conf):
        known = environment.get("no_proxy") or environment.get("NO_PROXY") or conf.no_proxy
        environment["no_proxy"] = ",".join(filter(None, (known, conf.certname)))
    return environment


# -- running the agent -------------------------------------------------------------------------------------------


class _Stopped(BaseException):
    """A signal to this process; its number is the argument."""


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Turn Ctrl-C, SIGTERM and SIGHUP into `_Stopped`, unless they are ignored already (nohup)."""

    def stop(number: int, _frame: FrameType | None) -> None:
        raise _Stopped(number)

    is_main = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if is_main else ()
    handlers = {number: signal.getsignal(number) for number in numbers}
    for number, handler in handlers.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _run(command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str]:
    """Run the agent; return its exit status, and what it printed first and last."""
    sys.stdout.flush()
    process = None
    with _signals(), Relay() as relay:
        try:
            process = subprocess.Popen(command, env=environment, stdout=relay.stdout, stderr=relay.stderr)
            relay.start()
            status = process.wait()
        except _Stopped as stopped:
            if process is not None:
                _end(process, has_signal=stopped.args[0] == signal.SIGINT)
            return 128 + int(stopped.args[0]), relay.text
        except OSError as error:
            raise InspectorError(
                f"{command[0]} cannot be run: {error.strerror}.", "Check that it is a program."
            ) from error
    return 128 - status if status < 0 else status, relay.text


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
    for line in proxy.lines if status not in (0, 2) else ():
        # Why there was no answer is in the verdict, if there is one.
        if (trouble := _TROUBLE.search(line)) and not (known and "no answer: " in trouble[0]):
            notes.setdefault(line[trouble.start() :], line)
    lines = list(notes.values())[-20:]
    if proxy_status is not None:
        lines = [f"the proxy exited before the agent (status {proxy_status}); its last lines:", *proxy.lines[-5:]]
    for line in lines:
        _print_note(line)


def _origins(
    conf: PuppetConf, command: Sequence[str], given: str | None, master: tuple[str, int], causes: set[str | None]
) -> Iterator[str]:
    """Yield where those settings of the proxy come from that a cause is about: its user has set none of them."""
    options, file = puppetconf.settings_of(command), conf.path or "puppet.conf"
    if causes & OF_MASTER:
        names = ("server_list",) if conf.server_list else ("server", "serverport")
        chosen = [f"--{name} of the command" for name in names if name in options]
        origin = "--master" if given else " and ".join(chosen) or f"{' and '.join(names)} in {file}"
        yield f"in this run puppet_master is {address(*master)}: {origin}"
    if causes & OF_IDENTITY:
        yield f"in this run puppet_identity, puppet_ca and puppet_crl are the ssldir {conf.ssldir}: ssldir in {file}"


def _explain(conf: PuppetConf, status: int, printed: str, found: CaptureRuns) -> None:
    """Print what explains an agent that stopped where the proxy sees nothing: the meaning of its own message, and what
    is wrong in its directory."""
    runs = found.briefs
    is_empty = not runs and not found.unanalyzed
    unseen = any(run.verdict and run.verdict.certainty == "not visible" for run in runs)
    # With another name than its own, it did not read its settings.
    renamed = any(run.certname not in (None, conf.certname) for run in runs)
    if status in (0, 2) or not (is_empty or unseen or renamed):
        return
    explanation = reference.explain_output(printed)
    if explanation:
        _print_note(f"the agent printed: {explanation['message']}")
        for label, key in (("meaning", "meaning"), ("check", "check"), ("fix", "remedy")):
            print(f"  {label + ':':<9}{explanation[key]}", file=sys.stderr)
    elif is_empty:
        _print_note(
            "the proxy received nothing: see the agent's output; if the command is a script, it must pass the "
            "options that are appended to it on to the agent."
        )
    for line in _of_directory(conf):
        _print_note(line)


def _of_directory(conf: PuppetConf) -> Iterator[str]:
    """Yield what is wrong in the agent's directory, each with its fix."""
    try:
        diagnoses = report.of_directories(conf.ssldir, None, conf.certname)
    except InspectorError as error:
        yield str(error)
        return
    for diagnosis in [each for each in diagnoses if each.severity is not Severity.NOTICE][:DIAGNOSES]:
        yield f"in {conf.ssldir}: {diagnosis.title}: {diagnosis.detail}"
        if diagnosis.fix:
            yield f"  fix: {diagnosis.fix}"


def _print_note(text: str) -> None:
    print(f"puppet-inspector: {text}", file=sys.stderr, flush=True)


def _host(host: str) -> str:
    """Return a host in the form for ``HOST:PORT``."""
    return f"[{host}]" if ":" in host else host
