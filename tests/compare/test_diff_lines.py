"""A comparison in lines for a console, and in rows for a list."""

from __future__ import annotations

import dataclasses
from typing import Any

from inspector.compare import diff_lines
from inspector.compare.diff_lines import TIMES, Line
from inspector.compare.times import TimeCompared
from inspector.runs.examples import catalog, content, metadata, report, slow, talk
from tests.support.compared import compared, file, run_of

BEFORE = run_of(file("/a", mode="1", content="one\ntwo\n"), facts={"uptime": "1", "os": {"name": "a"}})
AFTER = run_of(
    file("/a", mode="2", content="one\nthree\n", line=7),
    file("/b", owner="x"),
    facts={"uptime": "2", "os": {"name": "b"}},
)


def printed(*arguments: Any, **options: Any) -> list[str]:
    return [line.text for line in diff_lines.lines(compared(*arguments), **options)]


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
    many = [file(f"/{number}") for number in range(diff_lines.MOST + 3)]
    lines = printed(run_of(), run_of(*many))
    assert "  ... 3 more (--full)" in lines
    assert f"  + File[/{diff_lines.MOST - 1}]" in lines
    assert f"  + File[/{diff_lines.MOST}]" not in lines
    assert f"  + File[/{diff_lines.MOST}]" in printed(run_of(), run_of(*many), full=True)


def test_times_beyond_noise() -> None:
    resources = [file("/a")]
    before, after = talk(catalog(resources=resources), report()), talk(slow(catalog(resources=resources), 20), report())
    lines = printed(before, after)
    assert "  ~ request catalog: 200 ms -> 20.1 s  (+19.9 s, 100.5 times)" in lines


def test_what_is_not_compared() -> None:
    lines = printed(run_of(), talk(catalog(status=500, text="Server Error: no role"), report(result="failed")))
    assert "catalog: not compared: b.sqlite run 1 got no catalog" in lines
    assert "  ~ catalog: received -> got no catalog: no role" in lines


def test_words() -> None:
    rows: list[tuple[Any, str]] = [
        (None, "undef"), (True, "true"), ("a", '"a"'), (["a", 1], '["a", 1]'),
        ({"__ptype": "Deferred", "__pvalue": {"name": "f", "arguments": ["a", 1]}}, 'Deferred(f("a", 1))'),
        ({"__ptype": "SemVer", "__pvalue": "1.0.0"}, 'SemVer("1.0.0")'), ({"__ptype": "Default"}, "Default"),
        ({"__ptype": "Binary", "__pvalue": "3 bytes"}, "Binary(3 bytes)"), ("\x1b[2J", '"\\u001b[2J"'),
    ]  # fmt: skip
    for value, expected in rows:
        assert diff_lines.word(value) == expected, value


def test_nothing_reaches_a_terminal_raw() -> None:
    hostile = "\x1b[2J\u202e"
    after = run_of(file(f"/{hostile}", content=f"{hostile}\n{hostile}\n"), file("/b", **{hostile: hostile}))
    before = run_of(file("/b", x=1), file(f"/{hostile}", content="a\nb\n"))
    for line in diff_lines.lines(compared(before, after), full=True):
        assert isinstance(line, Line)
        assert line.text.isprintable(), line


NAME = "modules/m/f"


def test_rows_have_values_and_evidence() -> None:
    before = run_of(file("/a", mode="1", content="a\nb\n"), file("/gone"), facts={"uptime": 1})
    after = run_of(file("/a", mode="2", content="a\nc\n"), facts={"uptime": 2}, result="changed")
    found = diff_lines.rows(compared(before, after))
    assert [line.key for line in found] == list(range(len(found)))
    shown = [(line.section, line.what, line.before, line.after, line.counts) for line in found if line.section != TIMES]
    assert shown == [
        ("catalog", "File[/a]/mode", '"1"', '"2"', True),
        ("catalog", "File[/a]/content", "", "", True),
        ("catalog", "File[/gone]", "", "", True),
        ("facts", "uptime", "1", "2", False),
        ("report", "status", "unchanged", "changed", True),
    ]
    assert [line.proof.seq for line in found if line.proof] == [1, 1, 1, 1, 2]


def test_rows_of_files_and_requests() -> None:
    source = catalog(resources=[file("/f", source=f"puppet:///{NAME}")])
    before = talk(source, metadata(NAME, b"1"), content(NAME, b"1"), report())
    after = talk(source, metadata(NAME, b"2"), content(NAME, b"2"), content("modules/m/g"), report())
    found = diff_lines.rows(compared(before, after))
    proofs = {(line.section, line.what): line.proof.seq for line in found if line.proof}
    assert proofs["files", f"{NAME}/content"] == 3
    assert proofs["requests", "file_content modules/m/g"] == 4


def test_a_row_of_what_is_not_compared() -> None:
    failed = talk(catalog(status=500), report(result="failed"))
    (line,) = [line for line in diff_lines.rows(compared(run_of(), failed)) if line.what.startswith("not")]
    assert (line.section, line.what, line.change, line.counts) == (
        "catalog", "not compared: b.sqlite run 1 got no catalog", None, True,
    )  # fmt: skip
    assert line.proof is not None
    assert line.proof.seq == 1


def test_rows_of_times() -> None:
    resources = [file("/a")]
    before, after = talk(catalog(resources=resources), report()), talk(slow(catalog(resources=resources), 20), report())
    found = [line for line in diff_lines.rows(compared(before, after)) if line.section == TIMES]
    assert [(line.what, line.counts, line.note) for line in found] == [
        ("whole run", True, ""), ("phase catalog", True, ""), ("phase report", False, "less than 50 ms apart"),
        ("pause applying", False, "less than 2 times, of one run each"), ("request catalog", True, ""),
    ]  # fmt: skip
    assert (found[1].before, found[1].after) == ("200 ms", "20.1 s")


def test_a_time_is_shown_beside_what_is_usual() -> None:
    slow_one = TimeCompared("phase", "catalog", 1.0, 9.0, "", (1.0, 2.0))
    found = dataclasses.replace(compared(run_of(), run_of()), times=[slow_one])
    assert [(line.what, line.note) for line in diff_lines.rows(found)] == [("phase catalog", "usual: 1.0 s to 2.0 s")]
    assert "  ~ phase catalog: 1.0 s -> 9.0 s  (+8.0 s, 9.0 times; usual: 1.0 s to 2.0 s)" in [
        line.text for line in diff_lines.lines(found)
    ]
