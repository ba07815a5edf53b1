"""Bootstraps read through the index: the same as `bootstrap` prints, with few records read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from inspector.cli import arguments
from inspector.cli import main as cli
from inspector.explain import bootstrap_reading, bootstrap_text
from inspector.rules import all_rules
from inspector.summaries.source import Source
from tests.support.captures import save
from tests.support.conversations import WAITS, Agent, together
from tests.support.json_output import builtins
from tests.support.recorded import SAMPLES
from tests.tui.screens import indexed, sample

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import Any

    from inspector.model import Record

AT = "2027-03-02"


def written(records: Iterable[Record], path: Path) -> Path:
    return indexed(save(path, *records))


def indexed_bootstraps(path: Path, at: float, read: list[int] | None = None) -> list[dict[str, Any]]:
    """The bootstraps read through the index; ``read`` gets the number of records read."""

    def progress(_: int, total: int) -> bool:
        if read is not None:
            read[:] = [total]
        return True

    with Source(path) as source:
        bootstraps = bootstrap_reading.read(source, progress)
    return [builtins(bootstrap_text.plain(bootstraps.of(name, at))) for name in bootstraps.names()]


def as_the_command_tells(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[list[dict[str, Any]], float]:
    assert cli.main(["bootstrap", str(path), "--at", AT, "--json"]) == 0
    return json.loads(capsys.readouterr().out), arguments.moment(AT)


@pytest.mark.slow
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_samples_bootstraps_are_those_of_the_command(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = sample(path.stem, tmp_path)
    expected, at = as_the_command_tells(copy, capsys)
    assert expected
    assert indexed_bootstraps(copy, at) == expected


@pytest.mark.slow
def test_made_bootstraps_are_those_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for rule in all_rules():
        if rule.id.startswith("B"):
            for number, records in enumerate(rule.bad()):
                path = written(records, tmp_path / f"{rule.id}-{number}.sqlite")
                expected, at = as_the_command_tells(path, capsys)
                assert indexed_bootstraps(path, at) == expected, path.name


@pytest.mark.slow
def test_a_fleets_bootstraps_are_those_of_the_command_with_little_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    busy = Agent("busy.example", "192.0.2.9").bootstrap(3).run()
    for number in range(5):
        busy.wait(1800).run(f"busy-{number}")
        busy.records[-1:-1] = []
    for _ in range(200):
        busy.file()
    busy.catalog(status=403).file().file().crl(refresh=True, own=True).file().report()
    records = together(
        busy,
        Agent("old.example", "192.0.2.2", "3.8.7").old_bootstrap(3).run(),
        Agent("five.example", "192.0.2.3", "5.5.22").old_bootstrap(2).run().wait(1800).run("u-5"),
        Agent("waits.example", "192.0.2.4").ca().crl().csr().poll().wait(120).csr(status=400, text=WAITS).poll(),
        Agent("clone.example", "192.0.2.5").bootstrap().run(),
        Agent("clone.example", "192.0.2.6", owner="other").wait(0.3).bootstrap().run("u-6"),
        Agent("anew.example", "192.0.2.7").ca().crl().csr().poll().wait(60).ca().crl().csr().poll().issued().run("u-7"),
        Agent("revoked.example", "192.0.2.8").run("u-8").wait(1800).refused(own=True).refused(own=True),
        Agent("nameless.example", "192.0.2.10").ca().crl(),
    )
    path = written(records, tmp_path / "fleet.sqlite")
    expected, at = as_the_command_tells(path, capsys)
    assert len(expected) > 7
    read: list[int] = []
    assert indexed_bootstraps(path, at, read) == expected
    assert read[0] < len(records) / 2


def test_one_agent_is_read_without_the_others_and_reading_can_be_given_up(tmp_path: Path) -> None:
    records = together(Agent("a.example").bootstrap().run(), Agent("b.example", "192.0.2.2").bootstrap().run("u-2"))
    path = written(records, tmp_path / "two.sqlite")
    with Source(path) as source:
        assert bootstrap_reading.read(source, lambda *_: True, "b.example").names() == ["b.example"]
        with pytest.raises(bootstrap_reading.ReadingCancelled):
            bootstrap_reading.read(source, lambda *_: False)
