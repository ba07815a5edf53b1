"""What a running proxy tells other systems: metrics of all workers at one address."""

from __future__ import annotations

import http.client
import socket
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from inspector.proxy.launcher import Proxy
from tests.support import proxies
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.lab import Lab

pytestmark = pytest.mark.slow


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((proxies.HOST, 0))
        return int(probe.getsockname()[1])


def scraped(port: int) -> dict[str, float]:
    """The sum of the samples of each name."""
    connection = http.client.HTTPConnection(proxies.HOST, port, timeout=30)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    sums: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            sums[sample.name] = sums.get(sample.name, 0) + sample.value
    return sums


@pytest.mark.parametrize(
    ("own", "arguments"), [(False, ()), (True, ()), (True, ("--workers", "2"))], ids=["mitmdump", "own", "workers"]
)
def test_a_run_is_counted(lab: Lab, capture: Path, own: bool, arguments: tuple[str, ...]) -> None:
    port = free_port()
    options = {**proxies.options(lab, capture), "puppet_metrics": f"{proxies.HOST}:{port}"}
    with Proxy(options, arguments=arguments, own=own) as proxy:
        lab.proxy_address = proxy.address
        assert lab.agent("agent.lab.example").run().status == 2
        assert eventually(lambda: scraped(port)["puppet_inspector_runs_total"] == 1)
        sums = scraped(port)
        assert sums["puppet_inspector_request_duration_seconds_count"] == len(proxies.records(capture))
        assert sums["puppet_inspector_capture_bytes"] > 1000
        assert sums["puppet_inspector_recorder_queue_bytes"] >= 0
        # A scraper that says nothing does not keep the proxy from ending.
        hanging = socket.create_connection((proxies.HOST, port))
    assert proxy.status == 0
    hanging.close()
    assert any(line.strip() == f"metrics     http://{proxies.HOST}:{port}/metrics" for line in proxy.lines)


def test_an_address_in_use_ends_the_proxy_with_one_sentence(lab: Lab, capture: Path) -> None:
    from inspector.errors import InspectorError

    with socket.create_server((proxies.HOST, 0)) as taken:
        where = f"{proxies.HOST}:{taken.getsockname()[1]}"
        for arguments in ((), ("--workers", "2")):
            options = {**proxies.options(lab, capture), "puppet_metrics": where}
            with pytest.raises(InspectorError) as caught, Proxy(options, arguments=arguments, own=True):
                pass
            assert f"Cannot serve metrics on {where}: Address already in use" in str(caught.value)
            assert "Traceback" not in str(caught.value)
