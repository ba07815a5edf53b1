"""One cause, not ten symptoms: the verdict of a run, and of every recording that fails."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.analysis import verdicts
from inspector.analysis.verdicts import effects, explains
from inspector.formats import json_output
from inspector.model import Exchange, Finding, Severity
from inspector.rules import all_rules, fixes, rule_of
from inspector.runs.examples import (
    altered,
    asked,
    bucket,
    ca,
    catalog,
    connection,
    content,
    crl,
    csr,
    given_up,
    issued,
    metadata,
    node,
    not_issued,
    plugins,
    report,
    slow,
    talk,
    unanswered,
    unconnected,
)
from inspector.summaries import conclusions
from tests.support.conversations import runs_of
from tests.support.recorded import ABSENT, RECORDINGS, SAMPLES, name_of, records_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from inspector.model import Record
    from inspector.runs.examples import ExamplePart
    from inspector.runs.run import Run

IDS = {rule.id for rule in all_rules()}
EVENTS = {rule.id for rule in all_rules() if rule.event}


# -- what follows from what -------------------------------------------------------------------------------


def test_rules_name_rules_and_nothing_follows_from_what_follows_from_it() -> None:
    named = {ident for rule in all_rules() for ident in (*rule.explains, *rule.without_catalog)}
    assert named | set(verdicts.ORDER) <= IDS
    assert len(set(verdicts.ORDER)) == len(verdicts.ORDER)
    assert {rule.id for rule in all_rules() if rule.explains or rule.without_catalog} <= set(verdicts.ORDER)
    assert [(cause, effect) for cause in IDS for effect in effects(cause) if cause in effects(effect)] == []


@pytest.mark.parametrize(
    ("cause", "symptom"),
    [("S01", "R20"), ("F09", "P01"), ("B27", "B43"), ("T03", "S02"), ("B10", "R03"), ("B26", "S15")],
)
def test_the_more_specific_is_the_cause(cause: str, symptom: str) -> None:
    assert symptom in effects(cause)


def shown(rule: str, *seqs: int) -> Finding:
    return Finding(rule, Severity.ERROR, "", seqs, 10.0)


def test_an_event_explains_nothing_that_was_there_before_and_a_condition_does() -> None:
    assert explains(shown("S01", 10), shown("R20", 10))
    assert explains(shown("S14", 10), shown("T28", 9, 11)), "it went on"
    assert not explains(shown("S01", 11), shown("R20", 10))
    assert explains(shown("S01", 11), shown("R20")), "when it appeared is not known"
    assert explains(shown("B10", 11), shown("T08", 10)), "a condition may be recorded later"


def test_what_keeps_the_catalog_explains_nothing_where_it_was_given() -> None:
    for cause in ("R09", "F07", "S02", "S05", "S06", "S12"):
        assert effects(cause)
        assert not effects(cause, catalog=True), cause
    assert "P01" in effects("T18", catalog=True), "files are missing all the same"


# -- a run's verdict -------------------------------------------------------------------------------------


def verdict_of(records: Iterable[Record]) -> tuple[str | None, str, tuple[str, ...]]:
    """The only run's cause, how sure it is, and what follows from it."""
    (run,) = runs_of(records)
    found = verdicts.verdict(run)
    assert found is not None
    return found.cause.rule if found.cause else None, found.certainty, found.symptoms


def test_a_catalog_that_was_slow_and_arrived_is_not_why_its_resources_failed() -> None:
    late = slow(catalog(), 75)
    failed = report(result="failed", resource_statuses={"Exec[x]": {"failed": True}})
    assert verdict_of(talk(plugins(), late, failed))[0] == "P01"
    assert verdict_of(talk(plugins(), late, report()))[0] == "S08"
    refused = slow(catalog(status=500, text="Server Error: Evaluation Error: Unknown variable: 'x'"), 75)
    assert verdict_of(talk(plugins(), refused))[0] == "S01"
    unknown = "Server Error: Failed when searching for node node1.example: Failed to find node1.example via exec"
    assert verdict_of(talk(plugins(), slow(catalog(status=500, text=unknown), 75)))[0] == "S25"


def test_a_catalog_that_arrives_after_its_agent_has_left_is_not_applied() -> None:
    """As with `run` and 7.23.0 whose http_read_timeout is 11 s: the proxy waits longer than its agent."""
    late = altered(slow(catalog(), 75), response={"ended": None}, error="the agent disconnected")
    message = "Could not retrieve catalog from remote server: timed out read operation after 11.014 seconds"
    skipped = report(result="failed", transaction_completed=False, logs=[{"level": "err", "message": message}])
    (run,) = runs_of(talk(plugins(), late, skipped))
    found = verdicts.verdict(run)
    assert found
    assert found.cause
    assert (found.cause.rule, found.symptoms) == ("S08", ("R20",))
    (exchange,) = [each for each in talk(late) if isinstance(each, Exchange)]
    assert dataclasses.replace(exchange, failed=exchange.time + 80).ended == exchange.time + 80


def test_an_agent_that_stops_at_a_name_that_the_certificate_lacks() -> None:
    """As agents up to 3 do, which verify the name after the handshake and send no alert."""
    wrong = {"Host": "wrong.example:8140"}
    records = talk(
        *(altered(part, headers=wrong, leg={"sni": None}) for part in (ca(), csr(), issued())), version="3.8.7"
    )
    assert verdict_of(records) == ("T24", "likely", ())
    (run,) = runs_of(records)
    assert rule_of("T24").fix_for(run)[1].command == "puppet config set server puppet.example --section agent"


def test_a_redirect_breaks_what_follows() -> None:
    """As with 7.23.0 behind a server that redirects: catalogs and files come gzipped from there, and are not read."""
    away = {"Location": "https://other.example:8140/elsewhere"}
    log = 'Received a Log attribute with invalid encoding:"Could not retrieve catalog from remote server: Failed to'
    unread = report(result="failed", transaction_completed=False,
                    logs=[{"level": "err", "source": "Puppet", "message": log}])  # fmt: skip
    records = talk(plugins(), altered(catalog(status=302), answers=away), catalog(), unread)
    assert verdict_of(records) == ("S12", "certain", ("P15",))
    name = "modules/demo/app.conf"
    file = {"type": "File", "title": "/etc/app.conf", "parameters": {"source": f"puppet:///{name}"}}
    failed = report(result="failed", resource_statuses={"File[/etc/app.conf]": {"failed": True}})
    records = talk(plugins(), catalog(resources=[file]), altered(metadata(name, status=302), answers=away), failed)
    assert verdict_of(records) == ("F17", "likely", ("S12", "P01"))


def test_a_master_that_went_away_refuses_what_comes_after() -> None:
    """As with 7.23.0, whose file was cut off, and whose next handshakes were reset; with OpenVox 9 its report had no
    answer."""
    cut = altered(content("modules/demo/a", b"con"), answers={"Content-Length": "7"}, error="peer closed connection")
    refused_report = unconnected(report(), "[Errno 111] Connect call failed ('192.0.2.1', 8140)")
    for lost, symptom in ((refused_report, "T18"), (unanswered(report(), "server closed connection"), "T28")):
        cause, _, symptoms = verdict_of(talk(plugins(), catalog(), cut, lost))
        assert cause == "S14"
        assert symptom in symptoms


STATUS = "/status/v1/simple/server"
UP = altered(asked(STATUS, b"running", media="text/plain"), headers={"Host": "c2.example:8140"})
DOWN = unconnected(connection(), "cannot connect to the master c1.example:8140: Connection refused")


def test_a_server_that_the_agent_did_without_is_a_warning_that_names_both() -> None:
    (run,) = runs_of(talk(DOWN, UP, plugins(), catalog(), report()))
    verdict = verdicts.verdict(run)
    assert verdict
    assert verdict.cause
    assert (verdict.cause.rule, verdict.cause.severity) == ("T18", Severity.WARNING)
    assert verdict.cause.message == (
        "c1.example:8140 refused the connection: no master listens there; the agent went on with c2.example:8140"
    )


@pytest.mark.parametrize(
    "parts",
    [
        (DOWN, plugins(), catalog(), report()),  # as of a server for the CA alone
        (DOWN, altered(UP, response={"status": 503}), plugins(), catalog(), report()),
        (UP, DOWN, plugins(), catalog(), report()),
    ],
)
def test_a_server_that_no_other_one_stood_in_for_stays_an_error(parts: tuple[ExamplePart, ...]) -> None:
    found = [finding for run in runs_of(talk(*parts)) for finding in run.findings if finding.rule == "T18"]
    assert [finding.severity for finding in found] == [Severity.ERROR]


def test_a_master_that_answers_nothing_does_not_compile_slowly() -> None:
    """As with 7.23.0, whose requests for its node, its catalog and its report were each given up after 61 s."""
    left = "the agent disconnected"
    nothing = talk(given_up(node(), left, 61), given_up(catalog(), left, 61), given_up(report(), left, 61))
    cause, _, symptoms = verdict_of(nothing)
    assert cause == "S23"
    assert "S08" in symptoms


def test_of_what_happens_several_times_the_first_is_the_cause() -> None:
    """Though the last one is nearest to how the run ended."""
    left = "the agent disconnected"
    parts = (given_up(part, left, 61) for part in (node(), plugins(), catalog(), report(result="failed")))
    (run,) = runs_of(talk(*parts))
    found = verdicts.verdict(run)
    assert found
    assert found.cause
    assert (found.cause.rule, found.cause.seqs, found.since) == ("S23", (1,), run.started)
    assert {"S08", "R20"} <= set(found.symptoms)


FILE = "modules/demo/app.conf"


def failed_file(message: str, *others: str, **more: Any) -> ExamplePart:
    """A report whose file resource failed for a reason, and other resources for other reasons."""
    statuses = {
        f"File[/etc/app{number}.conf]": {"failed": True, "events": [{"status": "failure", "message": text}]}
        for number, text in enumerate((message, *others))
    }
    return report(result="failed", resource_statuses=statuses, **more)


FORBIDDEN = f"Forbidden request: /puppet/v3/file_metadata/{FILE} (method :get). Please see the server logs for details."
REFUSED = asked(f"file_metadata/{FILE}", status=403, text=FORBIDDEN)
PRINTED = f"Could not retrieve file metadata for puppet:///{FILE}: Error 403 on SERVER: {FORBIDDEN}"


def test_resources_that_failed_only_by_a_refused_request_follow_from_it() -> None:
    assert verdict_of(talk(plugins(), catalog(), REFUSED, failed_file(PRINTED)))[::2] == ("S02", ("P01",))
    (run,) = runs_of(talk(plugins(), catalog(), REFUSED, failed_file(PRINTED, "'/bin/false' returned 1")))
    found = verdicts.verdict(run)
    assert found
    assert found.cause
    assert (found.cause.rule, found.symptoms, found.besides) == ("S02", (), ("P01",))


def test_without_events_the_log_says_why_resources_failed() -> None:
    """As agents of 3 and 4 send it."""
    log = {
        "level": "err",
        "source": "/Stage[main]/Main/File[/etc/app0.conf]",
        "message": f"Could not evaluate: {PRINTED}",
    }
    other = {"level": "err", "source": "/Stage[main]/Main/Exec[x]/returns", "message": "'/bin/false' returned 1"}
    statuses = {"File[/etc/app0.conf]": {"failed": True}}
    alone = report(result="failed", resource_statuses=statuses, logs=[log])
    assert verdict_of(talk(plugins(), catalog(), REFUSED, alone))[::2] == ("S02", ("P01",))
    both = report(result="failed", resource_statuses=statuses, logs=[log, other])
    assert verdict_of(talk(plugins(), catalog(), REFUSED, both))[2] == ()


def test_of_an_environment_that_is_deleted_during_a_run_everything_follows() -> None:
    file = {"type": "File", "title": "/etc/app0.conf", "parameters": {"source": f"puppet:///{FILE}"}}
    gone = "Not Found: Could not find environment 'production'"
    printed = f"Could not retrieve information from environment production source(s) puppet:///{FILE}"
    records = talk(
        plugins(), catalog(resources=[file]), asked(f"file_metadata/{FILE}", status=404, text=gone),
        altered(failed_file(printed), response={"status": 404, "body": json.dumps({"message": gone}).encode()}),
    )  # fmt: skip
    assert verdict_of(records)[::2] == ("R09", ("P01", "P03"))
    (run,) = runs_of(records)
    assert "F02" not in {finding.rule for finding in run.findings}


def test_a_backup_that_the_master_refuses_explains_the_resource() -> None:
    head = bucket(method="HEAD", status=500, algorithm="md5")
    printed = (
        "change from '{md5}0' to '{md5}1' failed: Could not back up /etc/app0.conf: Error 500 on SERVER: Server Error"
    )
    records = talk(plugins(), catalog(), head, failed_file(printed))
    assert verdict_of(records)[::2] == ("F07", ("P01",))


def test_a_mount_that_the_master_does_not_have_is_the_cause_and_all_mounts_are_named() -> None:
    def words(mount: str) -> str:
        return f'Server Error: Not authorized to call find on /file_metadata/{mount}/a.txt with {{:links=>"manage"}}'

    asks = [asked(f"file_metadata/{mount}/a.txt", status=500, text=words(mount)) for mount in ("secure", "nomount")]
    printed = [
        f"Could not retrieve file metadata for puppet:///{mount}/a.txt: Error 500 on SERVER: {words(mount)}"
        for mount in ("secure", "nomount")
    ]
    (run,) = runs_of(talk(plugins(), catalog(), *asks, failed_file(*printed)))
    found = verdicts.verdict(run)
    assert found
    assert found.cause
    assert (found.cause.rule, found.cause.seqs, found.symptoms) == ("F18", (3, 4), ("P01",))
    assert found.cause.message.endswith("the mounts secure, nomount (secure/a.txt, nomount/a.txt)")


def a_run(outcome: str, *findings: str) -> Run:
    """A run that ended so, with findings of these rules, each on its own record."""
    parts = {
        "complete": (catalog(), report()),
        "failed": (catalog(status=500), report(result="failed")),
        "waiting": (ca(), crl(), csr(), not_issued()),
        "unfinished": (catalog(),),
    }[outcome]
    (run,) = runs_of(talk(*parts))
    assert run.outcome == outcome
    run.findings[:] = [
        Finding(ident, rule_of(ident).severity, f"said by {ident}", (seq,), 1000.0 + seq)
        for seq, ident in enumerate(findings, 1)
    ]
    return run


@pytest.mark.parametrize(
    ("outcome", "findings", "cause", "symptoms", "certainty"),
    [
        ("complete", (), "nothing to say", (), ""),
        ("complete", ("B17", "R21"), "nothing to say", (), ""),
        ("complete", ("B01", "B03"), "B03", (), "likely"),  # an ERROR: it went on over a wrong certificate
        ("complete", ("B01",), "nothing to say", (), ""),
        ("complete", ("B07",), "B07", (), "likely"),
        ("failed", ("S01", "R20"), "S01", ("R20",), "certain"),
        ("failed", ("F09", "P01"), "F09", ("P01",), "certain"),
        ("failed", ("S05", "R20"), "S05", ("R20",), "certain"),
        ("failed", ("S01", "R20", "S02", "P03"), "S01", ("R20",), "certain"),  # the report was refused later
        ("failed", ("S05", "R20", "P03"), "S05", ("R20", "P03"), "certain"),
        ("failed", ("B01", "S16", "P01"), "P01", (), "certain"),
        ("failed", (), None, (), "not visible"),
        ("failed", ("B01", "R21"), None, (), "not visible"),
        ("waiting", ("B01", "B17", "B39", "B41"), "B17", ("B39", "B41"), "certain"),
        ("waiting", ("B01",), None, (), "certain"),
        ("waiting", ("B43", "B27"), "B27", ("B43",), "certain"),
        ("unfinished", ("T09", "B10"), "B10", ("T09",), "certain"),
        ("unfinished", ("T08",), "T08", (), "likely"),
    ],
)
def test_a_verdict(
    outcome: str, findings: Sequence[str], cause: str | None, symptoms: Sequence[str], certainty: str
) -> None:
    run = a_run(outcome, *findings)
    found, brief = verdicts.verdict(run), conclusions.of_run(run)
    conclusion = brief.verdict
    if cause == "nothing to say":
        assert (found, conclusion) == (None, None)
        return
    assert found is not None
    assert conclusion is not None
    assert (found.cause.rule if found.cause else None, found.symptoms, found.certainty) == (cause, symptoms, certainty)
    if cause:
        assert f"{cause} said by {cause}" in conclusion.message
        rule = rule_of(cause)
        fix = rule.fix_for(run)
        assert brief.steps == (fix if rule.severity is Severity.NOTICE else fixes.proved(fix))
        assert found.since == 1000.0 + found.cause.seqs[0] if found.cause else False
    assert ("(likely)" in conclusion.message) is (certainty == "likely")
    assert ("not visible in the traffic" in conclusion.message) is (certainty == "not visible")


EVENTS_WITH_EFFECTS = {event: sorted(effects(event)) for event in sorted(EVENTS) if effects(event)}
NUMBER = st.integers(1, 6)
ANY = st.tuples(st.sampled_from(sorted(IDS)), NUMBER).map(lambda found: [found])


@st.composite
def event_and_effect(draw: st.DrawFn) -> list[tuple[str, int]]:
    """An event and what may follow from it, in either order in time: two random rules are hardly ever related."""
    event = draw(st.sampled_from(list(EVENTS_WITH_EFFECTS)))
    return [(event, draw(NUMBER)), (draw(st.sampled_from(EVENTS_WITH_EFFECTS[event])), draw(NUMBER))]


ALL = st.lists(ANY | event_and_effect(), max_size=8).map(lambda groups: [found for group in groups for found in group])


@given(found=ALL, outcome=st.sampled_from(["complete", "failed", "waiting", "unfinished"]))
def test_folding_hides_nothing_that_has_another_reason(found: list[tuple[str, int]], outcome: str) -> None:
    """Whatever a run's findings are: a cause is not later than what it explains, and every other error is named."""
    run = a_run(outcome)
    run.findings[:] = [
        Finding(ident, rule_of(ident).severity, "", (number,), 1000.0 + number) for ident, number in found
    ]
    verdict = verdicts.verdict(run)
    errors = {finding.rule for finding in run.findings if finding.severity is Severity.ERROR}
    if verdict is None or verdict.cause is None:
        assert errors <= verdicts.ECHOES
        return
    cause = verdict.cause
    folded = [finding for finding in run.findings if finding.rule in verdict.symptoms]
    applied = "P15" not in {finding.rule for finding in run.findings}
    got_catalog = bool(run.catalogs and run.catalogs[-1].usable) and applied
    assert all(finding.rule in effects(cause.rule, catalog=got_catalog) for finding in folded)
    if cause.rule in EVENTS:
        assert all(finding.since >= cause.since for finding in folded)
    assert {cause.rule, *verdict.symptoms, *verdict.besides} >= errors - verdicts.ECHOES
    assert not {cause.rule, *verdict.symptoms} & set(verdict.besides)
    if got_catalog and cause.rule in {"R09", "F07", "S02", "S05", "S06", "S12"}:
        assert not errors & set(verdict.symptoms)


def test_what_has_its_own_reason_is_said_beside_the_cause() -> None:
    conclusion = conclusions.of_run(a_run("failed", "S01", "R20", "S02")).verdict
    assert conclusion is not None
    assert conclusion.message.endswith("; R20 follows from it; not from it: S02")
    assert conclusion.besides == ("S02",)


def test_what_to_do_where_nobody_signed_names_the_commands() -> None:
    brief = conclusions.of_run(a_run("waiting"))
    assert brief.verdict is not None
    assert "the certificate request is waiting to be signed" in brief.verdict.message
    assert "`puppetserver ca sign --certname node1.example`" in brief.fix


def test_since_when_is_when_the_cause_showed_first() -> None:
    waits = "already has a requested certificate"
    (run,) = runs_of(talk(ca(), crl(), csr(), not_issued(), *[csr(status=400, text=waits), not_issued()] * 3))
    found = verdicts.verdict(run)
    assert found is not None
    assert found.since == run.csrs[1].time


# -- recordings ------------------------------------------------------------------------------------------

SIGN, CLEAN, OLD_CLEAN = "puppetserver ca sign --certname", "puppetserver ca clean --certname", "puppet cert clean"
BAD: dict[str, list[tuple[int, str | None, str, str]]] = {
    "compile-error": [(1, "S01", "certain", "Correct the code")],
    "mismatched-key": [(1, "B18", "certain", f"{CLEAN} node1.example")],
    "revoked": [(1, "T05", "certain", f"{CLEAN} node2.example")],
    "puppet-3.8.7-master/agent-2.7.26": [
        (1, None, "certain", "puppet cert sign old2726.test"),
        *((run, "P01", "certain", "use the same digest on both") for run in (3, 4)),
    ],
    "puppet-3.8.7-master/binary-content": [(run, "F02", "certain", "Put the file into") for run in (1, 2)],
    "puppet-3.8.7-master/catalog-failure": [
        (1, "S01", "certain", "correct the code: the function's or the type's name"),
        (2, "S01", "certain", "Correct the code: the line that the message names"),
        (3, "F02", "certain", "Put the file into"),
    ],
    "puppet-3.8.7-master/mismatched-key": [(run, "B23", "certain", f"{OLD_CLEAN} mism1.test") for run in (2, 3)],
    "puppet-3.8.7-master/no-version-header": [(1, "S11", "certain", "X-Puppet-Version")],
    "puppet-3.8.7-master/slow-fact-plain": [(1, None, "not visible", "the master's log")],
    "puppet-3.8.7-master/static-compiler": [(1, "P01", "certain", "Correct the resource")],
    "puppetserver-7.9.5/4.10.9/16-static-catalog": [(2, "F07", "certain", "digest_algorithm sha256")],
    "puppetserver-7.9.5/5.5.22/06-mismatched-key": [(1, "B23", "certain", f"{CLEAN} auto6.v5522.test")],
    "puppetserver-7.9.5/5.5.22/21-format-pson": [(1, "F07", "certain", "digest_algorithm sha256")],
    "puppetserver-7.9.5/6.29.0/05-lost-csr": [
        (1, None, "certain", f"{SIGN} man5.v6290.test"),
        (2, "B20", "certain", f"{CLEAN} man5.v6290.test"),
    ],
    "puppetserver-7.9.5/7.23.0/05-lost-csr": [
        (1, None, "certain", f"{SIGN} man5.v7230.test"),
        (2, "B20", "certain", f"{CLEAN} man5.v7230.test"),
    ],
    "puppetserver-7.9.5/7.23.0/06-mismatched-key": [(1, "B18", "certain", f"{CLEAN} auto6.v7230.test")],
    # A flow file holds neither the handshake nor the alert.
    "puppetserver-7.9.5/7.23.0/07-revoked-agent": [(1, "T28", "certain", "whether the agent's certificate is revoked")],
    "puppetserver-7.9.5/7.23.0/08-expired-crl": [(1, "B10", "certain", 'rm -f "$(puppet config print hostcrl)"')],
    "puppetserver-7.9.5/7.23.0/09-crl-missing-issuer": [(1, "B13", "certain", "certificate_revocation leaf")],
    "puppetserver-7.9.5/7.23.0/10-no-revocation": [(1, "B07", "likely", "certificate_revocation chain")],
    "puppetserver-7.9.5/7.23.0/12-hostname-mismatch": [(1, "T24", "likely", "puppet config set server m7.test")],
    "puppetserver-7.9.5/7.23.0/13-compile-error": [(1, "S01", "certain", "correct the code: the class's name")],
    "puppetserver-7.9.5/7.23.0/14-missing-source": [(1, "F02", "certain", "Put the file into")],
    "puppetserver-7.9.5/7.23.0/17-503-retry-after": [(1, "S24", "certain", "max-queued-requests: 0")],
    "puppetserver-7.9.5/7.23.0/21-format-msgpack": [(1, "S04", "certain", "preferred_serialization_format")],
    "puppetserver-7.9.5/7.23.0/23-cloned-vm-two-keys": [
        (run, "B46", "certain", f"{CLEAN} man23.v7230.test") for run in (1, 2)
    ],
    "puppetserver-7.9.5/7.23.0/24-agent-killed": [(1, None, "not visible", "was killed")],
    "puppetserver-7.9.5/7.23.0/26-clock-plus-1h": [(1, "T10", "certain", "timedatectl")],
    "puppetserver-7.9.5/7.23.0/27b-failed-resource": [(1, "P01", "certain", "Correct the command")],
}
"""The runs with a verdict: run, cause, certainty, and a piece of the fix. All others have nothing to say."""

CAPTURES = [*SAMPLES, *RECORDINGS]


@pytest.mark.slow
@pytest.mark.parametrize("capture", CAPTURES, ids=name_of)
def test_the_verdicts_of_a_recording(capture: Path) -> None:
    runs = runs_of(records_of(capture))
    document = [
        (run.number, json_output.verdict(brief.verdict, brief))
        for run in runs
        if (brief := conclusions.of_run(run)).verdict
    ]
    expected = BAD.get(name_of(capture), [])
    found = [(number, verdict.cause, verdict.certainty) for number, verdict in document]
    assert found == [(number, cause, certainty) for number, cause, certainty, _ in expected]
    for (_, _, _, fix), (_, verdict) in zip(expected, document, strict=True):
        assert fix in verdict.remedy


@pytest.mark.skipif(not RECORDINGS, reason=ABSENT)
def test_each_expected_recording_is_there() -> None:
    assert set(BAD) <= {name_of(capture) for capture in CAPTURES}


CURL = "puppetserver-7.9.5/7.23.0/19-curl-no-cert-and-foreign-node"
WRONG = {*BAD, CURL}
"""Recordings in which something is wrong on purpose; the others are healthy runs."""


@pytest.mark.skipif(not RECORDINGS, reason=ABSENT)
def test_a_tools_calls_are_no_runs_of_an_agent() -> None:
    """They have no verdict, and what they are refused breaks nothing."""
    (curl,) = [capture for capture in CAPTURES if name_of(capture) == CURL]
    runs = runs_of(records_of(curl))
    assert {conclusions.of_run(run).verdict for run in runs} == {None}
    found = {(finding.rule, finding.severity) for run in runs for finding in run.findings}
    assert {("T03", Severity.WARNING), ("T04", Severity.WARNING), ("R22", Severity.NOTICE)} <= found
    assert Severity.ERROR not in {severity for _, severity in found}


@pytest.mark.slow
@pytest.mark.parametrize("capture", [capture for capture in CAPTURES if name_of(capture) not in WRONG], ids=name_of)
def test_no_false_alarm(capture: Path) -> None:
    """A healthy run raises nothing above a notice, but what is unverified by nature, and agents newer than masters."""
    for run in runs_of(records_of(capture)):
        grave = {
            (finding.rule, str(finding.severity)) for finding in run.findings if finding.severity is not Severity.NOTICE
        }
        newer = {("S16", "warning")} if run.agent_version and run.agent_version.startswith("8.") else set()
        assert grave <= {("B01", "warning")} | newer | ({("B03", "warning")} if run.old_engine else set())
