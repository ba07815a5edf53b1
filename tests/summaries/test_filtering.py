"""Filters in the terminal inspector let through what ``runs --filter`` and ``list --filter`` let through."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from inspector.errors import InspectorError
from inspector.summaries.filtering import Filtering
from inspector.summaries.source import Source
from tests.support.briefs import all_briefs
from tests.tui.screens import sample

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Run

FILTERS = {
    "out-of-sync": [
        "phase:catalog", "-phase:files", "status:>=400", "-status:>=400", "phase:files -status:200", "method:PUT",
        "endpoint:file_*", "path:/modules", "rule:any", "ms:>100", "size:>1k", "outcome:complete phase:files", "run:1",
        "run:1-2 phase:report", "since:1s", "until:1s", "since:2s phase:report", "text:mode", 'text:"Could not find"',
        "-text:mode", "-text:mode -phase:catalog", "-text:mode phase:report", "text:class phase:catalog", "complete",
        "catalog",
    ],
    "compile-error": [
        "phase:catalog status:500", "-status:200 -phase:handshake", "agent:node1.example", "agent:node*", "node1",
        "severity:warning", "-severity:error", "outcome:failed", "failed", "env:prod*", "version:>=7",
        '"follows from it"',
    ],
    "bootstrap-waiting": ["", "-agent:node1*", "rule:B", "-complete text:environment"],
    "revoked": ["phase:handshake"],
}  # fmt: skip
"""By sample: each of them lets something of it through, and most of them not everything."""


@pytest.fixture
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Source]:
    """A sample: that with two runs, or the one that is named."""
    with Source(sample(getattr(request, "param", "out-of-sync"), tmp_path)) as opened:
        yield opened


def listed(run: Run, command: str, capture: Path, text: str, key: str) -> list[int]:
    status, out, _ = run(command, capture, f"--filter={text}", "--json")
    assert status == 0
    document: list[dict[str, Any]] = json.loads(out)
    return [row[key] for row in document]


@pytest.mark.parametrize(("source", "filters"), FILTERS.items(), indirect=["source"], ids=FILTERS)
def test_the_same_as_on_the_command_line(source: Source, filters: list[str], run: Run) -> None:
    filtering = Filtering(source)
    for text in filters:
        runs = [brief.number for brief in filtering.runs(text)]
        records = [brief.seq for brief in filtering.briefs(text)]
        assert runs or records, text
        assert runs == listed(run, "runs", source.path, text, "run"), text
        assert records == listed(run, "list", source.path, text, "seq"), text


def test_of_one_run_the_same_as_of_all(source: Source) -> None:
    filtering = Filtering(source)
    for text in ("", "phase:catalog", "-status:200", "text:mode", "node1", "rule:any"):
        through = {brief.seq for brief in filtering.briefs(text)}
        for run in source.runs:
            own = [brief.seq for brief in filtering.briefs(text, run.number)]
            assert own == [seq for seq in source.seqs(run.number) if seq in through], text


def test_a_mistake_is_reported(source: Source) -> None:
    filtering = Filtering(source)
    for ask in (filtering.runs, filtering.briefs, filtering.slow, filtering.read_runs, filtering.read_briefs):
        with pytest.raises(InspectorError) as caught:
            ask("phase:catalogue")
        assert "Did you mean catalog?" in caught.value.hint


def test_what_takes_long_says_how_far_it_is_and_can_be_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inspector.summaries.filtering.STRIDE", 2)
    with Source(sample("first-run", tmp_path)) as source:
        filtering = Filtering(source)
        assert filtering.slow("phase:plugins text:e")
        assert filtering.slow("word")
        assert not filtering.slow("phase:plugins status:200")
        output = list(filtering.read_briefs("text:e phase:plugins"))
        plugins = [brief.seq for brief in filtering.briefs("phase:plugins")]
        assert [progress.done for progress in output] == [*plugins[1::2], plugins[-1], source.total]
        assert {progress.total for progress in output} == {source.total}
        assert len(plugins) % 2 == 1
        assert len(plugins) < len(all_briefs(source))  # what the index shows keeps bodies from being read
        read: list[Source] = []
        capture = Source.capture

        def looked(self: Source) -> Any:
            read.append(self)
            return capture(self)

        monkeypatch.setattr(Source, "capture", looked)
        going = filtering.read_briefs("text:e phase:plugins")
        assert not read
        assert next(going).done == plugins[1]
        assert len(read) == 1
        going.close()  # type: ignore[attr-defined]
        assert len(read) == 1
        runs = list(filtering.read_runs("text:e phase:plugins"))
        assert [len(run.found) for run in runs] == [*[0] * (len(runs) - 1), 1]
        assert (runs[0].done, runs[-1].done) == (plugins[1], source.total)
