"""The processes of `puppet-inspector proxy`: one, or several on one port that record into one capture."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_ROOT = str(Path(__file__).resolve().parent.parent)
_RUN = "import sys; sys.path.insert(0, sys.argv.pop(1)); from inspector.server import main; sys.exit(main(sys.argv[1:]))"


def command(given: Mapping[str, str], *, worker: bool) -> list[str]:
    """What starts a server. mitmproxy checks its own types with assertions all the time: -O leaves them out."""
    return [sys.executable, "-O", "-P", "-c", _RUN, _ROOT, json.dumps(dict(given)), str(int(worker))]


def run(given: Mapping[str, str], number: int) -> int:
    """Serve until a signal comes; the exit status."""
    if number == 1:
        alone = command(given, worker=False)
        os.execv(alone[0], alone)
    raise NotImplementedError
