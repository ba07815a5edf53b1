"""What agents and masters of a version do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.fleet.trust import abilities

if TYPE_CHECKING:
    import pytest


def test_of_agents(subtests: pytest.Subtests) -> None:
    for version, verifies_itself, may_refresh, refreshes, renews in [
        ("5.5.22", False, False, False, False),
        ("6.3.0", False, True, False, False),
        ("6.4.0", True, True, False, False),
        ("7.23.0", True, True, False, False),
        ("8.0.1", True, True, False, False),
        ("8.1.0", True, True, True, False),
        ("8.28.1", True, True, True, True),
        ("10.0.0", True, True, True, True),
    ]:
        with subtests.test(version=version):
            assert abilities.of_agent(version) == (True, verifies_itself, may_refresh, refreshes, renews)


def test_of_an_unknown_one(subtests: pytest.Subtests) -> None:
    for version in [None, "", "eight", "8", "8.x", "²." * 2, "9" * 99 + ".1"]:
        with subtests.test(version=version):
            able = abilities.of_agent(version)
            assert not able.known
            assert (able.refreshes, able.renews) == (False, False)


def test_of_masters() -> None:
    assert [abilities.reloads_crl(version) for version in ("3.8.7", "5.5.22", "6.0.0", "7.9.5", None)] == [
        False, None, True, True, None,
    ]  # fmt: skip
    assert [abilities.renews_crl(version) for version in ("7.9.5", "8.3.0", "8.4.0", None)] == [
        False, False, True, False,
    ]  # fmt: skip
