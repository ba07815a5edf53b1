"""``puppet-inspector run``: the options that it appends, and a fake agent through the real proxy."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inspector.capture.store import Capture
from inspector.cli import run
from inspector.cli.main import main
from inspector.cli.runs import print_runs
from inspector.errors import InspectorError
from inspector.host import puppetconf
from inspector.host.puppetconf import PuppetConf
from inspector.lab.ca import LabCA
from inspector.lab.master import LabMaster
from inspector.model import Exchange
from inspector.proxy.faults.actions import KINDS
from inspector.runs.snapshot import RunState
from inspector.summaries import reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from inspector.host import pki

    type Install = Callable[[str], Path]

NAME = "localhost"
"""This host's certname: a name that resolves to this host everywhere."""

AGENT = f"""#!{sys.executable}
import http.client, os, ssl, sys
if "--version" in sys.argv:
    sys.exit(print("7.23.0"))
print("agent", *sys.argv[1:], flush=True)
words = sys.argv[1:]
server, port = words[words.index("--server") + 1], int(words[words.index("--serverport") + 1])
context = ssl.create_default_context(cafile="SSLDIR/certs/ca.pem")
context.load_cert_chain("SSLDIR/certs/{NAME}.pem", "SSLDIR/private_keys/{NAME}.pem")
connection = http.client.HTTPSConnection(server, port, context=context)
connection.request("GET", "/puppet/v3/file_metadata/modules/x")
print(connection.getresponse().status, flush=True)
sys.exit(int(os.environ.get("STATUS", "0")))
"""
"""Asks one question as an agent would, and exits with STATUS."""


@pytest.fixture
def ca() -> LabCA:
    return LabCA("master.example")


@pytest.fixture
def place(ca: LabCA, tmp_path: Path) -> pki.SslDirPaths:
    return ca.enrol(tmp_path / "ssl", NAME)


@pytest.fixture
def master(ca: LabCA, tmp_path: Path) -> Iterator[LabMaster]:
    with LabMaster(ca, ca.enrol(tmp_path / "master", "master.example", [NAME])) as running:
        yield running


@pytest.fixture
def confdir(place: pki.SslDirPaths, tmp_path: Path) -> Path:
    return _configure(tmp_path / "conf", place, ("127.0.0.1", 8140))


def _configure(confdir: Path, place: pki.SslDirPaths, master: tuple[str, int], more: str = "") -> Path:
    confdir.mkdir(exist_ok=True)
    text = f"[main]\nssldir = {place.path}\ncertname = {NAME}\nserver = {NAME}\nserverport = {master[1]}\n{more}"
    (confdir / "puppet.conf").write_text(text)
    return confdir


@pytest.fixture
def install(place: pki.SslDirPaths, tmp_path: Path) -> Install:
    """Installs a command ``puppet``."""

    def installed(text: str) -> Path:
        program = tmp_path / "bin" / "puppet"
        program.parent.mkdir(exist_ok=True)
        program.write_text(text.replace("SSLDIR", str(place.path)))
        program.chmod(0o755)
        return program

    return installed


def _exchanges(capture: Path) -> list[Exchange]:
    with Capture.open(capture) as records:
        return [record for record in records.records() if isinstance(record, Exchange)]


# -- the complete command ------------------------------------------------------------------------------------


def test_the_agent_goes_through_the_proxy(
    master: LabMaster, place: pki.SslDirPaths, install: Install, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    confdir = _configure(tmp_path / "conf", place, master.address)
    command = [str(install(AGENT)), "agent", "-t", "--confdir", str(confdir)]
    status, capture = run.run(command, output=tmp_path / "c" / "run.sqlite")
    printed = capfd.readouterr()
    assert status == 0
    assert printed.err == ""
    first, second = printed.out.splitlines()
    assert first.startswith(f"agent agent -t --confdir {confdir} --server {NAME} --serverport ")
    assert int(first.rpartition(" ")[2]) != master.address[1]
    assert second == "404"
    (exchange,) = _exchanges(capture)
    (judged,) = reading.read(capture, now=time.time()).briefs
    assert judged.state is RunState.OVER  # the command has ended
    assert exchange.identity is not None
    assert exchange.identity.certname == NAME
    assert [received.certname for received in master.received] == [NAME]


@pytest.mark.slow
def test_the_commands_own_options_count(
    master: LabMaster,
    ca: LabCA,
    place: pki.SslDirPaths,
    install: Install,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """They select the master and the ssldir's certificate; after a failure the proxy's related lines are printed."""
    ca.enrol(place.path, "another.example")
    place.crl.unlink()
    command = [str(install(AGENT)), "agent", "--test", "--ssldir", str(place.path), "--confdir", str(tmp_path)]
    command += ["--certname", NAME, "--server", NAME, "--masterport", str(master.address[1])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STATUS", "4")
        status, capture = run.run(command, output=tmp_path / "run.sqlite")
    assert status == 4
    errors = capfd.readouterr().err
    assert f"puppet-inspector: -- There is no CRL to check agents with: {place.crl}" in errors
    assert "sent without the agent's identity" in errors
    (exchange,) = _exchanges(capture)
    assert exchange.identity is not None
    assert exchange.identity.certname is None


@pytest.mark.slow
def test_a_killed_agent_and_a_setting_for_another_host(
    install: Install, confdir: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = install("#!/bin/sh\nkill -KILL $$\n")
    command = [str(program), "agent", "-t", "--confdir", str(confdir), "--report_server", "r.example"]
    status, capture = run.run(command, output=tmp_path / "run.sqlite")
    errors = capfd.readouterr().err
    assert status == 128 + signal.SIGKILL
    assert _exchanges(capture) == []
    assert f"report_server is r.example, but in this run all requests go to {NAME}." in errors
    assert "the proxy received nothing" in errors


@pytest.mark.slow
def test_an_agent_that_stops_before_it_connects_is_explained(
    install: Install, confdir: Path, place: pki.SslDirPaths, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """By its own message, and by what is wrong in its directory."""
    disabled = "Notice: Skipping run of Puppet configuration client; administratively disabled (Reason: 'x');"
    program = install(f'#!/bin/sh\n[ "$1" = --version ] && exit\necho "{disabled}"\nexit 1\n')
    place.crl.write_text("garbage")
    command = [str(program), "agent", "-t", "--confdir", str(confdir)]
    status, _ = run.run(command, output=tmp_path / "run.sqlite")
    out, errors = capfd.readouterr()
    assert (status, out) == (1, f"{disabled}\n")
    assert f"puppet-inspector: the agent printed: {disabled}\n  meaning: Somebody or something disabled" in errors
    assert "enable it: `puppet agent --enable`. 2. On the node, run it: `puppet agent -t`." in errors
    assert f"puppet-inspector: in {place.path}: crl.pem is not a valid CRL" in errors
    assert "the proxy received nothing" not in errors


@pytest.mark.slow
def test_a_closed_port_is_said_once(
    install: Install, place: pki.SslDirPaths, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = closed.getsockname()
    confdir = _configure(tmp_path / "conf", place, address)
    command = ["env", "STATUS=1", str(install(AGENT)), "agent", "-t", "--confdir", str(confdir)]
    capture = tmp_path / "run.sqlite"
    assert run.run(command, output=capture, confdir=str(confdir))[0] == 1
    (origin,) = capfd.readouterr().err.splitlines()
    assert origin.endswith(f"server and serverport in {confdir}/puppet.conf")
    print_runs([capture], as_json=False)
    assert capfd.readouterr().out.count("refused the connection: no master listens there") == 1


@pytest.mark.slow
@pytest.mark.parametrize(("number", "group"), [(signal.SIGINT, True), (signal.SIGTERM, False)])
def test_a_signal_ends_both(
    number: signal.Signals, group: bool, install: Install, confdir: Path, tmp_path: Path
) -> None:
    """Ctrl-C reaches agent and proxy too; SIGTERM reaches us alone."""
    program = install('#!/bin/sh\n[ "$1" = --version ] && exit\necho $$ > "$0.pid"\nexec sleep 60\n')
    options = ["--confdir", str(confdir), "-o", str(tmp_path / "run.sqlite")]
    running = subprocess.Popen(
        [sys.executable, "-m", "inspector.cli", "run", *options, "--", str(program), "agent", "-t"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        pid_file = program.with_name("puppet.pid")
        _until(lambda: pid_file.exists() and pid_file.read_text().endswith("\n"))
        agent = int(pid_file.read_text())
        if group:
            os.killpg(running.pid, number)
        else:
            running.send_signal(number)
        out, _ = running.communicate(timeout=300)
    finally:
        running.kill()
    assert running.returncode == 128 + number
    assert "There are no runs in" in out
    _until(lambda: _ended(agent))


def _ended(pid: int) -> bool:
    """Tell whether a process is gone, or a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def _until(condition: Callable[[], bool], timeout: float = 300) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# -- mistakes -----------------------------------------------------------------------------------------


def _mistake(*command: str, **options: str) -> InspectorError:
    with pytest.raises(InspectorError) as error:
        run.run(command, output=Path("/dev/null/never.sqlite"), **options)
    return error.value


def test_no_command() -> None:
    assert "-- puppet agent -t" in _mistake().hint
    assert "Command nonsense-4711 not found." in _mistake("nonsense-4711").message


@pytest.mark.parametrize("words", ["agent", "agent --onetime", "agent --verbose --daemonize"])
def test_a_command_that_goes_to_the_background(words: str, install: Install, confdir: Path) -> None:
    error = _mistake(str(install("")), *words.split(), confdir=str(confdir))
    assert "in the background" in error.message
    assert "--test" in error.hint


@pytest.mark.parametrize(
    "words", ["agent -t", "agent -dt", "agent --no-daemonize", "agent --fingerprint", "ssl bootstrap"]
)
def test_a_command_that_stays(words: str) -> None:
    conf = PuppetConf(None, "puppet", 8140, Path("/s"), NAME)
    run._must_stay(["timeout", "60", "/opt/puppetlabs/bin/puppet", *words.split()], conf)


def test_a_certname_in_upper_case(install: Install, confdir: Path) -> None:
    error = _mistake(str(install("")), "agent", "-t", "--certname", "Node.Example", confdir=str(confdir))
    assert error.message == "The certname Node.Example is not in lower case: the agent stops before it connects."
    assert error.hint.startswith("1. Write the name in lower case")


def test_an_http_proxy_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert list(run._detours(_conf(), ("puppet", 8140))) == []
    (note,) = run._detours(_conf(http_proxy=True), ("puppet", 8140))
    assert note.endswith("in this run it does not use it.")


def test_a_host_without_a_certificate(install: Install, confdir: Path, place: pki.SslDirPaths) -> None:
    place.certificate.unlink()
    error = _mistake(str(install("")), "agent", "-t", confdir=str(confdir))
    assert error.message.startswith("This host has no certificate yet")
    assert str(place.certificate) in error.message
    assert "puppet-inspector provision" in error.hint


@pytest.mark.parametrize(
    ("certname", "text"),
    [("nowhere.invalid", "does not resolve"), ("192.0.2.1", "resolves to 192.0.2.1, which is not this host")],
)
def test_a_certname_that_does_not_resolve_to_this_host(
    certname: str, text: str, install: Install, confdir: Path, ca: LabCA, place: pki.SslDirPaths
) -> None:
    ca.enrol(place.path, certname)
    error = _mistake(str(install("")), "agent", "-t", "--certname", certname, confdir=str(confdir))
    assert text in error.message
    assert f"127.0.0.1 {certname}" in error.hint


def test_a_master_that_does_not_resolve(install: Install, confdir: Path) -> None:
    error = _mistake(str(install("")), "agent", "-t", "--server", "nowhere.invalid", confdir=str(confdir))
    assert "The master's name nowhere.invalid does not resolve." in error.message


def test_listening_on_another_address_than_the_certname(install: Install, confdir: Path) -> None:
    error = _mistake(str(install("")), "agent", "-t", confdir=str(confdir), listen="192.0.2.1:8140")
    assert "The proxy would listen on 192.0.2.1" in error.message
    assert run._listen("127.0.0.1", "127.0.0.1:9000") == "127.0.0.1:9000"
    assert run._listen("127.0.0.1", "0.0.0.0:9000") == "0.0.0.0:9000"
    assert run._listen("127.0.0.2", None) == "127.0.0.2"


@pytest.mark.slow
def test_a_file_that_is_not_a_program(install: Install, confdir: Path, tmp_path: Path) -> None:
    program = install("\0")
    with pytest.raises(InspectorError, match="cannot be run"):
        run.run([str(program), "agent", "-t"], output=tmp_path / "run.sqlite", confdir=str(confdir))


# -- the appended options ---------------------------------------------------------------------------------


def _conf(**settings: object) -> PuppetConf:
    return PuppetConf(None, "puppet", 8140, Path("/s"), "n.example", **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("conf", "major", "options"),
    [
        (_conf(), 7, "--server n.example --serverport 9"),
        (_conf(), None, "--server n.example --serverport 9"),
        (_conf(), 6, "--server n.example --masterport 9"),
        (
            _conf(server_list=(("a", 1), ("b", 2))),
            8,
            "--server n.example --serverport 9 --server_list n.example:9",
        ),
        (
            _conf(ca_server="c", ca_port=1, report_server="r", report_port=2, use_srv_records=True),
            3,
            (
                "--server n.example --masterport 9 --ca_server n.example --report_server n.example "
                "--ca_port 9 --report_port 9 --no-use_srv_records"
            ),
        ),
    ],
)
def test_redirections(conf: PuppetConf, major: int | None, options: str) -> None:
    assert run.redirections(conf, 9, major) == options.split()


def test_the_version_decides_which_port_option(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    program = install("#!/bin/sh\necho 'a warning'\necho 3.8.7\n")
    assert run._major(["env", str(program), "agent", "-t"]) == 3
    # A script is never asked: it might run the agent. The puppet on the PATH is.
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    assert run._major(["/bin/false"]) == 3
    install("#!/bin/sh\nexit 1\n")
    assert run._major(["/bin/false"]) is None


def test_of_a_server_list_the_first_that_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.create_server(("127.0.0.1", 0)) as server:
        gone, there = silent.getsockname(), server.getsockname()
        silent.close()
        assert run._master(_conf(server_list=(gone, there))) == there
    assert run._master(_conf()) == ("puppet", 8140)


def test_an_http_proxy_does_not_stand_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert "no_proxy" not in run._environment(_conf())
    assert run._environment(_conf(http_proxy=True, no_proxy=".x"))["no_proxy"] == ".x,n.example"
    monkeypatch.setenv("HTTP_PROXY", "http://p:1")
    monkeypatch.setenv("NO_PROXY", ".y")
    assert run._environment(_conf())["no_proxy"] == ".y,n.example"


# -- faults -----------------------------------------------------------------------------------------------


def test_the_faults_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--fault", "help"]) == 0
    printed = capsys.readouterr().out
    for name, kind in KINDS.items():
        assert name in printed
        assert kind.shows in printed.replace("\n", " ")
    assert max(map(len, printed.splitlines())) < 120


@pytest.mark.parametrize(
    ("line", "full"),
    [
        ("500 phase:catalog", "500 phase:catalog agent:127.0.0.1"),
        ("refuse nth:1", "refuse nth:1 agent:127.0.0.1"),
        ("500 agent:web1.example", "500 agent:web1.example"),
    ],
)
def test_a_fault_is_for_this_host(line: str, full: str) -> None:
    assert run._of_this_run(line, "127.0.0.1") == full
    assert run._of_this_run(line, "127.3.2.1:8140") == full


@pytest.mark.parametrize("line", ["", "nonsense", "500 status:500", "delay=x", "refuse phase:catalog"])
def test_a_fault_that_is_none(line: str) -> None:
    with pytest.raises(InspectorError):
        run._of_this_run(line, "127.0.0.1")


def test_an_announcement_is_red_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run._announce("-- fault: answered 500: GET / of web1.example (192.0.2.7)")
    run._announce("-- another line")
    assert capsys.readouterr().err == "puppet-inspector: fault: answered 500: GET / of web1.example (192.0.2.7)\n"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    run._announce("-- fault: a")
    assert capsys.readouterr().err == "\x1b[1;31mpuppet-inspector: fault: a\x1b[0m\n"
    monkeypatch.setenv("NO_COLOR", "1")
    run._announce("-- fault: a")
    assert capsys.readouterr().err == "puppet-inspector: fault: a\n"


@pytest.mark.parametrize(
    ("command", "given", "more", "origin"),
    [
        ((), None, "", "server and serverport in CONF"),
        ((), None, "server_list = a.example,b.example\n", "server_list in CONF"),
        (("--server", "m.example"), None, "", "--server of the command"),
        (("--masterport=1", "--server=m"), None, "", "--server of the command and --serverport of the command"),
        (("--server", "m.example"), "m.example", "", "--master"),
    ],
)
def test_a_cause_about_the_master_names_the_setting_that_it_came_from(
    command: tuple[str, ...], given: str | None, more: str, origin: str, place: pki.SslDirPaths, tmp_path: Path
) -> None:
    confdir = _configure(tmp_path / "conf", place, ("m.example", 1), more)
    conf = puppetconf.read(None, confdir)
    (note,) = run._origins(conf, ["puppet", "agent", *command], given, ("m.example", 1), {"T19", None})
    assert note == f"in this run puppet_master is m.example:1: {origin.replace('CONF', str(confdir / 'puppet.conf'))}"


def test_a_cause_about_an_identity_names_the_ssldir(place: pki.SslDirPaths, confdir: Path) -> None:
    conf = puppetconf.read(None, confdir)
    (note,) = run._origins(conf, ["puppet"], None, ("m.example", 1), {"T23"})
    assert note == (
        f"in this run puppet_identity, puppet_ca and puppet_crl are the ssldir {place.path}: "
        f"ssldir in {confdir / 'puppet.conf'}"
    )
    assert list(run._origins(conf, ["puppet"], None, ("m.example", 1), {"S01", None})) == []
