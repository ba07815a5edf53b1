"""Findings as SARIF 2.1.0, for code scanning."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from inspector import __version__, regex
from inspector.formats import baseline
from inspector.rules import fixes, rule_of
from inspector.summaries import wording
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from inspector.formats.baseline import Found
    from inspector.model import Finding
    from inspector.summaries.summary import RunBrief

_MEANING = regex.compile(r"([\\\[\]])")
_LEVELS = {"error": "error", "warning": "warning", "notice": "note"}


def document(found: Sequence[Found]) -> dict[str, Any]:
    """One result per finding: the capture is its physical location, the agent its logical location."""
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
                "results": [_result(*item, ids) for item in found],
            }
        ],
    }


def _described(ident: str) -> dict[str, Any]:
    rule = rule_of(ident)
    return {
        "id": ident,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.explanation},
        "help": {"text": f"{fixes.plain(rule.fix_for(None))} Source: {rule.source}"},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _plain(text: str) -> str:
    """A text in which nothing is a link or a placeholder (SARIF 2.1.0, 3.11.5 and 3.11.6)."""
    return _MEANING.sub(r"\\\1", text).replace("{", "{{").replace("}", "}}")


def _result(capture: Path, run: RunBrief, finding: Finding, ids: list[str]) -> dict[str, Any]:
    name = wording.agent(run)
    fix = clean(fixes.plain(run.fix_for(finding.rule)))
    evidence = ", ".join(map(str, finding.seqs))
    return {
        "ruleId": finding.rule,
        "ruleIndex": ids.index(finding.rule),
        "level": _LEVELS[finding.severity],
        "message": {
            "text": _plain(f"{name}: {clean(finding.message)} ({wording.which(run)}, records {evidence}). {fix}")
        },
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": quote(os.fsencode(capture.as_posix()))}},
                "logicalLocations": [{"name": name, "kind": "agent"}],
            }
        ],
        "partialFingerprints": {
            "finding/v1": clean("/".join(baseline.mark(run.certname, finding.rule, finding.message)))
        },
    }
