"""Read an auth.conf of either kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector import inputs
from inspector.errors import InspectorError
from inspector.host.auth_conf import puppetserver, ruby
from inspector.host.auth_conf.rules import Refused

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.host.auth_conf.rules import AuthConf

LARGEST = 2**20
"""Bytes of an auth.conf; usual ones have some 10,000."""


def read(path: Path) -> AuthConf:
    """Return the rules of an auth.conf. Raises InspectorError, which names the line."""
    try:
        data = inputs.read(path, LARGEST)
    except OSError as error:
        raise InspectorError(
            f"Cannot read {path}: {error.strerror}.", "Give the master's auth.conf, or a copy of it."
        ) from error
    text = data.decode("utf-8", "replace")
    legacy = ruby.FIRST.match(text) is not None
    try:
        return ruby.read(path, text) if legacy else puppetserver.read(path, text)
    except Refused as error:
        master = "the Ruby master" if legacy else "puppetserver"
        raise InspectorError(
            f"{path}:{error.line}: {error.reason}.", error.hint or f"So {master} does not start with this file."
        ) from error
