"""Limits for one address and for all together, how much of them is in use, and what was refused because of them."""

from __future__ import annotations

import asyncio
import ipaddress
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, Protocol

from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST, INTERVAL = 1.0, 60.0
"""Seconds after which the first refusals are reported, and between the reports that follow."""
ADDRESSES = 1000
"""Addresses that are counted one by one until the next report."""


class Charged(Protocol):
    """A connection, as far as limits know it."""

    address: str
    payer: str
    heard: float
    waiting_bytes: int

    @property
    def close(self) -> Callable[[str], None]: ...

    def refuse(self, reason: str) -> None: ...


class Share(NamedTuple):
    """A limit for one address, and one for all together."""

    address: int
    total: int

    def scaled(self, factor: float) -> Share:
        """Return a smaller limit."""
        return Share(max(int(self.address * factor), 1), max(int(self.total * factor), 2))

    def divided(self, workers: int) -> Share:
        """Return the share of one of several workers: an address has only one of them."""
        total = max(self.total // workers, 2)
        return Share(min(self.address, max(total * 3 // 4, 1)), total) if workers > 1 else self


class Quota:
    """How much of a limit is in use."""

    def __init__(self, share: Share) -> None:
        self.share = share
        self.total = 0
        self._addresses: Counter[str] = Counter()

    @property
    def full(self) -> bool:
        """Whether all together use it up."""
        return self.total >= self.share.total

    def of(self, address: str) -> int:
        """How much an address uses."""
        return self._addresses[address]

    def take(self, address: str, amount: int = 1) -> bool:
        """Use so much more; return whether there was room for it."""
        if self._addresses[address] + amount > self.share.address or self.total + amount > self.share.total:
            return False
        self._addresses[address] += amount
        self.total += amount
        return True

    def give(self, address: str, amount: int = 1) -> None:
        """Give back."""
        self.total -= amount
        self._addresses[address] -= amount
        if not self._addresses[address]:
            del self._addresses[address]


class Refusals:
    """Counts what was refused, and reports it in one sentence now and then."""

    def __init__(
        self, report: Callable[[str], None], what: str = "refused or closed before a certificate was verified"
    ) -> None:
        """``report`` gets the sentence, which begins with ``what``."""
        self._report = report
        self._what = what
        self._reasons: Counter[str] = Counter()
        self._addresses: Counter[str] = Counter()
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0

    def add(self, address: str, reason: str) -> None:
        """Count a refusal: of an address, or of a certname."""
        self._reasons[reason] += 1
        if address in self._addresses or len(self._addresses) < ADDRESSES:
            self._addresses[address] += 1
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(loop.time() + FIRST, self._due), self.report)

    def report(self) -> None:
        """Report what was refused since the last report."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._due = asyncio.get_running_loop().time() + INTERVAL
        if self._reasons:
            reasons = "; ".join(f"{number:,}: {reason}" for reason, number in self._reasons.most_common())
            (address, number), *_ = self._addresses.most_common(1)
            self._report(f"{self._what}: {reasons}; {number:,} of {clean(address)}")
            self._reasons.clear()
            self._addresses.clear()


def counted_as(host: str) -> str:
    """Return what a host's address is counted as: of IPv6 the network, as one host has all addresses of it."""
    if ":" not in host:
        return host
    try:
        address = ipaddress.IPv6Address(host)
    except ValueError:
        return host
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))
