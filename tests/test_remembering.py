"""What is remembered of captured texts: results for short ones, and never a long text itself."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from inspector import clocks
from inspector.analysis import known_errors
from inspector.fleet import spools
from inspector.privacy import harmless, names
from inspector.protocol import endpoints, ruby_yaml
from inspector.proxy.engine import framing
from inspector.remembering import LONGEST, remembered
from inspector.rules import words

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = 2**18
"""Characters of a text: a head may have as many, a body more."""
FUNCTIONS: dict[str, Callable[[str], object]] = {
    "a name": names.named,
    "a key": harmless._plain_key,
    "a value in YAML": ruby_yaml._plain,
    "a message": known_errors.reason,
    "a value in a table": spools.masked,
    "a date": clocks.http_date,
    "a media type": words._without_parameters,
    "a header": lambda text: framing._lower(text.encode()),
    "a path": lambda text: endpoints.match("GET", f"/{text}"),
}


@pytest.mark.parametrize("what", FUNCTIONS)
def test_no_long_text_stays_in_memory(what: str) -> None:
    """Anybody could fill the memory: of four thousand paths of 256 kB that were remembered with a gigabyte."""
    function = FUNCTIONS[what]
    function("x" * SIZE)
    tracemalloc.start()
    try:
        for number in range(12):
            function(f"{number}" + "x" * SIZE)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2 * SIZE


def test_short_texts_are_remembered_and_long_ones_answered_the_same() -> None:
    asked: list[tuple[str, str]] = []

    @remembered(2)
    def size(one: str, other: str) -> Any:
        """Count."""
        asked.append((one, other))
        return len(one + other)

    long = "x" * LONGEST
    assert [size("a", "b"), size("a", "b"), size(long, "b"), size(long, "b")] == [2, 2, LONGEST + 1, LONGEST + 1]
    assert asked == [("a", "b"), (long, "b"), (long, "b")]
    assert size.__doc__ == "Count."
