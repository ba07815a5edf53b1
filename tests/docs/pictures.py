"""The pictures in README.md and docs/, drawn from the terminal inspector itself: ``python -m tests.docs.pictures DIR``.

They show the sample captures, which are recorded runs of a real agent and master. The clock of what is judged stands
still and the time zone is UTC, so the same program draws the same pictures: a test draws them again and compares.
Look at them before they are committed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console
from rich.text import Text

from tests.docs import made_failure, made_site
from tests.docs.animation import Frame, animate
from tests.support.captures import save
from tests.support.places import DOCS, SAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual.pilot import Pilot

COMMAND = Path(sys.executable).with_name("puppet-inspector")
NOW = 1_795_305_600.0
"""The moment as of which the pictures judge what breaks when."""


ALL = "samples"
"""Instead of a sample: all of them as one capture."""
MADE = {"site": made_site.records, "failure": made_failure.records}
"""Instead of a sample: what is made, as no sample has it; a run of a large site, and one with a failed resource."""


class Still(NamedTuple):
    name: str
    sample: str
    keys: tuple[str, ...]
    theme: str = "dark"
    size: tuple[int, int] = (140, 40)


STILLS = (
    Still("inspector", "compile-error", ("enter",), size=(150, 40)),
    Still("inspector-causes", ALL, (), size=(132, 34)),
    Still("inspector-sequence", "mismatched-key", ("r", "enter", "w"), "light", size=(150, 40)),
    Still("inspector-catalog", "failure", ("r", "enter", "C", "w"), size=(120, 32)),
    Still("inspector-bootstrap", "mismatched-key", ("B",), size=(160, 40)),
    Still("inspector-narrow", "mismatched-key", (), size=(80, 24)),
    Still("inspector-runs", ALL, ("r", "up", "up"), size=(120, 30)),
    Still("inspector-exchange", "compile-error", ("enter", "enter"), size=(120, 18)),
    Still("inspector-findings", ALL, ("F", "right", "down"), size=(150, 40)),
    Still("inspector-files", "first-run", ("r", "enter", "L"), size=(120, 36)),
    Still("inspector-relations", "failure", ("r", "enter", "C", "r"), size=(100, 24)),
    Still("inspector-rehearsal", "upgrade/rehearsed", ("down",), size=(120, 36)),
    Still("inspector-site", "site", ("r", "enter", "C", "w", "down", "right", "down", "down"), size=(120, 40)),
    Still("inspector-connections", "revoked", ("r", "enter", "O"), "contrast", size=(120, 30)),
)

SIZE = (112, 32)
"""Columns and lines of the animated session."""

AGENT = """\
# puppet agent -t --server proxy.example --serverport 8140
Info: Creating a new RSA SSL key for node1.example
Info: Creating a new SSL certificate request for node1.example
Info: Downloaded certificate for node1.example from https://proxy.example:8140/puppet-ca/v1
Error: The certificate for 'CN=node1.example' does not match its private key

# puppet-inspector"""
"""What puppet-agent 7.23.0 prints in the run that the sample `mismatched-key` holds; left out are a fingerprint, the
path of csr_attributes.yaml, and the error a second time."""

SESSION: tuple[tuple[tuple[str, ...], float], ...] = (
    # All samples as one capture; the error above is of the second cause.
    (("down",), 4.0),
    (("enter",), 4.0),
    (("B",), 5.0),
    # A whole run, from its first exchange on.
    (("escape", "escape", "r", "home"), 1.5),
    (("enter", "t", *"0", "enter"), 1.0),
    *(((".", "."), 0.5),) * 13,
    ((), 2.0),
)
"""Keys that are pressed in the inspector, and for how many seconds what they lead to is shown."""
POSTER = 2
"""The frame that is shown where nothing moves."""

PAUSE, STEADY = 0.1, 2
"""A screen counts as drawn when so many more looks at it, so many seconds apart, show the same."""


def main(folder: Path) -> None:
    """Draw all pictures into a folder."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    folder, place = folder.resolve(), Path()
    # A command on a screen names the capture: not by the directory that is made here.
    with tempfile.TemporaryDirectory() as directory, contextlib.chdir(directory):
        # What the inspector keeps for its user stays out of the home of whoever runs this.
        for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME"):
            os.environ[name] = f"{directory}/{name}"
        time.time = lambda: NOW
        for still in STILLS:
            capture = indexed(_capture(still.sample, place))
            (svg,) = shots(capture, [still.keys], still.size, still.theme, f"puppet-inspector open {capture.name}")
            write(folder / f"{still.name}.svg", svg)
        write(folder / "session.svg", _session(place))


def _capture(sample: str, place: Path) -> Path:
    """Return what a still shows."""
    if sample in MADE:
        return save(place / f"{sample}.sqlite", *MADE[sample]())
    return _all(place) if sample == ALL else _copied(SAMPLES / f"{sample}.sqlite", place)


def _copied(sample: Path, place: Path) -> Path:
    """Return a copy of a sample; what lies beside one in a directory of its own is there, too."""
    for other in sample.parent.glob("*.sqlite") if sample.parent != SAMPLES else ():
        shutil.copy(other, place)
    return Path(shutil.copy(sample, place))


def _session(place: Path) -> str:
    """Return the animated session: the agent's error, then the inspector."""
    drawn = shots(indexed(_all(place)), [keys for keys, _ in SESSION], SIZE, "dark", "")
    frames = [Frame(_shell(), 4.5), *(Frame(svg, length) for svg, (_, length) in zip(drawn, SESSION, strict=True))]
    return animate(frames, "puppet-inspector", SIZE, POSTER)


def _copy(sample: str, place: Path) -> Path:
    return Path(shutil.copy(SAMPLES / f"{sample}.sqlite", place))


def _all(place: Path) -> Path:
    """Return all samples as one capture."""
    capture = place / f"{ALL}.sqlite"
    if not capture.exists():
        samples = sorted(map(str, SAMPLES.glob("*.sqlite")))
        subprocess.run(
            [COMMAND, "captures", "merge", *samples, "-o", str(capture)], check=True, stdout=subprocess.DEVNULL
        )
    return capture


def _shell() -> str:
    console = Console(record=True, width=SIZE[0], file=StringIO(), color_system="truecolor", force_terminal=True)
    for line in AGENT.split("\n"):
        style = "bold #ff5370" if line.startswith("Error") else "bold" if line.startswith("#") else "#82aaff"
        console.print(Text(line, style=style))
    return console.export_svg()


def indexed(capture: Path) -> Path:
    """Make the index beside a capture; the picture would show otherwise that it is being made."""
    from inspector.summaries import index, indexer

    indexer.build(capture, index.place(capture))
    return capture


def shots(capture: Path, presses: Iterable[Iterable[str]], size: tuple[int, int], theme: str, title: str) -> list[str]:
    """Open a capture in the terminal inspector; return a picture after each lot of keys."""
    from inspector.tui.app import Inspector

    app, drawn = Inspector(capture), []

    async def settled(pilot: Pilot[None]) -> str:
        """Return the screen once it has been the same for a while, however slow this machine is."""
        shot, same = "", 0
        while same < STEADY:
            await app.workers.wait_for_complete()
            await pilot.pause(PAUSE)
            before, shot = shot, app.export_screenshot(title=title)
            same = same + 1 if shot == before else 0
        return shot

    async def play() -> None:
        async with app.run_test(size=size) as pilot:
            app.theme = theme
            await settled(pilot)
            for keys in presses:
                for key in keys:
                    await pilot.press(key)
                    await app.workers.wait_for_complete()
                drawn.append(await settled(pilot))

    asyncio.run(play())
    return drawn


def write(path: Path, svg: str) -> None:
    """Write a picture that fetches nothing: without fonts from elsewhere."""
    path.write_text(re.sub(r"@font-face \{.*?\}\s*|<!--.*?-->", "", svg, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else DOCS)
