"""The terms of a filter as they are typed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inspector.summaries import terms


def test_a_term() -> None:
    rows: list[tuple[str, bool, str | None, str, bool]] = [
        ("word", False, None, "word", True),
        ("  word other", False, None, "word", True),
        ("key:value", False, "key", "value", True),
        ("-key:value", True, "key", "value", True),
        ("!word", True, None, "word", True),
        ("- word", False, None, "-", True),
        ("-", False, None, "-", True),
        ("--word", True, None, "-word", True),
        ("puppet::rich", False, None, "puppet::rich", True),
        ("key:", False, "key", "", True),
        ('key:"several words" x', False, "key", "several words", True),
        (r'"a \"quoted\" word"', False, None, 'a "quoted" word', True),
        ("'as \\ it is'", False, None, "as \\ it is", True),
        ('key:"not closed', False, "key", "not closed", False),
        ("'not closed", False, None, "not closed", False),
        ("it's", False, None, "it's", True),
    ]
    for text, negated, key, value, closed in rows:
        term = terms.read(text, 0)
        assert term, text
        assert (term.negated, term.key, term.value, term.closed) == (negated, key, value, closed), text


def test_a_quote_within_a_word_is_no_term() -> None:
    rows: list[str] = ['"a"b', "key:'a'b", '""x']
    for text in rows:
        assert terms.read(text, 0) is None, text


@given(st.text(st.sampled_from("ab:-!'\"\\ \t\né"), max_size=40))
def test_every_term_ends_behind_its_beginning(text: str) -> None:
    at = 0
    while at < len(text.rstrip()) and (term := terms.read(text, at)) is not None:
        assert at <= term.begin < term.end <= len(text)
        at = term.end
