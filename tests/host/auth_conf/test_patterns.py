"""Expressions of an auth.conf: their groups as in Java 17, and what is not decided."""

from __future__ import annotations

import pytest

from inspector.host.auth_conf.patterns import Invalid, NotDecided, read


@pytest.mark.parametrize(
    ("pattern", "text", "groups"),
    [
        ("^/puppet/v3/catalog/([^/]+)$", "/puppet/v3/catalog/a.b", ("a.b",)),
        ("^/puppet/v3/catalog/([^/]+)$", "/puppet/v3/catalog/a/b", None),
        ("catalog", "/puppet/v3/catalog/x", ()),
        ("^/(catalog|node)/([^/]+)(/.*)?$", "/node/a", ("node", "a", None)),
        (r"(\w+)\.", "a1.b", ("a1",)),
        ("(?i)/STATUS", "/status", ()),
        (r"\Qa.b\E", "aXb", None),
        (r"\s", "\x0b", ()),
        (".", "\u2028", None),
        ("(?s).", "\n", ()),
        ("(?<name>a)b", "ab", ("a",)),
        ("[^/?]+", "é", ()),
        ("^*$", "a", ()),
    ],
)
def test_groups_of_a_match(pattern: str, text: str, groups: tuple[str | None, ...] | None) -> None:
    assert read(pattern, "java").search(text) == groups


@pytest.mark.parametrize(
    ("pattern", "text", "reason"),
    [
        ("^/(?!puppet)", "/", "look-around"),
        ("a++", "a", "possessive"),
        ("a$", "a\n", "ends of lines"),
        (r"\bé", "é", "letters"),
        ("(a*)+", "aa", "a repeated group"),
        ("a{2}{2}", "a", "nothing stands before a repetition"),
        ("((((a{99}){99}){99}){99})", "a", "too large"),
    ],
)
def test_what_is_not_decided(pattern: str, text: str, reason: str) -> None:
    found = read(pattern, "java")
    with pytest.raises(NotDecided, match=reason):
        found.search(text)


def test_a_repeated_group_is_no_obstacle_if_nobody_asks_for_it() -> None:
    assert read("^(a*)+$", "java").search("aa", groups=False) is not None


def test_ruby_begins_at_each_line() -> None:
    assert read("^b", "ruby").search("ab") is None
    with pytest.raises(NotDecided):
        read("^b", "ruby").search("a\nb")
    assert read("^b", "java").search("a\nb") is None


def test_hostile_expressions_take_linear_time() -> None:
    """A backtracking engine would not come back."""
    assert read("^(a|a)*$", "java").search("a" * 20_000 + "b", groups=False) is None
    with pytest.raises(Invalid):
        read("(" * 50_000, "java")
