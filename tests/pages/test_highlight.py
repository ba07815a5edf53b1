"""Colours of code, bodies and diffs: the right ones, never another text, and never more work than a line is long."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.pages import highlight, languages, styles
from inspector.pages.content import breaks, read
from inspector.pages.highlight import LARGEST, LONGEST, STYLES, Colours
from inspector.pages.languages import Language
from inspector.privacy.secrets import MASK, Secret
from inspector.protocol.rich import Rich
from inspector.text import clean

ALL = [found for name in dir(languages) if isinstance(found := getattr(languages, name), Language)]
TEMPLATES = [languages.of_file("x.conf.epp"), languages.of_file("x.erb")]
KINDS = {style: kind for kind, style in reversed(STYLES.items())}
BOOLEANS = STYLES["boolean"]


def pieces(text: str, name: str) -> list[list[tuple[str, str]]]:
    """By line the coloured pieces of a text and their kinds, in the language of a file of this name."""
    data = text.encode()
    colours, found, at = Colours(data, languages.of_file(name, data)), [], 0
    for line in data.split(b"\n"):
        drawn = colours.text(at, at + len(line))
        found.append([(drawn.plain[span.start : span.end], KINDS[str(span.style)]) for span in drawn.spans])
        at += len(line) + 1
    return found


def test_what_a_line_is_made_of() -> None:
    rows: list[tuple[str, str, str]] = [
        ("x.json", '  "a": "b\\"c", "n": -1.5e3,', 'key:"a" string:"b\\"c" key:"n" number:-1.5e3'),
        ("x.json", '[true, null, "File[/etc/motd]"]', 'boolean:true null:null reference:"File[/etc/motd]"'),
        ("x.json", '"open', 'string:"open'),
        ("x.pp", "file { '/a': ensure => $x, n => 1, # why",
         "reference:file string:'/a' key:ensure variable:$x key:n number:1 comment:# why"),
        ("x.pp", "if $::a::b =~ /x\"y/ { Foo::Bar['z'] -> undef }",
         "keyword:if variable:$::a::b string:/x\"y/ reference:Foo::Bar string:'z' null:undef"),
        ("x.rb", "def a?(b: nil) = @c || :d if %w[e f] && /g'h/ =~ Y",
         "keyword:def key:b null:nil variable:@c number::d keyword:if string:%w[e f] string:/g'h/ reference:Y"),
        ("x.yaml", "- profile::a: true # b", "key:profile::a boolean:true comment:# b"),
        ("x.yaml", "a: {b: 1, c: File[/x], d: http://e/#f, g: *h}",
         "key:a key:b number:1 key:c reference:File[/x] key:d string:http://e/#f key:g variable:*h"),
        ("x.yaml", "- !ruby/object:X ~", "keyword:!ruby/object:X null:~"),
        ("x.sh", "export A=\"b $c\" && if d # e", 'keyword:export key:A string:"b $c" keyword:if comment:# e'),
        ("x.sh", "echo ${a:-b} $1 \\\" <<<c", "variable:${a:-b} variable:$1"),
        ("x.ini", " a.b = yes ; c", "key:a.b boolean:yes comment:; c"),
        ("x.conf", "[main]", "heading:[main]"),
        ("x.conf", "Listen 127.0.0.1:80", "key:Listen number:127.0.0.1:80"),
        ("x.xml", "<a:b c='d'>e's &amp; f</a:b>",
         "keyword:<a:b key:c string:'d' keyword:> number:&amp; keyword:</a:b keyword:>"),
        ("x.py", "@a\n", "variable:@a"),
        ("x.py", "class A: return None or 'b' # c",
         "keyword:class reference:A keyword:return null:None keyword:or string:'b' comment:# c"),
        ("x.diff", "-gone", "removed:-gone"),
        ("x.diff", "+came", "added:+came"),
        ("x.diff", "@@ -1 +1 @@ f", "reference:@@ -1 +1 @@ f"),
        ("x.diff", "+++ b/x", "heading:+++ b/x"),
        ("x.bin", "if 'a' => 1", ""),
    ]  # fmt: skip
    for name, line, expected in rows:
        found = pieces(line, name)[0]
        assert " ".join(f"{kind}:{text}" for text, kind in found) == expected, name


def test_what_goes_on_over_lines() -> None:
    rows: list[tuple[str, str, list[str]]] = [
        ("x.pp", "a /* b\n c\n d */ 1", ["comment", "comment", "comment number"]),
        ("x.pp", "'a\nb\\'\nc' 1", ["string", "string", "string number"]),
        ("x.pp", '$a = @("END"/L)\n  "x\n  | END\n1', ["variable keyword", "string", "string", "number"]),
        ("x.rb", "=begin\n1\n=end\n1", ["comment", "comment", "comment", "number"]),
        ("x.rb", "a <<~EOS, 1\n 'x\n EOS\n1", ["keyword number", "string", "string", "number"]),
        ("x.rb", "%q{a\nb} 1", ["string", "string number"]),
        ("x.sh", "cat <<'X' | b\n$a\nX\n$a", ["keyword", "string", "string", "variable"]),
        ("x.py", 'a = """b\nc""" + 1', ["string", "string number"]),
        ("x.yaml", "a: |\n  b: 1\n\n  # c\nd: 1", ["key keyword", "string", "", "string", "key number"]),
        ("x.xml", "<!-- a\n<b> -->\n<c", ["comment", "comment", "keyword"]),
        ("x.conf.epp", "a = 1\n<% if $b {\n 'c' %>d\nd = 2",
         ["key number", "heading keyword variable", "string heading key", "key number"]),
        ("x.erb", "if <%# c %> if <%= 'a%>' %>", ["comment heading string heading"]),
    ]  # fmt: skip
    for name, text, kinds in rows:
        assert [" ".join(kind for _, kind in line) for line in pieces(text, name)] == kinds, name


HOSTILE = st.lists(
    st.sampled_from(
        ["\x1b[2J", "\u202e", "\r", "\t", "é", "\ud800", MASK, '"', "'", "\\", "/*", "<<EOS", "<%", "%>", "<!--", "@@",
         "#", "$", "a: |", "File[/a]", "{", " ", "x", "1", "\n", "%q{", "@(X)", "=begin", "-"]
    ),
    max_size=40,
).map(lambda parts: "".join(parts).encode("utf-8", "replace"))  # fmt: skip


@given(HOSTILE, st.sampled_from([*ALL, *TEMPLATES]), st.integers(8, 60))
def test_colours_change_no_text_and_let_no_control_character_through(
    data: bytes, language: Language, width: int
) -> None:
    colours, starts = Colours(data, language), [*breaks(data, width), len(data)]
    for begin, end in pairwise(starts):
        drawn = colours.text(begin, end)
        assert drawn.plain == clean(drawn.plain)
        assert drawn.plain.replace(" ", "") == read(data[begin:end]).replace(" ", "")
    for line in data.split(b"\n"):
        spans, _ = highlight.scan(language, line)
        edges = [edge for first, last, _ in spans for edge in (first, last)]
        assert edges == sorted(edges)
        assert all(0 <= first < last <= len(line) for first, last, _ in spans)


@given(HOSTILE, st.sampled_from(ALL), st.data())
def test_what_was_found_is_marked_where_it_is(data: bytes, language: Language, choice: st.DataObject) -> None:
    text = data.decode("utf-8", "ignore").translate(dict.fromkeys(map(ord, "\n\r\t")))
    begin = choice.draw(st.integers(0, len(text)))
    hit = text[begin : choice.draw(st.integers(begin, len(text)))]
    if hit:
        first = len(text[:begin].encode())
        drawn = Colours(text.encode(), language).text(
            0, len(text.encode()), [(first, first + len(hit.encode()))], "on red"
        )
        (marked,) = (span for span in drawn.spans if span.style == "on red")
        assert drawn.plain[marked.start : marked.end] == clean(hit)
        assert drawn.plain == clean(text)


def test_a_masked_value_stands_out_in_any_text() -> None:
    drawn = Colours(f'"a": "x{MASK}y" {MASK}'.encode(), languages.JSON)
    text = drawn.text(0, 100)
    assert [text.plain[span.start : span.end] for span in text.spans if span.style == styles.SECRET] == [MASK, MASK]
    (plain,) = highlight.lines(MASK)
    assert [span.style for span in plain.spans] == [styles.SECRET]


class Counting(bytes):
    """Bytes that count how many of them were copied."""

    copied = 0

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        self.copied += len(found) if isinstance(found, bytes) else 1
        return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["x.json", "x.rb"])
@pytest.mark.parametrize("line", [b'"a": "b",\n', b'"a" ' * 1000 + b"\n", b'"a" ' * 3_000_000])
def test_ten_megabytes_cost_no_more_than_what_is_drawn_of_them(name: str, line: bytes) -> None:
    data = Counting(line * (10_000_000 // len(line)) if len(line) < 10_000_000 else line)
    colours = Colours(data, languages.of_file(name))
    # What is read in advance has a limit; a line ends within LONGEST, or its rest is not read.
    assert data.copied <= (0 if name == "x.json" else LARGEST + LONGEST)
    data.copied = 0
    for begin in (0, len(data) // 2, len(data) - 120):
        colours.text(begin, begin + 120)
    assert data.copied <= 3 * (LONGEST + 300)


@pytest.mark.slow
def test_what_is_too_long_is_plain_from_there_on() -> None:
    line = b'"a": "b" ' * 1000
    colours = Colours(line, languages.JSON)
    assert colours.text(0, 80).spans
    assert not colours.text(LONGEST + 100, LONGEST + 180).spans
    assert not colours.text(8000, 8080).spans
    lines = b"a = 'b'\n" * (LARGEST // 8 + 10)
    colours = Colours(lines, languages.RUBY)
    assert colours.text(LARGEST - 80, LARGEST - 73).spans
    assert not colours.text(len(lines) - 8, len(lines) - 1).spans


def test_values_have_the_colour_of_their_type() -> None:
    rows: list[tuple[object, str]] = [
        (None, styles.NULL),
        (True, styles.BOOLEAN),
        (1, styles.NUMBER),
        (1.5, styles.NUMBER),
        ("text", styles.STRING),
        ("File[/etc/motd]", styles.REFERENCE),
        ("Foo::Bar[x]", styles.REFERENCE),
        ("file[x]", styles.STRING),
        ("File[x] and", styles.STRING),
        (f"File[{'x' * 10_000}]", styles.STRING),
        (Secret("x"), styles.SECRET),
        (Rich("Sensitive", "x"), styles.SECRET),
        (Rich("Timestamp", "2026"), styles.REFERENCE),
    ]
    for value, style in rows:
        assert highlight.style_of(value) == style, value
        assert highlight.value("as it is written", value).style == style, value


def test_each_kind_of_value_has_a_colour_of_its_own() -> None:
    kinds = [styles.KEY, styles.STRING, styles.NUMBER, styles.BOOLEAN, styles.NULL, styles.REFERENCE, styles.SECRET]
    assert len({kind.rpartition(" ")[2] for kind in kinds}) == len(kinds)
