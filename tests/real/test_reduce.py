"""A reduced capture is replayed to a real agent: it prints the same as when the fault was recorded."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from inspector.formats import reduction
from inspector.formats.outgoing import Content
from inspector.formats.reduction import Effort, chosen
from inspector.progress import unwatched
from inspector.replay import recording
from inspector.replay.enrolment import ATTRIBUTES
from inspector.summaries import reading
from tests.real.agent import RealAgent
from tests.support.captures import save
from tests.support.replays import NAME, replayed, sample, served

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _real() -> None:
    if os.geteuid() != 0 or shutil.which("puppet") is None:
        required = os.environ.get("PUPPET_INSPECTOR_REAL") == "required"
        (pytest.fail if required else pytest.skip)("needs root, and puppet-agent")


def test_a_catalog_that_is_not_compiled(tmp_path: Path) -> None:
    source, target = sample(tmp_path, "compile-error"), tmp_path / "reduced.sqlite"
    found = reading.read(source)
    made = reduction.reduce(found, target, chosen(found), frozenset({Content.LOGS}), Effort(600))
    assert (made.left.records, made.after.is_cause) == (1, True)

    replay = recording.read(target, unwatched)
    agent = RealAgent(tmp_path / "agent", replay.certname)
    with replayed(tmp_path, replay) as master:
        shutil.copy(tmp_path / "replay" / ATTRIBUTES, agent.confdir)
        done = agent.run(server=NAME, port=master.address[1])
    assert done.status == 1, done.output
    assert made.after.finding.printed
    assert made.after.finding.printed in done.output
    again = reading.read(save(tmp_path / "again.sqlite", *(one.record for one in served(master))))
    # What was reduced away it asks for in vain: that is found as well.
    printed = {finding.printed for run in again.briefs for finding in run.findings if finding.rule == "S01"}
    assert printed == {made.after.finding.printed}
