"""Collect and print what ``puppet-inspector doctor`` finds in captures, in directories and at a live master."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from inspector.analysis import verdicts
from inspector.capture.store import Capture
from inspector.columns import Number, Utc
from inspector.doctor import (
    agent_end,
    auth_conf,
    ca_view,
    cadir,
    clock_check,
    cross_check,
    findings,
    fix_script,
    livecheck,
    migration,
    server_log,
    ssldir,
)
from inspector.errors import CaptureError, InspectorError
from inspector.formats import json_output
from inspector.host import puppetconf
from inspector.model import Severity
from inspector.progress import unwatched
from inspector.rules import fixes, is_own, rule_of
from inspector.summaries import reading, wording
from inspector.summaries.judgement import Judgement
from inspector.summaries.wording import Block
from inspector.text import clean, counts, utc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from inspector.doctor.findings import Diagnosis
    from inspector.doctor.migration import Migration
    from inspector.doctor.server_log import Quote
    from inspector.host.auth_conf.rules import AuthConf
    from inspector.progress import Watch
    from inspector.summaries.index import IndexedRun
    from inspector.summaries.judgement import NodeVerdict
    from inspector.summaries.keys import WireKey
    from inspector.summaries.summary import RunBrief
    from inspector.summaries.whole_messages import Whole

SCREEN = 11
"""Verdicts that fit on one screen, with their fixes and notes."""


class Note(NamedTuple):
    """A finding that explains no run: a property of the site's versions, or of its own rules."""

    rule: str
    capture: Path
    runs: list[int]
    """The runs in which it was found."""
    message: str = ""
    """The message of a site's own rule about the latest of them."""


@dataclass(slots=True)
class CaptureReport:
    """The verdicts and notes about captures."""

    captures: list[Path] = field(default_factory=list)
    judgement: Judgement = field(default_factory=Judgement)
    notes: list[Note] = field(default_factory=list)
    keys: list[WireKey] = field(default_factory=list)
    """The public keys in their traffic."""
    unanalyzed: list[tuple[Path, int, str]] = field(default_factory=list)
    """The records that were not analyzed, and why."""
    failed: list[str] = field(default_factory=list)
    """Why rules failed."""
    runs: dict[tuple[Path, int], IndexedRun] = field(default_factory=dict)
    """The runs, by capture and number."""
    logged: dict[tuple[Path, int], list[Quote]] = field(default_factory=dict)
    """What the master's log says about verdicts, by capture and the number of the run."""

    @property
    def agents(self) -> list[NodeVerdict]:
        """The verdicts, the worst first."""
        return self.judgement.verdicts

    def quotes(self, agent: NodeVerdict) -> list[Quote]:
        """Return what the master's log says about a verdict."""
        return self.logged.get((agent.capture, agent.run.number), [])

    def where(self, capture: Path) -> str:
        """Return what names a capture before the number of a run; empty if there is only one."""
        return f"{clean(capture.name)} " if len(self.captures) > 1 else ""


def of_captures(
    paths: Sequence[Path],
    now: float,
    watch: Watch = unwatched,
    unreadable: Callable[[CaptureError], None] | None = None,
) -> CaptureReport:
    """Return what is known of captures. ``unreadable`` is called for each that cannot be read. Raises CaptureError."""
    read = reading.read_together(paths, watch, *([unreadable] if unreadable else []))
    judgement = reading.judged(read, now)
    runs = [(found.capture, run) for found in read for run in found.briefs]
    return CaptureReport(
        list(paths),
        judgement,
        _notes(runs),
        [key for found in read for key in found.keys],
        [(found.capture, seq, reason) for found in read for seq, reason in found.unanalyzed.items()],
        [reason for found in read for reason in found.failed.values()],
        {(found.capture, run.brief.number): run for found in read for run in found.runs},
    )


def _notes(runs: Iterable[tuple[Path, RunBrief]]) -> list[Note]:
    notes: dict[tuple[str, Path], Note] = {}
    for capture, run in runs:
        found = {finding.rule: finding.message for finding in run.findings}
        for rule in sorted(rule for rule in found if rule in verdicts.BY_NATURE or is_own(rule)):
            numbers = notes[rule, capture].runs if (rule, capture) in notes else []
            notes[rule, capture] = Note(rule, capture, [*numbers, run.number], found[rule] if is_own(rule) else "")
    return list(notes.values())


def by_auth_conf(found: CaptureReport, conf: AuthConf) -> list[Diagnosis]:
    """Name the rule behind each refused request, in the verdicts; return it for runs with another cause."""
    diagnoses: list[Diagnosis] = []
    for agent in found.agents:
        with Capture.open(agent.capture) as records:
            agent.run = auth_conf.explained(agent.run, records, conf)
            agent.verdict = agent.run.verdict or agent.verdict
            if agent.current:
                diagnoses += auth_conf.others(agent.run, records, conf)
    return diagnoses


def by_server_log(found: CaptureReport, logs: Sequence[Path]) -> None:
    """Look in the master's logs for what failed; without ``logs`` in those of this host. Raises InspectorError."""
    found.logged = server_log.quotes(found.agents, found.runs, logs)


def of_directories(
    ssl: Path | None,
    ca: Path | None,
    certname: str | None,
    wire_keys: Sequence[WireKey] = (),
    *,
    master: Callable[[], float | None] | None = None,
) -> list[Diagnosis]:
    """Return what is wrong in an ssldir, in a cadir, between the two, and between them and a capture's keys.

    ``master`` returns the time by a master's clock, which is asked for before a date is called wrong; None: not known.
    Raises InspectorError.
    """
    return clock_check.judged(
        functools.partial(_of_directories, ssl, ca, certname, wire_keys), time.time(), master or (lambda: None)
    )


def master_time(address: str | None, ssl: Path | None) -> float | None:
    """Return the time by the clock of a master, by default that of this host's puppet.conf; None if it is not known.
    Raises InspectorError."""
    if address:
        return clock_check.master_time(*puppetconf.split_address(address))
    conf = puppetconf.read(str(ssl) if ssl else None)
    return clock_check.master_time(*conf.servers[0]) if conf.path else None


def _of_directories(
    ssl: Path | None, ca: Path | None, certname: str | None, wire_keys: Sequence[WireKey], now: float
) -> list[Diagnosis]:
    agent = ssldir.read(ssl, certname) if ssl else None
    authority = cadir.read(ca) if ca else None
    diagnoses = cadir.examine(authority, now) if authority else []
    if agent and authority:
        agent = dataclasses.replace(agent, ca_service=authority.program.service)
    if agent:
        diagnoses += cross_check.with_causes(ssldir.examine(agent, now), diagnoses)
        diagnoses += cross_check.join(agent, authority) + cross_check.against_wire(agent, authority, wire_keys)
    elif authority:
        diagnoses += cross_check.ca_against_wire(authority, wire_keys)
    return findings.worst_first(diagnoses)


def of_agents(found: CaptureReport) -> list[Diagnosis]:
    """Return why agents ended that `run` started, where their traffic does not show it."""
    diagnoses: list[Diagnosis] = []
    for path in found.captures:
        runs = [run for (capture, _), run in found.judgement.runs.items() if capture == path]
        with contextlib.suppress(CaptureError):  # it was reported
            diagnoses += agent_end.of_capture(path, runs)
    return diagnoses


def of_master(address: str, ssl: Path | None, cert: Path | None, key: Path | None) -> list[Diagnosis]:
    """Return what an agent of this host would find wrong with a running master. Raises InspectorError."""
    host, port = puppetconf.split_address(address)
    conf = puppetconf.read(str(ssl) if ssl else None)
    if (cert is None) != (key is None):
        raise InspectorError(
            "--cert and --key must be used together.", "Without both of them no certificate is presented."
        )
    apart = conf.authority if conf.path and conf.authority != conf.servers[0] else None
    return livecheck.probe(
        host, port, ca=_existing(conf.ca), crl=_existing(conf.crl), certificate=cert, key=key, now=time.time(),
        authority=apart, primary=conf.servers[0] if conf.path else None,
    )  # fmt: skip


def of_migration(old: Path, new: str, capture: Path | None, now: float, watch: Watch = unwatched) -> Migration:
    """Compare a CA, by its directory or by a capture, with one that is to take its place (``ca_view.of_named``).

    ``capture``: what is asked of both auth.conf that lie beside the directories. Raises InspectorError.
    """
    known: dict[bytes, object] = {}
    before = ca_view.of_capture(old, watch) if _existing(old) else ca_view.of_directory(old, known, watch)
    names = dict.fromkeys([*before.certificates, *before.requests])
    after = ca_view.of_named(new, names, known, watch)
    confs = before.settings.auth_conf, after.settings.auth_conf
    changed = auth_conf.changed(confs[0], confs[1], capture) if confs[0] and confs[1] else []
    return migration.compare(before, after, now, map(migration.Difference, changed))


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
        if agent.run.steps and agent.current:
            what = f"{found.where(agent.capture)}run {agent.run.number}: {agent.verdict.message}"
            ranked.append(
                (
                    agent.severity.rank,
                    fix_script.Problem(what, agent.run.steps, agent.run.certname or agent.run.address),
                )
            )
    most = max((rank for rank, _ in ranked), default=0)
    return [problem for rank, problem in ranked if rank == most]


def _existing(path: Path) -> Path | None:
    """Return a file of this host's agent; None if there is none, or if this user may not enter its directory."""
    with contextlib.suppress(OSError):
        return path if path.is_file() else None
    return None


def summary(found: CaptureReport, diagnoses: Sequence[Diagnosis]) -> str:
    """One line on what is wrong; empty if nothing was examined."""
    lead = found.judgement.headline if found.captures else ""
    return "; ".join(filter(None, [lead, counts(diagnoses)]))


def verdict_blocks(
    found: CaptureReport, whole: Callable[[Path], Whole] | None = None, width: int | None = None
) -> Iterator[Block]:
    """Yield the verdicts, at most one screen of them, and what is by nature; with the whole messages of the causes if
    ``whole`` returns what reads those of a capture. ``width`` is that of the terminal."""
    agents = found.agents
    fixes = wording.FixLines(width)
    for agent in agents[:SCREEN]:
        times = f" ({agent.times} runs)" if agent.times > 1 else ""
        where, past = found.where(agent.capture), ""
        if agent.superseded_in is not None and not agent.run.over_since():
            later = f"{found.where(agent.superseded_in)}run {agent.superseded_by}"
            past = f" (history: {later} ended differently)"
        block = wording.verdict(agent.run, width, where, times=times, past=past)
        block.lines.extend(wording.quoted(whole(agent.capture)(agent.run.cause_found), width) if whole else ())
        block.lines.extend(wording.meaning(agent.run, width))
        if agent.current:
            for quote in found.quotes(agent):
                block.lines.extend(_quoted(quote, width))
            block.lines.extend(fixes.of(agent.run.steps, f"{where}run {agent.run.number}"))
        yield block
    notes = []
    if len(agents) > SCREEN:
        notes.append(f"... and {len(agents) - SCREEN} more: `puppet-inspector runs` and `check` list all of them")
    for rule, capture, numbers, message in found.notes:
        shown = ", ".join(map(str, numbers[:SCREEN])) + (", ..." if len(numbers) > SCREEN else "")
        of_runs = f"{found.where(capture)}{'runs' if len(numbers) > 1 else 'run'} {shown}"
        notes.append(f"note: {rule} {rule_of(rule).title}{f': {clean(message)}' if message else ''} ({of_runs})")
    for note in notes:
        yield Block(wording.flowing(note, width))


def _quoted(quote: Quote, width: int | None) -> list[str]:
    """Return the lines of what a master's log says, with its meaning and its fix."""
    lines = wording.flowing(f"  {clean(quote.log.name)} at {quote.clock}: {quote.text}", width)
    if quote.steps:
        for label, content in (("    meaning: ", quote.meaning), ("    fix: ", quote.steps)):
            lines += wording.Labelled(label, content).lines(width or wording.PLAIN)
    return lines


def diagnosis_blocks(diagnoses: Sequence[Diagnosis], width: int | None = None) -> Iterator[Block]:
    """Yield diagnoses as text, each with its fix; ``width`` is that of the terminal."""
    for diagnosis in diagnoses:
        marked = diagnosis.severity.upper()
        lines = wording.flowing(f"{marked} {diagnosis.title}: {diagnosis.detail}", width)
        if diagnosis.steps:
            lines += wording.Labelled("  fix: ", diagnosis.steps).lines(width or wording.PLAIN)
        yield Block(lines, marked, diagnosis.severity)
    if not diagnoses:
        yield Block(["no problems found"])


class LogLine(msgspec.Struct):
    """An error or a warning in the master's log at the moment of what failed, masked."""

    log: str
    """The path of the log."""
    time: Utc
    """When it was written, by the master's clock."""
    level: str
    text: str
    """The line without time, level, thread and logger, and the exceptions below it; long ones without their middle."""
    meaning: str | None
    """What it means; null if it is no known message with something to do on the master."""
    steps: list[fixes.PlainStep]
    """What to do then, before the fix of the verdict."""


class AgentVerdict(json_output.Verdict, kw_only=True):
    """The verdict on an agent's runs with one cause."""

    capture: str
    """The path of the capture with the run."""
    run: Number
    """The latest run with this cause."""
    certname: str | None
    runs: Number
    """Number of this agent's runs with this cause."""
    superseded_by: Number | None
    """A later run of the same agent that ended differently: this verdict is history."""
    superseded_in: str | None
    """The path of the capture with the run superseded_by."""
    server_log: list[LogLine]
    """What the master's log (--server-log, or those of this host) says about it, in the order of time."""


class PlainNote(msgspec.Struct):
    """What comes with the versions of agents and master, and is the same in every run."""

    rule: str
    capture: str
    """The path of the capture."""
    runs: list[Number]


class PlainDiagnosis(msgspec.Struct):
    """A problem of a directory or a live master."""

    severity: Severity
    what: str
    """What is wrong, in a few words."""
    detail: str
    """The facts: fingerprints, dates, paths below the directory."""
    remedy: str | None
    """The fix: the next command; null if there is nothing to do."""
    steps: list[fixes.PlainStep]
    """The fix in steps."""
    rule: str | None
    """The rule for the same problem."""


class Examined(msgspec.Struct):
    """Problems of the agents of a capture, of directories and of a live master."""

    verdicts: list[AgentVerdict]
    """One verdict for each agent and cause, the worst first; empty without a capture."""
    notes: list[PlainNote]
    diagnoses: list[PlainDiagnosis]
    """Problems found in directories and on a live master, the worst first."""
    not_analyzed: list[json_output.NotAnalyzed]
    """The records that were not analyzed: their findings may be missing."""
    fix_script: str | None
    """The script that --fix-script wrote; null without the option, and if there is nothing to heal."""
    headline: str
    """The whole answer in one line: how many nodes are in which state, and what was found."""
    states: list[json_output.PlainNode]
    """What each node is now, in the order in which they first ran."""


def plain(
    found: CaptureReport, diagnoses: Iterable[Diagnosis], script: Path | None, whole: Callable[[Path], Whole] | None
) -> Examined:
    """Return all of it for JSON; ``script`` is the one that was written, ``whole`` returns what reads the messages of a
    capture."""
    return Examined(
        verdicts=[
            _verdict(agent, whole(agent.capture) if whole else None, found.quotes(agent)) for agent in found.agents
        ],
        notes=[PlainNote(note.rule, str(note.capture), note.runs) for note in found.notes],
        diagnoses=[plain_diagnosis(diagnosis) for diagnosis in diagnoses],
        not_analyzed=json_output.not_analyzed(found.unanalyzed),
        fix_script=str(script) if script else None,
        headline=found.judgement.headline,
        states=json_output.states(found.judgement),
    )


def _verdict(agent: NodeVerdict, whole: Whole | None, quotes: Iterable[Quote]) -> AgentVerdict:
    return AgentVerdict(
        **msgspec.structs.asdict(json_output.verdict(agent.verdict, agent.run, whole)),
        capture=str(agent.capture),
        run=agent.run.number,
        certname=agent.run.certname,
        runs=agent.times,
        superseded_by=agent.superseded_by,
        superseded_in=str(agent.superseded_in) if agent.superseded_in else None,
        server_log=[_line(quote) for quote in quotes],
    )


def _line(of: Quote) -> LogLine:
    return LogLine(clean(str(of.log)), utc(of.time), of.level, of.text, of.meaning or None, fixes.fields(of.steps))


def plain_diagnosis(of: Diagnosis) -> PlainDiagnosis:
    """Return a diagnosis for JSON."""
    return PlainDiagnosis(of.severity, of.title, of.detail, of.fix or None, fixes.fields(of.steps), of.rule)
