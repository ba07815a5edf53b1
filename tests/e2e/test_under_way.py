"""What is under way is in the capture while it is, on both roads, and is gone with its record."""

from __future__ import annotations

import os
import signal
import threading
import time
import urllib.request
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from inspector.capture.store import Capture
from inspector.errors import CaptureError
from inspector.proxy.launcher import Proxy
from tests.e2e.wire import Peer
from tests.support import proxies
from tests.support.proxies import APART, ONE_PROXY, analyzed, exchanges, free_port
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from inspector.lab import Lab
    from inspector.model import Present, Request, Response
    from tests.support.proxies import Proxied

NAME = "agent.lab.example"


class Hold:
    """A lab's master that answers some requests only when it is told to."""

    def __init__(self, lab: Lab, part: str) -> None:
        self.part = part
        self.entered = threading.Semaphore(0)
        self.go_on = threading.Event()
        http = lab.master._server._http
        self._answer = http.answer
        http.answer = self.answer

    @contextmanager
    def meanwhile(self, *acts: Callable[[], object]) -> Iterator[None]:
        """Do things on other threads, and wait until the master holds a request of each; at the end it answers."""
        threads = [threading.Thread(target=act) for act in acts]
        for thread in threads:
            thread.start()
        try:
            for _ in acts:
                assert self.entered.acquire(timeout=60)
            yield
        finally:
            self.go_on.set()
            for thread in threads:
                thread.join()

    def answer(self, request: Request, certname: str | None) -> Response:
        if self.part in request.target:
            self.entered.release()
            assert self.go_on.wait(120)
        return self._answer(request, certname)


@pytest.fixture
def held(lab: Lab) -> Iterator[Hold]:
    """A master that takes its time to compile."""
    made = Hold(lab, "/catalog/")
    yield made
    made.go_on.set()


def lost(act: Callable[[], object]) -> None:
    """Do something that fails as the proxy is killed."""
    with suppress(Exception):
        act()


def present(capture: Path) -> Present:
    with Capture.open(capture) as opened:
        return opened.present(time.time())


def targets(capture: Path) -> list[str]:
    return [request.target.partition("?")[0] for request in present(capture).requests]


def test_a_catalog_that_is_compiled_is_under_way_until_it_is_recorded(
    lab: Lab, held: Hold, proxied: Proxied, capture: Path
) -> None:
    status: list[int] = []
    with proxied(lab) as proxy:
        agent = lab.agent(NAME, enrolled=True)
        assert eventually(lambda: present(capture).recording == "open")
        with held.meanwhile(lambda: status.append(agent.run().status)):
            assert eventually(lambda: targets(capture) == [f"/puppet/v3/catalog/{NAME}"])
            found = present(capture)
            (request,) = found.requests
            assert request.method == "POST"
            assert "environment=" in request.target
            (connection,) = [each for each in found.connections if each.leg == request.leg]
            assert connection.certname == NAME
            assert connection.address == "127.0.0.1"
            assert connection.connected <= request.time <= found.time
            assert 0 < connection.last <= request.time
            assert not any("/catalog/" in record.request.target for record in exchanges(capture))
        assert status == [2]
        assert eventually(lambda: any("/catalog/" in record.request.target for record in exchanges(capture)))
        assert f"/puppet/v3/catalog/{NAME}" not in targets(capture)  # it went with its record
        assert eventually(lambda: not present(capture).connections)
    assert proxy.status == 0
    assert (present(capture).recording, present(capture).requests) == ("ended", ())
    (run,) = analyzed(capture).runs
    assert {each.leg for each in found.connections} <= {record.agent.id for record in exchanges(capture)}
    assert run.outcome == "complete"


@ONE_PROXY
def test_kill_9_leaves_what_was_under_way(lab: Lab, held: Hold, proxied: Proxied, capture: Path) -> None:
    with proxied(lab) as proxy, held.meanwhile(lambda: lost(lab.agent(NAME, enrolled=True).run)):
        assert eventually(lambda: targets(capture) == [f"/puppet/v3/catalog/{NAME}"])
        assert present(capture).recording == "open"
        proxy.process.send_signal(signal.SIGKILL)
        proxy.process.wait()
        found = present(capture)
        assert (found.recording, len(found.requests)) == ("cut off", 1)
    assert present(capture) == found


@ONE_PROXY
def test_masked_and_chosen_as_records_are(lab: Lab, held: Hold, proxied: Proxied, capture: Path) -> None:
    names = (NAME, "other.lab.example")
    with (
        proxied(lab, puppet_redact="write", puppet_only=NAME),
        held.meanwhile(*(lab.agent(name, enrolled=True).run for name in names)),
    ):
        assert eventually(lambda: [each.target for each in present(capture).requests] == [f"/puppet/v3/catalog/{NAME}"])
        assert {connection.certname for connection in present(capture).connections} == {NAME}


def test_each_worker_tells_its_own(lab: Lab, held: Hold, capture: Path) -> None:
    options = proxies.options(lab, capture)
    with Proxy(options, arguments=("--workers", "2"), own=True) as proxy:
        lab.proxy_address = proxy.address
        agents = [lab.agent(f"agent{n}.lab.example", enrolled=True, source=source) for n, source in enumerate(APART)]
        with held.meanwhile(*(agent.run for agent in agents)):
            assert eventually(lambda: len(targets(capture)) == 2)
            assert present(capture).recording == "open"
    assert (present(capture).recording, present(capture).requests) == ("ended", ())


def test_another_part_has_what_goes_on_in_it(lab: Lab, held: Hold, capture: Path) -> None:
    options = {**proxies.options(lab, capture), "puppet_rotate_size": "1"}
    with Proxy(options, own=True) as proxy:
        lab.proxy_address = proxy.address
        with held.meanwhile(lab.agent(NAME, enrolled=True).run):
            assert eventually(lambda: len(list(capture.parent.glob("*.sqlite"))) > 1)

            def parts() -> dict[str, int]:
                found: dict[str, int] = {}
                for path in capture.parent.glob("*.sqlite"):
                    with suppress(CaptureError):  # one that is being created
                        found[present(path).recording] = len(present(path).requests)
                return found

            assert eventually(lambda: parts().get("open") == 1)
            assert present(capture).recording == "ended"
    assert set(parts()) == {"ended"}


@ONE_PROXY
def test_a_long_target_is_cut(lab: Lab, proxied: Proxied, capture: Path) -> None:
    held = Hold(lab, "/node/")
    with proxied(lab) as proxy:
        peer = Peer(proxy.address, lab.proxy_name)
        long = f"/puppet/v3/node/{NAME}?x=" + os.urandom(5000).hex()
        with held.meanwhile(lambda: peer.ask("GET", long)):
            assert eventually(lambda: len(present(capture).requests) == 1)
            (request,) = present(capture).requests
            assert len(request.target) == 500
            assert long.startswith(request.target)


@pytest.mark.parametrize("arguments", [(), ("--workers", "2")], ids=["alone", "workers"])
def test_it_is_measured(lab: Lab, held: Hold, capture: Path, arguments: tuple[str, ...]) -> None:
    port = free_port()
    options = {**proxies.options(lab, capture), "puppet_metrics": f"{proxies.HOST}:{port}"}
    with Proxy(options, arguments=arguments, own=True) as proxy:
        lab.proxy_address = proxy.address

        def counted() -> set[str]:
            with urllib.request.urlopen(f"http://{proxies.HOST}:{port}/metrics") as answer:
                lines = answer.read().decode().splitlines()
            return {line for line in lines if "_under_way{" in line and not line.endswith(" 0.0")}

        with held.meanwhile(lab.agent(NAME, enrolled=True).run):
            assert eventually(lambda: len(counted()) == 2)
            assert counted() == {
                'puppet_inspector_requests_under_way{phase="catalog"} 1.0',
                'puppet_inspector_runs_under_way{phase="catalog"} 1.0',
            }
        assert eventually(lambda: counted() == set())


@pytest.mark.slow
@ONE_PROXY
def test_the_console_says_what_lasts_and_no_verdict_before_the_end(
    lab: Lab, held: Hold, proxied: Proxied, capture: Path
) -> None:
    with proxied(lab) as proxy:
        with held.meanwhile(lab.agent(NAME, enrolled=True).run):
            assert eventually(lambda: any(f"{NAME}    ... waits for its catalog, " in line for line in proxy.lines))
            assert not any(line.startswith(("== ", "run 1: ")) for line in proxy.lines)
        assert eventually(lambda: any(line.startswith("== ") for line in proxy.lines))
    (summed,) = [line for line in proxy.lines if line.startswith("== ")]
    assert f"of {NAME} (7.23.0): complete in" in summed


@pytest.mark.slow
def test_an_agent_that_left_waits_for_nothing(lab: Lab, held: Hold, proxied: Proxied, capture: Path) -> None:
    with proxied(lab) as proxy:
        leaves = threading.Event()

        def ask() -> None:
            with Peer(proxy.address, lab.proxy_name).connect() as connection:
                connection.sendall(f"POST /puppet/v3/catalog/{NAME} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                leaves.wait()

        with held.meanwhile(ask):
            assert eventually(lambda: len(targets(capture)) == 1)
            leaves.set()
            assert eventually(lambda: not targets(capture))
