"""An agent's judgement of the certificates and CRLs that it received: at a given time, and when it changes.

Pure: the time is an argument. The checks are OpenSSL's (``protocol.chains``), the messages a Puppet 6 agent's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from OpenSSL import crypto

from inspector.protocol import x509
from inspector.rules.words import cut, some

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.protocol import documents as d
    from inspector.protocol.chains import Revocation

MOMENTS = 20
"""Maximum number of future times that are checked."""
NEVER = 253_402_300_000.0
"""The end of the year 9999: the expiry date of certificates that never expire (RFC 5280)."""
_UNREADABLE = (x509.Malformed, crypto.Error, ValueError, OverflowError, TypeError)


@lru_cache(maxsize=1)
def _verifier(authorities: tuple[bytes, ...], crls: tuple[bytes, ...]) -> x509.Verifier:
    return x509.Verifier(authorities, crls)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The agent's judgement of the certificates and CRLs that it received, at a given time."""

    at: float
    problems: tuple[str, ...]
    """Empty: the agent continues."""


@dataclass(frozen=True, slots=True)
class Trust:
    """The agent's CA certificates and CRLs, and the certificates that it checks with them."""

    own: bool
    """Whether its own download of the CA was seen; else ``held`` is what another agent downloaded."""
    held: tuple[d.Certificate, ...]
    """The CA certificates that it trusts."""
    crls: tuple[d.RevocationList, ...] | None
    """None: not in the capture."""
    revocation: Revocation
    """Its setting certificate_revocation, as far as visible; ``none`` also if its CRLs are not known."""
    shown: tuple[bytes, ...] = ()
    """The chain presented to it as the master's (DER); empty if it is not in the capture."""
    host: str | None = None
    """The name by which it called the master."""
    mine: d.Certificate | None = None
    """Its own certificate."""

    def judged(self, at: float) -> Judgement:
        """The judgement at a time (seconds since the epoch)."""
        try:
            return Judgement(at, tuple(dict.fromkeys(self._problems(at))))
        except _UNREADABLE as error:
            return Judgement(at, (f"cannot be judged: {cut(error)}",))

    def breaks(self, now: Judgement) -> Iterator[Judgement]:
        """The later times at which a new error appears, each with only the new errors."""
        known = {*now.problems}
        for moment in [time for time in sorted(self._moments()) if now.at < time < NEVER][:MOMENTS]:
            new = tuple(problem for problem in self.judged(moment + 1).problems if problem not in known)
            known |= {*new}
            if new:
                yield Judgement(moment, new)

    def problems(self, chain: tuple[bytes, ...], at: float) -> list[x509.Problem]:
        """What is wrong with a chain (DER, the leaf first) at a time, by this trust; empty for a chain that OpenSSL
        cannot read."""
        authorities, lists = tuple(item.der for item in self.held), tuple(item.der for item in self.crls or ())
        try:
            return _verifier(authorities, lists).verify(chain, at, self.revocation)
        except _UNREADABLE:
            return []

    def name_problem(self) -> str:
        """Why the name by which the agent called the master is not in the certificate it was shown; empty if it is."""
        try:
            leaf = x509.read_der(self.shown[0]) if self.shown else None
        except x509.Malformed:
            return ""
        if leaf is None or not self.host or x509.names_match(leaf, self.host):
            return ""
        names = some(leaf.alt_names) or leaf.subject
        return f"Server hostname '{cut(self.host)}' did not match server certificate; expected one of {names}"

    def _problems(self, at: float) -> Iterator[str]:
        authorities, lists = tuple(item.der for item in self.held), tuple(item.der for item in self.crls or ())
        chains = [chain for chain in (self.shown, (self.mine.der,) if self.mine else ()) if chain]
        for chain in chains:
            yield from map(str, _verifier(authorities, lists).verify(chain, at, self.revocation))
        if mismatch := self.name_problem():
            yield mismatch
        if not chains:
            yield from map(str, self.bundle_problems(at))

    def bundle_problems(self, at: float) -> Iterator[x509.Problem]:
        """The errors of the CA certificates themselves, if there is no other certificate to verify."""
        for certificate in self.held:
            if code := 9 if at < certificate.not_before else 10 if at > certificate.not_after else 0:
                yield x509.Problem(code, 0, certificate.subject, certificate.issuer)
            uncovered = all(crl.issuer != certificate.subject for crl in self.crls or ())
            if self.revocation == "chain" and certificate.is_ca and uncovered:
                yield x509.Problem(3, 0, certificate.subject, certificate.subject)
        for crl in self.crls or ():
            late = crl.next_update is not None and at > crl.next_update
            if code := 11 if at < crl.last_update else 12 if late else 0:
                yield x509.Problem(code, 0, crl.issuer, crl.issuer)

    def _moments(self) -> set[float]:
        """The times at which the judgement may change."""
        ends = {certificate.not_after for certificate in self.held}
        ends |= {crl.next_update for crl in self.crls or () if crl.next_update is not None}
        ends |= {self.mine.not_after} if self.mine else set()
        for der in self.shown:
            try:
                ends.add(x509.read_der(der).not_after)
            except x509.Malformed:
                continue
        return ends
