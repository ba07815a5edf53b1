"""Rules of a site's own on the command line: they are tested, and appear wherever findings do."""

from __future__ import annotations

import contextlib
import json
import shutil
from typing import TYPE_CHECKING

import pytest

from inspector import rules
from inspector.summaries import index, indexer, ruleset
from inspector.summaries.indexed import IndexedCapture
from tests.support.json_output import valid
from tests.support.places import DOCS, SAMPLES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

PYTHON = DOCS / "examples/rules"


RULES = """\
rules:
  U01:
    title: slow catalog
    when: 'phase:catalog ms:>400'
    message: '{agent} waited {ms} ms for its catalog of {environment}'
"""


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "c.sqlite"
    shutil.copy(SAMPLES / "first-run.sqlite", path)
    return path


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "rules.yaml"
    path.write_text(RULES)
    return path


def test_a_rule_is_everywhere(run: Run, capture: Path, written: Path) -> None:
    sentence = "node1.example waited 461 ms for its catalog of production"
    option = ("--rules", str(written))
    _, text, _ = run("check", str(capture), *option)
    assert f"WARNING U01 slow catalog: {sentence}" in text
    assert "rules.yaml, line 2" in text
    sarif = json.loads(run("check", str(capture), *option, "--format", "sarif")[1])["runs"][0]
    assert any(rule["id"] == "U01" for rule in sarif["tool"]["driver"]["rules"])
    assert any(sentence in result["message"]["text"] for result in sarif["results"])
    assert sentence in run("check", str(capture), *option, "--format", "junit")[1]
    assert "U01" in run("list", str(capture), *option, "--filter", "rule:U01")[1]
    assert "U01" in run("runs", str(capture), *option)[1]
    assert "U01" in run("show", str(capture), "11", *option)[1]
    assert sentence in run("doctor", str(capture), *option)[1]
    assert "U01 slow catalog" in run("explain", "U01", *option)[1]
    (findings,) = [
        [found for found in value if found["rule"] == "U01"]
        for key, value in json.loads(run("check", str(capture), *option, "--json")[1]).items()
        if key == "findings"
    ]
    assert [found["title"] for found in findings] == ["slow catalog"]


def test_without_the_option_nothing_of_it_is_left(run: Run, capture: Path, written: Path) -> None:
    run("check", str(capture), "--rules", str(written))
    assert "U01" not in run("check", str(capture))[1]
    assert rules.in_use().arguments == ()
    status, _, err = run("explain", "U01")
    assert status == 2
    assert "There is no rule U01." in err


def test_an_index_of_other_rules_is_made_anew(capture: Path, written: Path, run: Run) -> None:
    indexer.build(capture, index.place(capture))
    try:
        rules.use(ruleset.load(written))
        with IndexedCapture.whole(capture) as found:
            assert found is None
        indexer.build(capture, index.place(capture))
        with IndexedCapture.whole(capture) as found:
            assert found is not None
    finally:
        rules.use(None)
    with IndexedCapture.whole(capture) as found:
        assert found is None
    assert "U01" not in run("check", str(capture))[1]


def test_a_wrong_rule_is_answered_with_its_line_and_costs_nothing_else(run: Run, capture: Path, written: Path) -> None:
    written.write_text(RULES + RULES.partition("\n")[2].replace("U01", "U02").replace("ms:>400", "mss:>400"))
    line = written.read_text().splitlines().index("    when: 'phase:catalog mss:>400'") + 1
    status, out, err = run("check", str(capture), "--rules", str(written))
    assert status == 0
    assert f"rules.yaml, line {line}: U02 is not applied. when: A filter has no key 'mss'" in err
    assert "U01 slow catalog" in out


def test_the_documented_rules_are_valid(run: Run) -> None:
    for path, count in ((DOCS / "examples/rules.yaml", 3), (PYTHON, 1), (PYTHON / "environment_not_allowed.py", 1)):
        status, out, err = run("rules", "test", str(path), "--json")
        assert (status, err) == (0, "")
        document = valid("rules", out)
        assert len(document["rules"]) == count
        assert document["mistakes"] == []
    page = (DOCS / "own-rules.md").read_text()
    assert (DOCS / "examples/rules.yaml").read_text() in page


def test_problems_of_rules_are_printed_and_are_status_1(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "rules"
    folder.mkdir(mode=0o755)
    text = (PYTHON / "environment_not_allowed.py").read_text()
    (folder / "a.py").write_text(text.replace('"feature_x"', '"staging"'))
    (folder / "b.py").write_text(text + "1 / 0\n")
    (folder / "c.py").write_text(text.replace('yield Statement(f"the', 'yield Statement(1 / 0, f"the'))
    status, out, _ = run("rules", "test", str(folder))
    assert status == 1
    assert out.splitlines()[0] == "1 rule, 3 problems"
    assert f"b.py, line {len(text.splitlines()) + 1}: ZeroDivisionError" in out
    assert "c.py: there is another rule U10" in out
    assert "U10 environment that this site does not use (a.py): bad example 1: it finds nothing" in out
    (folder / "a.py").unlink()
    status, out, _ = run("rules", "test", str(folder))
    assert "(c.py, line " in out
    valid("rules", run("rules", "test", str(folder), "--json")[1])


def test_bad_input_of_rules(run: Run, tmp_path: Path) -> None:
    empty = tmp_path / "empty.yaml"
    empty.write_text("rules: {B01: off}\n")
    folder = tmp_path / "none"
    folder.mkdir(mode=0o755)
    for words, what in (
        (("test", str(tmp_path / "nothing.yaml")), "cannot be read: No such file"),
        (("test", str(empty)), "There is no rule of your own in"),
        (("test", str(folder)), "There is no rule of your own in"),
        (("tset", str(empty)), "invalid choice"),
    ):
        status, _, err = run("rules", *words)
        assert status == 2
        assert what in err


def test_a_rule_that_fails_is_reported_once(run: Run, capture: Path, tmp_path: Path) -> None:
    folder = tmp_path / "rules"
    folder.mkdir(mode=0o755)
    text = (PYTHON / "environment_not_allowed.py").read_text().replace("at=(Kind.CATALOG,),", "")
    (folder / "c.py").write_text(text.replace("if case.run.environment", "if case.run.nothing"))
    for command in ("check", "runs", "doctor"):
        _, out, err = run(command, str(capture), "--rules-dir", str(folder))
        assert err.count("rule U10 failed (c.py, line ") == 1
        assert "Traceback" not in err
        assert "B01" in out
    with contextlib.suppress(FileNotFoundError):
        index.place(capture).unlink()
