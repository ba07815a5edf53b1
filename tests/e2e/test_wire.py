"""The wire of both legs, recorded and exported: tshark decrypts it, and finds what the capture has."""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
from typing import TYPE_CHECKING

import pytest

from inspector.errors import InspectorError
from inspector.formats import wire
from inspector.formats.share import share
from inspector.model import Exchange, Handshake
from inspector.proxy.launcher import Proxy
from tests.support import proxies
from tests.support.decrypted import compare
from tests.support.programs import fields, tree, tshark

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.lab import Lab
    from tests.conftest import Run


def recorded(lab: Lab, capture: Path, *arguments: str, **options: str) -> Proxy:
    given = {**proxies.options(lab, capture), "puppet_wire": "true", **options}
    return Proxy(given, arguments=arguments, own=True)


@pytest.mark.parametrize("arguments", [(), ("--workers", "2")], ids=["one", "workers"])
def test_tshark_decrypts_a_bootstrap_and_a_run(
    lab: Lab, capture: Path, tmp_path: Path, run: Run, arguments: tuple[str, ...]
) -> None:
    with recorded(lab, capture, *arguments) as proxy:
        lab.proxy_address = proxy.address
        assert lab.agent("agent.lab.example").run().status == 2
    assert proxy.status == 0
    assert any("puppet_wire records the TLS of all connections" in line for line in proxy.lines)
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in wire.files(capture))
    path = tmp_path / "x.pcapng"
    status, out, _ = run("export", capture, "--wire", "-o", path)
    assert status == 0
    assert "everything in it can be read" in out
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(compare(path, capture)) > 10
    # The secrets come before the first packet, and TLS, certificates and JSON are dissected.
    assert {int(version, 16) for (version,) in fields(path, "tls.handshake.type == 2 && tls.handshake.extensions."
            "supported_version", "tls.handshake.extensions.supported_version")} == {0x0304}  # fmt: skip
    certificates = tshark(path, "-Y", "tls.handshake.certificate", "-T", "fields", "-e", "x509sat.uTF8String",
                          "-e", "x509sat.printableString")  # fmt: skip
    assert "agent.lab.example" in certificates
    assert tree(path, "http.response && json")
    # Each file of a process opens by itself as well.
    assert sum(len(fields(each, "http.request && tls", "frame.number")) for each in wire.files(capture)) == len(
        fields(path, "http.request && tls", "frame.number")
    )


def test_only_the_chosen_connections_leave(lab: Lab, capture: Path, tmp_path: Path, run: Run) -> None:
    with recorded(lab, capture) as proxy:
        lab.proxy_address = proxy.address
        for name in ("a", "b"):
            assert lab.agent(f"{name}.lab.example").run().status == 2
    path = tmp_path / "x.pcapng"
    assert run("export", capture, "--wire", "--filter", "agent:a.lab.example phase:catalog", "-o", path)[0] == 0
    uris = [uri for (uri,) in fields(path, "http.request", "http.request.uri")]
    assert any("catalog/a.lab.example" in uri for uri in uris)
    assert not any("b.lab.example" in uri for uri in uris)
    # Nothing else takes the wire along.
    share(capture, tmp_path / "shared.sqlite")
    for name in ("plain.pcapng", "plain.har", "plain.jsonl", "plain.mitm"):
        assert run("export", capture, "-o", tmp_path / name)[0] == 0
    (file,) = wire.files(capture)
    decrypting = re.findall(rb"TRAFFIC_SECRET_0 [0-9a-f]+ ([0-9a-f]+)", file.read_bytes())
    assert len(decrypting) > 4
    assert any(secret in path.read_bytes() for secret in decrypting), "an export of the wire has them"
    for left in ({*capture.parent.iterdir()} - {file}) | {*tmp_path.glob("shared.*"), *tmp_path.glob("plain.*")}:
        assert not any(secret in left.read_bytes() for secret in decrypting), left
    assert fields(tmp_path / "plain.pcapng", "tls", "frame.number") == []
    assert wire.files(tmp_path / "shared.sqlite") == []


def test_a_failed_handshake_and_its_alert_are_there_as_they_were(lab: Lab, capture: Path, tmp_path: Path) -> None:
    with recorded(lab, capture) as proxy:
        context = ssl.create_default_context()  # it does not know the CA
        with socket.create_connection(proxy.address) as plain, contextlib.suppress(ssl.SSLError):
            context.wrap_socket(plain, server_hostname=lab.proxy_name)
        with socket.create_connection(proxy.address) as silent:
            silent.sendall(b"\x16\x03\x01")
        with socket.create_connection(proxy.address) as http:
            http.sendall(b"GET /plain HTTP/1.1\r\nHost: x\r\n\r\n")
            http.recv(100)
    assert any(isinstance(record, Handshake) and record.alert == "unknown_ca" for record in proxies.records(capture))
    path = tmp_path / "x.pcapng"
    assert wire.write(capture, None, path) == 3
    alerts = fields(path, "tls.alert_message", "tls.alert_message.desc", "tcp.dstport")
    assert [int(description) for description, _ in alerts] == [48]
    assert alerts[0][1] == str(proxy.address[1])
    assert [uri for (uri,) in fields(path, "http.request", "http.request.uri")] == ["/plain"]


def test_tls_1_2_is_decrypted_too(lab: Lab, capture: Path, tmp_path: Path) -> None:
    place = lab.agent("web1.lab.example", enrolled=True).place
    with recorded(lab, capture) as proxy:
        context = ssl.create_default_context(cafile=str(place.ca))
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(place.certificate, place.key)
        with (
            socket.create_connection(proxy.address) as plain,
            context.wrap_socket(plain, server_hostname=lab.proxy_name) as agent,
        ):
            agent.sendall(b"GET /puppet/v3/node/web1.lab.example?environment=production HTTP/1.1\r\nHost: m\r\n\r\n")
            assert agent.recv(4096).startswith(b"HTTP/1.1 200")
    path = tmp_path / "x.pcapng"
    wire.write(capture, None, path)
    (brief,) = compare(path, capture)
    assert brief.status == 200


@pytest.mark.parametrize("option", ["puppet_redact=write", "puppet_only=a*", "puppet_rotate_size=1M"])
def test_what_leaves_a_part_out_is_refused(lab: Lab, capture: Path, option: str) -> None:
    name, _, value = option.partition("=")
    with pytest.raises(InspectorError) as caught, recorded(lab, capture, **{name: value}):
        pass
    assert f"puppet_wire is not possible with {name}." in str(caught.value)


def test_mitmdump_refuses_it(lab: Lab, capture: Path) -> None:
    options = {**proxies.options(lab, capture), "puppet_wire": "true"}
    with pytest.raises(InspectorError) as caught, Proxy(options):
        pass
    assert "puppet_wire is not possible with mitmproxy." in str(caught.value)
    assert wire.files(capture) == []


@pytest.mark.parametrize("own", [False, True], ids=["mitmdump", "own"])
def test_sslkeylogfile_is_honoured(
    lab: Lab, capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: bool
) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys.log"))
    with Proxy(proxies.options(lab, capture), own=own) as proxy:
        lab.proxy_address = proxy.address
        assert lab.agent("agent.lab.example").run().status == 2
    assert (tmp_path / "keys.log").stat().st_mode & 0o777 == 0o600
    lines = (tmp_path / "keys.log").read_text().splitlines()
    randoms = {line.split()[1] for line in lines if line.startswith("CLIENT_TRAFFIC_SECRET_0 ")}
    legs = {leg.id for record in proxies.records(capture) if isinstance(record, Exchange)
            for leg in (record.agent, record.master) if leg}  # fmt: skip
    assert len(randoms) >= len(legs)
    assert any("SSLKEYLOGFILE" in line for line in proxy.lines)


def test_a_key_log_that_cannot_be_written_ends_the_proxy(
    lab: Lab, capture: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "no" / "keys.log"))
    with pytest.raises(InspectorError) as caught, Proxy(proxies.options(lab, capture), own=True):
        pass
    assert "which SSLKEYLOGFILE names: No such file or directory" in str(caught.value)
