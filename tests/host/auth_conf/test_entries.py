"""Entries of ``allow`` and ``deny``: texts and objects."""

from __future__ import annotations

import pytest

from inspector.host.auth_conf import hocon
from inspector.host.auth_conf.entries import read_entry
from inspector.host.auth_conf.rules import Entry, Refused, Sort


def read(text: str, *, allows: bool = True) -> Entry:
    return read_entry(hocon.parse(f"x: {text}")["x"], "an entry", allows=allows)


def test_a_name() -> None:
    for text in ('"a.example"', '{certname: "a.example"}'):
        entry = read(text)
        assert (entry.sort, entry.text, entry.line) == (Sort.NAME, "a.example", 1)


def test_extensions_and_their_values() -> None:
    entry = read('{extensions: {pp_role: [web, db], "1.3.6.1": "x", subject-alt-name: {dns-name: a, ip: ["::1"]}}}')
    assert entry.extensions == {"pp_role": ("web", "db"), "1.3.6.1": ("x",)}
    assert entry.alt_names == {"dns-name": ("a",), "ip": ("::1",)}
    assert entry.text == "extensions pp_role web or db, 1.3.6.1 x, dns-name a, ip ::1"
    assert read("{extensions: {}}").text == "any extensions"


def test_a_role_of_puppet_enterprise() -> None:
    assert read('{rbac: {permission: "a:b:c"}}').sort is Sort.PERMISSION


@pytest.mark.parametrize(
    ("text", "reason"),
    [
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
    ],
)
def test_what_puppetserver_does_not_take(text: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        read(text)


def test_a_role_cannot_be_denied() -> None:
    with pytest.raises(Refused, match="cannot deny"):
        read('{rbac: {permission: "a:b:c"}}', allows=False)
