"""The tables that a command is given; or those that it makes of captures, for as long as it runs."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.capture import paths
from inspector.cli.progress import shown
from inspector.cli.reading import Unreadable
from inspector.errors import InspectorError
from inspector.fleet import conversion
from inspector.fleet.directory import TableDirectory, default_site

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@contextlib.contextmanager
def opened(given: Sequence[Path], *, rules: bool = False) -> Iterator[tuple[TableDirectory, int]]:
    """Open a directory of tables, or make them of captures in a temporary one; also the exit status if nothing else is
    wrong. With ``rules`` the command line names the site's rules. Raises InspectorError."""
    tables = [path for path in given if path.is_dir() and not any(path.glob("*.sqlite"))]
    if not tables:
        with tempfile.TemporaryDirectory(prefix="puppet-inspector-") as folder:
            status = _convert(given, Path(folder))
            yield TableDirectory.open(Path(folder)), status
        return
    if len(given) > 1:
        raise InspectorError(
            f"{tables[0]} is a directory without captures, and not the only argument.",
            "Give one directory of tables, or captures.",
        )
    if rules:
        raise InspectorError(
            "Rules are applied when captures are read, not to tables.",
            "Convert the captures with them: puppet-inspector tables CAPTURE -o DIR --rules YAML",
        )
    yield TableDirectory.open(tables[0]), 0


def _convert(given: Sequence[Path], folder: Path) -> int:
    captures = paths.chosen(given)
    unreadable = Unreadable(captures)
    with shown() as watch:
        directory = TableDirectory.create(folder)
        for result in conversion.convert_all(captures, directory, default_site(), watch):
            if result.error is not None:
                unreadable.report(result.error)
    return unreadable.status
