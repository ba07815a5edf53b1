"""Rules that a site writes in Python: which files are executed, and what is wrong with them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from inspector import rules
from inspector.errors import InspectorError
from inspector.model import Severity
from inspector.summaries import rule_files, ruleset
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

TEXT = (ROOT / "docs/examples/rules/environment_not_allowed.py").read_text()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "rules"
    made.mkdir(mode=0o755)
    (made / "one.py").write_text(TEXT)
    return made


def messages(folder: Path) -> tuple[str, ...]:
    return ruleset.load(None, folder).warnings


def test_the_rules_of_a_directory(folder: Path) -> None:
    (folder / "two.py").write_text(TEXT.replace("U10", "U02"))
    (folder / "notes.txt").write_text("no rule")
    loaded = ruleset.load(None, folder)
    assert [rule.id for rule in loaded.rules[-2:]] == ["U02", "U10"]
    assert loaded.warnings == ()
    assert loaded.rules[-1].source == "one.py"
    assert loaded.arguments == ("--rules-dir", str(folder))
    assert "U10" not in {rule.id for rule in rules.all_rules()}


def test_the_rules_file_configures_them(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text("rules: {U10: notice, U11: off}\n")
    loaded = ruleset.load(path, folder)
    assert loaded.rules[-1].chosen is Severity.NOTICE
    (warning,) = loaded.warnings
    assert warning.startswith(f"{path}, line 1: U11 is not defined: here it has no title")
    path.write_text("rules: {U10: off}\n")
    assert "U10" not in {rule.id for rule in ruleset.load(path, folder).rules}


def test_another_content_is_another_digest(folder: Path) -> None:
    before = ruleset.load(None, folder).digest
    (folder / "one.py").write_text(TEXT.replace("staging", "testing"))
    assert ruleset.load(None, folder).digest != before


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("x = 1\ny = = 2\n", "bad.py, line 2: invalid syntax"),
        ("\n\n1 / 0\n", "bad.py, line 3: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(3)\n", "bad.py, line 2: SystemExit: 3"),
        ("import nothing_of_that_name\n", "bad.py, line 1: ModuleNotFoundError"),
        ("", "bad.py: there is no rule in it"),
        (TEXT.replace("U10", "B01"), "the id 'B01' must be U and a number"),
        (TEXT.replace("U10", "U1"), "the id 'U1' must be U and a number"),
        (TEXT.replace('"U10"', "10"), "bad.py"),
        (TEXT.replace('    title="environment that this site does not use",\n', ""), "missing 1 required keyword-only"),
        (TEXT.replace('title="environment that this site does not use"', "title=''"), "U10 needs a title"),
        (TEXT.replace("fix=(on_node(", "fix=(str("), "bad.py, line"),
        ("\0", "source code string cannot contain null bytes"),
    ],
)
def test_a_file_with_a_mistake_costs_only_its_rules(folder: Path, text: str, what: str) -> None:
    (folder / "bad.py").write_text(text)
    (folder / "one.py").write_text(TEXT.replace("U10", "U20"))
    loaded = ruleset.load(None, folder)
    assert [rule.id for rule in loaded.rules if rules.is_own(rule.id)] == ["U20"]
    (warning,) = loaded.warnings
    assert what in warning
    assert "Its rules are not applied." in warning


def test_an_id_is_one_rules(folder: Path) -> None:
    (folder / "two.py").write_text(TEXT)
    assert any("two.py: there is another rule U10" in warning for warning in messages(folder))
    (folder / "two.py").write_text(TEXT.replace("U10", "U11") + TEXT.replace("U10", "U11"))
    assert any("two rules with the id U11" in warning for warning in messages(folder))


def test_what_others_can_write_is_not_executed(folder: Path) -> None:
    folder.chmod(0o777)
    with pytest.raises(InspectorError, match="Others can write to"):
        ruleset.load(None, folder)
    folder.chmod(0o755)
    (folder / "one.py").chmod(0o666)
    assert any("others can write to it" in warning for warning in messages(folder))
    if os.geteuid() == 0:
        (folder / "one.py").chmod(0o644)
        os.chown(folder / "one.py", 4242, 4242)
        assert any("others can write to it" in warning for warning in messages(folder))


def test_a_directory_that_cannot_be_used(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InspectorError, match="is not a directory"):
        rule_files.paths(folder / "one.py")
    with pytest.raises(InspectorError, match="No such file"):
        rule_files.paths(tmp_path / "none")
    for number in range(rule_files.MOST):
        (folder / f"{number}.py").touch()
    with pytest.raises(InspectorError, match="more than 500 files"):
        rule_files.paths(folder)


def test_a_file_that_cannot_be_read_costs_only_its_rules(folder: Path) -> None:
    (folder / "pipe.py").symlink_to(folder / "nothing")
    (folder / "large.py").write_bytes(b"#" * (rule_files.LARGEST + 1))
    os.mkfifo(folder / "fifo.py")
    assert len(messages(folder)) == 3
