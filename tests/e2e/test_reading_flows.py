"""mitmproxy's tools with the addon on a host without Puppet.

Flows that are read from a file have their bodies, the view ``puppet``, and as marks and comments what ``check`` finds.
Nothing is proxied, recorded or sent.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from inspector import installation
from inspector.formats.importing import load
from inspector.formats.mitm_flows import export_flows
from inspector.model import Exchange
from tests.e2e.wire import Peer
from tests.support import proxies
from tests.support.proxies import exchanges, records
from tests.support.recorded import SAMPLES, records_of
from tests.support.waiting import PATIENCE, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inspector.lab import Lab
    from tests.conftest import Run

RUN = (
    "from inspector.host import puppetconf; puppetconf._PLACES = puppetconf._PLACES[2:]; "
    "from mitmproxy.tools.main import {0}; {0}()"
)
"""Starts a tool that finds Puppet's files only in the user's home directory, whatever this machine has."""
PASSWORD = "mitmweb's password"
PROBE = """
import hashlib, json
from pathlib import Path

class Probe:
    def __init__(self):
        self.flows = []

    def request(self, flow):
        self.flows.append(flow)

    def done(self):
        sides = lambda flow: [side and [hashlib.sha256(side.raw_content).hexdigest(), bool(side.stream)]
                              for side in (flow.request, flow.response)]
        facts = [[flow.request.path, flow.request.timestamp_start, flow.marked, flow.comment, *sides(flow)]
                 for flow in self.flows]
        Path({path!r}).write_text(json.dumps(facts))

addons = [Probe()]
"""
"""A script that writes what mitmdump has of the flows at its end: mitmdump itself shows no marks."""
MARKS = {"🔴": ":red_circle:", "⚠": ":warning:", "": ""}
"""What mitmweb and mitmproxy show for a mark."""


class Shown(NamedTuple):
    """A flow as a tool has it."""

    target: str
    began: float
    marked: str
    comment: str
    sent: str
    received: str | None
    """SHA-256 of the bodies; None without a response."""


class Home:
    """The host of a user, with Puppet in the home directory or without it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.work = path / "work"
        self.work.mkdir(parents=True)
        self.output = path / "output"
        """What mitmweb printed."""
        self.confdir = path / ".puppetlabs" / "etc" / "puppet"

    def command(self, tool: str, *arguments: str, **options: str | Path) -> list[str]:
        """Return the command of one of mitmproxy's tools with the addon."""
        given: dict[str, str | Path] = {"confdir": self.path / "mitm", **options}
        words = [word for name, value in given.items() for word in ("--set", f"{name}={value}")]
        return [sys.executable, "-c", RUN.format(tool), "-s", str(installation.addon()), *arguments, *words]

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "HOME": str(self.path), "TMPDIR": str(self.path)}

    def dump(self, *arguments: str, **options: str | Path) -> subprocess.CompletedProcess[str]:
        """Run mitmdump to its end."""
        return subprocess.run(
            self.command("mitmdump", *arguments, **options), cwd=self.work, env=self.environment, check=False,
            capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip

    @property
    def traces(self) -> list[str]:
        """What a tool left behind, apart from mitmproxy's own files."""
        ours = [*self.work.rglob("*"), *self.path.glob("puppet-inspector-*"), *self.path.rglob("*.sqlite")]
        return [str(path.relative_to(self.path)) for path in ours]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A host without Puppet."""
    return Home(tmp_path / "home")


class Sample(NamedTuple):
    """A sample as a flow file, and what ``check`` finds in it."""

    flows: Path
    exchanges: list[Exchange]
    findings: dict[int, list[tuple[str, str, str]]]
    """By record: rule, severity and message of each."""

    @property
    def rules(self) -> set[str]:
        return {rule for findings in self.findings.values() for rule, _, _ in findings}

    @property
    def expected(self) -> list[Shown]:
        """What every tool must have."""
        return sorted(
            Shown(
                record.request.target,
                record.request.started or 0,
                self._mark(record.seq),
                "; ".join(f"{rule}: {message}" for rule, _, message in self.findings[record.seq]),
                hashlib.sha256(record.request.body).hexdigest(),
                hashlib.sha256(record.response.body).hexdigest() if record.response else None,
            )
            for record in self.exchanges
        )

    def _mark(self, seq: int) -> str:
        severities = {severity for _, severity, _ in self.findings[seq]}
        return "" if not severities else ":red_circle:" if "error" in severities else ":warning:"


def made(path: Path, run: Run, folder: Path) -> Sample:
    """Export a sample as flows; import these again and check them."""
    flows, capture = folder / "flows.mitm", folder / "imported" / "flows.sqlite"
    export_flows(records_of(path), flows)
    findings: dict[int, list[tuple[str, str, str]]] = defaultdict(list)
    capture.parent.mkdir()
    if not load([flows], capture).kinds:
        return Sample(flows, [], findings)
    _, out, _ = run("check", capture, "--json")
    for found in json.loads(out)["findings"]:
        for seq in found["seqs"]:
            findings[seq].append((found["rule"], found["severity"], found["message"]))
    assert findings
    return Sample(flows, exchanges(capture), findings)


@pytest.fixture(params=SAMPLES, ids=[path.stem for path in SAMPLES])
def sample(request: pytest.FixtureRequest, run: Run, tmp_path: Path) -> Sample:
    """Each sample."""
    return made(request.param, run, tmp_path)


@pytest.fixture
def first_run(run: Run, tmp_path: Path) -> Sample:
    """A sample with a bootstrap and a run."""
    return made(next(path for path in SAMPLES if path.stem == "first-run"), run, tmp_path)


# -- mitmdump -------------------------------------------------------------------------------------------


def test_mitmdump_reads(sample: Sample, home: Home, tmp_path: Path) -> None:
    facts = tmp_path / "facts.json"
    (tmp_path / "probe.py").write_text(PROBE.format(path=str(facts)))
    done = home.dump("-r", str(sample.flows), "-s", str(tmp_path / "probe.py"), flow_detail="3")
    output = done.stdout + done.stderr
    assert (done.returncode, "Traceback" in output) == (0, False), output
    assert output.count("nothing is proxied") == 1
    found = json.loads(facts.read_text())
    assert (
        sorted(
            Shown(target, began, marked, comment, sent[0], received and received[0])
            for target, began, marked, comment, sent, received in found
        )
        == sample.expected
    )
    assert not any(side[1] for fact in found for side in fact[4:] if side)
    # Its flow lines, the view, and what `check` prints.
    assert output.count("<< 200 OK") == sum(
        record.response is not None and record.response.status == 200 for record in sample.exchanges
    )
    assert ("\n    Certificates\n" in output) == any("/certificate/" in flow.target for flow in sample.expected)
    for rule in sample.rules:
        assert f" {rule} " in output
    assert "listening" not in output
    assert home.traces == []


def test_mitmdump_without_anything_to_read_does_not_start(home: Home) -> None:
    done = home.dump()
    assert done.returncode == 1
    assert "This host has no puppet.conf" in done.stdout + done.stderr
    assert home.traces == []


@pytest.mark.parametrize("given", ["puppet_identity", "puppet_master", "mode"])
def test_who_wants_a_proxy_without_a_ca_bundle_gets_an_error(given: str, first_run: Sample, home: Home) -> None:
    arguments = ["--mode", "reverse:https://puppet.example:8140@127.0.0.1:0"] if given == "mode" else []
    options = {} if given == "mode" else {given: "none"}
    home.confdir.mkdir(parents=True)
    (home.confdir / "puppet.conf").touch()
    done = home.dump("-r", str(first_run.flows), *arguments, **options)
    output = done.stdout + done.stderr
    assert done.returncode == 1
    assert "Cannot read the CA bundle" in output
    assert "Run the agent once, or name the files with puppet_ssldir or puppet_ca." in output
    assert "nothing is proxied" not in output
    assert home.traces == []


def test_a_broken_rules_file_is_an_error(first_run: Sample, home: Home, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("rules: {B99: off}\n")
    done = home.dump("-r", str(first_run.flows), puppet_rules=tmp_path / "rules.yaml")
    assert done.returncode == 1
    assert "B99" in done.stdout + done.stderr


def test_a_file_that_is_none_of_flows_is_an_error_of_mitmproxy(home: Home, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no flows\n")
    done = home.dump("-r", str(tmp_path / "text"))
    assert "internal error" not in done.stdout + done.stderr
    assert home.traces == []


def test_on_an_enrolled_host_a_file_is_read_just_the_same(lab: Lab, first_run: Sample, home: Home) -> None:
    home.confdir.mkdir(parents=True)
    lab.ca.enrol(home.confdir / "ssl", "web1.lab.example")
    (home.confdir / "puppet.conf").write_text("[main]\ncertname = web1.lab.example\nserver = 127.0.0.1\n")
    (home.path / "rules.yaml").write_text("rules: {B01: off}\n")
    done = home.dump("-r", str(first_run.flows), puppet_rules=home.path / "rules.yaml")
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    assert "nothing is proxied" in output
    assert output.count("<< 200 OK") > 1  # mitmdump's own lines
    assert " B01 " not in output
    for rule in first_run.rules - {"B01"}:
        assert f" {rule} " in output
    assert home.traces == []


# -- mitmweb --------------------------------------------------------------------------------------------


class Web:
    """mitmweb, as its page asks it."""

    def __init__(self, port: int) -> None:
        self._port = port

    def ask(self, path: str, body: bytes | None = None, method: str | None = None, kind: str = "") -> bytes:
        """Return the answer to a request; raises OSError."""
        token = "a" * 32
        headers = {
            "Authorization": f"Bearer {PASSWORD}", "Cookie": f"_mitmproxy_xsrf={token}", "X-XSRFToken": token,
            "Content-Type": kind or "application/json",
        }  # fmt: skip
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}{path}", body, headers, method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310
            content: bytes = answer.read()
        return content

    def put(self, path: str, value: object) -> None:
        self.ask(path, json.dumps(value).encode(), "PUT")

    @property
    def flows(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.ask("/flows"))
        return found

    @property
    def events(self) -> str:
        return "\n".join(event["message"] for event in json.loads(self.ask("/events")))

    def run(self, command: str) -> dict[str, Any]:
        """Run a command of mitmproxy."""
        answer: dict[str, Any] = json.loads(self.ask(f"/commands/{command}", b'{"arguments": []}', "POST"))
        return answer

    def open(self, flows: Path) -> None:
        """Open a file as the page does."""
        body = (
            b'--x\r\nContent-Disposition: form-data; name="file"; filename="flows"\r\n\r\n'
            + flows.read_bytes() + b"\r\n--x--\r\n"
        )  # fmt: skip
        self.ask("/flows/dump", body, "POST", "multipart/form-data; boundary=x")

    def shown(self) -> list[Shown]:
        """Return the flows."""
        return sorted(
            Shown(
                flow["request"]["path"],
                flow["request"]["timestamp_start"],
                MARKS[flow["marked"]],
                flow["comment"],
                flow["request"]["contentHash"],
                flow["response"]["contentHash"] if flow.get("response") else None,
            )
            for flow in self.flows
        )

    def body(self, flow: dict[str, Any], side: str) -> bytes:
        """Return a body, without its content encoding."""
        return self.ask(f"/flows/{flow['id']}/{side}/content.data")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def mitmweb(home: Home, *arguments: str, **options: str | Path) -> Iterator[Web]:
    """mitmweb with the addon, once it answers."""
    port = free_port()
    given = {"web_password": PASSWORD, "web_open_browser": "false", "web_port": str(port), **options}
    with (
        home.output.open("w") as output,
        subprocess.Popen(
            home.command("mitmweb", *arguments, **given), cwd=home.work, env=home.environment,
            stdout=output, stderr=subprocess.STDOUT,
        ) as process,
    ):  # fmt: skip
        web = Web(port)

        def answers() -> bool:
            with contextlib.suppress(OSError):
                return "puppet-inspector" in web.events
            assert process.poll() is None
            return False

        try:
            assert eventually(answers)
            yield web
        finally:
            process.terminate()
            process.wait(PATIENCE)


def test_mitmweb_reads(sample: Sample, home: Home) -> None:
    with mitmweb(home, "-r", str(sample.flows)) as web:
        if sample.exchanges:
            assert eventually(lambda: "flows were read" in web.events)
        assert web.shown() == sample.expected
        for flow in web.flows:
            for side in ("request", "response"):
                assert bool(web.body(flow, side)) == bool(flow[side]["contentLength"])
            view = json.loads(web.ask(f"/flows/{flow['id']}/response/content/auto.json"))
            if "/catalog/" in flow["request"]["path"]:
                assert view["view_name"] == "Puppet"
                assert view["text"].startswith(("Catalog\n", "Error\n"))
            named = json.loads(web.ask(f"/flows/{flow['id']}/response/content/puppet.json"))
            assert named["view_name"] == "Puppet"
        assert json.loads(web.ask("/state"))["servers"] == {}
        assert "internal error" not in web.events
        assert web.events.count("nothing is proxied") == 1
    assert "Web server listening at " in home.output.read_text()
    assert home.traces == []


def test_mitmweb_opens_a_file_and_has_the_commands(first_run: Sample, home: Home) -> None:
    with mitmweb(home) as web:
        assert "there is no CA bundle" in web.events
        assert "Nothing has been recorded or read" in web.run("puppet.check")["error"]
        web.open(first_run.flows)
        assert web.run("puppet.runs")["value"] is None
        assert eventually(lambda: "node1.example  7.23.0   production   complete" in web.events)
        assert web.shown() == first_run.expected
        web.run("puppet.check")
        assert eventually(lambda: all(f" {rule} " in web.events for rule in first_run.rules))
        # Opened again they are the same flows, not as many more.
        before = web.events.count("flows were read")
        web.open(first_run.flows)
        assert eventually(lambda: web.events.count("flows were read") > before)
        assert web.shown() == first_run.expected
    assert home.traces == []


def test_without_a_proxy_no_client_is_served_and_nothing_is_sent(lab: Lab, first_run: Sample, home: Home) -> None:
    host, master = lab.master_address
    place = lab.agent("web1.lab.example", enrolled=True).place
    with mitmweb(home, "-r", str(first_run.flows)) as web:
        assert eventually(lambda: "flows were read" in web.events)
        # A user switches mitmproxy's own proxy on.
        for mode in (f"reverse:https://{host}:{master}", "regular"):
            port = free_port()
            web.put("/options", {"server": True, "mode": [f"{mode}@127.0.0.1:{port}"], "ssl_insecure": True})
            assert eventually(lambda port=port: is_open(port))  # type: ignore[misc]
            with pytest.raises(OSError, match=r"EOF|reset|closed"):
                Peer(("127.0.0.1", port), lab.master_name, None, (place.certificate, place.key)).ask("GET", "/")
            assert answer_to(port, f"GET http://{host}:{master}/ HTTP/1.1\r\nHost: {host}\r\n\r\n") == b""
        # A user repeats a request, and it goes to the lab's master.
        flow = web.flows[0]["id"]
        for scheme in ("https", "http"):
            web.put(f"/flows/{flow}", {"request": {"host": host, "port": master, "scheme": scheme}})
            web.ask(f"/flows/{flow}/replay", b"", "POST")
            assert eventually(lambda: "only read" in str(web.flows[0].get("error")))
        assert "internal error" not in web.events
    assert lab.master.received == []
    assert home.traces == []


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def answer_to(port: int, request: str) -> bytes:
    """Return what comes back over plain TCP."""
    with contextlib.closing(connected(port)) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(request.encode())
        return connection.recv(100)
    return b""


def is_open(port: int) -> bool:
    with contextlib.suppress(OSError), contextlib.closing(connected(port)):
        return True
    return False


def test_beside_a_proxy_flows_are_read_and_not_recorded(
    lab: Lab, first_run: Sample, home: Home, tmp_path: Path, capture: Path
) -> None:
    """Also in mitmweb's reverse mode: what is read is shown whole, what passes is recorded."""
    port = free_port()
    place = lab.agent("web1.lab.example", enrolled=True).place
    given = {**proxies.options(lab, capture), "puppet_listen": f"127.0.0.1:{port}"}
    with mitmweb(home, "-r", str(first_run.flows), **given) as web:
        assert eventually(lambda: "flows were read" in web.events)
        assert web.shown() == first_run.expected
        answer = Peer.of(("127.0.0.1", port), lab.proxy_name, place).ask(
            "GET", "/puppet/v3/node/web1.lab.example?environment=production"
        )
        assert answer.status == 200
        assert eventually(lambda: len(web.flows) == len(first_run.exchanges) + 1)
        web.open(first_run.flows)
        assert eventually(lambda: web.events.count("flows were read") == 2)
        assert web.shown() == first_run.expected
    assert "Web server listening at " in home.output.read_text()  # with its token
    (record,) = records(capture)
    assert isinstance(record, Exchange)
    assert record.request.path == "/puppet/v3/node/web1.lab.example"


# -- mitmproxy ------------------------------------------------------------------------------------------


class Terminal:
    """A terminal with a program in it."""

    def __init__(self, folder: Path) -> None:
        self._tmux = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]

    def start(self, command: list[str], home: Home) -> None:
        """Start the program; the terminal stays when it ends."""
        shell = f"cd {shlex.quote(str(home.work))}; {shlex.join(command)}; echo ended with $?; sleep {PATIENCE}"
        subprocess.run(
            [*self._tmux, "new-session", "-d", "-x", "180", "-y", "50", f"sh -c {shlex.quote(shell)}"],
            env={**home.environment, "LC_ALL": "C.UTF-8"}, check=True, timeout=PATIENCE,
        )  # fmt: skip

    def press(self, *keys: str) -> None:
        subprocess.run([*self._tmux, "send-keys", *keys], check=True, timeout=PATIENCE)

    @property
    def text(self) -> str:
        done = subprocess.run([*self._tmux, "capture-pane", "-p"], check=True, timeout=PATIENCE, capture_output=True)
        return done.stdout.decode()

    def shows(self, *texts: str) -> bool:
        """Whether it shows all of these in good time."""
        return eventually(lambda: all(text in self.text for text in texts))

    def close(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], check=False, timeout=PATIENCE)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """A terminal. Where tests are required to run (``tests/real/conftest.py``) it must be there."""
    if shutil.which("tmux") is None:
        reason = "tmux is not installed (apt-get install tmux)"
        if os.environ.get("PUPPET_INSPECTOR_REAL") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    opened = Terminal(tmp_path)
    try:
        yield opened
    finally:
        opened.close()


def test_mitmproxy_reads_and_loads(terminal: Terminal, run: Run, home: Home, tmp_path: Path) -> None:
    two = made(next(path for path in SAMPLES if path.stem == "mismatched-key"), run, tmp_path)
    terminal.start(home.command("mitmproxy", "-r", str(two.flows)), home)
    assert terminal.shows("/certificate_request/", "🔴"), terminal.text
    assert terminal.text.count("🔴") == 2
    terminal.press("Enter")
    assert terminal.shows("Flow Details")
    terminal.press("Tab")  # from its request to its response
    assert terminal.shows("Puppet", "node1.example already has a signed certificate"), terminal.text
    terminal.press("q")
    terminal.press("L")  # the same file once more
    terminal.press("-l", str(two.flows))
    terminal.press("Enter")
    assert eventually(lambda: terminal.text.count("🔴") == 4), terminal.text
    terminal.press("E")
    assert terminal.shows("nothing is proxied", "2 flows were read; 2 have findings")
    assert "internal error" not in terminal.text
    terminal.press("q")
    terminal.press("q", "y")
    assert terminal.shows("ended with 0")
    assert home.traces == []


def test_an_error_of_mitmproxy_is_readable(terminal: Terminal, home: Home) -> None:
    terminal.start(home.command("mitmproxy", puppet_master="127.0.0.1"), home)
    assert terminal.shows("ended with 1"), terminal.text
    assert "Cannot read the CA bundle" in terminal.text
    assert "puppet_ssldir" in terminal.text


# -- a checkout -----------------------------------------------------------------------------------------


def test_a_checkout_needs_no_installation(tmp_path: Path) -> None:
    """A mitmproxy that does not know the package: `mitmweb -s addons/puppet.py`."""
    libraries = [path for path in sys.path if path.endswith("-packages")]
    code = (
        f"import sys, runpy; sys.path += {libraries!r}; print(runpy.run_path({str(installation.addon())!r})['addons'])"
    )
    # -S: without the files of site-packages that add directories to the path.
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path,
        timeout=PATIENCE,
    )  # fmt: skip
    assert "PuppetInspector" in done.stdout, done.stderr
