"""README.md is short, every relative link leads somewhere, and every page is found from docs/index.md."""

from __future__ import annotations

import pytest

from tests.docs import markdown
from tests.docs.markdown import README
from tests.support.places import DOCS, ROOT

PAGES = {page.relative_to(ROOT).as_posix(): page for page in markdown.pages()}


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 100


@pytest.mark.parametrize("name", PAGES)
def test_relative_links_resolve(name: str) -> None:
    broken = []
    for link in markdown.links(PAGES[name]):
        if link.is_relative and not link.file.exists():
            broken.append(f"{link.target}: no such file")
        elif link.is_relative and link.anchor:
            is_page = link.file.suffix == ".md"
            if not is_page or link.anchor not in markdown.anchors(link.file.read_text(encoding="utf-8")):
                broken.append(f"{link.target}: no such heading")
    assert broken == []


def test_every_page_is_found_from_the_index() -> None:
    found, new = set(), {DOCS / "index.md"}
    while new:
        found |= new
        linked = {link.file for page in new for link in markdown.links(page) if link.is_relative}
        new = {page for page in linked if page.suffix == ".md" and page.is_relative_to(DOCS) and page.exists()} - found
    assert set(DOCS.glob("*.md")) - found == set()


def test_the_readme_leads_to_the_index() -> None:
    assert DOCS / "index.md" in {link.file for link in markdown.links(README)}


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("Rotation, retention and the disk", "rotation-retention-and-the-disk"),
        ("Does this agent verify its master?", "does-this-agent-verify-its-master"),
        ("0041 `puppet_only` waits for a name", "0041-puppet_only-waits-for-a-name"),
        ("A [link](there.md) in it", "a-link-in-it"),
    ],
)
def test_an_anchor_is_githubs(heading: str, anchor: str) -> None:
    assert markdown.anchor(heading) == anchor


def test_code_holds_no_links_and_no_headings() -> None:
    text = '# One\n\n```sh\n# not one\n[a](b.md)\n```\n\n`[c](d.md)` [e](f.md)\n\n# One\n\n<a id="two"></a>Two\n'
    assert markdown.anchors(text) == {"one", "one-1", "two"}
    assert "b.md" not in markdown.prose(text)
    assert "d.md" not in markdown.prose(text)
    assert "f.md" in markdown.prose(text)
