"""What a real agent sends shows the changed defaults of version 8, and no more once they are set as 8 has them."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from inspector.explain.readiness.survey import Survey
from inspector.replay.agent_command import FOLDER, Command
from tests.real.agent import installed
from tests.support.replays import NAME, of_sample, replayed, served

if TYPE_CHECKING:
    from pathlib import Path

AS_IN_7 = {"include_legacy_facts": "true", "exclude_unchanged_resources": "false"}
AS_IN_8 = {"include_legacy_facts": "false", "exclude_unchanged_resources": "true"}
SHOWN = {"legacy-facts", "reports-shorter"}


@pytest.fixture(autouse=True)
def _puppet() -> None:
    if shutil.which("puppet") is None:
        (pytest.fail if os.environ.get("PUPPET_INSPECTOR_REAL") == "required" else pytest.skip)("needs puppet-agent")


def surveyed(folder: Path, settings: dict[str, str]) -> Survey:
    """What a run of the agent shows, with its own facts and these settings."""
    folder.mkdir()
    conf = folder / "replay" / FOLDER / "conf"
    with replayed(folder, of_sample(folder, "first-run")) as master:
        conf.mkdir(parents=True, exist_ok=True)
        for name, value in settings.items():
            command = ["puppet", "config", "set", name, value, "--section", "agent", "--confdir", str(conf)]
            subprocess.run(command, check=True, timeout=600)
        words = Command(master.recording, folder / "replay", NAME, master.address[1]).words
        done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    survey = Survey(8)
    survey.add("run.sqlite", [one.record for one in served(master)])
    return survey


def test_the_settings_of_8_end_what_is_shown(tmp_path: Path) -> None:
    """Also an agent's own defaults, without a word of these settings: those of 8 are its own from there on."""
    before, after = (AS_IN_7, {}) if installed() >= (8,) else ({}, AS_IN_8)
    assert surveyed(tmp_path / "before", before).found.keys() >= SHOWN
    assert surveyed(tmp_path / "after", after).found.keys() & SHOWN == set()
