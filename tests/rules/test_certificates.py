"""Rules about the CA's downloads, certificates and TLS: what their examples do not show."""

from __future__ import annotations

import dataclasses
import datetime
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from inspector.analysis.analyzer import Analyzer, Step
from inspector.analysis.verdicts import verdict
from inspector.host import pki
from inspector.model import Exchange, Finding, Handshake, Identity, Leg, Request, Response
from inspector.rules import rule_of
from inspector.rules.fixes import plain
from inspector.rules.kit import *
from inspector.rules.trust import forged
from inspector.runs.examples import authorities, bundle, foreign_ca, forged_crl, given_up, skewed, weakly_signed
from inspector.runs.history import ISSUERS, MASTERS, NAMES, Ledger
from inspector.summaries import conclusions
from tests.support import conversations
from tests.support.conversations import all_findings, runs_of

if TYPE_CHECKING:
    from collections.abc import Sequence


MINE = {
    *(f"B{n:02}" for n in (2, 4, 5, 6, 9, 11, 12, 14, 15, 16, *range(31, 39))),
    *(f"T{n:02}" for n in (1, 2, *range(4, 18))),
}


def findings(records: Sequence[Record], ident: str = "") -> list[Finding]:
    """The findings of the rules of this file, or of one."""
    return [
        finding for finding in all_findings(records) if finding.rule == ident or (not ident and finding.rule in MINE)
    ]


def ids(records: Sequence[Record]) -> set[str]:
    return {finding.rule for finding in findings(records)}


def with_leg(*parts: ExamplePart, **fields: Any) -> list[ExamplePart]:
    return [altered(part, leg=fields) for part in parts]


# -- the CA's bundle ---------------------------------------------------------------------------------------


def test_b02_is_about_an_earlier_run_not_about_this_one() -> None:
    # Up to 5 an agent that was just signed asks for the CA once more, with its certificate.
    own = altered(ca(), leg={"peer_chain": carried(made())})
    assert "B02" not in ids(talk(ca(), not_issued(), csr(), issued(), own, catalog(), report(), version="5.5.22"))


def test_b04_a_ca_that_comes_on_top_breaks_no_agent() -> None:
    root, own = authorities()
    grown = bundle(own.certificate, root.certificate, foreign_ca())
    (found,) = findings(together(talk(ca()), talk(grown, after=60, address="192.0.2.8")), "B04")
    assert found.severity is Severity.NOTICE
    assert found.message.startswith("the CA bundle of puppet.example grew since ")
    assert "CN=Foreign CA" in found.message


def test_b04_a_ca_that_was_renewed_with_its_key_breaks_no_agent() -> None:
    root, own = authorities()
    again = _renewed(root)
    renewed = bundle(own.certificate, again)
    (found,) = findings(together(talk(ca()), talk(renewed, after=60, address="192.0.2.8")), "B04")
    assert found.severity is Severity.NOTICE
    assert "was renewed since" in found.message


def _renewed(root: pki.Authority, lasts: float = 0.0) -> Any:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    old = root.certificate
    builder = x509.CertificateBuilder().subject_name(old.subject).issuer_name(old.issuer).serial_number(99)
    builder = builder.public_key(root.key.public_key())
    begins = old.not_valid_before_utc
    ends = begins + datetime.timedelta(seconds=lasts) if lasts else old.not_valid_after_utc
    builder = builder.not_valid_before(begins).not_valid_after(ends)
    for extension in old.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    return builder.sign(root.key, hashes.SHA256())


def test_b04_a_ca_that_is_gone_is_an_error_and_the_order_is_nothing() -> None:
    root, own = authorities()
    (found,) = findings(together(talk(ca()), talk(bundle(root.certificate), after=60, address="192.0.2.8")), "B04")
    assert (found.severity, found.seqs) == (Severity.ERROR, (1, 2))
    assert "it no longer contains" in found.message
    assert "CN=Sample CA" in found.message
    turned = bundle(root.certificate, own.certificate)
    assert findings(together(talk(ca()), talk(turned, after=60, address="192.0.2.8")), "B04") == []


def test_b04_another_master_may_have_another_ca() -> None:
    other = with_leg(bundle(foreign_ca()), sni="other.example")
    assert findings(together(talk(ca()), talk(*other, after=60, address="192.0.2.8")), "B04") == []


def test_b06_an_agent_that_refreshes_keeps_its_ca() -> None:
    (found,) = findings(talk(ca(refresh=True, status=404), catalog(), report()), "B06")
    assert found.severity is Severity.WARNING
    assert ids(talk(ca(status=500))) == set()


@pytest.mark.parametrize("part", [ca(status=404), crl(status=404), csr(status=404, body=b"Not Found")])
def test_a_tool_that_asks_the_ca_is_told_nothing_about_agents(part: ExamplePart) -> None:
    tool = altered(part, headers={"X-Puppet-Version": None, "User-Agent": "curl/7.88.1"})
    assert {"B06", "B08", "B43"}.isdisjoint(finding.rule for finding in all_findings(talk(tool)))


@pytest.mark.parametrize("part", [ca(status=404), crl(status=404), csr(status=404, body=b"")])
def test_an_environment_that_does_not_exist_is_no_missing_ca(part: ExamplePart) -> None:
    """Up to 3 the URLs of the CA begin with an environment."""
    text = b"Not Found: Could not find environment 'production'"
    raised = {finding.rule for finding in all_findings(talk(altered(part, response={"body": text}), version="3.8.7"))}
    assert "R09" in raised
    assert {"B06", "B08", "B43"}.isdisjoint(raised)


def test_b09_an_agent_that_refreshes_keeps_its_crl() -> None:
    (found,) = findings(talk(crl(refresh=True, status=403), catalog(), report()), "B09")
    assert found.severity is Severity.WARNING
    own = with_leg(crl(status=403), peer_chain=carried(made()))
    (found,) = findings(talk(*own, version="5.5.22"), "B09")
    assert found.severity is Severity.ERROR
    assert "no certificate yet" not in found.message


# -- the CRL -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("starts", "ends", "expected"),
    [
        (-1000 * DAY, 31 * DAY, False),
        (-1000 * DAY, 29 * DAY, True),
        (-1000 * DAY, -1, False),  # B10
        (-60 * DAY, 20 * DAY, False),
        (-75 * DAY, 5 * DAY, True),
    ],
)
def test_b11_looks_at_what_is_left(starts: float, ends: float, expected: bool) -> None:
    assert bool(findings(talk(ca(), crl(starts=starts, ends=ends)), "B11")) is expected


def test_b11_a_site_sets_its_days() -> None:
    ends_later = talk(ca(), crl(starts=-1000 * DAY, ends=50 * DAY))
    assert len(conversations.findings(ends_later, "B11", days=60)) == 1


@pytest.mark.parametrize(("starts", "expected"), [(290, False), (310, True)])
def test_b12_bears_five_minutes(starts: float, expected: bool) -> None:
    assert bool(findings(talk(ca(), crl(starts=starts)), "B12")) is expected


def test_b14_knows_the_bundle_that_others_downloaded() -> None:
    refreshed = talk(crl(body=forged_crl(), refresh=True), address="192.0.2.8", after=60)
    assert findings(refreshed, "B14") == []
    assert [finding.seqs for finding in findings(together(talk(ca()), refreshed), "B14")] == [(2,)]


def test_b14_a_ca_that_no_agent_downloaded_is_not_missed() -> None:
    from inspector.protocol import x509

    foreign = pki.make_crl(pki.make_ca("Unseen CA"))
    root, own = authorities()
    held = [x509.certificate(authority.certificate) for authority in (root, own)]
    assert not any(forged(parsed, held) for parsed in x509.read_crls(pki.pem(foreign)))
    assert [forged(parsed, held) for parsed in x509.read_crls(forged_crl())] == [True, False]


def test_b15_an_equal_list_is_no_older_and_a_purged_one_is_a_notice() -> None:
    def two(first: ExamplePart, second: ExamplePart) -> list[Finding]:
        return findings(together(talk(ca(), first), talk(ca(), second, address="192.0.2.8", after=60)), "B15")

    assert two(crl(number=4, revoked=[7]), crl(number=4, revoked=[7])) == []
    (found,) = two(crl(number=4, revoked=[7, 8]), crl(number=5, revoked=[8]))
    assert found.severity is Severity.NOTICE
    assert "has 1 fewer serial numbers" in found.message
    (found,) = two(crl(number=4, starts=-60), crl(number=4, starts=-600))
    assert found.severity is Severity.ERROR
    assert found.seqs == (2, 4)


def test_b16_size_and_time() -> None:
    large = altered(crl(), response={"body": b"x" * 5_000_001})
    assert [finding.message for finding in findings(talk(large), "B16")] == [
        "the CRL takes more than 5 MB on the network"
    ]
    assert findings(talk(slow(crl(), 9)), "B16") == []


# -- keys, digests, dates ------------------------------------------------------------------------------------


def test_b31_old_pairs_still_work_with_short_keys() -> None:
    short = pki.make_csr("node1.example", pki.new_key(1024))
    (old,) = findings(talk(csr(made=short), version="3.8.7"), "B31")
    (new,) = findings(talk(csr(made=short)), "B31")
    assert (old.severity, new.severity) == (Severity.WARNING, Severity.ERROR)


def test_b32_what_2_7_does_by_default_is_a_notice() -> None:
    severities = [
        findings(talk(csr(made=weakly_signed(digest)), version=version), "B32")[0].severity
        for digest, version in (("md5", "2.7.26"), ("md5", "7.23.0"), ("sha1", "3.8.7"), ("sha1", "7.23.0"))
    ]
    assert severities == [Severity.NOTICE, Severity.ERROR, Severity.NOTICE, Severity.WARNING]


def test_b33_and_b35_say_it_once_for_all_handshakes() -> None:
    late = {"peer_chain": carried(made(ends=-60))}
    tries = [refused("certificate_expired", by="proxy", leg=late) for _ in range(2)]
    (found,) = findings(talk(*tries), "B33")
    assert found.seqs == (1, 2)
    early = {"peer_chain": carried(made(starts=3600))}
    (found,) = findings(talk(*(refused("bad_certificate", by="proxy", leg=early) for _ in range(2))), "B35")
    assert found.seqs == (1, 2)


def test_b33_a_certificate_that_the_master_refuses_is_the_identity_used() -> None:
    leg = {"side": "master", "own_chain": carried(made(ends=-60)), "peer_chain": carried(made(MASTER))}
    assert ids(talk(refused("certificate_expired", by="master", leg=leg))) == {"B33"}


def test_b33_an_end_that_is_still_to_come_is_none() -> None:
    leg = {"peer_chain": carried(made(ends=60))}
    assert ids(talk(*with_leg(catalog(), report(), **leg))) == {"B34"}


@pytest.mark.parametrize(
    ("version", "days", "expected"),
    [("7.23.0", 89, True), ("7.23.0", 91, False), ("8.10.0", 31, False), ("8.1.0", 31, True)],
)
def test_b34_agents_that_renew_have_until_thirty_days(version: str, days: float, expected: bool) -> None:
    leg = {"peer_chain": carried(made(starts=-1000 * DAY, ends=days * DAY))}
    records = talk(*with_leg(catalog(), report(), **leg), version=version)
    assert bool(findings(records, "B34")) is expected


def test_b34_short_lived_certificates_are_renewed_often() -> None:
    leg = {"peer_chain": carried(made(starts=-30 * DAY, ends=60 * DAY))}
    assert findings(talk(*with_leg(catalog(), report(), **leg)), "B34") == []


@pytest.mark.parametrize(("lasts", "rules"), [(0.5 * DAY, {"B33"}), (1.9 * DAY, {"B34"}), (1000 * DAY, set())])
def test_b33_and_b34_look_at_the_ca_too(lasts: float, rules: set[str]) -> None:
    root, _ = authorities()
    assert ids(talk(bundle(_renewed(root, lasts)))) == rules


@pytest.mark.parametrize(
    ("status", "master", "severity", "words"),
    [
        (404, "8.10.0", Severity.NOTICE, "auto-renewal is off"),
        (403, "7.23.0", Severity.NOTICE, "it is older than 8"),
        (403, "8.10.0", Severity.WARNING, "refuses to renew (403): Not found"),
        (400, "8.10.0", Severity.WARNING, "did not receive the agent's certificate"),
    ],
)
def test_b36_by_status(status: int, master: str, severity: Severity, words: str) -> None:
    (found,) = findings(talk(renewal(status=status), version="8.10.0", master_version=master), "B36")
    assert found.severity is severity
    assert words in found.message


def test_b36_a_refused_renewal_leaves_the_old_end() -> None:
    leg = {"peer_chain": carried(made(starts=-1000 * DAY, ends=20 * DAY))}
    records = talk(*with_leg(renewal(status=404), catalog(), report(), **leg), version="8.10.0",
                   master_version="8.10.0")  # fmt: skip
    assert ids(records) == {"B34", "B36"}


def test_b38_alternative_names_without_its_own() -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    old = made()
    names = x509.SubjectAlternativeName([x509.DNSName("puppet")])
    builder = x509.CertificateBuilder().subject_name(old.subject).issuer_name(old.issuer).serial_number(5)
    builder = builder.public_key(old.public_key()).add_extension(names, critical=False)
    builder = builder.not_valid_before(old.not_valid_before_utc).not_valid_after(old.not_valid_after_utc)
    other = builder.sign(authorities()[1].key, hashes.SHA256())
    (found,) = findings(talk(ca(), crl(), csr(), not_issued(), issued(made=other)), "B38")
    assert found.severity is Severity.WARNING
    assert "DNS:puppet" in found.message


# -- TLS ---------------------------------------------------------------------------------------------------


def test_t01_and_t02_once_a_connection_and_for_the_master_too() -> None:
    master = Leg("m", "master", tls_version="TLSv1", cipher="AES128-SHA")
    (found,) = findings(talk(altered(catalog(), master=master), altered(report(), master=master)))
    assert (found.rule, found.severity, found.seqs) == ("T01", Severity.ERROR, (1,))
    assert found.message == "the master uses TLS 1.0"
    (found,) = findings(talk(*with_leg(catalog(), report(), cipher="RC4-SHA")), "T02")
    assert found.seqs == (1,)


@pytest.mark.parametrize(
    ("cipher", "severity"),
    [
        ("TLS_AES_128_GCM_SHA256", None),
        ("ECDHE-ECDSA-CHACHA20-POLY1305", None),
        ("ECDHE-RSA-AES128-SHA256", None),
        ("AES256-GCM-SHA384", None),
        ("ADH-AES256-SHA256", Severity.ERROR),
        ("NULL-SHA256", Severity.ERROR),
        ("TLS_RSA_WITH_3DES_EDE_CBC_SHA", Severity.ERROR),
        ("RC4-MD5", Severity.ERROR),
        ("DHE-RSA-AES256-SHA", Severity.WARNING),
    ],
)
def test_t02_by_cipher(cipher: str, severity: Severity | None) -> None:
    found = findings(talk(*with_leg(catalog(), report(), cipher=cipher, tls_version="TLSv1.2")), "T02")
    assert [finding.severity for finding in found] == ([severity] if severity else [])


def test_t02_an_old_tls_has_nothing_better() -> None:
    assert ids(talk(*with_leg(catalog(), report(), cipher="AES256-SHA", tls_version="TLSv1"))) == {"T01"}
    old = talk(*with_leg(catalog(), report(), cipher="AES256-SHA", tls_version="TLSv1.2"), version="3.8.7")
    assert [finding.severity for finding in findings(old, "T02")] == [Severity.NOTICE]


def test_t04_a_name_is_the_same_in_capitals() -> None:
    assert findings(talk(asked("node/NODE1.example", b"no", status=403, media="text/plain")), "T04") == []


def test_t05_a_revoked_certificate_that_the_master_refuses_without_a_reason() -> None:
    leg = {"side": "master", "own_chain": carried(made(serial=4711)), "peer_chain": carried(made(MASTER))}
    silent = refused("certificate_unknown", by="master", leg=leg)
    before = talk(ca(), crl(revoked=[4711]), address="192.0.2.8")
    (found,) = findings(together(before, talk(silent, after=60)), "T05")
    assert found.message == "the certificate of node1.example (serial 0x1267) is revoked: the master refuses it"
    assert findings(together(talk(ca(), crl(revoked=[4712]), address="192.0.2.8"), talk(silent, after=60)), "T05") == []


def test_t05_a_certificate_that_was_revoked_afterwards_was_good() -> None:
    leg = {"peer_chain": carried(made(serial=4711))}
    run = talk(*with_leg(catalog(), report(), **leg))
    assert findings(together(run, talk(ca(), crl(revoked=[4711]), address="192.0.2.8", after=60)), "T05") == []


def test_t06_an_expired_certificate_is_not_of_another_ca() -> None:
    words = "The certificate 'CN=node1.example' has expired, verify time is synchronized"
    leg = {"peer_chain": carried(made(ends=-60))}
    expired = refused("certificate_expired", by="proxy", leg=leg, culprits=(words,))
    assert ids(talk(expired)) == {"B33"}


def test_t06_without_a_certificate_to_name() -> None:
    (found,) = findings(talk(refused("unknown_ca", by="proxy")), "T06")
    assert found.message == "the proxy does not know the CA of the agent's certificate"
    shown = {"peer_chain": carried(made(foreign=True))}
    (found,) = findings(talk(refused("unknown_ca", by="proxy", leg=shown)), "T06")
    assert found.message == "the proxy does not know the CA 'CN=Foreign CA' of node1.example's certificate"


def test_t07_a_name_that_fits_is_not_the_reason() -> None:
    assert ids(talk(refused("bad_certificate"))) == {"T08"}
    assert ids(talk(refused("unknown_ca", leg={"sni": "puppet.wrong.example"}))) == {"T08"}
    assert ids(talk(refused("bad_certificate", leg={"sni": "puppet.wrong.example"}))) == {"T07"}
    assert ids(talk(refused(None, by=None, leg={"sni": None}))) == set()


def test_t05_of_the_master_does_not_enrol_the_node() -> None:
    """`ca clean` would revoke a good certificate."""
    shown = {"own_chain": carried(made(MASTER))}
    (run,) = runs_of(talk(refused("certificate_revoked", leg=shown)))
    fix = rule_of("T05").fix_for(run)
    assert not any("ca clean" in step.command or "ssl clean" in step.command for step in fix)
    assert "who revoked the certificate of the master" in fix[0].text
    culprits = ("Certificate 'CN=node1.example' is revoked",)
    (run,) = runs_of(talk(refused("certificate_revoked", by="proxy", certificate=True, culprits=culprits)))
    (first, clean, *_) = rule_of("T05").fix_for(run)
    assert first.text.startswith("find out who revoked it")
    assert (clean.only_if, clean.command) == (
        "the node should continue to work",
        f"puppetserver ca clean --certname {NAME}",
    )


def test_t07_of_the_proxy_is_healed_in_puppet_conf_where_its_name_for_the_master_is_from() -> None:
    """`run` uses the agent's own, and has no --master for it."""
    reason = (
        f"Server hostname '{MASTER}' did not match server certificate; expected one of DNS:alias, DNS:other.example"
    )
    shown = carried(made("other.example", alt_names=("alias", "other.example")))
    leg = {"side": "master", "peer_chain": shown, "own_chain": ()}
    (run,) = runs_of(talk(refused(None, by="proxy", reason=reason, leg=leg)))
    commands = [step.command for step in rule_of("T07").fix_for(run)]
    assert commands[:2] == ["getent hosts other.example", "puppet config set server other.example --section agent"]
    assert "--master other.example" not in str(rule_of("T07").fix_for(run))


def test_t24_judges_by_the_masters_certificate_where_nobody_knows_what_was_presented() -> None:
    """As in flows of mitmproxy."""
    (record,) = talk(altered(ca(), leg={"own_chain": ()}))
    assert isinstance(record, Exchange)
    seen = dataclasses.replace(record.agent, side="master", peer_chain=carried(made("other.example")))
    (found,) = findings([dataclasses.replace(record, master=seen)], "T24")
    assert found.message.endswith("its certificate is for other.example")


@pytest.mark.parametrize(
    ("lists", "alert", "rule"),
    [
        (crl(expired=True), "certificate_expired", "B10"),
        (crl(starts=3600), "bad_certificate", "B12"),
        (crl(complete=False), "unknown_ca", "B13"),
        (crl(body=forged_crl()), "decrypt_error", "B14"),
    ],
)
def test_t08_what_the_agents_own_crl_explains_is_no_fault_of_the_certificate(
    lists: ExamplePart, alert: str, rule: str
) -> None:
    found = {
        finding.rule
        for finding in all_findings(talk(ca(), lists, refused(alert)))
        if finding.severity is Severity.ERROR
    }
    assert rule in found
    assert "T08" not in found
    (alone,) = findings(talk(ca(), crl(), refused(alert)), "T08")
    assert alone.seqs == (3,)


def test_b13_the_cas_are_known_from_another_agents_download() -> None:
    """An agent that has its CA bundle downloads only the CRLs, and then refuses its own certificate."""
    enrolled: dict[str, Any] = {"certname": "node2.example", "address": "192.0.2.8", "after": 60}
    before = talk(ca(), crl(), csr(), issued(), catalog(), report())
    (found,) = findings(together(before, talk(crl(complete=False), **enrolled)), "B13")
    assert (found.severity, found.seqs) == (Severity.ERROR, (1, len(before) + 1))
    assert "'CN=Sample Root CA' is missing" in found.message
    assert findings(together(before, talk(crl(), **enrolled)), "B13") == []
    assert findings(together(talk(bundle(foreign_ca())), talk(crl(complete=False), **enrolled)), "B13") == []


def test_t08_a_certificate_that_expired_is_at_fault_whatever_the_crl() -> None:
    shown = {"own_chain": carried(made(MASTER, ends=-60))}
    (found,) = findings(talk(ca(), crl(expired=True), refused("certificate_expired", leg=shown)), "T08")
    assert found.message.startswith("the proxy's certificate, CN=puppet.example, expired on ")


def _of_authority(starts: float, ends: float) -> tuple[bytes, ...]:
    """The chain of a master whose CA is valid between these times, in seconds from now."""
    ca, now = authorities()[1], datetime.datetime.now(datetime.UTC)
    renewed = x509.CertificateBuilder(
        ca.certificate.issuer, ca.certificate.subject, ca.key.public_key(), 9,
        now + datetime.timedelta(seconds=starts), now + datetime.timedelta(seconds=ends),
        list(ca.certificate.extensions),
    ).sign(authorities()[0].key, hashes.SHA256())  # fmt: skip
    return *carried(made(MASTER)), *carried(renewed)


def _refused_master(chain: tuple[bytes, ...]) -> list[Record]:
    leg = {"side": "master", "peer_chain": chain, "own_chain": ()}
    return talk(refused(None, by="proxy", culprits=("has expired",), leg=leg))


def test_t08_names_whose_certificate_has_expired_and_offers_that_fix_only() -> None:
    cases = {
        "the master's": (_refused_master(carried(made(MASTER, ends=-60))), "--certname puppet.example", "puppet ssl"),
        "the CA's": (_refused_master(_of_authority(-2e9, -1e9)), "renew the CA's certificate", "puppetserver"),
        "the proxy's": (talk(refused("certificate_expired", leg={"own_chain": carried(made(MASTER, ends=-60))})),
                        "puppet-inspector provision", "puppet ssl"),
    }  # fmt: skip
    for whose, (records, offered, absent) in cases.items():
        (found,) = findings(records, "T08")
        (run,) = runs_of(records)
        fix = plain(rule_of("T08").fix_for(run))
        assert found.message.startswith(f"{whose} certificate, CN="), found.message
        assert " expired on " in found.message
        assert offered in fix
        assert absent not in fix
        assert fix.index("`date -u`") < fix.index(offered)
    # Where no certificate has expired, nothing is known of the master's.
    (run,) = runs_of(talk(refused("unknown_ca")))
    assert "puppet ssl verify" in plain(rule_of("T08").fix_for(run))


def test_t08_the_fix_is_the_proxys_where_the_proxy_refuses_the_master() -> None:
    leg = {"side": "master", "peer_chain": carried(made(MASTER, foreign=True)), "own_chain": ()}
    (run,) = runs_of(talk(refused(None, by="proxy", culprits=("unable to get local issuer certificate",), leg=leg)))
    fix = plain(rule_of("T08").fix_for(run))
    assert "puppet_master" in fix
    assert "on the node" not in fix.lower(), "nothing is wrong there"


def test_t08_a_crl_that_expired_since_it_was_handed_out() -> None:
    before = talk(ca(), crl(starts=-DAY, ends=7200), address="192.0.2.8")
    after = talk(refused("certificate_expired"), after=10_000)
    (found,) = findings(together(before, after), "T08")
    assert found.message.startswith(
        "the agent refuses every certificate: the last CRL issued by 'CN=Sample CA' expired on "
    )
    assert found.seqs == (2, 3)
    (other,) = findings(together(before, talk(refused("unknown_ca"), after=10_000)), "T08")
    assert "does not know the CA 'CN=Sample CA'" in other.message


def test_t09_a_success_ends_the_series() -> None:
    three = [refused("handshake_failure") for _ in range(3)]
    (found,) = findings(talk(*three), "T09")
    assert (found.severity, found.seqs) == (Severity.ERROR, (1, 2, 3))
    assert findings(talk(*three[:2], catalog(), report(), three[2]), "T09") == []
    # The download of the CA proves nothing: it is not verified.
    assert len(findings(talk(*three[:2], ca(), three[2]), "T09")) == 1
    assert findings(talk(*three[:2], refused("protocol_version")), "T09") == []
    (long,) = findings(talk(*(refused("x" * 3000) for _ in range(3))), "T09")
    assert len(long.message) < 1000
    assert findings(talk(*three[:2], wait(2 * DAY), three[2]), "T09") == []


def test_t09_tells_an_expired_certificate_from_an_expired_crl() -> None:
    def series(ends: float) -> list[ExamplePart]:
        own = {"side": "master", "own_chain": carried(made(ends=ends))}
        return [refused("certificate_expired", by="master", leg=own) for _ in range(3)]

    (valid,) = findings(talk(*series(3600)), "T09")
    assert "its certificate is valid: the CRL of who refuses it has expired" in valid.message
    (expired,) = findings(talk(*series(-60)), "T09")
    assert expired.message.endswith("certificate_expired, its certificate has expired")


def test_t09_who_leaves_without_an_alert_may_only_look() -> None:
    probes = [refused(None, by=None, reason="the agent left") for _ in range(3)]
    assert [finding.severity for finding in findings(talk(*probes), "T09")] == [Severity.NOTICE]
    silent = refused(None, by=None, leg={"side": "master", "own_chain": carried(made())})
    assert [finding.severity for finding in findings(talk(silent, silent, silent), "T09")] == [Severity.ERROR]


def test_t09_agents_are_distinguished() -> None:
    one = [refused("handshake_failure")]
    several = together(*(talk(*one, address=f"192.0.2.{n}", after=n) for n in range(5)))
    assert findings(several, "T09") == []


@pytest.mark.parametrize(
    ("seconds", "severity"),
    [(290, None), (-290, None), (310, Severity.WARNING), (-310, Severity.WARNING), (905, Severity.ERROR)],
)
def test_t10_only_what_is_certain_counts(seconds: float, severity: Severity | None) -> None:
    found = findings(talk(skewed(catalog(), seconds), skewed(report(), seconds)), "T10")
    assert [finding.severity for finding in found] == ([severity] if severity else [])
    assert all(("ahead" in finding.message) is (seconds > 0) for finding in found)


def test_t10_a_crl_of_the_future_is_none_where_the_answer_has_a_date_of_its_own() -> None:
    ahead = crl(starts=DAY)
    assert {"B12", "T10"} <= ids(talk(ca(), ahead))
    assert "T10" not in ids(talk(ca(), skewed(ahead, 0))), "the CA's clock was ahead when it signed, and is not now"


HARM = ("ca clean", "ssl clean", "-delete", "rm ", "new-crl")


@pytest.mark.parametrize(
    ("rule", "parts"),
    [
        ("B33", [ca(), crl(), csr(), not_issued(), skewed(issued(made=made(ends=-60)), -3600)]),
        ("B34", [skewed(altered(part, leg={"peer_chain": carried(made(starts=-1e8, ends=9 * DAY))}), -3600)
                 for part in (catalog(), report())]),
        ("B35", [ca(), crl(), csr(), not_issued(), skewed(issued(made=made(starts=3600)), 7200)]),
        ("B10", [ca(), skewed(crl(expired=True), -1e9)]),
        ("B12", [ca(), skewed(crl(starts=3600), 7200)]),
    ],
)  # fmt: skip
def test_a_wrong_clock_comes_before_what_it_makes_expire(rule: str, parts: list[ExamplePart]) -> None:
    (run,) = runs_of(talk(*parts))
    assert {rule, "T10"} <= {finding.rule for finding in run.findings}
    fix = plain(rule_of(rule).fix_for(run))
    assert "timedatectl" in fix
    assert not any(words in fix for words in HARM)
    (right,) = runs_of(talk(*(skewed(part, 0) for part in parts)))
    assert "timedatectl" not in plain(rule_of(rule).fix_for(right)) or rule in ("B12", "B35")


def _on_the_node(ahead: float | None) -> list[Record]:
    """A handshake of `run`'s own agent with a master whose certificate has expired by the node's clock."""
    leg = {"own_chain": carried(made(MASTER, ends=-60)), "tunnelled": True, "node": NAME}
    (record,) = talk(refused("certificate_expired", leg=leg))
    assert isinstance(record, Handshake)
    return [dataclasses.replace(record, master_ahead=ahead)]


def test_t10_by_a_clock_that_was_asked_for_explains_a_refused_certificate() -> None:
    for ahead, direction in ((-6 * 365 * DAY, "behind"), (6 * 365 * DAY, "ahead of")):
        (run,) = runs_of(_on_the_node(ahead))
        brief = conclusions.of_run(run)
        assert brief.verdict
        assert (brief.verdict.cause, brief.verdict.symptoms) == ("T10", ("T08",))
        assert f"the master's clock is 6 years {direction} the node's" in brief.verdict.message
        for rule in ("T08", "T10"):
            fix = plain(brief.fix_for(rule))
            assert "timedatectl set-ntp true" in fix
            assert not any(words in fix for words in HARM)


@pytest.mark.parametrize("ahead", [0.5, None])
def test_t08_with_the_right_clock_or_one_alone_deletes_under_a_condition(ahead: float | None) -> None:
    (run,) = runs_of(_on_the_node(ahead))
    fix = rule_of("T08").fix_for(run)
    assert fix[0].command == "date -u"
    assert all(step.only_if.startswith("the clocks are right") for step in fix[1:])
    assert any(step.destroys for step in fix)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("The CRL issued by 'CN=Puppet CA' is not yet valid, verify time is synchronized", ("T10", ())),
        ("the key of node1.example cannot be used: it has mode 0644", ("T10", ("T23",))),
    ],
)
def test_t10_explains_an_identity_that_the_proxy_did_not_use_by_its_own_clock(
    reason: str, expected: tuple[str, tuple[str, ...]]
) -> None:
    """A CA from version 8.4 on, whose clock is years ahead, signs a CRL of the future when it starts."""
    identity = Identity("keys", reason=reason)
    requests = (altered(plugins(), response={"status": 403}), catalog(status=403), report(status=403))
    parts = [altered(part, identity=identity) for part in requests]
    (run,) = runs_of(talk(*(skewed(part, 20 * 365 * DAY) for part in parts)))
    found = verdict(run)
    assert found
    assert found.cause
    assert (found.cause.rule, found.besides) == expected


def test_t10_a_report_from_the_future_bounds_the_agents_clock_from_one_side() -> None:
    (found,) = findings(talk(catalog(), report(time="2099-01-01T00:00:00+00:00")), "T10")
    assert found.message.startswith("the agent's clock is ")
    assert found.message.endswith(" years ahead of the proxy's")
    (found,) = findings(talk(skewed(catalog(), 9000), skewed(report(), 9000)), "T10")
    assert found.message == "the master's clock is 2 h 30 min ahead of the proxy's"
    assert findings(talk(catalog(), report(time="1999-01-01T00:00:00+00:00")), "T10") == []


def _anew(parts: Sequence[ExamplePart], *, pause: float = 1, **talking: Any) -> list[Record]:
    new = [altered(part, leg={"id": f"leg-{n}"}) for n, part in enumerate(parts)]
    return talk(*(part for exchange in new for part in (exchange, wait(pause))), **talking)


def test_t11_counts_needless_connections_only() -> None:
    run = [plugins(), catalog(), metadata("modules/demo/a"), metadata("modules/demo/b"), report()]
    (found,) = findings(_anew(run), "T11")
    assert found.seqs == (2, 3, 4, 5)
    assert findings(_anew(run, pause=4.5), "T11") == []
    assert findings(_anew(run, version="2.7.26"), "T11") == []
    busy = [plugins(), *(altered(catalog(), response={"status": 503}) for _ in range(4)), catalog(), report()]
    assert findings(_anew(busy), "T11") == []


def test_t12_a_master_that_closes_now_and_then_is_healthy() -> None:
    close = {"Connection": "close"}
    run = [plugins(), catalog(), metadata("modules/demo/a"), metadata("modules/demo/b"), report()]
    conversation = talk(*(altered(part, answers=close if n == 4 else None) for n, part in enumerate(run)))
    assert findings(conversation, "T12") == []
    assert len(findings(_anew([altered(part, answers=close) for part in run]), "T12")) == 1
    # HTTP/1.0 closes unless it says otherwise.
    old = [altered(part, response={"http_version": "HTTP/1.0"}) for part in run]
    assert len(findings(_anew(old), "T12")) == 1
    own = [altered(part, answers=close, headers=close) for part in run]
    assert ids(_anew(own)) == {"T11", "T13"}


def test_t14_only_a_short_silence_and_only_the_masters_end() -> None:
    def broken(pause: float, error: str = "the master closed the connection") -> list[Finding]:
        lost = unanswered(metadata("modules/demo/a"), error)
        return findings(talk(plugins(), catalog(), wait(pause), lost, report()), "T14")

    assert len(broken(3)) == 1
    assert broken(30) == []
    assert broken(3, "Client disconnected.") == []


LEFT = "the master closed the connection without an answer"


def closed(part: ExamplePart, seconds: float = 0.1, error: str = LEFT, **leg: Any) -> ExamplePart:
    """A request that the master closes the connection of, which was as given."""
    master = Leg("leg-of-the-master", "master", **{"connected": 1.0, "secured": 1.0, **leg})
    return altered(given_up(part, error, seconds), master=master)


def test_t28_says_what_was_not_answered_and_after_how_long() -> None:
    ended = closed(catalog(), 4)
    (run,) = runs_of(talk(plugins(), ended, closed(report(result="failed"))))
    (found,) = [finding for finding in run.findings if finding.rule == "T28"]
    assert found.message == (
        "no answer to catalog, report: the master closed the connection after 4 s; it had answered other requests of "
        "this run"
    )
    assert found.seqs == (2, 3)
    assert "killed" in plain(rule_of("T28").fix_for(run))
    assert "is revoked" not in plain(rule_of("T28").fix_for(run))


def test_t28_takes_it_for_a_refused_certificate_only_where_one_was_shown_and_nothing_took_long() -> None:
    def fix(seconds: float, *, certificate: bool = True) -> str:
        parts = (closed(plugins(), seconds), closed(catalog(), seconds))
        (run,) = runs_of(talk(*parts, certificate=certificate))
        assert "T28" in {finding.rule for finding in run.findings}
        return plain(rule_of("T28").fix_for(run))

    assert "is revoked" in fix(0.1)
    assert "compare its clock: `date -u`" in fix(0.1), "a certificate that is not valid yet is refused as well"
    assert "is revoked" not in fix(4)
    assert "is revoked" not in fix(0.1, certificate=False)


@pytest.mark.parametrize(
    ("part", "why"),
    [
        (closed(catalog(), connected=None, secured=None), "no connection"),
        (closed(catalog(), secured=None), "no TLS: T22"),
        (closed(catalog(), error="the proxy ended"), "T26"),
        (closed(catalog(), error="Client disconnected."), "S23"),
    ],
)
def test_t28_is_about_the_master_and_connections_that_were_made(part: ExamplePart, why: str) -> None:
    assert findings(talk(plugins(), part), "T28") == [], why


def test_t28_leaves_it_to_the_alert_where_there_is_one() -> None:
    leg = {"side": "master", "id": "leg-of-the-master", "own_chain": carried(made())}
    silent, alert = refused(None, by=None, leg=leg), refused("certificate_unknown", by="master", leg=leg)
    assert findings(talk(alert, closed(catalog())), "T28") == []
    assert findings(talk(silent, closed(catalog())), "T28") != []


def test_t28_is_a_warning_where_the_run_was_completed_nevertheless() -> None:
    (found,) = findings(talk(closed(plugins()), catalog(), report()), "T28")
    assert found.severity is Severity.WARNING
    (found,) = findings(talk(plugins(), closed(catalog()), report(cached_catalog_status="on_failure")), "T28")
    assert found.severity is Severity.ERROR


def test_t28_what_was_sent_again_and_answered_is_nothing() -> None:
    assert (
        findings(talk(plugins(), closed(metadata("modules/demo/a")), metadata("modules/demo/a"), report()), "T28") == []
    )
    assert findings(talk(plugins(), closed(metadata("modules/demo/a")), metadata("modules/demo/b"), report()), "T28")


def test_t15_what_is_none_of_puppets_is_a_notice() -> None:
    leg = {"secured": None, "tls_version": None, "peer_chain": ()}
    (record,) = talk(altered(unanswered(asked("/favicon.ico", run=False)), leg=leg))
    (found,) = [finding for finding in Analyzer().feed(record).findings if finding.rule == "T15"]
    assert found.severity is Severity.NOTICE


def test_t17_a_certificate_that_was_issued_or_renewed_in_the_capture_is_its_own() -> None:
    new = made(serial=77)
    again = with_leg(catalog(uuid="a-2"), report(uuid="a-2"), id="later", peer_chain=carried(new))
    before = [catalog(), report(), wait(1800)]
    (found,) = findings(talk(*before, *again), "T17")
    assert found.seqs == (2, 3)
    assert "with the same key" in found.message
    got = altered(renewal(), response={"body": pki.pem(new)})
    renewed = talk(*before[:2], wait(60), got, wait(1800), *again, version="8.10.0", master_version="8.10.0")
    assert findings(renewed, "T17") == []
    other = with_leg(catalog(uuid="a-2"), report(uuid="a-2"), id="later", peer_chain=carried(made(key="other")))
    assert "with another key" in findings(talk(*before, *other), "T17")[0].message
    assert findings(talk(*before, csr(key="other"), *other), "T17") == []


def test_nothing_of_what_hostile_bytes_say_is_believed() -> None:
    junk = {"peer_chain": (b"\x30\x03\x02\x01\x00",), "own_chain": (b"junk",)}
    records = talk(*with_leg(ca(), crl(), catalog(), report(), **junk), refused("unknown_ca", leg=junk),
                   refused("certificate_revoked", by="proxy", leg=junk))  # fmt: skip
    assert {"T05", "T08"} <= ids(records)


# -- the ledger ----------------------------------------------------------------------------------------------


def test_what_anybody_can_invent_is_bounded() -> None:
    ledger, run = Ledger(), Run("192.0.2.1")
    analyzer = Analyzer([])
    (one,) = talk(ca())
    assert isinstance(one, Exchange)
    for n in range(MASTERS + 5):
        leg = dataclasses.replace(one.agent, id=str(n), sni=f"m{n}.example")
        ledger.remember(run, analyzer.feed(dataclasses.replace(one, agent=leg)))
    assert len(ledger.bundles) == MASTERS
    assert "m0.example" not in ledger.bundles
    for n in range(NAMES + 5):
        leg = Leg(str(n), "agent", f"host-{n}")
        ledger.remember(run, Step(Handshake(leg, float(n), "left")))
    assert len(ledger.refusals) == NAMES


def test_lists_of_many_cas_are_bounded() -> None:
    ledger, run, analyzer = Ledger(), Run("192.0.2.1"), Analyzer([])
    authority = pki.make_ca("x")
    for n in range(ISSUERS + 3):
        issuer = dataclasses.replace(authority, certificate=_named(authority, f"CA {n}"))
        request = Request(method="GET", target="/puppet-ca/v1/certificate_revocation_list/ca", started=1.0)
        response = Response(status=200, body=pki.pem(pki.make_crl(issuer)), headers=(("Content-Type", "text/plain"),))
        ledger.remember(run, analyzer.feed(Exchange(Leg(str(n), "agent"), request, response)))
    assert len(ledger.crls) == ISSUERS


def _named(authority: pki.Authority, name: str) -> Any:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    old, subject = authority.certificate, x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).serial_number(5)
    builder = builder.public_key(authority.key.public_key())
    builder = builder.not_valid_before(old.not_valid_before_utc).not_valid_after(old.not_valid_after_utc)
    key = x509.SubjectKeyIdentifier.from_public_key(authority.key.public_key())
    return builder.add_extension(key, critical=False).sign(authority.key, hashes.SHA256())


def test_a_node_is_not_new_because_it_asks_for_itself() -> None:
    assert ids(talk(node(), plugins(), catalog(), report())) == set()


@pytest.mark.parametrize("used", [True, False])
def test_a_certificate_whose_key_nobody_shows_was_perhaps_discarded(*, used: bool) -> None:
    """A recording may begin between the first request for a signature and the certificate for another key."""
    signed = "already has a signed certificate"
    before = [ca(), crl(), csr(), issued(), catalog(), report()] if used else [issued(), wait(60)]
    found = {
        finding.rule
        for run in runs_of(talk(*before, ca(), crl(), csr(key="other", status=400, text=signed), issued()))
        for finding in run.findings
    }
    assert ("B22" in found, "B18" in found) == (used, True)
