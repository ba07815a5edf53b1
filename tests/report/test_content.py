"""What a page shows, gathered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.report import content as module
from inspector.report.content import gathered
from inspector.report.data import MessageBlocks
from inspector.runs.examples import ca, crl, csr, issued, talk
from tests.support.captures import save
from tests.support.nodes import uncompiled, well
from tests.support.pages import content_of, copied, sample

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from inspector.summaries.summary import RunBrief


def test_all_parts_of_a_sample_are_there() -> None:
    found = content_of(sample("mismatched-key"))
    (section,) = found.sections
    assert section.run.number == 1
    assert [deviation.rule.id for deviation in section.findings] == ["B18", "B23"]
    assert [deviation.follows for deviation in section.findings] == [False, True]
    assert [rule.id for rule in found.rules] == ["B18", "B23"]
    assert (len(found.records), len(found.ladders)) == (2, 1)
    assert found.axis is not None
    assert isinstance(found.messages, MessageBlocks)
    assert content_of(sample("mismatched-key"), bodies=False).messages is None


def test_the_gravest_rules_come_first(tmp_path: Path) -> None:
    found = content_of(save(tmp_path / "a.sqlite", *talk(ca(), crl(), csr(), issued()), *uncompiled(2)))
    ranks = [rule.severity.rank for rule in found.rules]
    assert ranks == sorted(ranks, reverse=True)
    assert [rule.id for rule in found.rules] != sorted(rule.id for rule in found.rules), "not by their ids"


def test_a_section_is_read_when_its_turn_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All together would take 35 MB more for 100,000 exchanges."""
    read: list[int] = []

    def parts(_source: object, _capture: object, run: RunBrief, _briefs: object) -> None:
        read.append(run.number)

    monkeypatch.setattr(module, "parts_of", parts)
    with copied(save(tmp_path / "a.sqlite", *[*well(1), *uncompiled(2), *well(3, 1000)])) as copy:
        sections = iter(gathered(copy).sections)
        assert read == []
        assert [next(sections).run.number, read] == [2, [2]]
        assert [next(sections).run.number, read] == [3, [2, 3]]


def test_a_chosen_run_has_its_own_records_only(tmp_path: Path) -> None:
    path = save(tmp_path / "a.sqlite", *[*well(1), *uncompiled(2)])
    whole, chosen = content_of(path), content_of(path, agent="web2.example")
    assert [run.certname for run in chosen.runs] == ["web2.example"]
    assert 0 < len(chosen.records) < len(whole.records)
    assert chosen.copy.every == 2


def test_of_many_runs_the_worst_have_sections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECTIONS", 1)
    found = content_of(save(tmp_path / "a.sqlite", *[*well(1), *uncompiled(2), *well(3)]))
    assert [section.run.certname for section in found.sections] == ["web2.example"]
    assert len(found.runs) == 3
