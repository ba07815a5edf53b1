"""The identity that the proxy uses towards the master on an agent's behalf.

An identity is only requested after the agent's own certificate was verified. This module decides where its key comes
from, not whether to use one. A certname from a certificate is hostile data nevertheless. Keys are read, never written.
A key that users other than its owner and group can read is not used.
"""

from __future__ import annotations

import datetime
import os
import stat
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from inspector import inputs, regex
from inspector.errors import IdentityError, InspectorError
from inspector.host import pki
from inspector.protocol.oids import AUTHORIZATION_OIDS
from inspector.protocol.pem import UNREADABLE

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

MINTED_LIFETIME = datetime.timedelta(hours=1)
"""How long a minted certificate is valid. It is replaced after half of that time."""

IDENTITIES = 5000
"""Identities that are kept in memory, each with its key."""
CERTNAME = regex.compile(r"[ -.0-~]{1,255}")
"""What Puppet accepts as a certname: printable ASCII without a slash (openvox 8.28.1 lib/puppet/ssl/base.rb)."""

UNSAFE_MODE = stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH
"""Mode bits that a private key's file must not have. Its group may read it: Puppet's own keys have 0640."""
PRIVILEGED = {oid: name for oid, name in AUTHORIZATION_OIDS.items() if name in ("pp_cli_auth", "pp_auth_role")}
"""Extensions by which a master grants more than to other nodes."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """A certificate with its chain, and its key."""

    chain: tuple[x509.Certificate, ...]
    key: pki.PrivateKey
    ders: tuple[bytes, ...] = field(init=False, repr=False, compare=False)
    """The chain in DER, computed once: every connection needs it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "ders", tuple(certificate.public_bytes(Encoding.DER) for certificate in self.chain))

    def load(self, context: ssl.SSLContext) -> None:
        """Let a context show them. Python takes keys from a file only; this one is on no disk."""
        descriptor = os.memfd_create("identity", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, pki.pem(*self.chain) + pki.key_pem(self.key))
            context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)


class IdentitySource(Protocol):
    """Where identities come from."""

    mode: str

    def recognizes(self, agent: x509.Certificate) -> bool:
        """Whether a certificate counts that is not verified: the master judges it."""
        return False

    def credentials_for(self, agent: x509.Certificate, certname: str) -> Credentials | None:
        """Return the credentials for a verified agent; None if this mode uses no certificate.

        Raises IdentityError if they are missing or not usable.
        """

    def headers(self, agent: x509.Certificate) -> tuple[tuple[str, str], ...]:
        """Return the headers that tell the master who the verified agent is."""


class KeyDirectory(IdentitySource):
    """``keys:DIR``: an ssldir, or a directory of ``<certname>.pem`` with key and certificate."""

    mode = "keys"

    def __init__(self, directory: Path, *, unsafe: bool = False, made_later: bool = False) -> None:
        """``made_later``: the directory need not exist yet."""
        if not made_later and not inputs.is_directory(directory):
            raise InspectorError(
                f"There is no directory {directory} with the agents' keys.",
                "Give keys:DIR an ssldir, or a directory of <certname>.pem.",
            )
        self._directory = directory
        self._unsafe = unsafe
        self._cache: dict[str, tuple[tuple[tuple[str, int, int, int], ...], Credentials]] = {}

    def credentials_for(self, agent: x509.Certificate, certname: str) -> Credentials | None:
        own = self.stored(certname)
        if own.chain[0] == agent or own.key.public_key() != agent.public_key():
            return own
        # It was renewed since its copy was made: the CA may have revoked the old one.
        renewed = Credentials((agent, *own.chain[1:]), own.key)
        self._cache[certname] = self._cache[certname][0], renewed
        return renewed

    def stored(self, certname: str) -> Credentials:
        """Return what the directory has for a certname. Raises IdentityError."""
        if "/" in certname or certname in ("", ".", ".."):  # these could lead out of the directory
            raise IdentityError(f"{certname!r} is not a certname.")
        files = self._files(certname)
        try:
            # A stat finds new and renewed files, so that a run does not have to read them.
            state = tuple((str(f), (s := f.stat()).st_mtime_ns, s.st_size, s.st_mode) for f in files)
            cached = self._cache.get(certname)
            if cached is None or cached[0] != state:
                _make_room(self._cache)
                cached = self._cache[certname] = (state, load(files[0], files[-1], unsafe=self._unsafe))
        except (OSError, InspectorError) as error:
            raise IdentityError(f"the key of {certname} cannot be used: {error}") from error
        if pki.certname_of(cached[1].chain[0]) != certname:
            raise IdentityError(f"{files[0]} is not a certificate for {certname}.")
        return cached[1]

    def _files(self, certname: str) -> list[Path]:
        """Return the files with certificate and key, which may be the same file. Raises IdentityError."""
        single = self._directory / f"{certname}.pem"
        files = [self._directory / name / f"{certname}.pem" for name in ("certs", "private_keys")]
        try:
            if inputs.is_file(single):
                return [single]
            missing = next((file for file in files if not inputs.is_file(file)), None)
        except OSError as error:  # a directory without access, a name too long for a file
            raise IdentityError(f"no key for {certname}: {error.strerror}.") from error
        if missing:
            raise IdentityError(f"no key for {certname}: {missing} is missing.")
        return files

    def headers(self, agent: x509.Certificate) -> tuple[tuple[str, str], ...]:
        return ()


class NodeKey(KeyDirectory):
    """The key of the node on which the proxy runs, for connections that present the node's own certificate, and no
    other: whether it is valid is the master's to judge, as without the proxy."""

    def __init__(self, ssldir: Path, certname: str) -> None:
        # Who else can read it is not changed by us, and a fresh agent makes it itself.
        super().__init__(ssldir, unsafe=True, made_later=True)
        self._certname = certname

    def recognizes(self, agent: x509.Certificate) -> bool:
        try:
            own = self.stored(self._certname)
        except IdentityError:
            return False
        return own.chain[0] == agent

    def credentials_for(self, agent: x509.Certificate, certname: str) -> Credentials | None:
        if not self.recognizes(agent):
            raise IdentityError(f"it is not the certificate of this node, {self._certname}")
        return self.stored(self._certname)


class Mint(IdentitySource):
    """``mint:CADIR``: a short-lived certificate for the same certname, signed with the CA's key (a lab's)."""

    mode = "mint"

    def __init__(self, cadir: Path, *, unsafe: bool = False, alt_names: bool = False) -> None:
        """``alt_names``: with the alternative names of the agent's certificate."""
        self._authority = pki.read_authority(cadir)
        self._alt_names = alt_names
        if not unsafe:
            check_permissions(pki.authority_key(cadir))
        self._cache: dict[bytes, tuple[float, Credentials]] = {}

    def credentials_for(self, agent: x509.Certificate, certname: str) -> Credentials | None:
        presented = agent.public_bytes(Encoding.DER)
        cached = self._cache.get(presented)
        if cached is None or time.time() > cached[0]:
            key = pki.new_key()
            try:
                leaf = pki.sign(
                    self._authority, key.public_key(), certname, pki.alt_names(agent) if self._alt_names else (),
                    lifetime=MINTED_LIFETIME, extensions=pki.puppet_extensions(agent),
                )  # fmt: skip
            except ValueError as error:  # a name of more than 64 characters, say
                raise IdentityError(f"cannot make a certificate for {certname}: {error}.") from error
            due = time.time() + MINTED_LIFETIME.total_seconds() / 2
            _make_room(self._cache)
            cached = self._cache[presented] = (due, Credentials((leaf, self._authority.certificate), key))
        return cached[1]

    def headers(self, agent: x509.Certificate) -> tuple[tuple[str, str], ...]:
        return ()


class HeaderIdentity(IdentitySource):
    """``headers``: tell a master with ``allow-header-cert-info`` in headers who the agent is.

    The connection itself has no client certificate: the proxy's own is an identity too, which a master without that
    setting would take for the agent's.
    """

    mode = "headers"

    def credentials_for(self, agent: x509.Certificate, certname: str) -> Credentials | None:
        return None

    def headers(self, agent: x509.Certificate) -> tuple[tuple[str, str], ...]:
        # The common name alone: other parts of a subject could contain line feeds, or another "CN=".
        name = x509.Name(agent.subject.get_attributes_for_oid(NameOID.COMMON_NAME))
        return (
            ("X-Client-Verify", "SUCCESS"),
            ("X-Client-DN", name.rfc4514_string()),
            ("X-Client-Cert", quote(agent.public_bytes(Encoding.PEM).decode())),
        )


class NoIdentity(IdentitySource):
    """``none``: the master sees an agent without a certificate."""

    mode = "none"

    def credentials_for(self, agent: x509.Certificate, certname: str) -> Credentials | None:
        return None

    def headers(self, agent: x509.Certificate) -> tuple[tuple[str, str], ...]:
        return ()


def _make_room(cache: dict[Any, Any]) -> None:
    """Drop the oldest identity of a full cache: an agent that renews its certificate with every run has many."""
    while len(cache) >= IDENTITIES:
        del cache[next(iter(cache))]


def certname_of(agent: x509.Certificate) -> str:
    """Return the certname of a verified certificate: its only common name. Raises IdentityError.

    Alternative names are ignored: a CA may have signed any of them, and a master uses the common name.
    """
    names = [attribute.value for attribute in agent.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if len(names) != 1:
        raise IdentityError(f"its certificate has {len(names) or 'no'} common names instead of one.")
    if not isinstance(names[0], str) or not CERTNAME.fullmatch(names[0]):
        raise IdentityError(f"{ascii(names[0])[:80]} is not a certname.")
    return names[0]


def source_of(text: str, *, unsafe: bool = False) -> IdentitySource:
    """Return the source that the option ``puppet_identity`` names; with ``unsafe`` even for keys that others can read.

    Raises InspectorError.
    """
    mode, _, argument = text.partition(":")
    match mode, argument:
        case "keys", directory if directory:
            return KeyDirectory(inputs.expanded(directory), unsafe=unsafe)
        case "mint", directory if directory:
            return Mint(inputs.expanded(directory), unsafe=unsafe)
        case "headers", "":
            return HeaderIdentity()
        case "none", "":
            return NoIdentity()
    raise InspectorError(
        f"puppet_identity is {text!r}, which is not a valid value.",
        "Write keys:DIR, headers, mint:CADIR or none.",
    )


def check_permissions(key: Path) -> None:
    """Raise IdentityError if others can read a private key or replace it: because of its mode, or its directory's mode.

    Missing files are reported when they are read.
    """
    for path in dict.fromkeys((key, key.parent, key.resolve().parent)):
        try:
            mode = stat.S_IMODE((status := path.stat()).st_mode)
        except OSError:
            continue
        if stat.S_ISDIR(status.st_mode):
            if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
                raise IdentityError(
                    f"Everyone can replace the private key {key}: its directory {path} has mode {mode:04o}.",
                    f"Run chmod o-w {path} (or, if this is intended, set puppet_unsafe_keys=true).",
                )
        elif mode & UNSAFE_MODE:
            raise IdentityError(
                f"Other users can read or change the private key {key}: it has mode {mode:04o}.",
                f"Run chmod g-w,o= {path} (or, if this is intended, set puppet_unsafe_keys=true).",
            )


def load(certificate: Path, key: Path, *, unsafe: bool = False) -> Credentials:
    """Read a certificate with its chain, and its key, from PEM files, which may be the same file.

    ``unsafe``: use a key even if others can read it. Raises IdentityError.
    """
    try:
        chain = x509.load_pem_x509_certificates(inputs.read(certificate, inputs.SMALL))
        public, _ = chain[0].public_key(), chain[0].issuer  # parsed only now
    except (OSError, *UNREADABLE) as error:
        reason = getattr(error, "strerror", None) or "it contains no certificate in PEM format"
        raise IdentityError(f"Cannot read the certificate {certificate}: {reason}.") from error
    private = pki.read_key(key)
    if private.public_key() != public:
        raise IdentityError(
            f"{key} is not the key of the certificate {certificate}.",
            "Give a certificate and its own key (was the certificate renewed with another key?).",
        )
    if not unsafe:
        check_permissions(key)
    return Credentials(tuple(chain), private)


class UnprivilegedMint(Mint):
    """Of a tap: a certificate of the master's own CA, but not for nodes that may do more than others: these reach the
    master itself."""

    def __init__(self, cadir: Path) -> None:
        # Who else can read the CA's key is not changed by us.
        super().__init__(cadir, unsafe=True)

    def credentials_for(self, agent: x509.Certificate, certname: str) -> Credentials | None:
        names = [PRIVILEGED.get(extension.oid.dotted_string) for extension in pki.puppet_extensions(agent)]
        if found := ", ".join(name for name in names if name):
            raise IdentityError(f"its certificate has {found}, which is never signed again")
        return super().credentials_for(agent, certname)


class Nobody(NoIdentity):
    """Of a tap without the CA's key: only agents without a certificate are served; others reach the master itself."""

    def credentials_for(self, agent: x509.Certificate, certname: str) -> Credentials | None:
        raise IdentityError("the CA's key, which could sign for it towards the master, is not on this host")
