"""Commands other than the agent are recognized by what they request, as in 7.23.0 (tests/real/test_commands.py), and
as `puppet ssl renew_cert` and `puppet catalog download` of OpenVox 9.0.0-beta2 made their requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.analysis import verdicts
from inspector.analysis.analyzer import Analyzer
from inspector.runs.examples import (
    altered,
    asked,
    ca,
    catalog,
    crl,
    csr,
    issued,
    node,
    not_issued,
    plugins,
    refused,
    renewal,
    report,
    talk,
    unanswered,
    wait,
)
from inspector.summaries import conclusions, wording
from tests.support.briefs import verdict_of, why
from tests.support.conversations import SIGNED, WAITS, runs_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.model import Record
    from inspector.runs.examples import ExamplePart
    from inspector.runs.run import Run

BUCKET = "file_bucket_file/sha256/" + "0" * 64 + "//etc/motd"


def runs(records: Sequence[Record]) -> list[Run]:
    return runs_of(records)


def only(*parts: ExamplePart, version: str = "7.23.0") -> Run:
    (run,) = runs(talk(*parts, version=version))
    return run


def check() -> ExamplePart:
    return asked("file_metadatas/plugins", [], query="&recurse=false&links=manage")


def facts() -> ExamplePart:
    return altered(report(), request={"target": "/puppet/v3/facts/node1.example?environment=production"})


def bucket(status: int) -> ExamplePart:
    return altered(asked(BUCKET, b"", status=status), request={"method": "HEAD"})


def on(part: ExamplePart, leg: str) -> ExamplePart:
    """A part on a connection of its own, as another process has it."""
    return altered(part, leg={"id": leg})


COMMANDS = {
    "puppet plugin download": (plugins(),),
    "puppet catalog download": (catalog(uuid=None),),
    "puppet node find": (node(),),
    "puppet facts upload": (facts(),),
    "puppet filebucket": (bucket(404), asked(BUCKET, b"", status=200)),
    "puppet ssl download_cert": (issued(),),
    "puppet ssl renew_cert": (renewal(),),
    "puppet ssl bootstrap": (ca(), crl(), csr(), issued()),
}


@pytest.mark.parametrize(("name", "parts"), COMMANDS.items(), ids=COMMANDS)
def test_a_command_is_named_and_has_no_verdict(name: str, parts: tuple[ExamplePart, ...]) -> None:
    run = only(*parts)
    assert (run.snapshot().tool, run.outcome, verdicts.verdict(run)) == (name, "complete", None)
    assert f"({name})" in wording.run_row(run.snapshot())[2]


def test_a_signing_request_without_a_poll_is_submit_request() -> None:
    run = only(csr(status=400, text=WAITS))
    assert (run.snapshot().tool, run.outcome) == ("puppet ssl submit_request", "waiting")
    assert verdicts.verdict(run) is None
    assert only(csr(status=400, text=WAITS), not_issued()).command is None  # an agent polls


def test_an_error_of_a_command_is_an_error() -> None:
    """What the CA says of the name, or auth.conf of the node, is true for its next run as well."""
    signed = only(csr(status=400, text=SIGNED))
    conclusion = verdict_of(signed)
    assert conclusion
    assert conclusion.cause == "B18"
    assert conclusion.message.startswith("`puppet ssl submit_request` of node1.example")
    (forbidden,) = [found for found in only(bucket(403)).findings if found.rule == "S02"]
    assert forbidden.severity == "error"
    assert only(bucket(403)).outcome == "refused"


@pytest.mark.parametrize(
    ("parts", "outcome"),
    [((node(status=403),), "refused"), ((asked(BUCKET, b"", status=404),), "failed"),
     ((unanswered(plugins()),), "unfinished"), ((renewal(status=404),), "failed"), ((renewal(status=403),), "refused"),
     ((altered(facts(), response={"status": 500}),), "failed"), ((catalog(uuid=None, status=500),), "failed")],
)  # fmt: skip
def test_the_outcome_of_a_command_is_the_masters_answer(parts: tuple[ExamplePart, ...], outcome: str) -> None:
    run = only(*parts)
    assert run.outcome == outcome
    assert why(run)  # no mistake in its words, whatever there is to say


@pytest.mark.parametrize(
    ("part", "cause"),
    [(catalog(uuid=None, status=500), "S01"), (altered(facts(), response={"status": 500}), "P17"),
     (renewal(status=404), "B36"), (renewal(status=403), "B36")],
)  # fmt: skip
def test_a_command_that_failed_has_a_cause(part: ExamplePart, cause: str) -> None:
    verdict = verdicts.verdict(only(part, version="9.0.0"))
    assert verdict
    assert verdict.cause
    assert (verdict.cause.rule, verdict.certainty) == (cause, "certain")


AGENTS = {
    "killed after the check of its environment": ((check(),), "7.23.0"),
    "killed among its plugins": ((check(), plugins()), "7.23.0"),
    "killed after its node": ((node(uuid="a-1"),), "7.23.0"),
    "killed after its catalog": ((catalog(),), "7.23.0"),
    "waits for its certificate": ((ca(), crl(), csr(), not_issued()), "7.23.0"),
    "killed after its CA": ((ca(), crl()), "7.23.0"),
    "refuses the master": ((issued(), refused()), "7.23.0"),
    "polls for its certificate": ((not_issued(),), "5.5.22"),
    "2.7 has no node request": ((plugins(),), "2.7.26"),
    "reports": ((plugins(), report()), "7.23.0"),
}


@pytest.mark.parametrize(("parts", "version"), AGENTS.values(), ids=AGENTS)
def test_an_agent_that_was_stopped_is_an_agent(parts: tuple[ExamplePart, ...], version: str) -> None:
    run = only(*parts, version=version)
    assert (run.command, run.snapshot().tool) == (None, None)
    assert run.outcome != "complete" or run.reports


@pytest.mark.parametrize(
    ("parts", "version"),
    [((plugins(),), "5.5.22"), ((plugins(),), "7.5.0")],
    ids=["strict 5", "strict 7.5"],
)
def test_what_may_be_either_is_likely(parts: tuple[ExamplePart, ...], version: str) -> None:
    run = only(*parts, version=version)
    assert run.command
    assert (run.command.certain, run.snapshot().tool, run.outcome) == (False, None, "unfinished")
    brief = conclusions.of_run(run)
    assert brief.verdict
    assert (brief.verdict.cause, brief.verdict.certainty) == (None, "likely")
    assert run.command.name in brief.verdict.message
    assert "Nothing to do" in brief.fix


RUN = (on(check(), "8"), on(plugins(), "8"), on(catalog(), "8"))


def apart(*parts: ExamplePart, version: str = "9.0.0") -> list[tuple[str | None, str, int]]:
    """Each run's command, outcome and number of records."""
    return [(run.snapshot().tool, run.outcome, len(run.seqs)) for run in runs(talk(*parts, version=version))]


def test_a_renewal_by_hand_is_apart_from_what_comes_later() -> None:
    renewed = ("puppet ssl renew_cert", "complete", 1)
    by_hand = on(renewal(), "1")
    assert apart(by_hand, wait(600), *RUN, on(report(), "8")) == [renewed, (None, "complete", 4)]
    assert apart(by_hand, wait(5), on(renewal(), "2")) == [renewed, renewed]
    assert apart(by_hand, wait(5), on(facts(), "2")) == [renewed, ("puppet facts upload", "complete", 1)]


def test_an_agent_renews_and_goes_on() -> None:
    assert apart(on(renewal(), "1"), *RUN, on(report(), "8")) == [(None, "complete", 5)]
    # Refused, it goes on with the certificate that it has, and on the same connection.
    assert apart(on(renewal(status=403), "8"), wait(30), *RUN, on(report(), "8")) == [(None, "complete", 5)]


def test_a_bootstrap_by_hand_is_apart_from_the_first_run() -> None:
    bootstrap = (ca(), crl(), csr(), issued())
    run = (*RUN, on(report(), "8"))
    assert apart(*bootstrap, wait(600), *run) == [("puppet ssl bootstrap", "complete", 4), (None, "complete", 4)]
    assert apart(*bootstrap, *run) == [(None, "complete", 8)]  # an agent, or a command and an agent at once


def test_who_asks_for_a_certificate_after_it_got_one_is_another_process() -> None:
    bootstrap = (ca(), crl(), csr(), issued())
    again = [("puppet ssl bootstrap", "complete", 4), ("puppet ssl download_cert", "waiting", 1)]
    assert apart(*bootstrap, not_issued()) == again
    assert apart(*bootstrap, *RUN, on(report(), "8"), not_issued())[1:] == again[1:]
    # An agent up to 6.3, whose certificate was cleaned.
    assert [number for *_, number in apart(ca(), not_issued(), csr(), issued(), not_issued(), version="5.5.22")] == [
        4, 1,
    ]  # fmt: skip


def test_facts_are_of_the_run_whose_report_follows_at_once() -> None:
    again, upload = on(facts(), "9"), ("puppet facts upload", "complete", 1)
    assert apart(*RUN, wait(300), again) == [(None, "unfinished", 3), upload]
    assert apart(*RUN, wait(300), again, on(report(), "9")) == [(None, "complete", 5)]
    assert apart(*RUN, wait(300), again, on(report(), "10")) == [(None, "complete", 5)]
    assert apart(*RUN, wait(30), again, wait(30), on(report(), "10")) == [(None, "complete", 4), upload]
    assert apart(again, *RUN, on(report(), "8")) == [upload, (None, "complete", 4)]
    assert apart(*RUN, on(facts(), "8"), on(report(), "8")) == [(None, "complete", 5)]


@pytest.mark.parametrize(("name", "parts"), COMMANDS.items(), ids=COMMANDS)
def test_a_command_asks_a_server_list_first(name: str, parts: tuple[ExamplePart, ...]) -> None:
    status = asked("/status/v1/simple/server", b"running", media="text/plain")
    run = only(status, *parts)
    assert (run.snapshot().tool, run.outcome) == (name, "complete")


def legacy_catalog() -> ExamplePart:
    """A catalog request without facts, as the faces of 2.7 and 3 make it."""
    return asked("/production/catalog/node1.example?", {"name": "node1.example", "environment": "production"})


def legacy_facts() -> ExamplePart:
    return altered(report(), request={"target": "/production/facts/node1.example"})


def plugin_facts() -> ExamplePart:
    return asked("/production/file_metadatas/pluginfacts?recurse=true", [])


@pytest.mark.parametrize("version", ["2.7.26", "3.8.7"])
@pytest.mark.parametrize(
    ("name", "part"), [("puppet catalog download", legacy_catalog()), ("puppet facts upload", legacy_facts())]
)
def test_a_command_up_to_3_that_sends_what_no_agent_sends_is_certain(
    name: str, part: ExamplePart, version: str
) -> None:
    run = only(part, version=version)
    assert (run.snapshot().tool, run.outcome, verdicts.verdict(run)) == (name, "complete", None)
    # It belongs to no agent's run before or after it.
    parts = (on(catalog(uuid=None), "1"), on(part, "2"), wait(60), on(plugins(), "3"), on(catalog(uuid=None), "4"))
    assert [(one.snapshot().tool, len(one.seqs)) for one in runs(talk(*parts, version=version))] == [
        (None, 1), (name, 1), (None, 2),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("puppet plugin download", (plugin_facts(), plugins())),
        ("puppet node find", (node(),)),
        ("puppet filebucket", (asked("/production/file_bucket_file/md5/" + "0" * 32, b"", media="text/plain"),)),
    ],
)
def test_a_command_of_3_that_may_be_an_agent_is_likely(name: str, parts: tuple[ExamplePart, ...]) -> None:
    run = only(*parts, version="3.8.7")
    assert run.command
    assert (run.command.name, run.command.certain, run.snapshot().tool) == (name, False, None)


@pytest.mark.parametrize(
    "parts",
    [(catalog(uuid=None),), (catalog(),), (node(uuid="a-1"),), (node(), plugin_facts()), (plugins(),),
     (not_issued(),), (issued(),), (plugin_facts(), plugins(), catalog())],
)  # fmt: skip
def test_an_agent_of_3_that_was_stopped_is_an_agent(parts: tuple[ExamplePart, ...]) -> None:
    assert only(*parts, version="3.8.7").command is None


def test_commands_and_runs_one_after_another_are_apart() -> None:
    parts = (
        on(plugins(), "1"), on(catalog(uuid=None, status=500), "2"), on(issued(), "3"), on(facts(), "4"),
        on(bucket(404), "5"), on(check(), "6"), on(plugins(), "6"), on(catalog(), "6"), on(report(), "6"),
        on(node(), "7"), on(check(), "8"), on(plugins(), "8"), wait(10), on(catalog(uuid="a-2"), "9"),
        on(report(uuid="a-2"), "9"),
    )  # fmt: skip
    assert [(run.snapshot().tool, len(run.seqs)) for run in runs(talk(*parts))] == [
        ("puppet plugin download", 1),
        ("puppet catalog download", 1),
        ("puppet ssl download_cert", 1),
        ("puppet facts upload", 1),
        ("puppet filebucket", 1),
        (None, 4),
        ("puppet node find", 1),
        (None, 4),
    ]


def test_a_command_is_no_earlier_run_of_its_agent() -> None:
    analyzer = Analyzer()
    for record in talk(on(issued(), "1"), wait(60), on(plugins(), "2"), wait(60), on(check(), "3")):
        analyzer.feed(record)
    analyzer.finish()
    assert [len(past) for past in analyzer._ledger.fleet.runs.values()] == [1]


def test_a_command_without_an_answer_is_no_agent_with_a_report() -> None:
    conclusion = verdict_of(only(unanswered(facts(), "no buffer space available")))
    assert conclusion
    assert conclusion.cause is None
    assert [step.text for step in conclusion.advice] == [
        "read what the command printed, and the master's log for that time"
    ]
