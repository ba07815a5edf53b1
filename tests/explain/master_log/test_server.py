"""Lines of the server log that say where time went."""

from __future__ import annotations

import pytest

from inspector.explain.master_log.server import Compiled, Refused, dated, parse
from tests.support.master_logs import server_line

# As puppetserver 7.9.5 wrote them.
COMPILED = (
    "2026-11-25T13:18:42.342Z INFO  [qtp1646369420-53] [puppetserver] Puppet Compiled catalog for auto1.example in "
    "environment production in 3.06 seconds"
)
TIMED_OUT = (
    "2026-11-25T13:39:32.631Z ERROR [qtp1586698073-137] [p.p.jruby-request] Error 503 on SERVER at "
    "/puppet/v3/file_metadatas/plugins: Attempt to borrow a JRubyInstance from the pool timed out."
)
TOO_MANY = (
    "2026-11-25T13:39:39.303Z ERROR [qtp1549421209-211] [p.p.jruby-request] Error 503 on SERVER at "
    "/puppet/v3/file_metadatas/plugins: The number of requests waiting for a JRuby instance has exceeded the limit "
    "allowed by the max-queued-requests setting."
)
TIME = 1795612722.342


def test_real_lines() -> None:
    assert parse(COMPILED) == Compiled(TIME, "auto1.example", "production", 3.06)
    for line in (TIMED_OUT, TOO_MANY):
        found = parse(line)
        assert isinstance(found, Refused)
        assert found.path == "/puppet/v3/file_metadatas/plugins"


@pytest.mark.parametrize(
    "line",
    [
        COMPILED.replace("T13", " 13").replace(".342Z", ",342"),
        COMPILED.replace("13:18:42.342Z", "15:18:42.342+02:00"),
        COMPILED.replace("Compiled catalog", "Compiled static catalog"),
        COMPILED.replace("[puppetserver] Puppet ", "[puppet-server] "),
    ],
)
def test_older_patterns_and_other_zones(line: str) -> None:
    assert parse(line) == Compiled(TIME, "auto1.example", "production", 3.06)
    assert dated(line) == TIME


def test_without_an_environment() -> None:
    assert parse(COMPILED.replace(" in environment production", "")) == Compiled(TIME, "auto1.example", None, 3.06)


@pytest.mark.parametrize(
    "line",
    [
        "", f"x {COMPILED}", f"  {COMPILED}", COMPILED.replace("3.06", "-3"), COMPILED.replace("3.06", "9" * 40),
        COMPILED.replace("2026-11", "2026-13"), server_line(TIME, f"Bad Request: {COMPILED}"),
        TIMED_OUT.split(": A", maxsplit=1)[0] + ": something else",
    ],
)  # fmt: skip
def test_what_only_looks_like_one(line: str) -> None:
    assert parse(line) is None


def test_other_lines_have_a_date_or_go_on_with_a_message() -> None:
    assert dated(server_line(TIME, "Puppet settings initialized")) == TIME
    assert dated("  Scheduler class: 'org.quartz.core.QuartzScheduler' - running locally.") is None
