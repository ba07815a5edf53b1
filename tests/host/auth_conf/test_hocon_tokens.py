"""Tokens of HOCON: what typesafe-config 1.3.1 takes for a text, a number and a word, and where each stands."""

from __future__ import annotations

import pytest

from inspector.host.auth_conf.hocon_tokens import Malformed, tokens


def kinds(text: str) -> list[tuple[str, object]]:
    return [(token.kind, token.value) for token in tokens(text) if token.kind not in ("space", "newline", "end")]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"a b"', "a b"),
        (r'"\"\\\/\n\t\u0041"', '"\\/\n\tA'),
        ('"""a "quoted"\nb"""', 'a "quoted"\nb'),
        ('"""a"""""', 'a""'),
        ("500", 500),
        ("-3", -3),
        ("5.0", 5),
        ("1.5", 1.5),
        ("1e3", 1000),
        ("10.0.0.1", "10.0.0.1"),
        ("1-2", "1-2"),
        ("true", True),
        ("null", None),
        ("a/b", "a/b"),
        ("/", "/"),
        ("9" * 30, "9" * 30),
    ],
)
def test_a_single_token(text: str, value: object) -> None:
    assert [found for _, found in kinds(text)] == [value]


def test_a_word_ends_where_it_is_known() -> None:
    assert kinds("trueish") == [("value", True), ("text", "ish")]


def test_two_slashes_begin_a_comment_one_does_not() -> None:
    assert kinds("a/b//c\n# d\n/e") == [("text", "a/b"), ("text", "/e")]


def test_lines_are_counted() -> None:
    text = 'a: """x\ny"""\n# comment\n\nb: {'
    assert [(token.text, token.line) for token in tokens(text) if token.text in ("a", "b", "{")] == [
        ("a", 1),
        ("b", 5),
        ("{", 5),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('a: "b', "does not end on its line"),
        ('a: "b\nc"', "does not end on its line"),
        ('a: """b', "between three quotes does not end"),
        (r'a: "\x"', "is no escape"),
        ('a: "\t"', "does not end on its line"),
        ("a: ${b}", "not followed"),
        ("a += 1", "not followed"),
        ("a: $1", "'$' must stand within quotes"),
        ("a: *", "'*' must stand within quotes"),
        ("a: 1+2", "'+' must stand within quotes"),
    ],
)
def test_what_is_no_hocon(text: str, reason: str) -> None:
    with pytest.raises(Malformed, match="line 1: ") as caught:
        list(tokens(text))
    assert reason in caught.value.reason
