"""What somebody who reaches the proxy could try against the recording, the other agents and the proxy itself.

Each of these once worked (or nearly did).
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from inspector import installation
from inspector.capture.store import Capture
from inspector.host.puppetconf import split_address
from inspector.model import Exchange, Response
from tests.e2e.wire import Peer
from tests.support import proxies
from tests.support.proxies import analyzed, exchanges, records
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.lab import Lab
    from tests.support.proxies import Proxied


NAME = "web1.lab.example"
NODE = f"/puppet/v3/node/{NAME}?environment=production"


@pytest.mark.both_roads
def test_bytes_that_are_no_text_do_not_stop_the_recording(lab: Lab, proxied: Proxied, capture: Path) -> None:
    place = lab.agent(NAME, enrolled=True).place
    hostile = (
        b"G\xffT /x HTTP/1.1\r\nHost: n\r\n\r\n",
        b"GET /x HTTP/1.1\r\nHost: n\r\nX-SSL-\xff: 1\r\n\r\n",
        b"GET /\xff\xfe?\xff HTTP/1.1\r\nHost: n\r\nUser-Agent: \xff\r\n\r\n",
    )
    with proxied(lab) as proxy:
        for data in hostile:
            with Peer(proxy.address, lab.proxy_name).connect() as connection:
                connection.sendall(data)
                connection.recv(1000)
            assert Peer.of(proxy.address, lab.proxy_name, place).ask("GET", NODE).status == 200, data
    targets = [record.request.target for record in exchanges(capture)]
    assert targets.count(NODE) == len(hostile)
    assert not any("-- internal error" in line for line in proxy.lines)


def test_a_console_that_nobody_reads_stops_nobody(lab: Lab, capture: Path, tmp_path: Path) -> None:
    place = lab.agent(NAME, enrolled=True).place
    command = [
        sys.executable,
        "-c",
        "from mitmproxy.tools.main import mitmdump; mitmdump()",
        "-s",
        str(installation.addon()),
    ]
    for name, value in {**proxies.options(lab, capture), "confdir": tmp_path / "mitm"}.items():
        command += ["--set", f"{name}={value}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as proxy:
        assert proxy.stdout
        line = ""
        while "listens on" not in line:
            line = proxy.stdout.readline().decode()
        # From here on nobody reads; a pipe holds 64 kB, some 400 lines.
        peer = Peer.of(split_address(line.split()[-1]), lab.proxy_name, place)
        with peer.connect() as connection:
            for _ in range(800):
                connection.sendall(f"GET {NODE} HTTP/1.1\r\nHost: n\r\n\r\n".encode())
                answer = b""
                while b'"environment"' not in answer and b"\r\n0\r\n\r\n" not in answer:
                    answer += connection.recv(65536)
        with Capture.open(capture) as opened:
            assert eventually(lambda: opened.last == 800)
        proxy.terminate()
        assert proxy.wait(300) == 0


@pytest.mark.both_roads
def test_a_request_in_clear_is_not_answered(lab: Lab, proxied: Proxied) -> None:
    with proxied(lab) as proxy, socket.create_connection(proxy.address, timeout=300) as plain:
        plain.sendall(b"GET /puppet-ca/v1/certificate/ca HTTP/1.1\r\nHost: n\r\n\r\n")
        answer = plain.makefile("rb").read()
    assert answer == b"" or answer[0] == 0x15, "at most an alert"
    assert lab.master.received == []


@pytest.mark.both_roads
def test_an_answer_without_a_length_is_passed_on_while_it_comes(lab: Lab, proxied: Proxied, capture: Path) -> None:
    body = os.urandom(3 * 2**20)
    path = "/puppet/v3/file_content/modules/m/f"
    lab.master.instead["GET", path] = Response(headers=(("Connection", "close"),), body=body, status=200)
    place = lab.agent(NAME, enrolled=True).place
    with proxied(lab) as proxy:
        assert Peer.of(proxy.address, lab.proxy_name, place).ask("GET", path).body == body
    (record,) = records(capture)
    assert isinstance(record, Exchange)
    assert record.response
    assert record.response.body == body


def test_a_crl_in_mid_rewriting_costs_nobody_a_run(lab: Lab, proxied: Proxied) -> None:
    place = lab.agent(NAME, enrolled=True).place
    crl = lab.proxy_ssldir / "crl.pem"
    good = crl.read_bytes()
    with proxied(lab) as proxy:
        peer = Peer.of(proxy.address, lab.proxy_name, place)
        assert peer.ask("GET", NODE).status == 200
        crl.write_bytes(b"")
        assert peer.ask("GET", NODE).status == 200
        crl.write_bytes(good)
        assert peer.ask("GET", NODE).status == 200


def test_a_link_to_a_capture_that_is_being_written(lab: Lab, proxied: Proxied, capture: Path) -> None:
    place = lab.agent(NAME, enrolled=True).place
    with proxied(lab) as proxy:
        Peer.of(proxy.address, lab.proxy_name, place).ask("GET", NODE)
        assert eventually(lambda: capture.exists() and len(records(capture)) == 1)
        latest = capture.parent.parent / "latest.sqlite"
        latest.symlink_to(capture)
        assert len(records(latest)) == 1


def test_who_shows_no_certificate_blames_no_node(lab: Lab, proxied: Proxied, capture: Path) -> None:
    catalog = f"/puppet/v3/catalog/{NAME}?environment=production"
    hostile = f"GET {catalog} HTTP/1.1\r\nHost: n\r\nContent_Length: 1\r\nContent-Length: 1\r\n\r\n"
    with proxied(lab) as proxy:
        agent = lab.agent(NAME, proxy.address, enrolled=True)
        for _ in range(2):
            stranger = Peer(proxy.address, lab.proxy_name)
            for method, target in (("GET", catalog), ("PUT", f"/puppet/v3/report/{NAME}"), ("POST", "/x")):
                assert stranger.ask(method, target).status in (403, 404)
            with stranger.connect() as connection:
                connection.sendall(hostile.encode())
                assert connection.recv(12) in (b"", b"HTTP/1.1 400")
            with socket.create_connection(proxy.address, timeout=300) as plain:
                plain.sendall(f"GET {catalog} HTTP/1.1\r\nHost: n\r\n\r\n".encode())
                plain.recv(10_000)
            assert agent.run().status == 2
    runs = analyzed(capture).runs
    own = [run for run in runs if run.certname == NAME]
    assert [run.outcome for run in own] == ["complete"] * 2
    assert {finding.rule for run in own for finding in run.findings} == set()
    assert {(run.certname, run.stranger) for run in runs} == {(NAME, False), (None, True)}
