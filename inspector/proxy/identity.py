"""As whom the proxy speaks to the master, for which agent.

An identity is only ever asked for once an agent's own certificate was verified; this module decides where
its key comes from, never whether it is due. A certname from a certificate is hostile data all the same. Keys
are read and held, never written; one that others than its owner and group can read is not used.
"""

from __future__ import annotations

import datetime
import re
import stat
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from inspector.errors import IdentityError, InspectorError
from inspector.host import pki

if TYPE_CHECKING:
    from pathlib import Path

MINTED = datetime.timedelta(hours=1)
"""How long a minted certificate is valid. It is made anew when half of that is over."""

CERTNAME = re.compile(r"[ -.0-~]{1,255}")
"""What Puppet takes for a certname: printable ASCII without a slash (openvox 8.28.1 lib/puppet/ssl/base.rb)."""

OPEN = stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH
"""What a private key's file must not allow. Its group may read it: Puppet's own keys are 0640."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """A certificate with its chain, and its key."""

    chain: tuple[x509.Certificate, ...]
    key: pki.PrivateKey
    ders: tuple[bytes, ...] = field(init=False, repr=False, compare=False)
    """The chain in DER: it is asked for with every connection."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "ders", tuple(each.public_bytes(Encoding.DER) for each in self.chain))


class Source(Protocol):
    """Where identities come from."""

    mode: str

    def lend(self, agent: x509.Certificate, certname: str) -> Credentials | None:
        """Credentials for a verified agent, None if this mode speaks without a certificate.

        Raises IdentityError if they should be there and are not.
        """

    def headers(self, agent: x509.Certificate) -> tuple[tuple[str, str], ...]:
        """Headers that tell the master who the verified agent is."""


class Keys:
    """``keys:DIR``: an ssldir, or a directory of ``<certname>.pem`` with key and certificate."""

    mode = "keys"

    def __init__(self, directory: Path, *, unsafe: bool = False) -> None:
        if not directory.is_dir():
            raise InspectorError(
                f"There is no directory {directory} with the agents' keys.",
                "Give an ssldir or a directory of <certname>.pem: puppet_identity=keys:DIR (or `none`).",
            )
        self._directory = directory
        self._unsafe = unsafe
        self._read: dict[str, tuple[tuple[tuple[str, int, int, int], ...], Credentials]] = {}

    def lend(self, agent: x509.Certificate, certname: str) -> Credentials | None:
        if "/" in certname or certname in ("", ".", ".."):  # nothing else leads out of the directory
            raise IdentityError(f"{certname!r} is no certname.")
        files = self._files(certname)
        try:
            # New and renewed files are noticed by what stat says, so that a run costs no reading.
            state = tuple((str(f), (s := f.stat()).st_mtime_ns, s.st_size, s.st_mode) for f in files)
            known = self._read.get(certname)
            if known is None or known[0] != state:
                known = self._read[certname] = (state, load(files[0], files[-1], unsafe=self._unsafe))
        except (OSError, InspectorError) as error:
            raise IdentityError(f"the key of {certname} can't be used: {error}") from error
        if pki.certname_of(known[1].chain[0]) != certname:
            raise IdentityError(f"{files[0]} is not a certificate for {certname}.")
        return known[1]

    def _files(self, certname: str) -> list[Path]:
        """Where certificate and key are, which may be one file. Raises IdentityError."""
        single = self._directory / f"{certname}.pem"
        files = [self._directory / name / f"{certname}.pem" for name in ("certs", "private_keys")]
        try:
            if single.is_file():
                return [single]
            missing = next((file for file in files if not file.is_file()), None)
        except OSError as error:  # a directory that may not be looked into, a name too long for any file
            raise IdentityError(f"no key for {certname}: {error.strerror}.") from error
        if missing:
            raise IdentityError(f"no key for {certname}: {missing} is missing.")
        return files

    def headers(self, agent: x509.Certificate) -> tuple[tuple[str, str], ...]:
        return ()


class Mint:
    """``mint:CADIR``: a short-lived certificate for the same certname, signed with the CA's key (a lab's)."""

    mode = "mint"

    def __init__(self, cadir: Path, *, unsafe: bool = False) -> None:
        self._authority = pki.read_authority(cadir)
        if not unsafe:
            guard(cadir / "ca_key.pem")
        self._made: dict[bytes, tuple[float, Credentials]] = {}

    def lend(self, agent: x509.Certificate, certname: str) -> Credentials | None:
        presented = agent.public_bytes(Encoding.DER)
        made = self._made.get(presented)
        if made is None or time.time() > made[0]:
            key, extensions = pki.new_key(), pki.puppet_extensions(agent)
            try:
                leaf = pki.sign(self._authority, key.public_key(), certname, lifetime=MINTED, extensions=extensions)
            except ValueError as error:  # a name of more than 64 characters, say
                raise IdentityError(f"no certificate can be made for {certname}: {error}.") from error
            due = time.time() + MINTED.total_seconds() / 2
            made = self._made[presented] = (due, Credentials((leaf, self._authority.certificate), key))
        return made[1]

    def headers(self, agent: x509.Certificate) -> tuple[tuple[str, str], ...]:
        return ()


class Headers:
    """``headers``: tell a master with ``allow-header-cert-info`` in headers who the agent is.

    The connection itself carries no certificate: the proxy's own would be an identity too, which a master
    without that setting would take for the agent's.
    """

    mode = "headers"

    def lend(self, agent: x509.Certificate, certname: str) -> Credentials | None:
        return None

    def headers(self, agent: x509.Certificate) -> tuple[tuple[str, str], ...]:
        # The common name alone: what else a subject has could hold line feeds, or another "CN=".
        name = x509.Name(agent.subject.get_attributes_for_oid(NameOID.COMMON_NAME))
        return (
            ("X-Client-Verify", "SUCCESS"),
            ("X-Client-DN", name.rfc4514_string()),
            ("X-Client-Cert", quote(agent.public_bytes(Encoding.PEM).decode())),
        )


class Nobody:
    """``none``: the master sees an agent without a certificate."""

    mode = "none"

    def lend(self, agent: x509.Certificate, certname: str) -> Credentials | None:
        return None

    def headers(self, agent: x509.Certificate) -> tuple[tuple[str, str], ...]:
        return ()


def certname_of(agent: x509.Certificate) -> str:
    """Whom a verified certificate names, beyond doubt: one common name, and that a certname. Raises IdentityError.

    Alternative names count for nothing: a CA may have signed any of them, and a master goes by the common name.
    """
    names = [each.value for each in agent.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if len(names) != 1:
        raise IdentityError(f"its certificate has {len(names) or 'no'} common names, so nobody can tell who it is.")
    if not isinstance(names[0], str) or not CERTNAME.fullmatch(names[0]):
        raise IdentityError(f"{ascii(names[0])[:80]} is no certname.")
    return names[0]


def source_of(text: str, *, unsafe: bool = False) -> Source:
    """The option ``puppet_identity`` as a source; ``unsafe``: also keys that others can read. Raises InspectorError."""
    from pathlib import Path

    mode, _, argument = text.partition(":")
    match mode, argument:
        case "keys", directory if directory:
            return Keys(Path(directory).expanduser(), unsafe=unsafe)
        case "mint", directory if directory:
            return Mint(Path(directory).expanduser(), unsafe=unsafe)
        case "headers", "":
            return Headers()
        case "none", "":
            return Nobody()
    raise InspectorError(
        f"puppet_identity is {text!r}, which is no identity.", "Write keys:DIR, headers, mint:CADIR or none."
    )


def guard(key: Path) -> None:
    """Raises IdentityError if others could read a private key, or exchange it: by its mode, or by its directory's.

    What does not exist is for whoever reads it to say.
    """
    for path in dict.fromkeys((key, key.parent, key.resolve().parent)):
        try:
            mode = stat.S_IMODE((status := path.stat()).st_mode)
        except OSError:
            continue
        if stat.S_ISDIR(status.st_mode):
            if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
                raise IdentityError(
                    f"Everybody can exchange the private key {key}: its directory {path} has mode {mode:04o}.",
                    f"Close it: chmod o-w {path} (or say that it is meant so: puppet_unsafe_keys=true).",
                )
        elif mode & OPEN:
            raise IdentityError(
                f"Others can read or change the private key {key}: it has mode {mode:04o}.",
                f"Close it: chmod g-w,o= {path} (or say that it is meant so: puppet_unsafe_keys=true).",
            )


def load(certificate: Path, key: Path, *, unsafe: bool = False) -> Credentials:
    """Certificate (with its chain) and key from PEM files, which may be one. Raises IdentityError.

    ``unsafe``: use a key also if others can read it.
    """
    try:
        chain = x509.load_pem_x509_certificates(certificate.read_bytes())
    except (OSError, ValueError, UnsupportedAlgorithm) as error:
        reason = getattr(error, "strerror", None) or "it holds no certificate in PEM form"
        raise IdentityError(f"The certificate {certificate} can't be read: {reason}.") from error
    private = pki.read_key(key)
    if private.public_key() != chain[0].public_key():
        raise IdentityError(
            f"{key} is not the key of the certificate {certificate}.",
            "Give a pair that belongs together (was the certificate renewed with another key?).",
        )
    if not unsafe:
        guard(key)
    return Credentials(tuple(chain), private)
