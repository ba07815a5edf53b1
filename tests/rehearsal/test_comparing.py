"""Answers compared with what agents received: noise of both masters, logs, what v4 cannot show."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from inspector.rehearsal import comparing
from inspector.runs.examples import catalog, report, talk, together
from tests.support import json_output
from tests.support.captures import save
from tests.support.compared import decoded, file, found
from tests.support.rehearsals import failing, fleet, new_master, rehearsed, usual

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.model import Response
    from tests.conftest import Run


def test_noise_is_left_out(run: Run, tmp_path: Path) -> None:
    counter = itertools.count()

    def random(*words: Any) -> list[dict[str, Any]]:
        return [*usual(*words), file("/etc/random", content=str(next(counter)))]

    recorded = [*usual("a.example", {}, ""), file("/etc/random", content="x")]
    capture = save(tmp_path / "a.sqlite", *talk(catalog(resources=recorded), report(), certname="a.example"))
    with new_master(tmp_path, random) as master:
        status, out = rehearsed(run, tmp_path, master, capture, "--twice")
    assert (status, len(master.received)) == (0, 2)
    assert "noise: 1 difference of 1 node left out: two compiles of the same have them" in out
    assert "1 node compared: 0 changed, 1 without a change" in out


def test_a_difference_beside_noise_stays(run: Run, tmp_path: Path) -> None:
    counter = itertools.count()

    def random(*_: Any) -> list[dict[str, Any]]:
        return [file("/etc/always"), file("/etc/name", content="other"), file("/etc/r", content=str(next(counter)))]

    with new_master(tmp_path, random) as master:
        status, out = rehearsed(run, tmp_path, master, fleet(tmp_path, "a.example"), "--twice")
    assert status == 1
    assert '~ File[/etc/name]/content: "a.example" -> "other"' in out


def test_what_is_beside_noise_counts(run: Run, tmp_path: Path) -> None:
    """A title with the time in it, and a text with a time and a line that changes."""
    counter = itertools.count(1)

    def made(number: int, workers: int) -> list[dict[str, Any]]:
        title = {"type": "Notify", "title": f"built at 10:{number:02}:07", "parameters": {}}
        return [
            title,
            file("/etc/w", content=f"# made at {number}\nworkers {workers}\n"),
            file("/etc/r", content=number),
        ]

    capture = save(tmp_path / "a.sqlite", *talk(catalog(resources=made(0, 4)), report(), certname="a.example"))
    with new_master(tmp_path, lambda *_: made(next(counter), 8)) as master:
        status, out = rehearsed(run, tmp_path, master, capture, "--twice")
    assert status == 1
    assert "-workers 4" in out
    assert "+workers 8" in out
    assert "noise: 3 differences of 1 node left out" in out
    assert "    Notify[built at 10:00:07]: a.example\n" in out
    assert "1 change on 1 node" in out


@pytest.mark.slow
def test_noise_of_the_old_master_is_left_out(run: Run, tmp_path: Path) -> None:
    """Random there and constant here: only two compiles of the old master show that it is noise."""
    counter = itertools.count()

    def old(certname: str, *_: Any) -> list[dict[str, Any]] | Response:
        if certname == "b.example":
            return failing()
        return [*usual(certname, {}, ""), file("/etc/random", content=str(next(counter)))]

    def new(certname: str, *_: Any) -> list[dict[str, Any]]:
        return [*usual(certname, {}, ""), file("/etc/random", content="fixed")]

    nodes = [
        talk(catalog(resources=[*usual(name, {}, ""), file("/etc/random", content="x")]), report(), certname=name)
        for name in ("a.example", "b.example")
    ]
    capture = save(tmp_path / "a.sqlite", *together(*nodes))
    with new_master(tmp_path, new) as master, new_master(tmp_path, old, name="old", ca=master.ca) as before:
        words = ["--twice", "--old-master", before.address]
        status, out = rehearsed(run, tmp_path, master, capture, *words)
        _, listed, _ = run("rehearse", capture, *words, *master.v4, "-o", tmp_path / "j.sqlite", "--json")
    assert status == 1
    assert len(before.received) == len(master.received) == 8  # two nodes, twice, in two rehearsals
    assert (
        f"  noise: 1 difference of 1 node left out: two compiles of the same by {master.address} or {before.address} "
        "have them\n    File[/etc/random]/content: a.example\n"
        f"  noise of {before.address} not known: 1 node got no catalog: b.example\n"
    ) in out
    assert "without a change: 1 node: a.example" in out
    assert '1 change on 1 node: b.example\n  ~ File[/etc/random]/content: "x" -> "fixed"' in out
    found = json_output.valid("rehearse", listed)
    assert found["old_master"] == before.address
    left_out = [{"address": "File[/etc/random]/content", "nodes": ["a.example"]}]
    assert found["noise"] == {
        "differences": 1, "nodes": ["a.example"], "not_measured": ["b.example"], "left_out": left_out
    }  # fmt: skip


def test_what_the_master_logs(run: Run, tmp_path: Path) -> None:
    logs = [
        {"level": "warning", "message": "deprecated on \x1b[31m a.example", "file": "/m/site.pp", "line": 3},
        {"level": "err", "message": "secret is hunter2hunter2"},
    ]  # fmt: skip
    secret = [file("/etc/s", content="hunter2hunter2", sensitive=["content"])]
    recorded = talk(catalog(resources=secret), report(), certname="a.example")
    capture, cases = save(tmp_path / "a.sqlite", *recorded), tmp_path / "j.xml"
    with new_master(tmp_path, lambda *_: secret, logs=logs) as master:
        status, out = rehearsed(run, tmp_path, master, capture, "--junit", cases)
        _, listed, _ = run("rehearse", capture, *master.v4, "-o", tmp_path / "j.sqlite", "--json")
    assert status == 0
    assert out.partition("\nwhat the master logged while it compiled\n")[2].splitlines()[:4] == [
        "  err secret is MASKED", "    1 node: a.example",
        "  warning deprecated on \\x1b[31m a.example  (/m/site.pp:3)", "    1 node: a.example",
    ]  # fmt: skip
    found = json_output.valid("rehearse", listed)["logs"]
    assert [(each["level"], each["place"], each["nodes"]) for each in found] == [
        ("err", None, ["a.example"]), ("warning", "/m/site.pp:3", ["a.example"]),
    ]  # fmt: skip
    assert "hunter2" not in out + listed + cases.read_text()
    assert "err secret is MASKED\nwarning deprecated on \\x1b[31m a.example  (/m/site.pp:3)" in cases.read_text()


def test_a_deferred_that_v4_shows_as_text_is_no_difference(run: Run, tmp_path: Path) -> None:
    deferred = {"__ptype": "Deferred", "name": "sprintf", "arguments": ["a"]}
    resources = [file("/etc/d", content=deferred), file("/etc/e", content=deferred)]
    answer = [file("/etc/d", content="Deferred({'name' => 'sprintf'})"), file("/etc/e", content="other")]
    capture = save(tmp_path / "a.sqlite", *talk(catalog(resources=resources), report(), certname="a.example"))
    with new_master(tmp_path, lambda *_: answer) as master:
        status, out = rehearsed(run, tmp_path, master, capture)
    assert status == 1
    assert "not compared: 1 Deferred value: v4 shows them as text before 8.10" in out
    assert "File[/etc/e]/content" in out
    assert "File[/etc/d]" not in out


def test_a_deferred_that_v4_answers_as_it_is_is_compared(run: Run, tmp_path: Path) -> None:
    """As Puppet Server 8.7 does."""
    resources = [file(path, content=DEFERRED) for path in ("/etc/d", "/etc/e")]
    answer = [file("/etc/d", content=DEFERRED), file("/etc/e", content=DEFERRED | {"arguments": ["b"]})]
    capture = save(tmp_path / "a.sqlite", *talk(catalog(resources=resources), report(), certname="a.example"))
    with new_master(tmp_path, lambda *_: answer) as master:
        status, out = rehearsed(run, tmp_path, master, capture)
    assert status == 1
    assert "Deferred value" not in out
    assert "File[/etc/e]/content" in out
    assert "File[/etc/d]" not in out


# -- Deferred values -------------------------------------------------------------------------------------------

DEFERRED = {"__ptype": "Deferred", "name": "sprintf", "arguments": ["a"]}
TEXT = "Deferred({'name' => 'sprintf', 'arguments' => ['a']})"


def restored(before: Any, after: Any, **marks: Any) -> tuple[int, int]:
    """How many values were restored, and how many differences there are then."""
    recorded = decoded([file("/a", content=before)])
    answer, count = comparing.with_deferred(
        recorded, decoded([file("/A", content="x"), file("/a", content=after, **marks)])
    )
    return count, len([each for each in found(recorded, answer).found if each.name == "File[/a]"])


def test_wherever_a_deferred_is() -> None:
    assert restored(DEFERRED, TEXT) == (1, 0)
    assert restored(["x", {"y": DEFERRED}, DEFERRED], ["x", {"y": TEXT}, TEXT]) == (2, 0)
    secret = {"__ptype": "Sensitive", "__pvalue": DEFERRED}
    assert restored(secret, TEXT, sensitive=["content"]) == (1, 0)
    assert restored(secret, {"__ptype": "Sensitive", "__pvalue": TEXT}) == (1, 0)


def test_what_is_different_beside_it_stays() -> None:
    assert restored(["x", DEFERRED], ["y", TEXT]) == (1, 1)
    assert restored(DEFERRED, "other") == (0, 1)
    assert restored([DEFERRED], [TEXT, "more"]) == (0, 1)
    assert restored({"a": DEFERRED, "b": 1}, {"a": TEXT}) == (1, 1)
    assert restored("text", TEXT) == (0, 1)
    assert restored(None, TEXT) == (0, 1)


def test_deep_values_end() -> None:
    before: Any = DEFERRED
    after: Any = TEXT
    for _ in range(500):
        before, after = [before], [after]
    assert restored(before, after)[0] == 0
