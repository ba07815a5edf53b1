"""Records that show something of an upgrade to a newer version, one conversation per change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inspector.rules import rule_of
from inspector.runs.examples import (
    altered,
    asked,
    bucket,
    ca,
    catalog,
    crl,
    csr,
    issued,
    plugins,
    renewal,
    report,
    talk,
)

if TYPE_CHECKING:
    from inspector.model import Record
    from inspector.runs.examples import ExamplePart

FACTS = {"osfamily": "Debian", "operatingsystem": "Debian", "ipaddress_eth0": "192.0.2.7"}
DEFERRED = {"__ptype": "Deferred", "name": "vault::secret", "arguments": []}


def quiet(**fields: Any) -> ExamplePart:
    """A report that shows nothing but its ``fields``: the master stores none."""
    return altered(report(**fields), response={"body": b"[]"})


def healthy() -> list[Record]:
    """An agent of OpenVox 8 that enrols and runs, at a master of its age."""
    return talk(
        ca(), crl(), csr(), issued(), plugins(), catalog(), quiet(), version="8.28.1",
        master_version="8.28.1",
    )  # fmt: skip


def _shows(*parts: ExamplePart, version: str = "7.23.0") -> list[Record]:
    return talk(*parts, quiet(), version=version)


def showing(key: str) -> list[Record]:
    """What shows the change with this key."""
    match key:
        case "legacy-url":
            return talk(plugins(), catalog(), report(), version="3.8.7", master_version="3.8.7")
        case "yaml":
            return [*rule_of("R14").bad()[0]]
        case "removed-endpoint":
            return _shows(asked("status/node1.example", {"is_alive": True}))
        case "tls":
            return talk(altered(quiet(), leg={"tls_version": "TLSv1"}))
        case "md5":
            return _shows(bucket(algorithm="md5"))
        case "legacy-facts":
            return _shows(catalog(facts=FACTS))
        case "pson":
            return _shows(altered(catalog(), answers={"Content-Type": "text/pson"}))
        case "revocation":
            return talk(ca(), crl(complete=False))
        case "weak-certificates":
            return [*rule_of("B31").bad()[0]]
        case "ca-tool":
            return _shows(asked("/puppet-ca/v1/certificate_statuses/any", []))
        case "deferred":
            resource = {"type": "File", "title": "/a", "parameters": {"content": DEFERRED}}
            return _shows(catalog(resources=[resource]), version="8.10.0")
        case "strict":
            return talk(quiet(logs=[{"level": "warning", "message": "Unknown variable: 'osfamily'."}]))
        case "reports-shorter":
            return talk(quiet(resource_statuses={"File[/a]": {"changed": False}}))
        case "renewal":
            return _shows(renewal(status=404), version="8.10.0")
        case "default-server":
            return talk(altered(quiet(), leg={"sni": "puppet"}))
        case "report-store":
            return talk(report())
        case "bucket-read":
            return _shows(bucket(method="GET"))
        case "zone":
            return _shows(catalog(resources=[{"type": "Zone", "title": "web"}]))
        case "checksum-content":
            parameters = {"content": "{md5}d41d8cd98f00b204e9800998ecf8427e"}
            return _shows(catalog(resources=[{"type": "File", "title": "/a", "parameters": parameters}]))
        case "filebucket-server":
            parameters = {"server": "bucket.example", "path": ""}
            return _shows(catalog(resources=[{"type": "Filebucket", "title": "main", "parameters": parameters}]))
        case "catalog-name":
            return _shows(catalog(name="other.example"))
    raise KeyError(key)
