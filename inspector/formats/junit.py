"""Runs and their findings as JUnit XML, for build servers."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

from inspector.clocks import finite
from inspector.summaries import wording
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from inspector.formats.baseline import Found
    from inspector.model import Finding, Severity
    from inspector.summaries.summary import RunBrief

_NOT_XML = dict.fromkeys({*range(0x20), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF} - {9, 10, 13}, "?")
"""The characters that XML cannot contain."""


def document(found: Sequence[Found], runs: Iterable[tuple[Path, RunBrief]], limit: Severity | None) -> str:
    """One test case per run; its findings of severity ``limit`` and worse are its failures (None: nothing fails)."""
    suite = ET.Element("testsuite", name="puppet-inspector")
    cases, failures = 0, 0
    by_run: dict[int, list[Finding]] = {}
    for _, run, finding in found:
        by_run.setdefault(id(run), []).append(finding)
    for capture, run in runs:
        cases += 1
        name = wording.agent(run)
        case = ET.SubElement(
            suite, "testcase", classname=printable(name), name=printable(clean(f"{capture.name} {wording.which(run)}")),
            time=f"{finite(run.duration):.3f}",
        )  # fmt: skip
        run_findings = by_run.get(id(run), [])
        failing = [finding for finding in run_findings if limit is not None and finding.severity.rank >= limit.rank]
        failures += bool(failing)
        if failing:  # build servers show one failure per case
            worst = max(failing, key=lambda finding: finding.severity.rank)
            message = printable(f"{worst.rule} {clean(worst.message)}")
            failure = ET.SubElement(case, "failure", type=worst.rule, message=message)
            failure.text = printable("\n".join(_lines(finding, run) for finding in failing))
        if rest := [finding for finding in run_findings if finding not in failing]:
            ET.SubElement(case, "system-out").text = printable("\n".join(_lines(finding, run) for finding in rest))
    suite.set("tests", str(cases))
    suite.set("failures", str(failures))
    return serialized(suite)


def _lines(finding: Finding, run: RunBrief) -> str:
    return "\n".join(wording.finding(finding, run)).rstrip()


def serialized(suite: ET.Element) -> str:
    """Return a suite as a document."""
    ET.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suite, encoding="unicode")


def printable(text: str) -> str:
    """Return a text without the characters that XML cannot contain."""
    return text.translate(_NOT_XML)
