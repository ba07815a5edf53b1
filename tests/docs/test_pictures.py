"""The pictures in README.md and docs/ show the inspector as it is: drawn again, they come out the same."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from tests.docs import exported, pictures, report_picture
from tests.docs.animation import Frame, animate
from tests.support import places

if TYPE_CHECKING:
    from pathlib import Path

SCREENS = (*(still.name for still in pictures.STILLS), "session")
NAMES = (*SCREENS, *exported.PICTURES)


@pytest.mark.slow
def test_the_pictures_are_what_is_drawn(tmp_path: Path) -> None:
    # In a process of its own, which stops the clock and changes the time zone; once, for it takes a while.
    subprocess.run([sys.executable, "-m", "tests.docs.pictures", str(tmp_path)], cwd=places.ROOT, check=True)
    drawn = {path.stem: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.svg")}
    assert set(drawn) == set(SCREENS)
    differing = [name for name in SCREENS if drawn[name] != (places.DOCS / f"{name}.svg").read_text(encoding="utf-8")]
    assert differing == [], "run `make docs`, and look at the pictures"


@pytest.mark.parametrize("name", exported.PICTURES)
def test_pictures_of_exports_are_what_is_drawn(name: str, tmp_path: Path) -> None:
    pictures.write(tmp_path / "drawn.svg", exported.PICTURES[name]())
    drawn = (tmp_path / "drawn.svg").read_text(encoding="utf-8")
    assert drawn == (places.DOCS / f"{name}.svg").read_text(encoding="utf-8"), "run `make docs`, and look at it"


@pytest.mark.parametrize("name", report_picture.PAGES)
def test_the_picture_of_a_report_shows_todays(name: str) -> None:
    picture = (places.DOCS / name).read_bytes()
    assert len(picture) < 150_000
    assert report_picture.drawn_of(picture) == report_picture.shown(report_picture.PAGES[name]()), "run `make docs`"


def test_every_picture_is_drawn() -> None:
    assert {path.stem for path in places.DOCS.glob("*.svg")} == set(NAMES)
    assert {path.name for path in places.DOCS.glob("*.png")} == set(report_picture.PAGES)


def test_each_task_in_the_index_has_a_picture() -> None:
    tasks = (places.DOCS / "index.md").read_text(encoding="utf-8").partition("\n## By question\n")[2]
    tasks = tasks.partition("\n## ")[0]
    sections = re.split(r"^### ", tasks, flags=re.MULTILINE)[1:]
    assert [len(re.findall(r"^!\[[^]]+\]\([a-z-]+\.(?:svg|png)\)$", each, re.MULTILINE)) for each in sections] == [
        1
    ] * 5


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_fetches_nothing_and_runs_nothing(name: str) -> None:
    written = (places.DOCS / f"{name}.svg").read_text(encoding="utf-8")
    assert "://" not in written.replace("http://www.w3.org/2000/svg", "").replace("https://proxy.example", "")
    assert not re.search(r"<script|<foreignObject|<image|@import|url\((?!#)|\son\w+=", written)


# -- the animation ----------------------------------------------------------------------------------------


def picture(*lines: str) -> str:
    """A picture of a terminal as Rich exports it."""
    texts = "".join(
        f'<text class="t-r1" x="0" y="{20 + 24.4 * at}" textLength="{12.2 * len(line)}">{line}</text>'
        for at, line in enumerate(lines)
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg"><style>.t-r1 { fill: #fff }</style>'
        f'<g clip-path="url(#t-clip-terminal)"><g>{texts}</g></g></svg>'
    )


def test_what_stays_is_in_the_file_once_and_does_not_move() -> None:
    svg = animate([Frame(picture("title", "one"), 1), Frame(picture("title", "two"), 3)], "t", (10, 2), still=0)
    ElementTree.fromstring(svg)  # noqa: S314 - made here
    assert svg.count(">title<") == 1
    assert '<g transform="translate(0 0.0)"><text class="s0"' in svg
    # "one" is there at the start, for a quarter of the time; without animation it is what is seen.
    assert "@keyframes f0{0%{visibility:visible}25%{visibility:hidden}}" in svg
    assert "@keyframes f1{0%{visibility:hidden}25%{visibility:visible}}" in svg
    assert ".f0{animation:f0 4s step-end infinite}" in svg
    assert ".f1{visibility:hidden;animation:f1 4s step-end infinite}" in svg
