"""``--with``, which opens what ``export`` and ``share`` withhold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.errors import InspectorError
from inspector.formats.outgoing import ALL, Content

if TYPE_CHECKING:
    import argparse


def add_opening(parser: argparse.ArgumentParser) -> None:
    """Add ``--with``, which opens what is withheld."""
    parser.add_argument(
        "--with",
        dest="opened",
        default="",
        metavar="KINDS",
        help="do not withhold these, only mask secrets in them: facts, parameters, logs, files (separated by commas), "
        "or all",
    )


def opened_by(text: str) -> frozenset[Content]:
    """Return the kinds of content that ``--with`` names. Raises InspectorError."""
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    known = [str(content) for content in Content if content is not Content.OTHER]
    if wrong := [name for name in names if name not in (*known, "all")]:
        raise InspectorError(f"--with does not know {wrong[0]!r}.", f"Choose from {', '.join(known)}, or all.")
    return ALL if "all" in names else frozenset(map(Content, names))
