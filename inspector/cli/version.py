"""``puppet-inspector --version``, and with ``--verbose`` what a bug report needs, and nothing about the site."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector import __version__

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

PACKAGES = ("mitmproxy", "cryptography", "pyOpenSSL", "textual", "rich", "msgspec", "zstandard", "google-re2")


def execute(arguments: argparse.Namespace) -> int:
    """Print the version; with ``--verbose`` also those of what it stands on."""
    if not arguments.verbose:
        print(f"puppet-inspector {__version__}")
        return 0
    from inspector.cli.output import print_line

    for line in _verbose():
        print_line(line)
    return 0


def _verbose() -> Iterator[str]:
    import platform
    import socket
    import sqlite3
    import sys

    from cryptography.hazmat.backends.openssl.backend import backend

    libc = " ".join(platform.libc_ver()).strip() or "another libc"
    yield f"puppet-inspector {__version__} ({_kind()})"
    yield f"Python {platform.python_version()} ({sys.implementation.name}, {platform.machine()}, {libc})"
    for name in PACKAGES:
        yield f"{name} {_version(name)}"
    yield f"OpenSSL {backend.openssl_version_text().removeprefix('OpenSSL ')}"
    yield f"SQLite {sqlite3.sqlite_version}"
    yield f"several workers on a port: {'yes' if hasattr(socket, 'SO_REUSEPORT') else 'no'}"


def _kind() -> str:
    from inspector import installation

    if installation.ONE_FILE:
        return "one-file build"
    return "checkout" if (installation.PACKAGE.parent / "pyproject.toml").is_file() else "installed package"


def _version(name: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not found"
