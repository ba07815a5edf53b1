"""The public keys of a capture, as far as they are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.analysis.analyzer import Analyzer
from inspector.runs.examples import catalog, csr, issued, report, talk
from inspector.summaries import keys

if TYPE_CHECKING:
    import pytest


def test_each_key_is_there_once_with_its_latest_record() -> None:
    found, analyzer = keys.WireKeys(), Analyzer()
    records = talk(csr(), issued(), catalog(), report())
    for record in records:
        found.add(analyzer.feed(record))
    assert [(key.kind, key.certname, key.seq) for key in found.all()] == [
        ("csr", "node1.example", records[0].seq),
        ("certificate", "node1.example", records[1].seq),
        ("client", "node1.example", records[-1].seq),
    ]
    assert len({key.key for key in found.all()}) == 1
    assert found.all()[0].fingerprint
    assert found.changed() == found.all()
    assert found.changed() == []


def test_names_that_somebody_invents_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "MOST", 2)
    found, analyzer = keys.WireKeys(), Analyzer()
    for number in range(5):
        for record in talk(csr(), certname=f"n{number}"):
            found.add(analyzer.feed(record))
    assert [key.certname for key in found.all()] == ["n0", "n1"]
