"""The top lists of a fleet as rows of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.fleet.lists import lists_of
from inspector.fleet.overview import overview_of
from tests.support.fleets import DAY, fleet, run_row, tables_with
from tests.support.hostile import HOSTILE, harmless

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_every_row_has_a_cell_for_each_head(tmp_path: Path) -> None:
    lists = lists_of(overview_of(fleet(tmp_path, 120)))
    assert all(len(row) == len(each.heads) for each in lists for row in each.rows)
    titles = {each.title: each for each in lists}
    assert titles["nodes"].rows[0][1] == "failing", "the worst first"
    assert titles["resources that never settle"].rows[0][:2] == ("File[/etc/motd]", "")
    assert len(titles["nodes that stopped reporting"].rows) == 3
    assert all(titles[name].rows for name in ("findings", "end within 90 days", "run and compile times", "in use"))


def test_no_cell_can_reach_a_terminal_raw(tmp_path: Path) -> None:
    rows = [run_row(1, HOSTILE, DAY - 10, "failed", reason=HOSTILE, environment=HOSTILE, compiler=HOSTILE,
                    agent_version=HOSTILE)]  # fmt: skip
    lists = lists_of(overview_of(tables_with(tmp_path, *rows)))
    assert all(harmless(str(cell)) for each in lists for row in each.rows for cell in row)
