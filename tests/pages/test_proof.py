"""Where the proof of a finding is looked for, over all the samples and all the rules' own examples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector import proof
from inspector.analysis.analyzer import Analyzer
from inspector.model import Exchange, Finding, Place, Severity, Visible
from inspector.pages import tabs
from inspector.pages.proved import pages
from inspector.proof import Page
from inspector.rules import all_rules, rule_of
from tests.support.conversations import Agent, steps, together
from tests.support.recorded import SAMPLES, records_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inspector.analysis.analyzer import Step
    from inspector.model import Record

TABS = {"meaning", "request", "response", "tls", "timing"}
RULES = {rule.id: rule for rule in all_rules()}


def located(records: Sequence[Record]) -> Iterator[tuple[Finding, Step, Place]]:
    analyzer = Analyzer()
    taken = list(steps(analyzer, records))
    by_seq = {step.record.seq: step for step in taken}
    for run in analyzer.finish():
        for finding in run.findings:
            for seq in finding.seqs:
                yield finding, by_seq[seq], proof.locate(finding, by_seq[seq], shown(by_seq[seq], taken))


def shown(step: Step, taken: Sequence[Step]) -> list[Page]:
    before = [each for each in taken if each.record.seq < step.record.seq and each.run is step.run]
    return pages(tabs.tabs(step, tabs.known(step, before)))


def test_most_findings_are_found_in_their_records() -> None:
    """At least as many as are today: of the rules' own examples, and of the samples."""
    told: dict[tuple[str, int], bool] = {}
    own = [(rule.id, n, talk) for rule in RULES.values() for n, talk in enumerate(rule.bad())]
    for ident, number, talk in own:
        for finding, _, place in located(talk):
            if finding.rule == ident:
                better = place != Place("meaning")
                told[ident, number] = told.get((ident, number), False) or better
    share = sum(told.values()) / len(told)
    assert share >= SHARE, f"{sum(told.values())} of {len(told)}"
    samples = [place != Place("meaning") for path in SAMPLES for _, _, place in located(records_of(path))]
    assert sum(samples) / len(samples) >= SHARE_OF_SAMPLES, f"{sum(samples)} of {len(samples)}"


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_what_is_to_be_looked_for_is_there(rule: object) -> None:
    for talk in rule.bad():  # type: ignore[attr-defined]
        for finding, step, place in located(talk):
            assert place.tab in TABS
            if place.tab == "meaning" and place.needle:
                lines = [line for page in shown(step, [step]) if page.part == place.part for line in page.lines()]
                assert place.needle.partition(": ")[0].lower() in "\n".join(lines).lower()
            if place.tab in ("request", "response"):
                record = step.record
                assert isinstance(record, Exchange)
                message = record.request if place.tab == "request" else record.response
                assert message is not None
                if place.part == "headers":
                    assert place.needle.lower() in _head(record, place.tab).lower()
                else:
                    assert place.part == "body"
                    assert message.body
            if rule_of(finding.rule).visible is Visible.HANDSHAKE:
                assert place.tab == "tls"


def _head(exchange: Exchange, tab: str) -> str:
    message = exchange.request if tab == "request" else exchange.response
    assert message is not None
    start = f"{exchange.request.method} {exchange.request.target}" if tab == "request" else ""
    start = start or f"{exchange.response.status} {exchange.response.reason}" if exchange.response else start
    return "\n".join([f"{exchange.request.target}", start, *(f"{name}: {value}" for name, value in message.headers)])


CASES = [
    ("S02", Place("response", "headers", "403")),
    ("S01", Place("meaning", "error", "Could not find class web")),
    ("S15", Place("meaning", "error", "502 Bad Gateway")),
    ("T13", Place("request", "headers", "Connection: close")),
    ("S13", Place("response", "headers", "Content-Encoding")),
    ("S04", Place("request", "headers", "application/json")),
    ("S09", Place("response", "headers", "200")),
    ("T02", Place("tls", "", "DES-CBC3-SHA")),
    ("T01", Place("tls", "", "TLSv1.1")),
    ("B05", Place("meaning", "certificates", "CN=ca.example")),
    ("B15", Place("meaning", "crls", "number: 4")),
    ("B24", Place("meaning", "error", "other.example")),
    ("B27", Place("meaning", "signing request", "alternative name: DNS:puppet.example")),
    ("B30", Place("meaning", "signing request", "pp_preshared_key")),
    ("B32", Place("meaning", "signing request", "signature: md5")),
    ("B43", Place("meaning", "error", "CSR contains a public key that does not correspond to the signing key")),
    ("P01", Place("meaning", "log", "/bin/false")),
    ("P06", Place("meaning", "resources", "Service[app]")),
    ("F02", Place("meaning", "catalog", "File[/etc/a.conf]")),
    ("F04", Place("request", "headers", "modules/demo/app.conf")),
    ("R15", Place("meaning", "facts", "ipaddress_eth0")),
    ("S08", Place("timing")),
    ("R01", Place("meaning")),
]


@pytest.mark.parametrize(("ident", "place"), CASES, ids=[ident for ident, _ in CASES])
def test_the_place_of_a_proof(ident: str, place: Place) -> None:
    found = [at for talk in RULES[ident].bad() for finding, _, at in located(talk) if finding.rule == ident]
    assert place in found


def test_two_keys_are_compared_at_the_key_of_the_request() -> None:
    found = [place for talk in RULES["B20"].bad() for finding, _, place in located(talk) if finding.rule == "B20"]
    assert {(place.tab, place.part) for place in found} == {("meaning", "signing request")}
    keys = {place.needle for place in found}
    assert len(keys) > 1
    assert all(key.startswith("key: EC 256 bits, SHA-256 ") for key in keys)


def test_of_several_lines_the_one_that_says_most_is_taken() -> None:
    finding = Finding("P01", Severity.ERROR, "1 resource failed: Exec[b]: 'false' returned 1", (1,))
    lines = ["Exec[a]  'false' returned 1", "Exec[b]  'false' returned 1", "Exec[b]  'false' skipped"]
    (step, *_) = steps(Analyzer(), together(Agent(leg="1").catalog()))
    page = Page("meaning", "events", lambda: lines)
    assert proof.locate(finding, step, [page]) == Place("meaning", "events", "Exec[b]")


def test_an_unanswered_request_has_a_place_too() -> None:
    for _, _, place in located(together(Agent(leg="1").catalog(status=None))):
        assert place.tab in TABS


SHARE = 0.85
SHARE_OF_SAMPLES = 0.86
