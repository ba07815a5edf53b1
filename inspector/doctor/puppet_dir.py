"""Read a Puppet directory without changing it: files, owners, modes, certificates, CRLs and keys.

Nothing is created, locked or opened for writing. Only regular files are opened, and read up to a limit. A file that
cannot be read becomes a diagnosis. Of private keys only the digest of the public key is kept.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import shlex
import stat
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal, cast

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from inspector.doctor import findings
from inspector.errors import InspectorError
from inspector.protocol import x509
from inspector.protocol.pem import UNREADABLE
from inspector.rules.fixes import Step, advice

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from inspector.doctor.findings import Diagnosis
    from inspector.protocol.certificates import Certificate, CertificateRequest, RevocationList
    from inspector.rules.fixes import Fix

LIMIT = 64 * 1024 * 1024
"""Bytes of one file; the CRL of a very large site has about ten million."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """Kind, mode and owner of a file; those of the target for a symbolic link."""

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
        """Tell whether a user with this one group may read the file; root always may."""
        if uid == 0:
            return True
        needed = 0o400 if uid == self.uid else 0o040 if gid == self.gid else 0o004
        return bool(self.mode & needed)


@dataclass(frozen=True, slots=True)
class KeyFile:
    """The facts of a private key that may be shown."""

    key: str | None
    """Digest of the public key, as in ``Certificate.key``; None: encrypted, and the password is not known."""
    size: int | None = None
    """Bits of an RSA key."""
    encrypted: bool = False


class Folder:
    """A directory; ``problems`` and ``hidden`` hold what could not be read."""

    def __init__(self, path: Path, known: dict[bytes, object] | None = None) -> None:
        """``known`` is what was parsed of another directory, by the digest of the file: the copy of a certificate is
        the same object."""
        self.path = path
        self._known = known
        self.entries: dict[str, FileEntry] = {}
        """The entries that were listed, by path relative to the directory, which itself is ``.``."""
        self.problems: list[Diagnosis] = []
        self.hidden: set[str] = set()
        if entry := self._entry("."):
            self.entries["."] = entry

    def list(self, directory: str = ".") -> list[str]:
        """Return the names in a directory, sorted, and add them to ``entries``."""
        prefix = "" if directory == "." else f"{directory}/"
        try:
            names = sorted(entry.name for entry in (self.path / directory).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            self._unreadable(directory, error)
            return []
        for name in names:
            if entry := self._entry(prefix + name):
                self.entries[prefix + name] = entry
        return names

    def top(self) -> Sequence[str]:
        """Return the names in the directory itself. Raises InspectorError if they cannot be read."""
        names = self.list()
        if "." in self.hidden:
            raise InspectorError(f"Cannot read {self.path}: permission denied.", "Run this as root.")
        return names

    def missing(self, name: str) -> bool:
        """Tell whether a file certainly does not exist."""
        return name not in self.entries and not self._hidden(name)

    def read(self, name: str) -> bytes | None:
        """Return a file's content.

        None: the file does not exist, or cannot be read, which adds a diagnosis.
        """
        path, entry = self.path / name, self.entries.get(name) or self._entry(name)
        if entry is None:
            return None
        if entry.kind != "file":
            self.hidden.add(name)
            look = Step("look at it", f"ls -ld {shlex.quote(str(path))}")
            fix = (look, advice("move it away, restore the file if there is a backup, and run the agent"))
            self.problems.append(findings.error("not a regular file", f"{name} is not a regular file", fix))
            return None
        try:
            # Between stat and open another file, whose opening blocks, may have taken its place.
            with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return None
                data = file.read(LIMIT + 1)
        except OSError as error:
            self._unreadable(name, error)
            return None
        if len(data) > LIMIT:
            self.hidden.add(name)
            self.problems.append(findings.warning("file too large", f"{name} is larger than {LIMIT >> 20} MiB"))
            return None
        return data

    def certificates(self, name: str, fix: Fix = ()) -> tuple[Certificate, ...]:
        """Return a file's certificates; ``fix`` is for a file without any."""
        return tuple(self._parse(name, "certificate", x509.usable_certificates, fix) or ())

    def crls(self, name: str, fix: Fix = ()) -> tuple[RevocationList, ...]:
        """Return a file's CRLs; ``fix`` is for a file without any."""
        return tuple(self._parse(name, "CRL", x509.usable_crls, fix) or ())

    def request(self, name: str, fix: Fix = ()) -> CertificateRequest | None:
        return self._parse(name, "signing request", x509.read_csr, fix)

    def key(self, name: str, password_file: str | None, fix: Fix = ()) -> KeyFile | None:
        """Return the facts of a file's private key; ``password_file`` is for an encrypted one. None: an encrypted one
        is in a format of its own."""
        data = self.read(name)
        if data is None:
            return None
        if password_file is None and b"ENCRYPTED" in data:
            return KeyFile(None, encrypted=True)
        try:
            return _private(data, None)
        except TypeError:  # encrypted
            password = self.read(password_file) if password_file else None
        except UNREADABLE:
            self._malformed(name, "private key", "the file is not a key in PEM form", fix)
            return None
        try:
            if password:
                decrypted = _private(data, password)
                return KeyFile(decrypted.key, decrypted.size, encrypted=True)
        except UNREADABLE:
            pass
        return KeyFile(None, encrypted=True)

    def public_key(self, name: str) -> str | None:
        """Return the digest of a public key in PEM form."""
        data = self.read(name)
        if data is None:
            return None
        try:
            loaded = serialization.load_pem_public_key(data)
            return x509.key_id(loaded) if isinstance(loaded, rsa.RSAPublicKey | ec.EllipticCurvePublicKey) else None
        except UNREADABLE:
            self._malformed(name, "public key", "the file is not a key in PEM form")
            return None

    # -- private --------------------------------------------------------------------------------------

    def _parse[T](self, name: str, kind: str, parse: Callable[[bytes], T], fix: Fix = ()) -> T | None:
        data = self.read(name)
        if data is None:
            return None
        digest = b"" if self._known is None else hashlib.sha256(f"{kind}\n".encode() + data).digest()
        if self._known is not None and digest in self._known:
            return cast("T", self._known[digest])
        try:
            parsed = parse(data)
        except x509.Malformed as error:
            self._malformed(name, kind, "the file is empty" if not data.strip() else str(error), fix)
            return None
        if self._known is not None:
            self._known[digest] = parsed
        return parsed

    def _malformed(self, name: str, kind: str, why: str, fix: Fix = ()) -> None:
        self.hidden.add(name)
        self.problems.append(findings.error(f"{name} is not a valid {kind}", f"{name}: {why}", fix))

    def _entry(self, name: str) -> FileEntry | None:
        path = self.path / name
        try:
            link = path.is_symlink()
            status = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            if path.is_symlink():
                self.problems.append(findings.warning("broken link", f"{name} points to {path.readlink()}"))
            return None
        except OSError as error:
            self._unreadable(name, error)
            return None
        kind: Literal["file", "directory", "other"] = "other"
        if stat.S_ISREG(status.st_mode):
            kind = "file"
        elif stat.S_ISDIR(status.st_mode):
            kind = "directory"
        return FileEntry(kind, stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid, link)

    def _hidden(self, name: str) -> bool:
        return not self.hidden.isdisjoint({name, *(str(parent) for parent in PurePosixPath(name).parents)})

    def _unreadable(self, name: str, error: OSError) -> None:
        if self._hidden(name):  # the file or a directory above it has a diagnosis already
            return
        self.hidden.add(name)
        rights = f" ({self.entries[name].rights})" if name in self.entries else ""
        detail = f"{name}{rights} cannot be read: {error.strerror or error}"
        self.problems.append(findings.warning("not readable", detail, (advice("run this as root"),)))


def unreadable_for_owner(folder: Folder, names: list[str]) -> list[str]:
    """Return in words those of the files that the directory's owner, as which the service runs, cannot read."""
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
    """Return diagnoses for private keys that all users may access, and for files that all users may write."""
    diagnoses = []
    exposed = [name for name in keys if (entry := folder.entries.get(name)) and entry.mode & 0o007]
    if exposed:
        paths = " ".join(shlex.quote(str(folder.path / name)) for name in exposed)
        detail = ", ".join(f"{name} is {folder.entries[name].rights}" for name in exposed)
        close = Step("let only the owner and the group access it", f"chmod o= {paths}")
        diagnoses.append(findings.warning("private key accessible to all users", detail, (close,)))
    writable = [name for name, entry in folder.entries.items() if entry.mode & 0o002 and not entry.mode & stat.S_ISVTX]
    if writable:
        detail = findings.listed([f"{name} is {folder.entries[name].rights}" for name in writable])
        close = Step("let only the owner and the group write", f"chmod -R o-w {shlex.quote(str(folder.path))}")
        diagnoses.append(findings.warning("writable by all users", detail, (close,)))
    return diagnoses


def _private(data: bytes, password: bytes | None) -> KeyFile:
    # Validating an RSA key of 4096 bits takes half a second, and is not needed to compare keys.
    key = serialization.load_pem_private_key(data, password, unsafe_skip_rsa_key_validation=True)
    if isinstance(key, rsa.RSAPrivateKey):
        return KeyFile(x509.key_id(key.public_key()), key.key_size)
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return KeyFile(x509.key_id(key.public_key()))
    raise ValueError(type(key).__name__)


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
