"""The verification probe: which connection is probed, what it is shown, what is concluded from what follows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from inspector.analysis.analyzer import Analyzer
from inspector.errors import InspectorError
from inspector.host import pki
from inspector.lab.ca import LabCA
from inspector.model import PROBE, Handshake, Leg, Severity
from inspector.protocol import x509
from inspector.proxy import options, tls
from inspector.proxy.connection_state import AgentConnection
from inspector.proxy.identity import Credentials, NoIdentity
from inspector.proxy.probe import Probe, untrusted
from inspector.runs.examples import altered, ca, catalog, crl, csr, issued, not_issued, refused, talk

if TYPE_CHECKING:
    from cryptography import x509 as cx509

    from inspector.analysis.analyzer import Step
    from inspector.model import Record

NAME, HERE, ELSEWHERE = "web1.example", "192.0.2.7", "192.0.2.8"
NODE = f"/puppet/v3/node/{NAME}?environment=production"


@pytest.fixture(scope="module")
def authority() -> LabCA:
    return LabCA("master.example")


@pytest.fixture(scope="module")
def shown(authority: LabCA) -> Credentials:
    """What agents are shown when nobody is probed."""
    key = pki.new_key()
    leaf = pki.sign(authority.authority, key.public_key(), "proxy.example", ["puppet", "puppet.example"])
    return Credentials((leaf, authority.authority.certificate), key)


class RecordedProbe(Probe):
    """A probe that stores its lines."""

    def __init__(self, certname: str = NAME) -> None:
        self.lines: list[str] = []
        super().__init__(certname, self.lines.append)


def handshake(leg: str, alert: str | None, by: Any = "agent") -> Handshake:
    return Handshake(Leg(leg, "agent", HERE), 1.0, "it left", alert, by)


def test_the_certificate_is_the_same_but_for_who_signed_it(authority: LabCA, shown: Credentials) -> None:
    probe = untrusted(shown)
    (leaf,) = probe.chain
    assert probe.key is shown.key  # so that both ends choose the ciphers they always choose
    assert leaf.public_key() == shown.chain[0].public_key()
    parsed, real = x509.certificate(leaf), x509.certificate(shown.chain[0])
    assert (parsed.subject, parsed.alt_names) == (real.subject, real.alt_names)
    assert parsed.issuer == f"CN={PROBE}"
    ders = [x509.certificate(ca.certificate).der for ca in (authority.authority, authority.root)]
    assert x509.verify(shown.ders, ders, [], parsed.not_before + 90_000, "none") == []
    problems = x509.verify(probe.ders, ders, [], parsed.not_before + 90_000, "none")
    assert "unable to get local issuer certificate" in str(problems[0])


def test_a_certificate_without_alt_names(shown: Credentials) -> None:
    bare = pki.make_ca("proxy.example")
    (leaf,) = untrusted(Credentials((bare.certificate,), bare.key)).chain
    assert x509.certificate(leaf).common_name == "proxy.example"


def test_the_next_connection_from_its_address_is_probed_once(shown: Credentials) -> None:
    probe = RecordedProbe()
    assert probe.certificate_for("1", HERE, shown) is None  # nobody is known yet
    probe.on_request("1", HERE, NAME, "GET", NODE)
    assert probe.certificate_for("2", ELSEWHERE, shown) is None
    probed = probe.certificate_for("3", HERE, shown)
    assert probed
    assert Leg("3", "agent", own_chain=probed.ders).probed
    assert probe.certificate_for("4", HERE, shown) is None
    probe.on_request("4", HERE, NAME, "GET", NODE)
    assert probe.certificate_for("5", HERE, shown) is None
    assert probe.lines == []


@pytest.mark.parametrize(
    ("certname", "method", "target", "known"),
    [
        ("", "PUT", f"/puppet-ca/v1/certificate_request/{NAME}?environment=production", True),
        ("", "GET", f"/puppet-ca/v1/certificate/{NAME}", True),
        ("", "PUT", f"/production/certificate_request/{NAME}", True),
        ("", "GET", "/puppet-ca/v1/certificate/ca", False),
        ("", "GET", f"/puppet-ca/v1/certificate/not-{NAME}", False),
        ("", "GET", NODE, False),  # anybody can ask for that
        ("web2.example", "GET", NODE, False),
        ("web2.example", "GET", f"/puppet-ca/v1/certificate/{NAME}", False),
        (NAME, "GET", "/puppet/v3/file_metadatas/plugins?environment=production", True),
        (NAME, "GET", "/anything", True),
    ],
)
def test_who_names_itself(certname: str, method: str, target: str, known: bool, shown: Credentials) -> None:
    probe = RecordedProbe()
    probe.on_request("1", HERE, certname, method, target)
    assert (probe.certificate_for("2", HERE, shown) is not None) == known


def test_no_agent_is_probed_by_default(shown: Credentials) -> None:
    probe = RecordedProbe("")
    probe.on_request("1", HERE, "", "GET", "/puppet-ca/v1/certificate/ca")
    assert probe.certificate_for("2", HERE, shown) is None
    assert probe.certificate_for("3", "", shown) is None
    probe.on_handshake_failure(handshake("2", "unknown_ca"))
    probe.on_close("2")
    probe.on_close()
    assert probe.lines == []


@pytest.fixture
def probed(shown: Credentials) -> RecordedProbe:
    """A probe whose connection is the one named ``2``."""
    probe = RecordedProbe()
    probe.on_request("1", HERE, NAME, "GET", NODE)
    assert probe.certificate_for("2", HERE, shown)
    return probe


def test_it_refused(probed: RecordedProbe) -> None:
    probed.on_handshake_failure(handshake("1", "bad_certificate"))
    assert probed.lines == []
    probed.on_handshake_failure(handshake("2", "unknown_ca"))
    probed.on_close("2")
    probed.on_close()
    (line,) = probed.lines
    assert line == (
        f"-- probe: {NAME} ({HERE}) refused the certificate it must not trust (alert unknown_ca): "
        "it verifies its master"
    )


@pytest.mark.parametrize(
    ("alert", "by"),
    [(None, None), ("protocol_version", "agent"), ("unknown_ca", "proxy"), ("handshake_failure", "agent")],
)
def test_a_handshake_that_fails_otherwise_proves_nothing(alert: str | None, by: Any, probed: RecordedProbe) -> None:
    probed.on_handshake_failure(handshake("2", alert, by))
    assert probed.lines == [f"-- probe: {NAME} ({HERE}) no result: the handshake failed for another reason: it left"]


def test_it_went_on(probed: RecordedProbe) -> None:
    probed.on_request("1", HERE, NAME, "GET", NODE)  # over the connection that was not probed
    assert probed.lines == []
    probed.on_request("2", HERE, NAME, "GET", f"{NODE}\x1b[31m")
    probed.on_request("2", HERE, NAME, "POST", f"/puppet/v3/catalog/{NAME}")
    probed.on_close("2")
    (line,) = probed.lines
    assert line == (
        f"-- probe: {NAME} ({HERE}) WENT ON with GET /puppet/v3/node/{NAME} although it must not trust the presented "
        "certificate: "
        "it does not verify its master"
    )


def test_what_is_hostile_never_reaches_the_terminal(probed: RecordedProbe) -> None:
    probed.on_request("2", HERE, "web2\x1b.example", "GET", "/\x1b[31m" + 1000 * "x")
    (line,) = probed.lines
    assert "\x1b" not in line
    assert len(line) < 500


@pytest.mark.parametrize("certname", ["web2.example", ""])
def test_another_agent_at_the_same_address_is_called_by_its_name(certname: str, probed: RecordedProbe) -> None:
    probed.on_request("2", HERE, certname, "GET", "/puppet-ca/v1/certificate/web2.example")
    (line,) = probed.lines
    assert line.startswith(f"-- probe: web2.example ({HERE}) WENT ON with GET")
    assert line.endswith(f": it (not {NAME}, which has the same address) does not verify its master")


def test_the_download_of_the_ca_proves_nothing(probed: RecordedProbe) -> None:
    probed.on_request("2", HERE, "", "GET", "/puppet-ca/v1/certificate/ca")
    assert probed.lines == []
    probed.on_close("2")
    (line,) = probed.lines
    assert "no result: it accepted the certificate, but requested nothing that needs trust" in line


def test_an_agent_that_did_not_come_again_was_not_probed() -> None:
    probe = RecordedProbe()
    probe.on_close("7")
    assert probe.lines == []
    probe.on_close()
    assert probe.lines == [f"-- probe: {NAME} was not probed: it opened no connection after its address was known"]


@pytest.mark.parametrize("text", ["web1.example web2.example", "web1.example,web2.example", "*.example", "WEB1"])
def test_one_agent_is_named(text: str) -> None:
    with pytest.raises(InspectorError, match="which is not a certname"):
        options._certname(text)
    assert options._certname(NAME) == NAME


# -- what is lent, and what is thought of it ----------------------------------------------------------


class Lender(NoIdentity):
    """A source that tells the master who the agent is."""

    mode = "headers"

    def headers(self, agent: cx509.Certificate) -> tuple[tuple[str, str], ...]:
        return (("X-Client-Verify", "SUCCESS"),)


@pytest.mark.parametrize("probed", [False, True])
def test_no_identity_is_used_over_the_probed_connection(probed: bool, authority: LabCA, shown: Credentials) -> None:
    agent = pki.sign(authority.authority, pki.new_key().public_key(), NAME)
    end = AgentConnection(tls.TlsState(chain={0: x509.certificate(agent).der}), shown, probed=probed)
    end.choose_identity(Lender())
    assert end.certname == NAME
    assert end.identity
    assert end.credentials is None
    if probed:
        assert (end.headers, end.identity.certname) == ((), None)
        assert end.identity.reason == "it was presented with the certificate of the verification probe"
    else:
        assert (end.headers, end.identity.certname) == ((("X-Client-Verify", "SUCCESS"),), NAME)


def probing(shown: Credentials) -> dict[str, Any]:
    """Fields of a leg that was probed."""
    return {"own_chain": untrusted(shown).ders}


def understood(records: list[Record]) -> tuple[Analyzer, list[Step]]:
    analyzer = Analyzer()
    steps = [analyzer.feed(record) for record in records]
    analyzer.finish()
    assert not any(step.trouble for step in steps)
    return analyzer, steps


def test_a_leg_knows_that_it_was_probed(shown: Credentials) -> None:
    assert Leg("1", "agent", **probing(shown)).probed
    assert not Leg("1", "agent", own_chain=shown.ders).probed
    assert not Leg("1", "agent").probed
    assert not Leg("1", "master", **probing(shown)).probed


@pytest.mark.parametrize("alert", ["unknown_ca", "bad_certificate"])
def test_a_refused_probe_is_no_fault(alert: str, shown: Credentials) -> None:
    refusal = refused(alert, leg=probing(shown))
    analyzer, steps = understood(talk(ca(), crl(), csr(), not_issued(), refusal, refusal, refusal, csr(), issued()))
    assert [finding for step in steps if isinstance(step.record, Handshake) for finding in step.findings] == []
    (run,) = analyzer.runs
    assert run.outcome != "refused"
    assert not {"T06", "T07", "T08", "T09"} & {finding.rule for finding in run.findings}


@pytest.mark.parametrize("version", ["6.4.0", "7.23.0", "8.10.0"])
@pytest.mark.parametrize("downloaded", [True, False])
def test_who_went_on_is_reported_by_b03(version: str, downloaded: bool, shown: Credentials) -> None:
    went_on = altered(catalog(), leg=probing(shown))
    before = [ca(), crl(), csr(), issued()] if downloaded else []
    analyzer, _ = understood(talk(*before, went_on, version=version))
    (run,) = analyzer.runs
    (found,) = [finding for finding in run.findings if finding.rule == "B03"]
    assert found.severity is Severity.ERROR


def test_an_agent_up_to_6_3_verifies_when_it_has_its_certificate(shown: Credentials) -> None:
    went_on = altered(catalog(), leg=probing(shown))
    analyzer, _ = understood(talk(catalog(), went_on, version="5.5.22"))
    assert [finding.severity for run in analyzer.runs for finding in run.findings if finding.rule == "B03"] == [
        Severity.ERROR
    ]
