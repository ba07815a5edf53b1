"""docs/architecture.md and CONTRIBUTING.md describe the repository as it is."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.support import places

PAGE = (places.DOCS / "architecture.md").read_text()
GUIDE = (places.ROOT / "CONTRIBUTING.md").read_text()
CORE = ("protocol", "runs", "privacy", "rules", "analysis", "explain", "pages")


def rooms() -> list[str]:
    """The rooms of the table, from the ground up."""
    table = PAGE.partition("## Rooms")[2].partition("\n## ")[0]
    return re.findall(r"^\| `(\w+)/` \|", table, re.MULTILINE)


def contracts() -> dict[str, dict[str, object]]:
    """The import contracts of pyproject.toml, by type and name."""
    settings = tomllib.loads((places.ROOT / "pyproject.toml").read_text())
    return {contract["name"]: contract for contract in settings["tool"]["importlinter"]["contracts"]}


def test_every_room_is_in_the_table() -> None:
    folders = {path.parent.name for path in (places.ROOT / "inspector").glob("*/__init__.py")}
    assert set(rooms()) == folders


def test_the_table_has_the_order_of_the_import_contract() -> None:
    layers = contracts()["rooms import only rooms below them"]["layers"]
    assert isinstance(layers, list)
    order = {name.strip(): at for at, layer in enumerate(layers) for name in layer.split("|")}
    positions = [order[room] for room in rooms()]
    assert positions == sorted(positions, reverse=True)


def test_the_core_of_the_page_is_the_core_of_the_contract() -> None:
    sources = contracts()["the core is pure: no I/O, no clock, no proxy"]["source_modules"]
    assert isinstance(sources, list)
    assert {f"inspector.{room}" for room in CORE} <= set(sources)


@pytest.mark.parametrize("text", [PAGE, GUIDE], ids=["architecture", "contributing"])
def test_every_file_that_is_named_exists(text: str) -> None:
    named = set(re.findall(r"`((?:inspector|tests|docs|addons|captures)/[\w./-]*)`", text))
    assert named
    assert [name for name in sorted(named) if not (places.ROOT / name).exists()] == []


def test_modules_that_are_named_by_room_exist() -> None:
    named = set(re.findall(rf"\b((?:{'|'.join(rooms())})/\w+)\b", PAGE))
    missing = [
        name for name in sorted(named)
        if not (places.ROOT / "inspector" / f"{name}.py").exists() and not (places.ROOT / "inspector" / name).is_dir()
        and not (places.ROOT / name).exists()
    ]  # fmt: skip
    assert missing == []


@pytest.mark.parametrize("name", sorted(set(re.findall(r"(?:`|^    )make ([a-z-]+)", PAGE + GUIDE, re.MULTILINE))))
def test_every_make_target_exists(name: str) -> None:
    targets = re.findall(r"^([a-z-]+):", (places.ROOT / "Makefile").read_text(), re.MULTILINE)
    assert name in targets
