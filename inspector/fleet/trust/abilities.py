"""What agents and masters of a version do with certificates and CRLs (docs/protocol.md#certificates)."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple


class Abilities(NamedTuple):
    """What an agent does by itself, with its default settings."""

    known: bool
    """Its version is known."""
    verifies_itself: bool = True
    """It verifies its own certificate, with its CRL, before it connects, and cannot enrol without a CRL: 6.4 and
    later."""
    may_refresh: bool = True
    """It fetches the CRL again if crl_refresh_interval is set: 6 and later."""
    refreshes: bool = False
    """It fetches CA and CRL every day: 8.1 and later."""
    renews: bool = False
    """It asks for a new certificate before its own ends: 8.2 and later."""


@lru_cache(maxsize=1024)
def of_agent(version: str | None) -> Abilities:
    """Return what an agent of a version does; of an unknown one what those of today have in common."""
    number = numbers(version)
    if number == (0, 0):
        return Abilities(known=False)
    return Abilities(
        known=True,
        verifies_itself=number >= (6, 4),
        may_refresh=number >= (6, 0),
        refreshes=number >= (8, 1),
        renews=number >= (8, 2),
    )


@lru_cache(maxsize=1024)
def numbers(version: str | None) -> tuple[int, int]:
    """The first two numbers of a version; zeros if it is not known."""
    parts = [part for part in (version or "").split(".")[:2] if part.isascii() and part.isdigit() and len(part) < 6]
    return (int(parts[0]), int(parts[1])) if len(parts) == 2 else (0, 0)


def reloads_crl(master_version: str | None) -> bool | None:
    """Whether a master reads a changed CRL while it runs: Puppet Server since 5.1 does, a master in Ruby does not.
    None: its version, that of its Puppet, does not say which it is."""
    number = numbers(master_version)
    return None if number == (0, 0) or (4, 0) <= number < (6, 0) else number >= (6, 0)


def renews_crl(master_version: str | None) -> bool:
    """Whether a CA of a version signs its own CRL anew when less than 30 days are left: 8.4 and later."""
    return numbers(master_version) >= (8, 4)
