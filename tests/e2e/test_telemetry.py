"""What a running proxy tells other systems: metrics of all workers at one address."""

from __future__ import annotations

import http.client
import socket
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from inspector.errors import InspectorError
from inspector.fleet.directory import TableDirectory
from inspector.formats import exporting
from inspector.proxy.launcher import Proxy
from tests.support import proxies
from tests.support.otlp import attributes, collecting, spans_of
from tests.support.proxies import exchanges, free_port
from tests.support.tables_of import asked
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.lab import Lab

pytestmark = pytest.mark.slow


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


@pytest.mark.parametrize("arguments", [(), ("--workers", "2")], ids=["own", "workers"])
def test_a_run_is_sent_as_spans(lab: Lab, capture: Path, arguments: tuple[str, ...]) -> None:
    port = free_port()
    with collecting() as collector:
        address = collector.url.removesuffix("/v1/traces")
        telling = {"puppet_otlp": address, "puppet_metrics": f"{proxies.HOST}:{port}"}
        with Proxy({**proxies.options(lab, capture), **telling}, arguments=arguments, own=True) as proxy:
            lab.proxy_address = proxy.address
            assert lab.agent("agent.lab.example").run().status == 2
            assert eventually(lambda: len(collector.bodies) == 1)
            spans = spans_of(collector.bodies[0])
            assert eventually(lambda: scraped(port)["puppet_inspector_spans_sent_total"] == len(spans))
    recorded = exchanges(capture)
    assert len([span for span in spans if span.kind == 2]) == len(recorded)
    assert attributes(spans[-1])["puppet.outcome"] == "complete"
    run = exporting.Chosen.by(capture)
    exported = spans_of("".join(run.lines("otlp")))
    assert {span.span_id for span in exported} == {span.span_id for span in spans}


def test_a_collector_that_hangs_delays_no_agent_and_not_the_end(lab: Lab, capture: Path) -> None:
    with socket.create_server((proxies.HOST, 0)) as hanging:
        address = f"http://{proxies.HOST}:{hanging.getsockname()[1]}"
        with Proxy({**proxies.options(lab, capture), "puppet_otlp": address}, own=True) as proxy:
            lab.proxy_address = proxy.address
            for name in ("a", "b"):
                assert lab.agent(f"{name}.lab.example").run().status == 2
            assert eventually(lambda: sum(line.startswith("== run ") for line in proxy.lines) == 2)
    assert proxy.status == 0
    assert {run.outcome for run in proxies.analyzed(capture).runs} == {"complete"}


def test_an_address_in_use_ends_the_proxy_with_one_sentence(lab: Lab, capture: Path) -> None:
    with socket.create_server((proxies.HOST, 0)) as taken:
        where = f"{proxies.HOST}:{taken.getsockname()[1]}"
        for arguments in ((), ("--workers", "2")):
            options = {**proxies.options(lab, capture), "puppet_metrics": where}
            with pytest.raises(InspectorError) as caught, Proxy(options, arguments=arguments, own=True):
                pass
            assert f"Cannot serve metrics on {where}: Address already in use" in str(caught.value)
            assert "Traceback" not in str(caught.value)


def test_tables_are_written_when_a_proxy_starts_again(lab: Lab, capture: Path, tmp_path: Path) -> None:
    options = {**proxies.options(lab, capture), "puppet_tables": str(tmp_path / "tables")}
    with Proxy(options, own=True) as proxy:
        lab.proxy_address = proxy.address
        assert lab.agent("agent.lab.example").run().status == 2
    tables, complete = TableDirectory(tmp_path / "tables"), [("agent.lab.example", "complete")]
    with Proxy(options, own=True) as proxy:
        assert eventually(lambda: asked(tables, "SELECT certname, outcome FROM runs") == complete)
    assert proxy.status == 0
    assert not [line for line in proxy.lines if "could not be written" in line]
