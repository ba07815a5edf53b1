"""Files of strangers, by the thousand: two sections of the soak."""

from __future__ import annotations

import os
import sys
import tempfile
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support import fuzz
from tests.support.mutants import database_changed

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

PIECE = 250
"""Mutants of one task."""


def _mutants(task: tuple[str, range]) -> list[str]:
    name, numbers = task
    with tempfile.TemporaryDirectory() as folder:
        return list(fuzz.faults(name, numbers, Path(folder)))


def _played(given: argparse.Namespace, names: list[str]) -> Iterator[str]:
    yield "| changed files of | played | result, partial result or one sentence | faults |"
    yield "|---|---|---|---|"
    # Processes that end after some tasks: each begins with the memory of a new one.
    with get_context("spawn").Pool(os.cpu_count(), maxtasksperchild=8) as pool:
        for name in names:
            tasks = [(name, range(at, min(at + PIECE, given.mutants))) for at in range(0, given.mutants, PIECE)]
            found = [fault for some in pool.imap(_mutants, tasks) for fault in some]
            for fault in found:
                print(fault, file=sys.stderr, flush=True)
            faults = f"**{len(found)}**" if found else "0"
            yield f"| {name} | {given.mutants:,} | {given.mutants - len(found):,} | {faults} |"


def files(given: argparse.Namespace) -> Iterator[str]:
    """Changed files of every kind that is read, except databases."""
    return _played(given, [name for name, reader in fuzz.READERS.items() if reader.change is not database_changed])


def databases(given: argparse.Namespace) -> Iterator[str]:
    """Changed captures and indexes, with all commands that read them."""
    return _played(given, [name for name, reader in fuzz.READERS.items() if reader.change is database_changed])
