"""``reduce``: the smallest capture that shows a finding; every mistake is one sentence, and nothing is lost."""

from __future__ import annotations

import os
import shutil
import signal
from typing import TYPE_CHECKING

import pytest

from inspector.capture.store import Capture
from inspector.formats.reduction import Effort
from inspector.runs.examples import catalog, node, plugins, report, talk, together
from tests.support import json_output, places
from tests.support.captures import save

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run


@pytest.fixture
def failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A node whose catalog is not compiled, another one that is well."""
    monkeypatch.chdir(tmp_path)
    return save(tmp_path / "failed.sqlite", *together(
        talk(node(), plugins(), catalog(status=500, text="no role Zwiebel"), report(result="failed")),
        talk(node(), plugins(), catalog(), report(), certname="well.example", after=90),
    ))  # fmt: skip


def test_it_says_what_is_left_and_that_the_verdict_is_the_same(run: Run, failed: Path, tmp_path: Path) -> None:
    status, out, err = run("reduce", failed)
    assert (status, err) == (0, "")
    made = tmp_path / "failed-reduced.sqlite"
    assert made.stat().st_mode & 0o777 == 0o600
    first, before, after, tried, *_ = out.splitlines()
    assert first.startswith("1 record of 8, ")
    assert first.endswith("written to failed-reduced.sqlite, without secrets and with pseudonyms")
    assert before.startswith("before run 1: ")
    assert after.startswith("after run 1: agent1.example failed: ")
    assert before.split()[5] == after.split()[5], "the rule"
    assert tried.endswith("without any one of these parts it would not show that")
    assert run("check", made)[0] == 1


def test_json(run: Run, failed: Path) -> None:
    status, out, _ = run("reduce", failed, "-o", "made.sqlite", "--json")
    assert status == 0
    made = json_output.valid("reduce", out)
    assert (made["capture"], made["ended"], made["is_cause"]) == ("made.sqlite", "smallest", True)
    assert (made["before"]["records"], made["after"]["records"]) == (8, 1)
    assert made["before"]["verdict"].partition(": ")[2][:3] == made["after"]["verdict"].partition(": ")[2][:3]
    assert made["rule"] in made["after"]["verdict"]
    assert made["severity"] == "error"


def test_a_finding_that_is_no_cause(run: Run, failed: Path) -> None:
    status, out, _ = run("runs", failed, "--json")
    found = json_output.strict(out)
    rule = next(one["rule"] for one in found[0]["findings"] if one["rule"] != found[0]["verdict"]["cause"])
    status, out, _ = run("reduce", failed, "--rule", rule.lower(), "--run", 1)
    assert status == 0
    assert out.count(f" {rule} ") >= 2


def test_texts_are_opened(run: Run, failed: Path) -> None:
    assert "--with facts,logs opens" in run("reduce", failed, "-o", "closed.sqlite")[1]
    status, out, _ = run("reduce", failed, "-o", "opened.sqlite", "--with", "logs")
    assert status == 0
    assert "no role Zwiebel" in out.splitlines()[2]
    assert out.splitlines()[-1] == "review the copy before you pass it on"


MISTAKES = {
    ("--rule", "X99"): "There is no rule X99.",
    ("--rule", "T20"): "failed.sqlite shows nothing of rule T20.",
    ("--run", "9"): "failed.sqlite has no run 9.",
    ("--run", "0"): "failed.sqlite has no run 0.",
    ("--budget", "-1"): "--budget -1 is no time to wait.",
    ("--budget", "nan"): "--budget nan is no time to wait.",
    ("--budget", "inf"): "--budget inf is no time to wait.",
    ("--with", "secrets"): "--with does not know 'secrets'.",
    ("-o", "there.sqlite"): "there.sqlite already exists.",
}


@pytest.mark.parametrize("words", MISTAKES, ids=" ".join)
def test_a_mistake_is_a_sentence_and_nothing_is_written(run: Run, failed: Path, words: tuple[str, str]) -> None:
    there = failed.with_name("there.sqlite")
    there.write_text("kept")
    before = sorted(failed.parent.iterdir())
    status, out, err = run("reduce", failed.name, *words)
    assert (status, out) == (2, "")
    sentence, hint = err.splitlines()
    assert sentence == f"puppet-inspector: {MISTAKES[words]}"
    assert hint.startswith("  ")
    assert (sorted(failed.parent.iterdir()), there.read_text()) == (before, "kept")


def test_captures_that_cannot_be_reduced(run: Run, failed: Path, tmp_path: Path) -> None:
    save(tmp_path / "empty.sqlite")
    shutil.copy(places.SAMPLES / "README.md", tmp_path / "text.sqlite")
    (tmp_path / "packed.sqlite").write_bytes(b"\x28\xb5\x2f\xfd" + failed.read_bytes())
    for name, sentence in {
        "empty": "empty.sqlite shows no deviation: there is nothing to reduce it to.",
        "text": "text.sqlite is not a capture.",
        "packed": "packed.sqlite is not a capture.",
        "none": "There is no capture at none.sqlite.",
    }.items():
        status, out, err = run("reduce", f"{name}.sqlite", "-o", "new.sqlite")
        assert (status, out, err.splitlines()[0]) == (2, "", f"puppet-inspector: {sentence}")
    assert not (tmp_path / "new.sqlite").exists()


def test_a_shared_capture_is_reduced_as_well(run: Run, failed: Path) -> None:
    assert run("share", failed, "-o", "shared.sqlite")[0] == 0
    status, out, err = run("reduce", "shared.sqlite", "--with", "all")
    assert (status, err) == (0, "puppet-inspector: shared.sqlite was shared: what it withholds stays withheld\n")
    assert out.startswith("1 record of 8, ")
    status, out, err = run("reduce", "shared-reduced.sqlite", "-o", "again.sqlite")
    assert (status, out.split(",")[0]) == (0, "1 record of 1")


def test_several_captures_are_read_as_one(run: Run, failed: Path) -> None:
    other = save(failed.with_name("other.sqlite"), *talk(node(), certname="c.example"))
    status, out, err = run("reduce", failed, other, "-o", "new.sqlite")
    assert (status, out.split(",")[0]) == (0, "1 record of 9")
    assert "2 captures are read as one" in err
    assert run("reduce", failed, other, "--run", 1)[2].startswith("puppet-inspector: 2 captures may each have a run 1.")


def test_ctrl_c_writes_what_was_reached(run: Run, failed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = Effort.tried
    sent: list[int] = []

    def interrupted(self: Effort, *arguments: object) -> bool:
        if self.tries == 2 and not sent:
            sent.append(1)
            os.kill(os.getpid(), signal.SIGINT)
        return tried(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Effort, "tried", interrupted)
    status, out, err = run("reduce", failed)
    assert (status, err) == (130, "")
    assert "it was interrupted: reduce it again to go on" in out
    with Capture.open("failed-reduced.sqlite") as capture:
        assert capture.count() > 0
        assert "shared" in capture.meta()


@pytest.mark.parametrize(("before", "after"), [(1, 0), (0, 2)], ids=["before anything is reached", "the second time"])
def test_ctrl_c_ends_it(run: Run, failed: Path, monkeypatch: pytest.MonkeyPatch, before: int, after: int) -> None:
    tried = Effort.tried

    def interrupted(self: Effort, *arguments: object) -> bool:
        for _ in range(before):
            os.kill(os.getpid(), signal.SIGINT)
        enough = tried(self, *arguments)  # type: ignore[arg-type]
        for _ in range(after):
            os.kill(os.getpid(), signal.SIGINT)
        return enough

    monkeypatch.setattr(Effort, "tried", interrupted)
    assert run("reduce", failed) == (130, "", "")
    assert [path.name for path in failed.parent.iterdir()] == ["failed.sqlite"]
