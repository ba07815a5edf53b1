"""The two TLS legs: what the agent is shown and asked, and how the master is verified.

OpenSSL verifies during the handshake, as puppetserver and the agent do themselves, so its errors and
alerts are theirs. Each connection gets a ``Watch`` that remembers what was found. Contexts are cached by
the content of what they hold, never by path: a renewed file takes effect with the next connection.
"""

from __future__ import annotations

import hashlib
import warnings
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from cryptography import x509 as cx509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL import SSL
from OpenSSL.crypto import FILETYPE_ASN1, X509, PKey, X509StoreFlags, dump_certificate

from inspector.errors import IdentityError, InspectorError
from inspector.protocol import x509
from inspector.proxy import identity

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from inspector.host.pki import PrivateKey
    from inspector.protocol.certificates import Certificate

CIPHERS = b"DEFAULT:@SECLEVEL=0"
"""Agents of 2.7 and 3.x have TLS 1.0, SHA-1 and 1024-bit keys. What is refused is the other end's choice:
the proxy must pass what would pass without it (rule T01 tells)."""

ALERTS = {
    0: "close_notify", 10: "unexpected_message", 20: "bad_record_mac", 40: "handshake_failure",
    42: "bad_certificate", 43: "unsupported_certificate", 44: "certificate_revoked",
    45: "certificate_expired", 46: "certificate_unknown", 47: "illegal_parameter", 48: "unknown_ca",
    49: "access_denied", 50: "decode_error", 51: "decrypt_error", 70: "protocol_version",
    71: "insufficient_security", 80: "internal_error", 86: "inappropriate_fallback", 90: "user_canceled",
    109: "missing_extension", 112: "unrecognized_name", 116: "certificate_required",
    120: "no_application_protocol",
}  # fmt: skip
"""RFC 8446, 6.2."""
FATAL = 2
"""The level of an alert that ends the connection (RFC 5246, 7.2)."""


@dataclass(slots=True)
class Watch:
    """What was seen of one TLS connection while it was made."""

    problems: list[x509.Problem] = field(default_factory=list)
    """Why the peer's chain does not verify."""
    chain: dict[int, bytes] = field(default_factory=dict)
    """The peer's chain as OpenSSL built it: depth -> DER."""
    wrong_name: str | None = None
    """The names in the master's certificate, if the one we asked for is not among them."""
    alert: str | None = None
    alert_by: Literal["peer", "proxy"] | None = None
    closed_by_peer: bool = False
    """The peer said goodbye (close_notify)."""

    @property
    def refused(self) -> bool:
        """Something is wrong with the peer's certificate itself, not only its revocation unknown."""
        return self.wrong_name is not None or any(not problem.undecided for problem in self.problems)

    @property
    def verified(self) -> bool:
        """The peer showed a certificate and nothing at all is wrong with it."""
        return bool(self.chain) and not self.problems and self.wrong_name is None

    def complete(self, connection: SSL.Connection) -> None:
        """Learn the peer's own certificate from the chain as built, if verifying it stopped above that."""
        if 0 not in self.chain:
            built = connection.get_verified_chain(as_cryptography=True) or []
            self.chain |= {depth: each.public_bytes(Encoding.DER) for depth, each in enumerate(built)}

    @property
    def presented(self) -> tuple[bytes, ...]:
        return tuple(self.chain[depth] for depth in sorted(self.chain))


class Material:
    """The site's CA bundle and CRLs, read again whenever the files change."""

    def __init__(self, ca: Path, crl: Path) -> None:
        self.ca, self.crl = ca, crl
        self._state: tuple[object, ...] = ()
        self.authorities: tuple[cx509.Certificate, ...] = ()
        self.crls: tuple[cx509.CertificateRevocationList, ...] = ()
        self.digest = b""
        self.trouble: str | None = None
        self.refresh()

    def refresh(self) -> None:
        """Read what changed. A file that became unreadable keeps its last good content (``trouble`` says so).

        Raises IdentityError the first time, if there is no usable CA bundle at all.
        """
        state = (_stamp(self.ca), _stamp(self.crl))
        if state == self._state:
            return
        try:
            ca = self.ca.read_bytes()
            authorities = tuple(cx509.load_pem_x509_certificates(ca))
        except (OSError, ValueError, UnsupportedAlgorithm) as error:
            reason = getattr(error, "strerror", None) or "it holds no certificate in PEM form"
            self.trouble = f"The CA bundle {self.ca} can't be read: {reason}."
            if not self.authorities:
                raise IdentityError(
                    self.trouble, "Run the agent once, or name the files with puppet_ssldir or puppet_ca."
                ) from error
            return
        crls, self.trouble = self._read_crls()
        if self.trouble and self.crls:
            self._state = state  # in mid-renewal: the last good ones count until it changes again
            return
        self._state, self.authorities, self.crls = state, authorities, crls
        ders = [each.public_bytes(Encoding.DER) for each in authorities]
        ders += [each.public_bytes(Encoding.DER) for each in crls]
        self.digest = hashlib.sha256(b"".join(ders)).digest()

    def _read_crls(self) -> tuple[tuple[cx509.CertificateRevocationList, ...], str | None]:
        try:
            blocks = x509.pem_blocks(self.crl.read_bytes(), "X509 CRL")
            return tuple(cx509.load_pem_x509_crl(block) for block in blocks), None
        except OSError as error:
            return (), f"There is no CRL to check agents with: {self.crl} ({error.strerror})."
        except (ValueError, UnsupportedAlgorithm) as error:
            return (), f"The CRL {self.crl} can't be read: {error}."

    def problems(self, at: float) -> list[str]:
        """What keeps this CRL bundle from proving anything at a time, in sentences; empty if it is sound."""
        if self.trouble:
            return [self.trouble]
        sentences = []
        issuers = {x509.name_of(crl.issuer): crl for crl in self.crls}
        for authority in self.authorities:
            name = x509.name_of(authority.subject)
            crl = issuers.get(name)
            if crl is None:
                sentences.append(x509.in_agents_words(3, name, name))
            elif crl.next_update_utc is not None and crl.next_update_utc.timestamp() < at:
                sentences.append(x509.in_agents_words(12, name, name))
            elif crl.last_update_utc.timestamp() > at:
                sentences.append(x509.in_agents_words(11, name, name))
        return sentences


class Shown:
    """The certificate that agents are shown, read again whenever its files change."""

    def __init__(self, certificate: Path, key: Path, *, unsafe: bool = False) -> None:
        """``unsafe``: use the key also if others can read it. Raises InspectorError."""
        self._files = (certificate, key)
        self._unsafe = unsafe
        self._state: tuple[object, ...] = ()
        self.credentials = identity.load(certificate, key, unsafe=unsafe)
        self.trouble: str | None = None

    @property
    def issuer(self) -> cx509.Name:
        return self.credentials.chain[0].issuer

    def refresh(self) -> identity.Credentials:
        """The credentials as they are now; the last good ones while the files can't be used."""
        state = tuple(_stamp(file) for file in self._files)
        if state != self._state:
            try:
                self.credentials, self.trouble = identity.load(*self._files, unsafe=self._unsafe), None
            except InspectorError as error:
                self.trouble = str(error)
            self._state = state
        return self.credentials


def _stamp(path: Path) -> tuple[int, int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode


class Contexts:
    """OpenSSL contexts, cached by content: making one costs more than a request."""

    LIMIT = 1024

    def __init__(self) -> None:
        self._cache: OrderedDict[tuple[object, ...], SSL.Context] = OrderedDict()

    def for_agent(self, material: Material, shown: identity.Credentials) -> SSL.Context:
        """The context that agents meet: it shows ``shown`` and asks for, but does not insist on, theirs."""
        key = ("agent", material.digest, shown.ders)
        return self._get(key, lambda: self._agent(material, shown))

    def for_master(self, material: Material, lent: identity.Credentials | None) -> SSL.Context:
        """The context that meets the master; the agent's own certificate and key come with the connection.

        So all agents share one: each holds a copy of the CRLs, which are large at large sites.
        """
        key = ("master", material.digest, lent.ders[1:] if lent else None)
        return self._get(key, lambda: self._master(material, lent))

    def _get(self, key: tuple[object, ...], make: Callable[[], SSL.Context]) -> SSL.Context:
        context = self._cache.get(key)
        if context is None:
            context = self._cache[key] = make()
            if len(self._cache) > self.LIMIT:
                self._cache.popitem(last=False)
        self._cache.move_to_end(key)
        return context

    def _agent(self, material: Material, shown: identity.Credentials) -> SSL.Context:
        context = _context(SSL.TLS_SERVER_METHOD, material)
        # A resumed session would skip the check against today's CRL, and without a session id context
        # OpenSSL refuses it, which breaks a POST (Ruby resumes after 2 s of silence).
        context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
        # Whoever an agent was at its first handshake, it stays on this connection.
        context.set_options(SSL.OP_NO_TICKET | SSL.OP_NO_RENEGOTIATION)
        context.set_session_id(b"puppet-inspector")
        context.use_certificate(shown.chain[0])
        for each in shown.chain[1:] or _issuers(shown.chain[0], material):
            context.add_extra_chain_cert(each)
        context.use_privatekey(shown.key)
        for authority in material.authorities:
            context.add_client_ca(authority)
        return context

    def _master(self, material: Material, lent: identity.Credentials | None) -> SSL.Context:
        context = _context(SSL.TLS_CLIENT_METHOD, material)
        for each in lent.chain[1:] if lent else ():
            context.add_extra_chain_cert(each)
        return context


def _issuers(leaf: cx509.Certificate, material: Material) -> list[cx509.Certificate]:
    """The intermediate CAs above a leaf, as a Puppet master sends them: agents may hold the root only."""
    chain: list[cx509.Certificate] = []
    wanted = leaf.issuer
    for _ in material.authorities:
        issuer = next((each for each in material.authorities if each.subject == wanted), None)
        if issuer is None or issuer.subject == issuer.issuer:
            break
        chain.append(issuer)
        wanted = issuer.issuer
    return chain


def _context(method: int, material: Material) -> SSL.Context:
    context = SSL.Context(method)
    context.set_cipher_list(CIPHERS)
    context.set_min_proto_version(SSL.TLS1_VERSION)
    store = context.get_cert_store()
    if store is None:
        raise InspectorError("OpenSSL gave no certificate store.")
    for authority in material.authorities:
        store.add_cert(_x509(authority))
    for crl in material.crls:
        store.add_crl(crl)
    store.set_flags(X509StoreFlags.CRL_CHECK | X509StoreFlags.CRL_CHECK_ALL)
    return context


def _x509(certificate: cx509.Certificate) -> X509:
    return X509.from_cryptography(certificate)


class _Connection(SSL.Connection):
    """Ends when the peer sends a fatal alert after the handshake, as TLS 1.3 masters refuse a certificate.

    OpenSSL counts that as received shutdown, for which mitmproxy (12.2) takes it that its upper layers know
    already; they never do, and the agent waits for its read timeout of ten minutes.
    """

    watch: Watch

    def get_shutdown(self) -> int:
        state: int = super().get_shutdown()
        return state & ~SSL.RECEIVED_SHUTDOWN if self.watch.alert_by == "peer" else state


def agent_connection(context: SSL.Context) -> tuple[SSL.Connection, Watch]:
    """A connection to meet an agent on."""
    connection, watch = _watched(context)
    connection.set_verify(SSL.VERIFY_PEER, _verifier(watch, tolerant=True, name=None))
    connection.set_accept_state()
    return connection, watch


def master_connection(
    context: SSL.Context, name: str, sni: str | None, lent: identity.Credentials | None
) -> tuple[SSL.Connection, Watch]:
    """A connection to meet the master on, who must be ``name`` whatever ``sni`` asks for.

    An unknown revocation state (no CRL, or an expired one) is passed over only when no identity is lent:
    then a bootstrap can still be seen.
    """
    connection, watch = _watched(context)
    connection.set_verify(SSL.VERIFY_PEER, _verifier(watch, tolerant=lent is None, name=name))
    if lent:
        certificate, key = _for_openssl(lent.chain[0], lent.key)
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            connection.use_certificate(certificate)
            connection.use_privatekey(key)
    if sni and not sni.replace(".", "").isdigit() and ":" not in sni:
        connection.set_tlsext_host_name(sni.encode("idna"))
    connection.set_connect_state()
    return connection, watch


@lru_cache(maxsize=1024)
def _for_openssl(certificate: cx509.Certificate, key: PrivateKey) -> tuple[X509, PKey]:
    """An identity as OpenSSL has it. It prepares an RSA key at the first signature, which takes as long as half of one:
    pyOpenSSL's advice, to pass it objects of cryptography, would pay for that with every connection."""
    return _x509(certificate), PKey.from_cryptography_key(key)


def refusing(*, server: bool) -> SSL.Connection:
    """A connection whose handshake can't succeed: for when nothing better could be made."""
    connection = SSL.Connection(SSL.Context(SSL.TLS_SERVER_METHOD if server else SSL.TLS_CLIENT_METHOD))
    connection.set_verify(SSL.VERIFY_PEER, lambda *_: False)
    if server:
        connection.set_accept_state()
    else:
        connection.set_connect_state()
    return connection


def _watched(context: SSL.Context) -> tuple[_Connection, Watch]:
    connection = _Connection(context)
    connection.watch = watch = Watch()
    connection.set_info_callback(_listener(watch))
    return connection, watch


@lru_cache(maxsize=256)
def parsed_of(der: bytes) -> cx509.Certificate:
    """A certificate; the same ones come with every connection."""
    return cx509.load_der_x509_certificate(der)


@lru_cache(maxsize=64)
def _leaf_of(der: bytes) -> Certificate:
    """A master's certificate; there are few."""
    return x509.certificate(parsed_of(der))


def _verifier(
    watch: Watch, *, tolerant: bool, name: str | None
) -> Callable[[SSL.Connection, X509, int, int, int], bool]:
    def verify(_connection: SSL.Connection, certificate: X509, code: int, depth: int, ok: int) -> bool:
        watch.chain[depth] = der = dump_certificate(FILETYPE_ASN1, certificate)
        if not ok:
            parsed = parsed_of(der)
            problem = x509.Problem(code, depth, x509.name_of(parsed.subject), x509.name_of(parsed.issuer))
            watch.problems.append(problem)
            return tolerant and problem.undecided
        if depth == 0 and name is not None:
            leaf = _leaf_of(der)
            if not x509.names_match(leaf, name):
                watch.wrong_name = ", ".join(leaf.alt_names) or leaf.subject
                return False
        return True

    return verify


def _listener(watch: Watch) -> Callable[[SSL.Connection, int, int], None]:
    def listen(_connection: SSL.Connection, where: int, code: int) -> None:
        if not where & SSL.SSL_CB_ALERT:
            return
        if code & 0xFF == 0:
            watch.closed_by_peer |= bool(where & SSL.SSL_CB_READ)
        elif code >> 8 == FATAL:  # a warning, as a server may send for an unknown SNI, ends nothing
            watch.alert = ALERTS.get(code & 0xFF, f"alert {code & 0xFF}")
            watch.alert_by = "peer" if where & SSL.SSL_CB_READ else "proxy"

    return listen
