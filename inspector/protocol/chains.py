"""Whether an agent would trust a certificate chain, and which error it would print, checked with OpenSSL's own
store."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from OpenSSL import crypto

from inspector.protocol.fields import name_of
from inspector.protocol.pem import Malformed, guard, read_certificates, read_crls
from inspector.protocol.signatures import issued_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.protocol.certificates import Certificate, RevocationList

type Revocation = Literal["chain", "leaf", "none"]
"""The agent's setting ``certificate_revocation``."""

CRL_TROUBLE = frozenset({3, 11, 12})
"""OpenSSL's codes for "no CRL", "CRL not yet valid", "CRL expired": the revocation state is unknown, but the
certificate itself is not at fault."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason why a chain does not verify."""

    code: int
    """OpenSSL's X509_V_ERR number."""
    depth: int
    subject: str
    issuer: str

    @property
    def undecided(self) -> bool:
        """True if only the revocation state is unknown: the certificate itself was not refused."""
        return self.code in CRL_TROUBLE

    def __str__(self) -> str:
        return in_agents_words(self.code, self.subject, self.issuer)


def in_agents_words(code: int, subject: str, issuer: str) -> str:
    """The sentence a Puppet 6+ agent prints for an X509_V_ERR code."""
    sentences = {
        2: f"The issuer '{issuer}' of certificate '{subject}' is missing",
        3: f"The CRL issued by '{issuer}' is missing",
        7: f"Invalid signature for certificate '{subject}'",
        8: f"Invalid signature for CRL issued by '{issuer}'",
        9: f"The certificate '{subject}' is not yet valid, verify time is synchronized",
        10: f"The certificate '{subject}' has expired, verify time is synchronized",
        11: f"The CRL issued by '{issuer}' is not yet valid, verify time is synchronized",
        12: f"The CRL issued by '{issuer}' has expired, verify time is synchronized",
        18: f"certificate verify failed [self signed certificate for {subject}]",
        19: f"certificate verify failed [self signed certificate in certificate chain for {subject}]",
        20: f"certificate verify failed [unable to get local issuer certificate for {subject}]",
        23: f"Certificate '{subject}' is revoked",
    }
    return sentences.get(code) or f"Certificate '{subject}' failed verification (X509_V_ERR {code})"


_FIRST, _LAST = -62_135_596_800.0, 253_402_300_799.0
"""The start of the year 1 and the end of the year 9999: times outside them cannot be dates."""
_STORES = 4
"""Maximum number of cached stores, with all their CRLs."""


def verify(
    chain: Sequence[bytes],
    authorities: Sequence[bytes],
    crls: Sequence[bytes],
    at: float,
    revocation: Revocation = "chain",
) -> list[Problem]:
    """Every reason why an agent that trusts ``authorities`` and has ``crls`` refuses ``chain`` at a time.

    All arguments are DER; ``chain`` begins with the leaf. OpenSSL stops at the first error, so the check is repeated
    with the cause of that error removed. Raises Malformed for bytes that are not a certificate.
    """
    return Verifier(authorities, crls).verify(chain, at, revocation)


def check_usable(certificates: Sequence[bytes], crls: Sequence[bytes] = ()) -> None:
    """Raise Malformed if OpenSSL, and so every agent, cannot read one of these (DER): it checks more than the library
    that reads their fields."""
    try:
        Verifier(certificates, crls).store("chain", 0.0)
    except crypto.Error as error:
        raise Malformed("OpenSSL cannot read it") from error


def usable_certificates(data: bytes) -> list[Certificate]:
    """Return every certificate of a PEM bundle that is to be verified with. Raises Malformed."""
    found = read_certificates(data)
    check_usable([certificate.der for certificate in found])
    return found


def usable_crls(data: bytes) -> list[RevocationList]:
    """Return every CRL of a PEM bundle that is to be verified with. Raises Malformed."""
    found = read_crls(data)
    check_usable([], [crl.der for crl in found])
    return found


class Verifier:
    """The CAs and CRLs of an agent. The latest stores are cached: a CRL of 100,000 serial numbers takes long to
    load."""

    def __init__(self, authorities: Sequence[bytes], crls: Sequence[bytes]) -> None:
        """Both are DER. Raises Malformed."""
        self.roots = [guard(x509.load_der_x509_certificate, der) for der in authorities]
        self.lists = [guard(x509.load_der_x509_crl, der) for der in crls]
        self._stores: dict[tuple[Revocation, float], crypto.X509Store] = {}

    def verify(self, chain: Sequence[bytes], at: float, revocation: Revocation = "chain") -> list[Problem]:
        """See ``verify``."""
        certificates = [guard(x509.load_der_x509_certificate, der) for der in chain]
        try:
            return _verify(self, certificates, at, revocation)
        except crypto.Error as error:
            raise Malformed("OpenSSL cannot read it") from error

    def store(self, revocation: Revocation, at: float) -> crypto.X509Store:
        """Return an OpenSSL store of these. A store's time can be set only once."""
        known = self._stores.get((revocation, at))
        if known is None:
            known = crypto.X509Store()
            for root in self.roots:
                known.add_cert(crypto.X509.from_cryptography(root))
            if revocation != "none":
                for crl in self.lists:
                    known.add_crl(crl)
                every = crypto.X509StoreFlags.CRL_CHECK_ALL if revocation == "chain" else 0
                known.set_flags(crypto.X509StoreFlags.CRL_CHECK | every)
            known.set_time(datetime.datetime.fromtimestamp(at, datetime.UTC).replace(tzinfo=None))
            if len(self._stores) >= _STORES:
                del self._stores[next(iter(self._stores))]
            self._stores[revocation, at] = known
        return known


def _verify(by: Verifier, certificates: list[x509.Certificate], at: float, revocation: Revocation) -> list[Problem]:
    roots, at = by.roots, max(_FIRST, min(at, _LAST))
    problems: list[Problem] = []
    # OpenSSL stops at the first certificate with an error, so each one of the chain is checked separately.
    for depth, cert in enumerate(_issuers(certificates[:1], [*certificates[1:], *roots])):
        mode: Revocation = revocation if depth == 0 or revocation == "chain" else "none"
        if depth and mode == "chain":
            mode = "leaf"
        for problem in _problems(cert, certificates[1:], by, at, mode):
            found = replace(problem, depth=problem.depth + depth)
            # Up to version 3, OpenSSL misses the CRL of a root for the root itself, too.
            if str(found) not in map(str, problems):
                problems.append(found)
    return problems


def issuer_chain(der: bytes, others: Sequence[bytes]) -> list[bytes]:
    """A certificate and its issuers, if they are among ``others``. Raises Malformed."""
    first = guard(x509.load_der_x509_certificate, der)
    rest = [guard(x509.load_der_x509_certificate, other) for other in others]
    return [other.public_bytes(serialization.Encoding.DER) for other in _issuers([first], rest)]


def _issuers(chain: list[x509.Certificate], others: list[x509.Certificate]) -> list[x509.Certificate]:
    chain = list(chain)
    while chain and len(chain) <= len(others) and chain[-1].issuer != chain[-1].subject:
        wanted = chain[-1].issuer
        named = [other for other in others if other.subject == wanted and other not in chain]
        # A CA that was renewed or recreated has several certificates of one name: take the one that signed.
        issuer = next((other for other in named if issued_by(chain[-1], other)), named[0] if named else None)
        if issuer is None:
            break
        chain.append(issuer)
    return chain


def _problems(
    cert: x509.Certificate,
    others: list[x509.Certificate],
    by: Verifier,
    at: float,
    revocation: Revocation,
) -> list[Problem]:
    """The errors of one certificate and its issuers, found by removing causes one by one."""
    problems: list[Problem] = []
    reported: set[tuple[int, int]] = set()
    # Without the CRLs the certificate's own errors appear; at a time within its validity, the CRLs' errors do.
    if _first_problem([cert, *others], by, at, revocation) is None:
        return []
    middle = (cert.not_valid_before_utc.timestamp() + cert.not_valid_after_utc.timestamp()) / 2
    attempts: list[tuple[Revocation, float]] = [(revocation, at), ("none", at), (revocation, middle)]
    attempts.append(("leaf" if revocation == "chain" else revocation, at))
    # An outdated CRL still lists the certificates that were revoked when it was issued.
    made = [crl.last_update_utc.timestamp() for crl in by.lists if crl.issuer == cert.issuer]
    attempts += [("leaf", max(made))] if made and revocation != "none" else []
    for mode, when in attempts:
        problem = _first_problem([cert, *others], by, when, mode)
        if problem is None or (problem.code, problem.depth) in reported:
            continue
        if when != at and problem.code in (9, 10, 11, 12):
            continue
        reported.add((problem.code, problem.depth))
        problems.append(problem)
    return problems


def _first_problem(
    chain: list[x509.Certificate],
    by: Verifier,
    at: float,
    revocation: Revocation,
) -> Problem | None:
    if not chain:
        return None
    store = by.store(revocation, at)
    context = crypto.X509StoreContext(
        store,
        crypto.X509.from_cryptography(chain[0]),
        [crypto.X509.from_cryptography(cert) for cert in chain[1:]],
    )
    try:
        context.verify_certificate()
    except crypto.X509StoreContextError as error:
        culprit = error.certificate.to_cryptography() if error.certificate else chain[0]
        code, depth = int(error.errors[0]), int(error.errors[1])
        return Problem(code, depth, name_of(culprit.subject), name_of(culprit.issuer))
    return None
