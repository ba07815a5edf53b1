"""The picture of a report in docs/report.md: ``python -m tests.docs.report_picture``; look at it afterwards."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.support.pages import browser, html_of, opened, sample
from tests.support.places import DOCS

PLACE = DOCS / "report.png"
SIZE = {"width": 1160, "height": 900}


def draw(place: Path) -> None:
    """Draw the first screen of the report of a node whose certificate is for another key."""
    with tempfile.TemporaryDirectory() as folder, browser() as it:
        path = Path(folder) / "page.html"
        path.write_text(html_of(sample("mismatched-key")), encoding="utf-8")
        with opened(it, path, viewport=SIZE) as (page, _):
            page.screenshot(path=place)


if __name__ == "__main__":
    draw(PLACE)
