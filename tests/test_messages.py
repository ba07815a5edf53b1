"""Error messages as agents print them, and what they are found to be."""

from __future__ import annotations

import pytest

from inspector import messages, reference
from inspector.messages import MESSAGES
from inspector.rules import all_rules

PASTED = [
    ("Error: The certificate retrieved from the master does not match the agent's private key. Did you", "B23"),
    ("Error: The CSR for host 'web1' does not match the public key", "B20"),
    ("web1.example already has a requested certificate; ignoring certificate request", "B17"),
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


@pytest.mark.parametrize(("pasted", "rule"), PASTED, ids=[rule for _, rule in PASTED])
def test_what_an_agent_printed_is_found(pasted: str, rule: str) -> None:
    known = messages.find(pasted)
    assert known is not None
    assert rule in known.rules


@pytest.mark.parametrize("known", MESSAGES, ids=[each.texts[0][:40] for each in MESSAGES])
def test_each_message_finds_itself_and_names_rules_that_exist(known: messages.Known) -> None:
    for text in known.texts:
        assert messages.find(f"Error: {text.replace('X', 'web1.example')}") is known
    assert set(known.rules) <= {rule.id for rule in all_rules()}
    told = reference.explain(f"Error: {known.texts[0]}")
    assert told["meaning"] == known.cause
    assert "{" not in told["remedy"]
    assert all(told.values())


@pytest.mark.parametrize("pasted", ["", "hello there", "the server is in the cellar", "error error error"])
def test_what_is_none_of_them_is_not_found(pasted: str) -> None:
    assert messages.find(pasted) is None
