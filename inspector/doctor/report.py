"""``puppet-inspector doctor``: what is wrong, on the wire, in a directory, at a running master, and what to do now.

It puts together what others find out: verdicts of a capture's runs, diagnoses of directories and of a live master.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inspector.analysis import verdicts
from inspector.analysis.analyzer import Analyzer
from inspector.capture.store import Capture
from inspector.doctor import cadir, cross_check, findings, livecheck, ssldir
from inspector.errors import InspectorError
from inspector.host import puppetconf
from inspector.model import Exchange, Severity
from inspector.protocol import documents as d
from inspector.summaries import wording

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from inspector.analysis.analyzer import Step
    from inspector.doctor.cross_check import WireKey
    from inspector.doctor.findings import Diagnosis
    from inspector.runs.run import Run

SCREEN = 12
"""Verdicts that fit on one screen, with their remedies."""


@dataclass(slots=True)
class Ailment:
    """Runs of one agent that come down to the same."""

    run: Run
    """The latest of them."""
    cause: str | None
    rank: int
    """3 for an error, 2 for a warning."""
    times: int = 1


def of_capture(path: Path) -> tuple[list[Ailment], int, list[WireKey]]:
    """What ails the agents of a capture, worst first; how many runs there are; and the keys that it shows.

    Raises CaptureError.
    """
    analyzer = Analyzer()
    keys: dict[tuple[str, str, str], WireKey] = {}
    with Capture.open(path) as capture:
        for record in capture.records():
            for key in _keys(analyzer.feed(record)):
                keys[key.kind, key.certname, key.key] = key
    runs = analyzer.finish()
    return ailments(runs), len(runs), list(keys.values())


def ailments(runs: Iterable[Run]) -> list[Ailment]:
    """The verdicts of runs, one for each agent and cause, the worst first and of those the latest."""
    found: dict[tuple[str | None, str | None, str], Ailment] = {}
    for run in runs:
        verdict = verdicts.verdict(run)
        if verdict is None:
            continue
        cause = verdict.cause.rule if verdict.cause else None
        rank = verdict.cause.severity.rank if verdict.cause and run.outcome == "complete" else Severity.ERROR.rank
        key = (run.certname or run.address, cause, run.outcome if cause is None else "")
        before = found.pop(key, None)
        found[key] = Ailment(run, cause, rank, before.times + 1 if before else 1)
    bad = sorted(found.values(), key=lambda each: -each.run.started)
    return sorted(bad, key=lambda each: (-each.rank, each.run.outcome == "complete"))


def _keys(step: Step) -> Iterator[WireKey]:
    record = step.record
    if not isinstance(record, Exchange):
        return
    if step.client and step.client.common_name:
        yield cross_check.WireKey("client", step.client.common_name, step.client.key, record.time, record.seq)
    name = step.match.certname if step.match else None
    if name is None or step.match is None or step.match.endpoint.area != "ca":
        return
    if isinstance(step.request, d.CertificateRequest):
        yield cross_check.WireKey("csr", name, step.request.key, record.time, record.seq)
    if step.match.endpoint.name == "certificate" and isinstance(step.response, d.Certificates):
        yield cross_check.WireKey("certificate", name, step.response.certificates[0].key, record.time, record.seq)


def of_directories(
    ssl: Path | None, ca: Path | None, certname: str | None, seen: Sequence[WireKey] = ()
) -> list[Diagnosis]:
    """What is wrong in an agent's ssldir, in a CA's directory, between them, and with what a capture saw.

    Raises InspectorError.
    """
    now = time.time()
    held = ssldir.read(ssl, certname) if ssl else None
    authority = cadir.read(ca) if ca else None
    found = cadir.examine(authority, now) if authority else []
    found += cross_check.following(ssldir.examine(held, now), found) if held else []
    if held:
        found += cross_check.join(held, authority) + cross_check.against_wire(held, authority, seen)
    return findings.worst_first(found)


def of_master(address: str, ssl: Path | None, cert: Path | None, key: Path | None) -> list[Diagnosis]:
    """What an agent of this host would say to a running master. Raises InspectorError."""
    host, port = puppetconf.split_address(address)
    conf = puppetconf.read(str(ssl) if ssl else None)
    if (cert is None) != (key is None):
        raise InspectorError("--cert and --key go together.", "Give both, or neither: then no certificate is shown.")
    return livecheck.probe(
        host, port, ca=_if_there(conf.ca), crl=_if_there(conf.crl), certificate=cert, key=key, now=time.time()
    )


def _if_there(path: Path) -> Path | None:
    return path if path.is_file() else None


def lines(ailing: Sequence[Ailment], runs: int) -> Iterator[str]:
    """A capture's verdicts on one screen."""
    for each in ailing[:SCREEN]:
        told = wording.verdict(each.run)
        if told is None:
            continue
        again = f" ({each.times} runs)" if each.times > 1 else ""
        yield f"run {each.run.number}{again}: {told[0]}"
        yield f"  do: {told[1]}"
    if len(ailing) > SCREEN:
        yield f"... and {len(ailing) - SCREEN} more: `puppet-inspector runs` and `check` have them all"
    if not ailing:
        yield f"nothing ails {runs} run{'' if runs == 1 else 's'}" if runs else "there are no runs in it"


def diagnosed(found: Sequence[Diagnosis]) -> Iterator[str]:
    """Diagnoses in words."""
    for each in found:
        yield f"{each.severity.upper()} {each.what}: {each.detail}"
        if each.remedy:
            yield f"  do: {each.remedy}"
    if not found:
        yield "nothing is wrong there"


def plain(found: Sequence[Diagnosis]) -> list[dict[str, Any]]:
    """Diagnoses for ``--json``."""
    return [
        {"severity": str(each.severity), "what": each.what, "detail": each.detail, "remedy": each.remedy or None,
         "rule": each.rule}
        for each in found
    ]  # fmt: skip
