"""As whom the proxy speaks to the master, for which agent.

An identity is only ever asked for once an agent's own certificate was verified; this module decides where
its key comes from, never whether it is due. A certname from a certificate is hostile data all the same.
"""

from __future__ import annotations

import datetime
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding

from inspector import pki
from inspector.errors import IdentityError, InspectorError

if TYPE_CHECKING:
    from pathlib import Path

MINTED = datetime.timedelta(hours=1)
"""How long a minted certificate is valid. It is made anew when half of that is over."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """A certificate with its chain, and its key."""

    chain: tuple[x509.Certificate, ...]
    key: pki.PrivateKey

    @property
    def ders(self) -> tuple[bytes, ...]:
        return tuple(each.public_bytes(Encoding.DER) for each in self.chain)


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

    def __init__(self, directory: Path) -> None:
        if not directory.is_dir():
            raise InspectorError(
                f"There is no directory {directory} with the agents' keys.",
                "Give an ssldir or a directory of <certname>.pem: puppet_identity=keys:DIR (or `none`).",
            )
        self._directory = directory
        self._read: dict[str, tuple[tuple[tuple[str, int, int], ...], Credentials]] = {}

    def lend(self, agent: x509.Certificate, certname: str) -> Credentials | None:
        if "/" in certname or "\0" in certname or certname in ("", ".", ".."):
            raise IdentityError(f"{certname!r} is no certname.")
        single = self._directory / f"{certname}.pem"
        if single.is_file():
            files = [single]
        else:
            files = [
                self._directory / "certs" / f"{certname}.pem",
                self._directory / "private_keys" / f"{certname}.pem",
            ]
        missing = next((file for file in files if not file.is_file()), None)
        if missing:
            raise IdentityError(f"no key for {certname}: {missing} is missing.")
        try:
            # New and renewed files are noticed by what stat says, so that a run costs no reading.
            state = tuple((str(f), (s := f.stat()).st_mtime_ns, s.st_size) for f in files)
            known = self._read.get(certname)
            if known is None or known[0] != state:
                known = self._read[certname] = (state, load(files[0], files[-1]))
        except (OSError, InspectorError) as error:
            raise IdentityError(f"the key of {certname} can't be used: {error}") from error
        if pki.certname_of(known[1].chain[0]) != certname:
            raise IdentityError(f"{files[0]} is not a certificate for {certname}.")
        return known[1]

    def headers(self, agent: x509.Certificate) -> tuple[tuple[str, str], ...]:
        return ()


class Mint:
    """``mint:CADIR``: a short-lived certificate for the same certname, signed with the CA's key (a lab's)."""

    mode = "mint"

    def __init__(self, cadir: Path) -> None:
        self._authority = pki.read_authority(cadir)
        self._made: dict[bytes, tuple[float, Credentials]] = {}

    def lend(self, agent: x509.Certificate, certname: str) -> Credentials | None:
        presented = agent.public_bytes(Encoding.DER)
        made = self._made.get(presented)
        if made is None or time.time() > made[0]:
            key = pki.new_key()
            leaf = pki.sign(
                self._authority, key.public_key(), certname, lifetime=MINTED, extensions=pki.puppet_extensions(agent)
            )
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
        return (
            ("X-Client-Verify", "SUCCESS"),
            ("X-Client-DN", agent.subject.rfc4514_string()),
            ("X-Client-Cert", quote(agent.public_bytes(Encoding.PEM).decode())),
        )


class Nobody:
    """``none``: the master sees an agent without a certificate."""

    mode = "none"

    def lend(self, agent: x509.Certificate, certname: str) -> Credentials | None:
        return None

    def headers(self, agent: x509.Certificate) -> tuple[tuple[str, str], ...]:
        return ()


def source_of(text: str) -> Source:
    """The option ``puppet_identity`` as a source. Raises InspectorError."""
    from pathlib import Path

    mode, _, argument = text.partition(":")
    match mode, argument:
        case "keys", directory if directory:
            return Keys(Path(directory).expanduser())
        case "mint", directory if directory:
            return Mint(Path(directory).expanduser())
        case "headers", "":
            return Headers()
        case "none", "":
            return Nobody()
    raise InspectorError(
        f"puppet_identity is {text!r}, which is no identity.", "Write keys:DIR, headers, mint:CADIR or none."
    )


def load(certificate: Path, key: Path) -> Credentials:
    """Certificate (with its chain) and key from PEM files, which may be one. Raises IdentityError."""
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
    return Credentials(tuple(chain), private)
