"""``puppet-inspector run -- puppet agent -t``: this host's agent once through a proxy of its own.

Finds out what the command would do without us (which master, which certname, from puppet.conf and from its
own options), starts the proxy with this host's certificate, and appends the options that send the agent
there. The agent's output is its own: it inherits our terminal, and the proxy's lines are kept back unless
the agent fails.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.capture.store import Capture
from inspector.cli.arguments import capture_to_write
from inspector.cli.runs import print_runs
from inspector.errors import InspectorError
from inspector.host import puppetconf
from inspector.host.puppetconf import split_address
from inspector.proxy.launcher import Proxy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import FrameType

    from inspector.host.puppetconf import PuppetConf

_FOREGROUND = re.compile(
    r"-[a-zA-Z]*[tThV][a-zA-Z]*|--(test|no-daemonize|fingerprint|enable|disable|help|version|genconfig|configprint)(=.*)?"
)
_TROUBLE = re.compile(r"^-- |  -- gap: |TLS refused: |no answer: |sent without the agent's identity: ")
"""Lines of the proxy that may say why the agent failed."""
PATIENCE = (3.0, 10.0)
"""Seconds that an agent has to end by itself after Ctrl-C, and after SIGTERM."""
REACH = 5.0
"""Seconds that a master of server_list has to take a connection, before the next is tried."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="CAPTURE", help="record here (default: captures/<UTC time>.sqlite)")
    parser.add_argument("--master", metavar="HOST[:PORT]", help="the master (default: puppet.conf's)")
    parser.add_argument("--ssldir", metavar="DIR", help="the agent's ssldir (default: puppet.conf's)")
    parser.add_argument("--confdir", metavar="DIR", help="where puppet.conf is (default: the usual places)")
    parser.add_argument(
        "--listen", metavar="HOST[:PORT]", help="where to listen (default: where the certname leads to)"
    )
    parser.add_argument("--json", action="store_true", help="the runs as JSON, after the agent's own output")
    parser.add_argument("agent", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="e.g. -- puppet agent -t")


def execute(arguments: argparse.Namespace) -> int:
    """Start the proxy with this host's own certificate, run the agent through it, pass its output and exit
    status on, and tell what happened."""

    command = arguments.agent[1:] if arguments.agent[:1] == ["--"] else arguments.agent
    status, capture = run(
        command,
        output=capture_to_write(arguments),
        master=arguments.master,
        ssldir=arguments.ssldir,
        confdir=arguments.confdir,
        listen=arguments.listen,
    )
    print_runs(capture, as_json=arguments.json)
    return status


def run(
    command: Sequence[str],
    *,
    output: Path,
    master: str | None = None,
    ssldir: str | None = None,
    confdir: str | None = None,
    listen: str | None = None,
) -> tuple[int, Path]:
    """Run the agent's command through a proxy of its own; its exit status and the capture.

    A signal that ends the agent, or us, makes the status 128 and its number. Raises InspectorError.
    """
    if not command:
        raise InspectorError("Which agent shall run?", "For example: puppet-inspector run -- puppet agent -t")
    if shutil.which(command[0]) is None:
        raise InspectorError(f"There is no command {command[0]}.", "Name the agent's command after `--`.")
    conf = puppetconf.read(ssldir, confdir, puppetconf.settings_of(command))
    _must_stay(command, conf)
    target = split_address(master) if master else _master(conf)
    if not _resolve(target[0]):
        raise InspectorError(f"The master's name {target[0]} does not resolve.", "Name it: --master HOST[:PORT].")
    _must_have_certificate(conf)
    where = _listen(conf.certname, listen)
    for text in _detours(conf, target):
        _tell(text)
    with contextlib.ExitStack() as stack:
        shown = conf.ssldir
        if puppetconf.read(conf.ssldir).certname != conf.certname:
            shown = _only(conf, Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="puppet-inspector-"))))
        options: dict[str, str | Path] = {
            "puppet_master": f"{_host(target[0])}:{target[1]}", "puppet_listen": where, "puppet_ssldir": shown,
            "puppet_ca": conf.ca, "puppet_crl": conf.crl, "puppet_identity": f"keys:{conf.ssldir}",
            "puppet_capture": output,
        }  # fmt: skip
        proxy = stack.enter_context(Proxy(options))
        full = [*command, *redirections(conf, proxy.address[1], _major(command))]
        status = _run(full, _environment(conf))
        died = proxy.process.poll()
    _report(proxy, status, died, output)
    return status, output


# -- what the command would do without us -----------------------------------------------------------------


def _puppet(command: Sequence[str]) -> int | None:
    """Where in the command Puppet's own program stands (after sudo, timeout, ...)."""
    return next((i for i, word in enumerate(command) if Path(word).name in ("puppet", "puppetd")), None)


def _must_stay(command: Sequence[str], conf: PuppetConf) -> None:
    """An agent that goes to the background would go on talking to a proxy that is gone."""
    index = _puppet(command)
    if index is None:
        return
    arguments = list(command[index + 1 :])
    is_agent = Path(command[index]).name == "puppetd" or arguments[:1] == ["agent"]
    if is_agent and conf.daemonize and not any(_FOREGROUND.fullmatch(word) for word in arguments):
        raise InspectorError(
            "This command goes to the background, and its runs would outlive the proxy.",
            "Add --test (or --no-daemonize): puppet-inspector run -- puppet agent --test",
        )


def _master(conf: PuppetConf) -> tuple[str, int]:
    """Whom the agent would speak to: of a server_list, the first that takes a connection."""
    for server in conf.server_list if len(conf.server_list) > 1 else ():
        with contextlib.suppress(OSError, UnicodeError), socket.create_connection(server, REACH):
            return server
    return conf.server, conf.port


def _must_have_certificate(conf: PuppetConf) -> None:
    try:
        for file in (conf.certificate, conf.key):
            with file.open("rb"):
                pass
    except FileNotFoundError as error:
        raise InspectorError(
            f"This host has no certificate yet, so the proxy has nothing to show: {error.filename} is missing.",
            "Let the agent get one directly first (puppet agent -t, puppet ssl bootstrap), or name its --ssldir. "
            "A bootstrap can be seen through a proxy with another certificate: puppet-inspector provision.",
        ) from error
    except OSError as error:
        raise InspectorError(
            f"{error.filename} can't be read: {error.strerror}.", "Run as the user whom the agent runs as (root)."
        ) from error


def _detours(conf: PuppetConf, master: tuple[str, int]) -> Iterator[str]:
    """What goes to another host without us, and through us to the one master."""
    for name, server in (("ca_server", conf.ca_server), ("report_server", conf.report_server)):
        if server and server.lower() != master[0].lower():
            yield f"{name} is {server}, but in this run everything goes to {master[0]}."


# -- how it comes to the proxy ----------------------------------------------------------------------------


def _listen(certname: str, listen: str | None) -> str:
    """Where the proxy listens: an address of this host that the certname leads to."""
    cure = f"Let it lead here: add the line `127.0.0.1 {certname}` to /etc/hosts."
    why = "the agent reaches the proxy under its own certname"
    found = _resolve(certname)
    if not found:
        raise InspectorError(f"{certname} does not resolve, but {why}.", cure)
    own = sorted(
        (address for address, is_own in found.items() if is_own), key=lambda address: ":" in address
    )  # IPv4 first
    if not own:
        raise InspectorError(f"{certname} leads to {', '.join(found)}, which is not this host, but {why}.", cure)
    if listen is None:
        return _host(own[0])
    host = split_address(listen)[0]
    if host not in ("0.0.0.0", "::") and not {host, *_resolve(host)} & set(own):  # noqa: S104
        raise InspectorError(
            f"The proxy would listen on {host}, but {certname} leads to {own[0]}, and {why}.", "Leave --listen out."
        )
    return listen


def _resolve(name: str) -> dict[str, bool]:
    """The addresses that a name leads to, and whether each is one of this host's; none if it does not resolve."""
    addresses: dict[str, bool] = {}
    with contextlib.suppress(OSError, UnicodeError):
        for family, kind, *_, sockaddr in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM):
            addresses[str(sockaddr[0])] = False
            with contextlib.suppress(OSError), socket.socket(family, kind) as probe:
                probe.bind(sockaddr)  # the port is 0: any
                addresses[str(sockaddr[0])] = True
    return addresses


def _only(conf: PuppetConf, directory: Path) -> Path:
    """An ssldir that holds this certname alone, as links: so the proxy can't take another for its own."""
    for link, file in (
        (directory / "certs" / conf.certificate.name, conf.certificate),
        (directory / "private_keys" / conf.key.name, conf.key),
    ):
        link.parent.mkdir()
        link.symlink_to(file.absolute())
    return directory


def redirections(conf: PuppetConf, port: int, major: int | None) -> list[str]:
    """The options that send every request of the agent to the proxy; they win over those before them."""
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
    """The agent's major version; asks only what is Puppet for sure, since a script might run the agent."""
    index = _puppet(command)
    program = list(command[: index + 1]) if index is not None else ["puppet"]
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        asked = [*program, "--version"]
        answer = subprocess.run(asked, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        if found := re.search(r"^(\d+)\.\d+", answer.stdout, re.MULTILINE):
            return int(found[1])
    return None


def _environment(conf: PuppetConf) -> Mapping[str, str]:
    """An HTTP proxy must not stand between the agent and us."""
    environment = dict(os.environ)
    if conf.http_proxy or environment.get("http_proxy") or environment.get("HTTP_PROXY"):
        known = environment.get("no_proxy") or environment.get("NO_PROXY") or conf.no_proxy
        environment["no_proxy"] = ",".join(filter(None, (known, conf.certname)))
    return environment


# -- running it -------------------------------------------------------------------------------------------


class _Stopped(BaseException):
    """A signal that means us; its number is the argument."""


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Ctrl-C, SIGTERM and SIGHUP as `_Stopped`, unless they are ignored already (nohup)."""

    def stop(number: int, _frame: FrameType | None) -> None:
        raise _Stopped(number)

    ours = threading.current_thread() is threading.main_thread()
    wanted = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if ours else ()
    before = {number: signal.getsignal(number) for number in wanted}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    sys.stdout.flush()
    process = None
    with _signals():
        try:
            process = subprocess.Popen(command, env=environment)
            status = process.wait()
        except _Stopped as stopped:
            if process is not None:
                _end(process, told=stopped.args[0] == signal.SIGINT)
            return 128 + int(stopped.args[0])
        except OSError as error:
            raise InspectorError(f"{command[0]} can't be run: {error.strerror}.", "Is it a program?") from error
    return 128 - status if status < 0 else status


def _end(process: subprocess.Popen[bytes], *, told: bool) -> None:
    """End the agent; ``told``: a terminal has sent it the Ctrl-C too. Another signal hastens it."""
    steps = [(None, PATIENCE[0])] if told else []
    for number, patience in [*steps, (signal.SIGTERM, PATIENCE[1]), (signal.SIGKILL, None)]:
        try:
            if number:
                process.send_signal(number)
            process.wait(patience)
        except (subprocess.TimeoutExpired, _Stopped):
            continue
        return


def _report(proxy: Proxy, status: int, died: int | None, capture: Path) -> None:
    """What the user must know besides the agent's own output."""
    kept = [line for line in proxy.lines if _TROUBLE.search(line)][-20:] if status not in (0, 2) else []
    if died is not None:
        kept = [f"the proxy ended before the agent did (status {died}); its last lines:", *proxy.lines[-5:]]
    for line in kept:
        _tell(line)
    with Capture.open(capture) as records:
        if next(iter(records.records()), None) is None:
            _tell("nothing came through the proxy: the agent's own output may say why; if the command is a script, "
                  "it must pass the options that are appended to it on to the agent.")  # fmt: skip


def _tell(text: str) -> None:
    print(f"puppet-inspector: {text}", file=sys.stderr, flush=True)


def _host(host: str) -> str:
    """A host as it stands before ``:PORT``."""
    return f"[{host}]" if ":" in host else host
