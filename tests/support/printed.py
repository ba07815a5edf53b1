"""Lines as agents, masters and their tools print them, and the known messages that they are found to be."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from inspector.analysis.known_errors import MESSAGES, matching

if TYPE_CHECKING:
    from collections.abc import Sequence

AGENT = "agent 7.23.0"
"""The real agent printed it."""
TOOL = "puppetserver ca 2.4.0"
"""The real tool printed it."""
LOG = "log"
"""It is in public logs and threads; with the version where that is known."""


class Printed(NamedTuple):
    """A whole line."""

    origin: str
    """Who printed it, or the version and file of the source that has the text: then the values in it are invented."""
    text: str
    known: str
    """A stable part of the message that it is."""


def assert_found(line: Printed) -> None:
    """Assert that a line is found to be its message, also with what logs and terminals do to it."""
    found = matching.find(MESSAGES, line.text)
    assert found is not None
    assert line.known in found.known.texts, found.known.texts
    folded = "\n".join(line.text[at : at + 80] for at in range(0, len(line.text), 80))
    logged = f"Nov 23 10:12:01 web1 puppet-agent[812]: {line.text.removeprefix('Error: ')}"
    for other in (folded, f"\x1b[1;31m{line.text}\x1b[0m", logged):
        again = matching.find(MESSAGES, other)
        assert again is not None
        assert again.known is found.known, other


def without_line(messages: Sequence[matching.KnownError], lines: Sequence[Printed]) -> list[str]:
    """Return the messages that no line is found to be."""
    found = {id(match.known) for line in lines if (match := matching.find(MESSAGES, line.text))}
    return [known.texts[0] for known in messages if id(known) not in found]
