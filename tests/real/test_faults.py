"""One fault of each kind is made with a real agent and master: its cause is named, and its fix works as it is written.

They take turns at the three ways. All of them are played by ``make faults``, on any of them, which writes their table
into docs/diagnosis.md.
"""

from __future__ import annotations

import itertools
import os
import shutil
from typing import TYPE_CHECKING, get_args

import pytest

from tests.real.faults.engine import Way, play
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
    pytest.param(fault, way, id=f"{fault.name}-{way}")
    for fault, way in zip(EXAMPLES, itertools.cycle(get_args(Way.__value__)))
]


@pytest.mark.parametrize(("fault", "way"), PLAYED)
def test_the_cause_is_named_and_the_fix_works(master: RealMaster, tmp_path: Path, fault: Fault, way: Way) -> None:
    _missing(fault.needs)
    tally = play(fault, master, tmp_path, way=way)
    assert tally.right, "\n".join(tally.log)
    assert tally.works, "\n".join(tally.log)
    assert not tally.alarms, "\n".join(tally.log)
    assert not tally.harm, "\n".join(tally.harm)
