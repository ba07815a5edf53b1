"""The pictures in README and docs are the inspector as it is: drawn anew from the samples, they must come out the same.

`pytest tests/tui/test_pictures.py --update-golden` draws them; look at them before they are committed.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.support import places
from tests.tui.screens import play, sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from textual.pilot import Pilot

    from inspector.tui.app import Inspector

DOCS = places.DOCS


class Picture(NamedTuple):
    name: str
    sample: str
    keys: tuple[str, ...]
    theme: str = "textual-dark"
    size: tuple[int, int] = (140, 40)


PICTURES = [
    Picture("inspector", "compile-error", ("enter",)),
    Picture("inspector-sequence", "first-run", ("enter", "w"), "textual-light"),
    Picture("inspector-bootstrap", "mismatched-key", ("B",)),
    Picture("inspector-narrow", "revoked", (), size=(80, 24)),
]


@pytest.fixture
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("_utc")
@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_picture_is_what_is_drawn(
    picture: Picture, tmp_path: Path, golden: Callable[[Path, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []
    # What breaks when is judged as of now: a picture has to stay the same.
    monkeypatch.setattr(time, "time", lambda: 1_795_305_600.0)

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        app.theme = picture.theme
        for key in picture.keys:
            await pilot.press(key)
            await app.workers.wait_for_complete()
            await pilot.pause(0.2)
        await app.workers.wait_for_complete()
        await pilot.pause(0.2)
        drawn.append(app.export_screenshot(title=f"puppet-inspector open {picture.sample}.sqlite"))

    play(sample(picture.sample, tmp_path), act, picture.size)
    # No fonts from elsewhere: a picture must not fetch anything.
    svg = re.sub(r"@font-face \{.*?\}\s*|<!--.*?-->", "", drawn[0], flags=re.DOTALL)
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")
    golden(DOCS / f"{picture.name}.svg", svg)
