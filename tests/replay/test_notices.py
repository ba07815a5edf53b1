"""What is said before an agent runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from inspector.replay.notices import notices
from inspector.runs.examples import altered, asked, catalog, content, listing, plugins, report, talk, unanswered
from tests.support.conversations import Agent, together
from tests.support.replays import of_records, of_sample

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.runs.examples import ExamplePart


def said(tmp_path: Path, *parts: ExamplePart) -> list[str]:
    return notices(of_records(tmp_path, *talk(plugins(), *parts, report())))


def resource(**parameters: Any) -> ExamplePart:
    return catalog(resources=[{"type": "File", "title": "/etc/a", "parameters": parameters}])


def test_an_ordinary_run_needs_nothing(tmp_path: Path) -> None:
    assert said(tmp_path, resource(source="puppet:///modules/m/a")) == []


def test_code_that_an_agent_will_execute(tmp_path: Path) -> None:
    (notice,) = notices(of_sample(tmp_path, "first-run"))
    assert notice.startswith("the agent will execute code of this capture, also with --noop: 2 plugins, including ")


@pytest.mark.parametrize("value", [False, "false"])
def test_resources_that_noop_does_not_stop(tmp_path: Path, value: object) -> None:
    (notice,) = said(tmp_path, resource(noop=value))
    assert notice == (
        "record 2: the catalog sets noop => false, which --noop does not change: File[/etc/a] will be applied to this "
        "host"
    )
    assert said(tmp_path / "b", resource(noop=True)) == []


@pytest.mark.parametrize("source", ["puppet://other.example/modules/m/a", "https://other.example/a"])
def test_sources_at_another_server(tmp_path: Path, source: str) -> None:
    (notice,) = said(tmp_path, resource(source=["puppet:///modules/m/a", source]))
    assert notice.startswith("record 2: the catalog names other.example as a source of files")


def test_a_hostile_source_is_text(tmp_path: Path) -> None:
    (notice,) = said(tmp_path, resource(source="puppet://[::1/modules/m/a"))
    assert notice.startswith("record 2: the catalog names [::1 as a source of files")


def test_answers_that_cannot_be_given(tmp_path: Path) -> None:
    cut = altered(asked("file_metadata/modules/m/a"), response={"lost": 9})
    found = said(tmp_path, catalog(), cut, unanswered(asked("file_metadata/modules/m/b")))
    assert len(found) == 2
    assert found[0].startswith("record 3, GET file_metadata modules/m/a in production: only ")
    assert found[0].endswith("bytes were recorded (puppet_keep_body); it is answered with 404")
    assert found[1].endswith("it had no answer; the replay closes the connection as well")


def test_values_that_are_masked(tmp_path: Path) -> None:
    (notice,) = said(tmp_path, resource(content="password=MASKED, withheld-abcdefg"))
    assert notice == "record 2, catalog: 2 values of the answer are masked or stand-ins"


def test_a_shared_capture(tmp_path: Path) -> None:
    recorded = of_records(tmp_path, *talk(plugins(), catalog(), report()))
    recorded.shared = True
    assert notices(recorded)[0].startswith("values were withheld from this capture, and names replaced")


def test_plugins_that_were_not_fetched(tmp_path: Path) -> None:
    tree = listing("plugins", {"facter/a.rb": b"a", "facter/b.rb": b"b"})
    code, missing = said(tmp_path, tree, content("plugins/facter/b.rb", b"b"), catalog())
    assert "1 plugins, including plugins/facter/b.rb" in code
    assert missing == "1 plugins that the run lists were not fetched while it was recorded: plugins/facter/a.rb"


def test_handshakes(tmp_path: Path) -> None:
    revoked = notices(of_sample(tmp_path, "revoked"))
    assert revoked == ["the agent's certificate was revoked: the replay gives it one and revokes it at once"]
    found = notices(of_records(tmp_path, *together(Agent().ca().refused("unknown ca"))))
    assert found == [
        "1 handshakes failed when it was recorded: they are not replayed",
        "nothing of this run is behind the bootstrap: there is no catalog",
    ]
