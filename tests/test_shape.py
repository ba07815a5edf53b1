"""The tests lie as the code lies: which module has a test module of its own, and that none leans on another."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.support import places

if TYPE_CHECKING:
    from pathlib import Path

CODE = places.ROOT / "inspector"
LIST = places.TESTS / "without_test_module.txt"
"""The modules that are tested through others only. The list may only shrink."""


def modules() -> set[str]:
    """The modules that need a test module; a rule is tested by the examples in its own file."""
    paths = (path.relative_to(CODE) for path in CODE.rglob("*.py") if not path.name.startswith("__"))
    return {path.as_posix() for path in paths if path.parts[0] != "rules"}


def files() -> list[Path]:
    return sorted(places.TESTS.rglob("test_*.py"))


def named() -> set[str]:
    """The modules that these test modules would be named after."""
    return {path.relative_to(places.TESTS).with_name(path.name.removeprefix("test_")).as_posix()
            for path in files()}  # fmt: skip


def test_no_test_module_is_imported() -> None:
    imports = re.compile(r"^ *(?:from tests\.(?:\S+\.)?test_\w+ import|from tests\S* import .*\btest_)", re.MULTILINE)
    used = [path.relative_to(places.ROOT).as_posix() for path in sorted(places.TESTS.rglob("*.py"))
            if imports.search(path.read_text())]  # fmt: skip
    assert used == [], "what several tests need belongs in tests/support"


def test_every_module_has_a_test_module_or_is_listed() -> None:
    listed = LIST.read_text().split()
    assert listed == sorted(set(listed))
    assert sorted(modules() - named() - set(listed)) == [], "each needs a test module of its name"
    assert sorted(set(listed) & named()) == [], f"these have a test module now: take them off {LIST.name}"
    assert sorted(set(listed) - modules()) == [], f"these are gone: take them off {LIST.name}"
