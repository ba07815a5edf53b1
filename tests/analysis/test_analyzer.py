"""Our own mistakes are told, and nothing stops because of them."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

import pytest

from inspector.analysis import verdicts
from inspector.analysis.analyzer import Analyzer, outline, retrace
from inspector.model import Exchange, Gap, Handshake, Leg, Phase, Request, Severity
from inspector.privacy import redact
from inspector.protocol import documents as d
from inspector.rules import On, all_rules, rule_of
from inspector.rules.cases import Case, Statement
from inspector.runs.examples import ca, catalog, crl, csr, issued, report, talk
from inspector.summaries import conclusions
from tests.support.broken_rules import costs_only_itself
from tests.support.conversations import START, Agent, runs_of, steps, together
from tests.support.recorded import SAMPLES, VERSIONS, records_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inspector.model import Message, Record
    from inspector.rules import Rule
    from inspector.runs.run import Run

HEALTHY = talk(ca(), crl(), csr(), issued(), catalog(), report())


def broken(on: On) -> Analyzer:
    """All rules and one that raises after it said something."""

    def look(case: Case) -> Iterator[Statement]:
        yield Statement("said before")
        raise ZeroDivisionError("ours")

    bad = dataclasses.replace(rule_of("B01"), id="X00", on=on, function=look, at=())
    return Analyzer([bad, *all_rules()])


@pytest.mark.parametrize(("on", "at"), [(On.EXCHANGE, 1), (On.RUN_END, 6)])
def test_a_rule_that_raises_is_reported_once_and_the_others_are_asked(on: On, at: int) -> None:
    analyzer = broken(on)
    taken = [analyzer.feed(record) for record in HEALTHY]
    ((seq, (trouble,)),) = [(step.record.seq, step.trouble) for step in taken if step.trouble]
    assert seq == at
    assert re.fullmatch(r"rule X00 failed \(test_analyzer.py, line \d+\): ZeroDivisionError\('ours'\)", trouble)
    assert analyzer.failed == {"X00": trouble}
    (run,) = analyzer.finish()
    assert run.outcome == "complete"
    assert {"B01", "X00"} <= {finding.rule for finding in run.findings}


@pytest.mark.slow
@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)
def test_whichever_rule_raises_nothing_but_its_own_findings_is_lost(rule: Rule) -> None:
    for path in SAMPLES:
        assert costs_only_itself(rule, records_of(path)), path.stem


def test_a_rule_on_handshakes_may_raise_too() -> None:
    analyzer = broken(On.HANDSHAKE)
    (step,) = [analyzer.feed(record) for record in together(Agent().refused())]
    assert step.trouble
    assert [run.outcome for run in analyzer.finish()] == ["refused"]


def test_a_decoder_that_raises_is_reported_and_the_record_is_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    from inspector.protocol import endpoints

    def raises(message: Message) -> d.Document:
        raise ZeroDivisionError("ours")

    real = endpoints.match

    def match(method: str, target: str) -> endpoints.Match | None:
        found = real(method, target)
        if found is None or found.endpoint.name != "ca":
            return found
        return dataclasses.replace(found, endpoint=found.endpoint._replace(response=raises))

    monkeypatch.setattr(endpoints, "match", match)
    analyzer = Analyzer()
    taken = [analyzer.feed(record) for record in HEALTHY]
    assert taken[0].trouble == ["decoding failed: ZeroDivisionError('ours')"]
    assert isinstance(taken[0].response, d.Undecodable)
    assert [step.trouble for step in taken[1:]] == [[]] * 5
    assert [(run.outcome, list(run.seqs)) for run in analyzer.finish()] == [("complete", [1, 2, 3, 4, 5, 6])]


def test_a_step_says_what_a_record_is() -> None:
    analyzer = Analyzer()
    taken = list(steps(analyzer, HEALTHY))
    assert [step.phase for step in taken] == [Phase.CERTIFICATES] * 4 + [Phase.CATALOG, Phase.REPORT]
    assert [step.match.endpoint.name for step in taken if step.match] == [
        *["ca", "crl", "certificate_request", "certificate", "catalog", "report"]
    ]
    assert [type(step.response).__name__ for step in taken[:5]] == [
        *["Certificates", "RevocationLists", "Nothing", "Certificates", "Catalog"]
    ]
    assert isinstance(taken[5].request, d.Report)
    assert all(step.run is analyzer.runs[0] for step in taken)
    assert taken[0].exchange is HEALTHY[0]


def test_the_agent_is_who_its_certificate_says_and_else_who_the_url_says() -> None:
    analyzer = Analyzer()
    own = Agent("a.example").ask("GET", "/puppet/v3/node/b.example?environment=x", own=True, status=403)
    without = Agent("c.example").ask("GET", "/puppet-ca/v1/certificate/d.example", status=404)
    assert [step.certname for step in steps(analyzer, together(own, without))] == ["a.example", "d.example"]


def test_a_certificate_that_cannot_be_read_names_no_agent() -> None:
    leg = Leg("1", "agent", "192.0.2.1", peer_chain=(b"no DER",))
    records: list[Record] = [
        Exchange(leg, Request(target="/puppet/v3/file_content/modules/m/f", started=START), seq=1),
        Handshake(leg, START + 1, "bad certificate", seq=2),
        Gap(START + 2, "lost", 1, seq=3),
    ]
    taken = list(steps(Analyzer(), records))
    assert [step.certname for step in taken] == [None] * 3
    assert [step.run is None for step in taken] == [False, False, True]


@pytest.mark.parametrize(
    ("version", "agent", "expected"),
    [("7.23.0", "", "7.23.0"), ("3.8.7", "", "3.8.7"), ("3.8.7", "Puppet/3.8.1 Ruby", "3.8.1")],
)
def test_the_agents_version_is_found_wherever_it_stands(version: str, agent: str, expected: str) -> None:
    talking = Agent(version=version, leg="1")
    talking.ask("GET", talking.url("node/a.example"), headers=(("User-Agent", agent),), own=True).catalog()
    (run,) = runs_of(together(talking))
    assert run.agent_version == expected


def test_a_handshake_on_the_masters_leg_belongs_to_the_agent_whose_identity_was_used() -> None:
    talking = Agent().run()
    chain = getattr(talking.records[0], "agent").peer_chain  # noqa: B009
    leg = Leg("m", "master", "192.0.2.9", own_chain=chain)
    talking.records.append(Handshake(leg, talking.time - 0.35, "the master refused it", "certificate_revoked"))
    analyzer = Analyzer()
    taken = list(steps(analyzer, together(talking)))
    assert {step.certname for step in taken} == {"a.example"}
    assert len(analyzer.finish()) == 1


def test_a_repeated_finding_is_searched_for_secrets_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """That search takes as long as everything else, and its text is known already."""
    texts = iter(["the same", "the same", "another", "the same"])

    def look(case: Case) -> Iterator[Statement]:
        if (text := next(texts, None)) is not None:
            yield Statement(text)

    searched: list[Exchange] = []

    def quotable(exchange: Exchange, **_: object) -> set[str]:
        searched.append(exchange)
        return set()

    monkeypatch.setattr(redact, "quotable", quotable)
    (run,) = runs_of(HEALTHY, [dataclasses.replace(rule_of("R22"), id="X00", on=On.EXCHANGE, function=look, at=())])
    assert [exchange.seq for exchange in searched] == [1, 3]
    assert [(finding.message, finding.seqs) for finding in run.findings] == [("the same", (1, 2, 4)), ("another", (3,))]


# -- faults that were injected ----------------------------------------------------------------------------


def _numbered(*records: Record) -> list[Any]:
    return [dataclasses.replace(record, seq=seq) for seq, record in enumerate(records, 1)]


def _judged(records: list[Record]) -> Run:
    (run,) = runs_of(records)
    return run


def test_nobody_is_blamed_for_a_fault_that_was_injected() -> None:
    """The same records blame somebody if it was not injected."""
    records = _numbered(*rule_of("S01").bad()[0])
    blamed = _judged(records)
    (hit,) = next(finding.seqs for finding in blamed.findings if finding.rule == "S01")
    injected = [
        dataclasses.replace(record, injected="answered 500") if record.seq == hit else record for record in records
    ]
    run = _judged(injected)
    assert run.injected == {hit: "answered 500"}
    assert run.outcome == blamed.outcome == "failed"
    assert [found.rule for found in run.findings if hit in found.seqs] == []
    late = [found for found in run.findings if not found.seqs or found.seqs[-1] > hit]
    assert all(found.severity is Severity.NOTICE for found in late)
    early = [found for found in blamed.findings if found.seqs and found.seqs[-1] < hit]
    assert [(found.rule, found.severity) for found in run.findings if found not in late] == [
        (found.rule, found.severity) for found in early
    ]
    verdict = verdicts.verdict(run)
    assert verdict
    assert (verdict.cause, verdict.injected, verdict.certainty) == (None, hit, "certain")
    brief = conclusions.of_run(run)
    assert brief.verdict
    assert f": a fault was injected here on purpose (answered 500, record {hit}), since " in brief.verdict.message
    assert brief.why == f"a fault was injected here on purpose (answered 500, record {hit})"
    assert brief.fix.startswith("Nothing to do: a run without the fault")


def test_a_run_that_went_well_says_it_too() -> None:
    records = _numbered(*talk(catalog(), report()))
    run = _judged([dataclasses.replace(records[0], injected="delayed by 2 s"), *records[1:]])
    assert run.outcome == "complete"
    brief = conclusions.of_run(run)
    assert brief.verdict
    assert brief.verdict.message.partition(":")[0].endswith(" completed")
    assert "a fault was injected here on purpose (delayed by 2 s, record 1)" in brief.verdict.message
    assert brief.why is None


def test_a_handshake_that_fails_after_a_fault_is_not_judged() -> None:
    examples = (part for rule in all_rules() if rule.on is On.HANDSHAKE for part in rule.bad())
    records = _numbered(*next(part for part in examples if isinstance(part[0], Exchange)))
    first = next(record.seq for record in records if isinstance(record, Exchange))
    assert any(found.severity is Severity.ERROR for found in _judged(records).findings)
    run = _judged([
        dataclasses.replace(record, injected="answered with an expired CRL") if record.seq == first else record
        for record in records
    ])  # fmt: skip
    assert [found for found in run.findings if found.severity is Severity.ERROR] == []


@pytest.mark.parametrize("sample", [*SAMPLES, *VERSIONS], ids=lambda path: path.stem)
def test_a_record_by_itself_is_what_it_is_in_a_run(sample: Path) -> None:
    reader = Analyzer(rules=())
    for record in records_of(sample):
        (step,) = retrace([record])
        alone, read = outline(record), reader.read(record)
        for each in (alone, read):
            assert (each.match, each.phase, each.certname) == (step.match, step.phase, step.certname)
            assert (each.client, each.unanalyzed, each.run) == (step.client, step.unanalyzed, None)
        assert (read.request, read.response) == (step.request, step.response)
        assert (alone.request, alone.response) == (None, None)


def test_a_record_that_is_only_read_belongs_to_no_run() -> None:
    analyzer = Analyzer()
    read = [analyzer.read(record) for record in talk(catalog(), report())]
    assert any(isinstance(step.response, d.Catalog) for step in read)
    assert any(isinstance(step.request, d.Report) for step in read)
    assert all(step.run is None and not step.findings for step in read)
    assert analyzer.finish() == []
