"""README.md and the pages below docs/ as Markdown: their links, and the anchors that GitHub gives their headings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from tests.support.places import DOCS, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

README = ROOT / "README.md"


def pages() -> list[Path]:
    """Return README.md and every page in docs/."""
    return [README, *sorted(DOCS.glob("*.md"))]


_FENCED = re.compile(r"^( *)```\w*\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
_SPAN = re.compile(r"`([^`]+)`")


def prose(text: str) -> str:
    """Return a page without its code, where brackets are no links and hashes no headings."""
    return _SPAN.sub("", _FENCED.sub("", text))


def code(text: str) -> Iterator[str]:
    """Yield the code of a page: the lines of its blocks (one where a line goes on after a backslash), and its spans."""
    for block in _FENCED.findall(text):
        yield from block[1].replace("\\\n", " ").splitlines()
    for line in re.findall(r"^ {4,}(\S(?:.*\\\n)*.*)$", _FENCED.sub("", text), re.MULTILINE):
        yield line.replace("\\\n", " ")
    for span in _SPAN.findall(_FENCED.sub("", text)):
        yield " ".join(span.split())


def table(text: str, title: str) -> list[list[str]]:
    """Return the cells of the table whose first column has this title; without its head."""
    lines = text.partition(f"\n| {title} |")[2].split("\n")[2:]
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    assert rows, f"no table begins with {title!r}"
    return rows


def section(text: str, heading: str) -> str:
    """Return what stands below a heading, up to the next one of its level or a higher one."""
    level = heading.partition(" ")[0]
    found = re.search(rf"^{re.escape(heading)}\n(.*?)(?=^#{{1,{len(level)}}} |\Z)", text, re.DOTALL | re.MULTILINE)
    assert found, f"there is no {heading!r}"
    return found[1]


def anchor(heading: str) -> str:
    """Return the anchor of a heading: lower case, no punctuation, hyphens for spaces."""
    plain = re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w -]", "", plain.strip().lower()).replace(" ", "-")


def anchors(text: str) -> set[str]:
    """Return the anchors that a page sets, and those of its headings; the second of two equal ones ends with -1."""
    found: dict[str, int] = {}
    names = set(re.findall(r'<a (?:id|name)="([^"]+)">', prose(text)))
    for heading in re.findall(r"^#{1,6} (.+)$", _FENCED.sub("", text), re.MULTILINE):
        name = anchor(heading)
        times = found[name] = found.get(name, -1) + 1
        names.add(f"{name}-{times}" if times else name)
    return names


class Link(NamedTuple):
    page: Path
    target: str
    """As it is written: a path relative to the page, an anchor, both, or an address."""

    @property
    def is_relative(self) -> bool:
        """Whether it leads to something in this repository."""
        return not re.match(r"[a-z]+:", self.target)

    @property
    def file(self) -> Path:
        """The file or folder that it leads to."""
        path = self.target.partition("#")[0]
        return (self.page.parent / path).resolve() if path else self.page

    @property
    def anchor(self) -> str:
        """The heading that it leads to; empty: none."""
        return self.target.partition("#")[2]


def links(page: Path) -> Iterator[Link]:
    """Yield the links and pictures of a page."""
    for target in re.findall(r"\]\(([^()\s]+)\)", prose(page.read_text(encoding="utf-8"))):
        yield Link(page, target)
