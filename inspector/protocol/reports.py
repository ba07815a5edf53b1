"""Reports, formats 2 to 12, in any notation (docs/protocol.md#reports)."""

from __future__ import annotations

from typing import Any

import msgspec

FORMATS = range(2, 13)


class LogLine(msgspec.Struct, frozen=True):
    level: str = ""
    message: str = ""
    source: str | None = None
    time: str | None = None
    file: str | None = None
    line: int | str | None = None


class Event(msgspec.Struct, frozen=True):
    """A change of one property, or in noop mode the change that would have been made."""

    status: str | None = None
    """``success``, ``failure``, ``noop`` or ``audit``."""
    property: str | None = None
    previous_value: Any = None
    desired_value: Any = None
    historical_value: Any = None
    message: str | None = None
    name: str | None = None
    time: str | None = None
    audited: bool | None = None
    redacted: bool | None = None
    corrective_change: bool | None = None


class ResourceStatus(msgspec.Struct, frozen=True):
    """Empty from 2.7 on a newer Ruby: the key in the report still names the resource."""

    failed: bool | None = None
    changed: bool | None = None
    skipped: bool | None = None
    out_of_sync: bool | None = None
    resource_type: str | None = None
    title: Any = None
    file: str | None = None
    line: int | str | None = None
    evaluation_time: float | None = None
    time: str | None = None
    change_count: int | None = None
    out_of_sync_count: int | None = None
    failed_to_restart: bool | None = None
    corrective_change: bool | None = None
    containment_path: list[str] | None = None
    events: list[Event] | None = None


class Metric(msgspec.Struct, frozen=True):
    name: str = ""
    label: str = ""
    values: list[Any] = []
    """Entries of key, label, number."""

    @property
    def numbers(self) -> dict[str, float]:
        """The numbers by key; other values are left out."""
        return {
            str(entry[0]): entry[2]
            for entry in self.values
            if isinstance(entry, list) and len(entry) == 3 and type(entry[2]) in (int, float)
        }


class Report(msgspec.Struct, frozen=True):
    """A report (docs/protocol.md#reports), formats 2 to 12."""

    host: str = ""
    status: str | None = None
    time: str | None = None
    environment: str | None = None
    transaction_uuid: str | None = None
    catalog_uuid: str | None = None
    configuration_version: int | str | float | None = None
    report_format: int | None = None
    puppet_version: str | None = None
    noop: bool | None = None
    corrective_change: bool | None = None
    cached_catalog_status: str | None = None
    logs: list[LogLine] = []
    resource_statuses: dict[str, ResourceStatus] = {}
    metrics: dict[str, Metric] = {}
    noop_pending: bool | None = None
    transaction_completed: bool | None = None
    code_id: str | None = None
    job_id: str | None = None
    server_used: str | None = None
    """The server that the agent chose from server_list, 6.24 and later."""
    master_used: str | None = None
    """The same for 4.6 to 6."""

    @property
    def times(self) -> dict[str, float]:
        """Seconds by phase and by resource type, including ``total``."""
        return self._numbers("time")

    @property
    def counts(self) -> dict[str, float]:
        """Number of resources by outcome; from the statuses if there is no metric (format 2)."""
        return self._numbers("resources") or {
            word: sum(bool(getattr(entry, word)) for entry in self.resource_statuses.values())
            for word in ("failed", "changed", "skipped", "out_of_sync")
            if self.resource_statuses
        }

    def metric(self, group: str, name: str) -> float | None:
        """Return one number, e.g. ``metric("resources", "failed_to_restart")``; None if it was not sent."""
        return self._numbers(group).get(name)

    def _numbers(self, name: str) -> dict[str, float]:
        metric = self.metrics.get(name)
        return metric.numbers if metric else {}

    @property
    def failed(self) -> list[str]:
        """The resources that failed."""
        return [ref for ref, entry in self.resource_statuses.items() if entry.failed]

    @property
    def changed(self) -> list[str]:
        return [ref for ref, entry in self.resource_statuses.items() if entry.changed]

    @property
    def outcome(self) -> str | None:
        """``status``; for format 2, which has none, the status derived from the resources."""
        if self.status is not None or not self.resource_statuses:
            return self.status
        return "failed" if self.failed else "changed" if self.changed else "unchanged"

    @property
    def cached(self) -> bool:
        """Whether the agent applied a catalog of an earlier run."""
        return self.cached_catalog_status in ("explicitly_requested", "on_failure")

    @property
    def known_format(self) -> bool:
        return self.report_format is None or self.report_format in FORMATS
