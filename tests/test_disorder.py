"""A recording that began late, ended early or arrived in another order shows nothing that breaks but what the whole one
shows, and two recordings made together show what both show.

Times are in the records: what overlaps may arrive in either order. What is cut off ends as "unfinished", which is no
error of anybody.
"""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING

import pytest

from inspector.clocks import SKEW
from inspector.protocol.endpoints import match
from tests.support import disorder
from tests.support.recorded import RECORDINGS, SAMPLES, name_of, records_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from inspector.model import Record

SEED = 20261123
CAPTURES = [
    *(pytest.param(path, id=name_of(path)) for path in SAMPLES),
    *(pytest.param(path, id=name_of(path), marks=pytest.mark.slow) for path in RECORDINGS),
]
CUTS = 60
"""Places where a recording is cut; a short one is cut everywhere."""
ORDERS = 5


def cuts(records: Sequence[Record]) -> list[int]:
    """Return where a recording is cut."""
    places = range(len(records))
    return sorted(random.Random(SEED).sample(places, min(CUTS, len(places))))  # noqa: S311 - the same on every day


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_part_shows_no_error_that_the_whole_does_not_show(capture: Path) -> None:
    records = records_of(capture)
    whole = disorder.errors(records)
    for cut in cuts(records):
        early, late = disorder.errors(records[:cut]), disorder.errors(records[cut:])
        assert (cut, (early | late) - whole) == (cut, frozenset())


@pytest.mark.parametrize("capture", CAPTURES)
def test_what_overlaps_may_arrive_in_any_order(capture: Path) -> None:
    records = records_of(capture)
    whole = disorder.errors(records)
    for seed in range(ORDERS):
        chance = random.Random(seed)  # noqa: S311
        assert disorder.errors(disorder.shuffled(records, chance)) == whole


def pairs() -> Iterator[tuple[Path, Path]]:
    """Return samples of different nodes, which were recorded within the minute: no clock in them seems wrong."""
    for one, other in itertools.combinations(SAMPLES, 2):
        if names(records_of(one)).isdisjoint(names(records_of(other))):
            yield one, other


def names(records: Sequence[Record]) -> set[str]:
    """Return the certnames of the errors and of the requests of a recording."""
    requests = (match(r.request.method, r.request.target) for r in records if hasattr(r, "request"))
    named = {found.certname for found in requests if found and found.certname}
    return named | {certname for certname, _ in disorder.errors(records) if certname}


@pytest.mark.parametrize(("one", "other"), [pytest.param(*pair, id="+".join(map(name_of, pair))) for pair in pairs()])
def test_two_recordings_made_together_show_what_both_show(one: Path, other: Path) -> None:
    first, second = records_of(one), records_of(other)
    both = disorder.errors(first) | disorder.errors(second)
    begins = second[0].time - first[0].time
    assert abs(begins) < SKEW
    chance = random.Random(SEED)  # noqa: S311
    for _ in range(ORDERS):
        lasts = max(record.ended for record in first) - first[0].time
        moved = disorder.moved(second, chance.uniform(0, lasts) - begins, "b")
        assert disorder.errors(disorder.together(disorder.moved(first, 0, "a"), moved)) == both
