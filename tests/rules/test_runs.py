"""Rules R01 to R22, beyond their examples: thresholds, near misses, several runs, real recordings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from inspector.analysis.analyzer import Analyzer
from inspector.rules import all_rules, fixes, rule_of
from inspector.rules.kit import *
from inspector.runs import run_history
from inspector.runs.observations import PhaseSpan
from inspector.runs.run_history import Fleet
from tests.support.conversations import findings, numbered, runs_of

if TYPE_CHECKING:
    from collections.abc import Sequence


RUNS = tuple(rule for rule in all_rules() if rule.id.startswith("R"))
ERROR, WARNING, NOTICE = Severity.ERROR, Severity.WARNING, Severity.NOTICE


def severities(records: Sequence[Record], ident: str, **thresholds: float) -> list[Severity]:
    return [finding.severity for finding in findings(records, ident, **thresholds)]


def check(text: str = "", *, kind: str = "", environment: str = "production") -> ExamplePart:
    """The look whether the environment exists (6.25, 7.10 and later); with a text, refused with 404."""
    return asked(
        "file_metadatas/plugins", None if text else [], status=404 if text else 200, text=text, kind=kind,
        environment=environment, query="&recurse=false&links=manage",
    )  # fmt: skip


def run(uuid: str, *, pause: float = 1800, first: tuple[ExamplePart, ...] = ()) -> list[ExamplePart]:
    return [*first, plugins(), catalog(uuid=uuid), report(uuid=uuid), wait(pause)]


@pytest.mark.parametrize("version", ["2.7.26", "3.8.7", "4.10.9", "5.5.22", "6.29.0", "7.23.0", "8.10.0", "8.28.1"])
def test_healthy_runs_say_nothing_at_all(version: str) -> None:
    files = (metadata("modules/a/b"), content("modules/a/b"))
    first = (node(), plugins(), catalog(), *files, report(), wait(1800))
    records = talk(*first, plugins(), catalog(uuid="a-2"), *files, report(uuid="a-2"), version=version)
    assert [run.findings for run in runs_of(records, RUNS)] == [[], []]


@pytest.mark.parametrize("version", ["2.7.26", "3.8.7", "7.23.0"])
@pytest.mark.parametrize("body", [b"", b"{", b"{}", b"[]", b"null", b"<html>", b"--- {}\n"])
def test_answers_and_requests_that_are_nothing_break_no_rule(version: str, body: bytes) -> None:
    healthy = (node(), plugins(), catalog(), metadata("modules/a/b"), report())
    answered = [altered(part, response={"body": body}) for part in healthy]
    refused = [altered(part, response={"body": body, "status": 500}) for part in healthy]
    asked_so = [altered(part, request={"body": body}) for part in healthy]
    analyzer = Analyzer(RUNS)
    for record in talk(*answered, *refused, *asked_so, *(unanswered(part) for part in healthy), version=version):
        assert not analyzer.feed(record).trouble


@pytest.mark.parametrize("part", [node(status=404), catalog(status=500), plugins(status=500), unanswered(catalog())])
def test_a_run_that_ends_early_breaks_no_rule(part: ExamplePart) -> None:
    analyzer = Analyzer(RUNS)
    for record in talk(part, report(result="failed")):
        assert not analyzer.feed(record).trouble


# -- R01, R02: the order ------------------------------------------------------------


def test_r01_is_for_agents_that_sync_plugins_and_only_if_the_beginning_was_observed() -> None:
    wrong = (node(), catalog(), report())
    assert severities(talk(*wrong), "R01") == [WARNING]
    assert severities(talk(*wrong, version="3.8.7"), "R01") == [WARNING]
    assert findings(talk(*wrong, version="2.7.26"), "R01") == []
    assert findings(talk(metadata("modules/a/b"), catalog(), report()), "R01") == []


def test_r01_leaves_it_to_r09_when_there_is_no_environment_to_sync_from() -> None:
    assert findings(talk(node(), check("Could not find environment 'x'"), catalog(), report()), "R01") == []


def test_r01_is_reported_once_for_several_catalogs() -> None:
    switched = talk(node(), catalog(environment="b"), catalog(asks="b", environment="b"), report())
    assert len(findings(switched, "R01")) == 1


def own_node(uuid: str | None) -> ExamplePart:
    query = f"&transaction_uuid={uuid}" if uuid else ""
    return asked("node/node1.example", {"name": "node1.example", "environment": "production"}, query=query)


def test_r02_knows_the_run_by_its_transaction_uuid() -> None:
    (found,) = findings(talk(plugins(), catalog(), own_node("a-1"), report()), "R02")
    assert "transaction a-1" in found.message
    assert found.seqs == (2, 3)
    # Also when the report came before, so that the first piece was over.
    (found,) = findings(talk(plugins(), catalog(), report(), own_node("a-1")), "R02")
    assert found.seqs == (3, 4)
    assert findings(talk(plugins(), catalog(), report(), own_node("a-2")), "R02") == []
    assert findings(talk(plugins(), catalog(), report(), own_node(None)), "R02") == []
    assert findings(taken_for_dead(), "R02") == []


def taken_for_dead(**fields: Any) -> list[Record]:
    """A run that stands in two pieces, for another one of the same agent came and went while it was applying."""
    applies = talk(plugins(), catalog(), wait(60), metadata("modules/a/b"), report(**fields))
    return together(applies, talk(*run("b-1"), after=20))


# -- R03, R04: reports ------------------------------------------------------------


def silent(seconds: float) -> list[Record]:
    """An agent of which nothing more is heard, and another one's request so long after."""
    return together(talk(plugins(), catalog()), talk(check(), certname="b.example", after=seconds))


@pytest.mark.parametrize(("seconds", "expected"), [(3590, NOTICE), (3610, ERROR)])
def test_r03_is_an_error_only_when_the_run_must_be_over(seconds: float, expected: Severity) -> None:
    assert severities(silent(seconds), "R03") == [expected]


def test_r03_says_how_long_there_was_silence() -> None:
    (found,) = findings(silent(13), "R03")
    assert found.message == "no report followed before the capture ends, 12 s later"
    assert found.severity is NOTICE
    assert severities(silent(13), "R03", silence_s=10) == [ERROR]


def test_r03_a_next_run_proves_it_and_is_part_of_the_proof() -> None:
    (found,) = findings(talk(plugins(), catalog(), wait(60), *run("a-2")), "R03")
    assert found.severity is ERROR
    assert found.seqs == (2, 3)
    assert "the agent's next run began on 20" in found.message
    assert found.message.endswith("UTC")


def test_r03_a_run_before_proves_nothing() -> None:
    assert severities(talk(*run("a-0", pause=60), plugins(), catalog()), "R03") == [NOTICE]


def test_r03_a_plugin_download_by_hand_is_no_next_run() -> None:
    # It shows nothing of the run, which may still be applying its catalog.
    assert severities(talk(plugins(), catalog(), metadata("modules/a/b"), wait(60), plugins()), "R03") == [NOTICE]


@pytest.mark.parametrize(
    "parts",
    [
        (plugins(), catalog(status=500), wait(1800), *run("a-2")),
        (plugins(), wait(1800), *run("a-2")),
        (catalog(uuid=None), wait(1800), *run("a-2")),
        (plugins(), unanswered(catalog()), wait(1800), *run("a-2")),
    ],
    ids=["failed", "no catalog", "puppet catalog download", "no answer"],
)
def test_r03_is_not_about_runs_that_never_had_a_catalog_to_report_of(parts: tuple[ExamplePart, ...]) -> None:
    assert findings(talk(*parts), "R03") == []


def test_r03_is_about_2_7_too_which_has_no_transaction_uuid() -> None:
    old = talk(plugins(), catalog(uuid=None), wait(1800), plugins(), catalog(uuid=None), report(), version="2.7.26")
    assert severities(old, "R03") == [ERROR]


def test_r03_finds_the_report_also_in_another_piece_of_the_run() -> None:
    assert findings(talk(plugins(), catalog(), own_node("a-1"), report()), "R03") == []


def test_r04_says_why_and_is_silent_when_the_beginning_is_missing() -> None:
    log = [
        {"level": "err", "source": "Facter", "message": "no such file"},
        {"level": "err", "source": "Puppet", "message": "Could not select a functional puppet server\n/x.rb:1"},
        {"level": "err", "source": "Puppet", "message": "Could not retrieve catalog; skipping run"},
    ]
    (found,) = findings(talk(report(result="failed", logs=log)), "R04")
    assert found.severity is NOTICE
    assert found.message.endswith("the agent says: Could not select a functional puppet server")
    assert findings(talk(report()), "R04") == []
    assert findings(talk(report(result="failed")), "R04") == []
    assert findings(talk(report(logs=log)), "R04") == []
    assert findings(taken_for_dead(result="failed", logs=log), "R04") == []
    assert severities(talk(*run("a-0"), plugins(), report()), "R04") == [NOTICE]
    assert findings(talk(metadata("modules/a/b"), report()), "R04") == []
    assert findings(talk(plugins(), report(cached_catalog_status="on_failure")), "R04") == []
    assert findings(talk(plugins(), report(cached_catalog_status="explicitly_requested")), "R04") == []


# -- R05 to R09: environments ------------------------------------------------------------


@pytest.mark.parametrize(
    "again",
    [
        (catalog(status=503), catalog()),
        (unanswered(catalog()), catalog()),
        (catalog(environment="b"), catalog(asks="b", environment="b")),
        (catalog(asks="a", environment="a"), catalog(asks="b", environment="b")),
        (catalog(uuid=None), catalog(uuid=None)),
        (altered(catalog(), response={"body": b"<html>"}), catalog()),
    ],
    ids=["503", "no answer", "another environment", "another question", "no uuid", "unreadable"],
)
def test_r05_asking_again_for_a_reason_is_right(again: tuple[ExamplePart, ...]) -> None:
    assert findings(talk(plugins(), *again, report()), "R05") == []


def test_r05_is_not_about_2_7_nor_about_the_next_run() -> None:
    assert findings(talk(plugins(), catalog(), catalog(), report(), version="2.7.26"), "R05") == []
    assert findings(talk(*run("a-1"), *run("a-2")), "R05") == []


def switching(count: int) -> list[Record]:
    """A run in which so many catalogs are for another environment than was asked for."""
    parts: list[ExamplePart] = [plugins()]
    for turn in range(count):
        asks, given = ("a", "b") if turn % 2 == 0 else ("b", "a")
        parts += [catalog(asks=asks, environment=given), plugins(environment=given)]
    return talk(*parts)


@pytest.mark.parametrize(("count", "expected"), [(1, []), (2, [WARNING]), (4, [WARNING]), (5, [ERROR])])
def test_r06_settling_late_is_a_warning_never_settling_an_error(count: int, expected: list[Severity]) -> None:
    assert severities(switching(count), "R06") == expected


def test_r06_and_r07_are_not_about_2_7() -> None:
    parts = (plugins(), catalog(asks="a", environment="b"), catalog(asks="b", environment="a"), report())
    assert findings(talk(*parts, version="2.7.26"), "R06") == []
    assert findings(talk(*parts[:2], metadata("modules/a/b", environment="a"), version="2.7.26"), "R07") == []


def test_r07_tells_an_agent_that_refuses_from_one_that_mixes() -> None:
    given = catalog(environment="staging")
    (mixed,) = findings(talk(plugins(), given, content("modules/a/b"), report()), "R07")
    assert "requests its files from production" in mixed.message
    (strict,) = findings(talk(plugins(), given, report(result="failed")), "R07")
    assert "did not accept the catalog for staging" in strict.message
    assert {mixed.severity, strict.severity} == {ERROR}


@pytest.mark.parametrize(
    "rest",
    [
        (),
        (metadata("modules/a/b", environment="staging"), report(environment="staging")),
        (report(environment="staging"),),
        (catalog(asks="staging", environment="staging"), metadata("modules/a/b", environment="staging")),
        (catalog(asks="staging", status=500), report(result="failed")),
    ],
    ids=["killed", "follows", "follows without files", "asks again", "asks again and fails"],
)
def test_r07_accuses_no_agent_that_followed(rest: tuple[ExamplePart, ...]) -> None:
    assert findings(talk(plugins(), catalog(environment="staging"), *rest), "R07") == []


def test_r08_says_once_what_node_and_catalog_say() -> None:
    (found,) = findings(talk(node(environment="b"), plugins(), catalog(environment="b"), report()), "R08")
    assert found.seqs == (1, 3)
    assert found.severity is NOTICE
    assert found.message == "the agent requested production, the master assigns b"
    (old,) = findings(talk(catalog(environment="b"), report(), version="2.7.26"), "R08")
    assert (old.severity, "requests its files from the former" in old.message) == (Severity.WARNING, True)


def test_the_environment_that_the_master_assigns_is_in_the_fix() -> None:
    given = catalog(environment="staging")
    (strict,) = runs_of(talk(plugins(), given, report(result="failed")))
    commands = [step.command for step in rule_of("R07").fix_for(strict)]
    assert commands[1] == "puppet config set environment staging --section agent"
    (old,) = runs_of(talk(plugins(), given, report(), version="2.7.26"))
    fix = fixes.plain(rule_of("R08").fix_for(old))
    assert "`environment = staging`" in fix
    assert "upgrade it" in fix
    assert "ENC" in fixes.plain(rule_of("R08").fix_for(strict))


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (check("Not Found: Could not find environment 'gone'", kind="ENVIRONMENT_NOT_FOUND"), [WARNING]),
        (check("Not Found: Could not find environment 'gone'"), [WARNING]),
        (check("No route", kind="HANDLER_NOT_FOUND"), []),
        (plugins(status=404, text="Not Found: Could not find environment 'gone'"), [ERROR]),
        (plugins(status=404, text="Not Found: Could not find file_metadatas plugins"), []),
        (catalog(status=404, text="Not Found: Could not find environment 'gone'"), [ERROR]),
        (catalog(status=400, text="Could not find environment gone"), [ERROR]),
        (catalog(status=404, text="Not Found: Could not find node1"), []),
    ],
)
def test_r09_knows_a_missing_environment_by_the_masters_words(part: ExamplePart, expected: list[Severity]) -> None:
    assert severities(talk(part), "R09") == expected


def test_r09_a_web_page_proves_nothing() -> None:
    page = altered(check("x"), response={"body": b"<html>Could not find environment</html>"},
                   answers={"Content-Type": "text/html"})  # fmt: skip
    assert findings(talk(page), "R09") == []


# -- R10 to R15: what the agent asks with ------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("5.5.22", 0), ("6.24.0", 0), ("6.26.0", 1), ("7.9.0", 0), ("7.12.0", 0), ("7.13.0", 1), ("8.10.0", 1),
        ("8.28.1", 1),
    ],
)  # fmt: skip
def test_r10_is_about_versions_that_remember_their_last_run(version: str, expected: int) -> None:
    twice = talk(*run("a-1", first=(node(),)), *run("a-2", first=(node(),)), version=version)
    assert len(findings(twice, "R10")) == expected


def test_r10_needs_a_whole_run_before_and_the_same_node() -> None:
    asks = (node(),)
    killed = talk(node(), plugins(), catalog(), wait(1800), *run("a-2", first=asks))
    assert findings(killed, "R10") == []
    lost = talk(*run("a-1"), *run("a-2", first=asks))
    assert findings(lost, "R10") == []
    again = (node(uuid="a-2"),)
    anew = talk(*run("a-1", first=asks), ca(), crl(), csr(), issued(), *run("a-2", first=again))
    assert findings(anew, "R10") == []


def test_r11_names_the_limit_and_a_site_can_move_it() -> None:
    records = talk(catalog(facts={"packages": [f"p{n}" for n in range(3000)]}), report())
    assert findings(records, "R11") == []
    (found,) = findings(records, "R11", values=2048)
    assert found.message == "facts: 3001 values, more than 2048"
    assert found.severity is WARNING
    assert len(findings(records, "R11", payload_bytes=100, top_level=1)) == 2


def test_r11_r13_r15_survive_facts_that_cannot_be_read() -> None:
    broken = altered(catalog(), request={"body": b"facts_format=pson&facts=%257Bbroken"})
    for ident in ("R11", "R13", "R15"):
        assert findings(talk(broken, version="8.10.0"), ident) == []


def test_r11_finds_every_limit_from_the_first_value_beyond_it() -> None:
    def lengthy(count: int, depth: int) -> Any:
        value: Any = {"k" * count: 1}
        for _ in range(depth):
            value = {"n": value}
        return value

    def found(limit: str, number: float, facts: dict[str, Any]) -> list[str]:
        return [finding.message for finding in findings(talk(catalog(facts=facts)), "R11", **{limit: number})]

    # The agent's version is a fact too.
    assert found("values", 4, {"a": [1, 2, 3]}) == []
    assert found("values", 4, {"a": [1, 2, 3, 4]}) == ["facts: 5 values, more than 4"]
    assert found("top_level", 3, {"a": 1, "b": 2}) == []
    assert found("top_level", 3, {"a": 1, "b": 2, "c": 3}) == ["facts: 4 top-level facts, more than 3"]
    assert found("value_bytes", 50, {"a": {"b": "é" * 25}}) == []
    assert found("value_bytes", 50, {"a": {"b": "é" * 25 + "x"}}) == [
        "facts: the value of 'a.b' is longer than 50 bytes"
    ]
    # 8 bytes, 2 for each part of the way, and the parts: "a", three times "n", and the long key.
    assert found("name_bytes", 122, {"a": lengthy(100, 3)}) == []
    assert len(found("name_bytes", 121, {"a": lengthy(100, 3)})) == 1
    size = len(json.dumps({"puppetversion": "7.23.0", "a": [1, 2]}, separators=(",", ":")))
    assert found("payload_bytes", size, {"a": [1, 2]}) == []
    assert len(found("payload_bytes", size - 1, {"a": [1, 2]})) == 1


def test_r11_survives_facts_that_only_yaml_can_say() -> None:
    facts = (
        "--- !ruby/object:Puppet::Node::Facts\n  name: node1.example\n  values:\n    a:\n      ? [1]\n      : .nan\n"
    )
    sent = f"facts_format=yaml&facts={quote(quote(facts))}"
    assert findings(talk(altered(catalog(), request={"body": sent.encode()})), "R11") == []


def test_r12_a_get_without_facts_is_right() -> None:
    target = "/production/catalog/node1.example?fail_on_404=true"
    assert findings(talk(altered(catalog(), request={"method": "GET", "target": target, "body": b""}),
                         version="3.8.7"), "R12") == []  # fmt: skip


@pytest.mark.parametrize(("version", "expected"), [("2.7.26", NOTICE), ("3.2.4", NOTICE), ("4.10.9", WARNING)])
def test_r14_yaml_is_what_old_agents_know(version: str, expected: Severity) -> None:
    sent = altered(catalog(), request={"body": b"facts_format=b64_zlib_yaml&facts=x"})
    # Facts that cannot be read do not tell the version of a legacy agent; the report does.
    records = talk(sent, report(), version=version)
    assert severities(records, "R14") == [expected]


def test_r15_is_about_8_and_about_more_than_a_name_of_ones_own() -> None:
    facts = {"osfamily": "Debian", "operatingsystem": "Debian", "ipaddress_eth0": "192.0.2.7"}
    assert severities(talk(catalog(facts=facts), report(), version="8.10.0"), "R15") == [NOTICE]
    assert findings(talk(catalog(facts=facts), report(), version="7.23.0"), "R15") == []
    assert findings(talk(catalog(facts={"uuid": "x", "id": "y"}), report(), version="8.10.0"), "R15") == []
    assert len(findings(talk(catalog(facts={"uuid": "x"}), report(), version="8.10.0"), "R15", least=1)) == 1


# -- R16, R17: several runs ------------------------------------------------------------


@pytest.mark.parametrize(("pause", "expected"), [(590, 1), (610, 0)])
def test_r16_counts_runs_that_follow_each_other_closely(pause: float, expected: int) -> None:
    records = talk(*(part for n in range(4) for part in run(f"a-{n}", pause=pause)))
    assert len(findings(records, "R16")) == expected


def test_r16_three_runs_by_hand_are_nothing() -> None:
    records = talk(*(part for n in range(3) for part in run(f"a-{n}", pause=5)))
    assert findings(records, "R16") == []
    assert len(findings(records, "R16", runs=3)) == 1


def crowd(agents: int, apart: float) -> list[Record]:
    return together(
        *(talk(*run("a-1"), certname=f"n{n}.example", after=apart * n, address=f"198.51.100.{n}")
          for n in range(1, agents + 1))
    )  # fmt: skip


def test_r16_a_herd_is_named_once_however_large() -> None:
    (found,) = findings(crowd(60, 0.1), "R16")
    assert found.severity is NOTICE
    assert "20 agents began their runs within 10 s" in found.message
    assert len(found.seqs) == 20
    assert len(findings(crowd(60, 0.1), "R16", agents=60)) == 1


@pytest.mark.parametrize(("agents", "apart"), [(19, 0.1), (60, 0.6)])
def test_r16_few_agents_or_spread_ones_are_no_herd(agents: int, apart: float) -> None:
    assert findings(crowd(agents, apart), "R16") == []


def test_r16_two_herds_are_two() -> None:
    first = crowd(25, 0.1)
    second = together(
        *(talk(*run("a-2"), certname=f"n{n}.example", after=1800 + 0.1 * n, address=f"198.51.100.{n}")
          for n in range(1, 26))
    )  # fmt: skip
    assert len(findings(together(first, second), "R16")) == 2


def test_r17_knows_an_overlap_also_when_one_run_was_taken_for_dead() -> None:
    (found,) = findings(taken_for_dead(), "R17")
    assert found.severity is ERROR
    assert found.message.endswith("both from 192.0.2.7")
    applies = talk(plugins(), catalog(), wait(60), metadata("modules/a/b"), report())
    elsewhere = talk(*run("b-1"), after=20, address="192.0.2.8")
    (found,) = findings(together(applies, elsewhere), "R17")
    assert "192.0.2.7" in found.message
    assert "192.0.2.8" in found.message


def test_r17_runs_one_after_the_other_do_not_overlap() -> None:
    killed = talk(plugins(), catalog(), metadata("modules/a/b"))
    assert findings(together(killed, talk(*run("b-1"), after=20)), "R17") == []
    # The master still compiled for the killed one when the next began.
    slow = talk(plugins(), altered(catalog(), response={"started": None, "ended": None}))
    assert findings(together(slow, talk(*run("b-1"), after=20)), "R17") == []


def test_r17_needs_two_catalogs_of_two_runs() -> None:
    nameless = (plugins(), catalog(uuid=None), wait(9), metadata("modules/a/b"), report(uuid=None))
    assert findings(together(talk(*nameless), talk(*nameless, after=3.5)), "R17") == []
    early = (plugins(), report(uuid="x-1", result="failed"))
    assert findings(talk(*early, *run("b-1")), "R17") == []
    assert findings(talk(*run("b-1", pause=1), *early), "R17") == []


def test_r16_runs_that_ask_for_no_catalog_cost_no_compilation() -> None:
    early = [part for n in range(6) for part in (plugins(), report(uuid=f"x-{n}", result="failed"))]
    assert findings(talk(*early), "R16") == []


# -- R18 to R22 ------------------------------------------------------------


def test_r18_says_what_is_pending() -> None:
    for number, words in ((1, "1 resource is"), (2, "2 resources are")):
        pending = {"resources": {"name": "resources", "label": "", "values": [["out_of_sync", "", number]]}}
        (found,) = findings(talk(catalog(), report(noop=True, metrics=pending)), "R18")
        assert found.message == f"the agent runs with noop: nothing is changed, {words} out of sync"


def test_r19_using_the_cache_on_purpose_is_a_notice() -> None:
    assert severities(talk(report(cached_catalog_status="explicitly_requested")), "R19") == [NOTICE]
    (found,) = findings(talk(catalog(status=500, text="no such class"), report(cached_catalog_status="on_failure")),
                        "R19")  # fmt: skip
    assert found.severity is ERROR
    assert found.message.endswith("its cached catalog: no such class")
    assert found.seqs == (1, 2)


def test_r20_says_the_masters_reason_or_the_agents() -> None:
    (refused,) = findings(talk(catalog(status=400, text="no such class"), report(result="failed")), "R20")
    assert refused.message == "nothing was applied because there was no catalog: 400 no such class"
    (lost,) = findings(talk(unanswered(catalog(), "timed out"), report(result="failed")), "R20")
    assert lost.message.endswith("no catalog: the request got no answer (timed out)")
    log = [{"level": "err", "source": "Puppet", "message": "Could not intern from json"}]
    broken = altered(catalog(), response={"body": b"{"})
    (unread,) = findings(talk(broken, report(result="failed", logs=log)), "R20")
    assert unread.message.endswith("no catalog: Could not intern from json")


@pytest.mark.parametrize(
    "parts",
    [
        (catalog(status=500), report(result="failed", cached_catalog_status="on_failure")),
        (catalog(status=500), report(result="changed", resource_statuses={"Notify[x]": {}})),
        (catalog(status=503), catalog(), report(result="failed")),
        (report(result="failed"),),
    ],
    ids=["cached", "applied all the same", "second try", "R04"],
)
def test_r20_is_about_runs_that_applied_nothing_for_want_of_a_catalog(parts: tuple[ExamplePart, ...]) -> None:
    assert findings(talk(*parts), "R20") == []


def test_r21_is_reported_where_the_catalog_before_was_static() -> None:
    source = {"type": "File", "title": "/a", "parameters": {"source": ["/local", "puppet:///modules/a/b"]}}
    wanted = {"static_catalog": "true"}
    first, second = (catalog(uuid=uuid, form=wanted, resources=[source]) for uuid in ("a-2", "a-3"))
    ordinary = talk(first, report(uuid="a-2"), wait(1800), second, report(uuid="a-3"))
    assert findings(ordinary, "R21") == []  # a site without versioned code
    static = talk(catalog(form=wanted, code_id="v1", resources=[source]), report(), wait(1800))
    (found,) = findings(numbered([*static, *talk(wait(1800), first, report(uuid="a-2"), wait(1800), second)]), "R21")
    assert found.seqs == (1, 3)
    local = {"type": "File", "title": "/a", "parameters": {"source": "/local"}}
    assert findings(talk(catalog(form=wanted, resources=[local])), "R21") == []
    assert findings(talk(catalog(resources=[source])), "R21") == []
    known = {"/a": {"path": "/a", "source": "puppet:///modules/a/b"}}
    inlined = catalog(form=wanted, resources=[source], metadata=known)
    assert findings(talk(inlined), "R21") == []


CURL = {"X-Puppet-Version": None, "User-Agent": "curl/7.88.1 (x86_64)"}


def test_r22_a_tool_is_named_and_judged_by_nothing_that_is_about_agents() -> None:
    bad = (
        check("Could not find environment 'x'"),
        node(environment="b"),
        catalog(environment="b"),
        catalog(environment="b"),
        report(result="failed"),
    )
    records = talk(*(altered(part, headers=CURL) for part in bad))
    found = [finding for run in runs_of(records, RUNS) for finding in run.findings]
    assert {finding.rule for finding in found} == {"R22"}
    assert {finding.message for finding in found} == {"curl/7.88.1 sends requests that agents send"}


# -- the memory behind them ------------------------------------------------------------


def test_the_fleet_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_history, "AGENTS", 3)
    monkeypatch.setattr(run_history, "STARTS", 5)
    known = Fleet()
    for number in range(20):
        known.remember(_past(number, certname=f"n{number % 4}.example", names=1000))
    assert set(known.runs) == {"n1.example", "n2.example", "n3.example"}
    assert [start.time for start in known.starts] == [15, 16, 17, 18, 19]
    assert all(len(run.changed) == run_history.NAMES for runs in known.runs.values() for run in runs)
    for number in range(20, 40):
        known.remember(_past(number, certname="n1.example"))
    assert [run.number for run in known.runs["n1.example"]] == list(range(32, 40))


def _past(number: int, *, certname: str, names: int = 0) -> Run:
    made = Run("192.0.2.1", certname, number=number, started=float(number), authenticated=1)
    made.seqs.append(number)
    made.spans[Phase.CATALOG] = PhaseSpan(Phase.CATALOG)
    made.changed = frozenset(f"File[{n:05}]" for n in range(names))
    return made
