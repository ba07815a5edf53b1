"""The filter's language: what each key lets through of records and of runs, and what it says to a mistake."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from inspector.analysis.analyzer import Analyzer
from inspector.errors import InspectorError
from inspector.model import Exchange, Gap, Handshake, Leg, Request, Response
from inspector.protocol.endpoints import ENDPOINTS
from inspector.summaries import completion, filters, wording
from inspector.summaries.summary import RunBrief
from inspector.text import utc
from tests.support.conversations import START, Agent, steps, together

if TYPE_CHECKING:
    from inspector.analysis.analyzer import Step
    from inspector.model import Record
    from inspector.runs.snapshot import Outcome


def conversation() -> list[Record]:
    """1-6: a.example's healthy run; 7-11: b.example gets no catalog; 12: c.example is refused; 13: a gap."""
    healthy = Agent("a.example", "192.0.2.1", version="7.23.0").run()
    broken = Agent("b.example", "192.0.2.2", version="6.28.0", time=START + 100, uuid="u-b", environment="testing")
    broken.leg = "run"
    error = json.dumps({"message": 'Could not find class "näh" for b.example'}).encode()
    broken.plugins().catalog(status=500, body=error)
    broken.ask("GET", "/puppet/v3/file_content/modules/m/it's%20here", status=None, own=True)
    refused = Agent("c.example", "192.0.2.3", time=START + 200).refused(
        "Certificate 'CN=c.example' is revoked", own=True
    )
    return [*together(healthy, broken, refused), Gap(START + 300, "the disk is full", 2, seq=13)]


def looked(step: Step) -> filters.Candidate:
    """A step as ``list`` shows it to a filter."""
    look = filters.candidate(step)
    look.line = lambda: wording.line(look.brief, step.run)
    return look


def through(text: str, records: list[Record] | None = None, latest: float | None = None) -> list[int]:
    """The numbers of the records that a filter lets through, with the findings of that moment."""
    chosen, analyzer = filters.parse(text, latest), Analyzer()
    fed = list(steps(analyzer, records or conversation()))
    analyzer.finish()
    return [step.record.seq for step in fed if chosen.matches_step(looked(step))]


def runs(text: str, latest: float | None = None) -> list[str | None]:
    """Whose runs a filter lets through."""
    chosen, analyzer = filters.parse(text, latest), Analyzer()
    marked = {step.record.seq for step in steps(analyzer, conversation()) if chosen.marks(looked(step))}
    return [
        facts.certname or facts.address
        for run in analyzer.finish()
        if chosen.matches_run(facts := run.snapshot(), wording.summary(facts), marked=not marked.isdisjoint(run.seqs))
    ]


ALL = list(range(1, 14))


def test_the_conversation_is_what_the_tests_think() -> None:
    kinds = [type(record).__name__ for record in conversation()]
    assert kinds == ["Exchange"] * 11 + ["Handshake", "Gap"]
    assert [record.seq for record in conversation()] == ALL


def test_what_a_filter_lets_through() -> None:
    rows: list[tuple[str, list[int]]] = [
        ("", ALL),
        ("agent:a.example", [1, 2, 3, 4, 5, 6]),
        ("agent:A*", [1, 2, 3, 4, 5, 6]),
        ("agent:192.0.2.2", [7, 8, 9, 10, 11]),
        ("agent:192.0.2.[23]", [7, 8, 9, 10, 11, 12]),
        ("agent:a", []),
        ("agent:a.exampl.", []),
        ("phase:catalog", [4, 10]),
        ("phase:handshake", [12]),
        ("phase:certificates", [12]),
        ("phase:gap", [13]),
        ("endpoint:catalog", [4, 10]),
        ("endpoint:file_*", [5, 11]),
        ("method:put", [6]),
        ("path:/modules/", [5, 11]),
        ("path:*/modules", []),
        ("path:/PUPPET/v3/catalog/?.example", [4, 10]),
        ("status:500", [10]),
        ("status:5xx", [10]),
        ("status:>=400", [10]),
        ("status:<500", [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ("status:400-500", [10]),
        ("status:none", [11]),
        ("-status:200", [10, 11, 12, 13]),
        ("!status:200", [10, 11, 12, 13]),
        ("phase:catalog -status:200", [10]),
        ("run:1", [1, 2, 3, 4, 5, 6]),
        ("run:>1", [7, 8, 9, 10, 11, 12]),
        ("run:2-3", [7, 8, 9, 10, 11, 12]),
        ("outcome:refused", [12]),
        ("outcome:complete", [1, 2, 3, 4, 5, 6]),
        ("env:test*", [7, 8, 9, 10, 11]),
        ("version:7", [1, 2, 3, 4, 5, 6]),
        ("version:7.2", []),
        ("version:<7", [7, 8, 9, 10, 11]),
        ("version:>7", []),
        ("version:>=6.4", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
        ("version:6.*", [7, 8, 9, 10, 11]),
        ("rule:S01", [10]),
        ("rule:s status:500", [10]),
        ("rule:any severity:notice", [10]),
        ("rule:any -severity:error", []),
        ("text:'could not FIND class'", [10]),
        ('text:"class \\"näh\\""', [10]),
        ("text:\"it's here\"", [11]),
        ("text:'closed the connection'", [11]),
        ("text:X-Puppet-Version:", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
        ("text:puppetversion", [4, 10]),
        ("text:revoked", [12]),
        ("text:certificate_revoked", [12]),
        ("text:disk", [13]),
        ('"the disk is"', [13]),
        ("REVOKED", [12]),
        ("catalog POST", [4, 10]),
        ("-example", [13]),
        ("(alert", [12]),
        ("[", []),
        (".*", []),
    ]  # fmt: skip
    for text, seqs in rows:
        assert through(text) == seqs, text


def test_which_runs_a_filter_lets_through() -> None:
    rows: list[tuple[str, list[str]]] = [
        ("", ["a.example", "b.example", "c.example"]),
        ("agent:b*", ["b.example"]),
        ("agent:192.0.2.3", ["c.example"]),
        ("outcome:complete", ["a.example"]),
        ("-outcome:complete", ["b.example", "c.example"]),
        ("run:3", ["c.example"]),
        ("env:testing", ["b.example"]),
        ("version:7", ["a.example"]),
        ("rule:S01", ["b.example"]),
        ("-rule:any", ["a.example"]),
        ("severity:error", ["b.example", "c.example"]),
        ("ms:>100", ["a.example", "b.example"]),
        ("status:500", ["b.example"]),
        ("phase:catalog", ["a.example", "b.example"]),
        ("phase:handshake", ["c.example"]),
        # One and the same exchange has to be all of it.
        ("phase:plugins status:500", []),
        ("phase:catalog status:500", ["b.example"]),
        ("phase:catalog -status:200", ["b.example"]),
        # Only negated: none of its exchanges may be so.
        ("-status:>=400", ["a.example", "c.example"]),
        ("-status:>=400 -phase:handshake", ["a.example"]),
        ("-status:>=400 agent:a*", ["a.example"]),
        ("text:'could not find'", ["b.example"]),
        ("path:/modules/", ["a.example", "b.example"]),
        ("complete", ["a.example"]),
    ]
    for text, names in rows:
        assert runs(text) == names, text


def test_durations_and_sizes() -> None:
    leg = Leg("x", "agent", "192.0.2.1")
    records: list[Record] = [
        Exchange(leg, Request((), b"x" * 900, started=START), Response((), b"x" * 200, ended=START + 0.5), seq=1),
        Exchange(leg, Request((), b"", started=START), Response((), b"x", ended=START + 2, lost=2_000_000), seq=2),
        Exchange(leg, Request((), b"", started=START + 9), Response((), b"", ended=START + 1), seq=3),
        Handshake(leg, START, "no", seq=4),
    ]
    assert through("ms:>=500", records) == [1, 2]
    assert through("ms:500", records) == [1]
    assert through("ms:0", records) == [3]
    assert through("ms:<500", records) == [3]
    assert through("size:>1k", records) == [1, 2]
    assert through("size:1.1kB", records) == [1]
    assert through("size:1M-3M", records) == [2]
    assert through("-size:>=0", records) == [4]


def test_moments_are_absolute_or_count_back_from_the_latest_record() -> None:
    latest = START + 300
    assert through("since:99s", latest=latest) == [13]
    assert through("since:100s", latest=latest) == [12, 13]
    assert through("since:1h", latest=latest) == through("since:7d", latest=latest) == ALL
    assert through("until:4m", latest=latest) == [1, 2, 3, 4, 5, 6]
    assert through("since:5m until:5m", latest=None) == ALL
    moment = utc(START + 100)
    assert through(f"since:{moment}") == [7, 8, 9, 10, 11, 12, 13]
    assert through(f"until:{moment.removesuffix('Z')}") == [1, 2, 3, 4, 5, 6]
    assert through("since:1999-12-31 until:9999-12-31T23:59:59+00:00") == ALL
    # A run that was still going on is of interest.
    assert runs("since:200s", latest=START + 300.2) == ["b.example", "c.example"]
    assert runs("until:3m", latest=latest) == ["a.example", "b.example"]


def test_bodies_are_read_without_their_encoding_and_only_for_text(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = Response((("Content-Encoding", "gzip"),), gzip.compress(b"Evaluation Error: na\xc3\xafve"))
    lying = Response((("Content-Encoding", "gzip"),), b"Evaluation Error")
    records: list[Record] = [
        Exchange(Leg("x", "agent"), Request(), response, seq=n) for n, response in enumerate([packed, lying], 1)
    ]
    assert through("text:'evaluation error'", records) == [1, 2]
    assert through("text:NAÏVE", records) == [1]
    chosen = filters.parse("text:x status:500")
    step = next(steps(Analyzer(), records))
    monkeypatch.setattr("inspector.summaries.filters.decode.content", lambda _: pytest.fail("it was not asked for"))
    assert not chosen.matches_step(filters.candidate(step))
    assert not chosen.marks(filters.candidate(step))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("statsu:404", ["no key 'statsu'", "status: ", "status:>=400"]),
        ("certname:x", ["no key 'certname'", "agent:web*"]),
        ("zzz:1", ["no key 'zzz'", "There are outcome, agent"]),
        ("status:abc", ["status cannot be 'abc'", "status:4xx"]),
        ("status:>=", ["status cannot be '>='"]),
        ("status:500-400", ["ends before it begins"]),
        ("status:", ["status cannot be ''"]),
        ("phase:catlog", ["Did you mean catalog?", "phase:catalog"]),
        ("outcome:fail", ["Did you mean failed?"]),
        ("severity:bad", ["severity:warning"]),
        ("rule:Q", ["No rule id begins like this.", "rule:B23"]),
        ("endpoint:catalgo", ["no such endpoint, but catalog"]),
        ("method:P*", ["method:PUT"]),
        ("ms:slow", ["ms:>500"]),
        ("size:>1T", ["size:>1M"]),
        ("run:first", ["run:12"]),
        ("version:<x", ["version:<6.4"]),
        ("since:yesterday", ["since:2026-11-21T07:00"]),
        ("until:9999999999d", ["until:10m"]),
        ('text:"open', ["is not valid from 'text:\"open' on", "ends with a quote"]),
        ('a "b"c', ["is not valid from '\"b\"c' on"]),
        ('""', ["has no value"]),
        ('"\x1b[2J', ["\\x1b"]),
    ],
)
def test_a_mistake_is_answered_with_an_example(text: str, words: list[str]) -> None:
    with pytest.raises(InspectorError) as caught:
        filters.parse(text)
    for word in words:
        assert word in str(caught.value)
    assert caught.value.hint
    assert "\x1b" not in str(caught.value)


def test_every_example_in_the_help_is_a_filter() -> None:
    for name, key in filters.KEYS.items():
        examples = key.example.replace(" or ", ", ").split(", ")
        for text in examples:
            assert text.startswith(f"{name}:")
            assert len(filters.parse(text).terms) == 1
    assert set(filters.OTHER_NAMES.values()) <= set(filters.KEYS)
    assert not set(filters.OTHER_NAMES) & set(filters.KEYS)
    for endpoint in ENDPOINTS:
        filters.parse(f"endpoint:{endpoint.name}")


def test_words_that_look_like_keys() -> None:
    assert len(filters.parse("Foo::Bar 12:30:01 'http://x' -\"a b\" - don't it\"s").terms) == 7
    assert through("-'disk is' phase:gap") == []


PARTS = st.sampled_from(["agent:", "path:", "text:", "env:", "version:", '"', "'", "\\", " ", "-", "!", "*", "[", "]"])


@given(st.lists(PARTS | st.text(max_size=5), max_size=12).map("".join))
def test_any_text_is_a_filter_or_a_mistake(text: str) -> None:
    try:
        chosen = filters.parse(text)
    except InspectorError:
        return
    step = _CATALOG
    assert chosen.matches_step(looked(step)) in (True, False)


def test_stars_do_not_make_it_slow() -> None:
    # Backtracking would take years.
    path = "/" + "a" * 5000
    record = Exchange(Leg("x", "agent"), Request(target=path), seq=1)
    assert through(f"path:{'*a' * 50}*b", [record]) == []


_CATALOG: Step = next(steps(Analyzer(), together(Agent().catalog())))


# -- completion -------------------------------------------------------------------------------------------


KNOWN = {"agent": ["web1.example", "web2.example", "my node", 'q"\\ x', "'s", "\x1b[2J"], "env": ["production"]}


def test_a_filter_is_completed() -> None:
    rows: list[tuple[str, list[str]]] = [
        ("ph", ["phase:"]),
        ("PH", ["phase:"]),
        ("!ph", ["!phase:"]),
        ("-s", ["-status:", "-severity:", "-size:", "-since:"]),
        ("certn", ["agent:"]),
        ("nothing", []),
        ("phase:ca", ["phase:catalog"]),
        ("status:404 phase:ca", ["status:404 phase:catalog"]),
        ("phase:catalog", []),
        ("phase:catalog ou", ["phase:catalog outcome:"]),
        ("outcome:w", ["outcome:waiting"]),
        ("method:P", ["method:POST", "method:PUT"]),
        ("severity:", ["severity:error", "severity:warning", "severity:notice"]),
        ("endpoint:file_b", ["endpoint:file_bucket_file"]),
        ("rule:a", ["rule:any"]),
        ("agent:web", ["agent:web1.example", "agent:web2.example"]),
        ("agent:WEB1", ["agent:web1.example"]),
        ("agent:m", ['agent:"my node"']),
        ('agent:"my n', ['agent:"my node"']),
        ("agent:'my n", ['agent:"my node"']),
        ("agent:q", ['agent:"q\\"\\\\ x"']),
        ("agent:\x1b", []),
        ("env:", ["env:production"]),
        ("version:", []),
        ('text:"ph', []),
        ('text:"a b" ph', ['text:"a b" phase:']),
        ('text:"a"b ph', []),
        ("it's ph", ["it's phase:"]),
    ]
    for text, completions in rows:
        found = completion.complete(text, KNOWN)
        assert sorted(found) == sorted(completions), text


def test_the_rules_of_a_capture_come_before_the_others() -> None:
    output = completion.complete("rule:", {"rule": ["S01", "B23"]})
    assert output[:3] == ["rule:S01", "rule:B23", "rule:any"]
    assert len(output) == len(set(output)) == len(completion.complete("rule:"))
    assert completion.complete("rule:b", {"rule": ["S01", "B23"]})[:2] == ["rule:B23", "rule:B01"]


def test_before_anything_is_written_there_are_the_keys() -> None:
    assert completion.complete("") == [f"{key}:" for key in filters.KEYS]
    assert completion.complete("run:1 ") == [f"run:1 {key}:" for key in filters.KEYS]


def test_every_value_that_completion_knows_is_one() -> None:
    for key in filters.KEYS:
        for output in completion.complete(f"{key}:", KNOWN):
            assert len(filters.parse(output).terms) == 1, output
    assert len(completion.complete("rule:")) > 100
    assert {output.partition(":")[2] for output in completion.complete("endpoint:")} == {
        endpoint.name for endpoint in ENDPOINTS
    }


@given(st.text(max_size=12).filter(lambda text: text.strip() == text != ""))
@example(":")
def test_a_completed_value_means_itself(name: str) -> None:
    for output in completion.complete("agent:", {"agent": [name]}):  # none if it can't be printed
        chosen = filters.parse(output)
        assert len(chosen.terms) == 1
        if not set(name) & set("*?["):
            look = looked(next(iter(steps(Analyzer(), conversation()))))
            look.brief.certname, look.run = name, None
            assert chosen.matches_step(look)


@given(st.text(alphabet="ph:a \"'\\!-x", max_size=14))
def test_no_half_written_filter_troubles_completion(text: str) -> None:
    for output in completion.complete(text, KNOWN):
        assert output != text


def test_a_plain_word_that_may_be_an_outcome_is_completed_to_it() -> None:
    assert completion.complete("failed") == ["outcome:failed", "!outcome:complete"]
    assert completion.complete("x err") == ["x severity:error"]
    assert completion.complete("comp")[0] == "outcome:complete"
    assert completion.complete("")[0] == "outcome:"
    assert completion.complete("!fail") == []


def test_several_outcomes() -> None:
    chosen = filters.parse("outcome:failed,refused")
    expectations: list[tuple[Outcome, bool]] = [("failed", True), ("refused", True), ("complete", False)]
    for outcome, expected in expectations:
        run = RunBrief(number=1, outcome=outcome)
        assert chosen.matches_run(run, "", marked=False) is expected
    with pytest.raises(InspectorError, match="cannot be 'failed,nothing'"):
        filters.parse("outcome:failed,nothing")
