"""The catalog of one run: its resources, with their results if there is a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.binding import Binding

from inspector.explain import resource_outcomes
from inspector.explain.resource_outcomes import Applied, Status
from inspector.pages import palette
from inspector.protocol import documents as d
from inspector.protocol.kinds import Kind
from inspector.text import clean, seconds
from inspector.tui import resource_details
from inspector.tui.columns import Column
from inspector.tui.part import Details, PartView, middle
from inspector.tui.resource_details import cut, time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from inspector.analysis.analyzer import Step

_RANK = {status: place for place, status in enumerate(Status)}
_BAD = (Status.FAILED, Status.RESTART)


class Catalog(PartView[Applied]):
    """The resources of a run's catalog. Enter opens the report with the result of a resource, or the catalog."""

    TITLE = "Resources"
    BINDINGS = [
        Binding("c", "earlier", "Diff with previous"),
        Binding("o", "catalog", "Open the catalog", show=False),
    ]
    COLUMNS = (
        Column("type", lambda item, _: clean(item.type), 12, 1, sort=lambda item: item.type),
        Column("title", lambda item, width: middle(cut(item.title), width), 16, 4, sort=lambda item: item.title),
        Column("status", lambda item, _: Text(item.status, style=palette.RESOURCES[item.status]), 14,
               sort=lambda item: _RANK[item.status]),
        Column("time", lambda item, _: time(item), 10, right=True, sort=lambda item: -(item.time or -1.0)),
        Column("events", lambda item, _: str(len(item.result.events)) if item.result and item.result.events else "-", 6,
               right=True, least=100, sort=lambda item: -len((item.result.events if item.result else None) or ())),
        Column("file", lambda item, width: middle(item.place, width), 12, 2, least=60,
               sort=lambda item: (item.file or "", f"{item.line or '':>8}")),
        Column("source", lambda item, _: clean(", ".join(item.sources)), 8, 2, least=140,
               sort=lambda item: item.sources),
    )  # fmt: skip

    def __init__(self, number: int) -> None:
        """Show the last usable catalog of run ``number``."""
        super().__init__(number)
        self._back = 0
        self._catalogs: list[int] = []
        self._at: int | None = None
        self._reported: int | None = None
        self._logs: Mapping[str, Sequence[d.LogLine]] = {}

    def key(self, item: Applied) -> str:
        return item.ref

    def state_of(self, item: Applied) -> str:
        return item.status

    def differs(self, item: Applied) -> bool:
        return item.status.differs

    def prepare(self) -> Callable[[], Sequence[Applied]]:
        source, back = self.source, self._back
        briefs = source.briefs(self.number)
        # A response with another status does not contain a catalog.
        catalogs = [
            brief.seq for brief in briefs if brief.request_kind is Kind.CATALOG and brief.status in range(200, 300)
        ]
        reports = [
            brief.seq for brief in briefs if brief.request_kind is Kind.REPORT and brief.method in ("PUT", "POST")
        ]

        def read() -> Sequence[Applied]:
            usable: list[int] = []
            found: d.Catalog | None = None
            end: int | None = None
            for seq in reversed(catalogs):
                catalog = _catalog(source.step(seq))
                if catalog is None:
                    continue
                usable.insert(0, seq)
                if len(usable) == back + 1:
                    found = catalog
                elif len(usable) <= back:
                    end = seq
            begin = usable[-back - 1] if back < len(usable) else 0
            sent = next((seq for seq in reversed(reports) if seq > begin and (end is None or seq < end)), None)
            report = _report(source.step(sent)) if sent is not None else None
            self._catalogs = usable
            self._at, self._reported = begin or None, sent if report else None
            outcomes = resource_outcomes.resources(found, report)
            self._logs = resource_outcomes.logged(outcomes, report.logs if report else ())
            # The causes of a failed run come first, then the order of the catalog.
            return sorted(outcomes, key=lambda item: _RANK[item.status] if item.status in _BAD else len(Status))

        return read

    def nothing(self) -> str:
        run = self.run
        if self._at is not None:
            return "The catalog has no resources."
        verdict = f": {run.verdict.message}" if run and run.verdict else "."
        return f"This run has no catalog{verdict}"

    def sums(self, items: Sequence[Applied]) -> str:
        totals = resource_outcomes.totals(items)
        counted = ", ".join(f"{number} {status}" for status, number in totals.by_status.items())
        which = "report only" if self._at is None else f"catalog {self._number} of {len(self._catalogs)}"
        report = "" if self._reported else ", no report"
        took = f", evaluated in {seconds(totals.time)}" if self._reported else ""
        return f"{which}{report}: {len(items)} resources{took}; {counted}"

    @property
    def _number(self) -> int:
        return self._catalogs.index(self._at) + 1 if self._at in self._catalogs else 0

    def proof(self, item: Applied) -> int | None:
        return self._reported if item.result and self._reported else self._at

    def describe(self, item: Applied, details: Details) -> None:
        resource_details.describe(item, self._logs.get(item.ref, ()), details)

    def action_earlier(self) -> None:
        """Show the previous catalog, and after the first one the last again."""
        if self._reading:
            return
        if len(self._catalogs) < 2:
            self.show_message("This run has no earlier catalog." if self._catalogs else "This run has no catalog.")
            return
        self._back = (self._back + 1) % len(self._catalogs)
        self.read()

    def action_catalog(self) -> None:
        """Show the exchange with the catalog."""
        if self._at is not None:
            self.inspector.open_exchange(self.number, self._at)


def _catalog(step: Step | None) -> d.Catalog | None:
    return step.response if step and isinstance(step.response, d.Catalog) else None


def _report(step: Step | None) -> d.Report | None:
    return step.request if step and isinstance(step.request, d.Report) else None
