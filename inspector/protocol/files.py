"""Files on the wire: their metadata, the check of content against metadata, and the filebucket."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from urllib.parse import unquote

import msgspec

from inspector import regex

PLUGIN_MOUNTS = ("plugins", "pluginfacts", "locales", "facts")
"""The mounts of plugins: the first part of a name; ``facts`` in 2.7 (docs/protocol.md#pluginsync)."""
LITE = 512
"""Number of bytes that md5lite and sha256lite read."""
NO_DIGESTS = frozenset({"mtime", "ctime", "none"})
DIGESTS = frozenset({"md5", "md5lite", "sha1", "sha224", "sha256", "sha256lite", "sha384", "sha512"})


class ChecksumResult(StrEnum):
    """Whether bytes match a checksum."""

    RIGHT = "right"
    WRONG = "wrong"
    UNCHECKABLE = "not checkable"


class Checksum(msgspec.Struct, frozen=True):
    type: str
    value: str
    """The checksum with its type in braces: ``{sha256}...``."""

    @property
    def digest(self) -> str:
        return self.value.rpartition("}")[2].strip().lower()


def is_plugin(name: str) -> bool:
    """Whether a file or directory is part of a plugin mount."""
    return name.partition("/")[0] in PLUGIN_MOUNTS


class FileMetadata(msgspec.Struct, frozen=True):
    """A file's metadata from a master (docs/protocol.md#file-metadata)."""

    path: str = ""
    relative_path: str | None = None
    type: str = ""
    checksum: Checksum | None = None
    links: str | None = None
    destination: str | None = None
    mode: int | str | None = None
    owner: int | str | None = None
    group: int | str | None = None
    source: str | None = None
    content_uri: str | None = None
    """Static catalogs: where to fetch this exact version (through static_file_content)."""

    @property
    def content_path(self) -> str | None:
        """``content_uri`` as the key of the static_file_content request for it: ``modules/m/files/f``."""
        found = _PUPPET_URI.fullmatch(self.content_uri or "")
        return unquote(found[1]) if found else None


_PUPPET_URI = regex.compile(r"puppet://[^/]*/+(.+)", regex.DOTALL)


class FileMetadatas(msgspec.Struct, frozen=True):
    files: list[FileMetadata]


class BucketFile(msgspec.Struct, frozen=True):
    """A file sent to the filebucket: its body must have the digest in the URL."""

    size: int
    sha256: str
    algorithm: str | None = None
    sum: str | None = None
    path: str | None = None
    """The original path of the file; in the URL after the digest."""
    verdict: ChecksumResult = ChecksumResult.UNCHECKABLE


def digest(content: bytes, algorithm: str) -> str | None:
    """The hexadecimal digest, for an algorithm by Puppet's name; None for unknown ones and for mtime, which is not a
    digest."""
    if algorithm not in DIGESTS:
        return None
    if algorithm.endswith("lite"):
        content, algorithm = content[:LITE], algorithm.removesuffix("lite")
    return hashlib.new(algorithm, content, usedforsecurity=False).hexdigest()


def check(content: bytes, checksum: Checksum | None) -> ChecksumResult:
    """Check content against the checksum in its metadata; times are not digests (docs/protocol.md#file-metadata)."""
    if checksum is None or checksum.type in NO_DIGESTS:
        return ChecksumResult.UNCHECKABLE
    made = digest(content, checksum.type)
    if made is None or not regex.fullmatch(r"[0-9a-f]+", checksum.digest):
        return ChecksumResult.UNCHECKABLE
    return ChecksumResult.RIGHT if made == checksum.digest else ChecksumResult.WRONG


_BUCKET = regex.compile(r"/file_bucket_file/([a-z0-9]+)/([0-9a-f]+)(?:/([^?]*))?")


def bucket_file(target: str, content: bytes) -> BucketFile:
    """Check a body against the digest in a filebucket's URL (raw, as sent)."""
    size, sha256 = len(content), hashlib.sha256(content).hexdigest()
    found = _BUCKET.search(target)
    if found is None:
        return BucketFile(size, sha256)
    algorithm, digest, path = found.groups()
    verdict = check(content, Checksum(algorithm, digest))
    return BucketFile(size, sha256, algorithm, digest, path or None, verdict)
