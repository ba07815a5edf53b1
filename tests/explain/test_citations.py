"""Every citation leads somewhere: to a section of docs/protocol.md, to a public file, or to an RFC."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.protocol.endpoints import ENDPOINTS
from inspector.rules import all_rules

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PROTOCOL = ROOT / "docs" / "protocol.md"
PLACES = ("inspector", "addons", "docs", "tests", "README.md", "CHANGELOG.md")
TEXT = frozenset({".py", ".md", ".json", ".service"})

SECTION = re.compile(r"docs/protocol\.md#[\w-]+")
FILE = re.compile(
    r"(?:puppet|puppetserver|openvox|openvox-server|openvox-ca|mitmproxy) "
    r"(?:\d+(?:\.\d+)+|\d+(?:\.\d+)*\.x|[0-9a-f]{9}) "  # a version, a branch or a commit
    r"[\w.-]+(?:/[\w.-]+)+"
)
RFC = re.compile(r"RFC \d{3,5} section \d+(?:\.\d+)*")
CITED = re.compile(r"\bprotocol\.md#([\w-]+)(?![\w{-])")
"""A section, as code and pages cite it; not a pattern whose end is put in later."""
OLD = re.compile(
    r"protocol,? (?:reference|notes)|protocol (?:part |section )?(?:\d+\.\d|[CLPV]\d)"
    r"|protocol\.md \d|notes L\d|proxy-facts",
    re.IGNORECASE,
)
"""Citations of what no user has."""
UNVERSIONED = re.compile(r"\b(?:puppet|puppetserver|openvox|openvox-server) (?:api|conf|ezbake|lib|src)/")

SOURCES = {
    **{f"rule {rule.id}": rule.source for rule in all_rules()},
    **{f"endpoint {endpoint.name}": endpoint.source for endpoint in ENDPOINTS},
}


def texts() -> Iterator[tuple[str, str]]:
    """Each text file of the project with its path, but for this one."""
    for place in PLACES:
        found = ROOT / place
        for path in sorted(found.rglob("*")) if found.is_dir() else [found]:
            if path.is_file() and path.suffix in TEXT and path != Path(__file__).resolve():
                yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def slug(heading: str) -> str:
    """A heading's anchor, as Git hosts make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def sections(level: int) -> list[tuple[str, str]]:
    """The headings of a level in docs/protocol.md, each with what follows up to the next one of it or above."""
    parts = re.split(rf"^#{{1,{level}}} ", PROTOCOL.read_text(encoding="utf-8"), flags=re.MULTILINE)
    marks = re.findall(rf"^#{{1,{level}}} ", PROTOCOL.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = [part.split("\n", 1) for mark, part in zip(marks, parts[1:], strict=True) if len(mark) == level + 1]
    return [(heading, body) for heading, body in found]


def own_anchors(body: str) -> list[str]:
    """The explicit anchors within a section."""
    return re.findall(r'<a id="([^"]+)"></a>', body)


def anchors() -> list[str]:
    text = PROTOCOL.read_text(encoding="utf-8")
    return [*map(slug, re.findall(r"^#{1,6} (.+)$", text, re.MULTILINE)), *own_anchors(text)]


def cited() -> set[str]:
    """The anchors that something besides docs/protocol.md itself and the tests cites."""
    return {
        anchor
        for path, text in texts()
        if path != "docs/protocol.md" and not path.startswith("tests/")
        for anchor in CITED.findall(text)
    } | {part.partition("#")[2] for source in SOURCES.values() for part in source.split("; ")}


def test_a_source_can_be_followed() -> None:
    known = set(anchors())
    for owner, source in SOURCES.items():
        parts = source.split("; ")
        assert all(any(pattern.fullmatch(part) for pattern in (SECTION, FILE, RFC)) for part in parts), owner
        sections_named = {part.partition("#")[2] for part in parts if SECTION.fullmatch(part)}
        assert sections_named, owner
        assert sections_named <= known, owner


def test_anchors_are_unique() -> None:
    found = anchors()
    assert sorted(found) == sorted(set(found))


def test_every_cited_section_exists() -> None:
    known = set(anchors())
    lost = [f"{path}: {anchor}" for path, text in texts() for anchor in CITED.findall(text) if anchor not in known]
    within = re.findall(r"\]\(#([^)]+)\)", PROTOCOL.read_text(encoding="utf-8"))
    assert lost == []
    assert set(within) <= known


def test_every_section_is_cited() -> None:
    used = cited()
    idle = [
        heading
        for heading, body in sections(3)
        if slug(heading) not in used and not any(anchor in used for anchor in own_anchors(body))
    ]
    idle += [
        f"{heading}: {anchor}" for heading, body in sections(3) for anchor in own_anchors(body) if anchor not in used
    ]
    # What stands directly below a heading of the second level needs a citation of its own.
    idle += [
        heading
        for heading, body in sections(2)
        if heading != "Contents" and body.partition("\n### ")[0].strip() and slug(heading) not in used
    ]
    assert idle == []


def test_the_contents_list_every_part() -> None:
    (contents,) = (body for heading, body in sections(2) if heading == "Contents")
    parts = [heading for heading, _ in sections(2) if heading != "Contents"]
    assert re.findall(r"^- \[(.+)\]\(#(.+?)\)", contents, re.MULTILINE) == [(part, slug(part)) for part in parts]


def test_a_section_names_its_sources() -> None:
    for heading, body in sections(3):
        _, _, sources = body.partition("\nSources: ")
        if not sources:
            assert "observed" in body, heading
            continue
        named = " ".join(sources.split("\n## ")[0].split())
        parts = re.findall(r"`([^`]+)`", named)
        assert parts, heading
        assert named == ", ".join(f"`{part}`" for part in parts) + "."
        assert all(FILE.fullmatch(part) or RFC.fullmatch(part) for part in parts), heading


def test_nothing_cites_what_no_user_has() -> None:
    lost = [
        f"{path}: {found[0]}"
        for path, text in texts()
        for pattern in (OLD, UNVERSIONED)
        for found in pattern.finditer(text)
    ]
    assert lost == []
