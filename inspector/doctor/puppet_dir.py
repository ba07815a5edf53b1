"""Reading a directory of Puppet's without changing it: what lies there, whose it is, what it holds.

Nothing is made, locked or opened for writing; only regular files are opened, and read up to a limit. What
can't be read becomes a diagnosis. Private keys are reduced to the digest of their public key at once.
"""

from __future__ import annotations

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from inspector.doctor import findings
from inspector.protocol import x509

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from inspector.doctor.findings import Diagnosis
    from inspector.protocol.certificates import Certificate, CertificateRequest, RevocationList

LIMIT = 64 * 1024 * 1024
"""Bytes of one file; the CRL of a very large site has some ten million."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What the file system says of a file; of a symbolic link's target, if it is one."""

    kind: Literal["file", "directory", "other"]
    mode: int
    """Permission bits."""
    uid: int
    gid: int
    link: bool = False

    @property
    def rights(self) -> str:
        return f"{self.mode:04o} {_user(self.uid)}"

    def readable_for(self, uid: int, gid: int) -> bool:
        """Whether a user (root may always) with this one group may read it."""
        if uid == 0:
            return True
        needed = 0o400 if uid == self.uid else 0o040 if gid == self.gid else 0o004
        return bool(self.mode & needed)


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """What may be told of a private key."""

    key: str | None
    """As ``protocol.certificates.Certificate.key``; None if it is encrypted and the password is not known."""
    size: int | None = None
    """Bits of an RSA key."""
    encrypted: bool = False


class Folder:
    """A directory; what could not be read is in ``troubles`` and ``hidden``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: dict[str, Entry] = {}
        """By path relative to the directory, which itself is ``.``; as far as ``list`` was asked."""
        self.troubles: list[Diagnosis] = []
        self.hidden: set[str] = set()
        if entry := self._entry("."):
            self.entries["."] = entry

    def list(self, directory: str = ".") -> list[str]:
        """The names in a directory, sorted; they are in ``entries`` from now on."""
        prefix = "" if directory == "." else f"{directory}/"
        try:
            names = sorted(each.name for each in (self.path / directory).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            self._unreadable(directory, error)
            return []
        for name in names:
            if entry := self._entry(prefix + name):
                self.entries[prefix + name] = entry
        return names

    def missing(self, name: str) -> bool:
        """True if it surely is not there."""
        return name not in self.entries and not self._hidden(name)

    def read(self, name: str) -> bytes | None:
        """A file's content; None if it is not there or can't be read, the latter with a diagnosis."""
        path, entry = self.path / name, self.entries.get(name) or self._entry(name)
        if entry is None:
            return None
        if entry.kind != "file":
            self.hidden.add(name)
            self.troubles.append(
                findings.error("no regular file", f"{name} is no file", f"Look at it: `ls -ld {path}`")
            )
            return None
        try:
            # Between stat and open it may have become something that blocks.
            with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return None
                data = file.read(LIMIT + 1)
        except OSError as error:
            self._unreadable(name, error)
            return None
        if len(data) > LIMIT:
            self.hidden.add(name)
            self.troubles.append(findings.warning("file too large", f"{name} is larger than {LIMIT >> 20} MiB"))
            return None
        return data

    def certificates(self, name: str, remedy: str = "") -> tuple[Certificate, ...]:
        """A file's certificates; ``remedy`` is for a file that holds none."""
        return tuple(self._parse(name, "certificate", x509.read_certificates, remedy) or ())

    def crls(self, name: str, remedy: str = "") -> tuple[RevocationList, ...]:
        """A file's CRLs; ``remedy`` as with ``certificates``."""
        return tuple(self._parse(name, "CRL", x509.read_crls, remedy) or ())

    def request(self, name: str, remedy: str = "") -> CertificateRequest | None:
        return self._parse(name, "signing request", x509.read_csr, remedy)

    def key(self, name: str, password_file: str, remedy: str = "") -> PrivateKey | None:
        """What a file with a private key holds."""
        data = self.read(name)
        if data is None:
            return None
        try:
            return _private(data, None)
        except TypeError:  # it is encrypted
            password = self.read(password_file)
        except (ValueError, UnsupportedAlgorithm):
            self._malformed(name, "private key", "it can't be read as a key in PEM form", remedy)
            return None
        try:
            if password:
                found = _private(data, password)
                return PrivateKey(found.key, found.size, encrypted=True)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            pass
        return PrivateKey(None, encrypted=True)

    def public_key(self, name: str) -> str | None:
        """The digest of a public key in PEM form."""
        data = self.read(name)
        if data is None:
            return None
        try:
            loaded = serialization.load_pem_public_key(data)
            return x509.key_id(loaded) if isinstance(loaded, rsa.RSAPublicKey | ec.EllipticCurvePublicKey) else None
        except (ValueError, UnsupportedAlgorithm):
            self._malformed(name, "public key", "it can't be read as a key in PEM form")
            return None

    # -- private --------------------------------------------------------------------------------------

    def _parse[T](self, name: str, what: str, parse: Callable[[bytes], T], remedy: str = "") -> T | None:
        data = self.read(name)
        if data is None:
            return None
        try:
            return parse(data)
        except x509.Malformed as error:
            self._malformed(name, what, "it is empty" if not data.strip() else str(error), remedy)
            return None

    def _malformed(self, name: str, what: str, why: str, remedy: str = "") -> None:
        self.hidden.add(name)
        self.troubles.append(findings.error(f"{name} is no {what}", f"{name}: {why}", remedy))

    def _entry(self, name: str) -> Entry | None:
        path = self.path / name
        try:
            link = path.is_symlink()
            found = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            if path.is_symlink():
                self.troubles.append(findings.warning("link to nowhere", f"{name} leads to {path.readlink()}"))
            return None
        except OSError as error:
            self._unreadable(name, error)
            return None
        kind: Literal["file", "directory", "other"] = "other"
        if stat.S_ISREG(found.st_mode):
            kind = "file"
        elif stat.S_ISDIR(found.st_mode):
            kind = "directory"
        return Entry(kind, stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid, link)

    def _hidden(self, name: str) -> bool:
        return not self.hidden.isdisjoint({name, *(str(each) for each in PurePosixPath(name).parents)})

    def _unreadable(self, name: str, error: OSError) -> None:
        if self._hidden(name):  # said already, of itself or of a directory above
            return
        self.hidden.add(name)
        rights = f" ({self.entries[name].rights})" if name in self.entries else ""
        what = f"{name}{rights} can't be read: {error.strerror or error}"
        self.troubles.append(findings.warning("not readable", what, "Run this as root."))


def owner_troubles(folder: Folder, names: list[str]) -> list[str]:
    """Of these files the ones that the directory's owner, as whom a service runs, could not read."""
    home = folder.entries["."]
    unreadable = (
        (name, entry)
        for name in names
        if (entry := folder.entries.get(name)) and not entry.readable_for(home.uid, home.gid)
    )
    return [f"{name} is {entry.rights}" for name, entry in unreadable]


def owner(folder: Folder) -> str:
    return _user(folder.entries["."].uid)


def open_to_all(folder: Folder, keys: list[str]) -> list[Diagnosis]:
    """Private keys that everybody may read, and anything that everybody may write."""
    found = []
    shown = [name for name in keys if (entry := folder.entries.get(name)) and entry.mode & 0o007]
    if shown:
        paths = " ".join(str(folder.path / name) for name in shown)
        detail = ", ".join(f"{name} is {folder.entries[name].rights}" for name in shown)
        found.append(findings.warning("private key open to everybody", detail, f"`chmod o= {paths}`"))
    writable = [name for name, entry in folder.entries.items() if entry.mode & 0o002 and not entry.mode & stat.S_ISVTX]
    if writable:
        detail = findings.listed([f"{name} is {folder.entries[name].rights}" for name in writable])
        found.append(findings.warning("writable for everybody", detail, f"`chmod -R o-w {folder.path}`"))
    return found


def _private(data: bytes, password: bytes | None) -> PrivateKey:
    # Checking an RSA key of 4096 bits takes half a second, and says nothing about whose it is.
    key = serialization.load_pem_private_key(data, password, unsafe_skip_rsa_key_validation=True)
    if isinstance(key, rsa.RSAPrivateKey):
        return PrivateKey(x509.key_id(key.public_key()), key.key_size)
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return PrivateKey(x509.key_id(key.public_key()))
    raise ValueError(type(key).__name__)


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
