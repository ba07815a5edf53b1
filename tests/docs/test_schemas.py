"""The schemas in docs/json are those of the types."""

from __future__ import annotations

import jsonschema
import msgspec
import pytest

from tests.docs import schemas
from tests.support.places import SCHEMAS


@pytest.mark.parametrize("name", schemas.DOCUMENTS)
def test_a_schema_is_current(name: str) -> None:
    text = schemas.schema(name)
    assert text == (SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"), "run `make docs`"
    jsonschema.Draft202012Validator.check_schema(msgspec.json.decode(text))
