"""What the inspector keeps for its user stays out of the home of whoever runs the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.tui import screens

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))


@pytest.fixture(autouse=True, scope="session")
def _closed_at_the_end() -> Iterator[None]:
    yield
    while screens.OPEN:
        screens.OPEN.popitem()[1].close()
