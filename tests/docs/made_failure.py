"""A run in which a package could not be installed, for pictures: made, as no sample has a resource that failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inspector.runs.examples import catalog, plugins, report, talk
from tests.support.catalogs import resource

if TYPE_CHECKING:
    from inspector.model import Record

NODE = "web1.example"
MESSAGE = "Execution of '/usr/bin/apt-get -q -y install nginx' returned 100: E: Unable to locate package nginx"
RELATED = {
    "Package[nginx]": {"require": "File[/etc/apt/sources.list.d/nginx.list]"},
    "File[/etc/nginx/nginx.conf]": {"require": "Package[nginx]", "notify": "Service[nginx]"},
    "File[/srv/www/index.html]": {"require": "Package[nginx]"},
    "Service[nginx]": {"require": "Package[nginx]"},
}
"""What depends on what."""
INSIDE = {
    "Stage[main]": [("Class", "Ntp"), ("Class", "Web")],
    "Class[Ntp]": [("Package", "chrony"), ("File", "/etc/chrony.conf"), ("Service", "chrony")],
    "Class[Web]": [("File", "/etc/apt/sources.list.d/nginx.list"), ("Package", "nginx"),
                   ("File", "/etc/nginx/nginx.conf"), ("File", "/srv/www/index.html"), ("Service", "nginx")],
}  # fmt: skip
"""What contains what."""


def records() -> list[Record]:
    """The records of the run."""
    resources = [resource("Stage", "main")]
    for outer, inner in INSIDE.items():
        for line, (kind, title) in enumerate(inner, 3):
            made = resource(kind, title, line)
            made["parameters"] = made.get("parameters", {}) | RELATED.get(f"{kind}[{title}]", {})
            resources.append(made | {"file": f"/srv/puppet/modules/{outer[6:-1].lower()}/manifests/init.pp"})
    edges = [
        {"source": outer, "target": f"{kind}[{title}]"} for outer, inner in INSIDE.items() for kind, title in inner
    ]
    refs = [f"{kind}[{title}]" for inner in INSIDE.values() for kind, title in inner if kind != "Class"]
    log = {"level": "err", "source": "/Stage[main]/Web/Package[nginx]/ensure",
           "message": f"change from 'purged' to 'present' failed: {MESSAGE}"}  # fmt: skip
    return talk(
        plugins(), catalog(resources=resources, edges=edges),
        report(result="failed", resource_statuses={ref: _status(ref) for ref in refs}, logs=[log]), certname=NODE,
    )  # fmt: skip


def _status(ref: str) -> dict[str, Any]:
    if ref == "Package[nginx]":
        event = {"property": "ensure", "previous_value": "purged", "desired_value": "present", "status": "failure",
                 "message": f"change from 'purged' to 'present' failed: {MESSAGE}"}  # fmt: skip
        return {"failed": True, "out_of_sync": True, "events": [event], "evaluation_time": 1.8}
    if "Package[nginx]" in RELATED.get(ref, {}).values():
        return {"skipped": True, "events": []}
    return {"evaluation_time": 0.004}
