"""Error messages as agents print them, and what they are found to be."""

from __future__ import annotations

import re

import pytest

from inspector.analysis import known_errors
from inspector.analysis.known_errors import MESSAGES
from inspector.explain import reference
from inspector.rules import all_rules

PASTED = [
    ("Error: The certificate retrieved from the master does not match the agent's private key. Did you", "B23"),
    ("Error: The CSR for host 'web1' does not match the public key", "B20"),
    ("Error: The certificate for 'CN=web1.example' does not match its private key", "B18"),
    ("Error: The CSR retrieved from the master does not match the agent's public key.", "B40"),
    ("Notice: Certificate for web1.example has not been signed yet", "B39"),
    ("web1.example already has a requested certificate; ignoring certificate request", "B17"),
    ("web1.example already has a signed certificate; ignoring certificate request", "B18"),
    ("web1.example already has a revoked certificate; ignoring certificate request", "B19"),
    ("SSL_connect returned=1 errno=0 state=error: sslv3 alert certificate unknown", "B10"),
    ("SSL_connect returned=1 errno=0 state=error: ssl/tls alert certificate unknown (SSL alert number 46)", "B10"),
    ("SSL_connect returned=1 errno=0 state=error: sslv3 alert certificate revoked", "T05"),
    ("Error: Could not retrieve catalog from remote server: execution expired", "S08"),
    ("certificate verify failed [self-signed certificate in certificate chain for CN=root]", "T08"),
    ("Failed to generate additional resources using 'eval_generate': Certificate 'CN=a' is revoked", "T05"),
    ("Error: certificate verify failed [ok for /CN=puppet.example]", "T07"),
    ("Error: certificate verify failed [unable to get local issuer certificate for CN=Puppet CA: old.example]", "T08"),
    ("SSL_connect peeraddr=192.0.2.1 certificate verify failed (unable to get local issuer certificate)", "T08"),
    ("certificate verify failed [self signed certificate in certificate chain for CN=root]", "B04"),
    ("Server hostname 'puppet' did not match server certificate; expected one of a.example, DNS:a.example", "T07"),
    ("The certificate 'CN=a.example' has expired, verify time is synchronized", "B33"),
    ("The CRL issued by 'CN=Puppet CA' has expired, verify time is synchronized", "B10"),
    ("The CRL issued by 'CN=Puppet CA' is not yet valid, verify time is synchronized", "B12"),
    ("The CRL issued by 'CN=Puppet Root CA' is missing", "B13"),
    ("Certificate 'CN=a.example' is revoked", "T05"),
    ("CSR 'a' contains subject alternative names (DNS:a, DNS:b), which are disallowed. Use `puppet cert ...`", "B27"),
    ("CSR 'a' contains an authorization extension (1.3.6.1.4.1.34380.1.3.1), which is disallowed.", "B28"),
    ("Error 403 on SERVER: Forbidden request: /puppet/v3/catalog/a.example. (method :post).", "T04"),
    ("Request to https://p:8140/puppet/v3/catalog/a?environment=x timed out read operation after 600.2 seconds", "S08"),
    ("Could not retrieve catalog from remote server: Error 500 on SERVER: Server Error: Evaluation Error", "S01"),
    ("Could not find node statement with name 'default' or 'a.example' on node a.example", "S01"),
    ("Catalog environment didn't stabilize after 5 fetches, aborting run", "R06"),
    ("Sleeping for 30 seconds before retrying the request", "S05"),
    ("Error: Could not select a functional puppet server from server_list: 'a:8140,b:8140'", "S21"),
    ("The environment must be purely alphanumeric, not 'puppet-ca'", "S03"),
]  # fmt: skip


@pytest.mark.parametrize(("pasted", "rule"), PASTED, ids=[f"{rule} {pasted[:50]}" for pasted, rule in PASTED])
def test_what_an_agent_printed_is_found(pasted: str, rule: str) -> None:
    found = known_errors.find(pasted)
    assert found is not None
    assert rule in found.known.rules


@pytest.mark.parametrize("known", MESSAGES, ids=[message.texts[0][:40] for message in MESSAGES])
def test_each_message_finds_itself_and_names_rules_that_exist(known: known_errors.KnownError) -> None:
    for text in known.texts:
        printed = re.sub("NAME|HOST", "web1.example", text).replace("X", "other.example")
        found = known_errors.find(f"Error: {printed}")
        assert found is not None
        assert found.known is known
        assert found.name == ("web1.example" if "NAME" in text else None)
        assert found.host == ("web1.example" if "HOST" in text else None)
        output = reference.explain(f"Error: {printed}")
        assert output["message"] == f"Error: {printed}"
        assert output["meaning"] == known.cause
        assert not re.search(r"\{\w*\}", output["remedy"])
        assert all(output.values())
    assert set(known.rules) <= {rule.id for rule in all_rules()}


@pytest.mark.parametrize(
    "pasted",
    [
        "",
        "hello there",
        "the server is in the cellar",
        "error error error",
        # What many messages begin with says nothing of the reason.
        "Error: Could not send report: Error 415 on SERVER: Unsupported Media Type",
        "Error: Could not retrieve catalog from remote server: a reason of its own",
        "Error: Could not request certificate: a reason of its own",
        "certificate verify failed [a new reason for CN=a.example]",
    ],
)
def test_what_is_none_of_them_is_not_found(pasted: str) -> None:
    assert known_errors.find(pasted) is None


@pytest.mark.parametrize(
    "pasted",
    [
        "Could not request certificate: getaddrinfo: Name or service not known",
        "Failed to open TCP connection to p.example:8140 (getaddrinfo: Name or service not known)",
        "getaddrinfo: Temporary failure in name resolution",
    ],
)
def test_a_name_that_is_not_resolved_is_no_closed_port(pasted: str) -> None:
    output = reference.explain(pasted)
    assert "DNS" in output["meaning"]
    assert "getent hosts" in output["remedy"]


@pytest.mark.parametrize(
    ("pasted", "name", "host"),
    [
        ("Error: Certificate 'CN=db7.example' is revoked", "db7.example", None),
        ("certificate verify failed [certificate revoked for /CN=db7.example]", "db7.example", None),
        ("you might still need to sign this agent's certificate (db7.example).", "db7.example", None),
        ("Request to https://p.example:8140/puppet timed out connect operation after 120.2 seconds", None, "p.example"),
        ("Server hostname 'p.example' did not match server certificate; expected one of a", None, "p.example"),
        ("The certificate 'CN=Puppet CA: p.example' has expired, verify time is synchronized", None, None),
    ],
)  # fmt: skip
def test_names_are_taken_from_what_was_pasted(pasted: str, name: str | None, host: str | None) -> None:
    found = known_errors.find(pasted)
    assert found is not None
    assert (found.name, found.host) == (name, host)


def test_the_pasted_name_gets_into_the_commands_if_it_is_plain() -> None:
    output = reference.explain("db7 already has a signed certificate; ignoring certificate request")
    assert "`puppetserver ca clean --certname db7`" in output["remedy"]
    output = reference.explain("$(reboot) already has a signed certificate; ignoring certificate request")
    assert "`puppetserver ca clean --certname <certname>`" in output["remedy"]
    assert "reboot" not in output["remedy"]
    output = reference.explain("Failed to open TCP connection to p.example:8140 (Connection refused - connect(2) for")
    assert output["remedy"].startswith("On p.example run `ss ")


def test_no_control_character_of_what_was_pasted_is_printed() -> None:
    output = reference.explain("\x1b[31mdb7 already has a signed certificate; ignoring certificate request")
    assert "\x1b" not in output["message"]


def test_commands_are_those_of_the_agents_that_print_it() -> None:
    old = reference.explain("The certificate retrieved from the master does not match the agent's private key")[
        "remedy"
    ]
    assert "-delete; puppet agent -t`" in old
    assert "puppet ssl" not in old
    new = reference.explain("The certificate for 'CN=a' does not match its private key")["remedy"]
    assert "puppet ssl clean" in new
    assert "puppet cert" not in new


def test_an_expired_crl_is_not_made_anew_by_a_revocation() -> None:
    for known in known_errors.MESSAGES:
        assert "revoke --certname" not in reference.explain(known.texts[0])["remedy"]
    output = reference.explain("The CRL issued by 'CN=Puppet CA' has expired, verify time is synchronized")["remedy"]
    assert "puppet-inspector fix new-crl --cadir" in output


def test_who_only_has_an_old_ca_keeps_its_key() -> None:
    for text in ("unable to get local issuer certificate", "self signed certificate in certificate chain for CN=a"):
        output = reference.explain(f"certificate verify failed [{text}]")["remedy"]
        assert output.index("localcacert") < output.index("If the node's own certificate") < output.index("--localca")
