"""HOCON, read as typesafe-config 1.3.1 reads it, with the line of each value."""

from __future__ import annotations

import tracemalloc

import pytest

from inspector.host.auth_conf.hocon import Malformed, Node, parse, tokens


def plain(node: Node) -> object:
    match node.value:
        case dict(fields):
            return {key: plain(value) for key, value in fields.items()}
        case list(items):
            return [plain(item) for item in items]
    return node.value


def read(text: str) -> object:
    return {key: plain(node) for key, node in parse(text).items()}


def test_values(subtests: pytest.Subtests) -> None:
    for text, expected in [
        ("", {}),
        ("{a: 1}", {"a": 1}),
        ("a = 1, b: 2", {"a": 1, "b": 2}),
        ("a: 1\nb {c: 2}", {"a": 1, "b": {"c": 2}}),
        ("a:\n 1", {"a": 1}),
        ("a\n{b: 1}", {"a": {"b": 1}}),
        ("a.b: 1, a.c: 2", {"a": {"b": 1, "c": 2}}),
        ('"a.b": 1', {"a.b": 1}),
        ("a b: 1", {"a b": 1}),
        ("1.2: x", {"1": {"2": "x"}}),
        ("a: b c", {"a": "b c"}),
        ('a: "b"c 1 true', {"a": "bc 1 true"}),
        ("a: [1, 2\n3,]", {"a": [1, 2, 3]}),
        ("a: [1] [2]", {"a": [1, 2]}),
        ("a: {b: 1} {c: 2}", {"a": {"b": 1, "c": 2}}),
        ("a: {b: 1}, a: {c: 2}", {"a": {"b": 1, "c": 2}}),
        ("a: {b: 1}, a: 5, a: {c: 2}", {"a": {"c": 2}}),
        ("a: 1, a: 2", {"a": 2}),
        ("a: {b: 1, b: {c: 1}} {b: {d: 1}}", {"a": {"b": {"c": 1, "d": 1}}}),
        ("a: {b: {x: 1}} {b: 1, b: {c: 1}}", {"a": {"b": {"c": 1}}}),
        ("a: [1]text", {"a": [1]}),
        ("a: trueish", {"a": "trueish"}),
        ("a: 1 # b\n// c\n", {"a": 1}),
    ]:
        with subtests.test(text=text):
            assert read(text) == expected


def test_each_value_has_its_line() -> None:
    root = parse("a: {\n  b: [\n    1,\n    {c: 2}\n  ]\n}\n")
    assert root["a"].line == 1
    fields = root["a"].value
    assert isinstance(fields, dict)
    listed = fields["b"]
    assert listed.line == 2
    assert isinstance(listed.value, list)
    assert [item.line for item in listed.value] == [3, 4]


def test_what_is_refused_has_a_line_and_a_reason(subtests: pytest.Subtests) -> None:
    table = [
        ("a: 1\n}", 2, "'}' is not expected"),
        ("a: {\nb: 1", 2, "ends within"),
        ("[1]", 1, "the file is a list"),
        ("a", 1, "ends within"),
        ("a: ,", 1, "',' is not expected"),
        ("a: 1,, b: 2", 1, "',' is not expected"),
        ("a..b: 1", 1, "an empty part"),
        ("a: [1] {b: 1}", 1, "side by side"),
        ("a: x [1]", 1, "side by side"),
        ("a: 1\ninclude \"b\"", 2, "not followed"),
        ("include: 1", 1, "not followed"),
        ("a {b: 1} {c: 1}", 1, "'{' is not expected"),
    ]  # fmt: skip
    for text, line, reason in table:
        with subtests.test(text=text):
            with pytest.raises(Malformed) as caught:
                parse(text)
            assert caught.value.line == line
            assert reason in caught.value.reason


@pytest.mark.parametrize("text", ["a: " + "[" * 10_000, "{a:" * 10_000, ".".join("a" * 10_000) + ": 1"])
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(Malformed, match="deeper than 100 levels"):
        parse(text)


@pytest.mark.slow
def test_a_key_that_is_given_very_often_costs_no_more_than_the_text() -> None:
    text = "\n".join(f"a.b{number}: {number}" for number in range(5000))
    tracemalloc.start()
    root = parse(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    fields = root["a"].value
    assert isinstance(fields, dict)
    assert len(fields) == 5000
    assert peak < 300 * len(text)


# -- tokens ----------------------------------------------------------------------------------------------------


def kinds(text: str) -> list[tuple[str, object]]:
    return [(token.kind, token.value) for token in tokens(text) if token.kind not in ("space", "newline", "end")]


def test_a_single_token(subtests: pytest.Subtests) -> None:
    for text, value in [
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
    ]:
        with subtests.test(text=text):
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


def test_what_is_no_hocon(subtests: pytest.Subtests) -> None:
    for text, reason in [
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
    ]:
        with subtests.test(text=text):
            with pytest.raises(Malformed, match="line 1: ") as caught:
                list(tokens(text))
            assert reason in caught.value.reason
