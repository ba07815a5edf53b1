"""Starting the addon: zero configuration, the user's own mode, other tools of mitmproxy, and every mistake."""

from __future__ import annotations

import errno
import os
import pty
import signal
import socket
import subprocess
import sys
import termios
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inspector import installation
from inspector.errors import InspectorError
from inspector.host import pki
from inspector.model import Exchange
from inspector.proxy.launcher import Proxy
from tests.e2e.wire import Peer
from tests.support import places, proxies
from tests.support.proxies import records
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from inspector.lab import Lab
    from tests.support.proxies import Proxied

ROOT = places.ROOT
NAME = "web1.lab.example"
NODE = f"/puppet/v3/node/{NAME}?environment=production"


def mitmproxy(tool: str, arguments: list[str], **options: str | Path) -> list[str]:
    """The command of one of mitmproxy's tools with the addon."""
    code = f"import sys; from mitmproxy.tools.main import {tool}; sys.exit({tool}())"
    command = [sys.executable, "-c", code, "-s", str(installation.addon()), *arguments]
    return [*command, *(word for name, value in options.items() for word in ("--set", f"{name}={value}"))]


def start(lab: Lab, tmp_path: Path, **options: str | Path) -> subprocess.CompletedProcess[str]:
    """mitmdump with a mistake: it ends by itself."""
    given = {**proxies.options(lab, tmp_path / "c.sqlite"), "confdir": tmp_path / "mitm", **options}
    return subprocess.run(mitmproxy("mitmdump", [], **given), capture_output=True, text=True, timeout=300, check=False)


def mistakes(lab: Lab, tmp_path: Path) -> dict[str, dict[str, str | Path]]:
    """What a user can get wrong, and how."""
    other = lab.ca.enrol(tmp_path / "other", "other.example")
    place = pki.SslDirPaths(lab.proxy_ssldir, lab.proxy_name)
    mixed, directory = tmp_path / "mixed.pem", tmp_path / "directory"
    mixed.write_bytes(other.key.read_bytes() + place.certificate.read_bytes())
    directory.mkdir()
    older, text = tmp_path / "older.sqlite", tmp_path / "text.sqlite"
    text.write_text("no capture\n" * 300)
    import sqlite3

    with closing(sqlite3.connect(older)) as db:
        db.executescript("PRAGMA application_id=1346982736; PRAGMA user_version=99; CREATE TABLE t (x);")
    return {
        "no certificate": {"puppet_cert": tmp_path / "missing.pem"},
        "not its key": {"puppet_cert": mixed},
        "no CA": {"puppet_ca": tmp_path / "missing.pem"},
        "no identity": {"puppet_identity": "borrow:me"},
        "no keys": {"puppet_identity": f"keys:{tmp_path / 'missing'}"},
        "no CA directory": {"puppet_identity": f"mint:{directory}"},
        "no address": {"puppet_listen": "127.0.0.1:http"},
        "no master": {"puppet_master": "host:99999"},
        "no SQLite": {"puppet_capture": text},
        "newer capture": {"puppet_capture": older},
        "an option that is gone": {"puppet_lean": "true"},
        "a balancer": {"puppet_proxy_protocol": "127.0.0.1"},
    }


def test_each_mistake_is_one_line_and_status_1(lab: Lab, tmp_path: Path) -> None:
    for name, options in mistakes(lab, tmp_path).items():
        ended = start(lab, tmp_path, **options)
        output = ended.stdout + ended.stderr
        assert ended.returncode == 1, (name, output)
        assert "Traceback" not in output, (name, output)
        result = [line for line in output.splitlines() if "Loading script" not in line and "exiting" not in line]
        assert len(result) == 1, (name, result)


def test_a_port_in_use(lab: Lab, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = start(lab, tmp_path, puppet_listen=f"127.0.0.1:{port}")
    assert ended.returncode == 1
    assert f"Cannot listen on 127.0.0.1:{port}" in ended.stdout + ended.stderr


@pytest.mark.both_roads
def test_the_next_free_port(lab: Lab, proxied: Proxied, tmp_path: Path) -> None:
    with proxied(lab) as first, proxied(lab, puppet_capture=tmp_path / "second.sqlite") as second:
        assert second.address[1] > first.address[1]


@pytest.mark.both_roads
@pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="this machine has no IPv6")
def test_on_an_ipv6_address(lab: Lab, proxied: Proxied) -> None:
    place = lab.agent(NAME, enrolled=True).place
    with proxied(lab, puppet_listen="[::1]") as proxy:
        assert proxy.address[0] == "::1"
        assert Peer.of(proxy.address, lab.proxy_name, place).ask("GET", NODE).status == 200


def test_zero_configuration(lab: Lab, tmp_path: Path, capture: Path) -> None:
    """puppet.conf alone: this host's own certificate is shown, and lent to this host's own agent."""
    host, port = lab.master_address
    home = tmp_path / "home"
    confdir = home / ".puppetlabs" / "etc" / "puppet"
    confdir.mkdir(parents=True)
    place = lab.ca.enrol(confdir / "ssl", NAME)
    (confdir / "puppet.conf").write_text(f"[main]\ncertname = {NAME}\n[agent]\nserver = {host}\nserverport = {port}\n")
    code = (
        "import os, sys; from inspector.host import puppetconf; puppetconf._PLACES = puppetconf._PLACES[2:]; "
        "from mitmproxy.tools.main import mitmdump; mitmdump()"
    )
    # The lab's master has no address in its certificate, so its name must be said; nothing else is.
    command = [sys.executable, "-c", code, "-s", str(installation.addon()), "--set", f"confdir={tmp_path / 'mitm'}"]
    command += ["--set", f"puppet_master_name={lab.master_name}"]
    with subprocess.Popen(
        command, cwd=tmp_path, env={**os.environ, "HOME": str(home)}, stdout=subprocess.PIPE, text=True
    ) as proxy:
        assert proxy.stdout
        lines = [proxy.stdout.readline().rstrip() for _ in range(9)]
        try:
            listens = next(line for line in lines if "listens on" in line).split()[-1]
            address = (listens.rpartition(":")[0], int(listens.rpartition(":")[2]))
            assert Peer.of(address, NAME, place).ask("GET", NODE).status == 200
        finally:
            proxy.terminate()
    assert f"puppet agent -t --server {NAME} --serverport {address[1]}" in "\n".join(lines)
    assert lab.master.received[0].certname == NAME
    (recorded,) = (tmp_path / "captures").glob("*.sqlite")
    assert recorded.stat().st_mode & 0o777 == 0o600
    assert recorded.parent.stat().st_mode & 0o777 == 0o700
    assert len(records(recorded)) == 1


def test_the_users_own_mode_is_left_alone(lab: Lab, tmp_path: Path, capture: Path) -> None:
    place = lab.agent(NAME, enrolled=True).place
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    host, master = lab.master_address
    given = {**proxies.options(lab, capture), "confdir": tmp_path / "mitm"}
    del given["puppet_master"], given["puppet_listen"]
    arguments = ["--mode", f"reverse:https://{host}:{master}@127.0.0.1:{port}"]
    with subprocess.Popen(mitmproxy("mitmdump", arguments, **given), stdout=subprocess.PIPE, text=True) as proxy:
        assert proxy.stdout
        try:
            lines = [proxy.stdout.readline() for _ in range(6)]
            assert f"listens on  127.0.0.1:{port}" in "".join(lines)
            assert Peer.of(("127.0.0.1", port), lab.proxy_name, place).ask("GET", NODE).status == 200
        finally:
            proxy.terminate()
    assert lab.master.received[0].certname == NAME


@pytest.mark.both_roads
def test_port_8080_serves_nobody_and_may_be_taken(lab: Lab, proxied: Proxied) -> None:
    def is_closed() -> bool:
        with closing(socket.socket()) as peer:
            return peer.connect_ex(("127.0.0.1", 8080)) == errno.ECONNREFUSED

    def taken() -> bool:
        try:
            held.append(socket.create_server(("", 8080)))
        except OSError:
            return False
        return True

    held: list[socket.socket] = []
    # A proxy that another test starts opens it for some milliseconds, too.
    with proxied(lab):
        assert eventually(is_closed)
    assert eventually(taken)
    # PuppetDB listens there on many masters.
    with held[0], proxied(lab) as proxy:
        place = lab.agent(NAME, enrolled=True).place
        assert Peer.of(proxy.address, lab.proxy_name, place).ask("GET", NODE).status == 200


@pytest.mark.parametrize("tool", ["mitmproxy", "mitmweb"])
def test_under_mitmproxys_other_tools(tool: str, lab: Lab, tmp_path: Path, capture: Path) -> None:
    place = lab.agent(NAME, enrolled=True).place
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    given = {**proxies.options(lab, capture), "confdir": tmp_path / "mitm", "puppet_listen": f"127.0.0.1:{port}"}
    arguments = ["--set", "web_open_browser=false", "--set", "web_port=0"] if tool == "mitmweb" else []
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    with subprocess.Popen(
        mitmproxy(tool, arguments, **given), stdin=theirs, stdout=theirs, stderr=theirs,
        env={**os.environ, "TERM": "xterm"}, start_new_session=True,
    ) as proxy:  # fmt: skip
        os.close(theirs)
        try:
            wait_for(port, ours)
            assert Peer.of(("127.0.0.1", port), lab.proxy_name, place).ask("GET", NODE).status == 200
            time.sleep(1)
        finally:
            drain(ours)
            proxy.send_signal(signal.SIGTERM)
            until = time.monotonic() + 300
            while proxy.poll() is None and time.monotonic() < until:
                drain(ours)
            proxy.kill()
    os.close(ours)
    assert [type(record) for record in records(capture)] == [Exchange]


def wait_for(port: int, terminal: int) -> None:
    until = time.monotonic() + 300
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=300).close()
        except OSError:
            drain(terminal)
        else:
            return
    pytest.fail("the proxy did not listen")


def drain(terminal: int) -> None:
    """Read what a full-screen program drew, so that it can go on."""
    import select

    while select.select([terminal], [], [], 0.05)[0]:
        try:
            if not os.read(terminal, 65536):
                return
        except OSError:
            return


def test_a_proxy_that_cannot_start_says_why(lab: Lab, capture: Path) -> None:
    options = {**proxies.options(lab, capture), "puppet_identity": "borrow:me"}
    with pytest.raises(InspectorError, match="puppet_identity is 'borrow:me'"), Proxy(options):
        pass


INTERRUPTED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a script's shell starts what is in the background
from inspector.cli import commands, main
def interrupting(function):
    def wrapper(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        return function(*arguments)
    return wrapper
if sys.argv[1] == "import":
    commands.importlib.import_module = interrupting(commands.importlib.import_module)
else:
    os.execv = interrupting(os.execv)
    from inspector.proxy.workers import Workers
    Workers.serve = interrupting(Workers.serve)
sys.exit(main.main(sys.argv[2:]))
"""


@pytest.mark.parametrize(
    ("moment", "workers", "status"), [("import", 1, 130), ("start", 1, 0), ("start", 2, 0)],
)  # fmt: skip
def test_ctrl_c_during_the_start_ends_the_proxy(
    moment: str, workers: int, status: int, lab: Lab, tmp_path: Path
) -> None:
    """An import may swallow the exception of a signal, and the server forgets what its predecessor did not handle:
    then the proxy would go on, and nobody would end it."""
    given = (f"{name}={value}" for name, value in proxies.options(lab, tmp_path / "c.sqlite").items())
    command = [sys.executable, "-c", INTERRUPTED, moment, "proxy", "--workers", str(workers)]
    command += [word for option in given for word in ("--set", option)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (ended.returncode, ended.stderr) == (status, "")


def test_a_signal_while_a_proxy_starts_leaves_none_behind(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[str]] = []
    original = subprocess.Popen

    def interrupted(*arguments: object, **options: object) -> subprocess.Popen[str]:
        started.append(original(*arguments, **options))  # type: ignore[call-overload]
        signal.raise_signal(signal.SIGINT)
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt), Proxy(proxies.options(lab, tmp_path / "c.sqlite"), own=True):
        pass
    (process,) = started
    assert process.returncode is not None
