"""A rehearsal in pairs: what each node really received, and what another master answered to the same request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from inspector.compare import diff_lines
from inspector.pages.styles import ADDED, BAD, DOUBT, GOOD, HEADING, REMOVED
from inspector.progress import unwatched
from inspector.protocol.kinds import Kind
from inspector.rehearsal.pairs import Pairs
from inspector.text import beginning, clean, plural, seconds
from inspector.tui.columns import Column
from inspector.tui.differences import ComparedView
from inspector.tui.part import Cancelled, Details, PartView

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from inspector.compare.comparison import Comparison
    from inspector.compare.diff_lines import DifferenceLine
    from inspector.rehearsal.pairs import Pair
    from inspector.rehearsal.result import Result

_STYLES = {"no catalog": BAD, "changed": DOUBT, "the same": GOOD}
_LINES = {"added": ADDED, "new": ADDED, "removed": REMOVED, "old": REMOVED, "changed": DOUBT, "hunk": HEADING,
          "note": "dim"}  # fmt: skip
_NAMED = 12
"""Other nodes of a group that are named."""


class PairsView(PartView["Pair"]):
    """The nodes of a rehearsal: those without a catalog first, then those that change. Enter shows what changes."""

    TITLE = "Rehearsal"
    COLUMNS = (
        Column("node", lambda pair, width: beginning(clean(pair.node), width), 16, 3, sort=lambda pair: pair.node),
        Column("state", lambda pair, _: Text(pair.state, style=_STYLES[pair.state]), 10, sort=lambda pair: pair.state),
        Column("groups", lambda pair, _: ", ".join(str(at) for at, _ in pair.groups), 6,
               sort=lambda pair: [at for at, _ in pair.groups]),
        Column("what", lambda pair, width: beginning(pair.summary, width), 20, 6),
        Column("compile", lambda pair, _: f"{pair.time.ratio:.1f}x" if pair.time else "", 7, right=True,
               sort=lambda pair: pair.time.ratio if pair.time else 0.0),
        Column("before", lambda pair, _: seconds(pair.time.before) if pair.time else "", 7, right=True, least=100,
               sort=lambda pair: pair.time.before if pair.time else 0.0),
        Column("now", lambda pair, _: seconds(pair.time.after) if pair.time else "", 7, right=True, least=100,
               sort=lambda pair: pair.time.after if pair.time else 0.0),
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__(0)
        self.pairs: Pairs | None = None
        self._result: Result | None = None

    def heading(self) -> str:
        only = f", {self._only}" if self._only else " (without those that stay the same)" if self._differing else ""
        master = f" at {clean(self.pairs.master)}" if self.pairs else ""
        return f"{self.TITLE} in {clean(self.source.path.name)}{master}{only}"

    @property
    def agent(self) -> str:
        return self.selected.node if self.selected else ""

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
            self.pairs = Pairs(path)
            nodes, self._result = self.pairs.read(self.show_progress)
            return nodes

        return read

    def show_progress(self, done: int, total: int, *_: object) -> None:
        """Show how much is compared. Raises Cancelled if nobody looks any more."""
        if not self.is_attached:
            raise Cancelled
        self.later(self._total, f"comparing node {done:,} of {total:,} ...")

    def nothing(self) -> str:
        return "Nothing was answered yet."

    def sums(self, items: Sequence[Pair]) -> str:
        states = [f"{sum(item.state == state for item in items):,} {state}" for state in _STYLES]
        ratio = self._result.ratio(50) if self._result else None
        times = f"   compile time {ratio:.1f} times the recorded one (median)" if ratio is not None else ""
        return f"{plural(len(items), 'node')}: {', '.join(states)}{times}"

    def proof(self, item: Pair) -> int | None:
        return item.seq

    def action_open(self) -> None:
        """Show what changes for the selected node; without a catalog, the record that says why."""
        item = self.selected
        if item is None:
            return
        if item.groups and self.pairs:
            self.app.push_screen(PairView(self.pairs, item.node))
        elif item.seq is not None:
            self.inspector.open_exchange(None, item.seq)
        else:
            self.show_message("This node was not asked: there is no record.")

    def describe(self, item: Pair, details: Details) -> None:
        if item.failure:
            details.line("why", item.failure, BAD)
        elif not item.groups:
            details.line("", "The new master gives it the same catalog.")
        for number, group in item.groups:
            others = [node for node in group.nodes if node != item.node]
            if others:
                more = f" and {len(others) - _NAMED:,} more" if len(others) > _NAMED else ""
                details.line(f"group {number}", f"the same on {', '.join(others[:_NAMED])}{more}", "bold")
            else:
                details.line(f"group {number}", "on this node only", "bold")
            for line in diff_lines.differences(group.differences, full=True, indent=""):
                details.draw(Text(line.text, _LINES.get(line.sort, "")))


class PairView(ComparedView):
    """What one node received, and what the other master answered."""

    def __init__(self, pairs: Pairs, node: str) -> None:
        super().__init__(0)
        self._pairs, self._node = pairs, node
        self._compared: Comparison | None = None

    def sides(self) -> str:
        return f"{clean(self._node)} as recorded, and at {clean(self._pairs.master)}"

    @property
    def agent(self) -> str:
        return self._node

    def now(self) -> Hashable:
        return self._node

    def prepare(self) -> Callable[[], Sequence[DifferenceLine]]:
        def read() -> Sequence[DifferenceLine]:
            self._compared = self._pairs.one(self._node, unwatched)
            return diff_lines.rows(self._compared)

        return read

    def proof(self, item: DifferenceLine) -> int | None:
        """The record of the rehearsal that shows a difference."""
        after = self._compared.after if self._compared else None
        if after is None:
            return None
        files = [use.seq for use in after.files if item.difference and use.name == item.difference.name]
        catalogs = [made.seq for made in after.requests if made.kind is Kind.CATALOG]
        return next(iter(files or catalogs[-1:]), None)
