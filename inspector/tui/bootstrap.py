"""How agents got their certificates, or where they are stuck: the steps of each agent, its keys, and a forecast."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, cast

import msgspec
from rich.text import Text
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Static
from textual.worker import get_current_worker

from inspector import clocks
from inspector.errors import InspectorError
from inspector.explain import bootstrap_reading
from inspector.explain.trust_chain import chain_of
from inspector.text import clean, plural, stamp, utc_day
from inspector.tui import bootstrap_tables, trust_picture
from inspector.tui.paned import Tabbed
from inspector.tui.panes import Pane, PaneTabs
from inspector.tui.rows import Rows
from inspector.tui.view import unread

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual.widget import Widget

    from inspector.explain.bootstrap import AgentBootstrap, Bootstraps, BootstrapStep, KeySighting

RARE = 10
"""While a capture grows, the pause between two readings: this many times the duration of a reading."""
AGAIN = 2.0
"""Seconds until a capture that could not be read is read again."""
_FOCUS = {"agents": "#agent-list", "steps": "#step-list", "chain": "#chain-scroll", "keys": "#sightings",
          "forecast": "#dates-scroll"}  # fmt: skip
TALL = 46
"""Lines of a terminal from which all panes fit."""


class Bootstrap(Tabbed):
    """The certificate bootstrap: the agents, the steps of the selected one, its trust and identity, its keys, and a
    forecast."""

    BINDINGS = [
        Binding("t", "date", "As of a date"),
        Binding("y", "copy", "Copy value", show=False),
        Binding("tab", "app.focus_next", "Next pane", show=False),
        Binding("1", "enter('agents')", "Agents", show=False),
        Binding("2", "enter('steps')", "Steps", show=False),
        Binding("3", "enter('chain')", "Trust and identity", show=False),
        Binding("4", "enter('keys')", "Keys", show=False),
        Binding("5", "enter('forecast')", "Forecast", show=False),
    ]
    PANES = {
        "agents": "1 Agents",
        "steps": "2 Steps",
        "chain": "3 Trust and identity",
        "keys": "4 Keys",
        "forecast": "5 Forecast",
    }
    DEFAULT_CSS = """
    Bootstrap #upper { height: 3fr; }
    Bootstrap #lower { height: 2fr; }
    Bootstrap #chain { height: auto; max-height: 20; }
    Bootstrap #chain-scroll { height: auto; padding: 0 1; }
    Bootstrap.narrow #chain { height: 1fr; max-height: 100%; }
    Bootstrap #agents { width: 34; }
    Bootstrap #steps { width: 1fr; }
    Bootstrap #keys { width: 3fr; }
    Bootstrap #forecast { width: 2fr; }
    Bootstrap #dates-scroll { padding: 0 1; }
    Bootstrap #stuck { height: auto; max-height: 6; padding: 0 1; }
    Bootstrap .details { height: auto; max-height: 40%; padding: 0 1; background: $boost; }
    Bootstrap.-medium PaneTabs { display: block; }
    Bootstrap.-broad #agents { width: 54; }
    Bootstrap.narrow #agents { width: 1fr; }
    """

    def __init__(self, certname: str | None = None) -> None:
        """Select this certname (or address) first; by default an agent that is stuck."""
        super().__init__()
        self._wanted = certname
        self._bootstraps: Bootstraps | None = None
        self._at: float | None = None
        """The time for which the certificates are evaluated; None: now."""
        self.current = "steps" if certname else "agents"
        self._revision = -1
        self._reading = ""
        self._rests = 0.0
        self._trouble = ""
        """Why the capture could not be read the last time."""

    def body(self) -> Iterable[Widget]:
        yield PaneTabs(self.PANES)
        with Horizontal(id="upper"):
            with Pane(id="agents", title="Agents"):
                yield Rows(bootstrap_tables.AGENTS, lambda agent: agent.certname, id="agent-list")
            with Pane(id="steps", title="Steps"):
                yield Static("", id="stuck", markup=False)
                yield Rows(
                    bootstrap_tables.step_columns(narrow=False), lambda step: (step.seqs[0], step.state), id="step-list"
                )
                with VerticalScroll(classes="details"):
                    yield Static("", id="step", markup=False)
        with Pane(id="chain", title="Trust and identity"), VerticalScroll(id="chain-scroll"):
            yield Static("", id="picture", markup=False)
        with Horizontal(id="lower"):
            with Pane(id="keys", title="Keys"):
                yield Rows(
                    bootstrap_tables.key_columns(lambda: self.bootstrap),
                    lambda key: (key.kind, key.key),
                    id="sightings",
                )
                with VerticalScroll(classes="details"):
                    yield Static("", id="key", markup=False)
            with Pane(id="forecast", title="Forecast"), VerticalScroll(id="dates-scroll"):
                yield Static("", id="dates", markup=False)

    @property
    def bootstrap(self) -> AgentBootstrap | None:
        """The steps of the selected agent; None until they were read."""
        agents: Rows[AgentBootstrap] = self.query_one("#agent-list", Rows)
        return agents.item

    @property
    def agent(self) -> str:
        return self.bootstrap.certname if self.bootstrap else ""

    def heading(self) -> str:
        day = f" as of {stamp(self._at)}" if self._at is not None else ""
        name = self.bootstrap.certname if self.bootstrap else self._wanted
        of = f" of {clean(name)}" if name else ""
        number = len(self.query_one("#agent-list", Rows).items)
        if self._unread and not number:
            return f"bootstrap{of}{day}: {clean(self.source.path.name)} {self._unread}"
        title = f"bootstrap{of}{day}: {plural(number, 'agent')} in {clean(self.source.path.name)}"
        if not self._reading and self.source.indexing:
            return f"{title}   reading {self.source.state.last:,} of {self.source.total:,} records"
        return f"{title}   {self._reading}".rstrip()

    @property
    def _unread(self) -> str:
        """Why nothing could be read; empty if it could."""
        trouble = self.source.trouble
        return self._trouble or (unread(trouble) if trouble else "")

    # -- reading ----------------------------------------------------------------------------------------

    def opened(self) -> None:
        self.lay_out()
        self.query_one("#step-list" if self._wanted else "#agent-list").focus()

    def update(self) -> None:
        """Read the new records, with pauses while the capture grows."""
        if self._revision != self.source.revision and not self._reading and time.monotonic() >= self._rests:
            self._revision = self.source.revision
            self._reading = "reading ..."
            self.run_worker(self._read, thread=True, group="bootstraps")
        super().update()

    @property
    def _whole(self) -> bool:
        """Whether the whole capture was known at the last reading."""
        return not self.source.indexing and self._revision == self.source.revision

    def _read(self) -> None:
        worker, began = get_current_worker(), time.monotonic()

        def progress(at: int, total: int) -> bool:
            self.later(self._progress, f"reading {at:,} of {total:,}")
            return not worker.is_cancelled

        trouble = ""
        try:
            if self._wanted and self._bootstraps is None:
                self._judge(bootstrap_reading.read(self.source, progress, self._wanted))
            self._judge(bootstrap_reading.read(self.source, progress))
        except bootstrap_reading.ReadingCancelled:
            return
        except InspectorError as error:
            trouble = unread(error)
        except (msgspec.MsgspecError, ValueError) as error:
            trouble = unread(error)
        self.later(self._done, trouble, RARE * (time.monotonic() - began))

    def _judge(self, found: Bootstraps) -> None:
        """Evaluate the steps of all agents and show them; called in a thread."""
        at = time.time() if self._at is None else self._at
        self.later(self._show, found, [found.of(name, at) for name in found.names()])

    def _progress(self, text: str) -> None:
        self._reading = text
        super().update()

    def _done(self, trouble: str, rest: float) -> None:
        self._reading = ""
        self._trouble = trouble
        rest = max(rest, AGAIN) if trouble else rest
        self._rests = time.monotonic() + rest
        self.set_timer(rest + 0.01, self.update)
        if trouble:
            self._revision = -1  # try again
            self.show_message(f"{self.source.path.name} {trouble}" if self._bootstraps else "", stays=True)
        elif self._whole:
            wanted, self._wanted = self._wanted, None
            if wanted and all(agent.certname != wanted for agent in self.query_one("#agent-list", Rows).items):
                self.show_message(f"No certificate requests of {wanted} are in this capture.")
        self._choose(first=False)
        super().update()

    def _show(self, found: Bootstraps, agents_read: list[AgentBootstrap]) -> None:
        self._bootstraps = found
        agents: Rows[AgentBootstrap] = self.query_one("#agent-list", Rows)
        first = not agents.items
        agents.show(agents_read)
        stuck = next((agent.certname for agent in agents_read if agent.stuck), None)
        if first and (name := self._wanted or stuck):
            agents.go(name)
        if first and len(agents_read) == 1 and self.current == "agents":
            self.enter("steps")
        self._choose(first=first)
        super().update()

    # -- the chosen agent ---------------------------------------------------------------------------------

    def on_rows_moved(self, event: Rows.Moved[object]) -> None:
        """Show what belongs to the selected line."""
        match event.rows.id:
            case "agent-list":
                self._choose(first=True)
            case "step-list":
                self._show_step()
            case _:
                self._show_key()

    def _choose(self, *, first: bool) -> None:
        bootstrap = self.bootstrap
        steps: Rows[BootstrapStep] = self.query_one("#step-list", Rows)
        keys: Rows[KeySighting] = self.query_one("#sightings", Rows)
        steps.show(bootstrap.steps if bootstrap else ())
        keys.show(bootstrap.keys if bootstrap else ())
        stuck = bootstrap.stuck.state if bootstrap and bootstrap.stuck else None
        if first:
            steps.move_to(max((at for at, step in enumerate(steps.items) if step.state is stuck), default=0))
        where: Text | str = bootstrap_tables.stuck(bootstrap)
        if bootstrap is None and self._unread:
            where = self._unread
        elif bootstrap is None and (self._reading or not self._whole):
            where = "reading ..."
        self.query_one("#stuck", Static).update(where)
        self.query_one("#dates", Static).update(bootstrap_tables.dates(bootstrap))
        self._show_chain()
        self._show_step()
        self._show_key()
        self.retitle()

    def _show_chain(self) -> None:
        bootstrap, width = self.bootstrap, self.app.size.width - 4
        at = time.time() if self._at is None else self._at
        picture = trust_picture.picture(chain_of(bootstrap, at), width) if bootstrap else Text("")
        self.query_one("#picture", Static).update(picture)

    def _show_step(self) -> None:
        steps: Rows[BootstrapStep] = self.query_one("#step-list", Rows)
        self.query_one("#step", Static).update(bootstrap_tables.step(steps.item))

    def _show_key(self) -> None:
        keys: Rows[KeySighting] = self.query_one("#sightings", Rows)
        self.query_one("#key", Static).update(bootstrap_tables.key(keys.item, self.bootstrap))

    def on_rows_chosen(self, event: Rows.Chosen[AgentBootstrap | BootstrapStep | KeySighting]) -> None:
        """Go on to the steps of the selected agent, or open the first record of a step or a key."""
        if event.rows.id == "agent-list":
            self.enter("steps")
            return
        seq = cast("BootstrapStep | KeySighting", event.item).seqs[0]
        run = self.source.owner(seq)
        self.inspector.open_exchange(run.number if run else None, seq)

    # -- keys -------------------------------------------------------------------------------------------

    def target(self, pane: str) -> Widget:
        return self.query_one(_FOCUS[pane])

    def lay_out(self) -> None:
        super().lay_out()
        tall = self.app.size.height >= TALL
        lower = self.current in ("keys", "forecast")
        self.query_one("#upper").set_class(self.narrow and self.current not in ("agents", "steps"), "gone")
        # Not tall enough for both: the one below gives way to the picture, unless it has the focus.
        self.query_one("#lower").set_class(not lower and (self.narrow or not tall), "gone")
        self.query_one("#chain").set_class((self.narrow and self.current != "chain") or (lower and not tall), "gone")
        self.set_class(not self.narrow and not tall, "-medium")
        steps: Rows[BootstrapStep] = self.query_one("#step-list", Rows)
        steps.set_columns(bootstrap_tables.step_columns(narrow=self.narrow))
        self._show_chain()

    def action_date(self) -> None:
        """Evaluate as of another date."""
        day = utc_day(self._at) if self._at is not None else ""
        self.ask("evaluate as of (YYYY-MM-DD, empty: now): ", self._judge_as_of, day, accept="Evaluate")

    def _judge_as_of(self, text: str) -> None:
        try:
            day = clocks.iso(text.strip()) if text.strip() else None
        except (ValueError, OverflowError):
            self.show_message(f"{text!r} is not a date; write it as 2027-03-02.")
            return
        self.show_message("")
        self._at = day
        if (found := self._bootstraps) is not None:
            self.run_worker(lambda: self._judge(found), thread=True, exclusive=True, group="judge")

    def copy_value(self) -> str | None:
        """The fingerprint of the selected key."""
        keys: Rows[KeySighting] = self.query_one("#sightings", Rows)
        return keys.item.fingerprint if keys.item else None

    def action_copy(self) -> None:
        """Copy the fingerprint."""
        self.inspector.copy_text(self.copy_value(), "the fingerprint")
