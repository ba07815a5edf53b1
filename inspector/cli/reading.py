"""Read several captures of which one may be damaged, the whole messages behind findings, and runs to compare."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.capture import merge, paths, places
from inspector.capture.store import Capture
from inspector.cli.progress import shown
from inspector.errors import CaptureError, InspectorError
from inspector.model import REPLAY_OF
from inspector.summaries import newest, whole_messages, wording
from inspector.text import beginning, clean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inspector.compare.documents import RunDocuments
    from inspector.model import Finding, Present
    from inspector.progress import Watch
    from inspector.summaries.pairing import ChosenRun

REASON = 400
"""Characters of a line about a capture that cannot be read: it may quote the capture."""


def show_newest(captures: Sequence[Path]) -> None:
    """Show on the terminal (standard error) what the newest records of a large capture show by themselves, if the
    whole takes longer to read than a user wants to wait."""
    if len(captures) != 1 or not sys.stderr.isatty():
        return
    with contextlib.suppress(CaptureError):  # reported by whoever reads all of it
        found = newest.of_large(captures[0], time.time())
        width = shutil.get_terminal_size().columns
        for line in found.lines if found else ():
            print(*wording.flowing(line, width), sep="\n", file=sys.stderr)


class Unreadable:
    """Reports captures that cannot be read, each in one line, so that the others are read nevertheless."""

    def __init__(self, captures: Sequence[Path]) -> None:
        """One that is alone ends the command."""
        self._captures = len(captures)
        self._reported = 0

    @property
    def others(self) -> int:
        """How many captures could be read."""
        return self._captures - self._reported

    @property
    def status(self) -> int:
        """The exit status, if nothing else is wrong."""
        return 2 if self._reported else 0

    def report(self, error: InspectorError) -> None:
        """Report a capture. Raises the error if there is no other."""
        if self._captures == 1:
            raise error
        self._reported += 1
        print(f"puppet-inspector: {beginning(clean(error.message), REASON)}", file=sys.stderr)

    @contextlib.contextmanager
    def reported(self) -> Iterator[None]:
        """Report the capture that is read within if it cannot be read."""
        try:
            yield
        except CaptureError as error:
            self.report(error)


@contextlib.contextmanager
def as_one(given: Sequence[Path], watch: Watch, run: int | None = None) -> Iterator[Path]:
    """Return the capture that a command is about; several, or those of a directory, are merged for as long as it runs.
    ``run`` is the number of a run, which one capture gives. Raises InspectorError."""
    captures = paths.chosen(given)
    if len(captures) == 1:
        yield captures[0]
        return
    words = " ".join(map(str, given))
    if run is not None:
        raise InspectorError(
            f"{len(captures)} captures may each have a run {run}.",
            f"Name the one that is meant: `puppet-inspector runs {words}` lists them.",
        )
    with tempfile.TemporaryDirectory(prefix="puppet-inspector-") as folder:
        name = given[0].resolve().name if len(given) == 1 else "captures"
        path = Path(folder) / f"{name}.sqlite"
        merged = merge.merge(captures, path, watch)
        note = "are read as one: records and runs have the numbers that `puppet-inspector captures merge` gives them"
        print(f"puppet-inspector: {len(captures)} captures {note}", file=sys.stderr)
        for clock in merged.places:
            print(f"  {clean(str(clock))}", file=sys.stderr)
        try:
            with _recorded_like(path, merged.present):
                yield path
        except InspectorError as error:
            texts = (text.replace(str(path), words) for text in (error.message, error.hint))
            raise type(error)(*texts) from error


@contextlib.contextmanager
def _recorded_like(merged: Path, present: Present) -> Iterator[None]:
    """While some of its captures are recorded, the merged one is, too: what is under way there is not over."""
    if present.recording != "open":
        yield
        return
    with Capture.create(merged) as capture:
        capture.set_present(present)
        capture.flush()
        yield


@contextlib.contextmanager
def across_places(captures: list[Path], given: Sequence[Path]) -> Iterator[tuple[list[Path], dict[Path, Path]]]:
    """Return the captures that a command reads, and how the user called what is read in their place: those of several
    places are merged for as long as it runs, since a run may pass several. Raises InspectorError."""
    if not places.several(captures):
        yield captures, {}
        return
    with contextlib.ExitStack() as stack:
        try:
            with shown() as watch:
                merged = stack.enter_context(as_one(given, watch))
        except CaptureError as error:
            reason = beginning(clean(error.message), REASON)
            print(f"puppet-inspector: the captures are read one by one, not as one: {reason}", file=sys.stderr)
            yield captures, {}
            return
        folder = Path(os.path.commonpath([path.parent for path in captures]))
        yield [merged], {merged: given[0] if len(given) == 1 else folder}


def documents_of(capture: Capture, chosen: ChosenRun) -> RunDocuments:
    """Return what is compared of a run. Raises CaptureError."""
    from inspector.compare import documents

    found, run = chosen
    label = f"{found.capture.name} run {run.brief.number}"
    return documents.of_run(capture, run.seqs, run.brief, label, found.unanalyzed)


def whole_message(capture: Path, finding: Finding | None) -> str | None:
    """Return the whole message behind a finding; None if its evidence contains none. Raises CaptureError."""
    with Capture.open(capture) as records:
        return whole_messages.of_finding(finding, records)


def of_nodes(given: Sequence[Path]) -> list[Path]:
    """Return the captures in which agents are the nodes that they say: of a directory, those of replays are left out.
    Raises InspectorError, also if one is named."""
    found = []
    for path in paths.chosen(given):
        with contextlib.suppress(CaptureError), Capture.open(path) as capture:  # who reads it reports it
            if REPLAY_OF in capture.meta():
                if path in given or not given:
                    raise InspectorError(
                        f"{path} is the capture of a replay: its agent need not be the node that was replayed.",
                        "Name the capture that was replayed.",
                    )
                continue
        found.append(path)
    if not found:
        raise InspectorError(f"There are only captures of replays in {given[0]}/.", "Name the captures of nodes.")
    return found
