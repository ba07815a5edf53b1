"""The process beside a proxy that writes tables (``tables_writer``)."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from inspector import rules
from inspector.analysis import limits
from inspector.capture import paths
from inspector.errors import InspectorError
from inspector.fleet import conversion
from inspector.fleet.directory import TableDirectory, default_site
from inspector.proxy import side_process
from inspector.summaries import ruleset


def main(argv: list[str]) -> int:
    """Run with ``PROXY DIRECTORY CAPTURE RULES...``: the process number of the proxy, the directory of the tables, the
    capture that it is writing, and the options with the site's rules."""
    side_process.attend(int(argv[0]))
    limits.arm()
    failed = ""
    try:
        rules.use(ruleset.load_options(argv[3:], time.time()))
        directory = TableDirectory.create(Path(argv[1]))
        captures = sorted(Path(argv[2]).parent.glob("*.sqlite"), key=paths.written)
        for result in conversion.convert_all(captures, directory, default_site()):
            if result.error is not None:
                failed = result.error.message
        directory.compact(conversion.today())
    except InspectorError as error:
        failed = error.message
    print(failed, file=sys.stderr)
    return 1 if failed else 0
