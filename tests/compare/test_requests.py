"""Requests of two runs: which are new, which are missing, what was answered otherwise."""

from __future__ import annotations

from typing import Any

from inspector.compare import requests
from inspector.compare.differences import Differences
from inspector.compare.documents import RequestMade
from inspector.compare.masks import Masks
from inspector.model import Phase


def made(
    endpoint: str, key: str = "", status: int | None = 200, media: str = "a", phase: Phase = Phase.FILES
) -> RequestMade:
    return RequestMade(1, phase, None, endpoint, key, "GET", status, media, 0.1)


def compared(before: list[RequestMade], after: list[RequestMade]) -> list[tuple[Any, ...]]:
    found = Differences(Masks())
    requests.compare(before, after, found)
    return [(each.change, each.address, each.before, each.after, each.note) for each in found.found]


def test_added_and_removed() -> None:
    both = made("catalog", phase=Phase.CATALOG)
    assert compared(
        [both, made("file_content", "m/a")], [both, made("file_content", "m/b"), made("file_content", "m/b")]
    ) == [
        ("removed", "file_content m/a", "200", None, "files"),
        ("added", "file_content m/b", None, "2 times, 200", "files"),
    ]


def test_another_status_format_or_number() -> None:
    assert compared([made("catalog")], [made("catalog", status=None)]) == [
        ("changed", "catalog/status", "200", "no response", "files")
    ]
    assert compared([made("catalog")], [made("catalog", media="b")]) == [
        ("changed", "catalog/format", "a", "b", "files")
    ]
    assert compared([made("catalog")], [made("catalog"), made("catalog")]) == [
        ("changed", "catalog/number", "1", "2", "files")
    ]


def test_in_the_order_of_the_phases() -> None:
    first, last = made("crl", phase=Phase.CERTIFICATES), made("report", phase=Phase.REPORT)
    assert [each[1] for each in compared([first, last], [made("catalog", phase=Phase.CATALOG)])] == [
        "crl", "report", "catalog",
    ]  # fmt: skip
