"""Run a command as a user who may read only what everybody may."""

from __future__ import annotations

import subprocess
import sys

NOBODY = 65534
# The interpreter and its modules may be where only root can read: they are loaded before the user changes.
_CODE = f"""
import encodings.idna, importlib, os, subprocess, sys
module = importlib.import_module("inspector.cli." + sys.argv[1])
from inspector.cli import main
os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
sys.exit(main.main(sys.argv[1:]))
"""


def as_nobody(*command: object) -> tuple[int, str, str]:
    """Run a command of the inspector as this user: exit status, stdout, stderr. Only root can."""
    done = subprocess.run(
        [sys.executable, "-c", _CODE, *map(str, command)], capture_output=True, text=True, timeout=300, cwd="/",
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr
