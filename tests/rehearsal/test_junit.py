"""The result of a rehearsal as JUnit."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from inspector.rehearsal import junit
from inspector.rehearsal.result import Result, Time
from tests.support.compared import compared, file, run_of


def test_cases() -> None:
    result = Result(each={}, times=[Time("same", 1.0, 2.0)])
    one, other = run_of(file("/a", mode="1")), run_of(file("/a", mode="2\x00"))
    result.add("same", compared(one, one))
    result.add("changed", compared(one, other))
    result.fail("bad\x1b", "no <key>")
    suite = ET.fromstring(junit.document(result))  # noqa: S314 - our own
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    same, changed, failed = suite
    assert (same.get("time"), len(same)) == ("2.000", 0)
    assert "~ File[/a]/mode" in (changed[0].text or "")
    assert (failed.get("name"), failed[0].get("message")) == ("bad\\x1b", "no <key>")
