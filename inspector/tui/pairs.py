"""A rehearsal in pairs: what each node really received, and what another master answered to the same request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from inspector.compare import text
from inspector.pages import difference_lines, languages
from inspector.pages.styles import BAD, DOUBT, GOOD
from inspector.protocol.kinds import Kind
from inspector.rehearsal import pairs
from inspector.text import beginning, clean, plural, seconds
from inspector.tui.columns import Column
from inspector.tui.differences import ComparedView
from inspector.tui.part import Cancelled, Details, PartView

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from inspector.pages.difference_lines import DifferenceLine
    from inspector.rehearsal.pairs import Pair, Pairs

_STYLES = {"no catalog": BAD, "changed": DOUBT, "the same": GOOD}
_NAMED = 6
"""Other nodes of a group that are named."""


def _ratio(pair: Pair, _: int = 0) -> str:
    return f"{pair.time.ratio:.1f}x" if pair.time else ""


class PairsView(PartView["Pair"]):
    """The nodes of a rehearsal: those without a catalog first, then those that change. Enter shows what changes."""

    TITLE = "Rehearsal"
    COLUMNS = (
        Column("node", lambda pair, width: beginning(clean(pair.node), width), 16, 3, sort=lambda pair: pair.node),
        Column("state", lambda pair, _: Text(pair.state, style=_STYLES[pair.state]), 10, sort=lambda pair: pair.state),
        Column("what", lambda pair, width: beginning(pair.summary, width), 20, 6),
        Column("group", lambda pair, _: f"{pair.group or ''}", 5, right=True, sort=lambda pair: pair.group or 0),
        Column("compile", _ratio, 7, right=True, sort=lambda pair: pair.time.ratio if pair.time else 0.0),
        Column("now", lambda pair, _: seconds(pair.time.after) if pair.time else "", 7, right=True, least=100,
               sort=lambda pair: pair.time.after if pair.time else 0.0),
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__(0)
        self._pairs: Pairs | None = None

    def heading(self) -> str:
        only = f", {self._only}" if self._only else " (without those that stay the same)" if self._differing else ""
        master = f" at {clean(self._pairs.master)}" if self._pairs else ""
        return f"{self.TITLE} of {clean(self.source.path.name)}{master}{only}"

    def key(self, item: Pair) -> str:
        return item.node

    def state_of(self, item: Pair) -> str:
        return item.state

    def differs(self, item: Pair) -> bool:
        return item.state != "the same"

    def now(self) -> Hashable:
        return self.source.total

    def prepare(self) -> Callable[[], Sequence[Pair]]:
        path = self.source.path

        def read() -> Sequence[Pair]:
            self._pairs = pairs.read(path, self._watch)
            return self._pairs.nodes

        return read

    def _watch(self, done: int, total: int, _: str) -> None:
        if not self.is_attached:
            raise Cancelled
        self.later(self._total, f"comparing node {done:,} of {total:,} ...")

    def nothing(self) -> str:
        return "Nothing was answered yet."

    def sums(self, items: Sequence[Pair]) -> str:
        states = [f"{sum(item.state == state for item in items):,} {state}" for state in _STYLES]
        ratio = self._pairs and self._pairs.result.ratio(50)
        times = f"   compile time {ratio:.1f} times the recorded one (median)" if ratio else ""
        return f"{plural(len(items), 'node')}: {', '.join(states)}{times}"

    def proof(self, item: Pair) -> int | None:
        return item.seq

    def action_open(self) -> None:
        """Show what changes for the selected node; without a catalog, the record that says why."""
        item = self.selected
        if item is None:
            return
        if item.compared is not None:
            self.app.push_screen(PairView(item))
        elif item.seq is not None:
            self.inspector.open_exchange(None, item.seq)
        else:
            self.show_message("This node was not asked: there is no record.")

    def describe(self, item: Pair, details: Details) -> None:
        details.line("node", item.node, "bold")
        if item.compared is None:
            details.line("no catalog", item.summary, BAD)
            return
        others = [node for node in item.others if node != item.node]
        if others:
            more = f" and {len(others) - _NAMED:,} more" if len(others) > _NAMED else ""
            details.line("the same on", ", ".join(others[:_NAMED]) + more)
        if item.time:
            before, after = seconds(item.time.before), seconds(item.time.after)
            details.line("compile time", f"{before} -> {after}")
        lines = "\n".join(line.text for line in text.differences(item.compared.differences))
        details.line("", lines, language=languages.DIFF)


class PairView(ComparedView):
    """What one node received, and what the other master answers."""

    def __init__(self, pair: Pair) -> None:
        super().__init__(0)
        self.pair = pair

    def sides(self) -> str:
        return f"{clean(self.pair.node)} as recorded, and as rehearsed"

    def now(self) -> Hashable:
        return self.pair.node

    def prepare(self) -> Callable[[], Sequence[DifferenceLine]]:
        compared = self.pair.compared
        return lambda: difference_lines.lines(compared) if compared else []

    def proof(self, item: DifferenceLine) -> int | None:
        """The record of the rehearsal that has the side that is new."""
        after = self.pair.compared.after if self.pair.compared else None
        if after is None:
            return None
        files = [use.seq for use in after.files if use.name == item.difference.name] if item.difference else []
        catalogs = [made.seq for made in after.requests if made.kind is Kind.CATALOG]
        return next(iter(files or catalogs[-1:]), None)

    def action_open(self) -> None:
        """Open the record of the rehearsal that shows the selected difference."""
        item = self.selected
        seq = self.proof(item) if item else None
        if seq is not None:
            self.inspector.open_exchange(None, seq)
