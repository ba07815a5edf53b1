"""What is looked at before connections are handed over."""

from __future__ import annotations

import dataclasses
import subprocess
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from inspector.errors import InspectorError
from inspector.host.serverconf import ServerConf
from inspector.lab.ca import LabCA
from inspector.lab.server import LabServer
from inspector.model import Request, Response
from inspector.proxy.tap import preparing, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from inspector.host.pki import SslDirPaths

NAME = "puppet.example"


@pytest.fixture
def ca() -> LabCA:
    return LabCA(NAME)


@pytest.fixture
def place(ca: LabCA, tmp_path: Path) -> SslDirPaths:
    return ca.enrol(tmp_path / "ssl", NAME)


@pytest.fixture
def server(ca: LabCA, place: SslDirPaths, tmp_path: Path) -> ServerConf:
    ca.write_cadir(tmp_path / "ca")
    return ServerConf(
        tmp_path, "0.0.0.0", 8140, place.certificate, place.key, place.ca, tmp_path / "ca/ca_crl.pem",  # noqa: S104
        tmp_path / "ca", plain=False, trusts_headers=False, access_log=None,
    )  # fmt: skip


@pytest.fixture
def running(ca: LabCA, place: SslDirPaths) -> Iterator[LabServer]:
    def answer(request: Request, _: str | None) -> Response:
        return Response(status=200)

    made = LabServer(lambda: ca.server_context(place), answer)
    made.start()
    yield made
    made.close()


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Set the rules of this host, nftables' and older ones."""

    def set_rules(text: str, legacy: str) -> None:
        monkeypatch.setattr(table, "run", lambda _: text)
        monkeypatch.setattr("shutil.which", lambda name: name)
        monkeypatch.setattr(subprocess, "run", lambda *_, **__: SimpleNamespace(stdout=legacy))

    set_rules("", "")
    return set_rules


@pytest.mark.parametrize("change", [{"plain": True}, {"trusts_headers": True}])
def test_where_tls_ends_elsewhere(
    change: dict[str, bool], server: ServerConf, rules: Callable[[str, str], None]
) -> None:
    with pytest.raises(InspectorError, match="TLS ends before this server"):
        preparing.check(dataclasses.replace(server, **change))  # type: ignore[arg-type]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "127.0.5.1"])
def test_a_server_that_no_other_host_reaches(host: str, server: ServerConf, rules: Callable[[str, str], None]) -> None:
    with pytest.raises(InspectorError, match="no other host connects to it itself"):
        preparing.check(dataclasses.replace(server, host=host))


@pytest.mark.parametrize(
    ("text", "legacy", "translated"),
    [
        ("tcp dport 8140 counter packets 0 bytes 0 dnat to 172.17.0.2:8140", "", True),
        ("tcp dport { 80, 8140 } redirect to :9999", "", True),
        ("dnat to tcp dport map { 80 : 172.17.0.2, 8140 : 172.17.0.3 }", "", True),
        ("meta l4proto tcp tcp dport 8140 counter DNAT ip prefix to 172.17.0.2:8140", "", True),
        ("", "-A DOCKER ! -i docker0 -p tcp -m tcp --dport 8140 -j DNAT --to-destination 172.17.0.2:8140", True),
        ("", "-A PREROUTING -p tcp -m multiport --dports 443,8140 -j REDIRECT --to-ports 1", True),
        ("tcp dport 8140 accept", "-A INPUT -p tcp -m tcp --dport 8140 -j ACCEPT", False),
        ("tcp dport 81400 dnat to 172.17.0.2:8140", "-A X -p tcp --dport 18140 -j DNAT --to-destination x:8140", False),
        ("tcp dport 443 dnat to 172.17.0.2:8140", "-A X -p tcp --dport 81 -j DNAT --to-destination x:8140", False),
    ],
)
def test_a_port_that_the_host_translates(
    text: str, legacy: str, translated: bool, server: ServerConf, rules: Callable[[str, str], None]
) -> None:
    rules(text, legacy)
    if translated:
        with pytest.raises(InspectorError, match="is translated by this host's own rules"):
            preparing.check(server)
    else:
        preparing.check(server)


def test_a_server_whose_files_are_good(server: ServerConf) -> None:
    assert preparing.examine(server)[1] == NAME


@pytest.mark.parametrize("name", ["certificate", "key", "ca", "crl"])
def test_a_server_that_was_never_started(name: str, server: ServerConf, tmp_path: Path) -> None:
    changed: dict[str, Any] = {name: tmp_path / "none.pem"}
    with pytest.raises(InspectorError, match=r"none\.pem") as raised:
        preparing.examine(dataclasses.replace(server, **changed))
    assert "--config DIR" in raised.value.hint


def test_a_crl_that_has_expired(server: ServerConf, ca: LabCA) -> None:
    ca.publish_crl(datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 2, tzinfo=UTC))
    ca.write_cadir(server.directory / "ca")
    with pytest.raises(InspectorError, match="Agents cannot be verified"):
        preparing.examine(server)


def test_a_certificate_of_another_ca(server: ServerConf, tmp_path: Path) -> None:
    other = LabCA("other.example").enrol(tmp_path / "other", NAME)
    with pytest.raises(InspectorError, match="Agents refuse the server's certificate"):
        preparing.examine(dataclasses.replace(server, certificate=other.certificate, key=other.key))


# -- the way ----------------------------------------------------------------------------------------------


def at(server: ServerConf, running: LabServer) -> ServerConf:
    host, port = running.address
    return dataclasses.replace(server, host=host, port=port)


def test_a_server_that_answers_and_accepts_what_the_ca_signs(server: ServerConf, running: LabServer) -> None:
    preparing.ask(at(server, running), NAME)


def test_a_server_that_does_not_run(server: ServerConf, running: LabServer) -> None:
    running.close()
    with pytest.raises(InspectorError, match="does not answer"):
        preparing.ask(at(server, running), NAME)


def test_the_directory_of_another_ca(server: ServerConf, running: LabServer, tmp_path: Path) -> None:
    LabCA("other.example").write_cadir(tmp_path / "other")
    with pytest.raises(InspectorError, match=r"does not accept a certificate that the CA's key in .*/other signs"):
        preparing.ask(dataclasses.replace(at(server, running), cadir=tmp_path / "other"), NAME)


# -- whom it means ----------------------------------------------------------------------------------------

NODES = {
    "192.0.2.7": {"web1.example"},
    "192.0.2.8": {"web2.example", "db1.example"},
    "2001:db8::9": {"web3.example"},
}


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["192.0.2.99"], {"192.0.2.99"}),
        (["2001:DB8:0::9"], {"2001:db8::9"}),
        (["web1.example"], {"192.0.2.7"}),
        (["web?.example"], {"192.0.2.7", "192.0.2.8", "2001:db8::9"}),
        (["web1.example", "db*"], {"192.0.2.7", "192.0.2.8"}),
    ],
)
def test_agents_are_known_from_the_access_log(
    patterns: list[str], expected: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: [])
    found = preparing.addresses(patterns, NODES)
    assert set(found) == expected
    assert all(names == NODES.get(host, set()) for host, names in found.items())


def test_an_agent_is_known_from_dns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: [(2, 1, 6, "", ("192.0.2.55", 0))])
    assert preparing.addresses(["new.example"], NODES) == {"192.0.2.55": set()}


@pytest.mark.parametrize("patterns", [["nobody.invalid"], ["x*"], ["web1.example", "x*"], ["192.0.2.999"]])
def test_an_agent_of_which_nothing_is_known(patterns: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> list[object]:
        raise OSError("not known")

    monkeypatch.setattr("socket.getaddrinfo", unknown)
    with pytest.raises(InspectorError, match="No address is known of "):
        preparing.addresses(patterns, NODES)
