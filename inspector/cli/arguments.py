"""Arguments that several commands have, and how they are read."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from inspector.errors import InspectorError
from inspector.proxy.options import capture_path

if TYPE_CHECKING:
    import argparse
    from pathlib import Path


def add_filter(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--filter",
        default="",
        metavar="TERMS",
        help="only what all of these hold for: 'phase:catalog status:>=400 agent:web* !rule:B01 words' (README)",
    )


def capture_to_write(arguments: argparse.Namespace) -> Path:
    return capture_path(arguments.output or "")


def moment(text: str) -> float:
    """A day or a moment in ISO 8601 (UTC unless it says otherwise), in seconds since the epoch."""
    try:
        moment = datetime.datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp()
    except (ValueError, OverflowError) as error:
        raise InspectorError(f"{text!r} is no date.", "Write it as 2027-03-02 or 2027-03-02T07:00:00Z.") from error
