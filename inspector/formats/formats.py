"""The findings of captures for machines: SARIF for code scanning, JUnit for build servers, and baselines."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

from inspector import __version__
from inspector.errors import InspectorError
from inspector.rules import rule_of
from inspector.summaries import wording

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from inspector.model import Finding, Severity
    from inspector.runs.run import Run

type Found = tuple[Path, Run, Finding]
"""A finding, the run it is in, and the capture of that."""

_LEVELS = {"error": "error", "warning": "warning", "notice": "note"}
_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def sarif(found: Sequence[Found]) -> dict[str, Any]:
    """SARIF 2.1.0: a result a finding, the capture as its place, the agent as its logical location."""
    ids = list(dict.fromkeys(finding.rule for _, _, finding in found))
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "puppet-inspector",
                        "semanticVersion": __version__,
                        "rules": [_described(ident) for ident in ids],
                    }
                },
                "results": [_result(*each, ids) for each in found],
            }
        ],
    }


def _described(ident: str) -> dict[str, Any]:
    rule = rule_of(ident)
    return {
        "id": ident,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.explanation},
        "help": {"text": f"{rule.remedy_for(None)} Source: {rule.source}"},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _result(capture: Path, run: Run, finding: Finding, ids: list[str]) -> dict[str, Any]:
    name = wording.clean(run.certname or run.address or "an unnamed agent")
    remedy = wording.clean(rule_of(finding.rule).remedy_for(run))
    proof = ", ".join(map(str, finding.seqs))
    return {
        "ruleId": finding.rule,
        "ruleIndex": ids.index(finding.rule),
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{name}: {wording.clean(finding.message)} (run {run.number}, proof {proof}). {remedy}"},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": capture.as_posix()}},
                "logicalLocations": [{"name": name, "kind": "agent"}],
            }
        ],
        "partialFingerprints": {
            "finding/v1": wording.clean("/".join(_mark(run.certname, finding.rule, finding.message)))
        },
    }


def junit(found: Sequence[Found], runs: Iterable[tuple[Path, Run]], limit: Severity | None) -> str:
    """JUnit XML: a test case a run; its findings from ``limit`` on are its failures (None: nothing fails)."""
    suite = ET.Element("testsuite", name="puppet-inspector")
    cases, failures = 0, 0
    for capture, run in runs:
        cases += 1
        name = wording.clean(run.certname or run.address or "an unnamed agent")
        case = ET.SubElement(suite, "testcase", classname=_xml(name), name=f"{capture.name} run {run.number}",
                             time=f"{run.duration:.3f}")  # fmt: skip
        mine = [finding for _, other, finding in found if other is run]
        bad = [each for each in mine if limit is not None and each.severity.rank >= limit.rank]
        failures += bool(bad)
        if bad:  # build servers show one failure a case
            worst = max(bad, key=lambda each: each.severity.rank)
            message = _xml(f"{worst.rule} {wording.clean(worst.message)}")
            failure = ET.SubElement(case, "failure", type=worst.rule, message=message)
            failure.text = _xml("\n".join(_told(each, run) for each in bad))
        if rest := [each for each in mine if each not in bad]:
            ET.SubElement(case, "system-out").text = _xml("\n".join(_told(each, run) for each in rest))
    suite.set("tests", str(cases))
    suite.set("failures", str(failures))
    ET.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suite, encoding="unicode")


def _told(finding: Finding, run: Run) -> str:
    return "\n".join(wording.finding(finding, rule_of(finding.rule), run)).rstrip()


def _xml(text: str) -> str:
    return _XML.sub("?", text)


def baseline(path: Path) -> set[tuple[str, ...]]:
    """The marks of the findings in an earlier ``check --json``. Raises InspectorError."""
    hint = "Make it with `puppet-inspector check CAPTURE --json > baseline.json`."
    try:
        known = json.loads(path.read_bytes())["findings"]
        return {_mark(each["certname"], each["rule"], each["message"]) for each in known}
    except OSError as error:
        raise InspectorError(f"The baseline {path} can't be read: {error.strerror}.", hint) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InspectorError(f"The baseline {path} is no output of `check --json`.", hint) from error


def new(found: Iterable[Found], known: set[tuple[str, ...]]) -> list[Found]:
    """The findings that a baseline does not have: another agent, another rule, or other words."""
    return [each for each in found if _mark(each[1].certname, each[2].rule, each[2].message) not in known]


def _mark(certname: str | None, rule: str, message: str) -> tuple[str, ...]:
    # Numbers, times and digests differ from day to day.
    return certname or "", rule, re.sub(r"[0-9a-fA-F]*[0-9][0-9a-fA-F:.]*", "#", message)
