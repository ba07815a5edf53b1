"""Reports of captures in tests: their content, their page, and a browser that opens it."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from inspector.report import page
from inspector.report.content import gathered
from inspector.report.copies import Selection, leaving
from tests.support.places import SAMPLES
from tests.support.programs import program

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Dialog, Page, Request

    from inspector.report.content import ReportContent
    from inspector.report.copies import LeavingCapture

ATTACK = (
    "</script><script>alert('ran')</script>\"><img src=x onerror=alert('ran')><svg/onload=alert('ran')>'--><b>{{7*7}}"
)
"""Text that runs in a page which does not escape it."""


def sample(name: str) -> Path:
    return SAMPLES / f"{name}.sqlite"


@contextlib.contextmanager
def copied(path: Path, **given: Any) -> Iterator[LeavingCapture]:
    """The copy of a capture that a report is made of."""
    selection = Selection(given.pop("run", None), given.pop("agent", None), given.pop("filter", ""))
    with leaving(path, selection, **given) as copy:
        yield copy


def content_of(path: Path, *, bodies: bool = True, **given: Any) -> ReportContent:
    """What a page shows of a capture, whose copy is gone already."""
    with copied(path, **given) as copy:
        content = gathered(copy, bodies=bodies)
        content.sections = list(content.sections)
        return content


def html_of(path: Path, **given: Any) -> str:
    """The page of a capture."""
    return page.html(content_of(path, **given))


class Opened(NamedTuple):
    """A page in a browser."""

    page: Page
    troubles: list[str]
    """What the console reported, what a dialog said, and what was requested besides the page itself."""


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """Debian's Chromium, without a window."""
    from playwright.sync_api import sync_playwright

    found = program("chromium", "chromium")
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with (
        sync_playwright() as driver,
        contextlib.closing(driver.chromium.launch(executable_path=found, args=options)) as it,
    ):
        yield it


@contextlib.contextmanager
def opened(it: Browser, path: Path, fragment: str = "", **options: Any) -> Iterator[Opened]:
    """Open a page from a file, as a double click does."""
    context = it.new_context(**options)
    with contextlib.closing(context):
        shown = context.new_page()
        troubles: list[str] = []

        def refuse(dialog: Dialog) -> None:
            troubles.append(f"dialog: {dialog.message}")
            dialog.dismiss()

        def note(request: Request) -> None:
            if request.url.partition("#")[0] != path.as_uri():
                troubles.append(request.url)

        shown.on("console", lambda message: troubles.append(message.text))
        shown.on("pageerror", lambda error: troubles.append(str(error)))
        shown.on("dialog", refuse)
        shown.on("request", note)
        shown.goto(path.as_uri() + fragment)
        if options.get("java_script_enabled", True):
            shown.wait_for_selector("html[data-ready]", state="attached")
        yield Opened(shown, troubles)
