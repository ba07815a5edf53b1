"""Faults that both proxies inject on purpose: what the agent gets, what is recorded, and who cannot reach them."""

from __future__ import annotations

import json
import ssl
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from inspector.lab.ca import LabCA
from inspector.model import Exchange, Handshake
from inspector.proxy.faults import fault
from inspector.summaries import conclusions
from tests.e2e.wire import Peer, read
from tests.support.proxies import ONE_PROXY, analyzed, exchanges, records
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import Protocol

    from inspector.lab import Lab
    from inspector.proxy.launcher import Proxy
    from tests.support.proxies import Proxied

    class Start(Protocol):
        """Starts a proxy with faults."""

        def __call__(self, *faults: str, **options: str | Path) -> AbstractContextManager[Injected]: ...


NAME = "web1.lab.example"
OTHER = "web2.lab.example"
CATALOG = f"/puppet/v3/catalog/{NAME}?environment=production"
NODE = f"/puppet/v3/node/{NAME}?environment=production"
CRL = "/puppet-ca/v1/certificate_revocation_list/ca"
AGENT = {"X-Puppet-Version": "7.23.0"}


class Injected:
    """A proxy with faults, and agents that ask what they are told to."""

    def __init__(self, lab: Lab, proxy: Proxy, capture: Path) -> None:
        self.lab, self.proxy, self.capture = lab, proxy, capture
        self._places = {name: lab.agent(name, enrolled=True).place for name in (NAME, OTHER)}

    def peer(self, name: str | None = NAME) -> Peer:
        place = self._places[name or NAME]
        peer = Peer.of(self.proxy.address, self.lab.proxy_name, place)
        return peer if name else Peer(peer.address, peer.name, place.ca)

    @property
    def announced(self) -> list[str]:
        """The uses of faults that the proxy printed."""
        return [line for line in self.proxy.lines if line.startswith("-- fault: ") and "on purpose, as" not in line]


@pytest.fixture
def injected(lab: Lab, proxied: Proxied, capture: Path) -> Start:
    """Starts a proxy with faults."""

    @contextmanager
    def start(*faults: str, **options: str | Path) -> Iterator[Injected]:
        with proxied(lab, puppet_fault=faults, **options) as proxy:
            yield Injected(lab, proxy, capture)

    return start


def test_an_answer_in_the_masters_place(injected: Start, lab: Lab, capture: Path) -> None:
    with injected(f"503=10 agent:{NAME} phase:catalog nth:1") as scene:
        body = b"environment=production&facts=%7B%7D" * 3000
        first = scene.peer().ask("POST", CATALOG, body, AGENT)
        asked = len(lab.master.received)
        second = scene.peer().ask("POST", CATALOG, body, AGENT)
        assert eventually(lambda: len(scene.announced) == 1)
    assert first.status == 503
    assert ("Retry-After", "10") in first.headers
    assert asked == 0
    assert second.status == 200
    assert scene.announced == [
        f"-- fault: answered 503 with Retry-After: 10: POST /puppet/v3/catalog/{NAME} of {NAME} (127.0.0.1)"
    ]
    one, two = exchanges(capture)
    assert (one.injected, two.injected) == ("answered 503 with Retry-After: 10", "")
    assert one.request.size == len(body)
    assert one.identity
    assert one.master is None
    assert one.response
    assert one.response.status == 503


def test_an_error(injected: Start, lab: Lab, capture: Path) -> None:
    with injected(f"500 agent:{NAME} method:GET") as scene:
        with scene.peer().connect() as connection:  # the connection serves the next request
            for _ in range(2):
                connection.sendall(f"GET {NODE} HTTP/1.1\r\nHost: n\r\n\r\n".encode())
                assert read(connection).status == 500
        assert lab.master.received == []
    assert [record.injected for record in exchanges(capture)] == ["answered 500"] * 2


def test_an_agent_that_asks_whether_to_send_its_body_is_invited(injected: Start, capture: Path) -> None:
    with (
        injected(f"500 agent:{NAME} phase:report") as scene,
        scene.peer().connect() as connection,
    ):
        target = f"/puppet/v3/report/{NAME}?environment=production"
        head = f"PUT {target} HTTP/1.1\r\nHost: n\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        connection.sendall(head.encode())
        assert connection.recv(65536).startswith(b"HTTP/1.1 100 ")
        connection.sendall(b"{}")
        assert read(connection).status == 500
    (record,) = exchanges(capture)
    assert record.request.body == b"{}"


def test_an_empty_catalog(injected: Start, lab: Lab, capture: Path) -> None:
    with injected(f"empty-catalog agent:{NAME}") as scene:
        answer = scene.peer().ask("POST", CATALOG, b"a=b", AGENT)
        assert scene.peer().ask("GET", NODE).status == 200, "it is for catalogs only"
        assert [entry.request.path for entry in lab.master.received] == [f"/puppet/v3/node/{NAME}"]
    document = json.loads(answer.body)
    assert (document["name"], document["environment"], document["resources"]) == (NAME, "production", [])
    assert [record.injected for record in exchanges(capture)] == ["answered with an empty catalog", ""]


def test_a_reset(injected: Start, lab: Lab, capture: Path) -> None:
    with injected(f"reset agent:{NAME} nth:1") as scene:
        with pytest.raises(ConnectionResetError):
            scene.peer().ask("POST", CATALOG, b"a=b", AGENT)
        assert lab.master.received == []
        assert scene.peer().ask("GET", NODE).status == 200
    one, two = exchanges(capture)
    assert (one.response, one.error) == (None, "connection reset instead of an answer")
    assert (one.injected, two.injected) == ("connection reset instead of an answer", "")
    assert one.request.body == b"a=b"


@pytest.mark.parametrize("body", [b"", b"a=b" * 50_000], ids=["GET", "POST"])
def test_a_delay(injected: Start, lab: Lab, capture: Path, body: bytes) -> None:
    with injected(f"delay=1s agent:{NAME}") as scene:
        began = time.monotonic()
        answer = scene.peer().ask("POST" if body else "GET", CATALOG if body else NODE, body, AGENT)
        took = time.monotonic() - began
        (received,) = lab.master.received
    assert answer.status == 200
    assert took >= 1
    assert received.request.body == body
    assert received.certname == NAME
    (record,) = exchanges(capture)
    assert record.injected == "delayed by 1 s"
    assert record.request.body == body
    assert record.ended - record.time >= 1


def test_an_agent_that_leaves_meanwhile_is_recorded(injected: Start, lab: Lab, capture: Path) -> None:
    with injected(f"delay=1h agent:{NAME}") as scene:
        with scene.peer().connect() as connection:
            connection.sendall(f"GET {NODE} HTTP/1.1\r\nHost: n\r\n\r\n".encode())
            assert eventually(lambda: bool(scene.announced))
        assert eventually(lambda: bool(records(capture)))
        assert lab.master.received == []
    (record,) = exchanges(capture)
    assert (record.injected, record.error, record.response) == ("delayed by 3600 s", "the agent disconnected", None)


def test_a_throttled_answer(injected: Start, lab: Lab, capture: Path) -> None:
    with injected(f"throttle=500 agent:{NAME} phase:catalog") as scene, scene.peer().connect() as connection:
        began = time.monotonic()
        connection.sendall(f"POST {CATALOG} HTTP/1.1\r\nHost: n\r\nContent-Length: 0\r\n\r\n".encode())
        answer = read(connection)
        took = time.monotonic() - began
        connection.sendall(f"GET {NODE} HTTP/1.1\r\nHost: n\r\n\r\n".encode())
        assert read(connection).status == 200
        assert time.monotonic() - began - took < took
    least = len(answer.body) / 500
    assert least > 1
    assert took >= least
    slow, quick = exchanges(capture)
    assert (slow.injected, quick.injected) == ("answer throttled to 500 bytes a second", "")
    assert slow.response
    assert slow.response.body == answer.body
    assert slow.ended - slow.time >= least


def _all_of(connection: ssl.SSLSocket) -> bytes:
    data = b""
    while piece := connection.recv(65536):
        data += piece
    return data


@pytest.mark.parametrize("size", [0, 500])
def test_an_answer_that_is_cut_off(injected: Start, lab: Lab, capture: Path, size: int) -> None:
    with injected(f"cut={size} agent:{NAME} phase:catalog") as scene:
        with scene.peer().connect() as connection:
            connection.sendall(f"POST {CATALOG} HTTP/1.1\r\nHost: n\r\nContent-Length: 0\r\n\r\n".encode())
            data = _all_of(connection)
        assert scene.peer().ask("GET", NODE).status == 200
        assert eventually(lambda: len(records(capture)) == 2)
    assert data.startswith(b"HTTP/1.1 200 ")
    assert not data.endswith(b"0\r\n\r\n")
    cut, whole = exchanges(capture)
    assert cut.injected == cut.error == f"answer cut off after {size} bytes"
    assert cut.response
    assert len(cut.response.body) == size
    assert cut.response.body in data
    assert (whole.injected, whole.error) == ("", None)
    assert len(scene.announced) == 1


def test_what_is_shorter_is_not_cut_off(injected: Start, lab: Lab, capture: Path) -> None:
    with injected(f"cut=1m agent:{NAME}") as scene:
        assert scene.peer().ask("POST", CATALOG, b"a=b", AGENT).status == 200
        assert scene.announced == []
    assert [(record.injected, record.error) for record in exchanges(capture)] == [("", None)]


def test_json_that_is_corrupt(injected: Start, lab: Lab, capture: Path) -> None:
    with injected(f"corrupt agent:{NAME}") as scene:
        answer = scene.peer().ask("GET", NODE, headers={"Accept-Encoding": "gzip"})
        (received,) = lab.master.received
    assert answer.body.startswith(b"#")
    assert received.request.header("Accept-Encoding") is None
    (record,) = exchanges(capture)
    assert record.injected == "first byte of the answer replaced"
    assert record.response
    assert record.response.body == answer.body
    assert record.request.header("Accept-Encoding") == "gzip"


def test_an_expired_crl(injected: Start, lab: Lab, capture: Path, tmp_path: Path) -> None:
    cadir = tmp_path / "ca"
    lab.ca.write_cadir(cadir)
    with injected(f"crl=mint:{cadir} agent:127.0.0.1") as scene:
        agent = lab.agent("web3.lab.example")
        result = agent.run()
        assert eventually(lambda: len(scene.announced) >= 1)
    assert any("CRL has expired" in line for line in result.log)
    crls = [record for record in exchanges(capture) if record.request.path == CRL]
    assert {record.injected for record in crls} == {"answered with an expired CRL"}
    (run,) = analyzed(capture).runs
    first = crls[0].seq
    assert [found for found in run.findings if found.severity != "notice" and max(found.seqs) >= first] == []
    brief = conclusions.of_run(run)
    assert brief.verdict
    assert "a fault was injected here on purpose (answered with an expired CRL, record 2" in brief.verdict.message


def test_another_certificate(injected: Start, lab: Lab, capture: Path, tmp_path: Path) -> None:
    cadir = tmp_path / "ca"
    lab.ca.write_cadir(cadir)
    with injected(f"certificate=mint:{cadir} agent:127.0.0.1 nth:1-2") as scene:
        with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
            scene.peer().ask("GET", NODE)
        careless = Peer(scene.proxy.address, scene.lab.proxy_name, None, scene.peer().identity)
        refused = careless.ask("GET", NODE, headers=AGENT).status
        assert scene.peer().ask("GET", NODE).status == 200
        assert [entry.certname for entry in lab.master.received] == [None, NAME]
    assert refused == 403, "over such a connection no identity is used"
    handshake, careful, after = records(capture)
    assert isinstance(handshake, Handshake)
    assert isinstance(careful, Exchange)
    assert isinstance(after, Exchange)
    note = "presented another certificate (puppet-inspector-fault.invalid)"
    assert [handshake.injected, careful.injected, after.injected] == [note, note, ""]
    assert careful.identity
    assert careful.identity.certname is None
    assert careful.identity.reason == "a fault was injected into its handshake on purpose"


def test_a_refused_handshake(injected: Start, lab: Lab, capture: Path) -> None:
    with injected("refuse agent:127.0.0.1 nth:1") as scene:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            scene.peer().ask("GET", NODE)
        assert scene.peer().ask("GET", NODE).status == 200
        assert eventually(lambda: len(scene.announced) == 1)
    handshake, after = records(capture)
    assert isinstance(handshake, Handshake)
    assert isinstance(after, Exchange)
    assert (handshake.injected, after.injected) == ("handshake refused", "")
    assert handshake.reason == "the proxy refused the handshake"
    assert handshake.alert_by == "proxy"


# -- who is not reached -----------------------------------------------------------------------------------


@ONE_PROXY
def test_others_are_left_alone(injected: Start, lab: Lab, capture: Path) -> None:
    """Neither another agent, nor one that only claims the name."""
    with injected(f"500 agent:{NAME}", "delay=1h agent:192.0.2.7") as scene:
        assert scene.peer(OTHER).ask("GET", NODE.replace(NAME, OTHER), headers=AGENT).status == 200
        # In the URL, in a header, in the SNI.
        claims = {"X-Client-DN": f"CN={NAME}", "X-Client-Verify": "SUCCESS", "X-Forwarded-For": "192.0.2.7"}
        assert scene.peer(OTHER).ask("GET", NODE, headers={**AGENT, **claims}).status == 403
        assert scene.peer(None).ask("GET", f"/puppet-ca/v1/certificate/{NAME}", headers=AGENT).status == 200
        assert scene.announced == []
    assert [record.injected for record in exchanges(capture)] == [""] * 3


def test_a_certificate_of_another_ca_reaches_no_fault(injected: Start, lab: Lab, capture: Path, tmp_path: Path) -> None:
    place = LabCA("puppet.elsewhere.example").enrol(tmp_path / "foreign", NAME)
    with injected(f"500 agent:{NAME}") as scene:
        foreign = Peer(scene.proxy.address, lab.proxy_name, None, (place.certificate, place.key))
        with pytest.raises((ssl.SSLError, ConnectionError)):
            foreign.ask("GET", NODE, headers=AGENT)
        assert scene.announced == []


def test_a_fault_uses_no_identity(injected: Start, lab: Lab, capture: Path) -> None:
    """Without a certificate an agent at the chosen address gets what it gets without the fault: nothing as somebody."""
    with injected("delay=0.1s agent:127.0.0.1", "corrupt agent:127.0.0.1") as scene:
        assert scene.peer(None).ask("GET", NODE, headers=AGENT).status == 403
        assert [entry.certname for entry in lab.master.received] == [None]
    (record,) = exchanges(capture)
    assert record.identity
    assert record.identity.certname is None


@ONE_PROXY
def test_only_what_is_recorded_is_reached(injected: Start, lab: Lab, capture: Path) -> None:
    with injected("500", puppet_only=NAME) as scene:
        assert scene.peer(OTHER).ask("GET", NODE.replace(NAME, OTHER), headers=AGENT).status == 200
        assert scene.peer(None).ask("GET", "/puppet-ca/v1/certificate/ca").status == 200
        assert scene.peer().ask("GET", NODE).status == 500
        assert eventually(lambda: len(scene.announced) == 1)


@ONE_PROXY
def test_a_share_is_the_same_each_time(injected: Start, lab: Lab, capture: Path) -> None:
    with injected(f"500 agent:{NAME} share:30% seed:7") as scene, scene.peer().connect() as connection:
        found = []
        for _ in range(40):
            connection.sendall(f"GET {NODE} HTTP/1.1\r\nHost: n\r\n\r\n".encode())
            found.append(read(connection).status == 500)
    chosen = fault.parse(f"500 agent:{NAME} share:30% seed:7")
    assert found == [chosen.hits(NAME, number) for number in range(1, 41)]
    assert 4 < sum(found) < 20


# -- what is made of it -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    ["503=1", "500", "delay=0.2s", "throttle=50k", "cut=100", "reset", "corrupt", "empty-catalog"],
)
@ONE_PROXY
def test_nobody_else_is_blamed(line: str, injected: Start, lab: Lab, capture: Path) -> None:
    with injected(f"{line} agent:{NAME} phase:catalog"):
        lab.agent(NAME, enrolled=True).run()
    analyzer = analyzed(capture)
    (run,) = analyzer.runs
    assert run.injected
    assert [(found.rule, found.message) for found in run.findings if found.severity in ("error", "warning")] == []
    brief = conclusions.of_run(run)
    assert brief.verdict
    assert "a fault was injected here on purpose" in brief.verdict.message
    assert brief.cause is None


@ONE_PROXY
def test_at_start_it_is_announced(injected: Start) -> None:
    with injected(f"500 agent:{NAME}") as scene:
        pass
    assert f"-- fault: on purpose, as long as this proxy runs: 500 agent:{NAME}" in scene.proxy.lines
