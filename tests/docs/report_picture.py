"""The picture of a report in docs/: ``python -m tests.docs.report_picture``; look at it afterwards.

Browsers and fonts differ, so a test does not draw it again: the file contains the digest of what it shows.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import zlib
from pathlib import Path

from tests.support.pages import browser, html_of, opened, sample
from tests.support.places import DOCS

PLACE = DOCS / "report.png"
SIZE = {"width": 1160, "height": 900}
_HEAD = 33
"""Bytes of a PNG up to the end of its first chunk."""
_SHOWN = b"tEXtshown\0"


def page() -> str:
    """The report of a node whose certificate is for another key."""
    return html_of(sample("mismatched-key"))


def shown(html: str) -> bytes:
    """The digest of the first screen of a page: of its style, and of what stands before its runs."""
    found = re.search(r"(<style>.*</style>).*(<body>.*)<section id=\"runs\"", html, re.DOTALL)
    assert found
    return hashlib.sha256("".join(found.groups()).encode()).hexdigest().encode()


def drawn_of(picture: bytes) -> bytes:
    """The digest of what a picture shows."""
    return picture.partition(_SHOWN)[2][:64]


def draw(place: Path) -> None:
    """Draw the first screen."""
    with tempfile.TemporaryDirectory() as folder, browser() as it:
        path = Path(folder) / "page.html"
        path.write_text(html := page(), encoding="utf-8")
        with opened(it, path, viewport=SIZE) as (tab, _):
            picture = tab.screenshot()
    chunk = _SHOWN + shown(html)
    text = (len(chunk) - 4).to_bytes(4) + chunk + zlib.crc32(chunk).to_bytes(4)
    place.write_bytes(picture[:_HEAD] + text + picture[_HEAD:])


if __name__ == "__main__":
    draw(PLACE)
