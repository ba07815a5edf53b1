"""Rules P01 to P14, beyond their examples: thresholds, near misses, what old agents send, real recordings."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from inspector.analysis.analyzer import Analyzer
from inspector.analysis.verdicts import verdict
from inspector.rules import all_rules
from inspector.rules.kit import *
from inspector.runs.run_history import NAMES
from tests.support.catalog_verdicts import REFUSED, Case, res
from tests.support.conversations import all_findings, findings, runs_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.model import Finding


REPORTS = tuple(rule for rule in all_rules() if rule.id.startswith("P"))
FILE = "modules/demo/app.conf"
ERROR, WARNING, NOTICE = Severity.ERROR, Severity.WARNING, Severity.NOTICE


def report_findings(ident: str, **fields: Any) -> list[tuple[str, Severity]]:
    """What one rule says of an ordinary run's report with these fields."""
    return [
        (finding.message, finding.severity) for finding in findings(talk(plugins(), catalog(), report(**fields)), ident)
    ]


def metrics(group: str, **numbers: float) -> dict[str, Any]:
    return {group: {"name": group, "label": "", "values": [[name, name, number] for name, number in numbers.items()]}}


def line(message: str, source: str = "Puppet", level: str = "err") -> dict[str, str]:
    return {"level": level, "source": source, "message": message}


# -- P01, P02, P06: resources ------------------------------------------------------------


def test_p01_names_the_first_ones_their_place_and_the_reason() -> None:
    failed = {f"File[/{n}]": {"failed": True, "file": "/etc/site.pp", "line": n} for n in range(1, 6)}
    logs = [
        line("Some fact is broken", "Facter"),
        line("Could not evaluate: no such source\n/usr/lib/x.rb:1:in `fail'", "/Stage[main]/Main/File[/1]"),
        line("change from 'a' to 'b' failed: disk is full", "/Stage[main]/Main/File[/2]/content"),
        line("x" * 1000 + " library is present", "/Stage[main]/Main/File[/3]/content"),
    ]
    ((message, severity),) = report_findings("P01", result="failed", resource_statuses=failed, logs=logs)
    assert severity is ERROR
    first, second, third, rest = message.removeprefix("5 resources failed: ").split("; ")
    assert first == "File[/1] (/etc/site.pp:1): Could not evaluate: no such source"
    assert second == "File[/2] (/etc/site.pp:2): disk is full"
    assert third.startswith("File[/3] (/etc/site.pp:3): xxx")
    assert third.endswith("x library is present")
    assert len(third) < 250
    assert rest == "and 2 more"


def test_p01_says_of_a_noop_run_that_it_installs_nothing() -> None:
    failed = {"Package[a]": {"failed": True}}
    ((message, _),) = report_findings("P01", result="failed", noop=True, resource_statuses=failed)
    assert message == "1 resource failed in a noop run, which installs nothing: Package[a]"
    ((message, _),) = report_findings("P01", result="failed", resource_statuses=failed)
    assert message == "1 resource failed: Package[a]"


def test_p01_names_a_message_of_several_resources_once() -> None:
    failed = {f"File[/{n}]": {"failed": True} for n in range(1, 6)}
    logs = [line("disk is full", f"/Stage[main]/Main/File[/{n}]") for n in range(1, 5)]
    ((message, _),) = report_findings("P01", result="failed", resource_statuses=failed, logs=logs)
    assert message == "5 resources failed: File[/1] and 3 more: disk is full; File[/5]"


def test_p01_takes_the_reason_from_the_events_where_the_log_says_none() -> None:
    status = {"failed": True, "events": [{"status": "success", "message": "x"}, {"status": "failure", "message": "no"}]}
    assert report_findings("P01", result="failed", resource_statuses={"Exec[a]": status}) == [
        ("1 resource failed: Exec[a]: no", ERROR)
    ]


def test_p01_takes_what_is_printed_once_of_a_type_that_nothing_manages() -> None:
    """Such resources have no event, and no line of their own in the log."""
    failed = {"Cron[a]": {"failed": True, "events": []}, "Cron[b]": {"failed": True, "events": []}}
    logs = [line("Could not find a suitable provider for cron", "Puppet")]
    assert report_findings("P01", result="failed", resource_statuses=failed, logs=logs) == [
        ("2 resources failed: Cron[a] and 1 more: Could not find a suitable provider for cron", ERROR)
    ]


def test_p01_believes_the_metrics_of_old_agents_but_no_nonsense() -> None:
    assert report_findings("P01", result="failed", metrics=metrics("resources", failed=2)) == [
        ("2 resources failed", ERROR)
    ]
    assert report_findings("P01", result="failed", metrics=metrics("resources", failed=0)) == []
    assert report_findings("P01", result="failed") == []
    infinite = report_yaml("metrics:\n  resources:\n    name: resources\n    values: [[failed, Failed, .inf]]\n")
    assert findings(talk(catalog(), infinite, version="3.8.7"), "P01") == []


def report_yaml(more: str = "", *, version: str = "3.8.7") -> ExamplePart:
    body = (
        "--- !ruby/object:Puppet::Transaction::Report\nhost: node1.example\nreport_format: 4\n"
        f"puppet_version: '{version}'\nstatus: changed\n{more}"
    )
    return altered(report(), request={"body": body.encode()}, headers={"Content-Type": "text/yaml"})


def test_numbers_that_nobody_means_break_no_rule() -> None:
    huge = metrics("resources", failed=10**400, failed_to_restart=10**400, out_of_sync=10**400)
    records = talk(catalog(), report(noop=True, metrics=huge | metrics("time", total=10**400, exec=10**400)))
    analyzer = Analyzer()
    assert not [step for record in records for step in analyzer.feed(record).trouble]
    assert {finding.rule for run in analyzer.finish() for finding in run.findings} == {"R18"}


def test_p02_names_what_was_put_back() -> None:
    statuses = {f"File[/{n}]": {"corrective_change": n < 5, "changed": True} for n in range(6)}
    assert report_findings("P02", corrective_change=True, resource_statuses=statuses) == [
        ("drift was repaired: File[/0], File[/1], File[/2] and 2 more", NOTICE)
    ]
    assert report_findings("P02", corrective_change=True) == [("drift was repaired", NOTICE)]
    assert report_findings("P02", corrective_change=True, noop=True) == []
    assert report_findings("P02", resource_statuses=statuses) == []


def test_p02_what_was_not_repaired_is_not_said_to_be() -> None:
    """Statuses as 7.23 reports them: noop, a failure, and an exec that runs each time (which it calls corrective)."""
    drifted = {"corrective_change": True, "out_of_sync": True}
    noop = {"File[/a]": drifted | {"changed": False}, "Exec[b]": drifted | {"changed": False}}
    assert report_findings("P02", corrective_change=True, noop=True, resource_statuses=noop) == [
        ("drift was found and not repaired (noop): File[/a]", NOTICE)
    ]
    failed = {"File[/a]": drifted | {"changed": False, "failed": True}, "Exec[b]": drifted | {"changed": True}}
    assert report_findings("P02", corrective_change=True, resource_statuses=failed) == []


def _changes_each_time(runs: int) -> list[Record]:
    source = {"type": "File", "title": "/a", "parameters": {"source": f"puppet:///{FILE}"}}
    changed = {"File[/a]": {"changed": True, "corrective_change": True}}
    parts: list[ExamplePart] = []
    for number in range(runs):
        uuid = f"a-{number}"
        sent = report(uuid=uuid, result="changed", corrective_change=True, resource_statuses=changed)
        parts += [plugins(), catalog(uuid=uuid, resources=[source]), metadata(FILE), content(FILE), sent, wait(1800)]
    return talk(*parts)


def test_a_file_that_changes_in_every_run_is_said_once() -> None:
    found = [finding for finding in all_findings(_changes_each_time(3)) if finding.rule in ("P02", "P11", "F05")]
    assert [(finding.rule, finding.seqs[-1]) for finding in found] == [("P02", 5), ("P02", 10), ("P11", 15)]


def _after_failures(*refs: str) -> list[str]:
    """The messages of P02 where these resources failed in one run, and one is corrected in the next."""
    failed = {ref: {"failed": True, "changed": True} for ref in refs}
    corrected = {"Host[db]": {"changed": True, "corrective_change": True}}
    records = talk(
        plugins(), catalog(uuid="a-0"), report(uuid="a-0", result="failed", resource_statuses=failed), wait(1800),
        plugins(), catalog(uuid="a-1"),
        report(uuid="a-1", result="changed", corrective_change=True, resource_statuses=corrected),
    )  # fmt: skip
    return [finding.message for finding in all_findings(records) if finding.rule == "P02"]


def test_what_failed_before_is_no_drift() -> None:
    """As 7.23 and 8.10 report a host that could not be written to a file: set, and failed."""
    assert _after_failures("Host[other]") == ["drift was repaired: Host[db]"]
    assert _after_failures("Host[db]") == []
    assert _after_failures(*(f"Host[{number}]" for number in range(NAMES + 1))) == []  # which ones is not known


def test_p06_by_statuses_or_by_metrics() -> None:
    assert report_findings("P06", metrics=metrics("resources", failed_to_restart=1)) == [
        ("1 resource did not restart", ERROR)
    ]
    assert report_findings("P06", metrics=metrics("resources", failed_to_restart=0)) == []
    failed = {"Service[a]": {"failed_to_restart": True}, "Exec[b]": {"failed_to_restart": True}, "Exec[c]": {}}
    assert report_findings("P06", resource_statuses=failed) == [
        ("2 resources did not restart: Service[a], Exec[b]", ERROR)
    ]


# -- P03, P04, P05 ------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (200, {}, False),
        (204, {}, False),
        (400, {}, True),
        (500, {}, True),
        (415, {}, True),
        (413, {}, True),
        (503, {}, True),
        (503, {"Retry-After": "10"}, False),
        (302, {"Location": "https://other.example:8140/x"}, False),
        (302, {}, True),
        (403, {}, False),
        (401, {}, False),
    ],
)
def test_p03_by_the_answers_status(status: int, headers: dict[str, str], expected: bool) -> None:
    found = findings(talk(catalog(), altered(report(status=status), answers=headers)), "P03")
    assert [finding.severity for finding in found] == [ERROR] * expected


def test_p03_repeats_the_masters_words_and_says_nothing_of_no_answer() -> None:
    body = json.dumps({"message": "Server Error: disk is full", "issue_kind": "RUNTIME_ERROR"}).encode()
    (found,) = findings(talk(altered(report(status=500), response={"body": body})), "P03")
    assert found.message == "the master answered the report with 500: disk is full"
    assert findings(talk(unanswered(report())), "P03") == []


def large(size: int, *, packed: bool = False) -> list[Record]:
    part = report(logs=[line("x" * size)])

    def squeezed(scene: Any) -> Any:
        made: Any = part(scene)
        body = gzip.compress(made.request.body)
        return altered(part, request={"body": body}, headers={"Content-Encoding": "gzip"})(scene)

    return talk(catalog(), squeezed if packed else part)


@pytest.mark.parametrize(
    ("size", "expected"), [(900_000, []), (1_100_000, [WARNING]), (4_900_000, [WARNING]), (5_100_000, [ERROR])]
)
@pytest.mark.parametrize("packed", [False, True])
def test_p04_counts_what_the_report_has_unpacked(size: int, expected: list[Severity], packed: bool) -> None:
    assert [finding.severity for finding in findings(large(size, packed=packed), "P04")] == expected


def test_p04_has_thresholds_and_survives_a_lying_encoding() -> None:
    assert len(findings(large(2000), "P04", warning_bytes=1000)) == 1
    lying = altered(report(), headers={"Content-Encoding": "gzip"})
    assert findings(talk(lying), "P04", warning_bytes=10) == []


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((catalog(), report(result="failed", transaction_completed=False)), 1),
        ((catalog(status=500), report(result="failed", transaction_completed=False)), 0),
        ((report(result="failed", transaction_completed=False),), 0),
        ((report(result="failed", transaction_completed=False, resource_statuses={"Notify[x]": {}}),), 1),
        ((catalog(environment="staging"), report(result="failed", transaction_completed=False)), 0),
        ((catalog(), report(result="failed")), 0),
        ((catalog(), report(result="failed", transaction_completed=True)), 0),
    ],
    ids=["began", "no catalog", "no request", "cached", "refused: R07", "not told", "done"],
)
def test_p05_needs_a_catalog_that_could_have_been_applied(parts: tuple[ExamplePart, ...], expected: int) -> None:
    assert len(findings(talk(*parts), "P05")) == expected


def _broken(message: str, **fields: Any) -> list[Record]:
    log = [line(message, "Puppet")]
    return talk(catalog(), report(result="failed", transaction_completed=False, logs=log, **fields))


@pytest.mark.parametrize(
    "message",
    [
        "Failed to apply catalog: One or more resource dependency cycles detected in graph",
        "Failed to apply catalog: Parameter path failed on File[a]: File paths must be fully qualified, not 'a'",
        "Failed to apply catalog: vault is sealed",
        "Could not retrieve catalog from remote server: Could not intern from rich_data_json: unexpected token",
    ],
)
def test_p15_is_the_reports_own_message(message: str) -> None:
    (found,) = findings(_broken(message), "P15")
    assert found.message == message.removeprefix("Could not retrieve catalog from remote server: ")
    assert findings(_broken(message), "P05") == []


@pytest.mark.parametrize("case", [case for case in REFUSED if case.exact], ids=lambda case: case.name)
def test_p15_finds_a_catalog_that_agents_refuse_before_they_say_so(case: Case) -> None:
    (found,) = findings(talk(catalog(**case.catalog)), "P15")
    assert case.message in found.message
    assert found.seqs == (1,)


def test_p15_says_where_a_resource_is_that_is_wrong() -> None:
    (found,) = findings(talk(catalog(resources=[res() | {"tags": ["a b"]}])), "P15")
    assert found.message == "no agent can read this catalog: Invalid tag 'a b' (file: /m/a.pp, line: 7)"
    (found,) = findings(talk(catalog(resources=[{"type": "File", "file": "/m/a.pp", "line": 7}])), "P15")
    assert found.message.endswith("No resource title provided in serialized data (File /m/a.pp 7)")


def test_p15_is_the_verdict_of_a_run_whose_catalog_nobody_can_read() -> None:
    log = [line("Could not retrieve catalog from remote server: No resource title provided", "Puppet")]
    parts = (catalog(resources=[{"type": "File"}]), report(result="failed", transaction_completed=False, logs=log))
    (run,) = runs_of(talk(plugins(), *parts))
    found = verdict(run)
    assert found
    assert found.cause
    assert (found.cause.rule, found.symptoms) == ("P15", ("R20",))


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("Failed to apply catalog: Could not find dependency Exec[b] for Notify[a] (file: /m/a.pp, line: 7)", 1),
        ("Failed to apply catalog: vault is sealed", 2),
    ],
)
def test_p15_is_one_finding_if_the_agent_says_the_same(printed: str, expected: int) -> None:
    sent = report(result="failed", transaction_completed=False, logs=[line(printed, "Puppet")])
    found = findings(talk(catalog(resources=[res(require="Exec[b]")]), sent), "P15")
    assert len(found) == expected
    assert found[0].seqs == ((1, 2) if expected == 1 else (1,))


def test_p15_does_not_judge_a_catalog_that_is_requested_again_in_its_environment() -> None:
    needs = [res(require="Exec[b]")]
    other = catalog(environment="staging", resources=needs)
    assert findings(talk(other, catalog(environment="staging", asks="staging")), "P15") == []
    assert len(findings(talk(catalog(environment="staging", asks="staging", resources=needs)), "P15")) == 1


def test_p05_is_about_an_agent_that_was_stopped() -> None:
    (found,) = findings(_broken("Could not run: signal"), "P05")
    assert found.message == "the agent did not apply its catalog completely: Could not run: signal"
    assert findings(_broken("Could not run: signal"), "P15") == []


def test_a_redirect_is_the_cause_of_a_catalog_that_the_agent_could_not_read() -> None:
    """7.23 does not decompress what it gets after a redirect."""
    moved = altered(catalog(status=302), answers={"Location": "https://other.example:8140/puppet/v3/catalog/x"})
    log = [line("Could not retrieve catalog from remote server: Could not intern from json")]
    (run,) = runs_of(talk(plugins(), moved, catalog(), report(result="failed", transaction_completed=False, logs=log)))
    found = verdict(run)
    assert found
    assert found.cause
    assert (found.cause.rule, found.symptoms) == ("S12", ("P15",))


# -- P07 to P10, P12, P13 ------------------------------------------------------------


@pytest.mark.parametrize(("number", "expected"), [(1, 1), (2, 0), (12, 0), (13, 1), (None, 0)])
def test_p07_knows_formats_2_to_12(number: int | None, expected: int) -> None:
    assert len(report_findings("P07", report_format=number)) == expected


@pytest.mark.parametrize(("version", "expected"), [("2.7.26", NOTICE), ("3.8.7", NOTICE), ("4.10.9", WARNING)])
def test_p08_yaml_is_what_old_agents_send(version: str, expected: Severity) -> None:
    records = talk(catalog(), report_yaml(version=version), version=version)
    assert [finding.severity for finding in findings(records, "P08")] == [expected]
    json_report = altered(report(), headers={"Content-Type": "text/pson"})
    assert findings(talk(catalog(), json_report, version=version), "P08") == []


def test_p09_compares_names_as_names() -> None:
    assert report_findings("P09", host="NODE1.example") == []
    assert report_findings("P09", host="") == []
    assert report_findings("P09", host="x" * 500)[0][0] == f"sent as node1.example, but the report is for {'x' * 99}…"


def test_p10_does_not_count_the_wait_for_a_certificate() -> None:
    times = metrics("time", total=4000, startup_time=3900, exec=50)
    waited = talk(csr(), not_issued(), wait(3800), issued(), catalog(), report(metrics=times))
    assert findings(waited, "P10") == []
    assert len(findings(talk(catalog(), report(metrics=times)), "P10")) == 1


def test_p10_names_the_longest_part_and_has_a_threshold() -> None:
    times = metrics("time", total=700, exec=400, package=200, catalog_application=650)
    records = talk(catalog(), report(metrics=times))
    assert findings(records, "P10") == []
    (found,) = findings(records, "P10", runinterval_s=600)
    assert found.message == "the run took 11 min, most of it exec (6 min)"
    infinite = report_yaml("metrics:\n  time:\n    name: time\n    values: [[total, Total, .inf], [a, A, .nan]]\n")
    assert findings(talk(catalog(), infinite, version="3.8.7"), "P10") == []


def test_p12_needs_both_versions() -> None:
    assert report_findings("P12", puppet_version=None) == []
    assert findings(talk(catalog(), report(puppet_version="3.8.6"), version="3.8.7"), "P12") == []
    assert report_findings("P12", puppet_version="7.24.0") == [
        ("the request is from 7.23.0, the report from 7.24.0", NOTICE)
    ]


def test_p13_is_about_runs_that_count_as_good() -> None:
    logs = [line("a" * 300, "Facter"), line("b", level="crit"), line("c", level="warning")]
    ((message, severity),) = report_findings("P13", result="changed", logs=logs)
    assert severity is NOTICE
    assert message.startswith("error in the log: Facter: aaa")
    assert "a…a" in message
    assert message.endswith("a; Puppet: b")
    assert report_findings("P13", result="failed", logs=logs) == []
    assert report_findings("P13", logs=[line("x", level=":err")]) == [("error in the log: Puppet: x", NOTICE)]


def test_p13_shows_the_errors_of_facts_first() -> None:
    """What other errors say follows from them, or has nothing to do with the catalog."""
    bad = line("Error while resolving custom fact fact='role', resolution='<anonymous>': no such device", "Facter")
    logs = [line(f"odd {number}") for number in range(18)] + [bad]
    ((message, _),) = report_findings("P13", result="changed", logs=logs)
    assert message.startswith("error in the log: Facter: Error while resolving custom fact fact='role'")
    assert message.endswith("Puppet: odd 0; Puppet: odd 1; and 16 more")


def test_p13_of_facts_without_a_value_is_a_warning_that_counts_them() -> None:
    """The catalog was compiled without them: the run is not well."""
    words = "Error while resolving custom fact fact='role{}', resolution='<anonymous>': no such device"
    logs = [line(words.format(number), "Facter") for number in range(20)]
    ((message, severity),) = report_findings("P13", result="changed", logs=logs)
    assert severity is WARNING
    assert message.startswith("20 facts have no value: role0, role1, role2 and 17 more; error in the log: Facter: ")
    slow = line("Timed out after 5 seconds while resolving fact='slow', resolution='<anonymous>'", "Facter")
    assert report_findings("P13", logs=[slow])[0][1] is WARNING
    broken = line("error while resolving custom facts in /var/lib/facter/a.rb undefined method", "Facter")
    assert report_findings("P13", logs=[broken])[0][1] is WARNING


# -- P11: several runs ------------------------------------------------------------


def reports(*changes: Sequence[str], pause: float = 1800) -> list[Record]:
    parts: list[ExamplePart] = []
    for number, refs in enumerate(changes):
        sent = report(uuid=f"a-{number}", result="changed", resource_statuses={ref: {"changed": True} for ref in refs})
        parts += [plugins(), catalog(uuid=f"a-{number}"), sent, wait(pause)]
    return talk(*parts)


def test_p11_is_about_what_changed_in_each_of_the_last_runs() -> None:
    (found,) = findings(reports(["File[a]", "File[b]"], ["File[c]", "File[a]"], ["File[a]", "Notify[n]"]), "P11")
    assert (found.message, found.severity) == ("changed in each of the last 3 runs: File[a]", NOTICE)
    assert found.seqs == (3, 6, 9)
    assert findings(reports(["File[a]"], ["File[b]"], ["File[a]"]), "P11") == []
    assert findings(reports(["File[a]"], ["File[a]"]), "P11") == []
    assert len(findings(reports(["File[a]"], ["File[a]"]), "P11", runs=2)) == 1
    assert findings(reports(["File[a]"], ["File[a]"], []), "P11") == []


def test_p11_an_exec_that_always_runs_is_a_notice() -> None:
    found = findings(reports(*[["Exec[a]", "File[b]"]] * 5), "P11")[-2:]
    assert {(finding.message.rpartition(": ")[2], finding.severity) for finding in found} == {
        ("Exec[a]", NOTICE), ("File[b]", WARNING)
    }  # fmt: skip
    assert findings(reports(*[["Notify[n]"]] * 5), "P11") == []


def test_p11_a_run_without_a_report_does_not_count() -> None:
    whole = reports(["File[a]"], ["File[a]"], ["File[a]"])
    killed = [record for record in whole if record.seq != 6]
    assert findings(killed, "P11") == []


# -- P14 ------------------------------------------------------------

PEM = "-----BEGIN {}PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG" * 4
TOKEN = "ghp_" + "aB3" * 12
AWS = "AKIA" + "QW7E" * 4


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (PEM.format("RSA "), "a private key"),
        (PEM.format("OPENSSH "), "a private key"),
        (PEM.format(""), "a private key"),
        (PEM.format("ENCRYPTED "), None),
        (f"+key = {AWS}", "an AWS access key"),
        (f"curl -H 'Authorization: {TOKEN}'", "a GitHub token"),
        ("glpat-" + "x" * 20, "a GitLab token"),
        ("-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG", None),
        ("looking for -----BEGIN PRIVATE KEY----- in the file", None),
        (f"{AWS}QW7E", None),
    ],
)
def test_p14_what_nothing_but_a_secret_looks_like(message: str, expected: str | None) -> None:
    found = report_findings("P14", logs=[line(message, "/Stage[main]/Main/Exec[a]/returns", "debug")])
    text = "is in the report, in the log of /Stage[main]/Main/Exec[a]/returns"
    assert found == ([(f"{expected} {text}", ERROR)] if expected else [])


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("--- a\n+++ b\n+db_password: horse-battery", True),
        ("+  'password' => 'horse-battery',", True),
        ('-API_KEY="horse-battery"', True),
        ("executed with passphrase=horse-battery", True),
        ("password: authentication failed for user app", False),
        ("+password = $OLD", False),
        ("+password = ${db::password}", False),
        ("+password = <%= @password %>", False),
        ("+password = %{lookup('x')}", False),
        ("+password = [redacted]", False),
        ("+password = ********", False),
        ("+password = xxxxxxxxxx", False),
        ("+password = /etc/app/secret", False),
        ("+password = {md5}0123456789", False),
        ("+password = undef # none", False),
        ("+password = short", False),
        ("+password_file = /etc/app/secret", False),
        ("+password_encryption = scram-sha-256", False),
        ("+nopassword_needed = perhaps", False),
        ("changed password", False),
        ("content changed '{sha256}abc' to '{sha256}def'", False),
    ],
)
def test_p14_what_looks_like_a_password_is_a_warning(message: str, expected: bool) -> None:
    found = report_findings("P14", logs=[line(message, level="notice")])
    assert [severity for _, severity in found] == [WARNING] * expected
    assert report_findings("P14", logs=[line(message, level="debug")]) == []


def test_p14_never_repeats_the_secret() -> None:
    exec_ref = f"Exec[curl -H {TOKEN}]"
    event = {"status": "success", "previous_value": PEM.format(""), "desired_value": 7}
    found = report_findings(
        "P14",
        logs=[line(f"{TOKEN}\n+password = horse-battery", f"/Stage[main]/{exec_ref}/returns")],
        resource_statuses={exec_ref: {"events": [event]}, "Exec[--password=horse-battery]": {"events": [event]}},
    )
    assert len(found) == 4 - 1  # two events of resources that cannot be named say the same
    for message, _ in found:
        assert TOKEN not in message
        assert "horse" not in message
        assert "MIIE" not in message


def test_p14_in_a_catalog_what_is_marked_as_sensitive_is_right() -> None:
    def key(**fields: Any) -> list[Finding]:
        file = {"type": "File", "title": "/etc/app.key", "parameters": {"content": PEM.format("")}} | fields
        return findings(talk(catalog(resources=[file]), report()), "P14")

    (found,) = key()
    assert found.severity is WARNING
    assert key(sensitive_parameters=["content"]) == []
    assert key(parameters={"content": {"__ptype": "Sensitive", "__pvalue": PEM.format("")}}) == []
    assert key(parameters={"mode": "0600", "password": "horse-battery"}) == []


# -- bodies that are nothing, tools ------------------------------------------------------------


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"--- !ruby/object:Kernel {}\n", b"{}", b'{"logs": [{}]}'])
@pytest.mark.parametrize("media", ["application/json", "text/pson", "text/yaml", "application/x-msgpack"])
def test_hostile_reports_break_no_rule(body: bytes, media: str) -> None:
    broken = altered(report(), request={"body": body}, headers={"Content-Type": media})
    analyzer = Analyzer()
    for record in talk(plugins(), catalog(), broken):
        assert not analyzer.feed(record).trouble
