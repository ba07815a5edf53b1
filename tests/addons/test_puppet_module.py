"""The Puppet module: what it says of itself is what it is. (Applied and run for real: tests/real.)"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from inspector import __version__
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

MODULE = ROOT / "addons/puppet_inspector"
TASKS = sorted(MODULE.glob("tasks/*.rb"))


def test_its_version_is_the_programs() -> None:
    assert json.loads((MODULE / "metadata.json").read_text())["version"] == __version__


@pytest.mark.parametrize("task", TASKS, ids=lambda path: path.stem)
def test_a_task_takes_the_parameters_that_its_metadata_describes(task: Path) -> None:
    metadata = json.loads(task.with_suffix(".json").read_text())
    taken = re.search(r"PuppetInspector\.task\(%w\[(.*)\]\)", task.read_text())
    assert taken
    assert sorted(taken[1].split()) == sorted(metadata["parameters"])
    assert all({"description", "type"} <= set(each) for each in metadata["parameters"].values())
    assert (metadata["input_method"], metadata["files"]) == ("stdin", ["puppet_inspector/files/node.rb"])
    assert task.stat().st_mode & 0o111
    assert f"`puppet_inspector::{task.stem}`" in (MODULE / "README.md").read_text()


@pytest.mark.parametrize("path", sorted(MODULE.glob("manifests/*.pp")) + sorted(MODULE.glob("plans/*.pp")),
                         ids=lambda path: path.stem)  # fmt: skip
def test_every_parameter_is_documented(path: Path) -> None:
    text = path.read_text()
    assert text.startswith("# @summary ")
    head = re.search(r"^(?:class|plan) [a-z_:]+ ?\(\n(.*?)^\)", text, re.MULTILINE | re.DOTALL)
    declared = re.findall(r"\$(\w+)(?: =|,)", head[1]) if head else []
    assert re.findall(r"^# @param (\w+)$", text, re.MULTILINE) == declared
