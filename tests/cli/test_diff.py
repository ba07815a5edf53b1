"""``puppet-inspector diff``: its output, its exit status, its mistakes."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from inspector.runs.examples import catalog, report, talk, together
from tests.support import json_output, places
from tests.support.captures import save
from tests.support.compared import file, run_of
from tests.support.terminals import pretend

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

SYNC = places.SAMPLES / "out-of-sync.sqlite"
ERROR = places.SAMPLES / "compile-error.sqlite"
FIRST = places.SAMPLES / "first-run.sqlite"
WAITING = places.SAMPLES / "bootstrap-waiting.sqlite"


@pytest.fixture
def fleet(tmp_path: Path) -> list[Path]:
    """Two captures of three nodes: two changed in the same way, one did not."""

    def capture(name: str, mode: str) -> Path:
        talks = []
        for at, node in enumerate(("a.example", "b.example", "same.example")):
            resources = [file("/etc/x", mode="0" if node == "same.example" else mode)]
            talks.append(talk(catalog(resources=resources), report(), certname=node, after=at * 100))
        return save(tmp_path / f"{name}.sqlite", *together(*talks))

    return [capture("a", "1"), capture("b", "2")]


def test_two_runs(run: Run) -> None:
    status, out, err = run("diff", f"{FIRST}:1", f"{SYNC}:2")
    assert (status, err) == (1, "")
    assert "  ~ Class[Demo]/notice: true -> false\n" in out
    assert "  - Notify[role web, rack A7]\n" in out


def test_no_difference(run: Run) -> None:
    status, out, err = run("diff", f"{SYNC}:1", f"{SYNC}:1")
    assert (status, err) == (0, "")
    assert "\nno difference: run, findings, catalog (12 resources), files (13 files), facts (25 values)" in out


def test_one_capture(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run("diff", f"{SYNC}:1", f"{SYNC}:2")
    assert run("diff", SYNC) == expected
    assert run("diff", f"{SYNC}:2") == expected
    assert run("diff", SYNC, "--agent", "node1.*") == expected
    (tmp_path / "captures").mkdir()
    shutil.copy(SYNC, tmp_path / "captures")
    monkeypatch.chdir(tmp_path)
    assert run("diff") == expected


def test_the_node_that_failed_and_the_others(run: Run, tmp_path: Path) -> None:
    talks = []
    for at, node in enumerate(("a.example", "b.example", "well.example")):
        good = talk(catalog(resources=[file("/x")]), report(), certname=node, after=at * 100)
        last = catalog(resources=[file("/x")], uuid="2") if node == "well.example" else catalog(status=500, uuid="2")
        result = report(uuid="2", result="unchanged" if node == "well.example" else "failed")
        talks += [good, talk(last, result, certname=node, after=7200 + at * 100)]
    path = save(tmp_path / "c.sqlite", *together(*talks))
    _, out, _ = run("diff", path)
    assert "run 5  " in out.splitlines()[1]
    assert "  b.example  failed" in out.splitlines()[1]
    assert out.endswith("\nother nodes whose latest run did not go well (--agent NAME): a.example\n")
    assert "other nodes" not in run("diff", path, "--agent", "b.example")[1]


def test_two_captures(run: Run) -> None:
    expected = run("diff", f"{FIRST}:1", f"{SYNC}:2")
    assert run("diff", FIRST, SYNC) == expected
    assert run("diff", f"{FIRST}:1", SYNC) == expected
    assert run("diff", FIRST, f"{SYNC}:2") == expected


def test_a_run_without_a_catalog(run: Run) -> None:
    status, out, err = run("diff", SYNC, ERROR)
    assert status == 2
    assert "\nfailed: compile-error.sqlite run 1\n  node1.example failed: S01 no catalog for node1.example" in out
    assert "  never got that far: 8 files, 10 requests (--full)\n" in out
    assert "  ~ outcome: complete -> failed\n" not in out
    assert "  ~ outcome: complete -> failed\n" in run("diff", SYNC, ERROR, "--full")[1]
    assert "\ncatalog: not compared: compile-error.sqlite run 1 got no catalog\n" in out
    assert err == ("puppet-inspector: The catalogs were not compared: compile-error.sqlite run 1 got no catalog.\n")


def test_an_empty_catalog(run: Run, tmp_path: Path) -> None:
    path = save(tmp_path / "c.sqlite", *talk(catalog(), report()))
    status, _, err = run("diff", f"{path}:1", f"{path}:1")
    assert status == 2
    assert "c.sqlite run 1 has an empty catalog" in err


def test_json(run: Run) -> None:
    status, out, _ = run("diff", SYNC, ERROR, "--json")
    fields = json_output.valid("diff", out)
    assert (status, fields["status"]) == (2, 2)
    assert fields["not_compared"] == {"catalog": "compile-error.sqlite run 1 got no catalog"}


def test_several_nodes(run: Run, fleet: list[Path]) -> None:
    status, out, err = run("diff", *fleet)
    assert (status, err) == (1, "")
    assert "the same change on 2 nodes: a.example, b.example\n" in out
    assert "without a change: 1 node: same.example\n" in out
    status, out, _ = run("diff", *fleet, "--json")
    (group,) = json_output.valid("diff", out)["groups"]
    assert group["nodes"] == ["a.example", "b.example"]
    assert run("diff", *fleet, "--agent", "s*")[0] == 0
    assert run("diff", *fleet, "--ignore", "*/mode")[0] == 0


def test_several_nodes_of_one_capture(run: Run, fleet: list[Path]) -> None:
    status, out, _ = run("diff", fleet[0], "--agent", "*")
    assert status == 2  # each has one run only
    assert "not compared, with one run only: 3 nodes" in out


def test_nodes_with_a_run_on_one_side_are_always_listed(run: Run, tmp_path: Path) -> None:
    """Also where one node only is on both: those that did not come back are what is looked for."""
    made = {
        name: talk(catalog(resources=[file("/a")]), report(), certname=name, after=at * 100)
        for at, name in enumerate(("a.example", "b.example", "c.other"))
    }
    before = save(tmp_path / "a.sqlite", *together(*made.values()))
    after = save(tmp_path / "b.sqlite", *made["a.example"])
    status, out, _ = run("diff", before, after)
    assert status == 1
    assert "without a change: 1 node: a.example\nwith a run before only: 2 nodes: b.example, c.other\n" in out
    status, out, _ = run("diff", after, before, "--agent", "*.example", "--json")
    found = json_output.valid("diff", out)
    assert (status, found["only_before"], found["only_after"]) == (1, [], ["b.example"])
    assert run("diff", before, after, "--agent", "a.example")[0] == 0


def test_what_is_not_grouped_is_counted(run: Run, tmp_path: Path) -> None:
    sides = []
    for side, kernel in (("a", "6.1"), ("b", "6.12")):
        nodes = []
        for at, name in enumerate("xyz"):
            part = catalog(resources=[file("/a")], facts={"kernelrelease": kernel if name == "x" else "6.1"})
            nodes.append(talk(part, report(), certname=f"{name}.example", after=at * 100))
        sides.append(save(tmp_path / f"{side}.sqlite", *together(*nodes)))
    status, out, _ = run("diff", *sides)
    assert status == 1
    assert "3 nodes compared: 0 changed, 3 without a change\n" in out
    assert "facts: different on 1 node: x.example\n" in out
    status, out, _ = run("diff", *sides, "--json")
    assert json_output.valid("diff", out)["other_sections"] == {"facts": ["x.example"]}
    assert run("diff", *sides, "--agent", "x.example")[0] == 1
    assert run("diff", *sides, "--ignore", "facts:kernelrelease")[0] == 0


def test_what_is_ignored(run: Run, tmp_path: Path) -> None:
    before = save(tmp_path / "a.sqlite", *run_of(file("/a", mode="1"), facts={"x": 1, "uptime": 1}))
    after = save(tmp_path / "b.sqlite", *run_of(file("/a", mode="2"), facts={"x": 2, "uptime": 2}))
    patterns = tmp_path / "patterns"
    patterns.write_text("# site\nfacts:x\n")
    assert run("diff", before, after, "--ignore", "*/mode")[0] == 1
    status, out, _ = run("diff", before, after, "--ignore", "*/mode", "--ignore-file", patterns)
    assert (status, "facts (3 values, 1 volatile one differs, 1 ignored)" in out) == (0, True)
    assert run("diff", before, after, "--ignore", "*/mode", "--volatile", "x")[0] == 0
    assert run("diff", before, before, "--volatile", "none")[0] == 0
    status, out, _ = run("diff", before, after, "--ignore", "*/mode", "--volatile", "none")
    assert "  ~ uptime: 1 -> 2\n" in out


def test_tags(run: Run, tmp_path: Path) -> None:
    sides = [save(tmp_path / f"{tag}.sqlite", *run_of(file("/a") | {"tags": [tag]})) for tag in ("x", "y")]
    assert run("diff", *sides)[0] == 0
    assert run("diff", *sides, "--tags")[0] == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{}/none.sqlite"], "There is no capture at"),
        (["{}/none.sqlite:3"], "There is no capture at"),
        (["{}/a.sqlite:99"], "has no run 99."),
        (["{}/a.sqlite:1", "{}/a.sqlite:2", "{}/a.sqlite:1"], "Two runs are compared at a time."),
        (["{}/a.sqlite", "--agent", "nobody"], "has no runs of 'nobody'."),
        (["{}/a.sqlite:1", "--agent", "nobody"], "is one of node1.example, not of 'nobody'."),
        (["{}/a.sqlite", "{}/other.sqlite"], "have no agent in common."),
        (["{}/a.sqlite:1", "{}/other.sqlite"], "has no run of node1.example."),
        (["{}/a.sqlite:1"], "No earlier run of node1.example"),
        (["{}/other.sqlite"], "has only one run of node2.example"),
        (["{}/none"], "There is no capture at"),
        (["{}/text.sqlite"], "is not a capture"),
        (["{}/a.sqlite", "--ignore-file", "{}/none"], "Cannot read"),
        (["{}/a.sqlite", "--ignore-file", "{}/a.sqlite"], "is not text."),
    ],
)
def test_mistakes(run: Run, tmp_path: Path, words: list[str], message: str) -> None:
    shutil.copy(SYNC, tmp_path / "a.sqlite")
    shutil.copy(WAITING, tmp_path / "other.sqlite")
    (tmp_path / "text.sqlite").write_text("no capture " * 100)
    status, out, err = run("diff", *(word.replace("{}", str(tmp_path)) for word in words))
    lines = err.splitlines()
    assert (status, out, len(lines)) == (2, "", 2), err
    assert message in lines[0]
    assert lines[1].startswith("  ")


def test_a_name_that_ends_like_a_run(run: Run, tmp_path: Path) -> None:
    shutil.copy(SYNC, tmp_path / "capture:1")
    assert run("diff", tmp_path / "capture:1")[0] == 1
    assert run("diff", f"{tmp_path / 'capture:1'}:1", f"{tmp_path / 'capture:1'}:1")[0] == 0


def test_a_terminal(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend(monkeypatch, 60)
    _, out, _ = run("diff", f"{FIRST}:1", f"{SYNC}:2")
    assert "\x1b[33m  ~ Class[Demo]/notice: true -> false\x1b[0m\n" in out
    long = f"/etc/{'x' * 70}"
    before = save(tmp_path / "a.sqlite", *run_of(file(long, mode="1", content=f"{'a ' * 50}\nb\n")))
    after = save(tmp_path / "b.sqlite", *run_of(file(long, mode="2", content=f"{'a ' * 50}\nc\n")))
    _, out, _ = run("diff", before, after)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", out).splitlines()
    assert f"  ~ File[{long}]/mode:" in lines  # the sign stands before its name
    assert f"       {'a ' * 50}" in lines  # a line of a text is not wrapped
