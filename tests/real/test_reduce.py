"""A reduced capture is replayed to a real agent: it prints the same as when the fault was recorded."""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING

import pytest

from inspector.formats import reduction
from inspector.formats.outgoing import Content
from inspector.formats.reduction import Effort, chosen
from inspector.progress import unwatched
from inspector.replay import recording
from inspector.replay.enrolment import ATTRIBUTES
from inspector.runs.examples import catalog, node, plugins, talk
from inspector.summaries import reading
from tests.real.agent import RealAgent
from tests.support.captures import save
from tests.support.replays import NAME, replayed, sample, served

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.formats.reduction import Reduction
    from inspector.replay.master import Served
    from tests.real.agent import CompletedRun


@pytest.fixture(autouse=True)
def _real() -> None:
    if os.geteuid() != 0 or shutil.which("puppet") is None:
        required = os.environ.get("PUPPET_INSPECTOR_REAL") == "required"
        (pytest.fail if required else pytest.skip)("needs root, and puppet-agent")


def played(folder: Path, capture: Path, opened: frozenset[Content]) -> tuple[Reduction, CompletedRun, list[Served]]:
    """Reduce a capture to its cause, and let an agent run against a replay of the result."""
    target, found = folder / "reduced.sqlite", reading.read(capture)
    made = reduction.reduce(found, target, chosen(found), opened, Effort(600))
    replay = recording.read(target, unwatched)
    agent = RealAgent(folder / "agent", replay.certname)
    with replayed(folder, replay) as master:
        shutil.copy(folder / "replay" / ATTRIBUTES, agent.confdir)
        done = agent.run(server=NAME, port=master.address[1])
    return made, done, served(master)


def test_a_catalog_that_is_not_compiled(tmp_path: Path) -> None:
    made, done, happened = played(tmp_path, sample(tmp_path, "compile-error"), frozenset({Content.LOGS}))
    assert (made.left.records, made.after.is_cause, made.after.finding.rule) == (1, True, "S01")
    assert done.status == 1, done.output
    assert "no role for this node" in made.after.finding.printed
    assert made.after.finding.printed in done.output
    again = reading.read(save(tmp_path / "again.sqlite", *(one.record for one in happened)))
    # What was reduced away it asks for in vain: that is found as well.
    printed = {finding.printed for run in again.briefs for finding in run.findings if finding.rule == "S01"}
    assert printed == {made.after.finding.printed}


def test_a_catalog_with_a_cycle(tmp_path: Path) -> None:
    """The resources that are left are those of the cycle, and an agent reads what is left of the catalog."""
    needs = {3: 17, 17: 28, 28: 3}
    resources = [
        {"type": "Notify", "title": f"n{number}", "tags": ["notify"], "file": "/m/site.pp", "line": number + 1,
         "exported": False,
         "parameters": {"message": "x"} | ({"require": f"Notify[n{needs[number]}]"} if number in needs else {})}
        for number in range(30)
    ]  # fmt: skip
    talked = talk(node(), plugins(), catalog(resources=resources, edges=[], classes=["a", "b"], version=1, tags=[]))
    made, done, _ = played(tmp_path, save(tmp_path / "a.sqlite", *talked), frozenset())
    assert (made.left.records, made.after.finding.rule) == (1, "P15")
    assert made.left.bodies < made.whole.bodies / 5
    printed, found = made.after.finding.printed, r"Notify\[[^]]+\]"
    assert "Found 1 dependency cycle:" in printed
    assert "Found 1 dependency cycle:" in done.output
    # It begins where it likes.
    assert {*re.findall(found, done.output)} == {*re.findall(found, printed)}
    assert len({*re.findall(found, printed)}) == 3
