"""Expressions of an auth.conf: their groups as in Java 17, and what is not decided."""

from __future__ import annotations

import pytest

from inspector import regex
from inspector.host.auth_conf.patterns import Invalid, NotDecided, Reader, Unreadable, read


def test_groups_of_a_match(subtests: pytest.Subtests) -> None:
    for pattern, text, groups in [
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
    ]:
        with subtests.test(pattern=pattern):
            assert read(pattern, "java").search(text) == groups


def test_what_is_not_decided(subtests: pytest.Subtests) -> None:
    for pattern, text, reason in [
        ("^/(?!puppet)", "/", "look-around"),
        ("a++", "a", "possessive"),
        ("a$", "a\n", "ends of lines"),
        (r"\bé", "é", "letters"),
        ("(a*)+", "aa", "a repeated group"),
        ("a{2}{2}", "a", "nothing stands before a repetition"),
        ("((((a{99}){99}){99}){99})", "a", "too large"),
    ]:
        with subtests.test(pattern=pattern):
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


# -- the reader ------------------------------------------------------------------------------------------------


def reader(text: str, *, ruby: bool = False) -> Reader:
    made = Reader(text, "ruby" if ruby else "java")
    made.read()
    return made


def test_what_java_refuses(subtests: pytest.Subtests) -> None:
    for text in ["(", ")", "a)", "[a", "*a", "a|*", "a**", "(+)", "a{", "{a}", "[b-a]", r"\g", "a\\", "(?:a", "a{2,1}"]:
        with subtests.test(text), pytest.raises(Invalid):
            reader(text)


def test_what_java_takes_is_translated(subtests: pytest.Subtests) -> None:
    for text in ["^*$", "a{2}", "a]", "a}", r"\Q*\E", "(|a)", "", r"[\]]", "[-a]", "a|", "(?i)a"]:
        with subtests.test(text=text):
            made = reader(text)
            assert made.obstacle == ""
            regex.compile("".join(made.pieces))


@pytest.mark.parametrize("text", ["[]a]", "[[a]b]", "[a&&b]", "(?x)a"])
def test_what_cannot_be_read_to_its_end(text: str) -> None:
    with pytest.raises(Unreadable):
        reader(text)


def test_what_re2_does_not_execute_is_an_obstacle(subtests: pytest.Subtests) -> None:
    for text in ["(?=a)", "(?!a)", "(?<=a)", "a++", r"(a)\1", r"\p{L}", r"\h", "(?u)a", "(?>a)", r"\cA", "{2}"]:
        with subtests.test(text=text):
            assert reader(text).obstacle


def test_groups_are_counted_also_in_what_is_not_executed() -> None:
    assert reader(r"(a)(?:b)(?=(c))(?<name>d)\(").groups == 3


def test_ruby_takes_a_brace_and_the_flag_m() -> None:
    assert reader("a{", ruby=True).obstacle
    assert "(?s:.)" in reader("(?m).", ruby=True).pieces
    assert reader("(?m).").obstacle
