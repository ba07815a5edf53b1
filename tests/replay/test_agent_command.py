"""The command for the agent: own directories, and what its recording needs."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from inspector.replay.agent_command import DIRECTORIES, Command
from inspector.runs.examples import asked, catalog, listing, node, plugins, report, talk
from tests.support.replays import of_records, of_sample


def command(tmp_path: Path, *parts: object, **options: str) -> list[str]:
    recorded = of_records(tmp_path, *talk(*parts, report(), **options))  # type: ignore[arg-type]
    return Command(recorded, Path("/d"), "localhost", 8140).words


def test_every_directory_of_the_agent_is_its_own(tmp_path: Path) -> None:
    words = Command(of_sample(tmp_path, "first-run"), Path("/some dir"), "localhost", 8140).words
    assert words[:8] == ["puppet", "agent", "-t", "--noop", "--server", "localhost", "--serverport", "8140"]
    assert words[8:10] == ["--certname", "node1.example"]
    for name in DIRECTORIES:
        assert words[words.index(f"--{name}dir") + 1] == f"/some dir/agent/{name}"
    assert words[-1] == "/some dir/agent/public"


def test_a_shell_understands_it(tmp_path: Path) -> None:
    made = Command(of_sample(tmp_path, "first-run"), Path("/some dir"), "localhost", 8140)
    assert shlex.split(str(made)) == made.words


def test_without_a_node_request_the_environment_is_given(tmp_path: Path) -> None:
    assert command(tmp_path, plugins(), catalog())[-2:] == ["--environment", "production"]
    assert "--environment" not in command(tmp_path / "b", node(), plugins(), catalog())


def test_another_environment_is_given(tmp_path: Path) -> None:
    words = command(tmp_path, plugins(environment="staging"), catalog(asks="staging", environment="staging"))
    assert words[-2:] == ["--environment", "staging"]


@pytest.mark.parametrize(("sent", "given"), [("md5", ["--digest_algorithm", "md5"]), ("sha256", []), ("none", [])])
def test_the_digest_of_older_agents(tmp_path: Path, sent: str, given: list[str]) -> None:
    part = asked("file_metadata/modules/m/a", {}, query=f"&checksum_type={sent}")
    assert command(tmp_path, node(), catalog(), part)[22:] == given


def test_plugins_that_are_missing_must_not_stop_the_run(tmp_path: Path) -> None:
    part = listing("plugins", {"facter/a.rb": b"a"})
    assert command(tmp_path, node(), part, catalog())[-1] == "--ignore_plugin_errors"


def test_an_agent_that_waited_waits_again(tmp_path: Path) -> None:
    words = Command(of_sample(tmp_path, "bootstrap-waiting"), Path("/d"), "localhost", 1).words
    assert words[-2:] == ["--waitforcert", "2"]
