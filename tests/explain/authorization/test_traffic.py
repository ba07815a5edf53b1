"""Recorded requests in groups."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inspector.explain.authorization.decision import ANONYMOUS, Question, Verdict
from inspector.explain.authorization.traffic import OTHER, Traffic, decide, question_of
from inspector.host.auth_conf import puppetserver, ruby
from inspector.model import Exchange, Identity, Leg
from tests.support import auth_confs
from tests.support.conversations import Agent, certificate, together

if TYPE_CHECKING:
    from inspector.host.auth_conf.rules import AuthConf

USUAL = puppetserver.read(Path("auth.conf"), auth_confs.USUAL)
STRICT = puppetserver.read(Path("new.conf"), auth_confs.USUAL.replace('"$1"', '["b.example"]', 1))


def asked(certname: str, path: str, *, status: int = 200, method: str = "GET") -> Agent:
    return Agent(certname).ask(method, f"/puppet/v3/{path}?environment=production", status=status, own=True)


def traffic(*agents: Agent, new: AuthConf | None = None, conf: AuthConf = USUAL) -> Traffic:
    made = Traffic(conf, new)
    for record in together(*agents):
        assert isinstance(record, Exchange)
        made.add(record)
    return made


def test_requests_are_grouped_by_rule_and_endpoint() -> None:
    made = traffic(
        asked("a.example", "catalog/a.example"),
        asked("b.example", "catalog/b.example", method="POST"),
        asked("b.example", "file_content/modules/x/y"),
        asked("a.example", "environments", status=403),
        asked("a.example", "nothing/of/puppet", status=403),
    )
    assert [
        (group.endpoint, group.decision.verdict, group.requests, [*group.nodes], [*group.methods])
        for group in made.groups
    ] == [
        ("environments", "denied", 1, ["a.example"], ["GET"]),
        (OTHER, "denied", 1, ["a.example"], ["GET"]),
        ("file_content", "allowed", 1, ["b.example"], ["GET"]),
        ("catalog", "allowed", 2, ["a.example", "b.example"], ["GET", "POST"]),
    ]
    assert made.counts == {Verdict.ALLOWED: 3, Verdict.DENIED: 2}
    assert made.requests == 5
    assert not made.quiet
    assert [group.contradicted for group in made.groups] == [[], [], [], []]


def test_nothing_denied_is_quiet() -> None:
    assert traffic(asked("a.example", "catalog/a.example")).quiet
    assert traffic().quiet


def test_what_was_answered_otherwise_is_noted() -> None:
    made = traffic(
        asked("a.example", "catalog/a.example", status=403),
        asked("a.example", "catalog/b.example"),
        asked("a.example", "environments", status=404),
        asked("a.example", "static_file_content/x?code_id=1", status=403),
    )
    assert {group.decision.verdict: group.contradicted for group in made.groups if group.contradicted} == {
        Verdict.ALLOWED: [1],
        Verdict.DENIED: [2],
    }


def test_only_what_changes_is_kept() -> None:
    made = traffic(
        asked("a.example", "catalog/a.example"),
        asked("b.example", "catalog/b.example"),
        asked("a.example", "file_content/modules/x/y"),
        asked("b.example", "catalog/a.example", status=403),
        new=STRICT,
    )
    assert [
        (group.decision.verdict, group.then and group.then.verdict, group.records, [*group.nodes])
        for group in made.groups
    ] == [("allowed", "denied", [1], ["a.example"]), ("denied", "allowed", [4], ["b.example"])]
    assert not made.quiet
    assert traffic(asked("a.example", "catalog/a.example"), new=USUAL).quiet


def test_what_is_not_decided_may_change() -> None:
    unclear = puppetserver.read(
        Path("new.conf"), auth_confs.USUAL.replace("^/puppet/v3/catalog", "^(?=/)/puppet/v3/catalog")
    )
    made = traffic(asked("a.example", "catalog/a.example"), conf=unclear, new=unclear)
    assert [group.decision.verdict for group in made.groups] == [Verdict.UNDECIDED]


def test_a_client_without_a_certificate_is_known_by_its_address() -> None:
    made = traffic(Agent().ask("GET", "/puppet-ca/v1/certificate/ca"))
    assert [*made.groups[0].nodes] == ["192.0.2.1 without a certificate"]


def test_a_single_request() -> None:
    made = Traffic(USUAL)
    made.ask(Question("GET", "/puppet/v3/catalog/a", ANONYMOUS))
    (group,) = made.groups
    assert (group.requests, group.records, [*group.nodes]) == (1, [], ["a client without a certificate"])


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
    asked = question_of(replace(exchange(), identity=identity), BY_HEADERS if conf is BY_HEADERS else CONF)
    assert (asked.client.name, asked.target) == (name, "/puppet/v3/catalog/a.example")


def test_an_identity_may_have_a_certificate_of_its_own() -> None:
    master = Leg("m", "master", own_chain=(certificate("minted.example", "m"),))
    record = replace(exchange(), identity=Identity("mint", "minted.example"), master=master)
    assert question_of(record, CONF).client.name == "minted.example"


def test_a_request_without_a_certificate() -> None:
    assert question_of(exchange(own=False), CONF).client.name is None


def test_each_kind_of_master_decides_in_its_way() -> None:
    old = ruby.read(Path("auth.conf"), "path /zz\n")
    asked = question_of(exchange(), CONF)
    assert decide(CONF, asked).rule
    assert decide(CONF, asked).verdict is Verdict.ALLOWED
    found = decide(old, asked)
    assert found.rule is not None
    assert found.rule.name == "path ~ ^/puppet/v3/catalog/([^/]+)$"
