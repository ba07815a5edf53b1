"""What is assumed: a certificate is revoked, a date has come, no CRL is valid."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from inspector import clocks, regex
from inspector.errors import InspectorError
from inspector.protocol.certificates import printed_serial
from inspector.text import clean, utc_day

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from inspector.fleet.trust.inventory import Certificate, Inventory

FORMS = "Use --what-if revoke=SERIAL, --what-if date=2027-03-01 or --what-if crl=none."
_SERIAL = "A serial number is 0x0004, 4, or 00:04, as `puppetserver ca list --all` and openssl print it."
SCENARIOS = 16
"""The most scenarios of one command: a serial number that several CAs gave is a scenario for each."""
_NEAR = 4
"""Serial numbers that are named instead of one that is not there."""
_LARGEST = 400
"""Characters of a serial number."""
_DECIMAL = regex.compile(r"[0-9]+")
_HEXADECIMAL = regex.compile(r"0[xX][0-9A-Fa-f]+|[0-9A-Fa-f]{1,2}(:[0-9A-Fa-f]{2})+|[0-9]*[A-Fa-f][0-9A-Fa-f]*")


@dataclass(frozen=True, slots=True)
class Scenario:
    """An assumption about certificates and CRLs."""

    at: float
    """When, in seconds since the epoch."""
    dated: bool = False
    """A date was given; else it is now."""
    revoked: tuple[Certificate, ...] = ()
    without_crls: bool = False
    """No CRL is valid: they are missing, or have expired."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """The assumptions of a command line, before their certificates are looked up."""

    at: float
    dated: bool = False
    serials: tuple[int, ...] = ()
    without_crls: bool = False


def assumptions(terms: Iterable[str], now: float) -> Assumptions:
    """Read terms such as ``revoke=0x0004``. Raises InspectorError."""
    found = Assumptions(now)
    for term in terms:
        name, _, value = term.partition("=")
        match name:
            case "revoke":
                found = replace(found, serials=(*found.serials, serial_of(value)))
            case "date":
                if found.dated:
                    raise InspectorError("There are two dates.", "Ask about one date at a time.")
                found = replace(found, at=_date(value, now), dated=True)
            case "crl" if value == "none":
                found = replace(found, without_crls=True)
            case _:
                raise InspectorError(f"Cannot suppose {clean(term)[:100]!r}.", FORMS)
    return found


def serial_of(value: str) -> int:
    """Read a serial number as it is printed by Puppet or OpenSSL. Raises InspectorError."""
    digits = value.strip()
    if len(digits) > _LARGEST or not (_DECIMAL.fullmatch(digits) or _HEXADECIMAL.fullmatch(digits)):
        raise InspectorError(f"{clean(value)[:100]!r} is not a serial number.", _SERIAL)
    return int(digits) if _DECIMAL.fullmatch(digits) else int(digits.replace(":", ""), 16)


def scenarios(asked: Assumptions, inventory: Inventory) -> list[Scenario]:
    """Return what is assumed, once for each certificate that a serial number may mean. Raises InspectorError."""
    if not inventory.certificates:
        raise InspectorError(
            "There is no certificate in these tables.",
            "Convert captures with TLS handshakes: those of imported HAR files have none.",
        )
    meant = [_meant(serial, inventory) for serial in dict.fromkeys(asked.serials)]
    chosen = [*itertools.islice(itertools.product(*meant), SCENARIOS + 1)]
    if len(chosen) > SCENARIOS:
        raise InspectorError("These serial numbers mean too many certificates together.", "Ask for one at a time.")
    return [Scenario(asked.at, asked.dated, certificates, asked.without_crls) for certificates in chosen]


def _meant(serial: int, inventory: Inventory) -> Sequence[Certificate]:
    """The certificates with a serial number, one for each CA."""
    known = {certificate.serial: certificate for certificate in inventory.certificates.values()}
    if serial not in known:
        near = sorted(known, key=lambda number: (abs(number - serial), number))[:_NEAR]
        # Digits only are decimal here; OpenSSL prints hexadecimal ones.
        read = int(f"{serial}", 16) if serial < 10**_LARGEST else serial
        near = [read, *(number for number in near if number != read)] if read in known else near
        names = ", ".join(f"{printed_serial(number)} ({clean(known[number].subject)[:60]})" for number in near)
        raise InspectorError(
            f"No certificate with the serial number {printed_serial(serial)} was recorded.", f"Near: {names}"
        )
    return [one for one in inventory.certificates.values() if one.serial == serial]


def _date(value: str, now: float) -> float:
    try:
        at = clocks.iso(value)
    except (ValueError, OverflowError) as error:
        raise InspectorError(f"{clean(value)[:100]!r} is not a date.", "Use the form date=2027-03-01.") from error
    if at < now and utc_day(at) == utc_day(now):
        return now  # today
    if at < now:
        raise InspectorError(
            f"{utc_day(at)} is in the past.",
            "What has ended since is in the list without --what-if; name a date to come.",
        )
    return at
