"""The two TLS legs: the certificate presented to the agent, the verification of the agent and of the master.

OpenSSL verifies during the handshake, as puppetserver and the agent do themselves, so its errors and alerts are the
same as theirs. Each connection has a ``TlsState`` with the results. Contexts are cached by the content of the files,
never by path: a renewed file takes effect with the next connection.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import hashlib
import math
import os
import time
import warnings
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, Protocol

from cryptography import x509 as cx509
from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL import SSL
from OpenSSL.crypto import FILETYPE_ASN1, X509, PKey, X509StoreFlags, dump_certificate

from inspector import inputs
from inspector.errors import IdentityError, InspectorError
from inspector.protocol import x509
from inspector.protocol.alerts import ALERTS
from inspector.protocol.pem import UNREADABLE
from inspector.proxy import identity

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from inspector.host.pki import PrivateKey
    from inspector.protocol.certificates import Certificate

CIPHERS = b"DEFAULT:@SECLEVEL=0"
"""Agents of versions 2.7 and 3.x have TLS 1.0, SHA-1 and 1024-bit keys. The other end decides what to refuse: whatever
works without the proxy must work through it (rule T01 reports it)."""
LAST_GOOD = 86_400.0
"""Seconds for which the last good CRLs are used when their file is deleted, emptied or cut off: by default agents fetch
theirs once a day."""
FATAL = 2
"""The level of an alert that ends the connection (RFC 5246, 7.2)."""


@dataclass(slots=True)
class TlsState:
    """What OpenSSL reported about one TLS connection."""

    problems: list[x509.Problem] = field(default_factory=list)
    """Why the peer's chain does not verify."""
    chain: dict[int, bytes] = field(default_factory=dict)
    """The peer's chain as OpenSSL built it: depth -> DER."""
    wrong_name: str | None = None
    """The names in the master's certificate, if the required name is not among them."""
    alert: str | None = None
    alert_by: Literal["peer", "proxy"] | None = None
    alert_code: int | None = None
    """The number of the peer's alert."""
    on_secret: Callable[[bytes], None] | None = None
    """What gets the secrets of the session, a line of a key log at a time."""
    closed_by_peer: bool = False
    """Whether the peer sent a close_notify."""

    @property
    def refused(self) -> bool:
        """Whether the peer's certificate itself is invalid. An unknown revocation state is not enough."""
        return self.wrong_name is not None or any(not problem.undecided for problem in self.problems)

    @property
    def verified(self) -> bool:
        """Whether the peer presented a certificate, and it is valid in every respect."""
        return bool(self.chain) and not self.problems and self.wrong_name is None

    def complete(self, connection: SSL.Connection) -> None:
        """Add the peer's own certificate from the chain that OpenSSL built, if the verification stopped above it."""
        if 0 not in self.chain:
            built = connection.get_verified_chain(as_cryptography=True) or []
            self.chain |= {depth: certificate.public_bytes(Encoding.DER) for depth, certificate in enumerate(built)}

    @property
    def peer_chain(self) -> tuple[bytes, ...]:
        """The peer's chain in DER, its own certificate first."""
        return tuple(self.chain[depth] for depth in sorted(self.chain))


class Trust(Protocol):
    """CA certificates and CRLs, and what follows from a chain that they do not verify."""

    authorities: tuple[cx509.Certificate, ...]
    crls: tuple[cx509.CertificateRevocationList, ...]
    digest: bytes
    """Of all of them: another one means other content."""
    error: str | None
    """Why they are not what they should be."""
    flags: int
    """X509StoreFlags: which certificates of a chain are looked up in a CRL."""

    @property
    def verifies(self) -> bool:
        """Whether the master is verified at all."""

    def refresh(self) -> None:
        """Read files that changed again."""

    def tolerates_agent(self, problem: x509.Problem) -> bool:
        """Whether an agent with this problem may go on; it is verified only without any."""

    def tolerates_master(self, problem: x509.Problem, *, identified: bool) -> bool:
        """Whether a master with this problem may be asked; ``identified``: under an agent's identity."""


class SiteTrust:
    """The site's CA bundle and CRLs, read again whenever the files change."""

    flags = X509StoreFlags.CRL_CHECK | X509StoreFlags.CRL_CHECK_ALL
    verifies = True

    @staticmethod
    def tolerates_agent(problem: x509.Problem) -> bool:
        """An unknown revocation state (no CRL, or an expired one) ends no connection, but no identity is used."""
        return problem.undecided

    @staticmethod
    def tolerates_master(problem: x509.Problem, *, identified: bool) -> bool:
        """An unknown revocation state is tolerated only without an identity: so a bootstrap can be observed."""
        return not identified and problem.undecided

    def __init__(self, ca: Path, crl: Path) -> None:
        self.ca, self.crl = ca, crl
        self._state: tuple[object, ...] = ()
        self.authorities: tuple[cx509.Certificate, ...] = ()
        self.crls: tuple[cx509.CertificateRevocationList, ...] = ()
        self.digest = b""
        self.error: str | None = None
        """Why a file that changed could not be read."""
        self._lost = math.inf
        """Since when the CRLs in use are no longer in the file."""
        self._lost_at = math.inf
        """The same by a clock that nobody sets: set back, the other one would let revoked certificates in longer."""
        self.refresh()

    def refresh(self) -> None:
        """Read the files if they changed. If one cannot be read, its last good content stays, and ``error`` is set; the
        last good CRLs for a day.

        Raises IdentityError the first time, if there is no usable CA bundle.
        """
        state = (stamp(self.ca), stamp(self.crl))
        if state == self._state:
            if max(time.time() - self._lost, time.monotonic() - self._lost_at) > LAST_GOOD:
                self.error = f"The CRL {self.crl} was not usable for a day: no identity is used until it is."
                self._use(state, self.authorities, ())
            return
        try:
            ca = inputs.read(self.ca)
            authorities = tuple(cx509.load_pem_x509_certificates(ca))
            for authority in authorities:
                _ = x509.name_of(authority.subject), authority.public_key()
            x509.check_usable([authority.public_bytes(Encoding.DER) for authority in authorities])
        except (OSError, *UNREADABLE) as error:
            reason = "it contains no certificate in PEM format"
            if isinstance(error, OSError | x509.Malformed):
                reason = getattr(error, "strerror", None) or str(error)
            self.error = f"Cannot read the CA bundle {self.ca}: {reason}."
            if not self.authorities:
                raise IdentityError(
                    self.error, "Run the agent once, or name the files with puppet_ssldir or puppet_ca."
                ) from error
            return
        crls, self.error = self._read_crls()
        if self.crls and (self.error or self._covers_less(authorities, crls)):
            self._state, self._lost = state, min(self._lost, time.time())
            self._lost_at = min(self._lost_at, time.monotonic())
            until = datetime.datetime.fromtimestamp(self._lost + LAST_GOOD, datetime.UTC)
            reason = self.error or f"A part of the CRL {self.crl} is missing."
            self.error = f"{reason} The last good one is used until {until:%Y-%m-%d %H:%M} UTC."
            return
        self._use(state, authorities, crls)

    def _use(
        self,
        state: tuple[object, ...],
        authorities: tuple[cx509.Certificate, ...],
        crls: tuple[cx509.CertificateRevocationList, ...],
    ) -> None:
        self._state, self.authorities, self.crls = state, authorities, crls
        self._lost = self._lost_at = math.inf
        ders = [authority.public_bytes(Encoding.DER) for authority in authorities]
        ders += [crl.public_bytes(Encoding.DER) for crl in crls]
        self.digest = hashlib.sha256(b"".join(ders)).digest()

    def _covers_less(
        self, authorities: tuple[cx509.Certificate, ...], crls: tuple[cx509.CertificateRevocationList, ...]
    ) -> bool:
        """Whether there is no CRL any more of a CA that had one: the file was cut off."""
        wanted = {authority.subject for authority in authorities} & {crl.issuer for crl in self.crls}
        return not wanted <= {crl.issuer for crl in crls}

    def _read_crls(self) -> tuple[tuple[cx509.CertificateRevocationList, ...], str | None]:
        try:
            blocks = x509.pem_blocks(inputs.read(self.crl), "X509 CRL")
            crls = tuple(cx509.load_pem_x509_crl(block) for block in blocks)
            for crl in crls:  # its fields are parsed when they are read first
                _ = x509.name_of(crl.issuer), crl.last_update_utc, crl.next_update_utc
            x509.check_usable((), [crl.public_bytes(Encoding.DER) for crl in crls])
            return crls, None
        except OSError as error:
            return (), f"There is no CRL to check agents with: {self.crl} ({error.strerror})."
        except UNREADABLE as error:
            return (), f"Cannot read the CRL {self.crl}: {error}."

    def problems(self, at: float) -> list[str]:
        """Return why the CRLs are not usable at a time, in sentences; empty if they are."""
        if self.error:
            return [self.error]
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


class PresentedCertificate:
    """The certificate presented to agents, read again whenever its files change."""

    def __init__(self, certificate: Path, key: Path, *, unsafe: bool = False) -> None:
        """Read certificate and key; with ``unsafe`` even a key that others can read. Raises InspectorError."""
        self._files = (certificate, key)
        self.path = certificate
        self._unsafe = unsafe
        self._state: tuple[object, ...] = ()
        self.credentials = identity.load(certificate, key, unsafe=unsafe)
        self.error: str | None = None
        """Why the changed files could not be read."""

    @property
    def issuer(self) -> cx509.Name:
        return self.credentials.chain[0].issuer

    def refresh(self) -> identity.Credentials:
        """Return the current credentials; the last good ones while the files are not usable."""
        state = tuple(stamp(file) for file in self._files)
        if state != self._state:
            try:
                self.credentials, self.error = identity.load(*self._files, unsafe=self._unsafe), None
            except InspectorError as error:
                self.error = str(error)
            self._state = state
        return self.credentials


def stamp(path: Path) -> tuple[int, int, int, int] | None:
    """Return what changes with a file's content; None if there is no such file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode


class Contexts:
    """OpenSSL contexts, cached by content: creating one costs more than a request."""

    LIMIT = 1024

    def __init__(self, key_log: Callable[[bytes], None] | None = None, *, secrets: bool = False) -> None:
        """``key_log`` gets the secrets of all sessions; with ``secrets`` each connection's state gets its own."""
        self._key_log, self._secrets = key_log, secrets
        self._cache: OrderedDict[tuple[object, ...], SSL.Context] = OrderedDict()

    def for_agent(self, trust: Trust, presented: identity.Credentials) -> SSL.Context:
        """Return the context for agents. It presents ``presented``, and accepts agents without a certificate."""
        key = ("agent", trust.digest, presented.ders)
        return self._get(key, lambda: self._agent(trust, presented))

    def for_master(self, trust: Trust, credentials: identity.Credentials | None) -> SSL.Context:
        """Return the context for the master; the agent's own certificate and key are added to the connection.

        So all agents share one context: every context has a copy of the CRLs, which are large at large sites.
        """
        key = ("master", trust.digest, credentials.ders[1:] if credentials else None)
        return self._get(key, lambda: self._master(trust, credentials))

    def _get(self, key: tuple[object, ...], make: Callable[[], SSL.Context]) -> SSL.Context:
        context = self._cache.get(key)
        if context is None:
            context = self._cache[key] = make()
            if self._key_log or self._secrets:
                context.set_keylog_callback(self._on_secret)
            if len(self._cache) > self.LIMIT:
                self._cache.popitem(last=False)
        self._cache.move_to_end(key)
        return context

    def _on_secret(self, connection: SSL.Connection, line: bytes) -> None:
        if self._key_log:
            self._key_log(line)
        if isinstance(connection, _Connection) and connection.tls_state.on_secret:
            connection.tls_state.on_secret(line)

    def _agent(self, trust: Trust, presented: identity.Credentials) -> SSL.Context:
        context = lenient(SSL.TLS_SERVER_METHOD, trust)
        # A resumed session would skip the check against the current CRL, and without a session id context OpenSSL
        # refuses it, which breaks a POST (Ruby resumes a session after 2 seconds without traffic).
        context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
        # An agent must not change its identity within a connection.
        context.set_options(SSL.OP_NO_TICKET | SSL.OP_NO_RENEGOTIATION)
        context.set_session_id(b"puppet-inspector")
        context.use_certificate(presented.chain[0])
        for certificate in presented.chain[1:] or _issuers(presented.chain[0], trust):
            context.add_extra_chain_cert(certificate)
        context.use_privatekey(presented.key)
        for authority in trust.authorities:
            context.add_client_ca(authority)
        return context

    def _master(self, trust: Trust, credentials: identity.Credentials | None) -> SSL.Context:
        context = lenient(SSL.TLS_CLIENT_METHOD, trust)
        for certificate in credentials.chain[1:] if credentials else ():
            context.add_extra_chain_cert(certificate)
        return context


def _issuers(leaf: cx509.Certificate, trust: Trust) -> list[cx509.Certificate]:
    """Return the intermediate CAs above a certificate, as a Puppet master sends them: agents may have only the root."""
    chain: list[cx509.Certificate] = []
    name = leaf.issuer
    for _ in trust.authorities:
        issuer = next((authority for authority in trust.authorities if authority.subject == name), None)
        if issuer is None or issuer.subject == issuer.issuer:
            break
        chain.append(issuer)
        name = issuer.issuer
    return chain


def lenient(method: int, trust: Trust) -> SSL.Context:
    """Return a context with which everything works that works between any agent and its master."""
    context = verifying(method, trust)
    context.set_cipher_list(CIPHERS)
    context.set_min_proto_version(SSL.TLS1_VERSION)
    context.set_mode(SSL.MODE_RELEASE_BUFFERS)  # an idle connection then has none
    return context


def verifying(method: int, trust: Trust) -> SSL.Context:
    """Return a context with OpenSSL's own defaults, which a current agent has too."""
    context = SSL.Context(method)
    store = context.get_cert_store()
    if store is None:
        raise InspectorError("OpenSSL gave no certificate store.")
    for authority in trust.authorities:
        store.add_cert(_x509(authority))
    for crl in trust.crls:
        store.add_crl(crl)
    store.set_flags(trust.flags)
    return context


def _x509(certificate: cx509.Certificate) -> X509:
    return X509.from_cryptography(certificate)


class _Connection(SSL.Connection):
    """A connection that ends when the peer sends a fatal alert after the handshake: so TLS 1.3 masters refuse a
    certificate.

    OpenSSL reports that as a received shutdown. mitmproxy (12.2) then assumes that its upper layers know already, which
    is wrong, and the agent would wait for its read timeout of ten minutes.
    """

    tls_state: TlsState

    def get_shutdown(self) -> int:
        state: int = super().get_shutdown()
        return state & ~SSL.RECEIVED_SHUTDOWN if self.tls_state.alert_by == "peer" else state


def agent_connection(context: SSL.Context, trust: Trust) -> tuple[SSL.Connection, TlsState]:
    """Return a connection for an agent, and its state."""
    connection, tls_state = _watched(context)
    connection.set_verify(SSL.VERIFY_PEER, _verifier(tls_state, trust.tolerates_agent, name=None))
    connection.set_accept_state()
    return connection, tls_state


def refused_agent() -> tuple[SSL.Connection, TlsState]:
    """Return a connection for an agent whose handshake cannot succeed, and its state."""
    connection, tls_state = _watched(SSL.Context(SSL.TLS_SERVER_METHOD))
    connection.set_accept_state()
    return connection, tls_state


def master_connection(
    context: SSL.Context, trust: Trust, name: str, sni: str | None, credentials: identity.Credentials | None
) -> tuple[SSL.Connection, TlsState]:
    """Return a connection to the master, and its state. The master's certificate must contain ``name``, not ``sni``,
    if it is verified at all."""
    connection, tls_state = _watched(context)
    tolerates = functools.partial(trust.tolerates_master, identified=credentials is not None)
    name_required = name if trust.verifies else None
    connection.set_verify(SSL.VERIFY_PEER, _verifier(tls_state, tolerates, name=name_required))
    if credentials:
        certificate, key = _for_openssl(credentials.chain[0], credentials.key)
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            connection.use_certificate(certificate)
            connection.use_privatekey(key)
    if sni and not sni.replace(".", "").isdigit() and ":" not in sni:
        connection.set_tlsext_host_name(sni.encode("idna"))
    connection.set_connect_state()
    return connection, tls_state


@lru_cache(maxsize=1024)
def _for_openssl(certificate: cx509.Certificate, key: PrivateKey) -> tuple[X509, PKey]:
    """Return an identity as OpenSSL objects.

    OpenSSL prepares an RSA key at its first signature, which takes half the time of a signature. With objects of
    cryptography, which pyOpenSSL recommends, every connection would have that cost.
    """
    return _x509(certificate), PKey.from_cryptography_key(key)


def refusing(*, server: bool) -> SSL.Connection:
    """Return a connection whose handshake cannot succeed, for when the real one could not be made."""
    connection = SSL.Connection(SSL.Context(SSL.TLS_SERVER_METHOD if server else SSL.TLS_CLIENT_METHOD))
    connection.set_verify(SSL.VERIFY_PEER, lambda *_: False)
    if server:
        connection.set_accept_state()
    else:
        connection.set_connect_state()
    return connection


def _watched(context: SSL.Context) -> tuple[_Connection, TlsState]:
    connection = _Connection(context)
    connection.tls_state = tls_state = TlsState()
    connection.set_info_callback(_listener(tls_state))
    return connection, tls_state


@lru_cache(maxsize=256)
def parsed_of(der: bytes) -> cx509.Certificate:
    """Return a parsed certificate, cached: every connection has the same ones."""
    return cx509.load_der_x509_certificate(der)


@lru_cache(maxsize=64)
def _leaf_of(der: bytes) -> Certificate:
    """Return a master's certificate, cached: there are few."""
    return x509.certificate(parsed_of(der))


def _verifier(
    tls_state: TlsState, tolerates: Callable[[x509.Problem], bool], *, name: str | None
) -> Callable[[SSL.Connection, X509, int, int, int], bool]:
    def verify(_connection: SSL.Connection, certificate: X509, code: int, depth: int, ok: int) -> bool:
        tls_state.chain[depth] = der = dump_certificate(FILETYPE_ASN1, certificate)
        if not ok:
            parsed = parsed_of(der)
            problem = x509.Problem(code, depth, x509.name_of(parsed.subject), x509.name_of(parsed.issuer))
            tls_state.problems.append(problem)
            return tolerates(problem)
        if depth == 0 and name is not None:
            leaf = _leaf_of(der)
            if not x509.names_match(leaf, name):
                tls_state.wrong_name = ", ".join(leaf.alt_names) or leaf.subject
                return False
        return True

    return verify


def _listener(tls_state: TlsState) -> Callable[[SSL.Connection, int, int], None]:
    def listen(_connection: SSL.Connection, where: int, code: int) -> None:
        if not where & SSL.SSL_CB_ALERT:
            return
        if code & 0xFF == 0:
            tls_state.closed_by_peer |= bool(where & SSL.SSL_CB_READ)
        elif code >> 8 == FATAL:  # a warning, as a server may send for an unknown SNI, does not end the connection
            tls_state.alert = ALERTS.get(code & 0xFF, f"alert {code & 0xFF}")
            tls_state.alert_by = "peer" if where & SSL.SSL_CB_READ else "proxy"
            tls_state.alert_code = code & 0xFF if where & SSL.SSL_CB_READ else None

    return listen


def words(error: SSL.Error) -> str:
    """Return an OpenSSL error in words."""
    if error.args and isinstance(error.args[0], list) and error.args[0]:
        return str(error.args[0][-1][-1])
    return "the connection was reset"


KEY_LOG_VARIABLES = ("MITMPROXY_SSLKEYLOGFILE", "SSLKEYLOGFILE")
"""Name a file for the secrets of TLS sessions, for Wireshark; the first that is set counts, as in mitmproxy."""


def key_log_path() -> Path | None:
    """Return the file that the environment names; None if it names none."""
    named = next((value for variable in KEY_LOG_VARIABLES if (value := os.environ.get(variable))), None)
    return inputs.expanded(named) if named else None


def key_log_writer() -> Callable[[bytes], None] | None:
    """Return what writes a line to that file; None if there is none. Raises InspectorError."""
    file = key_log_path()
    if file is None:
        return None
    try:
        # Several workers append, each a line at a time.
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InspectorError(
            f"Cannot write {file}, which SSLKEYLOGFILE names: {error.strerror}.", "Name another file, or unset it."
        ) from error

    def write(line: bytes) -> None:
        with contextlib.suppress(OSError):  # a full disk must not end a connection
            os.write(descriptor, line + b"\n")

    return write
