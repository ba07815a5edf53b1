"""An earlier result to compare with: findings that it contains are not new."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from inspector import inputs, regex
from inspector.errors import InspectorError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from inspector.model import Finding
    from inspector.summaries.summary import RunBrief

type Found = tuple[Path, RunBrief, Finding]
"""A finding, its run, and the capture of the run."""


def read(path: Path) -> set[tuple[str, ...]]:
    """Return the marks of the findings in an earlier ``check --json``. Raises InspectorError."""
    hint = "Make it with `puppet-inspector check CAPTURE --json > baseline.json`."
    try:
        known = json.loads(inputs.read(path))["findings"]
        return {mark(finding["certname"], finding["rule"], finding["message"]) for finding in known}
    except OSError as error:
        raise InspectorError(f"Cannot read the baseline {path}: {error.strerror}.", hint) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InspectorError(f"The baseline {path} is not output of `check --json`.", hint) from error


def new(found: Iterable[Found], known: set[tuple[str, ...]]) -> list[Found]:
    """Return the findings that are not in a baseline: another agent, another rule, or another message."""
    return [item for item in found if mark(item[1].certname, item[2].rule, item[2].message) not in known]


def mark(certname: str | None, rule: str, message: str) -> tuple[str, ...]:
    """Return what two findings have in common if they are the same one on different days."""
    # Numbers, times and digests differ from day to day.
    return certname or "", rule, regex.sub(r"[0-9a-fA-F]*[0-9][0-9a-fA-F:.]*", "#", message)
