"""The details of a resource: values in the colours of their types, diffs as diffs, files in their language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from inspector.explain import resource_outcomes
from inspector.pages import styles
from inspector.protocol import documents as d
from inspector.tui import resource_details
from inspector.tui.part import Details

if TYPE_CHECKING:
    from inspector.explain.resource_outcomes import Applied

DIFF = "\n--- /a\t2026\n+++ /b\t2026\n@@ -1 +1 @@\n-old\n+new\n"


def applied(**fields: object) -> Applied:
    made = d.Resource(type="File", title="/etc/a.conf", **fields)  # type: ignore[arg-type]
    return resource_outcomes.resources(d.Catalog(resources=[made]), d.Report(resource_statuses={}))[0]


def described(item: Applied, *logs: d.LogLine) -> dict[str, Text]:
    details = Details()
    resource_details.describe(item, logs, details)
    labels, values = ([cell for cell in column.cells if isinstance(cell, Text)] for column in details.table.columns)
    return {label.plain.strip(): value for label, value in zip(labels, values, strict=True)}


def coloured(text: Text) -> list[tuple[str, str]]:
    """The pieces of a text with a colour."""
    whole = [(text.plain, str(text.style))] if text.style else []
    return whole + [(text.plain[span.start : span.end], str(span.style)) for span in text.spans if span.style]


def test_values_have_the_colour_of_their_type() -> None:
    found = described(
        applied(
            parameters={"n": 1, "b": True, "u": None, "t": "x", "s": "hidden", "require": "Package[x]", "h": {"a": 1}},
            sensitive_parameters=["s"],
        )
    )
    assert {name: coloured(found[name])[0] for name in ("n", "b", "u", "t", "require")} == {
        "n": ("1", styles.NUMBER), "b": ("true", styles.BOOLEAN), "u": ("null", styles.NULL), "t": ("x", styles.STRING),
        "require": ("Package[x]", styles.REFERENCE),
    }  # fmt: skip
    assert coloured(found["s"])[0][1] == styles.SECRET
    assert "hidden" not in found["s"].plain
    assert coloured(found["h"]) == [('"a"', styles.KEY), ("1", styles.NUMBER)]


def test_the_content_of_a_file_is_in_its_language() -> None:
    found = described(applied(parameters={"content": "# why\na = 1\n", "owner": "# no\ncomment\n"}))
    assert ("# why", styles.COMMENT) in coloured(found["content"])
    assert coloured(found["owner"]) == []


def test_a_diff_in_a_log_line_is_one() -> None:
    item = applied()
    found = described(item, d.LogLine(level="notice", message=DIFF, source=f"{item.source}/content"))["log notice"]
    assert found.plain.splitlines()[0] == "--- /a    2026"
    assert {("-old", styles.REMOVED), ("+new", styles.ADDED)} <= set(coloured(found))


def test_what_is_long_is_cut_and_what_is_hostile_is_harmless() -> None:
    found = described(applied(parameters={"a": "\x1b[2J" + "x" * 10_000}, file="\u202e/m.pp", line=3))
    assert found["a"].plain.endswith("… (10,004 characters)")
    assert len(found["a"].plain) < resource_details.VALUE + 100
    assert not {"\x1b", "\u202e"} & set("".join(text.plain for text in found.values()))
