"""What is released, built once for all tests (``.ci/package/build.py``)."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from typing import TYPE_CHECKING

from inspector import __version__
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

DIST = ROOT / "dist"
BUILD = ROOT / "build/package"


def built() -> Path:
    """Build it, unless that was done since something changed; return its directory."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run([sys.executable, ROOT / ".ci/package/build.py", "all"], check=True, cwd=ROOT)
    return DIST


def one_file() -> Path:
    """The file with its own Python."""
    (path,) = built().glob(f"puppet-inspector-{__version__}-linux-*")
    return path


def deb(*, later: bool = False) -> Path:
    """The package; ``later``: the same one with a higher version."""
    place = built()
    (path,) = BUILD.glob("*later*.deb") if later else place.glob(f"puppet-inspector_{__version__}_*.deb")
    return path


def rpm(*, later: bool = False) -> Path:
    """The same for RHEL and SUSE."""
    place = built()
    (path,) = BUILD.glob("*later*.rpm") if later else place.glob(f"puppet-inspector-{__version__}-*.rpm")
    return path
