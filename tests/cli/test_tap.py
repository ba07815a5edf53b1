"""`tap`: what it refuses, whom it means, and what it says before (``tests/e2e/test_tap.py`` starts it)."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from inspector.cli import tap
from inspector.cli.main import main
from inspector.errors import InspectorError
from inspector.host.serverconf import ServerConf
from inspector.lab.ca import LabCA
from inspector.proxy.tap.access_log import AccessLog, Share
from inspector.proxy.tap.preparing import Prepared
from inspector.proxy.tap.supervision import Goal

if TYPE_CHECKING:
    from inspector.host.pki import SslDirPaths


@pytest.fixture
def ca() -> LabCA:
    return LabCA("puppet.example")


@pytest.fixture
def place(ca: LabCA, tmp_path: Path) -> SslDirPaths:
    return ca.enrol(tmp_path / "ssl", "puppet.example")


@pytest.fixture
def server(ca: LabCA, place: SslDirPaths, tmp_path: Path) -> ServerConf:
    ca.write_cadir(tmp_path / "ca")
    return ServerConf(
        tmp_path, "0.0.0.0", 8140, place.certificate, place.key, place.ca, tmp_path / "ca/ca_crl.pem",  # noqa: S104
        tmp_path / "ca", plain=False, trusts_headers=False, access_log=None,
    )  # fmt: skip


# -- refused ----------------------------------------------------------------------------------------------


def test_only_root_can(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert main(["tap"]) == 2
    assert "Only root can take over connections" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("15m", 900), ("2h", 7200)])
def test_how_long(text: str, seconds: float) -> None:
    assert tap._seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "0m", "-1", "1d", "1.5h", "x", "1 m"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(InspectorError, match="is no time"):
        tap._seconds(text)


# -- what it says -----------------------------------------------------------------------------------------


def prepared(server: ServerConf, chosen: dict[str, set[str]] | None = None) -> Prepared:
    unused: Any = None
    return Prepared(server, "puppet.example", unused, AccessLog(None), Share(), chosen or {})


def test_who_is_affected_and_how(server: ServerConf) -> None:
    text = "\n".join(tap._announcement(prepared(server), Goal(900, 2, "web1.example"), Path("c.sqlite")))
    for words in (
        "0.0.0.0:8140, presents",
        "every agent that connects from another host",
        "to c.sqlite",
        f"signed by the key in {server.cadir}",
        "after 15 min, or 2 runs, or a run of web1.example",
    ):
        assert words in text


def test_without_the_cas_key(server: ServerConf) -> None:
    found = prepared(dataclasses.replace(server, cadir=None))
    text = "\n".join(tap._announcement(found, Goal(900), Path("c.sqlite")))
    assert "agents with a certificate are direct" in text


def test_who_is_chosen(server: ServerConf) -> None:
    many = {f"web{number}.example" for number in range(8)}
    chosen = {"192.0.2.7": {"a.example"}, "192.0.2.8": many, "192.0.2.9": set[str]()}
    text = "\n".join(tap._announcement(prepared(server, chosen), Goal(900), Path("c.sqlite")))
    assert "these agents" in text
    assert "192.0.2.7: a.example\n" in text
    assert "web4.example and 3 more; a NAT or a balancer, all of them are recorded\n" in text
    assert "192.0.2.9: no node is known there\n" in text


def test_what_a_name_in_the_access_log_could_do_to_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    tap._note("192.0.2.7: web1\x1b[2J\r.example")
    assert capsys.readouterr().err == "puppet-inspector: 192.0.2.7: web1\\x1b[2J\\x0d.example\n"


def test_nobody_can_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    with pytest.raises(InspectorError, match="Nobody can be asked"):
        tap._agreed()
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    for answer, agreed in (("y", True), ("Yes", True), ("", False), ("n", False)):
        monkeypatch.setattr("builtins.input", lambda _, answer=answer: answer)
        assert tap._agreed() is agreed
