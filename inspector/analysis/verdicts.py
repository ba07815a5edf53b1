"""Find the cause of a run's outcome among its findings, and the findings that are its consequences.

Which deviation follows from which is in ``causes``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from inspector.analysis.causes import FOLLOWS, explains
from inspector.model import Severity, Visible
from inspector.rules import is_own, rule_of

if TYPE_CHECKING:
    from inspector.model import Finding
    from inspector.runs.run import Run

type Certainty = Literal["certain", "likely", "not visible"]
"""Certain from the recorded traffic; the most likely explanation; or not visible in the traffic."""

BY_NATURE = frozenset({"B01", "B03", "S16"})
"""Warnings about a site's versions, the same in every run: never the verdict of a successful one."""


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
    besides: tuple[str, ...] = ()
    """Ids of further errors, which do not follow from the cause: they are there when it is mended."""
    injected: int | None = None
    """The first record in which the proxy injected a fault on purpose; None: there is none."""


def verdict(run: Run) -> Verdict | None:
    """Return the verdict on a run; None if it was successful with nothing above a notice."""
    if run.injected:
        errors = dict.fromkeys(found.rule for found in run.findings if found.severity is Severity.ERROR)
        return Verdict(None, (), "certain", run.started, tuple(errors), injected=next(iter(run.injected)))
    if run.tool:
        return None  # a client such as curl, not an agent's run (R22)
    if run.command and not any(finding.severity is Severity.ERROR for finding in run.findings):
        if not run.command.certain:
            return Verdict(None, (), "likely", run.started)
        if run.outcome in ("complete", "waiting"):
            return None
    bad = run.outcome != "complete"
    # One that the agent could not apply (P15) is as good as none.
    catalog = bool(run.catalogs and run.catalogs[-1].usable) and all(found.rule != "P15" for found in run.findings)
    candidates = [
        finding
        for finding in run.findings
        if (_explains(finding, run, catalog=catalog) if bad else _matters(finding, run))
    ]
    if not candidates:
        # A request that waits to be signed is visible, and is not a deviation.
        certainty: Certainty = "certain" if run.outcome == "waiting" and run.csrs else "not visible"
        return Verdict(None, (), certainty, run.csrs[0].time if run.csrs else run.started) if bad else None

    def follows(effect: Finding, cause: Finding) -> bool:
        return effect.rule != cause.rule and explains(cause, effect, catalog=catalog)

    echoes = [finding for finding in run.findings if finding.rule in ECHOES]
    roots = [found for found in candidates if not any(follows(found, cause) for cause in candidates)] or candidates

    def nearness(root: Finding) -> tuple[bool, bool]:
        mine = [echo for echo in echoes if follows(echo, root)]
        # Of what happened several times the first is the cause, whichever was the last straw.
        seqs = {seq for found in roots if found.rule == root.rule for seq in found.seqs}
        return not mine, not any(seqs & set(echo.seqs) for echo in mine)

    cause = min(roots, key=lambda root: (*nearness(root), *_depth(root)))
    remaining = {finding.rule for finding in run.findings if not follows(finding, cause) and finding.rule != cause.rule}
    symptoms = dict.fromkeys(
        finding.rule for finding in run.findings if finding.rule not in remaining and finding.rule != cause.rule
    )
    besides = dict.fromkeys(
        finding.rule
        for finding in run.findings
        if finding.rule in remaining - ECHOES and finding.severity is Severity.ERROR
    )
    return Verdict(cause, tuple(symptoms), _certainty(cause, run), cause.since or run.started, tuple(besides))


def _depth(finding: Finding) -> tuple[int, int, int]:
    order = [row.cause for row in FOLLOWS]
    deep = order.index(finding.rule) if finding.rule in order else len(order)
    return -finding.severity.rank, deep, finding.seqs[0] if finding.seqs else 0


def _explains(finding: Finding, run: Run, *, catalog: bool) -> bool:
    """Whether a finding can explain a failed run: an error, a cause of its errors, a reason for waiting, or why a
    command got nothing. What a site's own rule finds is no cause."""
    if finding.rule in ECHOES or is_own(finding.rule):
        return False
    waits = run.outcome == "waiting" and finding.rule in WAITING
    of_command = finding.rule in OF_COMMANDS and run.command is not None and run.command.certain
    errors = (other for other in run.findings if other.severity is Severity.ERROR)
    return (
        waits
        or of_command
        or finding.severity is Severity.ERROR
        or any(explains(finding, error, catalog=catalog) for error in errors)
    )


def _matters(finding: Finding, run: Run) -> bool:
    """Whether a finding is the verdict of a run that went well."""
    by_nature = finding.rule in BY_NATURE and finding.severity is Severity.WARNING
    none = finding.severity is Severity.NOTICE or by_nature or is_own(finding.rule)
    return not none and not settled(finding, run)


def settled(finding: Finding, run: Run) -> bool:
    """Whether there is nothing left to do: what kept the request from being signed did not."""
    return finding.rule in WAITING and run.certificate is not None


ECHOES = frozenset({"R20", "R03", "R04"})
"""Rules that only repeat the outcome, that a run failed, without a reason."""
OF_THE_CA = frozenset({"B05", "B10", "B12", "B13", "B14"})
"""Rules about what a CA serves to every agent."""
OF_COMMANDS = frozenset({"B36", "B49", "P17", "S01"})
"""Rules that are below an error because no run of an agent fails by it, and explain why a command failed."""
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
