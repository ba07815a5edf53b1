"""Where things are that tests need: nothing else in tests/ goes up from ``__file__``."""

from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
DOCS = ROOT / "docs"
SCHEMAS = DOCS / "json"
SAMPLES = ROOT / "captures" / "samples"
GOLDEN = TESTS / "golden"
RECORDINGS = ROOT.parent / "shared" / "recordings"
"""Recordings of real agents and masters; they are not part of the repository and may be missing."""
