"""What is different between two runs of the capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from inspector.compare import comparison, diff_lines, documents
from inspector.compare.diff_lines import DifferenceLine
from inspector.pages import languages
from inspector.pages.styles import ADDED, BAD, DOUBT, REMOVED
from inspector.summaries import incidents
from inspector.text import beginning, clean, plural
from inspector.tui.columns import Column
from inspector.tui.panes import NARROW
from inspector.tui.part import Details, PartView, middle

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inspector.compare.differences import Change
    from inspector.compare.documents import RunDocuments
    from inspector.summaries.summary import RunBrief

_SIGNS: dict[Change | None, tuple[str, str]] = {
    "added": ("+", ADDED), "removed": ("-", REMOVED), "changed": ("~", DOUBT), None: (" ", "dim"),
}  # fmt: skip
PART, LEAST = 0.6, 6
"""The greatest part of the screen that the lines have beside the details, and their least number of lines."""
_HISTORY = 50
"""Other runs of the agent by whose times those of the two are judged."""


def _style(line: DifferenceLine) -> str:
    return BAD if line.cause else _SIGNS[line.change][1] if line.counts else "dim"


def _what(line: DifferenceLine, width: int) -> Text:
    room = max(8, width - 2)
    # A sentence says at its beginning what matters; names differ at their ends.
    sentence = line.difference is None and line.section != diff_lines.TIMES
    what = beginning(line.what, room) if sentence else middle(line.what, room)
    style = BAD if line.cause else "" if line.counts else "dim"
    return Text.assemble((f"{_SIGNS[line.change][0]} ", _style(line)), (what, style))


def _with_values(line: DifferenceLine, width: int) -> Text:
    """What differs and its values, where there is no room for columns of them."""
    values = " -> ".join(filter(None, (line.before, line.after)))
    if not values:
        return _what(line, width)
    return _what(line, width // 2).append(f": {values}", "" if line.counts else "dim")


class ComparedView(PartView[DifferenceLine]):
    """What is different between two sides. Enter opens the record that shows it."""

    TITLE = "Differences"
    COLUMNS = (
        Column("section", lambda line, _: Text(line.section, style="" if line.counts else "dim"), 8),
        Column("what", _what, 30, 4, sort=lambda line: line.what),
        Column("before", lambda line, width: beginning(line.before, width), 10, 2),
        Column("after", lambda line, width: beginning(line.after, width), 10, 2),
    )
    NARROW_COLUMNS = (COLUMNS[0], Column("what", _with_values, 30, 4, sort=lambda line: line.what))

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._differing = True

    def sides(self) -> str:
        """What is compared."""
        raise NotImplementedError

    def show_items(self, items: Sequence[DifferenceLine]) -> None:
        """Show these lines; the details have the room that they do not need."""
        super().show_items(items)
        most = int(self.app.size.height * PART)
        self.query_one("#upper").styles.height = max(LEAST, len(items) + 3) if len(items) + 3 < most else "1fr"
        self.query_one("#lower").styles.height = "1fr" if len(items) + 3 < most else None

    def lay_out(self) -> None:
        self.rows.set_columns(self.NARROW_COLUMNS if self.app.size.width < NARROW else self.COLUMNS)
        self.show_items(self.rows.items)

    def opened(self) -> None:
        super().opened()
        self.lay_out()

    def heading(self) -> str:
        only = f", {self._only}" if self._only else "" if self._differing else " (all)"
        return f"{self.TITLE}{only}: {self.sides()}"

    def key(self, item: DifferenceLine) -> int:
        return item.key

    def state_of(self, item: DifferenceLine) -> str:
        return item.section

    def differs(self, item: DifferenceLine) -> bool:
        return item.counts

    def nothing(self) -> str:
        return "There is no difference."

    def sums(self, items: Sequence[DifferenceLine]) -> str:
        found: dict[str, int] = {}
        for item in items:
            if item.counts:
                found[item.section] = found.get(item.section, 0) + 1
        hidden = sum(not item.counts for item in items)
        counted = ", ".join(f"{section} {number}" for section, number in found.items()) or self.nothing()
        what = "more" if any(item.cause for item in items) else "of volatile facts and usual times"
        return f"{counted}   {plural(hidden, f'line {what}', f'lines {what}')}: d" if hidden else counted

    def proof(self, item: DifferenceLine) -> int | None:
        return item.proof.seq if item.proof else None

    def action_open(self) -> None:
        """Open the record that shows the selected difference, among those of its run."""
        item = self.selected
        seq = self.proof(item) if item is not None else None
        if item is not None and seq is not None:
            self.inspector.open_exchange(item.proof.run if item.proof else None, seq)
        elif item is not None:
            self.show_message("No single record shows this.")

    def describe(self, item: DifferenceLine, details: Details) -> None:
        difference = item.difference
        details.line(item.section, item.cause or item.what, "bold")
        if difference is None:
            if item.before or item.after:
                details.line("before, after", f"{item.before} -> {item.after}")
            if item.note:
                details.line("fix" if item.cause else "", item.note)
            return
        before, after = diff_lines.values(difference, diff_lines.WHOLE)
        if before:
            details.line("before", before)
        if after:
            details.line("after", after)
        if difference.note:
            details.line("note", difference.note)
        for place in difference.places:
            details.line("manifest", place)
        whole = difference.after if isinstance(difference.after, dict) else difference.before
        if not before and not after and isinstance(whole, dict):
            for name, value in whole.items():
                details.line(str(name), diff_lines.word(value))
        if difference.lines:
            details.line("", "\n".join(difference.lines), language=languages.DIFF)


class DifferencesView(ComparedView):
    """What is different between two runs."""

    def __init__(self, before: int, after: int) -> None:
        """Compare two runs, by their numbers."""
        super().__init__(after)
        self.before = before

    def sides(self) -> str:
        runs = [self.source.run(number) for number in (self.before, self.number)]
        names = {run.name for run in runs if run}
        if len(names) == 1:
            each = ", now ".join(f"run {run.label} ({run.ending})" for run in runs if run)
            return f"{clean(names.pop())}, {each}"
        return ", now ".join(f"run {run.label} of {clean(run.name)} ({run.ending})" for run in runs if run)

    def prepare(self) -> Callable[[], Sequence[DifferenceLine]]:
        source = self.source
        before, after = source.run(self.before), source.run(self.number)
        if before is None or after is None:
            return list
        others = [
            run
            for run in source.runs
            if run.name == after.name and run not in (before, after) and incidents.went_well(run)
        ]

        def read() -> Sequence[DifferenceLine]:
            with source.capture() as capture:

                def of(run: RunBrief) -> RunDocuments:
                    seqs = source.seqs(run.number)
                    return documents.of_run(capture, seqs, run, f"run {run.label}", source.unanalyzed)

                compared = comparison.compare(of(before), of(after), history=others[-_HISTORY:])
                return diff_lines.rows(compared)

        return read
