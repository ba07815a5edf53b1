"""Where the evidence of a finding is shown, over all the rules' own examples and all the samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.analysis.analyzer import Analyzer
from inspector.model import Place
from inspector.pages import evidence, tabs
from inspector.rules import all_rules
from tests.support.conversations import Agent, steps, together
from tests.support.recorded import SAMPLES, records_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from inspector.model import Finding, Record
    from inspector.pages.tabs import Tab, TabPart
    from inspector.rules import Rule

RULES = {rule.id: rule for rule in all_rules()}


def shown(records: Sequence[Record]) -> Iterator[tuple[Finding, list[Tab]]]:
    """Every finding with the tabs of each of its records."""
    analyzer = Analyzer()
    taken = list(steps(analyzer, records))
    by_seq = {step.record.seq: step for step in taken}
    for run in analyzer.finish():
        for finding in run.findings:
            for seq in finding.seqs:
                step = by_seq[seq]
                before = [other for other in taken if other.record.seq < seq and other.run is step.run]
                yield finding, tabs.tabs(step, tabs.known(step, before))


def part_of(place: Place, of: Sequence[Tab]) -> TabPart:
    (found,) = (
        part for tab in of if tab.name.lower() == place.tab for part in tab.parts if part.title.lower() == place.part
    )
    return found


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_every_finding_has_a_place_in_each_of_its_records(rule: Rule) -> None:
    for talk in rule.bad():
        for finding, of in shown(talk):
            if finding.rule == rule.id:
                place = evidence.locate(finding.places, of)
                assert place, finding
                assert place.needle, finding
                assert evidence.contains(part_of(place, of), place.needle)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_every_finding_of_a_sample_has_a_place(path: Path) -> None:
    for finding, of in shown(records_of(path)):
        place = evidence.locate(finding.places, of)
        assert place, finding
        assert place.needle, finding


CASES = [
    ("S01", Place("meaning", "error", "Could not find class web")),
    ("S08", Place("timing", "timing", "waiting for the master")),
    ("T13", Place("request", "headers", "Connection  close", "Connection  ")),
    ("S13", Place("response", "headers", "Content-Encoding  br", "Content-Encoding  ")),
    ("T01", Place("tls", "tls", "version: TLSv1.1")),
    ("B05", Place("meaning", "certificates", "issuer: CN=Sample Root CA")),
    ("B15", Place("meaning", "crls", "number: 4")),
    ("B27", Place("meaning", "signing request", "alternative name: DNS:puppet.example")),
    ("B30", Place("meaning", "signing request", "pp_preshared_key")),
    ("B32", Place("meaning", "signing request", "signature: md5")),
    ("P06", Place("meaning", "resources", "Service[app]")),
    ("F02", Place("meaning", "catalog", "File[/etc/a.conf]")),
    ("R15", Place("meaning", "facts", "ipaddress_eth0: ")),
    ("R01", Place("request", "headers", "HTTP/")),
]


@pytest.mark.parametrize(("ident", "place"), CASES, ids=[ident for ident, _ in CASES])
def test_the_place_of_evidence(ident: str, place: Place) -> None:
    found = [
        evidence.locate(finding.places, of)
        for talk in RULES[ident].bad()
        for finding, of in shown(talk)
        if finding.rule == ident
    ]
    assert place in found


def test_the_first_place_that_exists_counts() -> None:
    (step, *_) = steps(Analyzer(), together(Agent(leg="1").catalog()))
    of = tabs.tabs(step, tabs.known(step))
    absent, status = Place("meaning", "error", "none"), Place("response", "headers", "HTTP/")
    assert evidence.locate((absent, status), of) == status
    assert evidence.locate((Place("request", "headers", "no such text", "POST"),), of) == Place(
        "request", "headers", "POST", "POST"
    )
    assert evidence.locate((absent,), of) == Place("meaning", "")
    assert evidence.locate((), of) is None
