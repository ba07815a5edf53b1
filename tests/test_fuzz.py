"""Every reader of files gives one sentence or what can be read, whatever the file: a few mutants here, more if slow.

`python -m tests.bench.soak fuzz` plays 10,000 of each.
"""

from __future__ import annotations

import os
import random
import signal
from typing import TYPE_CHECKING

import pytest

from tests.support import fuzz, mutants

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.parametrize("name", fuzz.READERS)
def test_a_few_mutants_are_read_or_refused_in_one_sentence(name: str, tmp_path: Path) -> None:
    assert list(fuzz.faults(name, range(8), tmp_path)) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", fuzz.READERS)
def test_mutants_are_read_or_refused_in_one_sentence(name: str, tmp_path: Path) -> None:
    assert list(fuzz.faults(name, range(8, 150), tmp_path)) == []


def test_a_mutant_is_the_same_every_time() -> None:
    data = b'{"a": [1, 2, {"b": "c"}]}'
    for change in (mutants.json_changed, mutants.flipped, mutants.cut, mutants.lines_changed):
        once, again = (change(random.Random(7), data) for _ in range(2))  # noqa: S311
        assert once == again


NOTHING: dict[str, int] = {}
FAULTS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "an exception": ("KeyError", lambda _: NOTHING["x"]),
    "a hang": ("hangs", lambda _: signal.raise_signal(signal.SIGPROF)),
    "a wait": ("hangs", lambda _: signal.raise_signal(signal.SIGALRM)),
    "a control character": ("prints '\\x1b'", lambda _: print("\x1b")),
    "a traceback": ("prints Traceback", lambda _: print("Traceback")),
    "much memory": ("needs", lambda _: bytearray(os.urandom(1024)) * 700_000),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_the_player_sees(name: str, tmp_path: Path) -> None:
    sentence, do = FAULTS[name]
    reader = fuzz.Reader(lambda folder: (folder / "x").touch(), ("x",), lambda _chance, _path: None, (), do)
    (tmp_path / "valid").mkdir()
    reader.make(tmp_path / "valid")
    for _ in range(2):  # what one play needed does not hide what the next needs
        assert sentence in (fuzz.play(reader, 1, tmp_path / "valid", tmp_path / "played") or "")
