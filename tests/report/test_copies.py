"""The copy of a report: closed, deleted at the end, and with the runs that were asked for."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from inspector.capture.store import Capture
from inspector.errors import InspectorError
from inspector.formats.outgoing import ALL, Content, Outgoing
from inspector.report.copies import SHARED, Selection, closed_texts, comparable, leaving
from inspector.summaries import reading
from tests.support.captures import save
from tests.support.pages import copied, sample
from tests.support.planted import everything
from tests.support.recorded import SAMPLES
from tests.support.secrets import WORD, hiding

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from inspector.summaries.summary import RunBrief

VALUE = b"rack A7"
"""In a parameter of the sample first-run."""


def concluded(runs: Iterable[RunBrief]) -> list[object]:
    return [(run.number, run.outcome, run.cause, [each.rule for each in run.findings]) for run in runs]


@pytest.mark.slow
def test_a_copy_has_the_same_runs_and_findings() -> None:
    for path in SAMPLES:
        found = reading.read(path)
        for shared in (False, True):
            with copied(path, shared=shared) as copy:
                assert concluded(copy.runs) == concluded(found.briefs), (path, shared)
                seqs = [list(copy.source.seqs(run.number)) for run in copy.runs]
                assert seqs == [list(run.seqs) for run in found.runs], (path, shared)


def test_values_are_withheld_and_counted_unless_they_are_opened() -> None:
    with copied(sample("first-run")) as closed, closed.source.capture() as capture:
        assert VALUE not in everything(capture.records())
        assert closed.withheld[Content.FACTS] > 0
    with copied(sample("first-run"), opened=ALL) as opened, opened.source.capture() as capture:
        assert VALUE in everything(capture.records())
        assert not opened.withheld[Content.FACTS]


def test_secrets_are_masked_though_everything_is_opened(tmp_path: Path) -> None:
    path = save(tmp_path / "a.sqlite", *hiding())
    with copied(path, opened=ALL) as copy, copy.source.capture() as capture:
        assert WORD.encode() not in everything(capture.records())


@pytest.mark.slow
def test_a_shared_copy_has_no_names_not_even_the_files() -> None:
    with copied(sample("first-run"), shared=True) as copy:
        assert copy.name == SHARED
        assert all("node1" not in run.name for run in copy.runs)
    with copied(sample("first-run"), shared=True, agent="node1.example") as copy:
        assert "node1" not in copy.terms


def test_the_copy_is_gone_at_the_end() -> None:
    with copied(sample("revoked")) as copy:
        path = copy.source.path
        assert path.stat().st_mode & 0o777 == 0o600
    assert not path.parent.exists()


def test_a_selection_is_a_filter() -> None:
    rows: list[tuple[Selection, str]] = [
        (Selection(), ""),
        (Selection(3), "run:3"),
        (Selection(agent='a "b" c'), r'agent:"a \"b\" c"'),
        (Selection(3, "web*", " status:404 "), 'run:3 agent:"web*" status:404'),
    ]
    for selection, terms in rows:
        assert selection.terms == terms, selection


def test_nothing_chosen_is_an_error_with_a_hint() -> None:
    with (
        pytest.raises(InspectorError, match=r"No run of .* matches 'run:99'") as error,
        copied(sample("revoked"), run=99),
    ):
        pass
    assert "puppet-inspector runs" in error.value.hint


def test_equal_values_of_two_captures_stay_equal() -> None:
    first, other = sample("first-run"), sample("out-of-sync")
    with comparable([first, other, first]) as (copies, withheld):
        assert [copies[path].name for path in (first, other)] == [first.name, other.name]
        found = []
        for path in copies.values():
            with Capture.open(path) as capture:
                found.append({body for body in everything(capture.records()).split() if b"withheld-" in body})
        assert found[0] & found[1]
        assert withheld[Content.FACTS] > 0


def test_a_text_is_closed_as_an_export_closes_it(tmp_path: Path) -> None:
    path = save(tmp_path / "a.sqlite", *hiding())
    with closed_texts([path]) as (closed, withheld):
        assert WORD not in closed(f"password changed from {WORD}")
        assert closed("no difference: facts") == "no difference: facts"
        assert "Xk29-rack" not in closed("~ role: 'Xk29-rack77' -> 'web'")
        assert withheld[Content.OTHER] > 0


def test_what_was_learned_of_a_capture_is_not_in_memory_while_the_page_is_made() -> None:
    gc.disable()
    try:
        with leaving(sample("first-run")):
            assert not [each for each in gc.get_objects() if type(each) is Outgoing]
    finally:
        gc.enable()
