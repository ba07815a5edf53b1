"""What a master sends to PuppetDB, in the versions of today, read as the documents that agents and masters exchange.

docs/protocol.md#endpoint-puppetdb_command
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from inspector.protocol.catalogs import Catalog, Edge, Resource
from inspector.protocol.documents import Facts
from inspector.protocol.reports import Event, LogLine, Metric, Report, ResourceStatus

if TYPE_CHECKING:
    from collections.abc import Iterable


class _Facts(msgspec.Struct, frozen=True):
    certname: str = ""
    values: dict[str, Any] = {}
    producer_timestamp: str | None = None

    def document(self) -> Facts:
        """Return them as an agent sends them."""
        return Facts(self.certname, self.values, self.producer_timestamp)


class _Ref(msgspec.Struct, frozen=True):
    type: str
    title: str

    def __str__(self) -> str:
        return f"{self.type}[{self.title}]"


class _Edge(msgspec.Struct, frozen=True):
    source: _Ref
    target: _Ref


class _Catalog(msgspec.Struct, frozen=True):
    certname: str = ""
    environment: str | None = None
    version: int | str | float | None = None
    catalog_uuid: str | None = None
    transaction_uuid: str | None = None
    code_id: str | None = None
    resources: list[Resource] = []
    edges: list[_Edge] = []

    def document(self) -> Catalog:
        """Return it as an agent gets it."""
        return Catalog(
            self.certname, self.environment, self.version, self.catalog_uuid, self.code_id, resources=self.resources,
            edges=[Edge(str(edge.source), str(edge.target)) for edge in self.edges],
        )  # fmt: skip


class _Event(msgspec.Struct, frozen=True):
    status: str | None = None
    property: str | None = None
    old_value: Any = None
    new_value: Any = None
    message: str | None = None
    name: str | None = None
    timestamp: str | None = None
    corrective_change: bool | None = None


class _Resource(msgspec.Struct, frozen=True):
    resource_type: str = ""
    resource_title: str = ""
    skipped: bool | None = None
    timestamp: str | None = None
    file: str | None = None
    line: int | str | None = None
    containment_path: list[str] | None = None
    corrective_change: bool | None = None
    events: list[_Event] = []

    def status(self) -> ResourceStatus:
        statuses = {event.status for event in self.events}
        return ResourceStatus(
            "failure" in statuses, "success" in statuses, self.skipped, bool(self.events), self.resource_type,
            self.resource_title, self.file, self.line, None, self.timestamp, containment_path=self.containment_path,
            corrective_change=self.corrective_change,
            events=[
                Event(each.status, each.property, each.old_value, each.new_value, None, each.message, each.name,
                      each.timestamp, None, None, each.corrective_change)
                for each in self.events
            ],
        )  # fmt: skip


class _Metric(msgspec.Struct, frozen=True):
    category: str = ""
    name: str = ""
    value: Any = None


class _Report(msgspec.Struct, frozen=True):
    certname: str = ""
    status: str | None = None
    start_time: str | None = None
    environment: str | None = None
    transaction_uuid: str | None = None
    catalog_uuid: str | None = None
    configuration_version: int | str | float | None = None
    report_format: int | None = None
    puppet_version: str | None = None
    noop: bool | None = None
    noop_pending: bool | None = None
    corrective_change: bool | None = None
    cached_catalog_status: str | None = None
    code_id: str | None = None
    job_id: str | None = None
    logs: list[LogLine] = []
    resources: list[_Resource] = []
    metrics: list[_Metric] = []

    def document(self) -> Report:
        """Return it as an agent sends it."""
        return Report(
            host=self.certname, status=self.status, time=self.start_time, environment=self.environment,
            transaction_uuid=self.transaction_uuid, catalog_uuid=self.catalog_uuid,
            configuration_version=self.configuration_version, report_format=self.report_format,
            puppet_version=self.puppet_version, noop=self.noop, noop_pending=self.noop_pending,
            corrective_change=self.corrective_change, cached_catalog_status=self.cached_catalog_status,
            code_id=self.code_id, job_id=self.job_id, logs=self.logs, metrics=_grouped(self.metrics),
            resource_statuses={
                f"{each.resource_type}[{each.resource_title}]": each.status() for each in self.resources
            },
        )  # fmt: skip


def _grouped(metrics: Iterable[_Metric]) -> dict[str, Metric]:
    groups: dict[str, list[Any]] = {}
    for each in metrics:
        groups.setdefault(each.category, []).append([each.name, each.name, each.value])
    return {name: Metric(name, name, values) for name, values in groups.items()}


WIRE: dict[tuple[str, str], type[_Facts | _Catalog | _Report]] = {
    ("replace facts", "5"): _Facts,
    ("replace catalog", "9"): _Catalog,
    ("store report", "8"): _Report,
}
"""What is read of each command, by name and version: PuppetDB 5 to 8."""
