"""The result of a rehearsal as JUnit XML, for build servers: one case for each node."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

from inspector.compare import diff_lines
from inspector.formats.junit import printable, serialized
from inspector.text import clean, plural

if TYPE_CHECKING:
    from inspector.rehearsal.result import Result


def document(result: Result) -> str:
    """A node with differences is a failure, one that cannot be compared an error."""
    suite = ET.Element("testsuite", name="puppet-inspector rehearse")
    times = {time.node: time.after for time in result.times}
    failures = errors = 0
    each = result.each or {}
    logs: dict[str, list[str]] = {}
    for logged in result.logs:
        place = f"  ({logged.place})" if logged.place else ""
        for node in logged.nodes:
            logs.setdefault(node, []).append(clean(f"{logged.level} {logged.message}{place}"))
    for name, found in each.items():
        case = ET.SubElement(suite, "testcase", classname="catalog", name=printable(clean(name)),
                             time=f"{times.get(name, 0.0):.3f}")  # fmt: skip
        if isinstance(found, str):
            errors += 1
            ET.SubElement(case, "error", type="not compared", message=printable(clean(found)))
        elif found.differences:
            failures += 1
            message = plural(len(found.differences), "difference")
            failure = ET.SubElement(case, "failure", type="changed", message=message)
            failure.text = printable(
                "\n".join(line.text for line in diff_lines.differences(found.differences, full=True))
            )
        if name in logs:
            ET.SubElement(case, "system-out").text = printable("\n".join(logs[name]))
    for name, count in (("tests", len(each)), ("failures", failures), ("errors", errors)):
        suite.set(name, str(count))
    return serialized(suite)
