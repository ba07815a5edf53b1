"""Regular expressions in linear time: the same answers as ``re`` where both can, offsets beyond ASCII, and ``it``."""

from __future__ import annotations

import fnmatch
import itertools
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector import regex
from tests.support import places

TEXTS = ["", "a", "aab", "xaab-b", "é abb ü", "\ud800ab", "a\nb\n", "1999-2001", "line\r\n b", "\U0001f600ab"]


PATTERNS = ["a", "a*", "(a)(b)?", "(?P<x>[a-z]+)-?", "b$", "^a", "[^a]", ".", r"\d+", "ü|é"]


def test_it_answers_as_re_does() -> None:
    for pattern, text in itertools.product(PATTERNS, TEXTS):
        ours, theirs = regex.compile(pattern), re.compile(pattern, re.ASCII)
        expected = [(found.span(), found[0], found.groups(), found.groupdict()) for found in theirs.finditer(text)]
        if pattern == "b$" and text.endswith("\n"):
            expected = []  # only the end of the text is its end
        found_all = [(found.span(), found[0], found.groups(), found.groupdict()) for found in ours.finditer(text)]
        assert (pattern, text, found_all) == (pattern, text, expected)
        for name in ("match", "fullmatch"):
            got, want = getattr(ours, name)(text), getattr(theirs, name)(text)
            assert (got and got.span()) == (want and want.span()) or pattern == "b$", (pattern, text)
        assert ours.findall(text) == theirs.findall(text) or "b$" in pattern or "(b)?" in pattern, (pattern, text)
        assert ours.sub(r"<\g<0>>", text) == (theirs.sub(r"<\g<0>>", text) if expected else text), (pattern, text)


@given(st.text(st.sampled_from("ab-\n é\ud800\U0001f600"), max_size=30))
def test_offsets_are_those_of_the_text(text: str) -> None:
    for found in regex.compile(r"[ab]+|é|\n").finditer(text):
        begin, end = found.span()
        assert text[begin:end] == found[0] != ""
    assert regex.sub("[ab]", "", text) == text.replace("a", "").replace("b", "")
    assert "".join(regex.compile("a").split(text)) == text.replace("a", "")


def test_a_search_begins_and_ends_at_offsets_of_the_text() -> None:
    assert [found.span() for found in regex.compile("a").finditer("éaéaéa", 2, 5)] == [(3, 4)]


def test_bytes_are_matched_as_they_are() -> None:
    assert [found.span() for found in regex.compile(rb"\xff.").finditer(b"\xff\xff\xffa", 1)] == [(1, 3)]
    assert [found[0] for found in regex.compile(b"a").finditer(b"aaaa", 1, 3)] == [b"a", b"a"]
    assert regex.compile(rb"(a)(b)").sub(rb"\2\1", b"xab") == b"xba"


def test_flags() -> None:
    assert regex.compile("^a.b$", regex.IGNORECASE | regex.DOTALL).fullmatch("A\nb")
    assert regex.compile("^a$", regex.MULTILINE).findall("a\nb\na") == ["a", "a"]
    assert regex.compile("a.b").fullmatch("a\nb") is None


def test_the_group_it_is_the_match_and_its_neighbours_are_not_consumed() -> None:
    year = regex.compile(r"(?:^|[^0-9])(?P<it>([0-9]{2})(?P<rest>[0-9]{2}))(?:$|[^0-9])")
    assert [found[0] for found in year.finditer("1999-2001 12345 1970")] == ["1999", "2001", "1970"]
    found = year.search("in 1999")
    assert found
    assert (found.span(), found[1], found["rest"], found.groups()) == ((3, 7), "19", "99", ("19", "99"))
    assert year.sub(r"\1xx", "é1999-2001.") == "é19xx-20xx."
    assert year.fullmatch("1999")
    assert year.fullmatch(" 1999") is None
    either = regex.compile("a(?P<it>b)|(c)")
    assert [found.span() for found in either.finditer("abc")] == [(1, 2), (2, 3)]


@pytest.mark.parametrize("pattern", ["(a", r"(a)\1", "(?=a)", "(?<!a)b", "a{2000}"])
def test_what_cannot_be_linear_is_an_error(pattern: str) -> None:
    for use in (regex.Pattern[str].check, lambda unusable: unusable.search("a")):
        with pytest.raises(regex.error):
            use(regex.compile(pattern))


@pytest.mark.parametrize("template", [r"\x", "\\", r"\g<name>"])
def test_a_template_with_another_escape_is_an_error(template: str) -> None:
    with pytest.raises(ValueError, match="unknown escape"):
        regex.compile("a").sub(template, "a")


@given(st.text(st.sampled_from("ab[]!-*?.z\n"), max_size=8), st.text(st.sampled_from("ab[]!-*.z\n"), max_size=6))
def test_wildcards_are_a_shells(pattern: str, text: str) -> None:
    assert (regex.glob(pattern).fullmatch(text) is not None) == fnmatch.fnmatchcase(text, pattern)


def test_a_wildcard_ignores_case_if_told_to() -> None:
    assert regex.glob("WEB*", regex.IGNORECASE).fullmatch("web1.example")
    assert regex.glob("[!A]b").fullmatch("Ab") is None


def test_the_named_groups_of_a_match_are_its_parts() -> None:
    pattern = regex.compile(r"(?P<word>[a-z]+)(?P<rest>!)?|(?P<number>[0-9]+)")
    assert [found.parts() for found in pattern.finditer("ab! 12 é x")] == [
        [(0, 2, "word"), (2, 3, "rest")], [(4, 6, "number")], [(9, 10, "word")],
    ]  # fmt: skip


@given(
    st.lists(st.text(st.sampled_from("ab_$é"), min_size=1, max_size=3), unique=True),
    st.text(st.sampled_from("ab_$é\ud800")),
)
def test_the_words_within_a_text_are_those_that_it_contains(words: list[str], text: str) -> None:
    assert regex.Words(words).within(text) == tuple(word for word in words if word in text)


ALL = """
import importlib, pkgutil
import inspector
from inspector import regex
made = regex.Pattern.__init__
def checked(self, *given):
    made(self, *given)
    self.check()
regex.Pattern.__init__ = checked
for module in pkgutil.walk_packages(inspector.__path__, "inspector."):
    importlib.import_module(module.name)
"""


@pytest.mark.slow
def test_every_pattern_of_the_program_can_be_compiled() -> None:
    """They are compiled when they are first used, which may be at an odd record."""
    done = subprocess.run([sys.executable, "-c", ALL], cwd=places.ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
