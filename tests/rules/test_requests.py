"""Rules about signing requests, certificates and waiting for them: what their examples do not show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.analysis import verdicts
from inspector.rules import rule_of
from inspector.rules.fixes import plain
from inspector.rules.kit import *
from inspector.runs.observations import CertificateAnswer
from tests.support.conversations import SIGNED, WAITS, Agent, all_findings, analyzed, runs_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.model import Finding

MINE = (
    "B19", "B21", "B23", "B24", "B25", "B26", "B27", "B28", "B29", "B30", "B39", "B40", "B41", "B42", "B43", "B44",
    "B45", "B46",
)  # fmt: skip
POLL = (csr(status=400, text=WAITS), not_issued())


def found(records: Sequence[Record], *ids: str) -> list[Finding]:
    return [finding for finding in all_findings(records) if finding.rule in (ids or MINE)]


def raised(*parts: ExamplePart, version: str = "7.23.0") -> set[str]:
    return {finding.rule for finding in found(talk(ca(), crl(), *parts, version=version))}


def test_a_request_with_rights_that_waits_says_so_and_a_signed_one_is_settled() -> None:
    """`puppetserver ca sign` answers 409 for it, so "sign it" is not the way out."""
    asks = csr(made=asking_for({"1.3.6.1.4.1.34380.1.3.13": "admin"}))
    (run,) = runs_of(talk(ca(), crl(), asks, not_issued()))
    verdict = verdicts.verdict(run)
    assert verdict
    assert verdict.cause
    assert verdict.cause.rule == "B28"
    assert verdict.cause.message.endswith("pp_auth_role: the CA does not sign it unless it is configured to")
    assert "allow-authorization-extensions" in plain(rule_of("B28").fix_for(run))
    (signed,) = runs_of(talk(ca(), crl(), asks, issued(), plugins(), catalog(), report()))
    (found,) = [finding for finding in signed.findings if finding.rule == "B28"]
    assert verdicts.settled(found, signed)
    assert found.severity is Severity.NOTICE, "nothing is left to do"


def test_what_the_ca_refused_and_then_signed_is_no_error() -> None:
    text = b"CSR 'node1.example' contains extra subject alternative names (DNS:b), which are disallowed."
    refused_first = csr(alt_names=["b"], status=400, body=text)
    (run,) = runs_of(talk(ca(), crl(), refused_first, issued(), plugins(), catalog(), report()))
    (found,) = [finding for finding in run.findings if finding.rule == "B27"]
    assert found.severity is Severity.NOTICE


def test_a_right_over_the_ca_that_was_granted_is_not_settled() -> None:
    asks = csr(made=asking_for({"1.3.6.1.4.1.34380.1.3.39": "true"}))
    (run,) = runs_of(talk(ca(), crl(), asks, issued(), plugins(), catalog(), report()))
    (found,) = [finding for finding in run.findings if finding.rule == "B28"]
    assert not verdicts.settled(found, run)


def test_a_node_that_enrols_again_after_the_fix_and_polls_uses_one_key() -> None:
    refused = (ca(), crl(), csr(key="new", status=400, text=SIGNED), issued(key="lost"))
    parts = (ca(), crl(), csr(), not_issued(), csr(status=400, text=WAITS), issued(), catalog(), report())
    assert found(talk(*refused, *parts), "B20", "B22") == [], "the CA was cleaned: its request is this one"
    another = (ca(), crl(), csr(key="third", status=400, text=WAITS), not_issued())
    assert [finding.rule for finding in found(talk(*refused, *parts[:4], *another), "B20")] == ["B20"]


def test_a_node_that_lost_its_first_request_keeps_its_key() -> None:
    parts = (ca(), crl(), csr(), not_issued(), ca(), crl(), csr(key="other", status=400, text=WAITS), not_issued())
    _, run = runs_of(talk(*parts))
    steps = [step for step in rule_of("B20").fix_for(run) if step.only_if.startswith("the node lost the key")]
    assert [step.command.split()[1:3] for step in steps] == [["ca", "clean"], ["agent", "-t"], ["ca", "sign"]]


# -- what a request asks for ---------------------------------------------------------------------------


def test_a_refusal_is_an_error_and_a_request_that_waits_a_warning() -> None:
    text = b"CSR 'node1.example' contains extra subject alternative names (DNS:b), which are disallowed."
    (waits,) = found(talk(csr(alt_names=["b"])), "B27")
    (no,) = found(talk(csr(alt_names=["b"], status=400, body=text)), "B27")
    assert (waits.severity, no.severity) == (Severity.WARNING, Severity.ERROR)
    assert "DNS:b" in waits.message
    assert NAME not in waits.message.partition("(")[2]  # its own name is no extra one


@pytest.mark.parametrize(
    ("rule", "request_"),
    [
        ("B27", {"alt_names": ["b.example"]}),
        ("B28", {"made": asking_for({"1.3.6.1.4.1.34380.1.3.13": "x"})}),
        ("B29", {"made": asking_for({"1.3.6.1.4.1.99999.1": "x"})}),
    ],
)
def test_what_a_request_asks_for_is_reported_once_and_not_with_every_poll(
    rule: str, request_: dict[str, object]
) -> None:
    def sent(**answer: object) -> ExamplePart:
        return csr(**request_, **answer)  # type: ignore[arg-type]

    polls = (sent(), not_issued(), *(sent(status=400, text=WAITS), not_issued()) * 2)
    (only,) = found(talk(*polls), rule)
    assert only.seqs == (1,)
    # A capture that begins while it waits shows it all the same.
    assert found(talk(*polls[2:]), rule)


def test_names_that_are_asked_for_later_are_reported_then() -> None:
    (only,) = found(talk(csr(), not_issued(), csr(alt_names=["b.example"])), "B27")
    assert only.seqs == (3,)


def test_many_alternative_names_do_not_fill_the_screen() -> None:
    (only,) = found(talk(csr(alt_names=[f"{n}.{'x' * 60}.example" for n in range(300)])), "B27")
    assert len(only.message) < 400
    assert "and 297 more" in only.message


def test_rights_that_a_site_may_have_allowed_are_a_warning_those_of_the_ca_an_error() -> None:
    role, cli = "1.3.6.1.4.1.34380.1.3.13", "1.3.6.1.4.1.34380.1.3.39"
    (allowed,) = found(talk(csr(made=asking_for({role: "x"}))), "B28")
    (never,) = found(talk(csr(made=asking_for({role: "x", cli: "true"}))), "B28")
    assert (allowed.severity, never.severity) == (Severity.WARNING, Severity.ERROR)


def test_an_extension_that_the_decoder_knows_is_foreign_to_the_ca_too() -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    from inspector.runs.examples import private_key

    made = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)]))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(private_key(NAME), hashes.SHA256())
    )
    (only,) = found(talk(csr(made=made)), "B29")
    assert "2.5.29.19" in only.message


@pytest.mark.parametrize(("version", "severity"), [("5.5.22", Severity.WARNING), ("8.10.0", Severity.NOTICE)])
def test_a_secret_is_named_never_shown(version: str, severity: Severity) -> None:
    psk = asking_for({"1.3.6.1.4.1.34380.1.1.4": "psk-secret-17"})
    for part in (csr(attributes={"1.2.840.113549.1.9.7": "challenge-secret-42"}), csr(made=psk)):
        (only,) = found(talk(part, version=version), "B30")
        assert only.severity is severity
        assert "secret" not in only.message


def test_an_auto_renewal_mark_is_no_request_for_rights() -> None:
    assert raised(csr(attributes={"1.3.6.1.4.1.34380.1.3.2": "true"}), not_issued(), version="8.10.0") == set()


# -- names ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("certname", "rules"),
    [
        ("web_1.rack-2.example", set()),
        ("10.0.0.7", set()),
        ("Web1.example", {"B25"}),
        ("web1.EXAMPLE", {"B25"}),
        ("web 1.example", {"B26"}),
        ("-web1.example", {"B26"}),
        ("web1.example-", {"B26"}),
        ("*.example", {"B26"}),
        ("wéb1.example", {"B26"}),
        ("web1;reboot", {"B26"}),
        ("WEB 1", {"B25", "B26"}),
    ],
)
def test_which_certnames_a_ca_takes(certname: str, rules: set[str]) -> None:
    from urllib.parse import quote

    for status, severity in ((400, Severity.ERROR), (200, Severity.WARNING)):
        refusal = b"Subject hostname format is invalid" if status == 400 else b""
        findings = found(talk(csr(status=status, body=refusal, path=quote(certname)), certname=certname))
        assert {finding.rule for finding in findings} == rules
        assert {finding.severity for finding in findings} <= {severity}


def test_the_subject_is_looked_at_as_well_as_the_url() -> None:
    findings = found(talk(csr(made=asking_for({}, "Node1.example"), status=400, body=b"no")))
    assert {finding.rule for finding in findings} == {"B24", "B25", "B43"}
    assert "subject is Node1.example" in next(finding.message for finding in findings if finding.rule == "B24")


def test_a_key_that_the_sender_does_not_have_is_no_clone() -> None:
    from cryptography.hazmat.primitives.serialization import Encoding

    from inspector.host import pki
    from inspector.runs.examples import private_key

    made = pki.make_csr("b.example", private_key("k")).public_bytes(Encoding.DER)
    foreign = made[:-1] + bytes([made[-1] ^ 1])  # its signature is not by that key
    import base64

    pem = (
        b"-----BEGIN CERTIFICATE REQUEST-----\n" + base64.b64encode(foreign) + b"\n-----END CERTIFICATE REQUEST-----\n"
    )
    stolen = talk(altered(csr(), request={"body": pem}), certname="b.example", after=60)
    assert found(together(talk(csr(key="k")), stolen), "B21") == []


def test_one_key_for_two_spellings_of_a_name_is_no_clone() -> None:
    talks = talk(csr(key="k")), talk(csr(key="k"), certname="NODE1.example", after=60)
    assert found(together(*talks), "B21") == []
    assert found(together(talks[0], talk(csr(key="k"), certname="b.example", after=60)), "B21")


# -- what the CA answers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "body", "rules"),
    [
        (200, b"", set()),
        (400, f"{NAME} {WAITS}".encode(), set()),
        (400, f"{NAME} already has a revoked certificate; ignoring certificate request".encode(), {"B19"}),
        (400, b"The environment must be purely alphanumeric, not 'puppet-ca'", {"B43"}),
        (400, b"Found extensions that are not permitted: 1.2.3", set()),
        (403, b"Forbidden request", {"B43"}),
        (404, b"", {"B43"}),
        (502, b"<html><title>Bad Gateway</title></html>", {"B43"}),
        (500, f"Server Error: {NAME} already has a requested certificate".encode(), set()),
    ],
)
def test_which_answers_are_a_rejection(status: int, body: bytes, rules: set[str]) -> None:
    assert raised(csr(status=status, body=body)) == rules


def test_a_request_without_an_answer_is_not_rejected() -> None:
    assert raised(unanswered(csr())) == set()


def test_a_request_that_cannot_be_read_is_judged_by_what_the_ca_made_of_it() -> None:
    broken = {"body": b"-----BEGIN CERTIFICATE REQUEST-----\nMIIC"}
    assert raised(altered(csr(status=500, body=b"x"), request=broken)) == {"B44"}
    assert raised(altered(csr(status=403, body=b"x"), request=broken)) == {"B43"}
    assert raised(altered(csr(), request=broken)) == set()
    short = altered(csr(status=500, body=b"x"), request=broken, headers={"Content-Length": "1704"})
    assert "40 bytes of 1704 announced" in found(talk(short), "B44")[0].message


# -- keys ----------------------------------------------------------------------------------------------


def test_a_certificate_for_another_key_names_both_keys() -> None:
    (only,) = found(talk(csr(status=400, text=SIGNED), issued(key="old")), "B23")
    assert only.severity is Severity.ERROR
    assert only.seqs == (1, 2)
    assert only.message.count("...") == 3
    (again,) = found(talk(*(csr(status=400, text=SIGNED), issued(key="old")) * 2), "B23")
    assert again.seqs == (1, 2, 3, 4)


@pytest.mark.parametrize("version", ["3.8.7", "5.5.22"])
def test_an_old_agent_that_gets_an_old_certificate_and_stops_most_likely_has_another_key(version: str) -> None:
    (only,) = found(talk(ca(), issued(), version=version), "B23")
    assert "most likely" in only.message
    # One that goes on has the key; one that was signed while it waited has not fetched the CA anew.
    assert found(talk(ca(), issued(), catalog(), report(), version=version), "B23") == []
    assert found(talk(not_issued(), wait(120), issued(), version=version), "B23") == []
    # Since 6.4 a request comes first: without one in the capture nothing is known.
    assert found(talk(ca(), issued(), version="7.23.0"), "B23") == []


def test_a_tool_that_looks_at_certificates_is_no_agent() -> None:
    curl = altered(issued(), headers={"X-Puppet-Version": None, "User-Agent": "curl/7.88.1"})
    looks = altered(not_issued(), headers={"X-Puppet-Version": None, "User-Agent": "curl/7.88.1"})
    assert found(talk(csr(key="mine"), after=-60) + talk(curl), "B23") == []
    assert found(talk(*[looks, wait(60)] * 5), "B39", "B40", "B41") == []


# -- waiting -------------------------------------------------------------------------------------------


def test_the_burst_of_an_old_agent_is_one_question() -> None:
    polls = Agent(version="5.5.22").ca().poll().look().csr().poll().poll().poll()
    for _ in range(3):
        polls.wait(119.9).poll()
    (run,) = analyzed(polls).runs
    (only,) = [finding for finding in run.findings if finding.rule == "B39"]
    assert "4 times over 6 min, every 2 min" in only.message
    assert not [finding for finding in run.findings if finding.rule == "B41"]


@pytest.mark.parametrize("pauses", [(5, 300, 40), (120,), (30, 90, 30, 90)])
def test_agents_started_by_hand_do_not_poll(pauses: tuple[int, ...]) -> None:
    parts = [part for pause in pauses for part in (wait(pause), *POLL)]
    assert found(talk(csr(), not_issued(), *parts), "B39", "B41") == []


@pytest.mark.parametrize(("pause", "expected"), [(111, False), (130, False), (100, True), (150, True)])
def test_an_interval_is_another_one_beyond_a_tenth(pause: int, expected: bool) -> None:
    polls = [part for _ in range(4) for part in (wait(pause - 1), *POLL)]
    assert bool(found(talk(csr(), not_issued(), *polls), "B41")) is expected


def test_a_month_of_polling_is_counted_in_full() -> None:
    run = Run("192.0.2.1", NAME, "v3", agent_version="7.23.0")
    for n in range(21_600):
        run.certificates.append(CertificateAnswer(n, 120.0 * n, 404, None))
    waits = run.polling
    assert waits is not None
    assert (waits.interval, waits.times) == (120.0, 21_600)
    assert waits.last - waits.first == 120.0 * 21_599


def test_polling_for_a_day_is_reported_once() -> None:
    polls = [part for _ in range(30) for part in (wait(3600), *POLL)]
    (only,) = found(talk(csr(), not_issued(), *polls), "B42")
    assert only.severity is Severity.WARNING
    assert only.seqs[0] == 1
    (first,) = found(talk(csr(), not_issued(), *polls[: 3 * 24]), "B42")
    assert first.seqs == (1, 50)


def test_waiting_without_a_request_must_be_observed_from_its_beginning() -> None:
    old = "5.5.22"
    blind = talk(*[not_issued(), wait(120)] * 4, version=old)
    (notice,) = found(blind, "B40")
    assert notice.severity is Severity.NOTICE
    (error,) = found(talk(not_issued(), not_issued(), *[wait(120), not_issued()] * 3, version=old), "B40")
    assert error.severity is Severity.ERROR
    assert found(talk(*[not_issued(), wait(120)] * 4, version="7.23.0"), "B40") == []
    before = talk(csr(), version=old), talk(ca(), *[not_issued(), wait(120)] * 4, version=old, after=90_000)
    assert found(together(*before), "B40") == []  # it sent one the day before
    broken = altered(csr(status=500, body=b"x"), request={"body": b"x"})
    for ends in ((broken,), (issued(),), (catalog(), report())):
        assert found(talk(ca(), not_issued(), not_issued(), not_issued(), *ends, version=old), "B40") == []


def test_a_request_that_the_ca_holds_is_only_to_be_signed() -> None:
    look = f"/puppet-ca/v1/certificate_request/{NAME}?environment=production&"
    for status, expected in ((200, False), (404, True)):
        looked = asked(look, b"", status=status, run=False, media="text/plain")
        parts = (not_issued(), looked, not_issued(), wait(120), not_issued())
        assert bool(found(talk(*parts, version="5.5.22"), "B40")) is expected


@pytest.mark.parametrize(("pause", "expected"), [(0.1, True), (0.9, True), (1.1, False)])
def test_signed_at_once_is_within_two_seconds(pause: float, expected: bool) -> None:
    assert bool(found(talk(csr(), wait(pause), issued()), "B45")) is expected  # each part takes a second besides


def test_the_certificate_of_another_key_was_not_signed_at_once() -> None:
    assert found(talk(csr(), issued(key="other")), "B45") == []


def test_signed_at_once_means_that_there_was_no_404_before() -> None:
    agent = Agent(version="5.5.22").ca().poll().look().csr().poll().issued()
    assert "B45" not in {finding.rule for run in analyzed(agent).runs for finding in run.findings}


# -- clones --------------------------------------------------------------------------------------------

BUSY = (plugins(), catalog(), content("modules/demo/a"), wait(10), content("modules/demo/b"), wait(10), report())


def _second(uuid: str, address: str, after: float) -> list[Record]:
    return talk(catalog(uuid=uuid), wait(10), report(uuid=uuid), address=address, after=after)


def test_an_address_that_changes_between_runs_proves_nothing() -> None:
    addresses = [f"192.0.2.{n}" for n in range(10, 16)]
    runs = [_second(f"u-{n}", address, 1800 * n) for n, address in enumerate(addresses)]
    assert found(together(*runs), "B46") == []


def test_two_addresses_at_once_are_a_copied_key() -> None:
    (only,) = found(together(talk(*BUSY), _second("b-1", "192.0.2.8", 9)), "B46")
    assert "192.0.2.7 and 192.0.2.8" in only.message
    assert "copied" in only.message
    assert found(together(talk(*BUSY), _second("b-1", "192.0.2.7", 9)), "B46") == []  # one address: R17


def test_a_run_that_applies_in_silence_while_another_host_runs_is_still_at_work() -> None:
    silent = talk(plugins(), catalog(), wait(300), report())
    (only,) = found(together(silent, _second("b-1", "192.0.2.8", 60)), "B46")
    assert only.seqs == (1, 3)


def test_a_key_that_comes_back_is_another_hosts_whatever_the_address() -> None:
    mine, others = (csr(), not_issued()), (csr(key="b", status=400, text=WAITS), not_issued())
    in_turn = found(talk(*mine, wait(30), *others, wait(30), *POLL), "B46")
    assert in_turn
    assert all("alternate between two keys" in finding.message for finding in in_turn)
    # Whoever lost a key never uses it again.
    assert found(talk(*mine, wait(30), *others, wait(30), *others), "B46") == []


def test_a_clone_that_asks_while_the_certificate_is_at_work() -> None:
    waiting = talk(*[csr(key="b", status=400, text=SIGNED), issued(), wait(600)] * 5, address="192.0.2.8", after=300)
    works = [_second(f"u-{n}", "192.0.2.7", 900 * n) for n in range(3)]
    (only,) = found(together(waiting, *works), "B46")
    assert "another key is in use" in only.message
    # One that asks anew with the key of its certificate, and goes on with both, is one host.
    mine = talk(*[csr(status=400, text=SIGNED), issued(), wait(600)] * 5, after=300)
    assert found(together(mine, *works), "B46") == []
    # A host that was installed anew asks after its old certificate was last used.
    assert found(together(works[0], talk(csr(key="b", status=400, text=SIGNED), issued(), after=900)), "B46") == []
