"""The commands in mitmproxy's command bar, called as it calls them."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest
from mitmproxy import exceptions
from mitmproxy.log import ALERT
from mitmproxy.test import taddons

from inspector.errors import InspectorError
from inspector.proxy.mitm import commands
from inspector.proxy.mitm.commands import PuppetCommands
from tests.support.captures import save
from tests.support.conversations import Agent, together

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path


def always(capture: Path) -> Callable[[], Awaitable[Path]]:
    """Return a capture whenever it is asked for."""

    async def path() -> Path:
        return capture

    return path


def answered(capture: Path, line: str, caplog: pytest.LogCaptureFixture, rules: str = "") -> list[tuple[int, str]]:
    """What a command logs: level and text of each line."""

    async def call() -> None:
        addon = PuppetCommands(always(capture))
        with taddons.context(addon) as context:  # type: ignore[no-untyped-call]
            context.options.add_option("puppet_rules", str, rules, "")
            context.master.commands.execute(line)
            assert addon._tasks  # the proxy goes on meanwhile
            await asyncio.gather(*addon._tasks)
            context.master._legacy_log_events.uninstall()

    caplog.set_level(logging.INFO)
    asyncio.run(call())
    return [(record.levelno, record.getMessage()) for record in caplog.records if record.name == "root"]


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return save(tmp_path / "-c.sqlite", *together(Agent().ca().run(), Agent("b.example", "192.0.2.2").run("u-b")))


@pytest.mark.slow
def test_runs_are_reported_in_the_event_log(capture: Path, caplog: pytest.LogCaptureFixture) -> None:
    output = answered(capture, "puppet.runs", caplog)
    assert [level for level, _ in output] == [logging.INFO] * (len(output) - 1) + [ALERT]
    texts = [text for _, text in output]
    assert texts[0].split()[:4] == ["run", "began", "agent", "version"]
    assert "a.example  7.23.0   production   complete" in texts[1]
    assert "b.example  7.23.0   production   complete" in texts[2]
    assert texts[-1].endswith(f"puppet-inspector check {capture}")


@pytest.mark.slow
def test_check_says_what_and_why_by_the_rules_of_the_proxy(
    capture: Path, caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [text for _, text in answered(capture, "puppet.check", caplog)]
    assert any("B01" in text for text in texts)
    assert any(text.startswith("  fix: ") for text in texts)
    caplog.clear()
    (tmp_path / "rules.yaml").write_text("rules: {B01: off}\n")
    quiet = [text for _, text in answered(capture, "puppet.check", caplog, str(tmp_path / "rules.yaml"))]
    assert not any(" B01 " in text for text in quiet)
    caplog.clear()
    monkeypatch.setattr(commands, "MAX_LINES", 2)
    short = [text for _, text in answered(capture, "puppet.check", caplog)]
    assert (len(short), short[-1]) == (4, texts[-1])
    assert short[2].startswith(f"... {len(texts) - 3} more lines: puppet-inspector check ")


@pytest.mark.slow
def test_a_capture_that_is_gone_is_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    texts = [text for _, text in answered(tmp_path / "gone.sqlite", "puppet.runs", caplog)]
    assert texts[0].startswith(f"puppet-inspector: There is no capture at {tmp_path / 'gone.sqlite'}")


def test_flows_that_cannot_be_analyzed_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> Path:
        raise InspectorError("The flows could not be analyzed.")

    async def call() -> None:
        addon = PuppetCommands(fail)
        with taddons.context(addon) as context:  # type: ignore[no-untyped-call]
            context.master.commands.execute("puppet.runs")
            await asyncio.gather(*addon._tasks)
            context.master._legacy_log_events.uninstall()

    asyncio.run(call())
    assert "The flows could not be analyzed." in caplog.messages


def test_before_anything_is_recorded_it_says_so() -> None:
    with (
        taddons.context(PuppetCommands(lambda: None)) as context,  # type: ignore[no-untyped-call]
        pytest.raises(exceptions.CommandError, match="Nothing has been recorded or read"),
    ):
        context.master.commands.execute("puppet.runs")


def test_mitmproxy_that_ends_ends_the_process(capture: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def call() -> None:
        addon = PuppetCommands(always(capture))
        with taddons.context(addon) as context:  # type: ignore[no-untyped-call]
            context.master.commands.execute("puppet.runs")
            (task,) = addon._tasks
            await asyncio.sleep(0)
            addon.done()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not addon._tasks
            context.master._legacy_log_events.uninstall()

    asyncio.run(call())
    assert not [record for record in caplog.records if record.name == "root" and "run " in record.getMessage()]
