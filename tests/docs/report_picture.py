"""The pictures of reports in docs/: ``python -m tests.docs.report_picture``; look at them afterwards.

Browsers and fonts differ, so a test does not draw them again: each file contains the digest of what it shows.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.fleet.overview import overview_of
from inspector.report import fleet
from tests.docs import made_fleet
from tests.support.pages import browser, html_of, opened, sample
from tests.support.places import DOCS

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = {"width": 1160, "height": 900}
_HEAD = 33
"""Bytes of a PNG up to the end of its first chunk."""
_SHOWN = b"tEXtshown\0"


def _of_a_node() -> str:
    """The report of a node whose certificate is for another key."""
    return html_of(sample("mismatched-key"))


def _of_a_fleet() -> str:
    with tempfile.TemporaryDirectory() as folder:
        return fleet.html(overview_of(made_fleet.made(Path(folder))), "tables")


PAGES: dict[str, Callable[[], str]] = {"report.png": _of_a_node, "fleet.png": _of_a_fleet}


def shown(html: str) -> bytes:
    """The digest of the first screen of a page: of its style, and of what stands before its second section."""
    found = re.search(r"(<style>.*</style>).*(<body>.*?)<section id=\"(?:runs|findings)\"", html, re.DOTALL)
    assert found
    return hashlib.sha256("".join(found.groups()).encode()).hexdigest().encode()


def drawn_of(picture: bytes) -> bytes:
    """The digest of what a picture shows."""
    return picture.partition(_SHOWN)[2][:64]


def draw(name: str) -> None:
    """Draw a page's first screen, unless it is what the picture shows."""
    place, html = DOCS / name, PAGES[name]()
    if place.exists() and drawn_of(place.read_bytes()) == shown(html):
        return
    with tempfile.TemporaryDirectory() as folder, browser() as it:
        path = Path(folder) / "page.html"
        path.write_text(html, encoding="utf-8")
        with opened(it, path, viewport=SIZE) as (tab, _):
            picture = tab.screenshot()
    chunk = _SHOWN + shown(html)
    text = (len(chunk) - 4).to_bytes(4) + chunk + zlib.crc32(chunk).to_bytes(4)
    place.write_bytes(picture[:_HEAD] + text + picture[_HEAD:])


if __name__ == "__main__":
    for each in PAGES:
        draw(each)
