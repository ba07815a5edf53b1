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


@pytest.mark.parametrize("source", CITED)
def test_every_cited_section_has_a_text_without_marks(source: str) -> None:
    anchor = protocol_page.cited_anchor(source)
    assert anchor
    section = protocol_page.section((places.DOCS / "protocol.md").read_text(encoding="utf-8"), anchor)
    assert section.anchor == anchor
    assert section.title
    assert section.text
    assert re.findall(r"^#|</?a|\*\*|\]\(", section.text, re.MULTILINE) == []


@pytest.mark.parametrize(
    ("anchor", "title", "text"),
    [
        ("things", "Things", ("First, see the other (#other-things).\n\nA *thing*\n\nText.\n\n"
                             "- one: the `first`\n  thing\n- two: bold\n\nAfter.")),
        ("a-thing", "A *thing*", "Text.\n\n- one: the `first`\n  thing\n- two: bold\n\nAfter."),
        ("thing-one", "one", "the `first`\nthing"),
        ("thing-two", "two", "bold"),
        ("Other-Things", "Other things", "Last."),
    ],
)  # fmt: skip
def test_a_section_ends_before_the_next_of_its_level(anchor: str, title: str, text: str) -> None:
    assert protocol_page.section(PAGE, anchor) == (anchor.lower(), title, text)


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


@pytest.mark.parametrize(
    ("what", "anchor"),
    [
        ("docs/protocol.md#crls", "crls"),
        ("protocol.md#ssl-state-machine", "ssl-state-machine"),
        (" #crls ", "crls"),
        ("docs/protocol.md", "contents"),
        ("docs/protocol.md#", None),
        ("#", None),
        ("catalog", None),
        ("/puppet/v3/catalog/web1#x", None),
    ],
)
def test_only_the_page_and_its_anchors_are_citations(what: str, anchor: str | None) -> None:
    assert protocol_page.cited_anchor(what) == anchor
