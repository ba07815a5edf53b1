"""What runs look like in a line."""

from __future__ import annotations

import pytest

from inspector.pages import palette
from inspector.summaries.summary import RunBrief


def run(duration: float, outcome: str = "complete") -> RunBrief:
    return RunBrief(number=1, duration=duration, outcome=outcome)  # type: ignore[arg-type]


def test_a_sparkline_has_a_block_for_each_run_as_high_as_it_took_long() -> None:
    assert palette.sparkline([run(1), run(8), run(4), run(0)], 10).plain == "▁█▄▁"
    assert palette.sparkline([run(0)], 10).plain == "▁"
    assert palette.sparkline([], 10).plain == ""


def test_each_letter_of_a_bar_is_explained() -> None:
    assert palette.phases().startswith("C certificates  n node  P plugins  K catalog")
    assert all(str(phase) in palette.phases() for phase in palette.PHASES)


@pytest.mark.parametrize("width", [1, 3, 7])
def test_of_more_runs_than_fit_the_longest_and_the_worst_are_shown(width: int) -> None:
    runs = [*[run(1)] * 20, run(8, "failed"), run(1, "waiting"), *[run(1)] * 3]
    line = palette.sparkline(runs, width)
    assert 1 <= len(line.plain) <= width
    assert line.plain.count("█") == 1
    styles = [str(span.style) for span in line.spans]
    assert styles.count(palette.OUTCOMES["failed"]) == 1
    assert styles[line.plain.index("█")] == palette.OUTCOMES["failed"]
