"""Filters in the terminal inspector let through what ``runs --filter`` and ``list --filter`` let through."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from inspector.capture.merge import merge
from inspector.errors import InspectorError
from inspector.summaries import listing, reading
from inspector.summaries.filtering import Filtering
from inspector.summaries.source import Source
from tests.support.briefs import all_briefs
from tests.support.recorded import SAMPLES
from tests.tui.screens import indexed, sample

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILTERS = [
    "",
    "phase:catalog",
    "phase:handshake",
    "-phase:files",
    "status:>=400",
    "-status:>=400",
    "-status:200 -phase:handshake",
    "phase:catalog status:500",
    "phase:files -status:200",
    "method:PUT",
    "endpoint:file_*",
    "path:/modules",
    "agent:node1.example",
    "agent:node*",
    "-agent:node1*",
    "rule:any",
    "rule:B",
    "severity:warning",
    "-severity:error",
    "ms:>100",
    "size:>1k",
    "outcome:failed",
    "outcome:complete phase:files",
    "run:1",
    "run:1-2 phase:report",
    "env:prod*",
    "version:>=7",
    "since:1s",
    "until:1s",
    "since:5s phase:report",
    "text:mode",
    'text:"Could not find"',
    "-text:mode",
    "-text:mode -phase:catalog",
    "-text:mode phase:report",
    "text:class phase:catalog",
    "failed",
    "complete",
    "-complete text:environment",
    "node1",
    "catalog",
    '"follows from it"',
]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Source]:
    """All samples in one capture: each filter leaves something of it, and few leave all."""
    path = tmp_path_factory.mktemp("samples") / "all.sqlite"
    merge(SAMPLES, path)
    with Source(indexed(path)) as opened:
        yield opened


@pytest.mark.slow
def test_the_same_as_without_an_index(source: Source, tmp_path: Path) -> None:
    """As ``runs --filter`` and ``list --filter`` read a capture that was not opened yet."""
    filtering = Filtering(source)
    unindexed = tmp_path / "c.sqlite"
    shutil.copy(source.path, unindexed)
    for text in FILTERS:
        runs = [run.number for run in filtering.runs(text)]
        records = [brief.seq for brief in filtering.briefs(text)]
        assert runs == [run.number for run in reading.read(unindexed, text).briefs], text
        assert records == [brief.seq for brief, _ in listing.listed(unindexed, text)], text
        assert runs or records, text


def test_of_one_run_the_same_as_of_all(source: Source) -> None:
    filtering = Filtering(source)
    for text in ("", "phase:catalog", "-status:200", "text:mode", "node1", "rule:any"):
        through = {brief.seq for brief in filtering.briefs(text)}
        for run in source.runs:
            own = [brief.seq for brief in filtering.briefs(text, run.number)]
            assert own == [seq for seq in source.seqs(run.number) if seq in through], (text, run.number)


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
