"""A proxy with a site's own rules, good and broken ones, in a file and in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.places import DOCS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

RULES = """\
rules:
  U01: {title: a catalog, when: 'phase:catalog', message: '{agent} got one'}
  U02: {title: wrong, when: 'phse:catalog'}
"""
PYTHON = (DOCS / "examples/rules/environment_not_allowed.py").read_text()


def test_they_appear_on_the_console_and_broken_ones_cost_nothing_else(run: Run, own: bool, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    folder = tmp_path / "rules"
    folder.mkdir(mode=0o755)
    (folder / "raises.py").write_text(PYTHON.replace("in ALLOWED", "in ALLOWED / 0").replace("U10", "U11"))
    (folder / "broken.py").write_text("\n1 / 0\n")
    status, out, err = run(
        "demo", "--healthy", "-o", str(tmp_path / "c.sqlite"),
        "--rules", str(tmp_path / "rules.yaml"), "--rules-dir", str(folder),
        *(["--own"] if own else []),
    )  # fmt: skip
    assert status == 0
    lines = out.splitlines()
    assert any(" catalog " in line and "U01" in line for line in lines)
    for warning in ("rules.yaml, line 3: U02 is not applied", "broken.py, line 2: ZeroDivisionError"):
        assert sum(line.startswith("-- ") and warning in line for line in lines) == 1
        assert warning in err
    failed = [
        line for line in lines if line.startswith("-- internal error") and "rule U11 failed (raises.py, line " in line
    ]
    assert len(failed) == 1
    assert sum(line.startswith("== run ") and " complete " in line for line in lines) == 2
    assert "web1.lab.example got one" in out
