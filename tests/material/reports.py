"""Reports that other programs hold: PuppetDB's (versions 5 to 8 of its format), Foreman's, and agents' own in YAML.

Each is written as an agent sends it, and has to come out of our decoder with the same status, the same logs, the same
numbers, and with as many resources and events. Runs with it have to be judged without an exception, and failed
resources have to be reported as such.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from inspector.model import Request
from inspector.protocol import decode
from inspector.protocol import documents as d
from inspector.runs.examples import catalog, plugins, report, talk
from tests.material.cases import judged
from tests.support.conversations import runs_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.material.cases import Case


def cases(directory: Path) -> Iterator[Case]:
    """Every report below a directory: what has no fields of a report is passed over."""
    for path in sorted([*directory.rglob("*.json"), *directory.rglob("*.yaml")]):
        name, found = str(path.relative_to(directory)), None
        if path.suffix == ".yaml":
            if b"Puppet::Transaction::Report" in path.read_bytes()[:100]:
                yield _as_it_is(name, path.read_bytes())
            continue
        with contextlib.suppress(ValueError):
            found = json.loads(path.read_bytes())
        if not isinstance(found, dict):
            continue
        if "config_report" in found:
            yield judged(name, _troubles(_from_foreman(found["config_report"])))
        elif "certname" in found and "start_time" in found:
            yield judged(name, _troubles(_from_puppetdb(found)))


def _as_it_is(name: str, body: bytes) -> Case:
    document = decode.report(Request((("Content-Type", "text/yaml"),), body, method="PUT"))
    if not isinstance(document, d.Report):
        return judged(name, [document.reason if isinstance(document, d.Undecodable) else "no report"])
    logs = body.count(b"Puppet::Util::Log\n")
    return judged(name, [] if len(document.logs) == logs else [f"{len(document.logs)} of {logs} lines of log"])


def _troubles(sent: dict[str, Any]) -> Iterator[str]:
    body = json.dumps(sent).encode()
    document = decode.report(Request((("Content-Type", "application/json"),), body, method="PUT"))
    if not isinstance(document, d.Report):
        yield document.reason if isinstance(document, d.Undecodable) else "no report"
        return
    if document.status != sent["status"]:
        yield f"status {document.status} instead of {sent['status']}"
    if [(line.level, line.message) for line in document.logs] != [
        (line["level"], line["message"]) for line in sent["logs"]
    ]:
        yield "other lines of log"
    numbers = {group: {key: number for key, _, number in given["values"]} for group, given in sent["metrics"].items()}
    if {group: metric.numbers for group, metric in document.metrics.items()} != numbers:
        yield "other numbers"
    events = Counter(event["status"] for each in sent["resource_statuses"].values() for event in each["events"])
    read = Counter(event.status for each in document.resource_statuses.values() for event in each.events or ())
    if events != read or len(document.resource_statuses) != len(sent["resource_statuses"]):
        yield f"other events: {dict(read)} instead of {dict(events)}"
    counted = numbers.get("resources", {})
    failed = counted.get("failed", 0)
    # PuppetDB's samples were made of parts of several reports.
    if counted.get("total") == len(document.resource_statuses) and len(document.failed) != failed:
        yield f"{len(document.failed)} failed resources instead of {failed:g}"
    fields = {name: value for name, value in sent.items() if name not in ("host", "status", "transaction_uuid")}
    (run,) = runs_of(talk(plugins(), catalog(), report(result=sent["status"], **fields)))
    outcome = run.snapshot().outcome
    if (outcome == "failed") != (sent["status"] == "failed"):
        yield f"the run is {outcome}, its report says {sent['status']}"


def _from_puppetdb(found: dict[str, Any]) -> dict[str, Any]:
    metrics: dict[str, Any] = {}
    for metric in found.get("metrics") or ():
        group = metrics.setdefault(metric["category"], {"name": metric["category"], "label": "", "values": []})
        group["values"].append([metric["name"], metric["name"], metric["value"]])
    statuses = {}
    for resource in found["resources"]:
        events = [
            {
                "status": event["status"], "property": event["property"], "message": event["message"],
                "previous_value": event["old_value"], "desired_value": event["new_value"], "time": event["timestamp"],
                "corrective_change": event.get("corrective_change"), "name": event.get("name"),
            }
            for event in resource["events"]
        ]  # fmt: skip
        failed = any(event["status"] == "failure" for event in events)
        ref = f"{resource['resource_type']}[{resource['resource_title']}]"
        statuses[ref] = {
            "title": resource["resource_title"], "resource_type": resource["resource_type"], "events": events,
            "file": resource["file"], "line": resource["line"], "skipped": resource["skipped"], "failed": failed,
            "changed": any(event["status"] == "success" for event in events), "time": resource["timestamp"],
            "containment_path": resource["containment_path"], "corrective_change": resource.get("corrective_change"),
        }  # fmt: skip
    same = (
        "environment", "puppet_version", "report_format", "configuration_version", "transaction_uuid", "catalog_uuid",
        "code_id", "job_id", "cached_catalog_status", "noop", "corrective_change", "noop_pending",
    )  # fmt: skip
    return {name: found[name] for name in same if name in found} | {
        "host": found["certname"], "status": found.get("status") or "unchanged", "time": found["start_time"],
        "metrics": metrics, "resource_statuses": statuses, "logs": found.get("logs") or [],
    }  # fmt: skip


def _from_foreman(found: dict[str, Any]) -> dict[str, Any]:
    status = found["status"]
    changed = "changed" if status["applied"] else "unchanged"
    return {
        "host": found["host"], "status": "failed" if status["failed"] or status["failed_restarts"] else changed,
        "time": found["reported_at"], "report_format": 3, "resource_statuses": {},
        "logs": [
            {
                "level": log["log"]["level"], "message": log["log"]["messages"]["message"],
                "source": log["log"]["sources"]["source"],
            }
            for log in found["logs"] or ()
        ],
        "metrics": {
            group: {"name": group, "label": "", "values": [[name, name, value] for name, value in numbers.items()]}
            for group, numbers in found["metrics"].items()
        },
    }  # fmt: skip
