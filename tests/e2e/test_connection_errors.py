"""A master that is not there, or is something else: what both proxies record of it has one verdict."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from inspector.analysis import verdicts
from tests.e2e.wire import ScriptedMaster, Service, reset
from tests.support.proxies import analyzed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from inspector.lab import Lab
    from tests.support.proxies import Proxied

NAME = "web1.lab.example"


def web_server(connection: socket.socket) -> None:
    connection.recv(1000)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\nThis is an HTTPS port")


def resets(connection: socket.socket) -> None:
    connection.recv(1000)
    reset(connection)


def closes(_: socket.socket) -> None:
    pass


def cause(lab: Lab, proxied: Proxied, capture: Path, target: str) -> tuple[str, str]:
    """The rule and sentence of the verdict on an agent's run."""
    with proxied(lab, puppet_master=target):
        assert lab.agent(NAME, enrolled=True).run().status == 1
    (run,) = analyzed(capture).runs
    verdict = verdicts.verdict(run)
    assert verdict
    assert verdict.cause
    assert verdict.certainty == "certain"
    others = {finding.rule for finding in run.findings} - {verdict.cause.rule}
    assert others <= set(verdict.symptoms), "all else follows from it"
    return verdict.cause.rule, verdict.cause.message


@pytest.mark.both_roads
def test_a_closed_port(lab: Lab, proxied: Proxied, capture: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        target = f"127.0.0.1:{taken.getsockname()[1]}"
    rule, message = cause(lab, proxied, capture, target)
    assert (rule, message) == ("T18", f"{target} refused the connection: no master listens there")


def test_a_name_without_an_address(lab: Lab, proxied: Proxied, capture: Path) -> None:
    rule, message = cause(lab, proxied, capture, "puppet.invalid:8140")
    assert rule == "T19"
    assert "does not resolve where the proxy runs" in message


@pytest.mark.both_roads
def test_a_web_server(lab: Lab, proxied: Proxied, capture: Path) -> None:
    with Service(web_server) as service:
        rule, message = cause(lab, proxied, capture, service.target)
    assert (rule, message) == ("T21", f"{service.target} does not speak TLS, so it is no Puppet master's port")


@pytest.mark.parametrize("way", [resets, closes])
def test_what_ends_every_handshake(
    way: Callable[[socket.socket], None], lab: Lab, proxied: Proxied, capture: Path
) -> None:
    with Service(way) as service:
        rule, message = cause(lab, proxied, capture, service.target)
    assert (rule, message) == ("T22", f"{service.target} ended the TLS handshake without a reason")


@pytest.mark.both_roads
def test_what_closes_every_connection(lab: Lab, proxied: Proxied, capture: Path) -> None:
    with ScriptedMaster(lab.master.context, closes) as service:
        rule, message = cause(lab, proxied, capture, service.target)
    assert rule == "T28"
    assert message.startswith("the master closed every connection without an answer: most often because it refuses")
