"""A citation of docs/protocol.md leads to a section's text."""

from __future__ import annotations

import re

import pytest

from inspector.errors import InspectorError
from inspector.explain import protocol_page
from inspector.protocol.endpoints import ENDPOINTS
from inspector.rules import all_rules
from tests.support import places

CITED = sorted(
    {
        part
        for source in (*(rule.source for rule in all_rules()), *(endpoint.source for endpoint in ENDPOINTS))
        for part in source.split("; ")
        if part.startswith("docs/protocol.md")
    }
)
PAGE = """# Title

## Things

First, see [the other](#other-things).

### A *thing*

Text.

- <a id="thing-one"></a>**one**: the `first`
  thing
- <a id="thing-two"></a>**two**: **bold**

After.

## Other things

Last.
"""


def test_every_cited_section_has_a_text_without_marks() -> None:
    page = (places.DOCS / "protocol.md").read_text(encoding="utf-8")
    for source in CITED:
        anchor = protocol_page.cited_anchor(source)
        assert anchor, source
        section = protocol_page.section(page, anchor)
        assert section.anchor == anchor
        assert section.title
        assert section.text, source
        assert not re.search(r"^#|</?a|\*\*|\]\(", section.text, re.MULTILINE), source


def test_a_section_ends_before_the_next_of_its_level() -> None:
    rows: list[tuple[str, str, str]] = [
        ("things", "Things", ("First, see the other (#other-things).\n\nA *thing*\n\nText.\n\n"
                             "- one: the `first`\n  thing\n- two: bold\n\nAfter.")),
        ("a-thing", "A *thing*", "Text.\n\n- one: the `first`\n  thing\n- two: bold\n\nAfter."),
        ("thing-one", "one", "the `first`\nthing"),
        ("thing-two", "two", "bold"),
        ("Other-Things", "Other things", "Last."),
    ]  # fmt: skip
    for anchor, title, text in rows:
        assert protocol_page.section(PAGE, anchor) == (anchor.lower(), title, text), anchor


@pytest.mark.parametrize(
    ("anchor", "hint"),
    [
        ("thing-tow", "Did you mean '#thing-two' or '#thing-one' or '#things'?"),
        ("zzzz", "`explain '#contents'` lists them."),
        ("", "`explain '#contents'` lists them."),
    ],
)
def test_an_unknown_anchor_is_an_error_with_the_nearest(anchor: str, hint: str) -> None:
    with pytest.raises(InspectorError) as error:
        protocol_page.section(PAGE, anchor)
    assert error.value.message == f"docs/protocol.md has no section {anchor!r}."
    assert error.value.hint == hint


def test_only_the_page_and_its_anchors_are_citations() -> None:
    rows: list[tuple[str, str | None]] = [
        ("docs/protocol.md#crls", "crls"),
        ("protocol.md#ssl-state-machine", "ssl-state-machine"),
        (" #crls ", "crls"),
        ("docs/protocol.md", "contents"),
        ("docs/protocol.md#", None),
        ("#", None),
        ("catalog", None),
        ("/puppet/v3/catalog/web1#x", None),
    ]
    for what, anchor in rows:
        assert protocol_page.cited_anchor(what) == anchor, what
