"""The plan of the Puppet module. Bolt cannot be had: Puppet's own library plays the plan, and plan.rb does what it asks
of Bolt, over ssh."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.real.over_ssh import MODULE, NAME, reached
from tests.support import packages
from tests.support.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.over_ssh import Node
    from tests.real.through import Stage

PLAYER = ROOT / "tests/real/plan.rb"
PLAN = "puppet_inspector::one_run"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with reached(tmp_path_factory.mktemp("node")) as machine:
        yield machine


def _played(tmp_path: Path, targets: dict[str, list[str]], **parameters: object) -> dict[str, Any]:
    """Play the plan; return what it returns, by target. ``targets`` begin commands that are run there."""
    own = tmp_path / "own"
    (own / "modules").mkdir(parents=True)
    (own / "modules/puppet_inspector").symlink_to(MODULE)
    given = {
        "plan": PLAN,
        "parameters": {"targets": [*targets], "file": str(packages.one_file()), **parameters},
        "modulepath": str(own / "modules"),
        "downloads": str(tmp_path / "downloads"),
        "targets": targets,
        "own": str(own),
    }
    done = subprocess.run(["ruby", PLAYER], input=json.dumps(given), capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_the_runs_of_all_nodes_come_back(
    node: Node, stage: Stage, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Of one that succeeds and one that fails; the third cannot be reached."""
    with reached(tmp_path_factory.mktemp("failing")) as failing:
        failing.enrol(stage, server="nowhere.invalid")
        command = node.enrol(stage)
        targets = {"good.example": node.words, "failing.example": failing.words, "away.example": ["false"]}
        answer = _played(tmp_path, targets, command=command)
        assert (node.left(), failing.left()) == ([], [])
    good, bad, away = (answer[name] for name in targets)
    assert (good["status"], bad["status"]) == (2, 1)
    assert [(run["certname"], run["outcome"]) for run in good["runs"]] == [(NAME, "complete")]
    assert [run["verdict"]["cause"] for run in bad["runs"]] == ["T19"]
    assert "away.example" in away["_error"]["msg"]
    place = tmp_path / "downloads/puppet-inspector"
    assert sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()) == [
        "failing.example/results/report.html",
        "failing.example/results/shared.sqlite",
        "good.example/results/report.html",
        "good.example/results/shared.sqlite",
    ]
    assert NAME in (place / "good.example/results/report.html").read_text()


@pytest.mark.parametrize(
    ("given", "message"),
    [({"command": ["/nowhere"]}, "The run was not recorded"), ({"file": "/nowhere"}, "There is no /nowhere.")],
)
def test_nothing_stays_after_an_error(node: Node, tmp_path: Path, given: dict[str, Any], message: str) -> None:
    answer = _played(tmp_path, {"good.example": node.words}, **given)
    assert message in json.dumps(answer["good.example"]["_error"])
    assert node.left() == []
    assert not (tmp_path / "downloads").exists()
