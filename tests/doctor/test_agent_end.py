"""An agent that `run` started and that failed where the traffic does not show why: `doctor` and `runs` say it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from inspector.analysis import known_errors
from inspector.capture import agent_end as stored_end
from inspector.capture.agent_end import AgentEnd
from inspector.capture.store import Capture
from inspector.doctor import agent_end
from inspector.lab.ca import LabCA
from inspector.runs.examples import catalog, issued, refused, report, talk
from tests.support.captures import save

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.model import Record
    from tests.conftest import Run

DISABLED = "Notice: Skipping run of Puppet configuration client; administratively disabled (Reason: 'x');"
EXPIRED = "Error: The certificate 'CN=node1.example' has expired, verify time is synchronized"
SIX_YEARS = 6 * 365 * 86400.0


def recorded(path: Path, end: AgentEnd, *records: Record) -> Path:
    save(path, *records)
    with Capture.create(path) as capture:
        stored_end.write(capture, end)
    return path


def test_before_its_first_request(tmp_path: Path, run: Run) -> None:
    capture = recorded(tmp_path / "a.sqlite", AgentEnd(100, 101, 1, (DISABLED, "Error: more")))
    expected = f"the agent ended with exit status 1 before its first request: {DISABLED}: Somebody or something"
    for command, status in (("doctor", 1), ("runs", 0)):
        found, out, _ = run(command, capture)
        assert found == status
        assert expected in out
        assert "puppet agent --enable" in out
    status, out, _ = run("doctor", "--json", capture)
    (diagnosis,) = json.loads(out)["diagnoses"]
    assert status == 1
    assert diagnosis["severity"] == "error"
    assert any(step["command"] == "puppet agent --enable" for step in diagnosis["steps"])


@pytest.mark.parametrize(("ahead", "clock"), [(-SIX_YEARS, True), (SIX_YEARS, True), (-1.0, False), (None, False)])
def test_the_clock_comes_before_the_certificate(tmp_path: Path, run: Run, ahead: float | None, clock: bool) -> None:
    capture = recorded(tmp_path / "a.sqlite", AgentEnd(100, 101, 1, (EXPIRED,), ahead))
    _, out, _ = run("doctor", capture)
    assert ("of the node's" in out or "behind the node's" in out) is clock
    assert ("puppetserver ca clean" in out) is not clock
    assert "timedatectl" in out
    if not clock:
        assert (
            out.index("date -u")
            < out.index("If the clocks are right and the certificate has expired")
            < (out.index("puppetserver ca clean"))
        )


def test_one_clock_alone_replaces_no_crl_at_once(tmp_path: Path, run: Run) -> None:
    printed = "Error: The CRL issued by 'CN=Puppet CA' has expired, verify time is synchronized"
    capture = recorded(tmp_path / "a.sqlite", AgentEnd(100, 101, 1, (printed,)))
    _, out, _ = run("doctor", capture)
    assert out.index("date -u") < out.index("If the clocks are right") < out.index("hostcrl")
    capture = recorded(tmp_path / "b.sqlite", AgentEnd(100, 101, 1, (printed,), -SIX_YEARS))
    assert "hostcrl" not in run("doctor", capture)[1]


@pytest.mark.parametrize(("status", "words"), [(4, "exit status 4"), (137, "signal 9"), (1, "exit status 1")])
def test_an_unknown_end(tmp_path: Path, run: Run, status: int, words: str) -> None:
    capture = recorded(tmp_path / "a.sqlite", AgentEnd(100, 101, status))
    _, out, _ = run("doctor", capture)
    assert f"the agent ended with {words} before its first request: it printed no error" in out


@pytest.mark.parametrize("status", [0, 2])
def test_an_agent_that_succeeded(tmp_path: Path, run: Run, status: int) -> None:
    capture = recorded(tmp_path / "a.sqlite", AgentEnd(100, 101, status, ("Warning: old",)))
    found, out, _ = run("doctor", capture)
    assert (found, "ended with" in out) == (0, False)


def test_what_the_traffic_shows_needs_no_more(tmp_path: Path, run: Run) -> None:
    shown = talk(refused("certificate_revoked", by="master", leg={"side": "master"}))
    end = AgentEnd(shown[0].time - 1, shown[-1].ended + 1, 1, ("Error: something",))
    capture = recorded(tmp_path / "a.sqlite", end, *shown)
    assert "ended with" not in run("doctor", capture)[1]


def test_a_run_that_says_nothing_of_the_failure(tmp_path: Path, run: Run) -> None:
    """It ended well as far as its requests show, and the agent did not."""
    well = talk(catalog(), report())
    end = AgentEnd(well[0].time - 1, well[-1].ended + 1, 1, ("Error: of its own",))
    capture = recorded(tmp_path / "a.sqlite", end, *well)
    status, out, _ = run("doctor", capture)
    assert status == 1
    assert "the agent ended with exit status 1: Error: of its own" in out
    earlier = recorded(tmp_path / "b.sqlite", AgentEnd(1e9 * 4, 1e9 * 4 + 1, 1, ("Error: later",)), *talk(issued()))
    assert "before its first request: Error: later" in run("runs", earlier)[1]


def test_an_error_of_the_directory_explains_it(tmp_path: Path, run: Run) -> None:
    """What the agent printed is a fact beside it, and needs no fix of its own."""
    place = LabCA("ca.example").enrol(tmp_path / "ssl", "node1.example")
    capture = recorded(tmp_path / "a.sqlite", AgentEnd(100, 101, 1, ("Error: PEM_read_bio_X509: no start line",)))
    status, out, _ = run("doctor", capture, "--ssldir", place.path)
    assert (status, "ERROR the agent ended with exit status 1" in out) == (1, True)
    place.certificate.write_text("garbage")
    status, out, _ = run("doctor", capture, "--ssldir", place.path)
    assert status == 1
    assert out.index("ERROR certs/node1.example.pem is not a valid") < out.index("NOTICE the agent ended with exit")
    assert "ca clean" not in out


def test_known_messages_about_time() -> None:
    assert any(agent_end.is_of_time(known) for known in known_errors.book())
    assert not all(agent_end.is_of_time(known) for known in known_errors.book())
