"""Certificates, signing requests, revocation lists and both legs of an exchange, as trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from OpenSSL import crypto

from inspector import clocks
from inspector.model import Exchange, Handshake
from inspector.pages.model import Item, item_of
from inspector.pages.styles import BAD, DOUBT, GOOD
from inspector.privacy import secrets
from inspector.protocol import x509
from inspector.protocol.certificates import printed_serial
from inspector.protocol.signatures import signed_by
from inspector.rules.words import some, utc
from inspector.summaries import wording
from inspector.text import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from inspector.model import Leg
    from inspector.protocol.documents import Certificate, CertificateRequest, RevocationList, Revoked

NOT_RECORDED = "not recorded"
"""What an imported flow does not say."""


@dataclass(frozen=True, slots=True)
class TrustContext:
    """The trust by which a record's certificates are checked: what the run had received until then."""

    at: float
    """The record's time."""
    certificates: tuple[Certificate, ...] = ()
    crls: tuple[RevocationList, ...] = ()
    trusted: tuple[Certificate, ...] = ()
    """The CA bundle downloaded last; other presented certificates prove nothing."""
    requests: tuple[CertificateRequest, ...] = ()
    accepted: frozenset[str] = frozenset()
    """The keys of the requests that the CA accepted."""

    def also(
        self,
        certificates: Iterable[Certificate] = (),
        crls: Iterable[RevocationList] = (),
        trusted: Iterable[Certificate] = (),
        requests: Iterable[CertificateRequest] = (),
        accepted: Iterable[str] = (),
    ) -> TrustContext:
        """A copy with more certificates; the latest come first."""
        trusted = tuple(trusted) or self.trusted
        more = {certificate.der: certificate for certificate in (*certificates, *trusted, *self.certificates)}
        lists = {crl.der: crl for crl in (*crls, *self.crls)}
        return TrustContext(
            self.at, tuple(more.values()), tuple(lists.values()), trusted, (*requests, *self.requests),
            self.accepted.union(accepted),
        )  # fmt: skip


def verdicts(certificate: Certificate, known: TrustContext) -> Iterator[Item]:
    """The state of a certificate at the record's time: signature, dates, revocation."""
    named = [candidate for candidate in known.certificates if candidate.subject == certificate.issuer]
    issuer = next((candidate for candidate in named if signed_by(certificate, candidate) is not False), None)
    if certificate.subject == certificate.issuer and signed_by(certificate, certificate) is not False:
        yield Item("signed by", "itself (root certificate)", style=GOOD)
    elif issuer:
        yield Item("signed by", f"{issuer.subject} (serial {printed_serial(issuer.serial)})", style=GOOD)
    elif named:
        yield Item("signed by", f"none of the recorded certificates named {certificate.issuer}", style=BAD)
    else:
        yield Item("signed by", f"{certificate.issuer}; its certificate is not in this run", style=DOUBT)
    if known.at > certificate.not_after:
        yield Item("validity", f"expired on {utc(certificate.not_after)}", style=BAD)
    elif known.at < certificate.not_before:
        yield Item("validity", f"not valid before {utc(certificate.not_before)}", style=BAD)
    else:
        days = int((certificate.not_after - known.at) // clocks.DAY)
        yield Item("validity", f"valid at the time of this record, {days:,} days left", style=GOOD)
    asked = next((request for request in known.requests if request.common_name == certificate.common_name), None)
    if asked and not certificate.is_ca:
        same = certificate.is_for(asked)
        match = (
            "same as in the signing request of this run" if same else "not the key of the signing request of this run"
        )
        yield Item("key match", match, style=GOOD if same else BAD)
    lists = [crl for crl in known.crls if crl.issuer == certificate.issuer]
    revoked = next((entry for crl in lists for entry in crl.entries if entry.serial == certificate.serial), None)
    if revoked:
        why = f" ({revoked.reason})" if revoked.reason else ""
        yield Item("revoked", f"yes, on {utc(revoked.date)}{why}", style=BAD)
    elif lists:
        yield Item("revoked", f"no, by the CRL of {utc(lists[0].last_update)}", style=GOOD)
    elif certificate.subject != certificate.issuer:
        yield Item("revoked", "unknown: no CRL of the issuer in this run", style=DOUBT)


def certificate(certificate: Certificate, known: TrustContext, name: str = "", *, opened: bool = True) -> Item:
    """A certificate's fields and its state."""

    def inner() -> Iterator[Item]:
        yield from verdicts(certificate, known)
        yield Item("issuer", certificate.issuer)
        yield Item("serial", f"{printed_serial(certificate.serial)} ({certificate.serial})")
        yield Item("not before", utc(certificate.not_before))
        yield Item("not after", utc(certificate.not_after))
        yield Item("fingerprint (SHA256)", certificate.fingerprint)
        yield Item("key", f"{_key(certificate.key_type, certificate.key_size)}, SHA-256 {certificate.key}")
        yield Item("signature", certificate.signature or "no digest")
        yield Item("CA", "yes" if certificate.is_ca else "no")
        yield from (Item("alternative name", alt) for alt in certificate.alt_names)
        yield from _extensions(secrets.extensions(certificate))
        if certificate.key_identifier:
            yield Item("key identifier", certificate.key_identifier)
        if certificate.authority_key_identifier:
            yield Item("issuer's key identifier", certificate.authority_key_identifier)

    title = f"{name}: {certificate.subject}" if name else certificate.subject
    return Item(title, inner=inner, note="CA" if certificate.is_ca else "", opened=opened)


def _key(kind: str, size: int | None) -> str:
    return f"{kind.upper()} {size} bits" if size else kind.upper()


def _extensions(found: dict[str, str | secrets.Secret]) -> Iterator[Item]:
    return (item_of(f"extension {name}", value) for name, value in found.items())


def request(request: CertificateRequest, known: TrustContext) -> Item:
    """A signing request's fields."""

    def inner() -> Iterator[Item]:
        validity = {None: ("cannot be checked", DOUBT), True: ("valid", GOOD), False: ("invalid", BAD)}[
            request.signature_valid
        ]
        yield Item("self-signature", validity[0], style=validity[1])
        yield Item("fingerprint (SHA256)", request.fingerprint)
        yield Item("key", f"{_key(request.key_type, request.key_size)}, SHA-256 {request.key}")
        issued = next((one for one in known.certificates if one.common_name == request.common_name), None)
        if issued:
            same = issued.is_for(request)
            yield Item("certificate for this name", "has this key" if same else "has another key",
                       style=GOOD if same else BAD)  # fmt: skip
        yield Item("signature", request.signature or "no digest")
        yield from (Item("alternative name", alt) for alt in request.alt_names)
        yield from _extensions(secrets.extensions(request))
        yield from (item_of(f"attribute {name}", value) for name, value in secrets.attributes(request).items())

    return Item(request.subject, inner=inner, note="signing request", opened=True)


def crl(crl: RevocationList, known: TrustContext) -> Item:
    """The fields of a CRL, revoked certificates first."""

    def inner() -> Iterator[Item]:
        named = [one for one in known.certificates if one.subject == crl.issuer]
        if any(signed_by(crl, one) is not False for one in named):
            yield Item("signed by", crl.issuer, style=GOOD)
        elif named:
            yield Item("signed by", f"none of the recorded certificates named {crl.issuer}", style=BAD)
        else:
            yield Item("signed by", "a CA whose certificate is not in this run", style=DOUBT)
        if crl.next_update is not None and known.at > crl.next_update:
            yield Item("validity", f"expired on {utc(crl.next_update)}", style=BAD)
        elif known.at < crl.last_update:
            yield Item("validity", f"not valid before {utc(crl.last_update)}", style=BAD)
        else:
            yield Item("validity", "valid at the time of this record", style=GOOD)
        for one in known.certificates:
            if one.issuer == crl.issuer and one.serial in crl.revoked:
                yield Item(
                    "revokes", f"{one.subject} (serial {printed_serial(one.serial)}), recorded in this run", style=BAD
                )
        yield Item("number", crl.number)
        yield Item("last update", utc(crl.last_update))
        yield Item("next update", utc(crl.next_update) if crl.next_update is not None else "none")
        yield Item("signature", crl.signature or "no digest")
        yield Item("revoked", inner=lambda: map(_revoked, crl.entries), note=f"{len(crl.entries)} serial numbers")

    def _revoked(entry: Revoked) -> Item:
        why = f", {entry.reason}" if entry.reason else ""
        return Item(printed_serial(entry.serial), f"on {utc(entry.date)}{why}")

    return Item(f"CRL of {crl.issuer}", inner=inner, opened=True)


# -- both legs -------------------------------------------------------------------------------------------


def shown(legs: Sequence[Leg | None]) -> tuple[Certificate, ...]:
    """The certificates of both handshakes, as far as they can be read."""
    found = []
    for leg in legs:
        for der in (*leg.peer_chain, *leg.own_chain) if leg else ():
            try:
                found.append(x509.read_der(der))
            except x509.Malformed:
                continue
    return tuple(found)


def handshakes(record: Exchange | Handshake, known: TrustContext) -> Item:
    """Both connections, the presented certificates, and the identity used towards the master."""
    legs = [record.agent, record.master] if isinstance(record, Exchange) else [record.leg]
    known = known.also(shown(legs))

    def inner() -> Iterator[Item]:
        if isinstance(record, Handshake):
            yield Item("failed", wording.handshake(record), style=BAD)
            if record.injected:
                yield Item("injected on purpose", record.injected, style=DOUBT)
            yield from (Item("problem", culprit, style=BAD) for culprit in record.culprits)
        for leg in legs:
            if leg:
                yield _leg(leg, known, recorded=isinstance(record, Handshake) or record.identity is not None)
        if isinstance(record, Exchange):
            if record.master is None:
                yield Item("with the master", "no connection recorded")
            yield Item("identity used", wording.identity(record.identity))
            yield Item("removed before the master", ", ".join(record.stripped) or "nothing")

    return Item("TLS", inner=inner)


def _leg(leg: Leg, known: TrustContext, *, recorded: bool) -> Item:
    """Return one connection as a tree. ``recorded``: our own proxy recorded it, so what is missing did not exist; an
    imported flow does not say that."""
    none = "none" if recorded else NOT_RECORDED

    def inner() -> Iterator[Item]:
        yield Item("address", f"{leg.address or '?'}:{leg.port or '?'}")
        established = leg.secured is not None
        yield Item("handshake", "complete" if established else "none or failed", style="" if established else DOUBT)
        yield Item("version", leg.tls_version or "unknown")
        yield Item("cipher", leg.cipher or "unknown")
        yield Item("SNI", leg.sni or none)
        yield Item("ALPN", leg.alpn or none)
        yield Item("resumed", {None: "unknown", True: "yes", False: "no"}[leg.resumed])
        if leg.tunnelled:
            yield Item("passed on", "unread: what the server showed is what the agent saw", style=DOUBT)
        if leg.for_one_run:
            yield Item("presented", "by a CA of the proxy's own, which the agent trusts for this run")
        if leg.probed:
            yield Item("verification probe", "the agent was presented a certificate that it must refuse", style=DOUBT)
        yield _chain(f"presented by the {leg.side}", leg.peer_chain, known, recorded=recorded)
        yield _chain(f"presented to the {leg.side}", leg.own_chain, known, recorded=recorded)
        yield from _problems(leg, known)

    return Item(f"with the {leg.side}", inner=inner, opened=True)


def _chain(name: str, chain: Sequence[bytes], known: TrustContext, *, recorded: bool) -> Item:
    def inner() -> Iterator[Item]:
        for place, der in enumerate(chain):
            try:
                decoded = x509.read_der(der)
            except x509.Malformed as error:
                yield Item(f"{place + 1}", f"cannot be read: {error}", style=BAD)
                continue
            yield certificate(decoded, known, f"{place + 1}", opened=False)

    if not chain:
        return Item(name, "no certificate" if recorded else NOT_RECORDED)
    return Item(name, inner=inner, note=plural(len(chain), "certificate"), opened=True)


def _problems(leg: Leg, known: TrustContext) -> Iterator[Item]:
    """What an agent reports about the presented chain, given the CA bundle and CRLs that its run had received."""
    authorities = [certificate.der for certificate in known.trusted]
    if leg.side != "agent" or not leg.own_chain or not authorities or leg.for_one_run:
        return
    crls = [crl.der for crl in known.crls]
    try:
        problems = x509.verify(leg.own_chain, authorities, crls, known.at, "chain" if crls else "none")
    except (x509.Malformed, crypto.Error, ValueError, OverflowError) as error:
        yield Item("verification", f"not possible: {error}", style=DOUBT)
        return
    result = some([str(problem) for problem in problems]) if problems else "valid with the CA bundle of this run"
    yield Item("verification", result, style=BAD if problems else GOOD)
