"""What is learned of a capture before anything of it leaves."""

from __future__ import annotations

from inspector.formats.learning import Knowledge, Learner
from inspector.formats.pseudonyms import Pseudonyms
from inspector.formats.reissue import Reissuer
from inspector.model import Gap, Handshake, Leg
from inspector.privacy.harmless import Harmless
from inspector.privacy.known import KnownSecrets
from inspector.privacy.redact import SearchedBodies
from inspector.runs.examples import catalog, talk


def learned() -> Knowledge:
    names = Pseudonyms(b"salt")
    knowledge = Knowledge(
        names, Harmless(b"salt", names.known), KnownSecrets(), Reissuer(str, bytes, b"salt"), SearchedBodies()
    )
    learner = Learner(knowledge)
    records = [
        *talk(catalog(facts={"acme_rack": "x"}, resources=[{
            "type": "Acme::Vhost", "title": "a", "parameters": {"docroot": "hunter2-horse"},
            "sensitive_parameters": ["docroot"],
        }]), certname="web1.corp-name.com"),
        Handshake(Leg("h", "agent", sni="puppet.corp-name.com"), 1.0, ""),
        Gap(1.0, ""),
    ]  # fmt: skip
    for record in records:
        learner.names(record)
        learner.secrets(record)
    return knowledge


def test_names_identifiers_and_secrets_are_learned() -> None:
    knowledge = learned()
    assert knowledge.names.known("web1.corp-name.com")
    assert knowledge.names.known("puppet.corp-name.com")
    assert knowledge.names.known("ldap.corp-name.com"), "of the same site"
    assert not knowledge.names.known("corp-name.org")
    assert knowledge.harmless.text("Acme::Vhost acme_rack") == "Acme::Vhost acme_rack"
    assert knowledge.secrets.masked("a hunter2-horse b") == "a MASKED b"
