"""Lines of the access log: all patterns that puppetserver came with, and what agents make of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.explain.master_log import access
from inspector.explain.master_log.access import NO_JRUBY, parse
from tests.support.master_logs import PATTERNS, clf

TIME = 1_795_612_717.0
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
# As puppetserver 7.9.5 wrote them.
CATALOG = (
    '127.0.0.1 - - [25/Nov/2026:13:18:52 +0000] "POST /puppet/v3/catalog/auto2.example?environment=production '
    'HTTP/1.1" 200 866 "-" "Puppet/7.23.0 Ruby/3.1.2-p20 (x86_64-linux-gnu)" 4223 1682 2100'
)
DENIED = (
    '127.0.0.1 - - [25/Nov/2026:13:17:46 +0000] "GET /puppet/v3/file_metadatas/plugins?recurse=false HTTP/1.1" 403 107 '
    '"-" "Puppet/7.23.0 Ruby/3.1.2-p20 (x86_64-linux-gnu)" 4 - -'
)
TURNED_AWAY = (
    '127.0.0.1 - - [25/Nov/2026:13:39:32 +0000] "GET /puppet/v3/file_metadatas/plugins HTTP/1.1" 503 58 "-" "-" 8020 '
    "- - 00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-aaaaaaaaaaaaaaaa-01"
)
QUOTES = '127.0.0.1 - - [25/Nov/2026:13:39:48 +0000] "GET /puppet/v3/x?a="b HTTP/1.1" 404 0 "-" "a" 5 6 7" 8 - - -'


def test_a_real_line() -> None:
    found = parse(f"{CATALOG}\n")
    assert found
    assert (found.method, found.target) == ("POST", "/puppet/v3/catalog/auto2.example?environment=production")
    assert (found.time, found.status, found.host) == (1795612732.0, 200, "127.0.0.1")
    assert (found.took, found.sent, found.held, found.trace) == (4.223, 1682, 2.1, None)


def test_without_a_jruby() -> None:
    rows: list[tuple[str, float, str | None]] = [
        (DENIED, 0.004, None),
        (TURNED_AWAY, 8.02, "00-" + "a" * 32 + "-" + "a" * 16 + "-01"),
        (QUOTES, 0.008, None),
    ]
    for line, took, trace in rows:
        found = parse(line)
        assert found, line
        assert (found.took, found.held, found.trace, found.sent) == (took, NO_JRUBY, trace, None), line


@pytest.mark.parametrize("name", PATTERNS)
def test_every_pattern(name: str) -> None:
    found = parse(PATTERNS[name](clf(TIME, zone=-5), "GET /puppet/v3/node/a.example?x=1 HTTP/1.1", "200", "116"))
    assert found
    assert (found.time, found.host, found.status) == (TIME, "192.0.2.7", 200)
    assert (found.method, found.target) == ("GET", "/puppet/v3/node/a.example?x=1")
    assert found.took == (None if name == "common" else 0.116)
    assert found.held == (0.116 if name in ("puppetserver 7", "with more") else None)


def test_a_traceparent_is_found_wherever_it_was_added() -> None:
    rows: list[str] = [TRACE, f'"{TRACE}"', f"17 {TRACE} x"]
    for end in rows:
        found = parse(f"{CATALOG} {end}")
        assert found, end
        assert (found.trace, found.took, found.held) == (TRACE, 4.223, 2.1), end


def test_an_agent_forges_its_own_line_only() -> None:
    forged = CATALOG.replace("Puppet/7.23.0", 'x" 1 2 3 "').replace("auto2", 'a" 200 5 "-" "-" 1 2 3')
    found = parse(forged)
    assert found
    assert (found.took, found.held) == (4.223, 2.1)


def test_what_is_no_line() -> None:
    rows: list[str] = [
        "", "\n", "hello", "2026-11-25T13:18:37.182Z INFO  [main] [puppetserver] Puppet settings", CATALOG[:40],
        CATALOG.replace("Nov", "Foo"), CATALOG.replace("25/", "31/"), CATALOG.replace("25/", "٣/"),
        CATALOG.replace(" 200 ", " 2oo "), CATALOG.replace("[25", "[" + "2" * 100),
    ]  # fmt: skip
    for line in rows:
        assert parse(line) is None, line


def test_numbers_that_are_none_are_not_known() -> None:
    found = parse(CATALOG.replace("4223 1682 2100", f"-5 {'9' * 30} x"))
    assert found
    assert (found.took, found.sent, found.held) == (None, None, None)


@pytest.mark.slow
@given(st.text(max_size=80), st.integers(0, len(QUOTES)))
def test_no_text_raises(text: str, at: int) -> None:
    parse(text)
    parse(QUOTES[:at] + text + QUOTES[at:])


def test_a_moment_is_cached_only_if_it_is_short() -> None:
    assert access.moment("25/Nov/2026:13:18:52 -0130") == 1795612732.0 + 5400
    before = access.moment.cache_info().misses
    assert parse(CATALOG.replace("[25", "[" + "2" * 100_000)) is None
    assert access.moment.cache_info().misses == before
