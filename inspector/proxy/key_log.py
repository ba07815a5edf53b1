"""The secrets of TLS sessions, for Wireshark: in the file that SSLKEYLOGFILE names, as mitmproxy and browsers do."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from inspector import inputs
from inspector.errors import InspectorError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

VARIABLES = ("MITMPROXY_SSLKEYLOGFILE", "SSLKEYLOGFILE")
"""The first that is set counts, as in mitmproxy."""


def path() -> Path | None:
    """Return the file that the environment names; None if it names none."""
    named = next((value for variable in VARIABLES if (value := os.environ.get(variable))), None)
    return inputs.expanded(named) if named else None


def writer() -> Callable[[bytes], None] | None:
    """Return what writes a line to that file; None if there is none. Raises InspectorError."""
    file = path()
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
