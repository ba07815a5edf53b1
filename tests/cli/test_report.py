"""The command ``report``, and the pages of ``check`` and ``diff``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inspector.report import page
from tests.support.pages import sample

if TYPE_CHECKING:
    from tests.conftest import Run


def test_it_writes_one_file_for_its_owner_and_says_what_was_withheld(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "a.html"
    status, out, err = run("report", sample("first-run"), "-o", target)
    assert status == 0
    assert out.startswith(f"{target} written, ")
    assert err.startswith("puppet-inspector: withheld: ")
    assert target.stat().st_mode & 0o777 == 0o600
    assert target.read_text().startswith("<!DOCTYPE html>")
    status, _, err = run("report", sample("first-run"), "-o", target)
    assert (status, "already exists" in err) == (2, True)


def test_without_a_name_it_is_never_beside_the_capture(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    capture = tmp_path / "one.sqlite"
    capture.write_bytes(sample("revoked").read_bytes())
    assert run("report", capture)[0] == 0
    assert [path.name for path in Path().iterdir()] == ["one.html"]
    status, out, err = run("report", capture)
    assert (status, out) == (2, "")
    assert "already" in err
    assert run("share", capture)[0] == 0
    assert sorted(path.name for path in Path().iterdir()) == ["one-shared.sqlite", "one.html"]
    assert {path.name for path in tmp_path.iterdir()} <= {"here", "one.sqlite", "one.sqlite.index"}


@pytest.mark.parametrize("form", ["markdown", "json"])
def test_the_answer_goes_to_standard_output_or_a_file(run: Run, tmp_path: Path, form: str) -> None:
    status, out, err = run("report", sample("compile-error"), "--format", form)
    assert (status, err) == (0, "")
    assert "no role for this node" in out
    assert run("report", sample("compile-error"), "--format", form, "-o", tmp_path / "a")[0] == 0
    assert len((tmp_path / "a").read_text()) == len(out)


def test_json_has_no_other_name(run: Run) -> None:
    assert json.loads(run("report", sample("revoked"), "--json")[1])["answers"][0]["rule"] == "T05"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--run", "7"], "No run of"),
        (["--agent", "nobody"], "No run of"),
        (["--filter", "statu:404"], "A filter has no key 'statu'"),
        (["--filter", 'text:"a'], "The filter is not valid"),
        (["--with", "fact"], "--with does not know 'fact'"),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_no_file(
    run: Run, tmp_path: Path, words: list[str], sentence: str
) -> None:
    status, out, err = run("report", sample("revoked"), "-o", tmp_path / "a.html", *words)
    assert (status, out) == (2, "")
    assert err.startswith(f"puppet-inspector: {sentence}")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_exists_is_named_with_the_option_and_after_a_run_that_is_missing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.html").touch()
    words = ("report", sample("revoked"), "-o", tmp_path / "a.html")
    assert run(*words) == (
        2, "", f"puppet-inspector: {tmp_path}/a.html already exists.\n  Choose another name with -o.\n"
    )  # fmt: skip
    assert run(*words, "--run", "9")[2].startswith("puppet-inspector: No run of")


def test_a_file_that_is_no_capture(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.sqlite").write_text("nothing")
    assert run("report", tmp_path / "a.sqlite")[0] == 2
    assert run("report", tmp_path / "none.sqlite")[0] == 2


def test_a_large_page_is_advised_against(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "LARGE", 10)
    assert "--no-bodies makes it smaller" in run("report", sample("revoked"), "-o", tmp_path / "a.html")[1]
    assert "--no-bodies" not in run("report", sample("revoked"), "-o", tmp_path / "b.html", "--no-bodies")[1]


def test_check_prints_the_page_and_keeps_its_status(run: Run) -> None:
    status, out, _ = run("check", sample("revoked"), "--format", "html")
    assert (status, out.startswith("<!DOCTYPE html>")) == (1, True)
    assert run("check", sample("revoked"), "--format", "html", "--fail-on", "never")[0] == 0
    status, _, err = run("check", sample("revoked"), sample("first-run"), "--format", "html")
    assert (status, "merge" in err) == (2, True)


def test_diff_prints_a_page_in_which_values_are_withheld(run: Run) -> None:
    words = ["diff", f"{sample('first-run')}:1", f"{sample('out-of-sync')}:1"]
    status, out, _ = run(*words, "--format", "html")
    assert (status, out.startswith("<!DOCTYPE html>")) == (1, True)
    assert "rack A7" not in out
    assert "first-run.sqlite run 1" in out
    assert "rack A7" in run(*words, "--format", "html", "--with", "all")[1]
    assert "rack A7" in run(*words)[1]
    status, _, err = run(*words, "--with", "all")
    assert (status, err.splitlines()[1].strip()) == (2, "Add --format html, or leave it out: nothing is withheld.")
