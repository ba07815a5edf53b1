"""`certificates`: what ends when, who breaks, and what cannot be asked."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from inspector.clocks import DAY
from inspector.runs.examples import catalog, report, talk
from tests.support.captures import save
from tests.support.conversations import Agent, together
from tests.support.json_output import valid
from tests.support.places import SAMPLES
from tests.support.tables_of import converted

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

CAPTURES = SAMPLES / "first-run.sqlite", SAMPLES / "bootstrap-waiting.sqlite"
AT = 1_795_300_000.0
"""When it is, some hours after the samples were recorded."""


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.cli.certificates.time.time", lambda: AT)


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """The samples' tables: two nodes, and what they trust."""
    return converted(tmp_path, *CAPTURES).root


@pytest.mark.slow
def test_the_list(run: Run, tables: Path) -> None:
    status, out, err = run("certificates", tables)
    assert (status, err) == (0, "")
    head, *lines = out.splitlines()
    assert head.split() == ["role", "name", "serial", "until", "days", "last", "issuer"]
    assert [line.split()[0] for line in lines][:2] == ["agent", "agent"]
    ends = [one["until"] for one in valid("certificates", run("certificates", tables, "--json")[1])["certificates"]]
    assert ends == sorted(ends)
    assert len(ends) == len(lines)


@pytest.mark.slow
def test_what_ends_soon(run: Run, tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("certificates", tables, "--expiring", "30")[1] == "nothing ends within 30 days\n"
    monkeypatch.setattr("inspector.cli.certificates.time.time", lambda: AT + 5 * 365 * DAY)
    lines = run("certificates", tables, "--expiring", "30")[1].splitlines()[1:]
    assert {line.split()[1] for line in lines} == {"node1.example", "node2.example"}


@pytest.mark.slow
def test_who_breaks(run: Run, tables: Path) -> None:
    """The same from tables and from captures."""
    asked = "--what-if", "revoke=0x0004"
    status, out, err = run("certificates", tables, *asked)
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == (
        "If 0x0004 of CN=node2.example is revoked by CN=Puppet CA: puppet.example: 1 of 2 nodes breaks."
    )
    assert "puppetserver ca clean --certname node2.example" in out
    assert run("certificates", *CAPTURES, *asked)[1] == out
    (found,) = valid("certificates", run("certificates", tables, *asked, "--json")[1])["scenarios"]
    assert (found["nodes"], found["breaks"], found["untouched"]) == (2, 1, 1)
    assert [node["certname"] for node in found["groups"][0]["nodes"]] == ["node2.example"]


@pytest.mark.slow
def test_a_serial_number_of_two_cas(run: Run, tables: Path) -> None:
    out = run("certificates", tables, "--what-if", "revoke=1")[1]
    assert out.startswith("2 certificates are meant; one is revoked at a time.")
    assert "0x0001 of CN=puppet.example is revoked by CN=Puppet CA: puppet.example" in out
    assert "is revoked by CN=Puppet Root CA" in out
    assert (
        len(valid("certificates", run("certificates", tables, "--what-if", "revoke=1", "--json")[1])["scenarios"]) == 2
    )


@pytest.mark.slow
def test_several_cases_together(run: Run, tables: Path) -> None:
    words = ("--what-if", "date=2045-01-01", "--what-if", "crl=none", "--what-if", "revoke=3", "--json")
    (found,) = valid("certificates", run("certificates", tables, *words)[1])["scenarios"]
    assert (found["dated"], found["crls"], found["breaks"]) == (True, "none", 2)
    assert {"node-revoked", "node-ended", "master-ended", "ca-ended", "crl-missing"} == {
        group["kind"] for group in found["groups"]
    }


def test_an_agent_that_fetches_the_crl_every_day(run: Run, tmp_path: Path) -> None:
    agent = Agent(version="8.10.0").bootstrap().run()
    save(tmp_path / "a.sqlite", *together(agent))
    out = run("certificates", tmp_path / "a.sqlite", "--what-if", "revoke=2")[1]
    assert "1 of 1 node breaks" in out
    assert "unless: certificate_revocation is leaf or false, or crl_refresh_interval is longer" in out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--what-if", "revoke=77"), "No certificate with the serial number 0x004D was recorded"),
        (("--what-if", "revoke=abcx"), "'abcx' is not a serial number"),
        (("--what-if", "date=2026-01-01"), "2026-01-01 is in the past"),
        (("--what-if", "date=tomorrow"), "'tomorrow' is not a date"),
        (("--what-if", "key=4"), "Cannot suppose 'key=4'"),
        (("--expiring", "-1"), "-1 days are too many or too few"),
    ],
)
def test_mistakes(run: Run, tables: Path, words: tuple[str, ...], expected: str) -> None:
    status, out, err = run("certificates", tables, *words)
    assert (status, out) == (2, "")
    assert expected in err


def test_where_there_are_no_certificates(run: Run, tmp_path: Path) -> None:
    save(tmp_path / "a.sqlite", *talk(catalog(), report()))
    tables = converted(tmp_path, tmp_path / "a.sqlite").root
    for table in ("certificates", "crls"):
        shutil.rmtree(tables / table, ignore_errors=True)
    assert run("certificates", tables)[1] == "there are no certificates\n"
    status, _, err = run("certificates", tables, "--what-if", "crl=none")
    assert status == 2
    assert "There is no certificate in these tables" in err


@pytest.mark.slow
def test_tables_and_something_else(run: Run, tables: Path) -> None:
    status, _, err = run("certificates", tables, CAPTURES[1])
    assert status == 2
    assert "is a directory without captures, and not the only argument" in err


def test_one_that_cannot_be_read_is_said_and_the_others_are_done(run: Run, tmp_path: Path) -> None:
    shutil.copy(CAPTURES[1], tmp_path)
    (tmp_path / "broken.sqlite").write_text("no capture")
    status, out, err = run("certificates", tmp_path)
    assert status == 2
    assert "node2.example" in out
    assert "broken.sqlite is not a capture" in err


def test_without_duckdb_it_says_what_is_missing(run: Run, tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    status, _, err = run("certificates", tables)
    assert status == 2
    assert "pip install 'puppet-inspector[sql]'" in err
