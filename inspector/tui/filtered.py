"""Filters on the screen: typed with completion, read in a thread, and saved under a name for all captures."""

from __future__ import annotations

import json
from collections import deque
from typing import TYPE_CHECKING

from textual.worker import get_current_worker

from inspector.errors import InspectorError
from inspector.text import clean
from inspector.tui import user_state
from inspector.tui.view import View, unread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from textual.worker import Worker

    from inspector.summaries.filtering import Progress

MOST = 100
"""Maximum number of saved filters; the one saved first is dropped."""
LONGEST = 40
"""Characters of a name."""
SAVE = "save this one as ..."
"""The line of the saved filters that saves the current one."""
_FILE = "filters.json"


def all_saved() -> dict[str, str]:
    """Return the saved filters by name."""
    return {
        name: text
        for name, text in user_state.read_object(_FILE).items()
        if isinstance(text, str) and clean(name) == name and clean(text) == text
    }


def save(name: str, text: str) -> None:
    """Save a filter under a name, in the place of the one that has it."""
    saved = all_saved()  # another process may have written since
    saved.pop(name, None)
    _write({**saved, clean(name.strip())[:LONGEST]: text})


def remove(name: str) -> None:
    """Remove a saved filter."""
    _write({other: text for other, text in all_saved().items() if other != name})


def _write(saved: dict[str, str]) -> None:
    user_state.write(_FILE, json.dumps(dict(list(saved.items())[-MOST:]), indent=1))


class Filtered(View):
    """A view whose list can be filtered."""

    def __init__(self) -> None:
        super().__init__()
        self._filter = ""
        """The filter that is applied; empty: none."""
        self._filter_worker: Worker[None] | None = None
        self.filter_trouble = ""
        """Why the records that a filter needs could not be read."""

    def filter_changed(self) -> None:
        """Forget what was shown for the previous filter; called before ``update``."""

    # -- keys -------------------------------------------------------------------------------------------

    def action_filter(self) -> None:
        """Ask for a filter."""
        self.ask_filter()

    def ask_filter(self, preview: Callable[[str], str] | None = None) -> None:
        """Ask for a filter, with completion; ``preview`` says what a text would do, while it is typed."""
        from inspector.summaries import completion, filtering

        # The records that the filter reads are loaded while the user types.
        if self.source.last <= filtering.MANY:
            self.app.run_worker(lambda: deque(self.source.pages(), 0), thread=True, group="briefs", exclusive=True)
        runs = self.source.runs
        values = {
            "agent": sorted({run.name for run in runs}),
            "env": sorted({run.environment for run in runs if run.environment}),
            "version": sorted({run.agent_version for run in runs if run.agent_version}),
            "rule": sorted({finding.rule for run in runs for finding in run.findings}),
        }
        self.ask(
            "filter: ",
            self.set_filter,
            self._filter,
            complete=lambda text: completion.complete(text, values),
            history="filter",
            preview=preview,
            accept="Filter",
        )

    def action_saved(self) -> None:
        """Choose one of the saved filters, or save the current one."""
        from inspector.tui.chooser import Choice, Chooser

        saved, current = all_saved(), self._filter
        if not saved and not current:
            self.show_message("No filter is saved yet: f filters, then P saves the filter under a name.")
            return

        def save_as(name: str) -> None:
            if name.strip():
                save(name, current)
                self.show_message(f"saved: {name.strip()}")

        def take(name: str | None) -> None:
            if name == SAVE:
                self.ask("save the filter as: ", save_as, accept="Save")
            elif name is not None:
                self.set_filter(saved[name])

        choices = [Choice(SAVE, current)] if current else []
        choices += [Choice(name, text) for name, text in saved.items()]
        self.app.push_screen(Chooser("Saved filters", choices, remove=remove), take)

    def set_filter(self, text: str) -> None:
        """Apply a filter. An invalid one is reported, and the one before it stays."""
        self.cancel_filter()
        before, self._filter = self._filter, text.strip()
        self.filter_changed()
        if not self.attempt(self.update):
            self._filter = before
            self.update()

    def action_back(self) -> None:
        """Cancel a filter that is being read, clear the filter, or leave."""
        if self.cancel_filter() or self._filter:
            self.set_filter("")
        else:
            super().action_back()

    # -- reading what matches ---------------------------------------------------------------------------

    def start_filter[T](self, start: Callable[[], Iterator[Progress[T]]], then: Callable[[list[T]], None]) -> None:
        """Read what matches a filter in a thread and show the progress; Escape cancels.

        ``start`` is called at once, ``then`` with everything found, followed by ``update``. While ``filter_running`` is
        true a view does not start again, even if the capture grows. Raises InspectorError for an invalid filter.
        """
        found: list[T] = []
        progress = start()

        def read() -> None:
            worker = get_current_worker()
            try:
                for done, total, some in progress:
                    if worker.is_cancelled:
                        return
                    found.extend(some)
                    if done < total:
                        self.later(self._show_progress, f"reading {done:,} of {total:,} (Escape cancels)")
            except InspectorError as error:
                self.later(self._filter_done, worker, found, then, unread(error))
                return
            self.later(self._filter_done, worker, found, then)

        if self._filter_worker is not None:
            self._filter_worker.cancel()
        self._filter_worker = self.run_worker(read, thread=True, group="filter")

    def _show_progress(self, text: str) -> None:
        self.show_message(text, stays=True)

    def _filter_done[T](
        self, worker: Worker[None], found: list[T], then: Callable[[list[T]], None], trouble: str = ""
    ) -> None:
        if worker is self._filter_worker:  # it may have been cancelled at the last moment
            self._filter_worker = None
            self.filter_trouble = trouble
            self.show_message(trouble, stays=True)
            then(found)
            self.update()

    @property
    def filter_running(self) -> bool:
        """Whether a filter is being read in a thread."""
        return self._filter_worker is not None and not self._filter_worker.is_finished

    def cancel_filter(self) -> bool:
        """Cancel the filter that is being read; False if there is none."""
        if self._filter_worker is None or self._filter_worker.is_finished:
            return False
        self._filter_worker.cancel()
        self._filter_worker = None
        self.show_message("cancelled")
        return True
