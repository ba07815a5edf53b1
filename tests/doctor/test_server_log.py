"""``doctor --server-log``: which lines of a master's log are about what failed, and what they decide."""

from __future__ import annotations

import dataclasses
import email.utils
import gzip
import os
from typing import TYPE_CHECKING, Any

import pytest

from inspector import clocks, inputs
from inspector.capture.store import Capture
from inspector.doctor import server_log
from inspector.errors import CaptureError
from inspector.model import Exchange
from tests.support import json_output
from tests.support.captures import save
from tests.support.conversations import START, WAITS, Agent, together
from tests.support.master_logs import logged, write
from tests.support.pages import sample
from tests.support.recorded import records_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.conftest import Run

NAME = "a.example"
CATALOG = f"/puppet/v3/catalog/{NAME}?environment=production"
DENIED = f"Forbidden request: {NAME}(192.0.2.7) access to {CATALOG.partition('?')[0]} (method :post)"
UNREADABLE = "Permission denied - /srv/code/environments/production/modules/locked/metadata.json"
PATTERN = "Invalid pattern 'exit 1' found in /etc/puppet/autosign"


@pytest.fixture(autouse=True)
def no_logs_of_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_log, "PLACES", ())


class Asked:
    """A capture with one failed run, and what doctor says of it with logs."""

    def __init__(self, run: Run, directory: Path, agent: Agent) -> None:
        self.run, self.directory = run, directory
        self.capture = save(directory / "capture.sqlite", *together(agent))
        self.failed = agent.time
        """When the request was made that failed."""

    def log(self, *lines: str, name: str = "puppetserver.log") -> Path:
        return write(self.directory / name, lines)

    def verdict(self, *logs: Path) -> dict[str, Any]:
        given = [word for log in logs for word in ("--server-log", log)]
        _, out, err = self.run("doctor", self.capture, "--json", *given)
        assert "Error" not in err
        verdict: dict[str, Any]
        (verdict,) = json_output.valid("doctor", out)["verdicts"]
        return verdict

    def quoted(self, *lines: str) -> list[str]:
        """The lines that are quoted of a log of these."""
        return [line["text"] for line in self.verdict(self.log(*lines))["server_log"]]

    def text(self, *lines: str) -> str:
        return self.run("doctor", self.capture, "--server-log", self.log(*lines))[1]


def refused(status: int, body: bytes = b"") -> Agent:
    """An agent whose catalog was refused."""
    return Agent().node().plugins().ask("POST", CATALOG, own=True, status=status, body=body)


@pytest.fixture
def failed(run: Run, tmp_path: Path) -> Asked:
    return Asked(run, tmp_path, refused(500, b"Server Error: something failed"))


@pytest.fixture
def waiting(run: Run, tmp_path: Path) -> Asked:
    """Its request waits to be signed."""
    agent = Agent().ca().crl().csr()
    asked = agent.time
    agent.poll()
    for _ in range(2):
        agent.wait(100).csr(status=400, text=WAITS).poll()
    made = Asked(run, tmp_path, agent)
    made.failed = asked
    return made


# -- which lines are quoted -----------------------------------------------------------------------------


def test_the_cause_of_a_failed_request_is_quoted_with_what_it_means(failed: Asked) -> None:
    text = failed.text(
        logged(failed.failed - 60, f"Puppet Server Error: long before on node {NAME}"),
        logged(failed.failed, "Puppet something usual", "INFO"),
        logged(failed.failed, f"Puppet {UNREADABLE} on node {NAME}", zone=2),
        "org/jruby/RubyIO.java:1227:in `sysopen'",
        logged(failed.failed + 60, f"Puppet Server Error: long after on node {NAME}"),
    )
    lines = text.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("  puppetserver.log at "))
    assert lines[at].endswith(f": Puppet {UNREADABLE} on node {NAME}")
    assert lines[at + 1] == "    meaning: A process may not read or write a file."
    fixes = [number for number, line in enumerate(lines) if "fix:" in line]
    assert lines[fixes[0]].startswith("    fix: ")
    assert lines[fixes[1]].startswith("  fix: 1. Correct the code")
    assert "sysopen" not in text
    assert "long" not in text


def test_json_has_it_by_the_masters_clock(failed: Asked) -> None:
    log = failed.log(logged(failed.failed, f"Puppet {UNREADABLE} on node {NAME}", zone=2))
    (line,) = failed.verdict(log)["server_log"]
    assert line["log"] == str(log)
    assert line["level"] == "ERROR"
    assert any("chmod -R a+rX" in (step["command"] or "") for step in line["steps"])
    assert clocks.iso(line["time"]) == pytest.approx(failed.failed, abs=0.001)
    assert "+02:00" in log.read_text()
    assert failed.verdict()["server_log"] == []


def test_another_nodes_lines_are_not_quoted(failed: Asked) -> None:
    at = failed.failed
    mine = f"Puppet broken on node {NAME}"
    assert failed.quoted(
        logged(at, "Puppet broken too on node b.example", thread=1),
        logged(at, f"Puppet broken three on node x{NAME}", thread=2),
        logged(at, f"Puppet broken four on node {NAME}.org", thread=3),
        logged(at, "Puppet broken of nobody", thread=4),
        logged(at, f"Puppet {NAME}-2 is broken, {NAME}_2 and {NAME}.org too", thread=6),
        logged(at, mine, thread=5),
    ) == [mine]  # fmt: skip


def test_without_a_line_that_names_the_node_those_of_the_answers_moment_count(failed: Asked) -> None:
    at = failed.failed
    assert failed.quoted(
        logged(at, "Puppet Server Error: of b on node b.example"),
        logged(at, "only a warning", "WARN"),
        logged(at + 0.02, "The disk is full"),
        logged(at + 7, "later"),
    ) == ["The disk is full"]


def test_a_line_of_the_same_thread_is_about_the_same_request(failed: Asked) -> None:
    at = failed.failed
    lines = [
        logged(at, "Error executing http request", "WARN", thread=7),
        "javax.net.ssl.SSLHandshakeException: PKIX path building failed",
        "\tat java.base/sun.security.ssl.Alert.createSSLException(Alert.java:131)",
        "Caused by: sun.security.validator.ValidatorException: PKIX path building failed",
        "Caused by: a.third.One: not quoted",
        logged(at, f"Puppet Server Error: something failed on node {NAME}", thread=7),
        logged(at, "somebody else's", thread=8),
    ]
    # What the agent was told is not said again.
    (quoted,) = failed.quoted(*lines)
    assert quoted == (
        "Error executing http request; javax.net.ssl.SSLHandshakeException: PKIX path building failed; "
        "Caused by: sun.security.validator.ValidatorException: PKIX path building failed"
    )


def test_of_lines_that_name_nobody_the_nearest_count(failed: Asked) -> None:
    lines = [logged(failed.failed + 0.05 + off / 10, f"error {off}") for off in range(-8, 9)]
    assert failed.quoted(*lines) == ["error -1", "error 0", "error 1"]


def test_a_thread_that_wrote_of_the_same_request_by_another_node_is_that_nodes(run: Run, tmp_path: Path) -> None:
    path = "/puppet/v3/file_metadatas/plugins"
    asked = Asked(run, tmp_path, Agent().node().ask("GET", path, own=True, status=500, body=b"Server Error: x"))
    assert asked.quoted(
        logged(asked.failed, f"Forbidden request: b.example access to {path}", thread=3),
        logged(asked.failed, "of b", thread=3),
        logged(asked.failed, f"broken at {path}", thread=4),
        logged(asked.failed, "of a", thread=4),
    ) == [f"broken at {path}", "of a"]


def test_of_a_slow_request_the_lines_of_its_answer_count(run: Run, tmp_path: Path) -> None:
    agent = refused(500, b"Server Error: x")
    began = agent.time
    slow = agent.records[-1]
    assert isinstance(slow, Exchange)
    assert slow.response
    response = dataclasses.replace(slow.response, started=began + 60, ended=began + 60)
    agent.records[-1] = dataclasses.replace(slow, response=response)
    asked = Asked(run, tmp_path, agent)
    assert asked.quoted(logged(began + 1, "of somebody"), logged(began + 60, "of the answer")) == ["of the answer"]
    mine = logged(began + 1, f"of {NAME}", thread=1)
    assert asked.quoted(mine, logged(began + 60, "of the answer")) == [f"of {NAME}"]


def test_where_nothing_was_refused_a_line_must_name_the_node(run: Run, tmp_path: Path) -> None:
    agent = Agent().node().plugins().catalog()
    agent.ask("GET", "/puppet/v3/file_metadata/modules/demo/optional", own=True, status=404)
    absent = agent.time
    asked = Asked(run, tmp_path, agent.wait(30).report("failed"))
    assert asked.quoted(logged(absent, f"{NAME} asked for what is not there"), logged(asked.failed, "of nobody")) == []
    assert asked.quoted(logged(asked.failed, f"of {NAME}")) == [f"of {NAME}"]


def test_what_the_proxy_refused_the_master_knows_nothing_of(run: Run, tmp_path: Path) -> None:
    capture = sample("revoked")
    lines = [logged(record.time, "of somebody") for record in records_of(capture)]
    out = run("doctor", capture, "--server-log", write(tmp_path / "puppetserver.log", lines))[1]
    assert "T05" in out
    assert "somebody" not in out
    agent = refused(500, b"Server Error: x")
    assert isinstance(agent.records[-1], Exchange)
    agent.records[-1] = dataclasses.replace(agent.records[-1], injected="status=500")
    asked = Asked(run, tmp_path, agent)
    assert asked.quoted(logged(asked.failed, "of somebody")) == []


def test_why_a_request_was_not_signed_is_at_the_moment_when_it_came(waiting: Asked) -> None:
    lines = [logged(waiting.failed, PATTERN), logged(waiting.failed + 50, "Invalid pattern of another time")]
    assert waiting.quoted(*lines) == [PATTERN]


def test_what_is_repeated_is_quoted_once_and_no_more_than_a_few_lines(failed: Asked) -> None:
    at = failed.failed
    repeated = [f"Puppet Evaluation Error: broken on node {NAME}", f"Puppet Server Error: broken on node {NAME}"]
    assert failed.quoted(*(logged(at, text) for text in repeated)) == repeated[:1]
    many = failed.quoted(*(logged(at, f"{number} is broken on node {NAME}") for number in range(100)))
    assert many == [f"{number} is broken on node {NAME}" for number in range(server_log.MOST)]


def test_an_error_comes_before_many_warnings(failed: Asked) -> None:
    at = failed.failed
    warnings = [logged(at, f"Unknown variable {number} on node {NAME}", "WARN") for number in range(200)]
    assert f"broken on node {NAME}" in failed.quoted(*warnings, logged(at, f"broken on node {NAME}"))


def test_the_clock_of_the_master_may_be_hours_off(run: Run, tmp_path: Path) -> None:
    agent, ahead = refused(500, b"Server Error: x"), 7200
    for at, one in enumerate(agent.records):
        assert isinstance(one, Exchange)
        assert one.response
        date = email.utils.formatdate(one.ended + ahead, usegmt=True)
        response = dataclasses.replace(one.response, headers=(*one.response.headers, ("Date", date)))
        agent.records[at] = dataclasses.replace(one, response=response)
    asked = Asked(run, tmp_path, agent)
    assert asked.quoted(
        logged(asked.failed, f"by no clock on node {NAME}"), logged(asked.failed + ahead, f"broken on node {NAME}")
    ) == [f"broken on node {NAME}"]


def test_history_and_healthy_runs_are_not_looked_for(run: Run, tmp_path: Path) -> None:
    agent = refused(500, b"Server Error: x")
    failed = agent.time
    agent.wait(1800).run("u-2")
    capture = save(tmp_path / "capture.sqlite", *together(agent))
    log = write(tmp_path / "puppetserver.log", [logged(at, f"broken on node {NAME}") for at in (failed, agent.time)])
    _, out, err = run("doctor", capture, "--server-log", log)
    assert ", over since run 2: " in out
    assert "broken" not in out
    assert err == f"puppet-inspector: no error in {log} at the moment of what failed\n"


def test_a_verdict_needs_no_log(failed: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(*_: object) -> None:
        raise CaptureError("damaged")

    monkeypatch.setattr(Capture, "record", damaged)
    assert failed.quoted(logged(failed.failed, f"broken on node {NAME}")) == []


# -- what they decide -----------------------------------------------------------------------------------


def test_the_rule_that_refused_is_named(run: Run, tmp_path: Path) -> None:
    asked = Asked(run, tmp_path, refused(403))
    log = asked.log(logged(asked.failed, f"{DENIED} denied by rule 'it's no {{catalog}}'."))
    (line,) = asked.verdict(log)["server_log"]
    assert line["meaning"] == "A rule of the master's auth.conf refuses the request: it's no {catalog}."
    log = asked.log(logged(asked.failed, f"{DENIED} denied by rule '$(reboot) {{x}}'."))
    (line,) = asked.verdict(log)["server_log"]
    assert "-F -e '$(reboot) {x}' /etc" in line["steps"][0]["command"]
    log = asked.log(logged(asked.failed, f"{DENIED} denied by rule 'puppetlabs deny all'."))
    (line,) = asked.verdict(log)["server_log"]
    assert line["meaning"] == "The master's auth.conf has no rule that allows the request."


def test_nothing_is_said_of_the_node_by_what_an_agent_may_print_too(failed: Asked) -> None:
    log = failed.log(
        logged(failed.failed, f"Could not ask for {NAME}", "WARN"),
        "java.net.ConnectException: Connection refused",
    )
    (line,) = failed.verdict(log)["server_log"]
    assert line["text"].endswith("java.net.ConnectException: Connection refused")
    assert (line["meaning"], line["steps"]) == (None, [])


def test_what_several_lines_mean_is_explained_once(failed: Asked) -> None:
    text = failed.text(
        logged(failed.failed, f"Failed to submit 'replace facts' command for {NAME} to PuppetDB"),
        logged(failed.failed, f"Failed to find facts from PuppetDB for {NAME}"),
    )
    assert (text.count("  puppetserver.log at "), text.count("    meaning: ")) == (2, 1)


def test_nothing_is_deleted_because_of_a_line(failed: Asked) -> None:
    log = failed.log(logged(failed.failed, f"Failed to submit 'replace facts' command for {NAME} to PuppetDB"))
    (line,) = failed.verdict(log)["server_log"]
    assert "PuppetDB" in line["meaning"]
    assert [step["destroys"] for step in line["steps"]] == [None] * len(line["steps"]) != []


# -- hostile and large logs -----------------------------------------------------------------------------


def test_secrets_and_control_characters_are_not_quoted(run: Run, tmp_path: Path) -> None:
    body = b'{"message": "Server Error: x", "token": {"__ptype": "Sensitive", "__pvalue": "hunter2hunter2"}}'
    agent = Agent().node().plugins().ask("POST", CATALOG, own=True, status=500, body=body, media="application/json")
    asked = Asked(run, tmp_path, agent)
    (quoted,) = asked.quoted(
        logged(asked.failed, f"\x1b[31m{NAME} password='s3cret-one' and hunter2hunter2 at db://u:s3cret-two@db.example")
    )
    assert "s3cret" not in quoted
    assert "hunter2" not in quoted
    assert quoted.count("MASKED") == 3
    assert quoted.isprintable()


def test_a_long_line_loses_its_middle(failed: Asked) -> None:
    (quoted,) = failed.quoted(logged(failed.failed, f"{NAME} begins {'x' * 3000} ends"))
    assert len(quoted) == server_log.LINE
    assert quoted.startswith(f"{NAME} begins")
    assert quoted.endswith("x ends")


def _hours(at: float, lines: int, middle: Iterable[str]) -> list[str]:
    """A log of two hours around a moment."""
    before = [logged(at - 3600 + 3595 * number / lines, f"Compiled {number}", "INFO") for number in range(lines)]
    after = [logged(at + 5 + 3600 * number / lines, f"Compiled {number}", "INFO") for number in range(lines)]
    return [*before, *middle, *after]


def test_only_the_part_around_the_moment_is_read(failed: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    stack = [f"/usr/lib/ruby/{number}.rb:1:in `x'" for number in range(3000)]
    error = logged(failed.failed, f"broken on node {NAME}")
    log = failed.log(*_hours(failed.failed, 20_000, [error, *stack]))
    read = 0

    def counted(*given: Any, **more: Any) -> Any:
        nonlocal read
        for line in lines(*given, **more):
            read += len(line[0])
            yield line

    lines = inputs.lines
    monkeypatch.setattr(inputs, "lines", counted)
    assert [line["text"] for line in failed.verdict(log)["server_log"]] == [f"broken on node {NAME}"]
    assert read < log.stat().st_size / 5


@pytest.mark.parametrize("lines", [0, 1, 7, 1000])
def test_the_line_is_found_wherever_it_stands(lines: int, failed: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_log, "_BLOCK", 64)
    error = logged(failed.failed, f"broken on node {NAME}")
    for before, after in ((lines, 0), (0, lines), (lines, lines)):
        whole = _hours(failed.failed, lines, [error])
        part = whole[lines - before : len(whole) - lines + after]
        assert failed.quoted(*part) == [f"broken on node {NAME}"]


def test_a_rotated_log_is_read_as_it_is(failed: Asked) -> None:
    log = failed.directory / "puppetserver-2026-11-26.0.log.gz"
    error = logged(failed.failed, f"broken on node {NAME}")
    log.write_bytes(gzip.compress("\n".join(_hours(failed.failed, 500, [error])).encode()))
    assert [line["text"] for line in failed.verdict(log)["server_log"]] == [f"broken on node {NAME}"]


@pytest.mark.parametrize("packed", [False, True])
def test_each_verdict_has_the_lines_of_its_own_moment(
    packed: bool, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_log, "_BLOCK", 64)
    names = ["a.example", "b.example", "c.example"]
    agents = [Agent(name, f"192.0.2.{at}", time=START + 600 * at).node().plugins() for at, name in enumerate(names)]
    lines = []
    for agent in agents:
        path = CATALOG.replace(NAME, agent.certname)
        agent.ask("POST", path, own=True, status=500, body=b"Server Error: x")
        lines += [logged(agent.time - 300 + at, f"Compiled {at}", "INFO") for at in range(290)]
        lines.append(logged(agent.time, f"broken on node {agent.certname}"))
    capture = save(tmp_path / "capture.sqlite", *together(*agents))
    log = write(tmp_path / "puppetserver.log", lines)
    if packed:
        log.write_bytes(gzip.compress(log.read_bytes()))
    out = run("doctor", capture, "--server-log", log, "--json")[1]
    verdicts = json_output.valid("doctor", out)["verdicts"]
    quoted = {verdict["certname"]: [line["text"] for line in verdict["server_log"]] for verdict in verdicts}
    assert quoted == {name: [f"broken on node {name}"] for name in names}


def test_a_flood_within_the_moment_ends(failed: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_log, "READ", 10_000)
    flood = [logged(failed.failed, f"Puppet {number} of nobody", "INFO") for number in range(1000)]
    flood += ["x" * 50_000, logged(failed.failed, f"too late on node {NAME}")]
    assert failed.quoted(logged(failed.failed, f"broken on node {NAME}"), *flood) == [f"broken on node {NAME}"]


# -- files ----------------------------------------------------------------------------------------------


def test_a_named_log_must_be_readable_and_one(failed: Asked) -> None:
    gone = failed.directory / "gone.log"
    status, _, err = failed.run("doctor", failed.capture, "--server-log", gone)
    assert (status, "Cannot read" in err, "Give a log of puppetserver" in err) == (2, True, True)
    strange = failed.log("no line of puppetserver", name="strange.log")
    status, _, err = failed.run("doctor", failed.capture, "--server-log", strange)
    assert (status, "in no known pattern" in err) == (2, True)
    damaged = failed.directory / "damaged.gz"
    damaged.write_bytes(gzip.compress(b"x" * 1000)[:-12])
    status, _, err = failed.run("doctor", failed.capture, "--server-log", damaged)
    assert (status, "damaged" in err) == (2, True)


def test_it_needs_a_capture(run: Run, tmp_path: Path) -> None:
    status, _, err = run("doctor", "--ssldir", tmp_path, "--server-log", tmp_path / "x")
    assert (status, "--server-log needs a capture" in err) == (2, True)


def test_the_logs_of_this_host_are_read_if_none_is_named(failed: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    place = failed.directory / "log"
    place.mkdir()
    monkeypatch.setattr(server_log, "PLACES", (failed.directory / "absent", place))
    error = logged(failed.failed, f"broken on node {NAME}")
    for name in ("puppetserver-access.log", "puppetserver-status-2026-11-26.0.log.gz", "puppetserver.log.txt~"):
        write(place / name, [logged(failed.failed, f"not read on node {NAME}")])
    (place / "puppetserver.log.txt~").unlink()
    write(place / "puppetserver.log", [error])
    (place / "puppetserver-2026-11-25.0.log").write_text(logged(failed.failed, f"too old on node {NAME}"))
    os.utime(place / "puppetserver-2026-11-25.0.log", (0, 0))
    (place / "puppetserver-2026-11-26.0.log.gz").write_bytes(b"\x1f\x8b damaged")
    os.mkfifo(place / "puppetserver.log.pipe")
    for log in place.iterdir():
        if log.name != "puppetserver-2026-11-25.0.log":
            os.utime(log, (failed.failed + 60, failed.failed + 60))
    (line,) = failed.verdict()["server_log"]
    assert (line["log"], line["text"]) == (str(place / "puppetserver.log"), f"broken on node {NAME}")
