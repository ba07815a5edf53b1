"""Find the cause of a run's outcome among its findings, and the findings that are its consequences.

Which deviation follows from which is said by the rules (``Rule.explains``), and by a finding itself where it names the
refused requests that it is a consequence of (``Finding.follows``).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from inspector.model import Severity, Visible
from inspector.rules import NOT_COMPILED, all_rules, is_own, rule_of
from inspector.text import clean

if TYPE_CHECKING:
    from inspector.model import Finding
    from inspector.runs.run import Run

type Certainty = Literal["certain", "likely", "not visible"]
"""Certain from the recorded traffic; the most likely explanation; or not visible in the traffic."""

BY_NATURE = frozenset({"B01", "B03", "S16"})
"""Warnings about a site's versions, the same in every run: never the verdict of a successful one."""
ECHOES = frozenset({"R20", "R03", "R04"})
"""Rules that only repeat the outcome, that a run failed, without a reason."""
OF_THE_CA = frozenset({"B05", "B10", "B12", "B13", "B14"})
"""Rules about what a CA serves to every agent."""
OF_COMMANDS = frozenset({"B36", "B49", "P17", "S01"})
"""Rules that are below an error because no run of an agent fails by it, and explain why a command failed."""
WAITING = frozenset({"B17", "B27", "B28", "B29", "B39", "B41", "B42", "B44"})
"""Rules below an error that explain why an agent waits for its certificate."""
NAMING = frozenset({"certificate_revoked", "certificate_expired", "certificate_required"})
"""Alerts with only one possible meaning."""
ORDER = (
    # No way to the master, or none any more.
    "S14", "T18", "T19", "T20", "T27", "T26", "T21", "T22", "T28",
    # Trust: a wrong clock, certificate or CRL explains the alert that follows.
    "T15", "T10", "B14", "B10", "B12", "B13", "B05", "B04", "B33", "B35", "T05", "S34", "T07", "T24", "T06", "T08",
    # The agent's identity towards the CA.
    "B06", "S17", "B09", "B08", "B21", "B46", "B19", "B18", "B22", "B20", "B23", "B38", "B25", "B26", "B24", "B28",
    "B27", "B29", "B44", "B43", "B40", "B42", "B17", "B39",
    # The agent's identity towards the master.
    "T23", "T03", "T04", "S18", "S31", "S10", "S30", "S16", "S03", "S02",
    # Why there is no catalog.
    "R13", "F07", "R09", "S15", "S24", "S06", "S05", "S12", "S32", "S23", "S13", "S09", "R06", "R07", "S08", "S28",
    "S26", "S25", "S27", "S01", "R20",
    # Why a resource failed, and what happened to the report.
    "P18", "S33", "S20", "F17", "F09", "F18", "F02", "F03", "P01", "P06", "P15", "P05", "S04", "P04", "P03",
    # What closes connections.
    "T12", "T13", "T14", "R17", "R02", "B36", "S11", "P11",
)  # fmt: skip
"""Of several causes, neither of which explains the other, the first one here is the verdict."""
NO_SERVER = frozenset({"T18", "T19", "T20", "T21", "T22", "T27", "S23"})
"""Rules about a server that an agent with a server_list can do without."""
SLOW = "S08"
"""How long a catalog took: where the agent got it nevertheless, or the reason why there is none, whatever else went
wrong is the verdict."""


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
    errors = dict.fromkeys(found.rule for found in run.findings if found.severity is Severity.ERROR)
    if run.injected:
        return Verdict(None, (), "certain", run.started, tuple(errors), injected=next(iter(run.injected)))
    if run.tool:
        return None  # a client such as curl, not an agent's run (R22)
    if run.command and not errors:
        if not run.command.certain:
            return Verdict(None, (), "likely", run.started)
        if run.outcome in ("complete", "waiting"):
            return None
    if candidates := _candidates(run):
        return _of_cause(run, _cause(run, candidates))
    if run.outcome == "complete":
        return None
    # A request that waits to be signed is visible, and is not a deviation.
    certainty: Certainty = "certain" if run.outcome == "waiting" and run.csrs else "not visible"
    return Verdict(None, (), certainty, run.csrs[0].time if run.csrs else run.started)


def settled(finding: Finding, run: Run) -> bool:
    """Whether there is nothing left to do: what kept the request from being signed did not."""
    rights = finding.rule == "B28" and finding.severity is Severity.ERROR  # granted ones stay dangerous
    return finding.rule in WAITING and run.certificate is not None and not rights


def as_it_ended(finding: Finding, run: Run) -> Finding:
    """Return a finding as a run that is over shows it: with a lower severity if nothing is left to do, or if the agent
    took the next server of its server_list instead."""
    if finding.severity.rank > Severity.NOTICE.rank and settled(finding, run):
        return dataclasses.replace(finding, severity=Severity.NOTICE)
    if finding.severity is Severity.ERROR and finding.rule in NO_SERVER and run.chosen:
        seq, server = run.chosen
        if all(shown < seq for shown in finding.seqs):
            message = f"{finding.message}; the agent went on with {clean(server)}"
            return dataclasses.replace(finding, severity=Severity.WARNING, message=message)
    return finding


def effects(ident: str, *, catalog: bool = False) -> frozenset[str]:
    """Return the ids of all rules that follow from a rule, directly or through others; ``catalog``: in a run that got
    its catalog."""
    return _effects(catalog).get(ident, frozenset())


def explains(cause: Finding, effect: Finding, *, catalog: bool = False) -> bool:
    """Whether a finding follows from another one of the same run; ``catalog``: the run got its catalog."""
    if cause.severity is Severity.ERROR and not set(effect.follows).isdisjoint(cause.seqs):
        return cause.rule != effect.rule
    possible = effect.rule in effects(cause.rule, catalog=catalog)
    return possible and not (
        effect.seqs and cause.seqs and effect.seqs[-1] < cause.seqs[0] and rule_of(cause.rule).event
    )


@cache
def _effects(catalog: bool) -> dict[str, frozenset[str]]:  # noqa: FBT001 - the key of a cache
    table = {rule.id: rule.explains if catalog else rule.explains + rule.without_catalog for rule in all_rules()}
    closed = {}
    for cause in table:
        found: set[str] = set()
        ahead = list(table[cause])
        while ahead:
            effect = ahead.pop()
            if effect not in found:
                found.add(effect)
                ahead += table[effect]
        closed[cause] = frozenset(found - {cause})
    return closed


def _candidates(run: Run) -> list[Finding]:
    """Return the findings that may be the cause: those that explain why a run failed, or matter in one that did not."""
    if run.outcome == "complete":
        return [finding for finding in run.findings if _matters(finding, run)]
    catalog = _got_catalog(run)
    found = [finding for finding in run.findings if _explains_failure(finding, run, catalog=catalog)]
    named = {seq for finding in found if finding.rule in NOT_COMPILED for seq in finding.seqs}
    return [finding for finding in found if finding.rule != SLOW or named.isdisjoint(finding.seqs)]


def _cause(run: Run, candidates: list[Finding]) -> Finding:
    """Return the candidate that follows from no other: the one nearest to how the run ended, then the gravest one, then
    the deepest one."""
    catalog = _got_catalog(run)
    roots = [
        found for found in candidates if not any(explains(cause, found, catalog=catalog) for cause in candidates)
    ] or candidates
    echoes = [finding for finding in run.findings if finding.rule in ECHOES]

    def rank(root: Finding) -> tuple[bool, bool, int, int, int]:
        repeated = [echo for echo in echoes if explains(root, echo, catalog=catalog)]
        # Of what happened several times the first is the cause, whichever was the last straw.
        seqs = {seq for found in roots if found.rule == root.rule for seq in found.seqs}
        in_echo = any(seqs & set(echo.seqs) for echo in repeated)
        depth = ORDER.index(root.rule) if root.rule in ORDER and not (catalog and root.rule == SLOW) else len(ORDER)
        return not repeated, not in_echo, -root.severity.rank, depth, root.seqs[0] if root.seqs else 0

    return min(roots, key=rank)


def _of_cause(run: Run, cause: Finding) -> Verdict:
    catalog = _got_catalog(run)
    others = [finding for finding in run.findings if finding.rule != cause.rule]
    remaining = {finding.rule for finding in others if not explains(cause, finding, catalog=catalog)}
    symptoms = dict.fromkeys(finding.rule for finding in others if finding.rule not in remaining)
    besides = dict.fromkeys(
        finding.rule for finding in others if finding.rule in remaining - ECHOES and finding.severity is Severity.ERROR
    )
    return Verdict(cause, tuple(symptoms), _certainty(cause, run), cause.since or run.started, tuple(besides))


def _got_catalog(run: Run) -> bool:
    """Whether a run got a catalog; one that the agent could not apply (P15) is as good as none."""
    return bool(run.catalogs and run.catalogs[-1].usable) and all(found.rule != "P15" for found in run.findings)


def _explains_failure(finding: Finding, run: Run, *, catalog: bool) -> bool:
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


def _certainty(cause: Finding, run: Run) -> Certainty:
    visible = rule_of(cause.rule).visible
    if visible is Visible.HANDSHAKE:
        # Named by our own verification, or by the alert.
        handshakes = [handshake for handshake in run.handshakes if handshake.seq in cause.seqs]
        named = any(handshake.culprits or handshake.alert in NAMING for handshake in handshakes)
        return "certain" if named else "likely"
    return "certain" if visible is Visible.WIRE else "likely"
