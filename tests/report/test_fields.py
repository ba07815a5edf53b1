"""The answer as JSON."""

from __future__ import annotations

import json

import jsonschema
import pytest

from inspector.report.answers import answers_of
from inspector.report.fields import fields
from tests.support.json_output import builtins
from tests.support.pages import copied
from tests.support.places import DOCS
from tests.support.recorded import SAMPLES


@pytest.mark.slow
def test_it_keeps_to_its_schema() -> None:
    schema = json.loads((DOCS / "json" / "report.schema.json").read_text())
    for path in SAMPLES:
        with copied(path, shared=path.stem == "revoked") as copy:
            found = builtins(fields(answers_of(copy), copy))
        jsonschema.validate(found, schema)
        assert [run["run"] for run in found["runs"]] == list(range(1, len(found["runs"]) + 1)), path
        assert found["nodes"]["failing"] == len(found["answers"]) or found["nodes"]["warnings"], path
