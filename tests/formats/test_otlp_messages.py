"""How values, times and errors are written in OTLP's JSON."""

from __future__ import annotations

import json
from typing import Any

from inspector.formats.otlp_messages import ERROR, attributes_of, encoded, span_of


def plain(message: object) -> Any:
    return json.loads(encoded(message))


def test_values_have_their_type_and_those_without_one_are_left_out() -> None:
    found = plain(attributes_of({"a": "text", "b": 2**40, "c": True, "d": ["x", "y"], "e": None, "f": ""}))
    assert found == [
        {"key": "a", "value": {"stringValue": "text"}},
        {"key": "b", "value": {"intValue": str(2**40)}},
        {"key": "c", "value": {"boolValue": True}},
        {"key": "d", "value": {"arrayValue": {"values": [{"stringValue": "x"}, {"stringValue": "y"}]}}},
    ]


def test_texts_are_cleaned() -> None:
    assert "\x1b" not in encoded(attributes_of({"a": "\x1b[2J"}))
    assert "\x1b" not in encoded(span_of("t", "s", "name", 1, 0.0, 1.0, {}, error="\x1b[2J"))


def test_a_span_never_ends_before_it_begins() -> None:
    found = plain(span_of("t", "s", "name", 1, 2.5, 1.0, {}))
    assert (found["startTimeUnixNano"], found["endTimeUnixNano"]) == ("2500000000", "2500000000")
    assert found["status"] == {}


def test_an_error_is_a_status_with_its_description() -> None:
    failed = plain(span_of("t", "s", "name", 1, 0.0, 1.0, {}, error="reset"))
    assert failed["status"] == {"code": ERROR, "message": "reset"}
    within = plain(span_of("t", "s", "name", 1, 0.0, 1.0, {}, "parent", ""))
    assert (within["status"], within["parentSpanId"]) == ({"code": ERROR}, "parent")
