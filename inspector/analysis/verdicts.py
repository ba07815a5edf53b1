"""Find the cause of a run's outcome among its findings, and the findings that are its consequences.

The table ``FOLLOWS`` says which deviation follows from which. A new rule that is a cause or a consequence is added to
it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from inspector.model import Severity, Visible
from inspector.rules import rule_of

if TYPE_CHECKING:
    from inspector.model import Finding
    from inspector.runs.run import Run

type Certainty = Literal["certain", "likely", "not visible"]
"""Certain from the recorded traffic; the most likely explanation; or not visible in the traffic."""

_TLS = ("T06", "T07", "T08", "T09", "R03", "R04")
_NO_CATALOG = ("R20", "R19", "R03", "P13", "P03")
_KEYS = ("B18", "B20", "B22", "B23", "B02")
FOLLOWS: tuple[tuple[str, tuple[str, ...]], ...] = (
    # No way to the master.
    ("T18", ("S21", "F03", "P01", *_NO_CATALOG)),
    ("T19", ("S21", "F03", "P01", *_NO_CATALOG)),
    ("T20", ("S21", "F03", "P01", *_NO_CATALOG)),
    ("T21", ("T09", "S21", "F03", "P01", *_NO_CATALOG)),
    ("T22", ("T09", "S21", "F03", "P01", *_NO_CATALOG)),
    # Trust: a wrong certificate, CRL or clock explains the alert that follows.
    ("T15", ()),
    ("T10", ("B10", "B12", "B33", "B35", *_TLS)),
    ("B14", _TLS),
    ("B10", _TLS),
    ("B12", _TLS),
    ("B13", _TLS),
    ("B05", ("B13", *_TLS)),
    ("B04", _TLS),
    ("B33", _TLS),
    ("B35", _TLS),
    ("T05", ("T06", "T08", "T09", "S02", *_NO_CATALOG)),
    ("T07", ("T08", "T09")),
    ("T06", ("T09",)),
    ("T08", ("T09",)),
    # The agent's identity towards the CA.
    ("B06", ("B43",)),
    ("S17", ("B09",)),
    ("B09", ()),
    ("B08", ()),
    ("B21", ("B46", "T17", *_KEYS)),
    ("B46", (*_KEYS, "B17", "R17", "T17", "B39", "B41")),
    ("B19", ("B43", "B20", "B22", "B39")),
    ("B18", ("B20", "B22", "B23", "B02", "B43", "B39")),
    ("B22", ("B20", "B02")),
    ("B20", ("B17", "B39", "B41", "B23", "B02")),
    ("B23", ("B02",)),
    ("B38", ("T04", "S02")),
    ("B25", ("B26", "B24", "B43", "B44", "B39", "B40")),
    ("B26", ("B24", "B43", "B44", "B39", "B40")),
    ("B24", ("B43", "B44", "B39", "B40")),
    ("B28", ("B43", "B29", "B39", "B41", "B42")),
    ("B27", ("B43", "B29", "B39", "B41", "B42")),
    ("B29", ("B43", "B39", "B41", "B42")),
    ("B44", ("B43",)),
    ("B43", ("B39", "B40")),
    ("B40", ("B39", "B41", "B42")),
    ("B42", ("B17", "B39", "B41")),
    ("B17", ("B39", "B41")),
    ("B39", ("B41",)),
    # The agent's identity towards the master.
    ("T03", ("S02", "T04", *_NO_CATALOG)),
    ("T04", ("S02", *_NO_CATALOG)),
    ("S18", ("S03", "B06", "R09", *_NO_CATALOG)),
    ("S16", ("S10",)),
    ("S03", ("S04", "R01", "R09", *_NO_CATALOG)),
    ("S02", ("P01", *_NO_CATALOG)),
    # Why there is no catalog.
    ("R13", ("S01", *_NO_CATALOG)),
    ("F07", ("S01", "P01", *_NO_CATALOG)),
    ("R09", ("S01", "R01", *_NO_CATALOG)),
    ("S15", ("S01", "S04", "S06", "S09", "P01", *_NO_CATALOG)),
    ("S06", ("S01", "S07", "P01", *_NO_CATALOG)),
    ("S05", ("S01", "S07", "P01", *_NO_CATALOG)),
    ("S12", ("P01", *_NO_CATALOG)),
    ("S14", ("F03", "P01", *_NO_CATALOG)),
    ("S23", ("P01", "F03", *_NO_CATALOG)),
    ("S13", ("S09", "P01", *_NO_CATALOG)),
    ("S09", ("P01", *_NO_CATALOG)),
    ("R06", ("R05", "R07", "R08", *_NO_CATALOG)),
    ("R07", ("R08", "P05")),
    ("S08", _NO_CATALOG),
    ("S01", _NO_CATALOG),
    ("R20", ("R19", "R03", "P13")),
    # Why a resource failed, and what happened to the report.
    ("S20", ("F02", "F03", "P01", "P13")),
    ("F09", ("P01", "P13")),
    ("F02", ("P01", "P13")),
    ("F03", ("P01", "P13")),
    ("P01", ("P13",)),
    ("P06", ("P13",)),
    ("P05", ("P13",)),
    ("S04", ("P03",)),
    ("P04", ("P03",)),
    ("P03", ()),
    # What closes connections.
    ("T12", ("T11",)),
    ("T13", ("T11",)),
    ("T14", ("T11",)),
    ("R17", ("R03", "R04", "P10")),
    ("R02", ("R04",)),
    ("B36", ("B34",)),
    ("S11", ("P08",)),
    ("P11", ("F05",)),
)
"""Causes, deeper ones first, each with the rules that follow from it when both are in one run."""

BY_NATURE = frozenset({"B01", "B03"})
"""Warnings that a site cannot avoid with its agents: never the verdict of a successful run."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The conclusion from a run's findings and its outcome."""

    cause: Finding | None
    """None: the run failed, and the reason is not visible in the traffic."""
    symptoms: tuple[str, ...]
    """Consequences: ids of the run's other findings that follow from the cause."""
    certainty: Certainty
    since: float
    """When the cause was first seen."""


def effects(ident: str) -> frozenset[str]:
    """The ids of all rules that follow from a rule, directly or through others."""
    return _effects().get(ident, frozenset())


@cache
def _effects() -> dict[str, frozenset[str]]:
    table, closed = dict(FOLLOWS), {}
    for cause in table:
        found: set[str] = set()
        ahead = list(table[cause])
        while ahead:
            effect = ahead.pop()
            if effect not in found:
                found.add(effect)
                ahead += table.get(effect, ())
        closed[cause] = frozenset(found - {cause})
    return closed


def verdict(run: Run) -> Verdict | None:
    """Return the verdict on a run; None if it was successful with nothing above a notice."""
    if run.tool:
        return None  # a client such as curl, not an agent's run (R22)
    bad = run.outcome != "complete"
    candidates = [finding for finding in run.findings if (_explains(finding, run) if bad else _matters(finding))]
    if not candidates:
        # A request that waits to be signed is visible, and is not a deviation.
        certainty: Certainty = "certain" if run.outcome == "waiting" and run.csrs else "not visible"
        return Verdict(None, (), certainty, run.csrs[0].time if run.csrs else run.started) if bad else None
    consequences = {rule for finding in candidates for rule in effects(finding.rule)}
    roots = [finding for finding in candidates if finding.rule not in consequences] or candidates
    cause = min(roots, key=_depth)
    follows = effects(cause.rule)
    symptoms = tuple(dict.fromkeys(finding.rule for finding in run.findings if finding.rule in follows))
    return Verdict(cause, symptoms, _certainty(cause, run), cause.since or run.started)


def _depth(finding: Finding) -> tuple[int, int, int]:
    order = [cause for cause, _ in FOLLOWS]
    deep = order.index(finding.rule) if finding.rule in order else len(order)
    return -finding.severity.rank, deep, finding.seqs[0] if finding.seqs else 0


def _explains(finding: Finding, run: Run) -> bool:
    """Whether a finding can explain a failed run: an error, a cause of its errors, or a reason for waiting."""
    errors = {other.rule for other in run.findings if other.severity is Severity.ERROR}
    waits = run.outcome == "waiting" and finding.rule in WAITING
    if finding.rule in ECHOES:
        return False
    return finding.severity is Severity.ERROR or bool(errors & effects(finding.rule)) or waits


def _matters(finding: Finding) -> bool:
    return finding.severity is not Severity.NOTICE and (
        finding.severity is Severity.ERROR or finding.rule not in BY_NATURE
    )


ECHOES = frozenset({"R20", "R03", "R04"})
"""Rules that only repeat the outcome, that a run failed, without a reason."""
WAITING = frozenset({"B17", "B27", "B39", "B41", "B42", "B44"})
"""Rules below an error that explain why an agent waits for its certificate."""


def _certainty(cause: Finding, run: Run) -> Certainty:
    visible = rule_of(cause.rule).visible
    if visible is Visible.HANDSHAKE:
        # Named by our own verification, or by the alert.
        handshakes = [handshake for handshake in run.handshakes if handshake.seq in cause.seqs]
        named = any(handshake.culprits or handshake.alert in NAMING for handshake in handshakes)
        return "certain" if named else "likely"
    return "certain" if visible is Visible.WIRE else "likely"


NAMING = frozenset({"certificate_revoked", "certificate_expired", "certificate_required"})
"""Alerts with only one possible meaning."""
