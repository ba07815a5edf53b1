"""The options of a proxy that concern metrics and spans."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from inspector import regex
from inspector.errors import InspectorError
from inspector.host.puppetconf import split_address
from inspector.text import address

if TYPE_CHECKING:
    from collections.abc import Iterator

PORT = 9140
"""Where metrics are served if only a host is given."""
PATH = "/v1/traces"
"""What collectors have below their address (OTLP/HTTP)."""
_HOST = regex.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.%]+\]")


@dataclass(frozen=True, slots=True)
class Telemetry:
    """The metrics and spans that a running proxy has for other systems."""

    metrics: tuple[str, int] | None = None
    """Where metrics are served; None: nowhere."""
    certnames: bool = False
    """Whether runs are counted by certname."""
    collector: str = ""
    """The URL that spans are sent to; empty: none."""

    def lines(self) -> Iterator[str]:
        """Yield what the proxy prints about it when it starts."""
        if self.metrics:
            yield f"  metrics     http://{address(*self.metrics)}/metrics"
        if self.collector:
            yield f"  spans to    {self.collector}"

    def warnings(self) -> Iterator[str]:
        """Yield what the proxy warns of when it starts."""
        if self.metrics and not _loopback(self.metrics[0]):
            yield (
                f"metrics on {address(*self.metrics)} can be reached from the network, by anybody and without "
                f"encryption{': certnames are in them' if self.certnames else ''}"
            )
        parts = urlsplit(self.collector)
        if parts.scheme == "http" and not _loopback(parts.hostname or ""):
            yield f"spans are sent to {parts.hostname} without encryption: names, paths and findings are in them"


NOTHING = Telemetry()


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read(metrics: str, collector: str, *, certnames: bool) -> Telemetry:
    """Return what the options say. Raises InspectorError."""
    if certnames and not metrics:
        raise InspectorError(
            "puppet_metrics_certnames needs puppet_metrics.", f"Add --set puppet_metrics=127.0.0.1:{PORT}"
        )
    return Telemetry(_metrics(metrics) if metrics else None, certnames, _collector(collector) if collector else "")


def _metrics(text: str) -> tuple[str, int]:
    host, port = split_address(text, PORT)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4]
    except (OSError, UnicodeError) as error:
        raise InspectorError(
            f"puppet_metrics is {text!r}, which is not an address of this host.", f"Write 127.0.0.1:{PORT}."
        ) from error
    return str(found[0]), int(found[1])


def _collector(text: str) -> str:
    hint = "Write the address of a collector: http://127.0.0.1:4318"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise InspectorError(f"puppet_otlp is {text!r}, which is not a URL.", hint) from error
    host = parts.netloc.rpartition(":")[0] if port is not None else parts.netloc
    usable = parts.scheme in ("http", "https") and _HOST.fullmatch(host) and not parts.query and not parts.fragment
    if not usable or not text.isascii() or not text.isprintable() or " " in text:
        raise InspectorError(f"puppet_otlp is {text!r}, which is not the address of a collector.", hint)
    path = parts.path.rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path if path.endswith(PATH) else path + PATH}"
