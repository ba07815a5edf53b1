"""The master's access log."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.proxy.tap import access_log
from inspector.proxy.tap.access_log import AccessLog, Share
from tests.support.rows import each_row

WEB1 = '192.0.2.7 - - [26/Nov/2026:17:00:00 +0000] "GET /puppet/v3/node/web1.example?environment=x HTTP/1.1" 200 1\n'
WEB2 = '192.0.2.8 - - [26/Nov/2026:17:00:02 +0000] "PUT /puppet/v3/report/web2.example HTTP/1.1" 403 1\n'
DB1 = '[2001:db8::8] - - [26/Nov/2026:18:00:03 +0000] "POST /puppet/v3/catalog/db1.example HTTP/1.1" 500 1\n'
UNSIGNED = '192.0.2.8 - - [26/Nov/2026:18:00:03 +0000] "GET /puppet-ca/v1/certificate/new.example HTTP/1.1" 404 1\n'
OTHERS = (
    'nonsense "GET /puppet/v3/node/web4.example HTTP/1.1"\n'
    '192.0.2.9 - - [26/Nov/2026:18:00:03 +0000] "GET /nothing/of/puppets HTTP/1.1" 500 1\n'
    'x - - [26/Nov/2026:18:00:03 +0000] "GET /puppet/v3/node/odd.example HTTP/1.1" 200 1\n'
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "access.log"
    made.write_text(WEB1 + WEB2 + DB1 + UNSIGNED + OTHERS)
    return made


def test_who_is_where(path: Path) -> None:
    assert access_log.nodes(AccessLog(path).latest()) == {
        "192.0.2.7": {"web1.example"},
        "192.0.2.8": {"web2.example", "new.example"},
        "2001:db8::8": {"db1.example"},
    }


def test_only_the_end_of_a_large_log_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_log, "LATEST", len(UNSIGNED + OTHERS) + 5)
    assert list(access_log.nodes(AccessLog(path).latest())) == ["192.0.2.8"]


def test_what_was_added_since(path: Path) -> None:
    log = AccessLog(path)
    list(log.latest())
    assert list(log.new()) == []
    with path.open("a") as file:
        file.write(WEB1 + WEB2[:40])
        file.flush()
        assert [line.host for line in log.new()] == ["192.0.2.7"]
        file.write(WEB2[40:])
        file.flush()
        assert [line.host for line in log.new()] == ["192.0.2.8"]


@pytest.mark.parametrize("truncated", [False, True])
def test_a_log_that_was_rotated(truncated: bool, path: Path) -> None:
    log = AccessLog(path)
    list(log.latest())
    if not truncated:
        path.rename(path.with_suffix(".1"))
    path.write_text(WEB1)
    assert [line.host for line in log.new()] == ["192.0.2.7"]


@pytest.mark.parametrize("path", [None, Path("/nowhere/at/all.log")])
def test_without_a_log_nothing_is_known(path: Path | None) -> None:
    log = AccessLog(path)
    assert [*log.latest(), *log.new()] == []


def test_which_requests_failed(path: Path) -> None:
    share, later = Share(), Share()
    share.count(AccessLog(path).latest())
    assert share == Share(failed=2, requests=5)
    later.count(AccessLog(path).latest(), since=1795716000)  # 18:00
    assert later == Share(failed=1, requests=3)


@each_row(
    ("before", "now", "exceeds"),
    [
        (Share(), Share(), False),
        (Share(0, 1000), Share(9, 9), False),
        (Share(0, 1000), Share(10, 10), True),
        (Share(0, 1000), Share(100, 1000), False),
        (Share(0, 1000), Share(101, 1000), True),
        (Share(200, 1000), Share(500, 1000), False),
        (Share(200, 1000), Share(501, 1000), True),
        (Share(), Share(20, 100), True),
        (Share(500, 1000), Share(1000, 1000), False),
    ],
)
def test_more_failures_than_before(before: Share, now: Share, exceeds: bool) -> None:
    assert now.exceeds(before) is exceeds
