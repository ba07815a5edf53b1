"""Which agents are recorded (``puppet_only``).

A request is recorded if its agent is one that was asked for. Before an agent has a certificate its first requests do
not say whose they are: they wait for one that does, from the same address.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

WAITING = 50
"""Requests from one address that wait for a name; of more, the last."""
ADDRESSES = 1000
"""Addresses from which something waits; who waits for longest goes first."""


class Selection:
    """Lets through what is to be recorded."""

    def __init__(self, only: re.Pattern[str] | None) -> None:
        """``only``: the certnames that are recorded; None: all."""
        self._only = only
        self._waiting: OrderedDict[str, deque[tuple[str, Callable[[], None]]]] = OrderedDict()
        self._recorded: set[str] = set()

    @property
    def everything(self) -> bool:
        """Whether all agents are recorded: then nobody's name need be known."""
        return self._only is None

    def admit(self, connection: str, address: str, name: str | None, keep: Callable[[], None]) -> None:
        """Something came over a connection, from an agent of this name (None: it does not say): ``keep`` it now, later
        or never."""
        if self._only is None:
            keep()
        elif name is None and connection not in self._recorded:
            self._waiting.setdefault(address, deque(maxlen=WAITING)).append((connection, keep))
            while len(self._waiting) > ADDRESSES:
                self._waiting.popitem(last=False)
        elif name is None or self._only.fullmatch(name):
            self._recorded.add(connection)
            for other, before in self._waiting.pop(address, ()):
                self._recorded.add(other)
                before()
            keep()

    def wanted(self, name: str | None) -> bool:
        """Whether a handshake is kept that failed with an agent of this name. Who gave none may be any of them."""
        return self._only is None or name is None or self._only.fullmatch(name) is not None

    def recorded(self, connection: str) -> bool:
        """Whether anything of a connection was recorded."""
        return self._only is None or connection in self._recorded

    def ended(self, connection: str) -> bool:
        """A connection is over; whether anything of it was recorded."""
        known = self.recorded(connection)
        self._recorded.discard(connection)
        return known
