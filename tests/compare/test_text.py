"""A comparison in lines for a console."""

from __future__ import annotations

from typing import Any

import pytest

from inspector.compare import text
from inspector.compare.text import Line
from inspector.runs.examples import catalog, report, slow, talk
from tests.support.compared import compared, file, run_of

BEFORE = run_of(file("/a", mode="1", content="one\ntwo\n"), facts={"uptime": "1", "os": {"name": "a"}})
AFTER = run_of(
    file("/a", mode="2", content="one\nthree\n", line=7),
    file("/b", owner="x"),
    facts={"uptime": "2", "os": {"name": "b"}},
)


def printed(*arguments: Any, **options: Any) -> list[str]:
    return [line.text for line in text.lines(compared(*arguments), **options)]


def test_what_is_different() -> None:
    lines = printed(BEFORE, AFTER)
    assert lines[0].startswith("before  a.sqlite run 1  ")
    assert lines[0].endswith("  node1.example  complete, 1.2 s")
    assert lines[2:] == [
        "",
        "catalog: 3 differences (2 and 3 resources)",
        '  ~ File[/a]/mode: "1" -> "2"',
        "      /m/site.pp:1 -> 7",
        "  ~ File[/a]/content",
        "      /m/site.pp:1 -> 7",
        "      @@ -1,2 +1,2 @@",
        "       one",
        "      -two",
        "      +three",
        "  + File[/b]",
        "      /m/site.pp:1",
        "",
        "facts: 1 difference (3 values, 1 volatile one differs)",
        '  ~ os.name: "a" -> "b"',
        "",
        "times: no difference beyond noise (whole run: 1.2 s -> 1.2 s)",
        "no difference: run, findings, files (0 files), requests (2 requests), report",
    ]


def test_in_full() -> None:
    lines = printed(BEFORE, AFTER, full=True)
    assert '      owner => "x"' in lines
    assert '  ~ uptime: "1" -> "2"' in lines
    assert "    phase report: 200 ms -> 200 ms  (less than 50 ms apart)" in lines


def test_only_the_first_of_many() -> None:
    many = [file(f"/{number}") for number in range(text.MOST + 3)]
    lines = printed(run_of(), run_of(*many))
    assert "  ... 3 more (--full)" in lines
    assert f"  + File[/{text.MOST - 1}]" in lines
    assert f"  + File[/{text.MOST}]" not in lines
    assert f"  + File[/{text.MOST}]" in printed(run_of(), run_of(*many), full=True)


def test_times_beyond_noise() -> None:
    resources = [file("/a")]
    before, after = talk(catalog(resources=resources), report()), talk(slow(catalog(resources=resources), 20), report())
    lines = printed(before, after)
    assert "  ~ request catalog: 200 ms -> 20.1 s  (+19.9 s, 100.5 times)" in lines


def test_what_is_not_compared() -> None:
    lines = printed(run_of(), talk(catalog(status=500, text="Server Error: no role"), report(result="failed")))
    assert "catalog: not compared: b.sqlite run 1 got no catalog" in lines
    assert "  ~ catalog: received -> got no catalog: 500 Server Error: no role" in lines


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "undef"), (True, "true"), ("a", '"a"'), (["a", 1], '["a", 1]'),
        ({"__ptype": "Deferred", "__pvalue": {"name": "f", "arguments": ["a", 1]}}, 'Deferred(f("a", 1))'),
        ({"__ptype": "SemVer", "__pvalue": "1.0.0"}, 'SemVer("1.0.0")'), ({"__ptype": "Default"}, "Default"),
        ({"__ptype": "Binary", "__pvalue": "3 bytes"}, "Binary(3 bytes)"), ("\x1b[2J", '"\\u001b[2J"'),
    ],
)  # fmt: skip
def test_words(value: Any, expected: str) -> None:
    assert text.word(value) == expected


def test_nothing_reaches_a_terminal_raw() -> None:
    hostile = "\x1b[2J\u202e"
    after = run_of(file(f"/{hostile}", content=f"{hostile}\n{hostile}\n"), file("/b", **{hostile: hostile}))
    before = run_of(file("/b", x=1), file(f"/{hostile}", content="a\nb\n"))
    for line in text.lines(compared(before, after), full=True):
        assert isinstance(line, Line)
        assert line.text.isprintable(), line
