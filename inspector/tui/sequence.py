"""A run as a sequence diagram between agent and master, as in the Puppet documentation: lanes, arrows, notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from inspector.explain.timeline import Entry, Fold, HandshakeLine, ResponseArrow, arranged
from inspector.model import Severity
from inspector.pages import palette
from inspector.text import clean, seconds, size
from inspector.tui.columns import Column
from inspector.tui.timed import Timed, anonymous, inside, marks, request, unverified

if TYPE_CHECKING:
    from inspector.summaries.summary import Brief

AGENT, PROXY, MASTER = "agent", "proxy", "master"
BROKEN = "✗"
NONE = "none"
ROOMY = 30
"""Width between proxy and master from which a reason fits there."""
WIDEST = 120
"""Width from which the lanes do not move further apart."""
_BAD = palette.SEVERITIES[Severity.ERROR]
_WARNING = palette.SEVERITIES[Severity.WARNING]


class Sequence(Timed):
    """Two lines per exchange: the request to the right, the answer to the left. Before the first one of a connection,
    a line with the certificates that its ends showed."""

    TITLED = TEXT = 2

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        columns: tuple[Column[Entry], ...] = (
            Column("record", lambda entry, _: self.number(entry) if type(entry) is Entry else "", 6, right=True),
            Column("offset", lambda entry, _: self._at(entry), 9, right=True, least=64),
            Column("", self._lanes, 40, 5),
            Column("findings", lambda entry, _: self._found(entry), 8, 1),
        )  # fmt: skip
        super().__init__(columns, id=id, classes=classes)

    def arranged(self, timeline: list[Entry]) -> list[Entry]:
        """The entries, with a line for each answer."""
        return arranged(timeline)

    def title(self, width: int) -> str:
        """The names of the lanes, above them."""
        first, second = _gaps(width)
        return f"{AGENT:<{max(0, first - 1)}}{PROXY}{MASTER:>{max(0, second - 1)}}"

    # -- cells ------------------------------------------------------------------------------------------

    def _at(self, entry: Entry) -> str:
        start = self.run_brief.started if self.run_brief else 0.0
        return f"{round(entry.began - start, 3) + 0.0:.3f}"  # no negative zero

    def _found(self, entry: Entry) -> Text | str:
        if isinstance(entry, Fold) and self.over(entry):
            return inside(entry)
        if entry.kind != "record" or entry.brief is None:
            return ""
        # The findings of a record are known when it is complete, so they are in its last line.
        alone = entry.brief.kind != "exchange"
        return marks(entry.brief, words=False) if isinstance(entry, ResponseArrow) or alone else ""

    def _lanes(self, entry: Entry, width: int) -> Text:
        brief = entry.brief
        if entry.kind == "phase" and brief is not None:
            note = f" {entry.text} "
            return Text.assemble(
                "──", (note, palette.PHASES[brief.phase][1]), "─" * max(0, sum(_gaps(width)) + 1 - len(note))
            )
        first, second = _gaps(width)
        if brief is None:
            took, style, mark = entry.ended - entry.began, palette.SILENCE, ""
            if isinstance(entry, Fold):
                took, style, mark = entry.took, palette.PHASES[entry.briefs[0].phase][1], self.mark(entry)
            words = f" {mark}{entry.text}{f', {seconds(took)}' if self.over(entry) else ' ...'}"
            return Text(f"│{_fill(words, first + 1 + second, ' ')}│", style=style)
        if isinstance(entry, HandshakeLine):
            return _certificates(brief, first, second)
        if brief.kind == "handshake":
            return _handshake(brief, first, second)
        if brief.kind == "gap":
            return Text(f"│{_fill(f' {entry.text}', first + 1 + second, ' ')}│")
        return _answer(brief, first, second) if isinstance(entry, ResponseArrow) else self._asked(brief, first, second)

    def _asked(self, brief: Brief, first: int, second: int) -> Text:
        words = ", unverified" if unverified(brief) and self._done(brief) else ""
        label = Text(request(brief, self.certname, first - 6 - len(words)))
        label.append(words, style=_WARNING)
        if brief.master is None and brief.status is None and self._done(brief):
            beyond = Text(_fill(f"{BROKEN} not reached", second, " "), style=_BAD)
        else:
            beyond = _right(Text(_as_whom(brief)), second)
        return Text.assemble("│", _right(label, first), "│", beyond, "│")

    def _done(self, brief: Brief) -> bool:
        """Whether an exchange had ended by the moment that is shown."""
        return self._until is None or brief.ended <= self._until


def _certificates(brief: Brief, first: int, second: int) -> Text:
    """The names in the certificates of both connections: the agent's and the one it was shown, the one used on its
    behalf and the master's."""
    shown = brief.certname if brief.authenticated else None
    left = _pair(shown, brief.presented, first) if brief.presented else Text(" " * first)
    right = _pair(brief.identity, brief.master_presented, second) if brief.master_presented else Text(" " * second)
    return Text.assemble("│", left, "│", right, "│")


def _pair(own: str | None, other: str | None, width: int) -> Text:
    own, other = clean(own or NONE), clean(other or NONE)
    both = f" {own} ↔ {other}"
    line = Text(both if cell_len(both) <= width else f" ↔ {other}", style="dim")
    line.truncate(width, overflow="ellipsis", pad=True)
    return line


def _as_whom(brief: Brief) -> str:
    if anonymous(brief):
        return "anonymous"
    return "no identity" if brief.identity_missing else ""


def _answer(brief: Brief, first: int, second: int) -> Text:
    if brief.status is None:
        label = Text(f"no answer: {clean(brief.reason or 'unknown reason')}", style=_BAD)
        beyond = Text(_fill(BROKEN if brief.master else "", second, " "), style=_BAD)
        return Text.assemble("│", _left(label, first), "│", beyond, "│")
    bad = _BAD if brief.failed else ""
    label = Text.assemble((str(brief.status), bad), f" {size(brief.received)}, {seconds(brief.duration)}")
    return Text.assemble("│", _left(label, first), "│", _left(Text(str(brief.status), style=bad), second), "│")


def _handshake(brief: Brief, first: int, second: int) -> Text:
    """The arrow that breaks, and the alert with its sender."""
    alert = clean(brief.alert or brief.reason)
    alert = f"alert {alert}" if brief.alert and len(alert) + 18 <= first else alert
    sender = f"from the {brief.alert_by}" if brief.alert_by else "no alert recorded"
    why = f"{sender}: {clean(brief.reason)}" if brief.alert and second >= ROOMY else sender
    if brief.times.master_connected is not None:
        words = set_cell_size(f"{alert} {sender} ".rjust(first), first)
        return Text.assemble("│", (words, _BAD), "│", (_fill(f"─ TLS ─{BROKEN}", second, " "), _BAD), "│")
    tip = "─" if brief.alert_by == "agent" else "◀" if brief.alert_by else " "
    end = "▶" if brief.alert_by == "agent" else "─" if brief.alert_by else " "
    line = _fill(f"─ TLS {BROKEN}{tip} {alert} ", first - 1, "─" if brief.alert_by else " ") + end
    return Text.assemble("│", (line, _BAD), "│", (_fill(f" {why}", second, " "), _BAD), "│")


# -- drawing --------------------------------------------------------------------------------------------------


def _gaps(width: int) -> tuple[int, int]:
    """The widths between agent and proxy, where the texts are, and between proxy and master."""
    room = max(20, min(width, WIDEST) - 3)
    second = max(8, room // 3)
    return room - second, second


def _fill(text: str, width: int, filler: str) -> str:
    """Text in exactly this width."""
    if cell_len(text) > width:
        return set_cell_size(text, max(0, width - 1)) + "…"
    return text + filler * (width - cell_len(text))


def _right(label: Text, width: int) -> Text:
    label.truncate(max(0, width - 5), overflow="ellipsis")
    gap = " " if label.plain else "─"
    return Text.assemble("─", gap, label, gap, "─" * (width - 4 - label.cell_len), "▶")


def _left(label: Text, width: int) -> Text:
    label.truncate(max(0, width - 5), overflow="ellipsis")
    gap = " " if label.plain else "─"
    return Text.assemble("◀─", gap, label, gap, "─" * (width - 4 - label.cell_len))
