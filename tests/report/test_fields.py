"""The answer as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import jsonschema
import pytest

from inspector.report.answers import answers_of
from inspector.report.fields import fields
from tests.support.captures import save
from tests.support.json_output import builtins
from tests.support.nodes import not_stored, well
from tests.support.pages import copied
from tests.support.places import DOCS
from tests.support.recorded import SAMPLES

if TYPE_CHECKING:
    from pathlib import Path


def test_what_was_found_outside_runs_is_there_with_its_fix(tmp_path: Path) -> None:
    schema = json.loads((DOCS / "json" / "report.schema.json").read_text())
    path = save(tmp_path / "a.sqlite", *well(1, 0), *not_stored(2))
    with copied(path) as copy:
        found = builtins(fields(answers_of(copy), copy))
    jsonschema.validate(found, schema)
    (outside,) = found["outside"]
    assert (outside["rule"], outside["severity"], outside["times"], len(outside["seqs"])) == ("D03", "error", 2, 1)
    assert outside["steps"]


@pytest.mark.slow
def test_it_keeps_to_its_schema() -> None:
    schema = json.loads((DOCS / "json" / "report.schema.json").read_text())
    for path in SAMPLES:
        with copied(path, shared=path.stem == "revoked") as copy:
            found = builtins(fields(answers_of(copy), copy))
        jsonschema.validate(found, schema)
        assert [run["run"] for run in found["runs"]] == list(range(1, len(found["runs"]) + 1)), path
        assert found["nodes"]["failing"] == len(found["answers"]) or found["nodes"]["warnings"], path
