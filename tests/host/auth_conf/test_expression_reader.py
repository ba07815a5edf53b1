"""What Java and Ruby refuse as a regular expression, and what RE2 gets in the place of one."""

from __future__ import annotations

import pytest

from inspector import regex
from inspector.host.auth_conf.expression_reader import Invalid, Reader, Unreadable


def reader(text: str, *, ruby: bool = False) -> Reader:
    made = Reader(text, "ruby" if ruby else "java")
    made.read()
    return made


@pytest.mark.parametrize(
    "text", ["(", ")", "a)", "[a", "*a", "a|*", "a**", "(+)", "a{", "{a}", "[b-a]", r"\g", "a\\", "(?:a", "a{2,1}"]
)
def test_what_java_refuses(text: str) -> None:
    with pytest.raises(Invalid):
        reader(text)


@pytest.mark.parametrize("text", ["^*$", "a{2}", "a]", "a}", r"\Q*\E", "(|a)", "", r"[\]]", "[-a]", "a|", "(?i)a"])
def test_what_java_takes_is_translated(text: str) -> None:
    made = reader(text)
    assert made.obstacle == ""
    regex.compile("".join(made.pieces))


@pytest.mark.parametrize("text", ["[]a]", "[[a]b]", "[a&&b]", "(?x)a"])
def test_what_cannot_be_read_to_its_end(text: str) -> None:
    with pytest.raises(Unreadable):
        reader(text)


@pytest.mark.parametrize(
    "text", ["(?=a)", "(?!a)", "(?<=a)", "a++", r"(a)\1", r"\p{L}", r"\h", "(?u)a", "(?>a)", r"\cA", "{2}"]
)
def test_what_re2_does_not_execute_is_an_obstacle(text: str) -> None:
    assert reader(text).obstacle


def test_groups_are_counted_also_in_what_is_not_executed() -> None:
    assert reader(r"(a)(?:b)(?=(c))(?<name>d)\(").groups == 3


def test_ruby_takes_a_brace_and_the_flag_m() -> None:
    assert reader("a{", ruby=True).obstacle
    assert "(?s:.)" in reader("(?m).", ruby=True).pieces
    assert reader("(?m).").obstacle
