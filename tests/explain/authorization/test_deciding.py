"""Which client a recorded request has towards the master."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from inspector.explain.authorization import deciding
from inspector.explain.authorization.decision import Verdict
from inspector.host.auth_conf import puppetserver, ruby
from inspector.model import Exchange, Identity, Leg
from tests.support import auth_confs
from tests.support.conversations import Agent, certificate

CONF = puppetserver.read(Path("auth.conf"), auth_confs.USUAL)
BY_HEADERS = replace(CONF, headers=True)


def exchange(*, own: bool = True) -> Exchange:
    (record,) = Agent().ask("GET", "/puppet/v3/catalog/a.example", own=own).records
    assert isinstance(record, Exchange)
    return record


@pytest.mark.parametrize(
    ("identity", "conf", "name"),
    [
        (None, CONF, "a.example"),
        (Identity("keys", "a.example"), CONF, "a.example"),
        (Identity("keys", None, "no key"), CONF, None),
        (Identity("none"), CONF, None),
        (Identity("headers", "a.example"), CONF, None),
        (Identity("headers", "a.example"), BY_HEADERS, "a.example"),
    ],
)
def test_the_client_is_the_one_that_the_master_sees(identity: Identity | None, conf: object, name: str | None) -> None:
    assert conf in (CONF, BY_HEADERS)
    asked = deciding.question(replace(exchange(), identity=identity), BY_HEADERS if conf is BY_HEADERS else CONF)
    assert (asked.client.name, asked.target) == (name, "/puppet/v3/catalog/a.example")


def test_an_identity_may_have_a_certificate_of_its_own() -> None:
    master = Leg("m", "master", own_chain=(certificate("minted.example", "m"),))
    record = replace(exchange(), identity=Identity("mint", "minted.example"), master=master)
    assert deciding.question(record, CONF).client.name == "minted.example"


def test_a_request_without_a_certificate() -> None:
    assert deciding.question(exchange(own=False), CONF).client.name is None


def test_each_kind_of_master_decides_in_its_way() -> None:
    old = ruby.read(Path("auth.conf"), "path /zz\n")
    asked = deciding.question(exchange(), CONF)
    assert deciding.decide(CONF, asked).rule
    assert deciding.decide(CONF, asked).verdict is Verdict.ALLOWED
    found = deciding.decide(old, asked)
    assert found.rule is not None
    assert found.rule.name == "path ~ ^/puppet/v3/catalog/([^/]+)$"
