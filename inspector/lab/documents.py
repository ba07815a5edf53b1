"""The documents of a 7.23 agent: those it reads, and its facts, catalog form and report (format 12).

The facts are invented: nothing is taken from the machine. This module sends nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, quote_plus

import msgspec

from inspector.lab.wire import VERSION


class Checksum(msgspec.Struct):
    type: str
    value: str


class FileMetadata(msgspec.Struct):
    type: str
    checksum: Checksum
    relative_path: str | None = None


class Declared(msgspec.Struct):
    """A resource as the catalog declares it."""

    type: str
    title: str
    kind: str | None = None
    parameters: dict[str, Any] = {}
    file: str | None = None
    line: int | None = None
    tags: list[str] = []


class Catalog(msgspec.Struct):
    name: str
    environment: str | None = None
    version: Any = None
    catalog_uuid: str | None = None
    resources: list[Declared] = []


class NodeDefinition(msgspec.Struct):
    name: str
    environment: str | None = None


@dataclass(slots=True)
class Resource:
    """The outcome of one resource of the catalog."""

    declared: Declared
    change: str | None = None
    """The change, as an event's message; None: the resource was in sync."""
    failure: str | None = None

    @property
    def reference(self) -> str:
        return f"{self.declared.type}[{self.declared.title}]"

    def status(self, time: str) -> dict[str, Any]:
        declared = self.declared
        failed, changed = self.failure is not None, self.change is not None
        touched = failed or changed
        event = {
            "audited": False,
            "property": None if failed else "ensure",
            "previous_value": None if failed else "absent",
            "desired_value": None if failed else "present",
            "historical_value": None,
            "message": self.failure or self.change,
            "name": "resource_error" if failed else f"{declared.type.lower()}_created",
            "status": "failure" if failed else "success",
            "time": time,
            "redacted": False if failed else None,
            "corrective_change": False,
        }
        return {
            "title": declared.title,
            "file": declared.file,
            "line": declared.line,
            "resource": self.reference,
            "resource_type": declared.type,
            "provider_used": "posix" if declared.type == "File" else None,
            "containment_path": ["Stage[main]", "Main", self.reference],
            "evaluation_time": 0.001,
            "tags": declared.tags,
            "time": time,
            "failed": failed,
            "failed_to_restart": False,
            "changed": changed,
            "out_of_sync": touched,
            "skipped": False,
            "change_count": int(changed),
            "out_of_sync_count": int(touched),
            "events": [event] if touched else [],
            "corrective_change": False,
        }


_MACHINE = """{
  "os": {
    "architecture": "amd64", "family": "Debian", "hardware": "x86_64", "name": "Debian",
    "release": {"full": "12.11", "major": "12", "minor": "11"}, "selinux": {"enabled": false}
  },
  "operatingsystem": "Debian", "osfamily": "Debian", "kernel": "Linux", "kernelrelease": "6.1.0-lab",
  "ipaddress": "192.0.2.17", "is_virtual": true, "virtual": "kvm", "facterversion": "4.3.0",
  "processors": {"count": 2, "isa": "unknown"},
  "memory": {"system": {"total_bytes": 4294967296, "total": "4.00 GiB"}}
}"""


def facts(certname: str) -> dict[str, Any]:
    """Return the facts document of an invented Debian machine (addresses of RFC 5737)."""
    hostname, _, domain = certname.partition(".")
    values = json.loads(_MACHINE) | {
        "networking": {"fqdn": certname, "hostname": hostname, "domain": domain, "ip": "192.0.2.17"},
        "fqdn": certname,
        "hostname": hostname,
        "domain": domain,
        "puppetversion": VERSION,
        "clientcert": certname,
        "clientversion": VERSION,
        "clientnoop": False,
    }
    now = datetime.now(UTC)
    return {
        "name": certname,
        "values": values,
        "timestamp": stamp(now),
        "expiration": stamp(now + timedelta(minutes=30)),
    }


def catalog_form(certname: str, environment: str, configured: str, transaction_uuid: str) -> bytes:
    """Return the body of POST catalog; its facts are escaped twice (docs/protocol.md#facts-in-a-form)."""
    document = json.dumps(facts(certname), separators=(",", ":"))
    fields = {
        "facts_format": "application/json",
        "facts": quote(document, safe=""),
        "environment": environment,
        "configured_environment": configured,
        "check_environment": "true",
        "transaction_uuid": transaction_uuid,
        "job_uuid": "",
        "static_catalog": "true",
        "checksum_type": "sha256.sha384.sha512.sha224.md5",
    }
    return "&".join(f"{name}={quote_plus(value)}" for name, value in fields.items()).encode()


@dataclass(slots=True)
class Report:
    """The report, filled during a run."""

    certname: str
    environment: str
    transaction_uuid: str
    started: datetime
    catalog: Catalog | None = None
    """None: there was no catalog, and the run failed."""
    resources: list[Resource] = field(default_factory=list)
    logs: list[tuple[str, str]] = field(default_factory=list)
    """Level and message."""

    @property
    def failed(self) -> int:
        return sum(r.failure is not None for r in self.resources)

    @property
    def changed(self) -> int:
        return sum(r.change is not None for r in self.resources)

    @property
    def status(self) -> str:
        if self.catalog is None or self.failed:
            return "failed"
        return "changed" if self.changed else "unchanged"

    def body(self) -> bytes:
        """Return the report as JSON; without a catalog it has no resources and no catalog_uuid."""
        time, catalog = stamp(datetime.now(UTC)), self.catalog
        document = {
            "host": self.certname,
            "time": stamp(self.started),
            "configuration_version": catalog.version if catalog else None,
            "transaction_uuid": self.transaction_uuid,
            "report_format": 12,
            "puppet_version": VERSION,
            "status": self.status,
            "transaction_completed": catalog is not None,
            "noop": False,
            "noop_pending": False,
            "environment": self.environment,
            "logs": [_log(level, message, time) for level, message in self.logs],
            "metrics": self._metrics(),
            "resource_statuses": {r.reference: r.status(time) for r in self.resources},
            "corrective_change": False,
        }
        if catalog:
            document["catalog_uuid"] = catalog.catalog_uuid
        document["cached_catalog_status"] = "not_used"
        return json.dumps(document, separators=(",", ":")).encode()

    def _metrics(self) -> dict[str, Any]:
        touched = self.failed + self.changed
        counts = {"total": len(self.resources), "skipped": 0, "failed": self.failed, "failed_to_restart": 0}
        counts |= {"restarted": 0, "changed": self.changed, "out_of_sync": touched, "scheduled": 0}
        duration = (datetime.now(UTC) - self.started).total_seconds()
        return {
            "resources": _metric("resources", counts | {"corrective_change": 0}),
            "time": _metric("time", {"catalog_application": duration, "total": duration}),
            "changes": _metric("changes", {"total": self.changed}),
            "events": _metric("events", {"total": touched, "failure": self.failed, "success": self.changed}),
        }


def stamp(time: datetime) -> str:
    """Format a time as Ruby does, with nine digits."""
    return f"{time:%Y-%m-%dT%H:%M:%S.%f}000+00:00"


def _metric(name: str, values: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "label": _label(name), "values": [[k, _label(k), v] for k, v in values.items()]}


def _label(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _log(level: str, message: str, time: str) -> dict[str, Any]:
    return {
        "level": level,
        "message": message,
        "source": "Puppet",
        "tags": [level],
        "time": time,
        "file": None,
        "line": None,
    }
