"""A comparison as the lines of a list."""

from __future__ import annotations

from inspector.pages import difference_lines
from inspector.pages.difference_lines import TIMES
from inspector.runs.examples import catalog, content, metadata, report, slow, talk
from tests.support.compared import compared, file, run_of

NAME = "modules/m/f"


def test_values_and_proofs() -> None:
    before = run_of(file("/a", mode="1", content="a\nb\n"), file("/gone"), facts={"uptime": 1})
    after = run_of(file("/a", mode="2", content="a\nc\n"), facts={"uptime": 2}, result="changed")
    found = difference_lines.lines(compared(before, after))
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


def test_files_and_requests() -> None:
    source = catalog(resources=[file("/f", source=f"puppet:///{NAME}")])
    before = talk(source, metadata(NAME, b"1"), content(NAME, b"1"), report())
    after = talk(source, metadata(NAME, b"2"), content(NAME, b"2"), content("modules/m/g"), report())
    found = difference_lines.lines(compared(before, after))
    proofs = {(line.section, line.what): line.proof.seq for line in found if line.proof}
    assert proofs["files", f"{NAME}/content"] == 3
    assert proofs["requests", "file_content modules/m/g"] == 4


def test_what_is_not_compared() -> None:
    failed = talk(catalog(status=500), report(result="failed"))
    (line,) = [line for line in difference_lines.lines(compared(run_of(), failed)) if line.what.startswith("not")]
    assert (line.section, line.what, line.change, line.counts) == (
        "catalog", "not compared: b.sqlite run 1 got no catalog", None, True,
    )  # fmt: skip
    assert line.proof is not None
    assert line.proof.seq == 1


def test_times() -> None:
    resources = [file("/a")]
    before, after = talk(catalog(resources=resources), report()), talk(slow(catalog(resources=resources), 20), report())
    found = [line for line in difference_lines.lines(compared(before, after)) if line.section == TIMES]
    assert [(line.what, line.counts, line.note) for line in found] == [
        ("whole run", True, ""), ("phase catalog", True, ""), ("phase report", False, "less than 50 ms apart"),
        ("pause applying", False, "less than 2 times, of one run each"), ("request catalog", True, ""),
    ]  # fmt: skip
    assert (found[1].before, found[1].after) == ("200 ms", "20.1 s")
