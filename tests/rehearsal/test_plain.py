"""The result of a rehearsal as JSON, held against its schema."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from inspector.compare.comparison import Choices
from inspector.rehearsal import plain
from inspector.rehearsal.client import Target
from inspector.rehearsal.plan import Plan
from inspector.rehearsal.result import Result, Time
from inspector.text import as_json
from tests.support import json_output


def test_a_result() -> None:
    road: Any = SimpleNamespace(name="v4")
    plan = Plan(Target("n.example", 8140, Path("ca.pem"), 1.0), road, Choices(), "staging")
    result = Result(times=[Time("a", 1.0, 2.0)], waited=0.5)
    result.fail("b", "no key")
    found = json_output.valid("rehearse", as_json(plain.plain_result(plan, result, Path("x.sqlite"))))
    assert (found["status"], found["environment"], found["noise"], found["facts_changed"]) == (2, "staging", None, None)
    assert found["time_ratio"] == {"p50": 2.0, "p90": 2.0, "p99": 2.0}
    assert found["slowest"] == [{"node": "a", "before_s": 1.0, "after_s": 2.0}]
    assert found["not_compared"] == [{"reason": "no key", "nodes": ["b"]}]
