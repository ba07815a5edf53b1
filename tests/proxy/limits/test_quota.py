"""Limits for one address and for all together."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from inspector.proxy.limits import quota
from inspector.proxy.limits.quota import Quota, Refusals, Share, counted_as
from tests.support.rows import each_row

if TYPE_CHECKING:
    import pytest


def test_neither_an_address_nor_all_together_get_more_than_their_limit() -> None:
    limited = Quota(Share(2, 3))
    assert [limited.take("a"), limited.take("a"), limited.take("a")] == [True, True, False]
    assert [limited.take("b"), limited.take("c")] == [True, False]
    limited.give("a", 2)
    assert (limited.total, limited.full) == (1, False)
    assert limited.take("c", 2)
    assert limited.full
    assert not limited.take("d")


def test_an_address_that_has_nothing_is_forgotten() -> None:
    limited = Quota(Share(2, 3))
    limited.take("a")
    limited.give("a")
    assert not limited._addresses
    assert not limited.take("b", 3)
    assert not limited._addresses


def test_each_of_several_workers_has_its_share() -> None:
    assert Share(100, 200).divided(1) == (100, 200)
    assert Share(100, 200).divided(2) == (75, 100), "an address has only one of them"
    assert Share(10, 200).divided(4) == (10, 50)
    assert Share(1, 2).divided(8) == (1, 2)


def test_a_smaller_limit_leaves_some_room() -> None:
    assert Share(100, 200).scaled(0.1) == (10, 20)
    assert Share(100, 200).scaled(0.0) == (1, 2)


@each_row(
    ("host", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("a:b", "a:b"),
    ],
)
def test_a_host_is_counted_with_all_addresses_it_may_have(host: str, counted: str) -> None:
    assert counted_as(host) == counted


def test_refusals_are_counted_and_reported_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota, "FIRST", 0.0)
    reports: list[str] = []

    async def play() -> None:
        refusals = Refusals(reports.append)
        for _ in range(1200):
            refusals.add("192.0.2.7", "too many")
        refusals.add("192.0.2.8", "too slow")
        await asyncio.sleep(0.01)
        refusals.add("192.0.2.9", "too slow")
        await asyncio.sleep(0.01)
        assert len(reports) == 1
        refusals.report()
        refusals.report()

    asyncio.run(play())
    begin = "refused or closed before a certificate was verified"
    assert reports == [
        f"{begin}: 1,200: too many; 1: too slow; 1,200 of 192.0.2.7",
        f"{begin}: 1: too slow; 1 of 192.0.2.9",
    ]


def test_addresses_without_end_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota, "ADDRESSES", 2)

    async def play() -> None:
        refusals = Refusals(lambda _: None)
        for number in range(5):
            refusals.add(str(number), "too many")
        assert len(refusals._addresses) == 2
        refusals.report()

    asyncio.run(play())
