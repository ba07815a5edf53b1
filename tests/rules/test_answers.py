"""The rules on the master's answers (S01 to S22): what their examples do not show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from inspector.analysis import verdicts
from inspector.analysis.analyzer import Analyzer, retrace
from inspector.pages import tabs
from inspector.protocol.endpoints import ENDPOINTS
from inspector.rules import all_rules, fixes, rule_of, words
from inspector.rules.kit import *
from inspector.runs.examples import given_up
from tests.support.conversations import runs_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.model import Finding

FILE = "modules/demo/app.conf"


def found(ident: str, records: Sequence[Record]) -> list[Finding]:
    """What one rule says, also of a tool's calls."""
    analyzer = Analyzer([rule_of(ident)])
    findings: dict[tuple[str, str], Finding] = {}
    for record in records:
        step = analyzer.feed(record)
        assert not step.trouble
        findings |= {(finding.message, finding.severity): finding for finding in step.findings}
    for run in analyzer.finish():
        findings |= {(finding.message, finding.severity): finding for finding in run.findings}
    return list(findings.values())


def messages(ident: str, *parts: ExamplePart, **how: Any) -> list[str]:
    return [finding.message for finding in found(ident, talk(*parts, **how))]


PARTS = [
    ca(), crl(), csr(), issued(), node(), plugins(), catalog(), metadata(FILE), listing("modules/demo", {}),
    content(FILE), content("plugins/a.rb"), content(FILE, code_id=""), bucket(),
    bucket(method="GET"), report(), asked("status/x", {}), asked("/nowhere", {}),
]  # fmt: skip


@pytest.mark.parametrize("version", ["3.8.7", "5.5.22", "7.23.0"])
def test_no_answer_and_no_sense_are_no_trouble(version: str) -> None:
    """A rule that raises is trouble; and what was not answered, or answered with junk, is not what most are about."""
    ours = [rule for rule in all_rules() if rule.id[0] in "SF"]
    for how in (
        lambda part: unanswered(part, "Client disconnected."),
        lambda part: altered(part, response={"body": b"\xff\x00junk"}, request={"body": b"\xff\x00junk"}),
        lambda part: altered(part, response={"status": 404, "body": b"\xff\x00junk"}),
        lambda part: altered(part, response={"status": 503, "headers": ()}, request={"headers": ()}),
    ):
        analyzer = Analyzer(ours)
        for record in talk(*map(how, PARTS), version=version):
            assert analyzer.feed(record).trouble == []
        analyzer.finish()
    assert [
        finding
        for run in runs_of(talk(*(unanswered(part, "Client disconnected.") for part in PARTS), version=version), ours)
        for finding in run.findings
        if finding.severity is not Severity.NOTICE
    ] == []


# -- words ---------------------------------------------------------------------------------------------


def test_there_are_endpoints_of_each_kind_that_rules_name() -> None:
    kinds = {endpoint.kind for endpoint in ENDPOINTS}
    assert kinds == set(Kind)
    assert {kind for rule in all_rules() for kind in rule.at} <= kinds


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("30", 30.0),
        (" 30 ", 30.0),
        ("9" * 400, words.YEAR),
        ("Thu, 01 Jan 1970 00:02:00 GMT", 20.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("soon", None),
        ("", None),
        ("-5", None),
        ("²", None),
        ("Thu, 99 Jan 1970 00:02:00 GMT", None),
        (None, None),
    ],
)
def test_retry_after_is_a_number_or_a_date(value: str | None, seconds: float | None) -> None:
    assert words.retry_after(value, 100.0) == seconds


def test_impossible_versions_and_times_do_no_harm() -> None:
    assert [words.major(version) for version in ("7.1", "", None, "x.1", "²", "9" * 5000)] == [7, 0, 0, 0, 0, 0]


# -- S01 to S04: refusals ------------------------------------------------------------------------------


ELSEWHERE = {
    "S25": (
        "Failed when searching for node n: Failed to find n via exec: Execution of '/enc n' returned 1: ",
        "Failed when searching for node n: Could not load external node results for n: (<unknown>): expected a key",
        "Failed when searching for node n: Exception while executing '/enc': Cannot run program: error=13",
        "Failed when searching for node n: Could not find terminus ldap for indirection node",
        "Could not find node 'n'; cannot compile",
        "org.jruby.exceptions.RuntimeError: (Error) Failed to find n via exec: Execution of '/enc n' returned 1: ",
    ),
    "S26": (
        "Failed when searching for node n: Could not find a directory environment named 'gone' anywhere in the path: /",
    ),
    "S27": (
        "Function lookup() did not find a value for the name 'some::key' on node n",
        "Unable to parse (/e/data/common.yaml): expected ',' or ']', but got <stream end> on node n",
        "Unable to find 'lookup_key' function named 'nosuch_backend' (file: /e/hiera.yaml) on node n",
        "Error while evaluating a Function Call, (/e/hiera.yaml): expected the node content, but found '<stream end>'",
        "Function Load Error for function 'eyaml_lookup_key': only supported when the hiera_eyaml library is present",
    ),
    "S28": (
        "Could not find terminus puppetdb for indirection facts",
        "Failed when searching for node n: Could not retrieve facts for n: Failed to find facts from PuppetDB at db:1",
        "Failed to execute '/pdb/query/v4/resources' on at least 1 of the following 'server_urls': https://db:8081",
    ),
}
"""Error messages (of Puppet Server 7.9.5; those with db of PuppetDB's documentation) by their cause."""


@pytest.mark.parametrize(("ident", "text"), [(ident, text) for ident, texts in ELSEWHERE.items() for text in texts])
def test_a_failure_that_is_not_the_codes_has_one_cause(ident: str, text: str) -> None:
    failed = catalog(status=500, text=f"Server Error: {text}")
    raised = [rule for rule in ("S01", *ELSEWHERE) if messages(rule, failed)]
    assert raised == [ident]


@pytest.mark.parametrize(
    "text",
    [
        "Could not find class nosuch for n on node n",
        "Could not find node statement with name 'default' or 'n' on node n",
        "Evaluation Error: Unknown variable: 'x'. (file: /e/modules/puppetdb/manifests/init.pp, line: 3)",
        "Evaluation Error: Error while evaluating a Resource Statement, expects a value for parameter 'port'",
    ],
)
def test_s01_is_about_the_code(text: str) -> None:
    assert [ident for ident in ("S01", *ELSEWHERE) if messages(ident, catalog(status=500, text=text))] == ["S01"]


def test_s01_of_a_command_is_no_failed_run() -> None:
    """It sends no facts, and the master cannot read that: puppet catalog download of 7.23.0."""
    text = "Server Error: Could not intern from json: undefined method `[]' for nil:NilClass"
    command, run = (found("S01", talk(catalog(status=500, text=text, uuid=uuid))) for uuid in (None, "a-1"))
    assert [finding.severity for finding in (*command, *run)] == [Severity.WARNING, Severity.ERROR]


def test_s01_is_about_what_the_master_could_not_compile() -> None:
    assert messages("S01", catalog(status=500, text="Server Error: x\n  y")) == ["no catalog for node1.example: x y"]
    assert messages("S01", altered(catalog(status=500), response={"body": b""})) == [
        "no catalog for node1.example: status 500 without a reason"
    ]
    # 400 is how masters up to 3 fail; later ones mean a mistake in the request.
    assert messages("S01", catalog(status=400)) == []
    assert len(messages("S01", catalog(status=400), version="3.8.7")) == 1
    assert messages("S01", catalog(status=404), version="3.8.7") == []
    assert messages("S01", unanswered(catalog())) == []
    assert messages("S01", catalog(status=503)) == []
    page = {"Content-Type": "text/html"}
    assert messages("S01", altered(catalog(status=502), response={"body": b"<html>"}, answers=page)) == []


def test_s02_without_a_certificate_is_t03() -> None:
    assert messages("S02", catalog(status=403), certificate=False) == []
    assert len(found("T03", talk(catalog(status=403), certificate=False))) == 1
    (findings,) = found("S02", talk(node(status=403)))
    assert findings.severity is Severity.WARNING
    (findings,) = found("S02", talk(catalog(status=401)))
    assert findings.severity is Severity.ERROR
    assert "node1.example" in findings.message
    broken = altered(asked(f"file_metadata/{FILE}", status=403, text="x"), leg={"peer_chain": (b"junk",)})
    (message,) = messages("S02", broken)
    assert message.endswith("requested with the certificate of an unreadable certificate")


def test_s02_says_the_same_of_many_files_once() -> None:
    refused = [asked(f"file_metadata/modules/demo/{n}", status=403, text=f"Forbidden request: {n}") for n in range(5)]
    (findings,) = found("S02", talk(*refused))
    sent = "requested with the certificate of node1.example"
    assert findings.message == f"file_metadata of the mount modules was refused with 403, {sent}"


@pytest.mark.parametrize(
    ("request_", "says", "says_not"),
    [
        (catalog(status=403), "the name in the URL", "pp_cli_auth"),
        (
            asked("file_metadata/secure/a.txt", status=403, text="x"),
            "a mount is the part after",
            "the node of that name",
        ),
        (bucket(method="GET", status=403), "pp_cli_auth", "the node of that name"),
    ],
)
def test_only_where_a_path_has_a_certname_s02_speaks_of_certnames(
    request_: ExamplePart, says: str, says_not: str
) -> None:
    (run,) = runs_of(talk(plugins(), request_))
    fix = fixes.plain(rule_of("S02").fix_for(run))
    assert says in fix
    assert says_not not in fix
    assert "grep -rhs --include=puppetserver.log" in fix, "Debian's package has its log elsewhere"


@pytest.mark.parametrize(
    ("text", "environment", "says"),
    [
        ("Not Found: Could not find environment 'puppet'", "production", 1),
        ("Not Found: Could not find environment 'puppet'", "puppet", 0),
        ("Not Found: Could not find environment 'dev'", "dev", 0),
        ("Bad Request: The environment must be purely alphanumeric, not 'puppet-ca'", "production", 1),
        ("Not Found: No route for GET /x", "production", 1),
    ],
)
def test_s03_is_no_missing_environment(text: str, environment: str, says: int) -> None:
    assert len(messages("S03", plugins(status=404, text=text, environment=environment))) == says


def test_s03_by_the_kind_of_error() -> None:
    for kind, says in (("HANDLER_NOT_FOUND", 1), ("RESOURCE_NOT_FOUND", 0)):
        assert len(messages("S03", asked("node/node1.example", status=404, kind=kind, text="Not Found"))) == says


def test_s03_leaves_old_agents_to_s18() -> None:
    assert messages("S03", plugins(status=404, text="No route for GET /production"), version="3.8.7") == []


@pytest.mark.parametrize(
    ("status", "kind", "says"),
    [
        (406, "", "the agent sent Accept: application/json"),
        (415, "", "the agent sent Content-Type: application/json"),
        (400, "MISSING_HEADER_FIELD", "the agent sent Accept: application/json"),
        (400, "RUNTIME_ERROR", None),
        (404, "MISSING_HEADER_FIELD", None),
    ],
)
def test_s04_names_the_header(status: int, kind: str, says: str | None) -> None:
    part = asked("report/node1.example", method="PUT", status=status, kind=kind, text="x", sent={})
    expected = [f"refused with {status}: {says}"] if says else []
    assert messages("S04", part) == expected


def test_a_format_that_the_two_ends_do_not_share_is_one_cause_of_every_refusal() -> None:
    (run,) = runs_of(
        talk(node(status=406), plugins(status=406), catalog(status=406), report(status=406, result="failed"))
    )
    (finding,) = [finding for finding in run.findings if finding.rule == "S04"]
    assert finding.seqs == (1, 2, 3, 4)
    verdict = verdicts.verdict(run)
    assert verdict
    assert verdict.cause == finding
    assert set(verdict.symptoms) == {"R20", "P03"}


# -- S05 to S07: a busy master -------------------------------------------------------------------------


def busy(after: str | None) -> ExamplePart:
    return altered(catalog(status=503), answers={"Retry-After": after})


def test_s05_counts_and_says_when() -> None:
    (findings,) = found("S05", talk(plugins(), busy("10"), wait(11), busy("60"), wait(61), catalog(), report()))
    assert findings.message.startswith("the master told the agent 2 times to retry later (503), last at 20")
    assert "catalog is to be requested again after 60 s, at 20" in findings.message
    assert findings.seqs == (2, 3)


def test_s05_counts_more_than_are_stored() -> None:
    (findings,) = found("S05", talk(plugins(), *(busy("0") for _ in range(250)), report()))
    assert findings.message.startswith("the master told the agent 250 times to retry later (503)")


def test_s05_and_s06_part_by_the_header() -> None:
    for after in (None, "soon"):
        assert messages("S05", plugins(), busy(after), report()) == []
        assert len(messages("S06", plugins(), busy(after), report())) == 1
    assert messages("S06", plugins(), busy("0"), catalog(), report()) == []
    assert messages("S06", asked("/status/v1/simple", b"starting", status=503)) == []


@pytest.mark.parametrize(
    ("after", "waits", "version", "early"),
    [
        ("60", 5, "7.23.0", True),
        ("60", 61, "7.23.0", False),
        ("60", 5, "5.2.0", False),  # knows nothing of Retry-After
        ("60", 5, "5.3.1", True),
        ("1800", 600, "7.23.0", False),  # its runinterval may be shorter
        ("1800", 200, "7.23.0", True),
        ("Thu, 01 Jan 2099 00:00:00 GMT", 5, "7.23.0", False),  # by whose clock?
        ("0", 1, "7.23.0", False),
        (None, 5, "7.23.0", False),
    ],
)
def test_s07_knows_how_long_agents_wait(after: str | None, waits: float, version: str, early: bool) -> None:
    texts = messages("S07", plugins(), busy(after), wait(waits), catalog(), report(), version=version)
    assert bool(texts) is early


def test_s07_is_about_agents_and_the_catalog() -> None:
    curl = {"User-Agent": "curl/8.1", "X-Puppet-Version": None}
    tries = [altered(part, headers=curl) for part in (busy("60"), catalog())]
    assert messages("S07", *tries) == []
    assert messages("S07", altered(plugins(status=503), answers={"Retry-After": "60"}), catalog()) == []
    probe = altered(asked("/status/v1/simple", b"", status=503), answers={"Retry-After": "60"})
    assert messages("S05", probe, plugins(), catalog(), report()) == []


def test_s07_counts_the_tries() -> None:
    tries = [part for _ in range(101) for part in (busy("1"), wait(2))]
    assert messages("S07", *tries) == []
    assert messages("S07", *tries, busy("1")) == ["the agent requested the catalog again more than 100 times"]


# -- S08 to S13: the answer itself ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "severity"), [(9.5, None), (10.5, Severity.WARNING), (59, Severity.WARNING), (61, Severity.ERROR)]
)
def test_s08_has_two_thresholds(seconds: float, severity: Severity | None) -> None:
    findings = found("S08", talk(slow(catalog(), seconds)))
    assert [finding.severity for finding in findings] == ([severity] if severity else [])
    assert all(f"took {seconds:.0f} s" in finding.message for finding in findings)


def test_s08_says_who_gave_up() -> None:
    (asks,) = talk(unanswered(catalog()))
    late = talk(altered(unanswered(catalog()), failed=asks.time + 600.2))
    (finding,) = found("S08", late)
    closed = "no catalog after 600 s, then the master, or a device in between, closed the connection"
    assert (finding.message, finding.severity) == (closed, Severity.ERROR)
    (finding,) = found("S08", talk(given_up(catalog(), "the agent disconnected", 600)))
    assert finding.message == "no catalog after 600 s, then the agent gave up"
    assert found("S08", [asks]) == []


@pytest.mark.parametrize(
    ("accept", "media", "wrong"),
    [
        ("application/json", "application/json;charset=utf-8", False),
        ("application/json;q=0.5, text/pson", "TEXT/PSON", False),
        ("pson, yaml, dot", "text/pson", False),
        ("pson, yaml, dot", "application/json", True),
        ("s", "text/plain", False),
        ("*/*", "text/plain", False),
        (None, "text/plain", False),
        ("application/json", "", True),
        ("application/json", None, True),
        ("application/json", "text/html", False),  # S15
    ],
)
def test_s09_compares_with_accept(accept: str | None, media: str | None, wrong: bool) -> None:
    part = altered(catalog(), headers={"Accept": accept}, answers={"Content-Type": media})
    assert bool(messages("S09", part)) is wrong


def test_s09_is_not_about_refusals_and_content() -> None:
    nothing = {"Content-Type": None}
    assert messages("S09", altered(catalog(status=403), answers=nothing)) == []
    assert messages("S09", altered(content(FILE), answers=nothing)) == []


@pytest.mark.parametrize(
    ("version", "accept", "media", "fell_back"),
    [
        ("7.23.0", "application/json, text/pson", "text/pson", True),
        ("7.23.0", "text/pson, application/json", "text/pson", False),
        ("4.10.9", "application/json, text/pson", "text/pson", False),
        ("7.23.0", "application/json, text/pson", "application/json", False),
        ("7.23.0", "application/x-msgpack, text/pson", "text/pson", False),
    ],
)
def test_s10_is_about_agents_that_prefer_json(version: str, accept: str, media: str, fell_back: bool) -> None:
    part = altered(catalog(), headers={"Accept": accept}, answers={"Content-Type": media})
    assert bool(messages("S10", part, version=version)) is fell_back


@pytest.mark.parametrize(("master", "fell_back"), [("4.10.9", True), ("5.5.22", False), ("junk", False)])
def test_s10_pson_facts_for_an_old_master(master: str, fell_back: bool) -> None:
    part = catalog(form={"facts_format": "pson"})
    assert bool(messages("S10", plugins(), part, version="5.5.22", master_version=master)) is fell_back


@pytest.mark.parametrize(("version", "says"), [("2.7.26", 0), ("3.2.4", 0), ("3.8.7", 1), ("7.23.0", 1)])
def test_s11_old_masters_never_sent_it(version: str, says: int) -> None:
    absent = [altered(part, answers={"X-Puppet-Version": None}) for part in (catalog(), metadata(FILE), content(FILE))]
    for records in (talk(*absent, version=version), talk(catalog(), *absent, version=version)):
        assert len(found("S11", records)) == says


def test_s11_is_not_about_refusals() -> None:
    assert messages("S11", altered(catalog(status=503), answers={"X-Puppet-Version": None})) == []


@pytest.mark.parametrize(
    ("status", "location", "says", "severity"),
    [
        (302, "https://other.example:8140/x?y=1", "to https://other.example:8140", Severity.WARNING),
        (307, "https://user:secret@other.example/x", "to https://other.example", Severity.WARNING),
        (302, "/puppet/v3/x", "not to an absolute address", Severity.ERROR),
        (302, None, "not to an absolute address", Severity.ERROR),
        (308, "https://other.example/", "which agents do not follow", Severity.ERROR),
    ],
)
def test_s12_says_where_to(status: int, location: str | None, says: str, severity: Severity) -> None:
    (findings,) = found("S12", talk(altered(catalog(status=status), answers={"Location": location})))
    assert says in findings.message
    assert "secret" not in findings.message
    assert findings.severity is severity


def test_s12_nothing_new_is_no_redirection() -> None:
    assert messages("S12", crl(status=304, refresh=True), ca(status=304, refresh=True)) == []


@pytest.mark.parametrize(
    ("location", "itself"),
    [
        ("https://puppet.example:8140/puppet/v3/catalog/node1.example?environment=production", True),
        ("https://PUPPET.example:8140/puppet/v3/catalog/node1.example", True),
        ("https://puppet.example/puppet/v3/catalog/node1.example", False),
        ("http://puppet.example:8140/puppet/v3/catalog/node1.example", False),
        ("https://puppet.example:8140/puppet/v3/catalog/other", False),
    ],
)
def test_s32_is_a_redirect_to_the_same_url(location: str, *, itself: bool) -> None:
    parts = altered(catalog(status=307), answers={"Location": location}), catalog(), report()
    assert (len(messages("S12", *parts)), len(messages("S32", *parts))) == (not itself, itself)


@pytest.mark.parametrize(
    ("encoding", "body", "unusable"),
    [
        ("br", b"{}", True),
        ("gzip, br", b"{}", True),
        ("gzip", b"{}", True),
        ("GZIP", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xab\xae\x05\x00C\xbf\xa6\xa3\x02\x00\x00\x00", False),
        ("identity", b"{}", False),
        ("br", b"", False),
    ],
)
def test_s13_tries_to_undo_it(encoding: str, body: bytes, unusable: bool) -> None:
    part = altered(catalog(), answers={"Content-Encoding": encoding}, response={"body": body})
    assert bool(messages("S13", part)) is unusable


def test_s13_what_we_do_not_unpack_is_nobodys_fault() -> None:
    too_large = altered(content(FILE, bytes(64 * 2**20 + 1)), answers={"Content-Encoding": "gzip"})
    assert messages("S13", too_large) == []


# -- S14, S15 ------------------------------------------------------------------------------------------

CLOSED = "HTTP/1 protocol error: peer closed connection without sending complete message body (received 3, expected 7)"


@pytest.mark.parametrize(
    ("answers", "error", "method", "cut"),
    [
        ({"Content-Length": "7"}, CLOSED, "GET", True),
        ({"Content-Length": "7"}, "server closed connection", "GET", True),
        ({"Transfer-Encoding": "chunked"}, CLOSED, "GET", True),
        ({"Content-Length": "7"}, "Client disconnected.", "GET", False),
        ({"Content-Length": "7"}, "Connection killed.", "GET", False),
        ({"Content-Length": "7"}, None, "GET", False),  # not all of it was kept
        ({"Content-Length": "7"}, CLOSED, "HEAD", False),
        ({"Content-Length": "3"}, CLOSED, "GET", False),
        ({"Content-Length": "9" * 5000}, CLOSED, "GET", False),
        ({"Content-Length": "²"}, CLOSED, "GET", False),
        ({}, CLOSED, "GET", False),
    ],
)
def test_s14_needs_a_master_that_stopped(answers: dict[str, str], error: str | None, method: str, cut: bool) -> None:
    part = altered(content(FILE, b"con"), answers=answers, error=error, request={"method": method})
    assert bool(messages("S14", part)) is cut


def test_s14_an_answer_to_head_has_a_length_and_no_body() -> None:
    part = altered(bucket(method="HEAD"), answers={"Content-Length": "7"}, error=CLOSED)
    assert messages("S14", part) == []
    assert len(messages("S14", altered(part, request={"method": "GET"}))) == 1


def test_s15_names_the_page() -> None:
    page = b"<!DOCTYPE html><html><title>Log in,\n please</title></html>"
    for status in (200, 404, 502):
        part = asked("catalog/node1.example", page, method="POST", status=status, media="text/html; charset=utf-8")
        (message,) = messages("S15", part)
        assert message.startswith(f"catalog was answered {status} with a web page")
        assert ("Log in, please" in message) is (status >= 400)
    assert messages("S15", asked("/status/v1/simple", page, media="text/html")) == []
    assert len(messages("S15", asked("node/x", page, status=502, media="text/plain"))) == 1
    for status, says in ((404, 0), (502, 1)):  # 404 to URLs of agents up to 3 is S18
        part = asked("node/x", page, status=status, media="text/html")
        assert len(messages("S15", part, version="3.8.7")) == says
    assert len(messages("S15", asked("node/x", page, status=404, media="text/html"))) == 1


# -- S16 to S18: generations ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("agent", "master", "older"),
    [
        ("8.10.0", "7.23.0", True),
        ("8.28.1", "8.10.0", False),
        ("7.23.0", "8.10.0", False),
        ("4.10.9", "3.8.7", True),
        ("7.23.0", "junk", False),
    ],
)
def test_s16_compares_majors(agent: str, master: str, older: bool) -> None:
    findings = found("S16", talk(plugins(), catalog(), report(), version=agent, master_version=master))
    assert bool(findings) is older
    assert all(finding.seqs == (1,) for finding in findings)


def test_s17_is_about_agents_without_a_certificate() -> None:
    assert len(messages("S17", ca(), crl(status=403))) == 1
    assert messages("S17", crl(status=403), version="5.5.22") == []
    assert messages("S17", crl(status=404)) == []
    shown = talk(catalog())[0].agent  # type: ignore[union-attr]
    assert messages("S17", altered(crl(status=403), leg={"peer_chain": shown.peer_chain})) == []


@pytest.mark.parametrize(
    ("body", "media", "method", "version", "says"),
    [
        (b"", "text/plain", "GET", "3.8.7", 1),
        (b"<html>404</html>", "text/html", "GET", "3.8.7", 1),
        (b"Note that Puppet 3 agents aren't compatible with this version.", "text/plain", "GET", "3.8.7", 1),
        (b"Not Found: Could not find node", "text/plain", "GET", "3.8.7", 0),
        (b"", "text/plain", "HEAD", "3.8.7", 0),
        (b"", "text/plain", "GET", "7.23.0", 0),
    ],
)
def test_s18_knows_three_ways_to_say_it(body: bytes, media: str, method: str, version: str, says: int) -> None:
    path = "file_bucket_file/md5/abc" if method == "HEAD" else "node/node1.example"
    part = asked(path, body, method=method, status=404, media=media)
    assert len(messages("S18", part, version=version)) == says


def test_s18_leaves_tools_alone() -> None:
    part = asked("/production/node/x", b"", status=404)
    curl = {"User-Agent": "curl/8.1", "X-Puppet-Version": None}
    assert messages("S18", altered(part, headers=curl)) == []
    assert len(messages("S18", part, version="3.8.7")) == 1


# -- S19 to S22 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "method", "says"),
    [
        ("/puppet/v3/environment/production", "GET", 1),
        ("/production/run/node1.example", "PUT", 1),
        ("/production/resource_type/apache", "GET", 1),
        ("/production/certificate_status/node1.example", "GET", 1),
        ("/puppet-ca/v1/certificate_status/node1.example", "GET", 0),
        ("/puppet/v3/environments", "GET", 0),
    ],
)
def test_s19_names_what_is_gone(path: str, method: str, says: int) -> None:
    assert [finding.severity for finding in found("S19", talk(asked(path, {}, method=method)))] == [
        Severity.NOTICE
    ] * says


def test_s20_names_the_compilers() -> None:
    parts = [altered(catalog(), answers={"X-Puppet-Compiler-Name": name}) for name in ("c1.example", "c2.example")]
    (findings,) = found("S20", talk(plugins(), *parts, report()))
    assert findings.message == "2 compilers answered in one run: c1.example, c2.example"
    assert findings.seqs == (2, 3)
    assert found("S20", talk(plugins(), parts[0], parts[0], report())) == []


@pytest.mark.parametrize(
    ("part", "says"),
    [
        (asked("/status/v1/simple/server", b"stopping", status=503), "answered 503"),
        (unanswered(asked("/status/v1/simple/server", b"")), "gave no answer"),
        (unanswered(asked("/status/v1/simple/server", b""), "Client disconnected."), None),
        (asked("/status/v1/simple/server", b"", status=404), None),
        (asked("/status/v1/simple/master", b"", status=403), None),
        (altered(asked("/status/v1/simple", b"", status=503), headers={"X-Puppet-Version": None}), None),
    ],
)
def test_s21_is_about_agents_probes(part: ExamplePart, says: str | None) -> None:
    texts = messages("S21", part, plugins(), catalog(), report())
    assert texts == ([f"puppet.example:8140 {says} to the status check"] if says else [])


def test_s22_a_deprecation_is_no_stack_trace() -> None:
    def part(trace: object) -> ExamplePart:
        body = {"message": "x at a.rb:1", "issue_kind": "RUNTIME_ERROR", "stacktrace": trace}
        return asked(f"file_metadata/{FILE}", body, status=404)

    assert len(messages("S22", part(["/usr/lib/a.rb:1:in `x'"]))) == 1
    assert messages("S22", part(["The 'stacktrace' property is deprecated"])) == []
    assert messages("S22", part([])) == []
    assert messages("S22", altered(part(["/a.rb:1"]), answers={"Content-Encoding": "br"})) == []


@pytest.mark.parametrize(
    ("version", "sent", "says", "advised"),
    [
        ("7.23.0", b"null", "`puppet catalog download` sent no facts: ", "correct nothing on the node"),
        # OpenVox 9 sends them.
        ("9.0.0", b"%257B%2522name%2522%253A%2522x%2522%257D", "no catalog for node1.example: ", "correct the code"),
    ],
)
def test_s01_a_command_that_sends_no_facts_shows_no_mistake_of_the_code(
    version: str, sent: bytes, says: str, advised: str
) -> None:
    body = b"environment=production&facts_format=application%2Fjson&facts=" + sent
    (record,) = talk(altered(catalog(uuid=None, status=500), request={"body": body}), version=version)
    (finding,) = found("S01", [record])
    assert says in finding.message
    assert ("sent no facts" in finding.message) is (version == "7.23.0")
    assert finding.severity is Severity.WARNING
    analyzer = Analyzer()
    analyzer.feed(record)
    assert fixes.sentence(rule_of("S01").fix_for(analyzer.finish()[0])[0]).startswith(advised)


def test_p17_facts_that_were_not_taken_are_reported_of_a_command_and_of_an_agent() -> None:
    facts = altered(report(), request={"target": "/puppet/v3/facts/node1.example?environment=production"})
    failed = altered(facts, response={"status": 500, "body": b'{"message": "Server Error: connect timed out"}'})
    assert messages("P17", failed) == ["the master answered the facts with 500: connect timed out"]
    assert len(messages("P17", catalog(), failed, report())) == 1
    for status in (200, 403, 503):
        assert messages("P17", altered(facts, response={"status": status})) == []


def test_what_is_marked_of_an_error_begins_with_what_is_wrong_and_does_not_stop_in_it() -> None:
    wrong = f"{'no such value of a parameter, ' * 8}as the last words say"
    (finding,) = found("S01", talk(catalog(status=500, text=f"Server Error: Evaluation Error: {wrong}\n  at x")))
    place = finding.places[0]
    assert (place.part, place.needle, place.fallback) == (
        "error",
        wrong,
        f"Server Error: Evaluation Error: {wrong}"[:120],
    )
    (step,) = retrace(talk(catalog(status=500, text=f"Server Error: {wrong}")))
    shown = tabs.locate(finding.places, tabs.tabs(step, tabs.known(step)))
    assert shown is not None
    assert shown.needle == wrong


@pytest.mark.parametrize("before", ["", "x " * 70])
def test_what_is_marked_of_an_error_has_no_secret(before: str) -> None:
    text = f"Server Error: {before}cannot log in as root with hunter2hunter2"
    (finding,) = found("S01", talk(catalog(status=500, text=text, facts={"db_password": "hunter2hunter2"})))
    assert "hunter2" not in f"{finding.message}{finding.places}"
    assert (finding.places[0].needle == text[:120]) is bool(before), "of a long one the beginning is found"
