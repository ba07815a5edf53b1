"""The Ruby master's auth.conf, line by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.host.auth_conf import ruby
from inspector.host.auth_conf.rules import AuthConf, Refused, Sort

PATH = Path("/etc/puppet/auth.conf")
TEXT = """\
# own catalogs
path ~ ^/catalog/([^/]+)$
method find
auth yes   # with a certificate
allow $1, *.example   # and others

path /file
environment production, test
auth any
allow *
allow_ip 192.0.2.0/24
deny bad.example
"""


def read(text: str) -> AuthConf:
    return ruby.read(PATH, text)


def test_rules_and_their_lines() -> None:
    conf = read(TEXT)
    catalog, files = conf.rules[:2]
    assert (catalog.name, catalog.line, catalog.methods) == ("path ~ ^/catalog/([^/]+)$", 2, frozenset({"find"}))
    assert [(entry.text, entry.sort, entry.line) for entry in catalog.entries] == [
        ("$1", Sort.GROUP, 5),
        ("*.example", Sort.DOMAIN, 5),
    ]
    assert catalog.authenticated
    assert (files.environments, files.methods, files.authenticated) == (
        frozenset({"production", "test"}),
        ruby.METHODS,
        False,
    )
    assert [str(entry) for entry in files.entries] == ["allow *", "allow 192.0.2.0/24", "deny bad.example"]


def test_the_master_adds_its_own_rules_unless_their_path_is_there() -> None:
    built_in = [rule.path for rule in read(TEXT).rules[2:]]
    assert "^/catalog/([^/]+)$" not in built_in
    assert "/file" not in built_in
    assert {"^/node/([^/]+)$", "/certificate/ca", "/status", "^/puppet/v3/catalog/([^/]+)$"} <= {*built_in}
    assert built_in[-1] == "/"
    assert read("path /\n").rules[0].line == 1
    assert all(rule.path != "/" for rule in read("path /\n").rules[1:])


def test_what_the_master_does_not_take(subtests: pytest.Subtests) -> None:
    for text, line, reason in [
        ("allow *", 1, "before the first path"),
        ("path /a\nnonsense", 2, "no line of such a file"),
        ("path /a b", 1, "no line of such a file"),
        ("  path /a", 1, "no line of such a file"),
        ("path a", 1, "neither with / nor with ~"),
        ("path ~ (", 1, "no regular expression"),
        ("path /a\nmethod get", 2, "none of destroy, find, save, search"),
        ("path /a\nmethod find, find", 2, "given twice"),
        ("path /a\nenvironment x, x", 2, "given twice"),
        ("path /a\nauth maybe", 2, "none of yes"),
        ("path /a\nallow a b", 2, "no name, domain or regular expression"),
        ("path /a\ndeny *", 2, "no name, domain or regular expression"),
        ("path /a\nallow_ip x", 2, "is no address"),
        ("path /a\nallow *.b, /c/", 1, "both a domain and a regular expression"),
    ]:
        with subtests.test(text=text):
            with pytest.raises(Refused) as caught:
                read(text)
            assert caught.value.line == line
            assert reason in caught.value.reason


def test_a_domain_and_an_expression_are_compared_only_with_their_like() -> None:
    assert read("path /a\nallow *.b\ndeny /c/").rules[0].entries


def test_addresses_in_allow_are_those_of_2_7() -> None:
    conf = read("path /a\nallow 10.0.0.*\nallow 10.0.0.1")
    assert [entry.sort for entry in conf.rules[0].entries] == [Sort.ADDRESS, Sort.NAME]
    assert [warning.partition(": ")[2] for warning in conf.warnings] == [
        "allow has an address: only Puppet 2.7 takes it, later ones want allow_ip",
        "allow has an address: all but Puppet 2.7 take it for a name",
    ]


@pytest.mark.parametrize(
    ("text", "legacy"),
    [
        ("path /a", True),
        ("\n# c\r\n\npath ~ ^/a", True),
        ("authorization: {}", False),
        ("path: /a", False),
        ("path = x", False),
    ],
)
def test_how_such_a_file_begins(text: str, legacy: bool) -> None:
    assert (ruby.FIRST.match(text) is not None) is legacy
