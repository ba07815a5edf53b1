"""What a master's logs say about the time of recorded requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

type MasterWork = Literal["network", "queue", "serve", "compile", "waiting"]
"""What the time is in which the proxy waits for an answer; ``waiting``: the logs do not say."""


@dataclass(frozen=True, slots=True)
class MasterTime:
    """A request's time at the master, in seconds; None: the logs do not say."""

    took: float | None = None
    """From the request's head to the last byte of the answer (``%D``)."""
    worked: float | None = None
    """How long it was worked on: it held a JRuby (``jruby.borrow-time``), or the web server answered without one."""
    compiled: float | None = None
    """How long its catalog was compiled."""
    refused: bool = False
    """It was turned away because no JRuby was free."""

    def parts(self, waited: float, receiving: float) -> Iterator[tuple[MasterWork, float]]:
        """Yield what the time is between a request's last byte and its answer's first (``waited``), in order: the parts
        add up to it, and none is negative. ``receiving`` is the time from there to the answer's last byte.

        - queue: what the request took without what it was worked on and without sending the answer (access log with
          ``jruby.borrow-time``). A few milliseconds of it are the web server's own: TLS, authorization, threads. Of a
          request that was turned away it is all (status 503 without a JRuby, or the server log).
        - compile: what the server log says, at most what the request was worked on.
        - serve: the rest of that. What a master does with a catalog besides compiling it: facts, node, encoding.
        - network: what was waited longer than the master took (access log with ``%D``); a half each way.
        - waiting: the rest, where the access log does not have what separates queue and serve.
        """
        there = waited if self.took is None else min(waited, max(0.0, self.took - receiving, self.worked or 0.0))
        worked = min(there if self.worked is None else self.worked, there)
        compiled = min(self.compiled or 0.0, worked)
        parts: list[tuple[MasterWork, float]]
        if self.refused:
            parts = [("queue", there)]
        elif self.worked is None:
            parts = [("waiting", there - compiled), ("compile", compiled)]
        else:
            parts = [("queue", there - worked), ("serve", worked - compiled), ("compile", compiled)]
        way = (waited - there) / 2
        for kind, took in (("network", way), *parts, ("network", way)):
            if took > 0:
                yield kind, took


@dataclass(frozen=True, slots=True)
class MasterTimes:
    """What logs say about the requests of a capture."""

    by_record: Mapping[int, MasterTime] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """Sentences: what was matched, and what was not."""
    file_notes: tuple[str, ...] = ()
    """Sentences about single logs, with their names: how far their clocks are off, what cannot be read."""

    def get(self, seq: int) -> MasterTime | None:
        """Return a record's; None if no line of a log is known to be about it."""
        return self.by_record.get(seq)


NOTHING = MasterTimes()
"""Without logs."""
