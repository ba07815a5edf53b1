"""``puppet-inspector run``: a fake agent through the real proxy, as its HTTP proxy and as its master."""

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

from inspector.cli import run
from inspector.cli.main import main
from inspector.cli.runs import print_runs
from inspector.errors import InspectorError
from inspector.host import puppetconf
from inspector.host.puppetconf import PuppetConf
from inspector.lab.ca import LabCA
from inspector.lab.master import LabMaster
from inspector.proxy import launched
from inspector.proxy.connect.plan import UNREAD
from inspector.proxy.faults.actions import KINDS
from inspector.runs.snapshot import RunState
from inspector.summaries import reading
from tests.support import node_agents
from tests.support.node_agents import NAME, THROUGH_PROXY, TO_ITS_MASTER, configure, exchanges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from inspector.host import pki

    type Install = Callable[[str], Path]


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
    return configure(tmp_path / "conf", place, ("127.0.0.1", 8140))


@pytest.fixture
def install(place: pki.SslDirPaths, tmp_path: Path) -> Install:
    """Installs a command ``puppet``."""
    return lambda text: node_agents.install(tmp_path, text, place)


# -- the complete command ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_agent_uses_the_proxy_as_its_http_proxy(
    master: LabMaster,
    ca: LabCA,
    place: pki.SslDirPaths,
    install: Install,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    confdir = configure(tmp_path / "conf", place, master.address)
    command = [str(install(THROUGH_PROXY)), "agent", "-t", "--confdir", str(confdir)]
    status, capture, _ = run.run(command, output=tmp_path / "c" / "run.sqlite")
    printed = capfd.readouterr()
    assert (status, printed.err) == (0, "")
    first, *others = printed.out.splitlines()
    assert first.startswith(f"agent agent -t --confdir {confdir} --http_proxy_host 127.0.0.1 --http_proxy_port ")
    assert "--server" not in first
    assert others == ["404"]
    (exchange,) = exchanges(capture)
    (judged,) = reading.read(capture, now=time.time()).briefs
    assert (judged.state, judged.certname) == (RunState.OVER, NAME)  # the command has ended
    assert exchange.identity is not None
    assert (exchange.identity.certname, exchange.agent.node) == (NAME, NAME)
    assert exchange.agent.for_one_run
    assert [received.certname for received in master.received] == [NAME]
    assert (place.ca.read_bytes(), place.crl.read_bytes()) == (ca.ca_bundle, ca.crl_bundle)


@pytest.mark.slow
def test_the_agent_takes_the_proxy_for_its_master(
    master: LabMaster, place: pki.SslDirPaths, install: Install, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    confdir = configure(tmp_path / "conf", place, master.address)
    command = [str(install(TO_ITS_MASTER)), "agent", "-t", "--confdir", str(confdir)]
    status, capture, _ = run.run(command, output=tmp_path / "c" / "run.sqlite", as_master=True)
    printed = capfd.readouterr()
    assert status == 0
    assert printed.err == "puppet-inspector: this run takes the proxy for its master: as asked.\n"
    first, second = printed.out.splitlines()
    assert first.startswith(f"agent agent -t --confdir {confdir} --server {NAME} --serverport ")
    assert int(first.rpartition(" ")[2]) != master.address[1]
    assert second == "404"
    (exchange,) = exchanges(capture)
    assert exchange.identity is not None
    assert (exchange.identity.certname, exchange.agent.node) == (NAME, None)
    assert [received.certname for received in master.received] == [NAME]


@pytest.mark.slow
def test_an_old_agent_takes_it_for_its_master_unasked(
    master: LabMaster,
    place: pki.SslDirPaths,
    install: Install,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("VERSION", "5.5.22")
    confdir = configure(tmp_path / "conf", place, master.address)
    command = [str(install(TO_ITS_MASTER)), "agent", "-t", "--confdir", str(confdir)]
    assert run.run(command, output=tmp_path / "run.sqlite")[0] == 0
    printed = capfd.readouterr()
    assert "5.5 is older than 6.4, the first that can use it as an HTTP proxy" in printed.err
    assert f"--server {NAME} --masterport " in printed.out


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
    command = [str(install(TO_ITS_MASTER)), "agent", "--test", "--ssldir", str(place.path), "--confdir", str(tmp_path)]
    command += ["--certname", NAME, "--server", NAME, "--masterport", str(master.address[1])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STATUS", "4")
        status, capture, _ = run.run(command, output=tmp_path / "run.sqlite", as_master=True)
    assert status == 4
    errors = capfd.readouterr().err
    assert f"puppet-inspector: -- There is no CRL to check agents with: {place.crl}" in errors
    assert "sent without the agent's identity" in errors
    (exchange,) = exchanges(capture)
    assert exchange.identity is not None
    assert exchange.identity.certname is None


@pytest.mark.slow
def test_another_master_is_the_one_that_is_asked(
    master: LabMaster, place: pki.SslDirPaths, install: Install, tmp_path: Path
) -> None:
    confdir = configure(tmp_path / "conf", place, ("nowhere.invalid", 1))
    command = [str(install(THROUGH_PROXY)), "agent", "-t", "--confdir", str(confdir)]
    status, capture, _ = run.run(command, output=tmp_path / "run.sqlite", master=f"{NAME}:{master.address[1]}")
    assert status == 0
    assert len(exchanges(capture)) == len(master.received) == 1


@pytest.mark.slow
def test_a_master_that_the_agent_refuses_is_not_read(
    place: pki.SslDirPaths, install: Install, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The agent itself sees what the master presents, and says so in its own words."""
    other = LabCA("other.example")
    with LabMaster(other, other.enrol(tmp_path / "master", "other.example", [NAME])) as stranger:
        confdir = configure(tmp_path / "conf", place, stranger.address)
        command = [str(install(THROUGH_PROXY)), "agent", "-t", "--confdir", str(confdir)]
        status, capture, _ = run.run(command, output=tmp_path / "run.sqlite", confdir=str(confdir))
    assert status == 1
    assert "self-signed certificate in certificate chain" in capfd.readouterr().err
    assert exchanges(capture) == []
    (judged,) = reading.read(capture, now=time.time()).briefs
    assert (judged.certname, judged.cause) == (NAME, "T08")
    assert stranger.received == []


@pytest.mark.slow
def test_a_killed_agent_and_a_setting_for_another_host(
    install: Install, confdir: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = install("#!/bin/sh\nkill -KILL $$\n")
    command = [str(program), "agent", "-t", "--confdir", str(confdir), "--report_server", "r.example"]
    status, capture, _ = run.run(command, output=tmp_path / "run.sqlite", as_master=True)
    errors = capfd.readouterr().err
    assert status == 128 + signal.SIGKILL
    assert exchanges(capture) == []
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
    status, *_ = run.run(command, output=tmp_path / "run.sqlite")
    out, errors = capfd.readouterr()
    assert (status, out) == (1, f"{disabled}\n")
    assert f"puppet-inspector: the agent printed: {disabled}\n  meaning: Somebody or something disabled" in errors
    assert "enable it: `puppet agent --enable`. 2. On the node, run it: `puppet agent -t`." in errors
    assert f"puppet-inspector: in {place.path}: crl.pem is not a valid CRL" in errors
    assert "the proxy received nothing" not in errors


@pytest.mark.slow
@pytest.mark.parametrize("later", [6, -6])
def test_the_clock_comes_before_the_certificate(
    master: LabMaster,
    install: Install,
    place: pki.SslDirPaths,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    later: int,
) -> None:
    """With a wrong clock nothing is deleted, neither by what `run` prints nor by what `doctor` prints later."""
    confdir = configure(tmp_path / "conf", place, master.address)
    printed = f"Error: The certificate 'CN={NAME}' has expired, verify time is synchronized"
    program = install(f'#!/bin/sh\n[ "$1" = --version ] && exit\necho "{printed}" >&2\nexit 1\n')
    now, shift = time.time, later * 365.25 * 86400
    monkeypatch.setattr("time.time", lambda: now() + shift)
    monkeypatch.setattr("inspector.clocks.http_date", lambda _: now())
    capture = tmp_path / "run.sqlite"
    status, *_ = run.run([str(program), "agent", "-t", "--confdir", str(confdir)], output=capture)
    errors = capfd.readouterr().err
    direction = "behind" if later > 0 else "ahead of"
    clock = f"puppet-inspector: the clocks differ: the master's clock is 6 years {direction} this host's"
    assert status == 1
    assert printed in errors
    assert errors.index(clock) < errors.index("the agent printed: ")
    assert "timedatectl set-ntp true" in errors
    assert main(["doctor", str(capture)]) == 1
    later_on = capfd.readouterr().out
    assert f"the master's clock is 6 years {direction} the node's" in later_on
    for text in (errors, later_on):
        assert not any(words in text for words in ("ca clean", "ssl clean", "-delete", "rm "))


@pytest.mark.slow
def test_a_full_disk_is_named(
    install: Install, confdir: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    printed = "Error: Could not save last run local report: No space left on device @ rb_sysopen - /x/last_run.yaml"
    program = install(f'#!/bin/sh\n[ "$1" = --version ] && exit\necho "{printed}" >&2\nexit 0\n')
    command = [str(program), "agent", "-t", "--confdir", str(confdir), "--vardir", str(tmp_path / "var")]
    status, *_ = run.run(command, output=tmp_path / "run.sqlite")
    errors = capfd.readouterr().err
    assert status == 0
    assert f"the agent could not write (Could not save last run local report): of the disk with {tmp_path} " in errors
    assert f"`df -h {tmp_path}; df -i {tmp_path}`" in errors


def test_a_full_disk_of_the_master_is_another_one(confdir: Path) -> None:
    conf = puppetconf.read(confdir=confdir)
    assert [*run._disk(conf, "Error: Error 500 on SERVER: Server Error: No space left on device @ x")] == []
    assert [*run._disk(conf, "Error: all is well")] == []
    assert len([*run._disk(conf, "x\n\x1b[1;31mError: No space left on device @ x\x1b[0m")]) == 2


@pytest.mark.slow
def test_a_closed_port_is_said_once(
    install: Install, place: pki.SslDirPaths, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = closed.getsockname()
    confdir = configure(tmp_path / "conf", place, address)
    command = ["env", "STATUS=1", str(install(THROUGH_PROXY)), "agent", "-t", "--confdir", str(confdir)]
    capture = tmp_path / "run.sqlite"
    assert run.run(command, output=capture, confdir=str(confdir))[0] == 1
    error, origin = capfd.readouterr().err.splitlines()
    assert f"Tunnel connection failed: 502 Failed to open TCP connection to {NAME}:{address[1]}" in error
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


def _mistake(*command: str, confdir: str | None = None) -> InspectorError:
    with pytest.raises(InspectorError) as error:
        run.run(command, output=Path("/proc/never/never.sqlite"), confdir=confdir)
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


@pytest.mark.slow
def test_a_file_that_is_not_a_program(
    install: Install, confdir: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = install("\0")
    status, *_ = run.run([str(program), "agent", "-t"], output=tmp_path / "run.sqlite", confdir=str(confdir))
    assert status == launched.CANNOT_RUN
    assert f"puppet-inspector: {program} cannot be run: Exec format error." in capfd.readouterr().err


# -- which way --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "version", "why"),
    [
        ("puppet agent -t", (7, 23), ""),
        ("puppet agent -t", (6, 4), ""),
        ("puppet agent -t", None, ""),
        ("puppet agent -t", (6, 3), "6.3 is older than 6.4"),
        ("puppet agent -t", (3, 8), "3.8 is older than 6.4"),
        ("puppet device --target x", (7, 23), ""),
        ("puppet device --target=x", (7, 23), ""),
        ("puppet device -v", (7, 23), "puppet device without --target"),
    ],
)
def test_who_can_use_an_http_proxy_does(command: str, version: tuple[int, int] | None, why: str) -> None:
    found = run._why_as_master(command.split(), version)
    assert found.startswith(why)
    assert bool(found) is bool(why)


def test_the_version_is_asked_of_puppet_only(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    program = install("#!/bin/sh\necho 'a warning'\necho 3.8.7\n")
    assert run._version(["env", str(program), "agent", "-t"]) == (3, 8)
    # A script is never asked: it might run the agent. The puppet on the PATH is.
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    assert run._version(["/bin/false"]) == (3, 8)
    install("#!/bin/sh\nexit 1\n")
    assert run._version(["/bin/false"]) is None


@pytest.mark.parametrize(
    ("command", "local"),
    [
        ("puppet ssl clean", True),
        ("env A=b puppet config print", True),
        ("puppet ssl bootstrap", False),
        ("puppet agent -t", False),
        ("/opt/run-agent config", False),
    ],
)
def test_a_command_that_asks_no_server_is_run_as_it_is(command: str, local: bool) -> None:
    assert run._asks_nobody(command.split()) is local


def test_further_servers_are_for_an_http_proxy(install: Install, confdir: Path) -> None:
    with pytest.raises(InspectorError, match="--also is for"):
        run.run(
            [str(install("")), "agent", "-t"], output=Path("/proc/never/never.sqlite"), confdir=str(confdir),
            also=["pdb:8081"], as_master=True,
        )  # fmt: skip


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
    run._announce(f"{UNREAD}forge.example:443, none of the node's Puppet servers")
    run._announce("-- cannot write the capture (only 1 kB free): keeping records in memory, retrying")
    assert capsys.readouterr().err == (
        "puppet-inspector: fault: answered 500: GET / of web1.example (192.0.2.7)\n"
        "puppet-inspector: passed on unread: forge.example:443, none of the node's Puppet servers\n"
        "puppet-inspector: cannot write the capture (only 1 kB free): keeping records in memory, retrying\n"
    )
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
    confdir = configure(tmp_path / "conf", place, ("m.example", 1), more)
    conf = puppetconf.read(None, confdir)
    (note,) = run._origins(conf, ["puppet", "agent", *command], given, ("m.example", 1), {"T19", None}, as_master=False)
    masters = "a.example:1 or b.example:1" if more else "m.example:1"
    assert note == f"in this run the master is {masters}: {origin.replace('CONF', str(confdir / 'puppet.conf'))}"


def test_a_cause_about_an_identity_names_the_ssldir(place: pki.SslDirPaths, confdir: Path) -> None:
    conf = puppetconf.read(None, confdir)
    (note,) = run._origins(conf, ["puppet"], None, ("m.example", 1), {"T23"}, as_master=True)
    assert note == (
        f"in this run puppet_identity, puppet_ca and puppet_crl are the ssldir {place.path}: "
        f"ssldir in {confdir / 'puppet.conf'}"
    )
    assert list(run._origins(conf, ["puppet"], None, ("m.example", 1), {"S01", None}, as_master=True)) == []
    assert list(run._origins(conf, ["puppet"], None, ("m.example", 1), {"T23"}, as_master=False)) == []
