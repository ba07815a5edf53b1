"""The copy of a capture that a report is made of: nothing that must not leave is in it."""

from __future__ import annotations

import contextlib
import gc
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from inspector.capture.store import Capture
from inspector.errors import CaptureError, InspectorError
from inspector.formats.outgoing import Outgoing
from inspector.formats.share import share, together
from inspector.model import Severity
from inspector.pages.finding_groups import grouped
from inspector.progress import unwatched
from inspector.summaries import index, indexer, reading
from inspector.summaries.judgement import Judgement, Recorded, judge
from inspector.summaries.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from inspector.formats.outgoing import Content
    from inspector.pages.finding_groups import Group
    from inspector.progress import Watch
    from inspector.summaries.reading import CaptureRuns
    from inspector.summaries.summary import RunBrief

SHARED = "shared capture"
"""Stands for the name of a capture whose names do not leave: a file's name may be a host's."""


class Selection(NamedTuple):
    """Which runs of a capture are reported."""

    run: int | None = None
    agent: str | None = None
    filter: str = ""

    @property
    def terms(self) -> str:
        """The selection as a filter; empty: all runs."""
        agent = (self.agent or "").replace("\\", "\\\\").replace('"', '\\"')
        named = (f"run:{self.run}" if self.run is not None else "", f'agent:"{agent}"' if agent else "", self.filter)
        return " ".join(filter(None, (term.strip() for term in named)))


@dataclass(slots=True)
class LeavingCapture:
    """A capture as it may leave, with its runs that were chosen."""

    source: Source
    name: str
    size: int
    """Bytes of the capture that it was copied from."""
    runs: list[RunBrief]
    """In the order in which they began."""
    every: int
    """How many runs the capture has."""
    terms: str = ""
    """The filter by which they were chosen."""
    shared: bool = False
    withheld: Counter[Content] = field(default_factory=Counter)
    judgement: Judgement = field(default_factory=Judgement)
    """What the chosen runs show of their nodes."""

    @property
    def whole(self) -> bool:
        """Whether all runs were chosen."""
        return not self.terms

    @property
    def apart(self) -> list[Group]:
        """What was found in requests that are part of no run, by rule; nothing if runs were chosen."""
        return grouped(self.source.apart.found, "rule", Severity.NOTICE) if self.whole else []


def chosen(capture: Path, selection: Selection, watch: Watch = unwatched) -> CaptureRuns | None:
    """Return the runs of a capture that are chosen; None: all. Raises InspectorError if there is none."""
    terms = selection.terms
    found = reading.read(capture, terms, watch, time.time()) if terms else None
    if found is not None and not found.runs:
        raise InspectorError(
            f"No run of {capture} matches {terms!r}.", f"`puppet-inspector runs {capture}` lists its runs."
        )
    return found


@contextlib.contextmanager
def leaving(
    capture: Path,
    selection: Selection = Selection(),  # noqa: B008 - it cannot be changed
    opened: frozenset[Content] = frozenset(),
    watch: Watch = unwatched,
    *,
    shared: bool = False,
) -> Iterator[LeavingCapture]:
    """Copy a capture as it may leave, and open the copy; it is deleted at the end. The runs are chosen by what the
    capture itself shows: the copy may have other names. Raises InspectorError."""
    terms, now = selection.terms, time.time()
    with Capture.open(capture) as records:
        present = records.present(now)
    found = chosen(capture, selection, watch)
    with _workplace() as folder:
        copy = folder / "capture.sqlite"
        _, withheld = share(capture, copy, opened, watch, pseudonyms=shared)
        gc.collect()  # what was learned refers to itself: it would stay in memory until the page is written
        indexer.build(copy, index.place(copy), watch=watch)
        gc.collect()
        with Source(copy) as source:
            source.judge(present, now)  # the copy itself says nothing of what is under way
            numbers = {run.brief.number for run in found.runs} if found else None
            runs = [run for run in source.runs if numbers is None or run.number in numbers]
            judgement = source.judgement if numbers is None else judge([Recorded(runs, present=present)], now)
            name = SHARED if shared else capture.name
            terms = "" if not terms else f"{len(runs)} runs were chosen" if shared else terms
            yield LeavingCapture(
                source, name, capture.stat().st_size, runs, len(source.runs), terms, shared, withheld, judgement
            )


@contextlib.contextmanager
def comparable(
    captures: Iterable[Path], opened: frozenset[Content] = frozenset(), watch: Watch = unwatched
) -> Iterator[tuple[dict[Path, Path], Counter[Content]]]:
    """Copy captures as they may leave, under the same names, so that equal values stay equal; yield the copy of each.
    They are deleted at the end. Raises InspectorError."""
    with _workplace() as folder:
        copies = {}
        for number, capture in enumerate(dict.fromkeys(captures)):
            place = folder / str(number)
            place.mkdir()
            copies[capture] = place / capture.name
        _, withheld = together(list(copies.items()), opened, watch, pseudonyms=False)
        yield copies, withheld


@contextlib.contextmanager
def _workplace() -> Iterator[Path]:
    """Yield a directory for copies, which is deleted at the end."""
    with tempfile.TemporaryDirectory(prefix="puppet-inspector-") as folder:
        try:
            yield Path(folder)
        except CaptureError as error:
            if folder not in error.message:
                raise
            reason = error.message.rpartition(": ")[2]
            raise InspectorError(
                f"No copy of the capture can be made in {tempfile.gettempdir()}: {reason}",
                "Make room there, or name a directory that has some: `TMPDIR=DIR puppet-inspector ...`.",
            ) from error


@contextlib.contextmanager
def closed_texts(
    captures: Iterable[Path], opened: frozenset[Content] = frozenset(), watch: Watch = unwatched
) -> Iterator[tuple[Callable[[str], str], Counter[Content]]]:
    """Yield what closes a text that was made of captures, as an export closes a finding's sentence, and the numbers of
    values that were withheld. Raises InspectorError."""
    with contextlib.ExitStack() as stack:
        known = [stack.enter_context(Capture.open(capture)) for capture in dict.fromkeys(captures)]
        outgoing = Outgoing.of(
            *((capture, capture.last) for capture in known), pseudonyms=False, opened=opened, watch=watch
        )
        yield outgoing.sentence, outgoing.withheld
