"""Decisions in words."""

from __future__ import annotations

from pathlib import Path

from inspector.explain.authorization import decision_text
from inspector.explain.authorization.decision import Decision, Verdict
from inspector.explain.authorization.traffic import Traffic
from inspector.host.auth_conf import puppetserver, ruby
from inspector.host.auth_conf.rules import AuthConf, Rule
from inspector.model import Exchange
from tests.support import auth_confs
from tests.support.conversations import Agent, together
from tests.support.json_output import builtins

USUAL = puppetserver.read(Path("/etc/auth.conf"), auth_confs.USUAL)
STRICT = puppetserver.read(Path("/tmp/new.conf"), auth_confs.USUAL.replace('"$1"', '["b.example"]', 1))  # noqa: S108


def traffic(new: AuthConf | None = None) -> Traffic:
    made = Traffic(USUAL, new)
    a = Agent().ask("GET", "/puppet-ca/v1/certificate/ca")
    a.ask("GET", "/puppet/v3/environments", own=True).ask("POST", "/puppet/v3/catalog/a.example", own=True)
    b = Agent("b.example", time=a.time + 1).ask("POST", "/puppet/v3/catalog/b.example", own=True)
    for record in together(a, b):
        assert isinstance(record, Exchange)
        made.add(record)
    return made


def test_what_an_auth_conf_says() -> None:
    assert [*decision_text.lines(traffic())] == [
        "4 requests: 3 allowed, 1 denied, by 3 of the 6 rules of /etc/auth.conf",
        "",
        'denied by "all else" (sort-order 999, auth.conf:34): deny * (auth.conf:36)',
        "  1  GET environments  a.example  record 2",
        "",
        "allowed:",
        '  1  GET ca        192.0.2.1 without a certificate  by "bootstrap" (sort-order 500, auth.conf:22)',
        '  2  POST catalog  a.example, b.example             by "own catalog" (sort-order 500, auth.conf:4)',
        "",
        "the master answered otherwise (record 2): its auth.conf was another one",
    ]


def test_what_would_change() -> None:
    assert [*decision_text.lines(traffic(STRICT))] == [
        "1 of 4 requests, of 1 node, would be answered otherwise with /tmp/new.conf",
        "",
        'denied by "own catalog" (sort-order 500, new.conf:4): no entry is for a.example',
        '  1  POST catalog  a.example  now allowed by "own catalog" (sort-order 500, auth.conf:4)',
    ]
    assert [*decision_text.lines(traffic(USUAL))] == ["nothing changes for 4 requests with /etc/auth.conf"]
    assert [*decision_text.lines(Traffic(USUAL))] == ["there are no requests"]


def test_a_sentence_for_several_clients_gives_an_example() -> None:
    decision = Decision(Verdict.DENIED, USUAL.rules[0], "no entry is for a.example")
    assert decision_text.sentence(decision, USUAL, 2) == (
        'denied by "bootstrap" (sort-order 500, auth.conf:22), for example: no entry is for a.example'
    )


def test_sentences() -> None:
    old = ruby.read(Path("/etc/auth.conf"), "path /zz\n")
    rule = Rule("a\x1b[1m", 7, "/")
    for decision, conf, expected in (
        (Decision(Verdict.DENIED, None, "no rule is for this request"), USUAL, "denied because no rule is for it"),
        (Decision(Verdict.UNASKED, None, "why: 400"), USUAL, "answered without auth.conf: why: 400"),
        (Decision(Verdict.UNDECIDED, rule, "why"), old, 'not decided here because of "a\\x1b[1m" (auth.conf:7): why'),
        (
            Decision(Verdict.FAILS, rule, "why: 500"),
            old,
            'answered with an error by "a\\x1b[1m" (auth.conf:7): why: 500',
        ),
        (
            Decision(Verdict.ALLOWED, old.rules[-1], "allow *"),
            old,
            'allowed by "path /" (built into the master): allow *',
        ),
    ):
        assert decision_text.sentence(decision, conf) == expected


def test_json_has_all_records() -> None:
    plain = builtins(decision_text.plain(traffic(STRICT)))
    (group,) = plain["groups"]
    assert group["records"] == [3]
    assert group["then"]["rule"] == {"name": "own catalog", "sort_order": 500, "file": "/tmp/new.conf", "line": 4}  # noqa: S108
    assert group["decision"]["entry"] == {"text": "allow $1", "line": 6}
    assert plain["counts"] == {"allowed": 3, "denied": 1, "fails": 0, "not asked": 0, "not decided": 0}
