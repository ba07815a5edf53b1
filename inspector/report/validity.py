"""The certificates and CRLs of a capture with their validity, on one axis of time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from inspector import clocks
from inspector.protocol import x509
from inspector.text import clean, utc_day

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from inspector.explain.bootstrap import AgentBootstrap
    from inspector.explain.trust import Trust

WIDTH = 1000
"""Units of the axis."""
MOST = 200
"""Certificates that are drawn, those that end first."""
MARGIN = 0.04
"""Part of the span of all ends that is free at both sides."""
SHORTEST = 30 * clocks.DAY
"""Seconds that the axis shows at least, at both sides of the capture."""


class Valid(NamedTuple):
    """Something that is valid for a time."""

    kind: str
    name: str
    began: float
    ended: float | None
    """None: it has no end."""
    serial: str = ""
    issuer: str = ""


@dataclass(frozen=True, slots=True)
class ValidityBar:
    """A certificate or a CRL, with its bar."""

    kind: str
    name: str
    issuer: str
    serial: str
    began: str
    ended: str
    state: str
    """``valid``, ``expired`` or ``not yet valid`` at the time of the capture."""
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class ValidityAxis:
    """The bars on one axis."""

    bars: tuple[ValidityBar, ...]
    now: float
    """Where the capture ended."""
    first: str
    last: str
    """The days at the ends of the axis."""
    left_out: int


def validity(bootstraps: Iterable[AgentBootstrap], at: float) -> ValidityAxis | None:
    """Return the certificates that agents have, were given or were shown; None if there are none."""
    found = sorted(dict.fromkeys(_all(bootstraps)), key=lambda valid: (valid.ended or clocks.LAST, valid.name))
    if not found:
        return None
    # The beginning of a long validity does not matter: what matters is around the capture.
    ends = [valid.ended for valid in found if valid.ended is not None]
    last = max([at + SHORTEST, *ends])
    first = min([at - SHORTEST, *(max(valid.began, at - (last - at)) for valid in found), *ends])
    margin = (last - first) * MARGIN
    first, last = first - margin, last + margin

    def place(moment: float) -> float:
        return round(min(1.0, max(0.0, (moment - first) / (last - first))) * WIDTH, 1)

    bars = tuple(_bar(valid, at, place(valid.began), place(valid.ended or last)) for valid in found[:MOST])
    return ValidityAxis(bars, place(at), utc_day(first), utc_day(last), max(0, len(found) - MOST))


def _bar(valid: Valid, at: float, x: float, end: float) -> ValidityBar:
    late = valid.ended is not None and at > valid.ended
    state = "expired" if late else "not yet valid" if at < valid.began else "valid"
    ended = utc_day(valid.ended) if valid.ended is not None else "no end"
    return ValidityBar(valid.kind, clean(valid.name), clean(valid.issuer), valid.serial, utc_day(valid.began), ended,
                       state, x, max(3.0, round(end - x, 1)))  # fmt: skip


def _all(bootstraps: Iterable[AgentBootstrap]) -> Iterable[Valid]:
    for bootstrap in bootstraps:
        if bootstrap.trust:
            yield from _of_trust(bootstrap.trust)
        yield from _of_chain(bootstrap.shown)
        if bootstrap.certificate:
            found = bootstrap.certificate
            yield Valid("agent", found.subject, found.not_before, found.not_after, _serial(found.serial), found.issuer)


def _of_trust(trust: Trust) -> Iterable[Valid]:
    for held in trust.held:
        yield Valid("CA", held.subject, held.not_before, held.not_after, _serial(held.serial), held.issuer)
    for crl in trust.crls or ():
        yield Valid("CRL", f"CRL of {crl.issuer}", crl.last_update, crl.next_update, "", crl.issuer)


def _of_chain(chain: Sequence[bytes]) -> Iterable[Valid]:
    for der in chain[:1]:
        try:
            found = x509.read_der(der)
        except x509.Malformed:
            continue
        yield Valid("master", found.subject, found.not_before, found.not_after, _serial(found.serial), found.issuer)


def _serial(number: int) -> str:
    return f"{number:x}".upper()[:20]
