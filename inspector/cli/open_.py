"""``puppet-inspector open``: look into a capture on the whole terminal (also: no command at all)."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.errors import InspectorError

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("capture", type=Path, nargs="?", help="default: the latest in captures/")
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")


def execute(arguments: argparse.Namespace) -> int:
    """The terminal inspector: runs, exchanges, findings and the certificate bootstrap of a capture, also while a
    proxy writes it. All keys are under `?`. Marks and notes are kept in a file beside the capture, and an index that
    can be thrown away."""
    from inspector.capture import paths

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InspectorError("This is no terminal.", "Without one: `puppet-inspector runs`, `list`, `check` (--help).")
    # Nothing of what is loaded now is ever garbage: not to look for it saves a tenth of the time to the first screen.
    gc.disable()
    from inspector.tui import app

    return app.run(arguments.capture or paths.newest(), ascii_only=arguments.ascii)
