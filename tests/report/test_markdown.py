"""The answer for a ticket."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from inspector.report import markdown
from inspector.report.answers import Answers, answers_of
from inspector.report.markdown import MOST, lines
from inspector.rules.fixes import on_node
from tests.support.captures import save
from tests.support.hostile import harmless, hostile_records
from tests.support.nodes import not_stored, refused, uncompiled, well
from tests.support.pages import copied, sample

if TYPE_CHECKING:
    from pathlib import Path


def written(path: Path) -> list[str]:
    with copied(path) as copy:
        return lines(answers_of(copy), copy)


def test_it_has_cause_fix_and_evidence() -> None:
    text = "\n".join(written(sample("mismatched-key")))
    for word in ("# 1 node failing, 2 errors", "- nodes: node1.example", "rule: B18", "evidence: 2 records: 1, 2",
                 "`puppetserver ca clean --certname node1.example`", "secrets are masked"):  # fmt: skip
        assert word in text


def test_it_is_short_whatever_the_causes_are(tmp_path: Path) -> None:
    records = [
        record for number in range(1, 30) for record in (*uncompiled(number), *refused(number), *well(number, 9e4))
    ]
    found = written(save(tmp_path / "a.sqlite", *records))
    assert len(found) < 60
    with copied(sample("revoked")) as copy:
        answers = answers_of(copy)
        many = dataclasses.replace(answers.found[0], steps=tuple(on_node(str(at), "a") for at in range(100)))
        cut = lines(Answers((many, many)), copy)
    assert len(cut) == MOST
    assert cut[-1].startswith("… the rest")


def test_nobody_is_mentioned_and_entities_are_text() -> None:
    assert markdown._plain("&lt;b&gt; @ops") == "\\&lt;b\\&gt; @\u200bops"


def test_captured_text_has_no_meaning_in_it(tmp_path: Path) -> None:
    assert all(map(harmless, written(save(tmp_path / "a.sqlite", *hostile_records()))))
    with copied(sample("revoked")) as copy:
        answers = answers_of(copy)
        steps = (on_node("say", "echo `date` ``x``"),)
        odd = dataclasses.replace(answers.found[0], sentence="<b>[x](y)</b>\n# head", steps=steps)
        text = "\n".join(lines(dataclasses.replace(answers, found=(odd,)), copy))
    assert "## \\<b\\>\\[x\\](y)\\</b\\>\\\\x0a\\# head" in text
    assert "``` echo `date` ``x`` ```" in text


def test_what_was_found_outside_runs_is_named(tmp_path: Path) -> None:
    found = written(save(tmp_path / "a.sqlite", *well(1, 0), *not_stored()))
    at = found.index("## Outside runs")
    assert found[at + 2].startswith("- D03 PuppetDB accepts a value that it cannot store (2 times): ")
    assert "## Outside runs" not in written(save(tmp_path / "b.sqlite", *well(1, 0)))
