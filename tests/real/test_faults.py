"""One fault of each kind is made with a real agent and master: its cause is named, and its fix works as it is written.

They take turns at the two roads. All of them are played by ``make faults``, on either road, which writes their table
into docs/diagnosis.md.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.real.faults.engine import play
from tests.real.faults.every import ALL, EXAMPLES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.faults.engine import Fault
    from tests.real.puppet import RealMaster


def _missing(program: str) -> None:
    if program and not shutil.which(program):
        reason = f"not installed: {program} (apt-get install faketime nginx-light)"
        if os.environ.get("PUPPET_INSPECTOR_REAL") == "required":
            pytest.fail(reason)
        pytest.skip(reason)


def test_every_kind_has_an_example() -> None:
    assert {fault.kind for fault in EXAMPLES} == {fault.kind for fault in ALL}
    assert len({fault.name for fault in ALL}) == len(ALL)


PLAYED = [
    pytest.param(fault, number % 2 == 0, id=f"{fault.name}-{'mitmdump' if number % 2 else 'proxy'}")
    for number, fault in enumerate(EXAMPLES)
]


@pytest.mark.parametrize(("fault", "own"), PLAYED)
def test_the_cause_is_named_and_the_fix_works(master: RealMaster, tmp_path: Path, fault: Fault, own: bool) -> None:
    _missing(fault.needs)
    tally = play(fault, master, tmp_path, own=own)
    assert tally.right, "\n".join(tally.log)
    assert tally.works, "\n".join(tally.log)
    assert not tally.alarms, "\n".join(tally.log)
