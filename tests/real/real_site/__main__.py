"""A site of real modules, recorded: ``python -m tests.real.real_site DIRECTORY`` (as root, half an hour)."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.real.machine import missing
from tests.real.real_site import record


def main() -> None:
    """Record it in a directory."""
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    if reason := missing():
        raise SystemExit(reason)
    directory = Path(sys.argv[1]).resolve()
    directory.mkdir(parents=True, exist_ok=True)
    record.everything(record.Recorded(directory))


if __name__ == "__main__":
    main()
