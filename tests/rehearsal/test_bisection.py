"""The smallest set of facts on which a resource depends."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.rehearsal.bisection import smallest
from tests.support import json_output
from tests.support.compared import file, resource
from tests.support.rehearsals import failing, fleet, new_master

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from inspector.model import Response
    from tests.conftest import Run

FACTS = {f"fact{number}": f"value {number}" for number in range(20)} | {"password": "Xk29-hunter2-77Qz"}


@given(st.integers(1, 40), st.data())
def test_nothing_can_be_left_out(count: int, data: st.DataObject) -> None:
    needed = data.draw(st.sets(st.integers(0, count - 1), min_size=1))
    tried: list[Sequence[int]] = []

    def matter(some: Sequence[int]) -> bool:
        tried.append(some)
        return needed <= set(some)

    assert set(smallest(range(count), matter)) == needed
    assert len(tried) <= count * count + 3 * count


def compiles(_name: str, facts: dict[str, Any], _environment: str) -> list[dict[str, Any]] | Response:
    """A resource that depends on either of two facts, a secret one, and a fact without which nothing compiles."""
    if "fact9" not in facts:
        return failing()
    both = "fact3" in facts or "fact7" in facts
    return [file("/a", content="both" if both else "none"), file("/b", content=facts.get("password", "x"))]


@pytest.fixture
def words(tmp_path: Path) -> list[object]:
    return ["rehearse", fleet(tmp_path, "a.example", facts=FACTS), "-o", tmp_path / "new.sqlite"]


@pytest.mark.slow
def test_two_facts_of_many(run: Run, tmp_path: Path, words: list[object]) -> None:
    with new_master(tmp_path, compiles) as master:
        status, out, err = run(*words, *master.v4, "--drop-fact", "fact[0-8]", "--bisect-facts", "file[/a]")
    assert (status, err) == (1, "")
    assert f"file[/a] of a.example depends on 2 facts (9 facts changed, {len(master.received)} compiles)\n" in out
    assert '  fact3: "value 3" -> not there\n  fact7: "value 7" -> not there\nwhat they change\n' in out
    assert '  ~ File[/a]/content: "both" -> "none"' in out


def test_a_secret_is_not_shown(run: Run, tmp_path: Path, words: list[object]) -> None:
    with new_master(tmp_path, compiles) as master:
        extra = ["--drop-fact", "fact9", "--drop-fact", "password", "--bisect-facts", "File[/b]", "--json"]
        status, out, _ = run(*words, *master.v4, *extra)
    found = json_output.valid("rehearse", out)
    assert (status, [fact["name"] for fact in found["facts"]], found["candidates"]) == (1, ["password"], 2)
    assert "hunter2" not in out


def test_what_is_found_whatever_its_title_is(run: Run, tmp_path: Path) -> None:
    """Masked, renamed, and values that Python takes for equal."""
    token = "Exec[curl -u token=Abcdef123456 http://x]"

    def compiles(_name: str, facts: dict[str, Any], _environment: str) -> list[dict[str, Any]]:
        role = str(facts["role"])
        return [
            resource("Exec", "curl -u token=Abcdef123456 http://x", command=role),
            file("/etc/a" if role == "web" else "renamed", path="/etc/a"),
            resource("Notify", "n", message=str(facts["flag"])),
        ]

    source = fleet(tmp_path, "a.example", facts={"role": "web", "flag": True})
    with new_master(tmp_path, compiles) as master:
        asked = [("role=db", token), ("role=db", "File[/etc/a]"), ("flag=1", "Notify[n]")]
        for number, (given, ref) in enumerate(asked):
            output = tmp_path / f"{number}.sqlite"
            status, out, _ = run("rehearse", source, "-o", output, *master.v4, "--fact", given, "--bisect-facts", ref)
            assert (status, "depends on 1 fact" in out) == (1, True), out
    status, out, err = run("diff", output)
    assert "--resume" not in out + err, "it is no rehearsal to go on with"


def test_none(run: Run, tmp_path: Path, words: list[object]) -> None:
    with new_master(tmp_path, compiles) as master:
        status, out, _ = run(*words, *master.v4, "--drop-fact", "fact1", "--bisect-facts", "File[/a]")
    assert status == 0
    assert out.startswith("File[/a] of a.example depends on none of them (1 fact changed, 3 compiles)\n")


@pytest.mark.slow
def test_noise_is_no_dependency(run: Run, tmp_path: Path, words: list[object]) -> None:
    """A time changes with each compile; what is beside it may depend on facts all the same."""
    counter = itertools.count()

    def timed(_name: str, facts: dict[str, Any], _environment: str) -> list[dict[str, Any]]:
        return [
            file("/time", content=f"at {next(counter)}"),
            file("/both", content=f"at {next(counter)}\nfact {facts.get('fact3')}\n"),
        ]

    with new_master(tmp_path, timed) as master:
        extra = ["--drop-fact", "fact*", "--bisect-facts"]
        status, out, _ = run(*words, *master.v4, *extra, "File[/time]")
        words[-1] = tmp_path / "second.sqlite"
        other, found, _ = run(*words, *master.v4, *extra, "File[/both]", "--json")
    assert (status, out.splitlines()[:2]) == (0, [
        "left out: File[/time]/content differs between two compiles with the recorded facts",
        "File[/time] of a.example depends on none of them (20 facts changed, 23 compiles)",
    ])  # fmt: skip
    answer = json_output.valid("rehearse", found)
    assert (other, [fact["name"] for fact in answer["facts"]]) == (1, ["fact3"])
    assert answer["noise"] == ["File[/both]/content"]


def test_mistakes(run: Run, tmp_path: Path, words: list[object]) -> None:
    with new_master(tmp_path, compiles) as master:
        for extra, sentence in (
            (["--bisect-facts", "File[/a]"], "--bisect-facts needs facts that are changed."),
            (["--bisect-facts", "File[/a]", "--drop-fact", "x", "--junit", "j"], "--bisect-facts cannot be used with"),
            (["--bisect-facts", "motd", "--drop-fact", "fact1"], "'motd' is no resource."),
            (["--bisect-facts", "File[/c]", "--drop-fact", "fact1"], "File[/c] is not in the catalog."),
            (["--bisect-facts", "File[/a]", "--drop-fact", "fact9"], "With other values of 1 fact there is no"),
        ):
            (tmp_path / "new.sqlite").unlink(missing_ok=True)
            status, out, err = run(*words, *master.v4, *extra)
            assert (status, out) == (2, "")
            assert err.startswith(f"puppet-inspector: {sentence}"), err
        (tmp_path / "new.sqlite").unlink()
    (tmp_path / "again").mkdir()
    two = fleet(tmp_path / "again", "a.example", "b.example")
    with new_master(tmp_path / "again", compiles) as master:
        status, _, err = run("rehearse", two, *words[2:], *master.v4, "--drop-fact", "x", "--bisect-facts", "File[/a]")
    assert (status, "for one node, and there are 2" in err) == (2, True)
