"""``puppet-inspector --version --verbose``: what a bug report needs, and nothing about the site."""

from __future__ import annotations

import platform
import socket
import sqlite3
import sys
from importlib import metadata
from typing import TYPE_CHECKING

from inspector import __version__, installation
from inspector.cli.output import print_line

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

PACKAGES = ("mitmproxy", "cryptography", "pyOpenSSL", "textual", "rich", "msgspec", "zstandard", "google-re2")


def execute(arguments: argparse.Namespace) -> int:
    """Print the version; with ``--verbose`` also those of what it stands on."""
    for line in _verbose() if arguments.verbose else [f"puppet-inspector {__version__}"]:
        print_line(line)
    return 0


def _verbose() -> Iterator[str]:
    from cryptography.hazmat.backends.openssl.backend import backend

    yield f"puppet-inspector {__version__} ({_kind()})"
    yield f"Python {platform.python_version()} ({sys.implementation.name}, {platform.machine()}, {_libc()})"
    for name in PACKAGES:
        yield f"{name} {_version(name)}"
    yield f"OpenSSL {backend.openssl_version_text().removeprefix('OpenSSL ')}"
    yield f"SQLite {sqlite3.sqlite_version}"
    yield f"several workers on a port: {'yes' if hasattr(socket, 'SO_REUSEPORT') else 'no'}"


def _kind() -> str:
    if installation.ONE_FILE:
        return "one-file build"
    return "checkout" if (installation.PACKAGE.parent / "pyproject.toml").is_file() else "installed package"


def _libc() -> str:
    return " ".join(platform.libc_ver()).strip() or "another libc"


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not found"
