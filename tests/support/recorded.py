"""Where the recordings of real agents and masters are, and their records.

The samples are part of this repository; the flow files below ``../shared/recordings`` are there for developers
and CI only.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.capture.store import Capture
from inspector.formats.importing import load
from tests.support import places

if TYPE_CHECKING:
    from inspector.model import Record

SAMPLES = sorted(places.SAMPLES.glob("*.sqlite"))
VERSIONS = sorted(places.SAMPLES.glob("versions/*.sqlite"))
"""Samples of other versions than those of the samples above."""
SHARED = places.RECORDINGS
RECORDINGS = sorted(SHARED.rglob("*.mitm"))
ABSENT = f"recordings of real agents are not part of this repository, and {SHARED} is missing: the samples are checked"


def name_of(path: Path) -> str:
    """What a sample or a recording is called: for a recording, its folder below ``SHARED``."""
    return path.relative_to(SHARED).parent.as_posix() if path.is_relative_to(SHARED) else path.stem


@cache
def records_of(path: Path) -> tuple[Record, ...]:
    """The records of a sample or (through ``import``) of a flow file."""
    if path.suffix == ".sqlite":
        return _read(path)
    with tempfile.TemporaryDirectory() as folder:
        capture = Path(folder) / "capture.sqlite"
        load([path], capture)
        return _read(capture)


def _read(path: Path) -> tuple[Record, ...]:
    with Capture.open(path) as capture:
        return tuple(capture.records())
