"""The metrics: Prometheus reads them and finds nothing to complain of, and no scraper holds the others up."""

from __future__ import annotations

import http.client
import json
import re
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from inspector.errors import InspectorError
from inspector.model import Phase
from inspector.proxy.telemetry import metrics as metrics_module
from inspector.proxy.telemetry.metrics import BUCKETS, CERTNAMES, SCRAPERS, Metrics, Waiting, reporter, served
from inspector.proxy.telemetry.samples import Ended, Exported, Found, Lost, Refused, Served, UnderWayCounts
from inspector.proxy.telemetry.settings import NOTHING
from tests.support import places
from tests.support.programs import promtool

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOST = "127.0.0.1"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def metrics(tmp_path: Path) -> Iterator[Metrics]:
    made = Metrics((HOST, free_port()))
    (tmp_path / "c.sqlite").write_bytes(b"x" * 1000)
    (tmp_path / "c.sqlite-wal").write_bytes(b"x" * 10)
    made.watch(lambda: tmp_path / "c.sqlite", lambda: 77.0)
    yield made
    made.close()


def where(metrics: Metrics) -> tuple[str, int]:
    host, port = metrics._endpoint.server_address[:2]
    return str(host), int(port)


def scrape(metrics: Metrics, path: str = "/metrics", accept: str = "") -> tuple[int, str, str]:
    connection = http.client.HTTPConnection(*where(metrics), timeout=30)
    connection.request("GET", path, headers={"Accept": accept} if accept else {})
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, answer.getheader("Content-Type") or "", body


def values(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = text_string_to_metric_families(scrape(metrics)[2])
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


def everything(metrics: Metrics) -> None:
    metrics.observe(
        [
            Served("catalog", "catalog", "200", 4.5, identity_missing=True), Refused("agent", "unknown_ca", "agent"),
            Lost(3), Found("B23", "error"), Ended("failed", 61.5, "a.example"), Exported(4, 2, "timeout"),
            UnderWayCounts({Phase.FILES: 9}, {}), UnderWayCounts({Phase.CATALOG: 2}, {Phase.CATALOG: 1}),
        ]
    )  # fmt: skip


def test_everything_is_counted(metrics: Metrics) -> None:
    everything(metrics)
    found = values(metrics)
    request = (("phase", "catalog"), ("route", "catalog"), ("status", "200"))
    bucket = "puppet_inspector_request_duration_seconds_bucket"
    assert found["puppet_inspector_request_duration_seconds_sum", request] == 4.5
    assert found[bucket, (("le", "2.5"), *request)] == 0
    assert found[bucket, (("le", "5.0"), *request)] == 1
    assert max(BUCKETS) == 600
    assert found["puppet_inspector_identities_missing_total", ()] == 1
    handshake = (("by", "agent"), ("reason", "unknown_ca"), ("side", "agent"))
    assert found["puppet_inspector_handshake_failures_total", handshake] == 1
    assert found["puppet_inspector_gaps_total", ()] == 1
    assert found["puppet_inspector_records_lost_total", ()] == 3
    assert found["puppet_inspector_findings_total", (("rule", "B23"), ("severity", "error"))] == 1
    assert found["puppet_inspector_runs_total", (("outcome", "failed"),)] == 1
    assert found["puppet_inspector_runs_total", (("outcome", "refused"),)] == 0
    for phase, requests, runs in (("files", 0, 0), ("catalog", 2, 1), ("report", 0, 0)):
        assert found["puppet_inspector_requests_under_way", (("phase", phase),)] == requests
        assert found["puppet_inspector_runs_under_way", (("phase", phase),)] == runs
    assert found["puppet_inspector_run_duration_seconds_sum", (("outcome", "failed"),)] == 61.5
    assert found["puppet_inspector_spans_sent_total", ()] == 4
    assert found["puppet_inspector_spans_dropped_total", (("reason", "timeout"),)] == 2
    assert found["puppet_inspector_capture_bytes", ()] == 1010
    assert found["puppet_inspector_recorder_queue_bytes", ()] == 77
    assert found["process_resident_memory_bytes", ()] > 0
    assert not [name for name, _ in found if name.endswith("_created")]


@pytest.mark.slow
def test_a_certname_is_a_label_only_if_asked_and_of_few(monkeypatch: pytest.MonkeyPatch, metrics: Metrics) -> None:
    everything(metrics)
    assert "a.example" not in scrape(metrics)[2]
    assert CERTNAMES < 100_000
    monkeypatch.setattr(metrics_module, "CERTNAMES", 2)
    by_name = Metrics((HOST, free_port()), certnames=True)
    by_name.observe(Ended("failed", 1.0, f"{name}.example") for name in "abcda")
    found = {
        labels: value for (name, labels), value in values(by_name).items() if name == "puppet_inspector_runs_total"
    }
    assert found == {
        (("certname", "a.example"), ("outcome", "failed")): 2,
        (("certname", "b.example"), ("outcome", "failed")): 1,
        (("certname", "other"), ("outcome", "failed")): 2,
    }
    by_name.close()


@pytest.mark.slow
def test_a_hostile_certname_stays_a_label(metrics: Metrics) -> None:
    by_name = Metrics((HOST, free_port()), certnames=True)
    by_name.observe([Ended("failed", 1.0, 'a"} 7\n# HELP x\\')])
    labels = [dict(labels) for name, labels in values(by_name) if name == "puppet_inspector_runs_total"]
    assert labels == [{"outcome": "failed", "certname": 'a"} 7\n# HELP x\\'}]
    by_name.close()


def test_only_metrics_are_served(metrics: Metrics) -> None:
    assert scrape(metrics, "/")[0] == 404
    assert scrape(metrics, "/metrics?x")[0] == 200
    assert "version=0.0.4" in scrape(metrics)[1]
    assert "openmetrics" in scrape(metrics, accept="application/openmetrics-text; version=1.0.0")[1]


@pytest.mark.slow
def test_scrapers_that_hang_keep_nobody_from_scraping(metrics: Metrics) -> None:
    hanging = [socket.create_connection(where(metrics)) for _ in range(3 * SCRAPERS)]
    for each in hanging[::2]:
        each.sendall(b"GET /metrics HTT")
    hanging[1].sendall(b"\xff\x00\r\n\r\n" * 9)
    assert scrape(metrics)[0] == 200
    assert len(metrics._endpoint._serving) <= SCRAPERS
    for each in hanging:
        each.close()
    assert scrape(metrics)[0] == 200


def test_an_address_in_use_is_one_sentence(metrics: Metrics) -> None:
    with pytest.raises(InspectorError, match=r"Cannot serve metrics on 127\.0\.0\.1:\d+: Address already in use"):
        Metrics(where(metrics))
    assert served(NOTHING) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["alerts.yml", "grafana.json"])
def test_the_examples_ask_for_what_there_is(metrics: Metrics, name: str) -> None:
    everything(metrics)
    there = {name for name, _ in values(metrics)}
    asked = set(re.findall(r"\b(?:puppet_inspector|process)_\w+", (places.DOCS / "examples" / name).read_text()))
    assert asked
    assert asked <= there


def test_the_dashboard_is_one() -> None:
    dashboard = json.loads((places.DOCS / "examples" / "grafana.json").read_text())
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    for panel in panels:
        assert panel["title"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert panel["targets"]
        assert all(target["expr"] for target in panel["targets"])
    taken = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
    assert len(set(taken)) == len(taken)


@pytest.mark.slow
def test_promtool_finds_nothing_to_complain_of(metrics: Metrics) -> None:
    everything(metrics)
    assert promtool("check", "metrics", text=scrape(metrics)[2]) == ""


@pytest.mark.slow
def test_promtool_accepts_what_the_dashboard_asks(tmp_path: Path) -> None:
    dashboard = json.loads((places.DOCS / "examples" / "grafana.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    rules = [
        {"record": f"asked:{at}", "expr": expr.replace("$__rate_interval", "5m").replace("$__range", "1h")}
        for at, expr in enumerate(asked)
    ]
    (tmp_path / "asked.yml").write_text(json.dumps({"groups": [{"name": "asked", "rules": rules}]}))
    assert f"{len(asked)} rules found" in promtool("check", "rules", str(tmp_path / "asked.yml"))


@pytest.mark.slow
def test_the_alerts_of_the_documentation_are_rules() -> None:
    assert "SUCCESS" in promtool("check", "rules", str(places.DOCS / "examples" / "alerts.yml"))


CODE = """
import sys
from inspector.proxy.telemetry.metrics import reporter
reporter(int(sys.argv[1]), 1)(4)
"""


def test_the_numbers_of_all_processes_are_added() -> None:
    waiting = Waiting(2)
    report = reporter(waiting.descriptor, 0)
    report(3)
    assert waiting.total() == 3
    subprocess.run([sys.executable, "-c", CODE, str(waiting.descriptor)], pass_fds=[waiting.descriptor], check=True)
    assert waiting.total() == 7
    report(0)
    assert waiting.total() == 4
    waiting.close()
