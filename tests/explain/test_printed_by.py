"""Who prints a message, in words."""

from __future__ import annotations

from inspector.analysis.origins import Found, Origin
from inspector.explain.printed_by import in_words


def origin(file: str, level: str = "error", printer: str = "the agent's reactor") -> Origin:
    return Origin(printer, file, level, "at the start of a run, about its flux", "nothing between agent and master")


def test_one_place_is_a_sentence() -> None:
    assert in_words([Found(0, (origin("lib/flux.rb"),))]) == (
        "the agent's reactor (lib/flux.rb), as an error, at the start of a run, about its flux; "
        "nothing between agent and master."
    )
    assert in_words([Found(0, (origin("lib/flux.rb", ""),))]).startswith(
        "the agent's reactor (lib/flux.rb) at the start"
    )
    assert in_words([]) == ""


def test_the_files_and_levels_of_one_place_are_together() -> None:
    files = [origin(f"lib/{number}.rb") for number in range(5)] + [origin("lib/0.rb", "warning")]
    assert "(lib/0.rb, lib/1.rb, lib/2.rb and 2 more), as a warning or an error," in in_words([Found(0, tuple(files))])


def test_of_many_places_some_are_named() -> None:
    places = tuple(origin("lib/flux.rb", printer=f"the reactor {number}") for number in range(6))
    text = in_words([Found(0, places)])
    assert text.count("; or by ") == 2
    assert text.endswith("; and by 3 more.")


def test_messages_within_one_another_are_numbered() -> None:
    text = in_words([Found(0, (origin("a.rb"),)), Found(4, (origin("b.rb"),))])
    assert text.startswith("1. the agent's reactor (a.rb)")
    assert " 2. the agent's reactor (b.rb)" in text
