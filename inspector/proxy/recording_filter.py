"""The recording filter (``puppet_only``): which agents are recorded.

Before an agent has a certificate its first requests carry no name: they wait for a request with a name from the same
address.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from inspector import regex

WAITING = 50
"""Requests per address that wait for a name; of more, the last ones."""
ADDRESSES = 1000
"""Addresses with waiting requests; of more, those that waited longest are dropped."""


class RecordingFilter:
    """Decides which requests, handshakes and connections are recorded."""

    def __init__(self, only: regex.Pattern[str] | None, excepted: frozenset[str] = frozenset()) -> None:
        """Record the agents whose certnames match ``only``, all if it is None; but nobody at an ``excepted``
        address."""
        self._only, self._excepted = only, excepted
        self._waiting: OrderedDict[str, deque[tuple[str, Callable[[], None]]]] = OrderedDict()
        self._recorded: set[str] = set()

    @property
    def records_all(self) -> bool:
        """Whether all agents are recorded: then their names are not needed."""
        return self._only is None

    def admit(self, connection: str, address: str, name: str | None, record: Callable[[], None]) -> None:
        """Call ``record`` now, later or never, for a request over a connection from an agent of this name (None: not
        known)."""
        if address in self._excepted:
            return
        if self._only is None:
            if self._excepted:
                self._recorded.add(connection)
            record()
        elif name is None and connection not in self._recorded:
            self._waiting.setdefault(address, deque(maxlen=WAITING)).append((connection, record))
            while len(self._waiting) > ADDRESSES:
                self._waiting.popitem(last=False)
        elif name is None or self._only.fullmatch(name):
            self._recorded.add(connection)
            for other, record_earlier in self._waiting.pop(address, ()):
                self._recorded.add(other)
                record_earlier()
            record()

    def excepts(self, address: str | None) -> bool:
        """Whether nothing from this address is recorded."""
        return address in self._excepted

    def includes(self, name: str | None) -> bool:
        """Whether a failed handshake with an agent of this name is recorded. Without a name it may be any agent."""
        return self._only is None or name is None or self._only.fullmatch(name) is not None

    def recorded(self, connection: str) -> bool:
        """Whether anything of a connection was recorded."""
        return (self._only is None and not self._excepted) or connection in self._recorded

    def close(self, connection: str) -> bool:
        """Forget a connection that ended; return whether anything of it was recorded."""
        recorded = self.recorded(connection)
        self._recorded.discard(connection)
        return recorded
