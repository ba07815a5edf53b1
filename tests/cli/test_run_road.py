"""The roads on which an agent is led to the proxy: the options that are appended, and what stands in the way."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inspector.cli import run_road
from inspector.cli.run_road import AsHttpProxy, AsMaster
from inspector.errors import InspectorError
from inspector.host import puppetconf
from inspector.host.puppetconf import PuppetConf
from inspector.lab.ca import LabCA
from tests.support.node_agents import NAME, configure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.host import pki

PROXY = ("squid.example", 3128)


@pytest.fixture
def ca() -> LabCA:
    return LabCA("master.example")


@pytest.fixture
def place(ca: LabCA, tmp_path: Path) -> pki.SslDirPaths:
    return ca.enrol(tmp_path / "ssl", NAME)


@pytest.fixture
def confdir(place: pki.SslDirPaths, tmp_path: Path) -> Path:
    return configure(tmp_path / "conf", place, ("127.0.0.1", 8140))


@pytest.fixture
def stack() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as made:
        yield made


def _conf(**settings: object) -> PuppetConf:
    return PuppetConf(None, "puppet", 8140, Path("/s"), "n.example", **settings)  # type: ignore[arg-type]


# -- as an HTTP proxy -------------------------------------------------------------------------------------


def test_an_agents_own_settings_stay_as_they_are(confdir: Path, stack: contextlib.ExitStack) -> None:
    conf = puppetconf.read(None, confdir)
    road = AsHttpProxy.build(conf, (7, 23), None, None, (), stack)
    host, port = road.prepared.address
    assert road.options(port)[:4] == ["--http_proxy_host", host, "--http_proxy_port", str(port)]
    assert not {"--server", "--serverport", "--ca_server", "--certname", "--ssldir"} & set(road.options(port))
    assert (road.listen, road.master, road.proxy_options) == (f"{host}:{port}", (NAME, 8140), {})
    assert (road.plan.certname, list(road.plan.servers)) == (NAME, [(NAME, 8140)])


@pytest.mark.parametrize(
    ("settings", "version", "options"),
    [
        ({}, (7, 23), "--server m --serverport 8150"),
        ({}, (6, 29), "--server m --masterport 8150"),
        ({"server_list": (("a", 1), ("b", 2))}, (8, 1), "--server m --serverport 8150 --server_list m:8150"),
    ],
)
def test_another_master_is_appended(
    settings: dict[str, object], version: tuple[int, int], options: str, stack: contextlib.ExitStack
) -> None:
    road = AsHttpProxy.build(_conf(**settings), version, ("m", 8150), None, (), stack)
    words = options.split()
    assert road.options(1)[: len(words)] == words
    assert road.master == ("m", 8150)
    assert list(road.plan.servers) == [("m", 8150)]


@pytest.mark.parametrize(
    ("version", "excepted"), [((6, 4), False), ((6, 7), False), ((6, 8), True), ((7, 23), True), (None, True)]
)
def test_the_agent_makes_no_exception(
    version: tuple[int, int] | None, *, excepted: bool, stack: contextlib.ExitStack
) -> None:
    """By default it reaches localhost directly; where there is no such setting, there is no default either."""
    options = AsHttpProxy.build(_conf(), version, None, None, (), stack).options(1)
    assert ("--no_proxy none" in " ".join(options)) is excepted


def test_an_address_of_ipv6_stands_in_brackets(stack: contextlib.ExitStack) -> None:
    try:
        road = AsHttpProxy.build(_conf(server_list=(("a", 1),)), (8, 1), ("2001:db8::1", 8140), "::1", (), stack)
    except InspectorError:
        pytest.skip("there is no IPv6")
    assert road.listen.startswith("[::1]:")
    assert road.options(1)[:6] == [
        "--server", "2001:db8::1", "--serverport", "8140", "--server_list", "[2001:db8::1]:8140",
    ]  # fmt: skip


def test_further_servers_are_recorded_too(stack: contextlib.ExitStack) -> None:
    road = AsHttpProxy.build(_conf(), None, None, None, ["pdb.example:8081", "ca.example"], stack)
    assert list(road.plan.servers) == [("puppet", 8140), ("pdb.example", 8081), ("ca.example", 8140)]


def test_nothing_is_left_of_a_run() -> None:
    with contextlib.ExitStack() as stack:
        road = AsHttpProxy.build(_conf(), None, None, None, (), stack)
        directory, address = Path(road.plan.directory), road.prepared.address
        assert directory.stat().st_mode & 0o077 == 0, "the agent trusts what is there"
        with pytest.raises(OSError, match="in use"):
            socket.create_server(address)
    assert not directory.exists()
    socket.create_server(address).close()


def test_a_host_without_a_certificate_can_be_enrolled(confdir: Path, place: pki.SslDirPaths) -> None:
    place.certificate.unlink()
    with contextlib.ExitStack() as stack:
        assert AsHttpProxy.build(puppetconf.read(None, confdir), (8, 1), None, None, (), stack).options(1)


# -- as the master ----------------------------------------------------------------------------------------


def mistake(confdir: Path, listen: str | None = None, **settings: str) -> InspectorError:
    with contextlib.ExitStack() as stack, pytest.raises(InspectorError) as error:
        AsMaster.build(puppetconf.read(None, confdir, settings), (5, 5), None, listen, stack)
    return error.value


def test_the_proxy_presents_this_hosts_certificate(confdir: Path, place: pki.SslDirPaths) -> None:
    with contextlib.ExitStack() as stack:
        road = AsMaster.build(puppetconf.read(None, confdir), (5, 5), ("127.0.0.1", 8150), None, stack)
        assert road.proxy_options == {
            "puppet_master": "127.0.0.1:8150", "puppet_listen": road.listen, "puppet_ssldir": place.path,
            "puppet_ca": place.ca, "puppet_crl": place.crl, "puppet_identity": f"keys:{place.path}",
        }  # fmt: skip
        assert road.options(9000) == ["--server", NAME, "--masterport", "9000"]
        assert road.plan is None


def test_of_several_certificates_only_the_agents_is_used(confdir: Path, place: pki.SslDirPaths, ca: LabCA) -> None:
    ca.enrol(place.path, "another.example")
    with contextlib.ExitStack() as stack:
        conf = puppetconf.read(None, confdir, {"certname": NAME})
        road = AsMaster.build(conf, (5, 5), ("127.0.0.1", 8150), None, stack)
        found = {path.name for path in road.ssldir.rglob("*.pem")}
    assert NAME + ".pem" in found


def test_a_certname_in_upper_case(confdir: Path) -> None:
    error = mistake(confdir, certname="Node.Example")
    assert error.message == "The certname Node.Example is not in lower case: the agent stops before it connects."
    assert error.hint.startswith("1. Write the name in lower case")


def test_an_http_proxy_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert list(run_road._detours(_conf(), ("puppet", 8140))) == []
    (note,) = run_road._detours(_conf(http_proxy=PROXY), ("puppet", 8140))
    assert note.endswith("in this run it does not use it.")


def test_a_host_without_a_certificate(confdir: Path, place: pki.SslDirPaths) -> None:
    place.certificate.unlink()
    error = mistake(confdir)
    assert error.message.startswith("This host has no certificate yet")
    assert str(place.certificate) in error.message
    assert "omit --as-master" in error.hint


@pytest.mark.parametrize(
    ("certname", "text"),
    [("nowhere.invalid", "does not resolve"), ("192.0.2.1", "resolves to 192.0.2.1, which is not this host")],
)
def test_a_certname_that_does_not_resolve_to_this_host(
    certname: str, text: str, confdir: Path, ca: LabCA, place: pki.SslDirPaths
) -> None:
    ca.enrol(place.path, certname)
    error = mistake(confdir, certname=certname)
    assert text in error.message
    assert f"127.0.0.1 {certname}" in error.hint


def test_a_master_that_does_not_resolve(confdir: Path) -> None:
    error = mistake(confdir, server="nowhere.invalid")
    assert "The master's name nowhere.invalid does not resolve." in error.message


def test_listening_on_another_address_than_the_certname(confdir: Path) -> None:
    error = mistake(confdir, "192.0.2.1:8140")
    assert "The proxy would listen on 192.0.2.1" in error.message
    assert run_road._listen("127.0.0.1", "127.0.0.1:9000") == "127.0.0.1:9000"
    assert run_road._listen("127.0.0.1", "0.0.0.0:9000") == "0.0.0.0:9000"
    assert run_road._listen("127.0.0.2", None) == "127.0.0.2"


@pytest.mark.parametrize(
    ("conf", "version", "options"),
    [
        (_conf(), (7, 1), "--server n.example --serverport 9"),
        (_conf(), None, "--server n.example --serverport 9"),
        (_conf(), (6, 1), "--server n.example --masterport 9"),
        (
            _conf(server_list=(("a", 1), ("b", 2))),
            (8, 1),
            "--server n.example --serverport 9 --server_list n.example:9",
        ),
        (
            _conf(ca_server="c", ca_port=1, report_server="r", report_port=2, use_srv_records=True),
            (3, 1),
            (
                "--server n.example --masterport 9 --ca_server n.example --report_server n.example "
                "--ca_port 9 --report_port 9 --no-use_srv_records"
            ),
        ),
    ],
)
def test_an_old_agent_sends_everything_to_the_proxy(
    conf: PuppetConf, version: tuple[int, int] | None, options: str
) -> None:
    assert run_road.redirections(conf, 9, version) == options.split()


def test_of_a_server_list_the_first_that_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.create_server(("127.0.0.1", 0)) as server:
        gone, there = silent.getsockname(), server.getsockname()
        silent.close()
        assert run_road._master(_conf(server_list=(gone, there))) == there
    assert run_road._master(_conf()) == ("puppet", 8140)


def test_an_http_proxy_does_not_stand_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert "no_proxy" not in run_road._environment(_conf())
    assert run_road._environment(_conf(http_proxy=PROXY, no_proxy=".x"))["no_proxy"] == ".x,n.example"
    monkeypatch.setenv("HTTP_PROXY", "http://p:1")
    monkeypatch.setenv("NO_PROXY", ".y")
    assert run_road._environment(_conf())["no_proxy"] == ".y,n.example"
