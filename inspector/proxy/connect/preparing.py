"""Prepares a run of this host's agent through the proxy: a port, options for its command line, and a plan."""

from __future__ import annotations

import hashlib
import os
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from inspector import inputs
from inspector.errors import InspectorError
from inspector.host.puppetconf import split_address
from inspector.proxy.connect import files, trust
from inspector.proxy.connect.dialing import SiteProxy
from inspector.proxy.connect.interception import ANY, Addition
from inspector.proxy.connect.plan import Plan
from inspector.text import address

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from inspector.host.puppetconf import PuppetConf

LOOPBACK = "127.0.0.1"
HIGHEST, LOWEST = 1023, 512
"""Ports that only root can use, unless the kernel is set otherwise."""
PART = 0.9
"""How much of the agent's patience a connection may take: it must hear of the failure before it gives up."""
NO_LIMIT = 86400.0
"""Seconds that a connection may take where ``http_connect_timeout`` is 0."""
_FIRST_OF_USERS = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")
_VARIABLES = ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY")
"""What of the environment comes before the agent's own settings."""


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """What an agent needs for its run."""

    listening: socket.socket
    """The proxy's port; as long as it is open nobody else can take it."""
    plan: Plan
    options: tuple[str, ...]
    """The options to append to the agent's command."""
    environment: Mapping[str, str]
    notes: tuple[str, ...] = field(default=())

    def late_options(self) -> list[str]:
        """Return the options that depend on the CA of the run: what the agent has to expect of a CA bundle that it
        downloads. The proxy has started."""
        if not self.plan.ca_digest or Path(self.plan.ca).exists():
            return []
        body = trust.download(self.plan.ca_server, self.plan.site, trust.BUNDLE).body
        served = Addition(inputs.read(self.plan.added_ca), self.plan.ca_digest).added_to(body)
        return [] if served == body else ["--ca_fingerprint", hashlib.sha256(served).hexdigest()]

    @property
    def address(self) -> tuple[str, int]:
        host, port = self.listening.getsockname()[:2]
        return str(host), int(port)


def prepare(conf: PuppetConf, directory: Path, listen: str | None, also: Sequence[tuple[str, int]] = ()) -> PreparedRun:
    """Prepare a run of the agent with these settings, whose copies of files go to a directory of this user's.

    ``listen`` is an address for the proxy, ``also`` are servers to intercept besides those of the settings. Raises
    InspectorError.
    """
    listening = _listening(listen)
    host, port = listening.getsockname()[:2]
    try:
        site, environment, notes = _site(conf, f"http://{address(host, port)}")
    except InspectorError:
        listening.close()
        raise
    plan = Plan(
        certname=conf.certname,
        ssldir=str(conf.ssldir.absolute()),
        ca=str(conf.ca.absolute()),
        crl=str(conf.crl.absolute()),
        directory=str(directory),
        # Which servers a SRV record names is not known before.
        servers=(*conf.servers, *((ANY, conf.port) for _ in range(conf.use_srv_records)), *also),
        user=os.geteuid(),
        revocation=conf.revocation,
        # It waits for an HTTP proxy's answer as for any other.
        timeout=PART * min(conf.connect_timeout or NO_LIMIT, conf.read_timeout or NO_LIMIT),
        descriptors=(listening.fileno(),),
        site=site,
        ca_digest=conf.ca_fingerprint.lower(),
        ca_server=conf.authority,
    )
    options = ["--http_proxy_host", str(host), "--http_proxy_port", str(port)]
    # At a file that cannot be used an agent stops, and says so: it is left to it.
    if files.usable(conf.ca, files.CERTIFICATE):
        options += ["--localcacert", str(plan.own_ca)]
    if files.usable(conf.crl, files.CRL):
        options += ["--hostcrl", str(plan.own_crl)]
    if conf.http_proxy_credentials:  # they are for the site's proxy, and can be read in the list of processes
        options += ["--http_proxy_user", "none", "--http_proxy_password", "none"]
    return PreparedRun(listening, plan, tuple(options), environment, notes)


def _listening(listen: str | None) -> socket.socket:
    """Return a socket on an address of loopback, with a port that no other user could have taken if that is possible.

    Raises InspectorError.
    """
    if listen:
        wanted = split_address(listen, 0)
        return _bound(*wanted)
    for port in range(HIGHEST, LOWEST - 1, -1) if _has_own_ports() else ():
        try:
            return _bound(LOOPBACK, port)
        except InspectorError:
            continue
    return _bound(LOOPBACK, 0)


def _has_own_ports() -> bool:
    """Whether this user can use ports that others cannot."""
    try:
        first = int(inputs.read(_FIRST_OF_USERS, inputs.LINE))
    except (OSError, ValueError):
        first = HIGHEST + 1
    return os.geteuid() == 0 and first > HIGHEST


def _bound(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise InspectorError(f"Cannot listen on {host}: {error.strerror}.", "Give --listen an address.") from error
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise InspectorError(
            f"Cannot listen on {host}:{port}: {error.strerror}.", "Omit --listen, or give another port."
        ) from error
    return listening


def _site(conf: PuppetConf, own: str) -> tuple[SiteProxy | None, Mapping[str, str], tuple[str, ...]]:
    """Return the HTTP proxy that the agent would use, its environment for this run, and what to note about it."""
    environment = dict(os.environ)
    named = environment.get("http_proxy") or environment.get("HTTP_PROXY")
    bypassed = environment.get("no_proxy") or environment.get("NO_PROXY")
    exceptions = tuple((conf.no_proxy if bypassed is None else bypassed).split(","))
    site: SiteProxy | None = None
    notes: tuple[str, ...] = ()
    if named:
        site = _of_url(named, exceptions)
    elif conf.http_proxy:
        site = SiteProxy(*conf.http_proxy, conf.http_proxy_credentials, exceptions)
    if any(name in environment for name in _VARIABLES):
        for name in _VARIABLES:
            environment.pop(name, None)
        if named:
            environment["http_proxy"] = own
        notes = ("http_proxy and no_proxy of the environment are changed for this command, and for what it starts.",)
    return site, environment, notes


def _of_url(url: str, exceptions: tuple[str, ...]) -> SiteProxy:
    try:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else ""
        if not parts.hostname:
            raise ValueError(url)
        return SiteProxy(parts.hostname, parts.port or 80, credentials, exceptions)
    except ValueError as error:
        raise InspectorError("http_proxy in the environment is no address.", "Use http://HOST:PORT.") from error
