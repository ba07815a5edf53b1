"""``puppet-inspector open``: browse a capture in the terminal (the default command)."""

from __future__ import annotations

import gc
import time
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.arguments import add_master_logs, add_rules, logs_named, must_be_terminal

if TYPE_CHECKING:
    import argparse

EXAMPLE = "puppet-inspector open captures/FILE.sqlite"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "capture",
        type=Path,
        nargs="?",
        help="a capture, a directory: the newest in it (of several places all, as one), or a directory of tables: the "
        "fleet (default: captures/)",
    )
    parser.add_argument(
        "--theme", choices=("dark", "light", "contrast"), help="colours; remembered (default: the last one chosen)"
    )
    parser.add_argument("--bell", action="store_true", help="ring the terminal's bell when a run fails")
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")
    add_master_logs(parser)
    add_rules(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Browse the runs, exchanges, findings and bootstraps of a capture in the terminal, also while a proxy writes it;
    of a directory the newest capture, as soon as there is one; those of several places as one, once none is recorded
    any more. Press `?` for the keys.
    Marks and notes are stored in a file beside the capture, and so is an index, which can be deleted."""
    from inspector.capture import paths, places
    from inspector.cli.reading import across_places

    must_be_terminal("Use `puppet-inspector runs`, `list` or `check` (--help).")
    # The modules loaded now are never garbage: without collection the first screen comes a tenth sooner.
    gc.disable()
    from inspector.fleet.layout import has_tables
    from inspector.tui import app

    given = arguments.capture or paths.FOLDER
    folder = given.is_dir() or given == paths.FOLDER
    if logs_named(arguments):
        from inspector.cli import master_logs
        from inspector.cli.progress import shown

        given = paths.chosen([given])[-1] if folder else given
        with shown() as watch:
            times = master_logs.read(arguments, given, watch)
        return app.run(given, ascii_only=arguments.ascii, theme=arguments.theme, bell=arguments.bell, times=times)
    if has_tables(given):
        return app.run_fleet(given, ascii_only=arguments.ascii, theme=arguments.theme)
    found = sorted(given.glob("*.sqlite")) if folder else []
    # What is read as one is not followed.
    if places.several(found) and not places.recorded_now(found, time.time()):
        with across_places(found, [given]) as (chosen, _):
            return app.run(
                chosen[0], ascii_only=arguments.ascii, theme=arguments.theme, bell=arguments.bell, temporary=True
            )
    if folder:
        return app.run_newest(given, ascii_only=arguments.ascii, theme=arguments.theme, bell=arguments.bell)
    return app.run(given, ascii_only=arguments.ascii, theme=arguments.theme, bell=arguments.bell)
