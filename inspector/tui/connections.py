"""The connections of one run: handshakes, requests, who closed them, and what failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from inspector.explain import connection_usage
from inspector.explain.connection_usage import ConnectionUse
from inspector.pages import palette
from inspector.pages.styles import BAD
from inspector.summaries.wording import refusal
from inspector.text import clean, clock, seconds
from inspector.tui.columns import Column
from inspector.tui.part import LABEL, Details, PartView

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inspector.model import Connection

_BARE = {"none": (" ", ""), "life": ("─", "dim"), "handshake": ("▒", "#a0a0a0"), "failed": ("x", BAD)}
_REQUESTS = 200
"""Maximum number of requests in the details."""


def _seconds(duration: float | None) -> str:
    return "-" if duration is None else seconds(max(0.0, duration))


def _drawn(cells: Sequence[connection_usage.BarCell]) -> Text:
    text = Text()
    for cell in cells:
        char, style = _BARE[cell] if cell in _BARE else palette.PHASES[cell]  # type: ignore[index]
        text.append(char, style=style)
    return text


def _state(item: ConnectionUse) -> str:
    if item.failed:
        return "failed"
    return "closed" if item.closed else "open"


def _closed(item: ConnectionUse) -> str:
    if item.closed is None:
        return "-" if item.failed else "open"
    return item.closer or "unknown"


def _identity(item: ConnectionUse) -> str:
    if item.side == "agent":
        return "-"
    return clean(", ".join(item.identities)) or "none"


def _name(item: ConnectionUse) -> Text:
    address = clean(item.leg.address or "?") if item.leg else "?"
    port = item.leg.port if item.leg else None
    indent = "" if item.id == item.agent else "  "
    return Text(f"{indent}{item.side} {address}{f':{port}' if port else ''}")


class Connections(PartView[ConnectionUse]):
    """The connections of a run, those to the master below the agent's. Enter opens the first exchange of one."""

    TITLE = "Connections"

    def __init__(self, number: int) -> None:
        """Show the connections of run ``number``."""
        self._span = (0.0, 0.0)
        self.COLUMNS = (
            Column("connection", lambda item, _: _name(item), 22, 1),
            Column("opened", lambda item, _: clock(item.opened), 12, least=100, sort=lambda item: item.opened),
            Column("TCP", lambda item, _: _seconds(item.tcp), 8, right=True, least=140,
                   sort=lambda item: -(item.tcp or 0.0)),
            Column("TLS", lambda item, _: "failed" if item.failed else _seconds(item.tls), 8, right=True,
                   sort=lambda item: -(item.tls or 0.0)),
            Column("version", lambda item, _: clean(item.leg.tls_version or "-") if item.leg else "-", 8, least=120,
                   sort=lambda item: (item.leg.tls_version or "") if item.leg else ""),
            Column("certificate", lambda item, _: clean(item.shown or "none"), 12, 1, least=120,
                   sort=lambda item: item.shown or ""),
            Column("identity", lambda item, _: _identity(item), 8, 1, least=140, sort=_identity),
            Column("requests", lambda item, _: str(len(item.requests)), 8, right=True,
                   sort=lambda item: -len(item.requests)),
            Column("idle", lambda item, _: _seconds(max(item.idle, default=None)), 8, right=True, least=100,
                   sort=lambda item: -max(item.idle, default=0.0)),
            Column("closed by", lambda item, _: _closed(item), 9, sort=_closed),
            Column("life", lambda item, width: _drawn(connection_usage.bar(item, *self._span, width)), 16, 3,
                   drawn=True),
        )  # fmt: skip
        super().__init__(number)

    def key(self, item: ConnectionUse) -> str:
        return item.id

    def state_of(self, item: ConnectionUse) -> str:
        return _state(item)

    def differs(self, item: ConnectionUse) -> bool:
        return item.failed is not None

    def prepare(self) -> Callable[[], Sequence[ConnectionUse]]:
        source, briefs = self.source, self.source.briefs(self.number)

        def read() -> Sequence[ConnectionUse]:
            known: dict[str, Connection] = {}
            with source.capture() as capture:
                for ident in connection_usage.ids(briefs):
                    if (found := capture.connection(ident)) is not None:
                        known[ident] = found
            found_all = connection_usage.connections(briefs, known)
            began = min((item.opened for item in found_all), default=0.0)
            self._span = began, max((item.ended for item in found_all), default=0.0)
            return found_all

        return read

    def nothing(self) -> str:
        return "No connections were recorded for this run."

    def sums(self, items: Sequence[ConnectionUse]) -> str:
        totals = connection_usage.totals(items)
        master = f", {totals.master} to the master" if totals.master else ""
        failed = f", {totals.failed} failed" if totals.failed else ""
        tls = f", {seconds(totals.tls)} in handshakes" if totals.tls else ""
        return f"{totals.agent} from the agent{master}{failed}, {totals.requests} requests{tls}"

    def proof(self, item: ConnectionUse) -> int | None:
        return item.seq

    def describe(self, item: ConnectionUse, details: Details) -> None:
        line, leg = details.line, item.leg
        line("connection", _name(item).plain.strip(), "bold")
        if item.failed:
            failed = item.failed
            line("failed", refusal(failed.reason, failed.alert, failed.alert_by), BAD)
        if leg and leg.probed:
            line("probe", "verification probe: the agent was presented a certificate that it must refuse")
        steps = (("TCP", item.tcp), ("TLS", item.tls))
        parts = [
            clock(item.opened),
            *(f"{what} in {_seconds(duration)}" for what, duration in steps if duration is not None),
        ]
        line("opened", ", ".join(parts))
        if leg:
            known = (leg.tls_version, leg.cipher, f"SNI {leg.sni}" if leg.sni else "no SNI")
            resumed = {True: ", resumed", False: ", not resumed", None: ""}[leg.resumed]
            line("TLS", " ".join(part for part in known if part) + resumed)
        who = "the agent" if item.side == "agent" else "the master"
        line("certificate", f"{who} presented {item.shown or 'none'}, was presented {item.presented or 'none'}")
        if item.side == "master":
            line("identity used", _identity(item) + (f" ({item.unused_because})" if item.unused_because else ""))
        if item.closed:
            after = seconds(max(0.0, item.closed.at - item.opened))
            line("closed", f"{clock(item.closed.at)}, after {after}, closed by: {_closed(item)}")
        details.draw(_drawn(connection_usage.bar(item, item.opened, item.ended, max(10, self.size.width - LABEL - 5))))
        silent = [None, *item.idle]
        for request, idle in zip(item.requests[:_REQUESTS], silent, strict=False):
            after = f" after {seconds(idle)} idle" if idle is not None else ""
            took = seconds(max(0.0, request.ended - request.began))
            line(f"request {request.seq}", f"{clock(request.began)} {request.phase}, {took}{after}")
