"""Modules that are imported when they are first used."""

from __future__ import annotations

import sys

import pytest

from inspector.lazily import Lazily


def test_the_first_use_imports_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    module = Lazily("colorsys")
    assert "colorsys" not in sys.modules
    assert module.rgb_to_hls(0, 0, 0) == (0, 0, 0)
    assert "colorsys" in sys.modules
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        _ = module.missing


def test_what_a_test_replaces_in_it_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    import colorsys

    module = Lazily("colorsys")
    monkeypatch.setattr(colorsys, "ONE_SIXTH", 0)
    assert module.ONE_SIXTH == 0
