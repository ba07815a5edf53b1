"""Agents of other hosts use the proxy as their HTTP proxy: what they need to trust it is written to a directory."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.serialization import Encoding

from inspector.errors import InspectorError
from inspector.proxy.connect.interception import Decision, Interception, Way
from inspector.text import address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from inspector.proxy.tls import Trust

LIFETIME = timedelta(days=30)
"""How long the CA of a proxy is valid, which is another one each time that the proxy starts."""
PATIENCE = 120.0
"""Seconds that a connection may take: the agents' own ``http_connect_timeout``."""
BUNDLE, CRLS = "ca.pem", "crl.pem"


class SiteInterception(Interception):
    """Agents of a site that use the proxy as their HTTP proxy."""

    def __init__(
        self, directory: Path, servers: Iterable[tuple[str, int]], trust: Trust, report: Callable[[str], None]
    ) -> None:
        """Write what agents have to trust to a directory. Raises InspectorError."""
        super().__init__(servers, trust, report, lifetime=LIFETIME, timeout=PATIENCE)
        bundle = b"".join(each.public_bytes(Encoding.PEM) for each in trust.authorities)
        crls = b"".join(each.public_bytes(Encoding.PEM) for each in trust.crls)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            _write(directory / BUNDLE, bundle + self._authority.certificate)
            _write(directory / CRLS, crls + self._authority.crl)
        except OSError as error:
            raise InspectorError(
                f"{error.filename} cannot be written: {error.strerror}.", "puppet_connect names a directory of yours."
            ) from error

    def other(self, server: tuple[str, int]) -> Decision:
        self.report_once(f"-- refused a connection with {address(*server)}, which is not puppet_master")
        return Decision(Way.REFUSED)


def _write(path: Path, content: bytes) -> None:
    """Replace a file that everybody may read: there is no secret in it."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_bytes(content)
    fresh.replace(path)
