"""What agents and masters of a version do."""

from __future__ import annotations

import pytest

from inspector.fleet.trust import abilities


@pytest.mark.parametrize(
    ("version", "verifies_itself", "may_refresh", "refreshes", "renews"),
    [
        ("5.5.22", False, False, False, False),
        ("6.3.0", False, True, False, False),
        ("6.4.0", True, True, False, False),
        ("7.23.0", True, True, False, False),
        ("8.0.1", True, True, False, False),
        ("8.1.0", True, True, True, False),
        ("8.28.1", True, True, True, True),
        ("10.0.0", True, True, True, True),
    ],
)
def test_of_agents(*, version: str, verifies_itself: bool, may_refresh: bool, refreshes: bool, renews: bool) -> None:
    assert abilities.of_agent(version) == (True, verifies_itself, may_refresh, refreshes, renews)


@pytest.mark.parametrize("version", [None, "", "eight", "8", "8.x", "²." * 2, "9" * 99 + ".1"])
def test_of_an_unknown_one(version: str | None) -> None:
    able = abilities.of_agent(version)
    assert not able.known
    assert (able.refreshes, able.renews) == (False, False)


def test_of_masters() -> None:
    assert [abilities.reloads_crl(version) for version in ("3.8.7", "5.5.22", "6.0.0", "7.9.5", None)] == [
        False, None, True, True, None,
    ]  # fmt: skip
    assert [abilities.renews_crl(version) for version in ("7.9.5", "8.0.0", None)] == [False, True, False]
