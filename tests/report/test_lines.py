"""The lines of a comparison as a page."""

from __future__ import annotations

from inspector.compare.diff_lines import Line
from inspector.report.lines import groups, html
from tests.support.hostile import HOSTILE, harmless
from tests.support.pages import ATTACK

LINES = [
    Line("plain", "before all"), Line("head", "catalog: 2"), Line("changed", "  ~ a: 1 -> 2"), Line("plain", ""),
    Line("hunk", "@@"), Line("old", "-x"), Line("new", "+y"), Line("note", "so it is"), Line("head", "facts"),
]  # fmt: skip


def test_lines_are_in_groups_below_their_headings() -> None:
    found = groups(LINES)
    assert [group.title for group in found] == ["", "catalog: 2", "facts"]
    assert [(text, [line.text for line in block]) for text, block in found[1].blocks] == [
        (False, ["  ~ a: 1 -> 2"]), (True, ["@@", "-x", "+y"]), (False, ["so it is"]),
    ]  # fmt: skip


def test_text_is_never_markup_nor_control() -> None:
    made = html([Line("head", ATTACK), Line("old", ATTACK), Line("plain", HOSTILE)], ATTACK, ATTACK)
    body = made.partition("<body>")[2]
    assert "<script" not in body
    assert "<img" not in made
    assert "<svg/" not in body
    assert harmless(body.replace("\n", ""))
    assert '<li class="plain">' in body


def test_differences_have_a_class_of_their_own() -> None:
    made = html(LINES, "A", "withheld: 3 values")
    assert '<li class="changed">  ~ a: 1 -&gt; 2</li>' in made
    assert '<span class="new">+y</span>' in made
    assert "Withheld: 3 values." in made
