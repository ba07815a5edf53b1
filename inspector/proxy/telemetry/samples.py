"""What the analysis process measures of each record and run, for the metrics in the proxy's own process.

What becomes a label has few values, whatever agents send: names of our own tables, never captured text.
"""

from __future__ import annotations

from collections import Counter
from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec

from inspector.model import Exchange, Handshake, Phase
from inspector.protocol import endpoints
from inspector.protocol.alerts import ALERTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inspector.analysis.analyzer import Step
    from inspector.model import Finding, Present
    from inspector.runs.run import Run
    from inspector.runs.snapshot import RunSnapshot
    from inspector.summaries.summary import RunBrief
    from inspector.summaries.under_way import UnderWay

OTHER = "other"
"""The label for a value that is in none of our tables."""
NONE = "none"
"""The label for a missing answer, or a missing alert."""
_STATUSES = {int(status): str(int(status)) for status in HTTPStatus}
_ALERTS = frozenset(ALERTS.values())


class Served(msgspec.Struct, array_like=True, frozen=True, tag="served"):
    """A request and its answer."""

    route: str
    phase: str
    status: str
    seconds: float
    identity_missing: bool


class Refused(msgspec.Struct, array_like=True, frozen=True, tag="refused"):
    """A TLS handshake that failed."""

    side: str
    alert: str
    by: str


class Lost(msgspec.Struct, array_like=True, frozen=True, tag="lost"):
    """A gap."""

    records: int


class Found(msgspec.Struct, array_like=True, frozen=True, tag="found"):
    """A rule that found something in a run, for the first time in it."""

    rule: str
    severity: str


class Ended(msgspec.Struct, array_like=True, frozen=True, tag="ended"):
    """A run that is over."""

    outcome: str
    seconds: float
    certname: str
    """Empty without a verified certificate: anybody can claim a name."""


class Exported(msgspec.Struct, array_like=True, frozen=True, tag="exported"):
    """Spans that were sent to a collector, or dropped."""

    sent: int
    dropped: int
    reason: str
    """Why they were dropped."""


class UnderWayCounts(msgspec.Struct, array_like=True, frozen=True, tag="under way"):
    """What is under way, by phase."""

    requests: dict[Phase, int]
    runs: dict[Phase, int]


type Sample = Served | Refused | Lost | Found | Ended | Exported | UnderWayCounts


def under_way(doing: Iterable[UnderWay[RunSnapshot]], present: Present) -> UnderWayCounts:
    """Return what is under way: the requests, and the agents' runs that are not over."""
    requests: Counter[Phase] = Counter({Phase.OTHER: present.more_requests})
    for request in present.requests:
        match = endpoints.match(request.method, request.target)
        requests[match.endpoint.phase if match else Phase.OTHER] += 1
    return UnderWayCounts(+requests, Counter(each.phase for each in doing if each.run))


class Sampler:
    """Measures steps and runs."""

    def __init__(self) -> None:
        self._found: dict[Run, set[str]] = {}
        """The rules that found something in each open run."""
        self._verified: dict[Run, str] = {}
        """The certname with which the proxy spoke to the master in each open run: only verified agents have one."""

    def step(self, step: Step) -> list[Sample]:
        """Return what a record adds."""
        record = step.record
        samples: list[Sample] = []
        if isinstance(record, Exchange):
            route = step.match.endpoint.name if step.match else OTHER
            status = _STATUSES.get(record.response.status, OTHER) if record.response else NONE
            missing = record.identity is not None and record.identity.reason is not None and not record.withheld
            seconds = max(0.0, record.ended - record.time)
            if step.run and record.identity and record.identity.certname:
                self._verified[step.run] = record.identity.certname
            samples.append(Served(route, str(step.phase), status, seconds, missing))
        elif isinstance(record, Handshake):
            alert = (record.alert if record.alert in _ALERTS else OTHER) if record.alert else NONE
            samples.append(Refused(record.leg.side, alert, record.alert_by or NONE))
        else:
            samples.append(Lost(record.lost))
        return samples + (self._new(step.run, step.findings) if step.run else [])

    def ended(self, run: Run, brief: RunBrief) -> list[Sample]:
        """Return what a run adds that is over."""
        samples = self._new(run, brief.findings)
        self._found.pop(run, None)
        return [*samples, Ended(brief.outcome, max(0.0, brief.duration), self._verified.pop(run, ""))]

    def _new(self, run: Run, findings: list[Finding] | tuple[Finding, ...]) -> list[Sample]:
        if not findings:
            return []
        before = self._found.setdefault(run, set())
        new = {finding.rule: str(finding.severity) for finding in findings if finding.rule not in before}
        before.update(new)
        return [Found(rule, severity) for rule, severity in new.items()]
