"""Puppetserver's auth.conf: the order of its rules, and what puppetserver does not start with."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.host.auth_conf import hocon, puppetserver
from inspector.host.auth_conf.puppetserver import read_entry
from inspector.host.auth_conf.rules import AuthConf, Entry, Refused, Sort
from tests.support import auth_confs

PATH = Path("/etc/auth.conf")


def read(text: str) -> AuthConf:
    return puppetserver.read(PATH, text)


def rules(*texts: str) -> str:
    """An auth.conf of these rules, one in a line from the third on."""
    return "authorization: {version: 1\nrules: [\n" + ",\n".join(texts) + "\n]}"


def rule(
    *, name: str = '"a"', order: str = "500", request: str = "path: /x, type: path", rest: str = 'allow: "*"'
) -> str:
    return f"{{name: {name}, sort-order: {order}, match-request: {{{request}}}, {rest}}}"


def test_rules_and_their_lines() -> None:
    conf = read(auth_confs.USUAL)
    assert [(found.name, found.line) for found in conf.rules] == [
        ("bootstrap", 22),
        ("clean", 28),
        ("files", 16),
        ("own catalog", 4),
        ("own report", 10),
        ("all else", 34),
    ]
    catalog = next(found for found in conf.rules if found.name == "own catalog")
    assert catalog.methods == frozenset({"get", "post"})
    assert [(entry.sort, entry.line) for entry in catalog.entries] == [(Sort.GROUP, 6)]
    assert conf.list_line == 3
    assert not conf.headers


def test_rules_of_one_sort_order_are_sorted_by_name() -> None:
    """As Java compares texts: capital letters first, and surrogates before U+FFFF."""
    names = ["b", "B", "a", "\N{BROKEN HEART}", "\uffee"]
    conf = read(rules(*(rule(name=f'"{name}"') for name in names), rule(name='"z"', order="1")))
    assert [found.name for found in conf.rules] == ["z", "B", "a", "b", "\N{BROKEN HEART}", "\uffee"]


def test_deny_comes_before_allow() -> None:
    (found,) = read(rules(rule(rest='allow: [a.b, c.d], deny: "e.f", allow-unauthenticated: false'))).rules
    assert [str(entry) for entry in found.entries] == ["deny e.f", "allow a.b", "allow c.d"]


def test_query_parameters() -> None:
    (found,) = read(rules(rule(request="path: /, type: path, query-params: {e: [a, b], n/x: c}"))).rules
    assert found.query == {"e": frozenset({"a", "b"}), "x": frozenset({"c"})}


def test_headers_that_identify_clients() -> None:
    assert read("authorization: {version: 1, allow-header-cert-info: true, rules: []}").headers


@pytest.mark.parametrize(
    "text", ["authorization { version: 1, rules: [{", "authorization { version: 1\nrules: [ # x\n {"]
)
def test_where_nothing_can_be_inserted(text: str) -> None:
    body = rule()[1:]
    assert read(f"{text}{body}]}}").list_line is None


REFUSED = [
    (rule(name="null"), "has no name"),
    (rule(name="5"), "name of a rule is not a text"),
    (rule(order="null"), "the rule 'a' has no sort-order"),
    (rule(order="0"), "no number from 1 to 999"),
    (rule(order="1000"), "no number from 1 to 999"),
    (rule(order="1.5"), "no number from 1 to 999"),
    (rule(request="type: path"), "has no path"),
    (rule(request="path: /x"), "has no type"),
    (rule(request="path: /x, type: Path"), "neither `path` nor `regex`"),
    (rule(request="path: 5, type: path"), "path of the rule 'a' is not a text"),
    (rule(request='path: "(", type: regex'), "no regular expression: a parenthesis is not closed"),
    (rule(request="path: /x, type: path, method: patch"), "none of delete, get, head, post, put"),
    (rule(request="path: /x, type: path, method: [get, 5]"), "none of delete, get, head, post, put"),
    (rule(request="path: /x, type: path, query-params: []"), "not an object"),
    (rule(request='path: /x, type: path, query-params: {a: "5"}'), "a number is none even with quotes"),
    (rule(rest="x: y"), "neither allow nor deny"),
    (rule(rest="allow: null"), "neither a text nor an object"),
    (rule(rest='allow: "123"'), "neither a text nor an object"),
    (rule(rest='allow: "*", allow-unauthenticated: true'), "both allow-unauthenticated and allow"),
    (rule(request="path: /x, type: regex", rest='allow: "$1"'), r"has \$1, but the regular expression"),
    ("5", "a rule is not an object"),
    ("{name: a, match-request: x}", "match-request of the rule 'a' is not an object"),
    ("{name: a}", "has no match-request"),
    (f"{rule()},\n{rule()}", "a rule has the name 'a', as that of line 3"),
]


def test_what_puppetserver_does_not_start_with(subtests: pytest.Subtests) -> None:
    for text, reason in REFUSED:
        with subtests.test(text=text):
            with pytest.raises(Refused, match=reason) as caught:
                read(rules(text))
            assert caught.value.line == (4 if "as that of" in reason else 3)


def test_sections_that_puppetserver_does_not_start_with(subtests: pytest.Subtests) -> None:
    for text, reason in [
        ("", "no section `authorization`"),
        ("authorization: null", "no section `authorization`"),
        ("authorization: 5", "not an object"),
        ("authorization: {rules: []}", "`version`"),
        ("authorization: {version: 2, rules: []}", "`version`"),
        ("authorization: {version: 1}", "not a list"),
        ("authorization: {version: 1, rules: {}}", "not a list"),
        ('authorization: {version: 1, allow-header-cert-info: "true", rules: []}', "neither true nor false"),
        ('authorization: {version: 1, rules: [], x: "\\"\\"a\\"\\""}', "quotes within quotes"),
    ]:
        with subtests.test(text), pytest.raises(Refused, match=reason):
            read(text)


def test_what_needs_other_files_says_what_to_do() -> None:
    with pytest.raises(Refused, match="not followed") as caught:
        read('include "other.conf"\n')
    assert caught.value.hint == "Write the values themselves where they are used."


def test_what_puppetserver_ignores_is_a_warning() -> None:
    conf = read(
        rules(rule(rest='alow: "*", allow: {certname: a.b, x: y}', request="path: /, type: path, methods: get"))
    )
    assert [warning.partition(": ")[2] for warning in conf.warnings] == [
        "puppetserver ignores the key 'alow' of the rule 'a'; did you mean 'allow'?",
        "puppetserver ignores the key 'methods' of match-request of the rule 'a'; did you mean 'method'?",
        "puppetserver ignores the key 'x' of an entry of allow of the rule 'a'",
    ]
    assert conf.warnings[0].startswith("/etc/auth.conf:3: ")


def test_allow_unauthenticated_that_is_not_true_allows_nobody() -> None:
    conf = read(rules(rule(rest='allow-unauthenticated: "yes"')))
    assert not conf.rules[0].unauthenticated
    assert "allows nobody" in conf.warnings[0]


def test_a_text_loses_quotes_within_it_and_may_be_a_number() -> None:
    (found,) = read(rules(rule(name='"\\"a\\""', order='"500"'))).rules
    assert (found.name, found.order) == ("a", 500)


def test_generated_files_are_read() -> None:
    random = auth_confs.generator(3)
    for _ in range(50):
        assert read(auth_confs.conf(random)).rules


# -- the entries of allow and deny -----------------------------------------------------------------------------


def entry_of(text: str, *, allows: bool = True) -> Entry:
    return read_entry(hocon.parse(f"x: {text}")["x"], "an entry", allows=allows)


def test_a_name() -> None:
    for text in ('"a.example"', '{certname: "a.example"}'):
        entry = entry_of(text)
        assert (entry.sort, entry.text, entry.line) == (Sort.NAME, "a.example", 1)


def test_extensions_and_their_values() -> None:
    entry = entry_of('{extensions: {pp_role: [web, db], "1.3.6.1": "x", subject-alt-name: {dns-name: a, ip: ["::1"]}}}')
    assert entry.extensions == {"pp_role": ("web", "db"), "1.3.6.1": ("x",)}
    assert entry.alt_names == {"dns-name": ("a",), "ip": ("::1",)}
    assert entry.text == "extensions pp_role web or db, 1.3.6.1 x, dns-name a, ip ::1"
    assert entry_of("{extensions: {}}").text == "any extensions"


def test_a_role_of_puppet_enterprise() -> None:
    assert entry_of('{rbac: {permission: "a:b:c"}}').sort is Sort.PERMISSION


def test_what_puppetserver_does_not_take(subtests: pytest.Subtests) -> None:
    for text, reason in [
        ("5", "neither a text nor an object"),
        ("{}", "exactly one of"),
        ("{certname: a, extensions: {x: y}}", "exactly one of"),
        ("{certname: 5}", "not a text"),
        ("{extensions: x}", "not an object"),
        ("{extensions: {pp_cli_auth: true}}", "true and false need quotes"),
        ("{extensions: {1.3.6: x}}", "is no text"),
        ("{extensions: {subject-alt-name: x}}", "kinds of names"),
        ("{extensions: {subject-alt-name: {dns: x}}}", "kinds of names"),
        ("{rbac: {permission: x}}", "no permission"),
        ('"a b"', "is no name, no domain and no regular expression: 'a b'"),
    ]:
        with subtests.test(text), pytest.raises(Refused, match=reason):
            entry_of(text)


def test_a_role_cannot_be_denied() -> None:
    with pytest.raises(Refused, match="cannot deny"):
        entry_of('{rbac: {permission: "a:b:c"}}', allows=False)
