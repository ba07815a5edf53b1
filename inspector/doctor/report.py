"""Collect and print what ``puppet-inspector doctor`` finds in a capture, in directories and at a live master."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from inspector.analysis import verdicts
from inspector.capture.store import Capture
from inspector.doctor import auth_conf, cadir, cross_check, findings, fix_script, livecheck, ssldir
from inspector.errors import InspectorError
from inspector.host import puppetconf
from inspector.model import Severity
from inspector.progress import unwatched
from inspector.rules import fixes, rule_of
from inspector.summaries import conclusions, reading, wording
from inspector.summaries.wording import Block
from inspector.text import counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from inspector.doctor.findings import Diagnosis
    from inspector.host.auth_conf.rules import AuthConf
    from inspector.progress import Watch
    from inspector.summaries.keys import WireKey
    from inspector.summaries.summary import Conclusion, RunBrief
    from inspector.summaries.whole_messages import Whole

SCREEN = 11
"""Verdicts that fit on one screen, with their fixes and notes."""


@dataclass(slots=True)
class AgentVerdict:
    """The verdict that several runs of one agent share."""

    run: RunBrief
    """The latest of these runs."""
    verdict: Conclusion
    """On that run."""
    rank: int
    """3 for an error, 2 for a warning."""
    times: int = 1
    superseded_by: int | None = None
    """The number of a later run of the agent that ended differently: this verdict is history."""


@dataclass(slots=True)
class CaptureReport:
    """What is known of a capture."""

    agents: list[AgentVerdict] = field(default_factory=list)
    """Worst first."""
    runs: int = 0
    notes: dict[str, list[int]] = field(default_factory=dict)
    """What is by a site's versions: rules, and the runs in which they were found."""
    keys: list[WireKey] = field(default_factory=list)
    """The public keys in its traffic."""
    unanalyzed: dict[int, str] = field(default_factory=dict)
    """The records that were not analyzed, and why."""
    failed: dict[str, str] = field(default_factory=dict)
    """The rules that failed, and why."""


def of_capture(path: Path, watch: Watch = unwatched) -> CaptureReport:
    """Return what is known of a capture. Raises CaptureError."""
    (found,) = reading.read_together([path], watch=watch)
    runs = found.briefs
    return CaptureReport(agent_verdicts(runs), len(runs), _notes(runs), found.keys, found.unanalyzed, found.failed)


def agent_verdicts(runs: Iterable[RunBrief]) -> list[AgentVerdict]:
    """Return the verdicts of runs, one per agent and cause: the worst first, then the latest; history is last.

    An agent is judged by its latest run. What an earlier one showed is history, unless the latest shows nothing at all.
    """
    by_cause: dict[tuple[str | None, str | None, str], AgentVerdict] = {}
    latest: dict[str | None, tuple[RunBrief, AgentVerdict | None]] = {}
    for run in conclusions.with_shared(sorted(runs, key=lambda run: run.started)):
        verdict = run.verdict
        agent = run.certname or run.address
        if verdict is None:
            if run.outcome == "complete" and not run.tool and not run.command:
                latest[agent] = run, None
            continue
        rank = verdict.severity.rank if verdict.severity and verdict.is_over else Severity.ERROR.rank
        if verdict.cause is None and run.command:
            rank = Severity.NOTICE.rank  # likely no run of an agent
        key = (agent, verdict.cause, run.outcome if verdict.cause is None else "")
        earlier = by_cause.pop(key, None)
        by_cause[key] = AgentVerdict(run, verdict, rank, earlier.times + 1 if earlier else 1)
        if verdict.certainty != "not visible" and verdict.evidence is None and not run.command:
            latest[agent] = run, by_cause[key]
    for (agent, _, _), each in by_cause.items():
        last, current = latest.get(agent, (each.run, each))
        if current is not each and last.started >= each.run.started:
            each.superseded_by = last.number
    latest_first = sorted(by_cause.values(), key=lambda verdict: -verdict.run.started)
    return sorted(
        latest_first, key=lambda each: (each.superseded_by is not None, -each.rank, each.run.outcome == "complete")
    )


def _notes(runs: Iterable[RunBrief]) -> dict[str, list[int]]:
    notes: dict[str, list[int]] = {}
    for run in runs:
        for rule in sorted({finding.rule for finding in run.findings} & verdicts.BY_NATURE):
            notes.setdefault(rule, []).append(run.number)
    return notes


def by_auth_conf(found: CaptureReport, capture: Path, conf: AuthConf) -> list[Diagnosis]:
    """Name the rule behind each refused request, in the verdicts; return it for runs with another cause."""
    diagnoses: list[Diagnosis] = []
    with Capture.open(capture) as records:
        for agent in found.agents:
            agent.run = auth_conf.explained(agent.run, records, conf)
            agent.verdict = agent.run.verdict or agent.verdict
            if agent.superseded_by is None:
                diagnoses += auth_conf.others(agent.run, records, conf)
    return diagnoses


def of_directories(
    ssl: Path | None,
    ca: Path | None,
    certname: str | None,
    wire_keys: Sequence[WireKey] = (),
    *,
    master: str | None = None,
) -> list[Diagnosis]:
    """Return what is wrong in an ssldir, in a cadir, between the two, and between them and a capture's keys.

    ``master`` is the address of the running master that is checked as well: errors that are none by its clock follow
    from the clocks, and are left to ``of_master``.
    Raises InspectorError.
    """
    now = time.time()
    diagnoses = _of_directories(ssl, ca, certname, wire_keys, now)
    if master and (other := livecheck.master_time(*puppetconf.split_address(master), now=now)):
        follows = findings.only_now(diagnoses, _of_directories(ssl, ca, certname, wire_keys, other))
        diagnoses = [diagnosis for diagnosis in diagnoses if diagnosis not in follows]
    return diagnoses


def _of_directories(
    ssl: Path | None, ca: Path | None, certname: str | None, wire_keys: Sequence[WireKey], now: float
) -> list[Diagnosis]:
    agent = ssldir.read(ssl, certname) if ssl else None
    authority = cadir.read(ca) if ca else None
    diagnoses = cadir.examine(authority, now) if authority else []
    if agent:
        diagnoses += cross_check.with_causes(ssldir.examine(agent, now), diagnoses)
        diagnoses += cross_check.join(agent, authority) + cross_check.against_wire(agent, authority, wire_keys)
    elif authority:
        diagnoses += cross_check.ca_against_wire(authority, wire_keys)
    return findings.worst_first(diagnoses)


def of_master(address: str, ssl: Path | None, cert: Path | None, key: Path | None) -> list[Diagnosis]:
    """Return what an agent of this host would find wrong with a running master. Raises InspectorError."""
    host, port = puppetconf.split_address(address)
    conf = puppetconf.read(str(ssl) if ssl else None)
    if (cert is None) != (key is None):
        raise InspectorError(
            "--cert and --key must be used together.", "Without both of them no certificate is presented."
        )
    return livecheck.probe(
        host, port, ca=_existing(conf.ca), crl=_existing(conf.crl), certificate=cert, key=key, now=time.time()
    )


def worst(found: CaptureReport, diagnoses: Iterable[Diagnosis]) -> list[fix_script.Problem]:
    """Return the worst of the diagnoses and of the verdicts that are no history, with their fixes.

    Diagnoses come first: those of a CA's directory may explain the verdicts.
    """
    ranked = [
        (diagnosis.severity.rank, fix_script.Problem(f"{diagnosis.title}: {diagnosis.detail}", diagnosis.steps))
        for diagnosis in diagnoses
        if diagnosis.steps
    ]
    for agent in found.agents:
        if agent.run.steps and agent.superseded_by is None:
            what = f"run {agent.run.number}: {agent.verdict.message}"
            ranked.append(
                (agent.rank, fix_script.Problem(what, agent.run.steps, agent.run.certname or agent.run.address))
            )
    most = max((rank for rank, _ in ranked), default=0)
    return [problem for rank, problem in ranked if rank == most]


def _existing(path: Path) -> Path | None:
    """Return a file of this host's agent; None if there is none, or if this user may not enter its directory."""
    with contextlib.suppress(OSError):
        return path if path.is_file() else None
    return None


def summary(found: CaptureReport, diagnoses: Sequence[Diagnosis]) -> str:
    """One line on what is wrong; empty if nothing is."""
    latest = [agent for agent in found.agents if agent.superseded_by is None]
    parts = []
    for rank, what in ((3, "failing"), (2, "with warnings")):
        if number := sum(agent.rank == rank for agent in latest):
            parts.append(f"{number} agent{'' if number == 1 else 's'} {what}")
    if latest:
        parts[-1] += f", in {found.runs} run{'' if found.runs == 1 else 's'}"
    return "; ".join([*parts, *filter(None, [counts(diagnoses)])])


def verdict_blocks(found: CaptureReport, whole: Whole | None = None, width: int | None = None) -> Iterator[Block]:
    """Yield a capture's verdicts, at most one screen of them, and what is by nature; with the whole messages of the
    causes if ``whole`` reads them. ``width`` is that of the terminal."""
    agents, runs = found.agents, found.runs
    fixes = wording.FixLines(width)
    for agent in agents[:SCREEN]:
        times = f" ({agent.times} runs)" if agent.times > 1 else ""
        past = "" if agent.superseded_by is None else f" (history: run {agent.superseded_by} ended differently)"
        block = wording.verdict(agent.run, width, times=times, past=past)
        block.lines.extend(wording.quoted(whole(agent.run.cause_found), width) if whole else ())
        if agent.superseded_by is None:
            block.lines.extend(fixes.of(agent.run.steps, f"run {agent.run.number}"))
        yield block
    notes = []
    if len(agents) > SCREEN:
        notes.append(f"... and {len(agents) - SCREEN} more: `puppet-inspector runs` and `check` list all of them")
    if not agents:
        notes.append(f"no problems in {runs} run{'' if runs == 1 else 's'}" if runs else "the capture contains no runs")
    for rule, numbers in found.notes.items():
        shown = ", ".join(map(str, numbers[:SCREEN])) + (", ..." if len(numbers) > SCREEN else "")
        notes.append(f"note: {rule} {rule_of(rule).title} (run{'s' if len(numbers) > 1 else ''} {shown})")
    for note in notes:
        yield Block(wording.flowing(note, width))


def diagnosis_blocks(diagnoses: Sequence[Diagnosis], width: int | None = None) -> Iterator[Block]:
    """Yield diagnoses as text, each with its fix; ``width`` is that of the terminal."""
    for diagnosis in diagnoses:
        marked = diagnosis.severity.upper()
        lines = wording.flowing(f"{marked} {diagnosis.title}: {diagnosis.detail}", width)
        if diagnosis.steps:
            lines += wording.labelled("  fix: ", diagnosis.steps, width or wording.PLAIN)
        yield Block(lines, marked, diagnosis.severity)
    if not diagnoses:
        yield Block(["no problems found"])


def plain(diagnoses: Sequence[Diagnosis]) -> list[dict[str, Any]]:
    """Return diagnoses for ``--json``."""
    return [
        {
            "severity": str(diagnosis.severity),
            "what": diagnosis.title,
            "detail": diagnosis.detail,
            "remedy": diagnosis.fix or None,
            "steps": fixes.fields(diagnosis.steps),
            "rule": diagnosis.rule,
        }
        for diagnosis in diagnoses
    ]
