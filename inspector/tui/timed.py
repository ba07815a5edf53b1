"""The entries of a run in the order of time, up to a moment: what the waterfall and the sequence have in common."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from rich.text import Text

from inspector.explain.timeline import Entry, Fold, entries, folds, under_way
from inspector.pages import palette
from inspector.summaries import wording
from inspector.text import clean
from inspector.tui.rows import Folding

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from textual.strip import Strip

    from inspector.summaries.marks import Marks
    from inspector.summaries.summary import Brief, RunBrief, Sign
    from inspector.summaries.under_way import UnderWay
    from inspector.tui.columns import Column

UNVERIFIED = frozenset({"B01", "B03"})
"""Rules for exchanges in which the agent did not verify the server."""


class Timed(Folding[Entry]):
    """The entries of a run, up to a moment. What it has hundreds of, such as plugins, is folded into one line."""

    TITLED = 0
    """The column whose title explains what is drawn below it."""
    TEXT = 1
    """The column with the text of a line."""

    def __init__(self, columns: Sequence[Column[Entry]], *, id: str | None, classes: str | None) -> None:  # noqa: A002
        super().__init__(columns, lambda entry: entry.key, id=id)
        self.set_classes(classes or "")
        self.run_brief: RunBrief | None = None
        self._whole: list[Entry] = []
        self._begins: list[float] = []
        self._until: float | None = None
        self._folds: dict[Hashable, Fold] = {}
        """Of each line that is folded with others, by its key, the line of all of them."""
        self._open: set[Hashable] = set()

    def key(self, entry: Entry) -> Hashable:
        """The key of an entry for ``go``; of a record, its number."""
        return entry.key

    @property
    def certname(self) -> str | None:
        """The run that is shown."""
        return self.run_brief.certname if self.run_brief else None

    def load(
        self,
        run: RunBrief,
        briefs: Iterable[Brief],
        whole: Iterable[Brief] | None = None,
        *,
        tail: bool = True,
        doing: UnderWay[RunBrief] | None = None,
    ) -> None:
        """Show these records of a run, on the axis of the ``whole`` run (by default, these records are all of it). With
        ``tail`` the cursor stays at the end if it was there. ``doing`` is what its agent does meanwhile."""
        self.run_brief = run
        shown = list(briefs)
        timeline = entries(run, shown if whole is None else whole)
        going = under_way(run, doing) if doing else []
        self.measure([*timeline, *going])
        listed = timeline if whole is None else _only(timeline, {brief.seq for brief in shown})
        self._whole = self.arranged([*listed, *going] if len(listed) == len(timeline) else listed)
        self._begins = [entry.began for entry in self._whole]
        # Somebody who filters wants to see what matches.
        found = folds(self._whole) if len(listed) == len(timeline) else ()
        self._folds = {entry.key: fold for fold in found for entry in fold.inside}
        self._show(tail=tail)

    def measure(self, timeline: list[Entry]) -> None:
        """Use the whole run, of which possibly only a part is shown."""

    def arranged(self, timeline: list[Entry]) -> list[Entry]:
        """The lines for these entries, in the order in which they began."""
        return timeline

    @property
    def number_of_lines(self) -> int:
        """The lines of the whole run, also while a moment of it is shown."""
        return len(self._lines_of(self._whole))

    @property
    def listed(self) -> Sequence[Entry]:
        """The entries up to the moment that is shown, also those that are folded."""
        return self._given

    # -- what is folded ---------------------------------------------------------------------------------

    def _lines_of(self, entries: Iterable[Entry]) -> list[Entry]:
        """The lines for some entries: one for each fold, and what is in those that are open."""
        lines: list[Entry] = []
        last: Fold | None = None
        for entry in entries:
            fold = self._folds.get(entry.key)
            if fold is not None and fold is not last:
                lines.append(fold)
            if fold is None or fold.key in self._open:
                lines.append(entry)
            last = fold
        return lines

    def _arrange(self) -> None:
        super()._arrange()
        if self._sort is None:
            self.items = self._lines_of(self.items)

    def marked(self, item: Entry) -> range:
        if not isinstance(item, Fold):
            return range(0)
        text = self.columns[self.TEXT]
        before = sum(width + 1 for column, width in self._shown if self.columns.index(column) < self.TEXT)
        return range(before, before + 3) if text in [column for column, _ in self._shown] else range(0)

    def is_open(self, item: Entry) -> bool:
        return item.key in self._open

    def mark(self, fold: Fold) -> str:
        """Whether a fold is open, before its text."""
        return "▼ " if self.is_open(fold) else "▶ "

    def action_fold(self, fold: bool) -> None:  # noqa: FBT001 - as in Folding
        """Open or close what is folded; elsewhere the key scrolls."""
        if self.item is not None and (isinstance(self.item, Fold) or self.item.key in self._folds):
            super().action_fold(fold)
        elif fold:
            self.action_scroll_left()
        else:
            self.action_scroll_right()

    def on_folding_fold(self, event: Folding.Fold[Entry]) -> None:
        """Open or close a fold, or the one around a line."""
        event.stop()
        self.turn(event.item, fold=event.fold)

    def turn(self, line: Entry, *, fold: bool | None = None) -> None:
        """Open or close the fold of a line; None: open it if it is closed."""
        of = line if isinstance(line, Fold) else self._folds.get(line.key)
        if of is None:  # the run was read again since the key was pressed
            return
        if fold is None:
            fold = of.key in self._open
        if fold:
            self._open.discard(of.key)
            self.go(of.key)
        else:
            self._open.add(of.key)
        self.show(self._given)

    def _reveal(self, wanted: Callable[[Entry], bool], *, forward: bool, again: bool) -> None:
        """Open the fold in which the next line is that is wanted; ``again``: the selected line is not meant."""
        number = len(self.items)
        for distance in range(number + 1 if number else 0):
            item = self.items[(self.at + (distance if forward else -distance)) % number]
            found = (distance > 0 or not again) and wanted(item)
            # What is in a fold is below its line.
            hidden = item.inside if isinstance(item, Fold) and not self.is_open(item) else ()
            if (distance < number and not found if forward else distance > 0) and any(map(wanted, hidden)):
                self.turn(item, fold=False)
                return
            if found:
                return

    def go(self, key: Hashable) -> bool:
        """Move the cursor to the entry with this key, also in a fold; False if there is none."""
        if (fold := self._folds.get(key)) and fold.key not in self._open:
            self._open.add(fold.key)
            self.show(self._given)
        return super().go(key)

    def seek(self, wanted: Callable[[Entry], bool], *, forward: bool = True) -> bool:
        """Go to the next entry that is wanted, also in a fold."""
        self._reveal(wanted, forward=forward, again=True)
        return super().seek(wanted, forward=forward)

    def search(self, pattern: str, *, forward: bool = True, again: bool = False) -> bool:
        """Go to the next line that contains a text (ignoring case), also in a fold."""
        if text := pattern.casefold():
            self._reveal(lambda entry: text in self.plain(entry).casefold(), forward=forward, again=again)
        return super().search(pattern, forward=forward, again=again)

    def number(self, entry: Entry) -> str:
        """The number of an entry's record, with a star if it is marked."""
        if entry.seq is None:
            return ""
        marks: Marks | None = getattr(self.app, "marks", None)
        return f"{'*' if marks is not None and marks.marked(entry.seq) else ''}{entry.seq}"

    @property
    def until(self) -> float | None:
        """The moment up to which the run is shown; None: all of it."""
        return self._until

    @until.setter
    def until(self, moment: float | None) -> None:
        if moment != self._until:
            self._until = moment
            self._show()

    def over(self, entry: Entry) -> bool:
        """Whether an entry has ended by the moment that is shown."""
        return self._until is None or entry.ended <= self._until

    def _show(self, *, tail: bool = True) -> None:
        number = len(self._whole) if self._until is None else bisect_right(self._begins, self._until)
        # During playback most pictures have the same lines as the one before.
        same = number == len(self._given) and (not number or self._given[-1] is self._whole[number - 1])
        if not same or self._sort is not None:
            self.show(self._whole[:number], tail=(tail and bool(self.items)) or self._until is not None)
        self.refresh()

    def title(self, width: int) -> str:
        """The title of the column ``TITLED`` at this width."""
        raise NotImplementedError

    def spent(self) -> str:
        """What the time of the selected entry was; empty if the drawing says it already."""
        return ""

    def render_line(self, y: int) -> Strip:
        """Draw the titles as ``Rows`` does, with the one for the current moment."""
        if y == 0:
            old = self.columns[self.TITLED]
            width = next((width for column, width in self._shown if column is old), 0)
            new = replace(old, title=self.title(width))
            self.columns = tuple(new if column is old else column for column in self.columns)
            self._shown = [(new if brief is old else brief, width) for brief, width in self._shown]
        return super().render_line(y)

    def plain(self, item: Entry) -> str:
        """The text of a line, without the drawing."""
        brief = item.brief
        if item.kind != "record" or brief is None:
            return item.text
        status = "" if brief.status is None else str(brief.status)
        return f"{item.seq}  {item.text}  {status}  {marks(brief)}"


def _only(timeline: Iterable[Entry], seqs: set[int]) -> list[Entry]:
    """The entries of some records of a run, with the notes of their phases.

    All entries if the records are the whole run.
    """
    everything = list(timeline)
    if all(entry.seq in seqs for entry in everything if entry.kind == "record"):
        return everything
    selected: list[Entry] = []
    note: Entry | None = None
    for entry in everything:
        if entry.kind == "phase":
            note = entry
        elif entry.kind == "record" and entry.seq in seqs:
            selected += [entry] if note is None else [note, entry]
            note = None
    return selected


def signs(found: Iterable[Sign]) -> Text:
    """Letters and rules of findings, the worst first."""
    ids = Text()
    ordered = sorted(found, key=lambda sign: -sign.severity.rank)
    for severity, same in groupby(ordered, key=lambda sign: sign.severity):
        rules = " ".join(dict.fromkeys(sign.rule for sign in same))
        ids.append(f"{severity.value[0].upper()} {rules} ", style=palette.SEVERITIES[severity])
    return ids


def inside(fold: Fold) -> Text:
    """The findings of all records of a fold."""
    return signs(sign for brief in fold.briefs for sign in brief.signs)


def marks(brief: Brief, width: int = 400, *, words: bool = True) -> Text:
    """The findings of a record, the worst first, and missing verification: letter, rules, and words that fit."""
    ids = signs(brief.signs)
    asides = wording.asides(brief)
    for missing in ("no certificate", "no cert") if words else ():
        notes = [*(["unverified"] if unverified(brief) else []), *([missing] if anonymous(brief) else []), *asides]
        text = ids + Text(", ".join(notes))
        text.rstrip()
        if text.cell_len <= width:
            return text
    if words and asides:  # a reason tells more than the certificate that was not there
        ids.append(", ".join(asides))
    ids.rstrip()
    return ids


def unverified(brief: Brief) -> bool:
    """Whether the agent sent the request without verifying the server."""
    return any(sign.rule in UNVERIFIED for sign in brief.signs)


def anonymous(brief: Brief) -> bool:
    """Whether the agent sent the request without a certificate."""
    return brief.kind == "exchange" and not brief.authenticated and not brief.imported


def request(brief: Brief, certname: str | None, width: int) -> str:
    """Method and path, fitted to a width."""
    method = clean(brief.method)
    return f"{method} {wording.path_of(brief, certname, max(8, width - len(method) - 1))}"
