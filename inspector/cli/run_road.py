"""The roads on which `run` leads an agent to its proxy.

From 6.4 the agent uses the proxy as its HTTP proxy (``proxy.connect``). An older one takes the proxy for its master,
which presents this host's own certificate, under this host's certname.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import socket
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from inspector import inputs
from inspector.analysis import known_errors
from inspector.errors import InspectorError
from inspector.explain import reference
from inspector.host import puppetconf
from inspector.host.puppetconf import split_address
from inspector.proxy.connect import preparing
from inspector.text import address

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from inspector.host.puppetconf import PuppetConf
    from inspector.proxy.connect.plan import Plan
    from inspector.proxy.connect.preparing import PreparedRun

    type Version = tuple[int, int]

FIRST_WITH_PROXY = (6, 4)
"""The first agent that asks an HTTP proxy for each of its connections, and trusts what its files say."""
FIRST_WITH_NO_PROXY = (6, 8)
"""The first that has the setting ``no_proxy``, but for a few earlier ones. Its default leaves out localhost."""
REACH = 5.0
"""Seconds in which a master of server_list must accept a connection before the next one is tried."""


class Road(Protocol):
    """How the agent gets to the proxy."""

    @property
    def notes(self) -> Sequence[str]:
        """What to print before the run."""

    @property
    def master(self) -> tuple[str, int]:
        """The master that the agent asks first."""

    @property
    def listen(self) -> str:
        """The proxy's address, ``HOST`` or ``HOST:PORT``."""

    @property
    def environment(self) -> Mapping[str, str]:
        """The agent's environment."""

    @property
    def plan(self) -> Plan | None:
        """What the proxy needs to know if it is an HTTP proxy."""

    @property
    def proxy_options(self) -> dict[str, str | Path | tuple[str, ...]]:
        """The proxy's options."""

    def options(self, port: int) -> list[str]:
        """Return the options to append to the agent's command; ``port`` is the proxy's."""


@dataclass(slots=True)
class AsHttpProxy:
    """The agent uses the proxy as its HTTP proxy."""

    conf: PuppetConf
    version: Version | None
    prepared: PreparedRun
    given: tuple[str, int] | None = None
    """Another master than the one of the settings."""

    @classmethod
    def build(
        cls,
        conf: PuppetConf,
        version: Version | None,
        given: tuple[str, int] | None,
        listen: str | None,
        also: Sequence[str],
        stack: contextlib.ExitStack,
    ) -> AsHttpProxy:
        """Prepare it; ``stack`` takes it away again. Raises InspectorError."""
        if given:
            conf = dataclasses.replace(
                conf, server=given[0], port=given[1], server_list=(given,) * bool(conf.server_list)
            )
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="puppet-inspector-run-")))
        prepared = preparing.prepare(conf, directory, listen, [split_address(each) for each in also])
        stack.enter_context(contextlib.closing(prepared.listening))
        return cls(conf, version, prepared, given)

    @property
    def notes(self) -> Sequence[str]:
        return self.prepared.notes

    @property
    def master(self) -> tuple[str, int]:
        return self.conf.servers[0]

    @property
    def listen(self) -> str:
        return address(*self.prepared.address)

    @property
    def environment(self) -> Mapping[str, str]:
        return self.prepared.environment

    @property
    def plan(self) -> Plan:
        return self.prepared.plan

    @property
    def proxy_options(self) -> dict[str, str | Path | tuple[str, ...]]:
        return {}

    def options(self, port: int) -> list[str]:
        no_proxy = ["--no_proxy", "none"] if self.version is None or self.version >= FIRST_WITH_NO_PROXY else []
        own = [*self.prepared.options, *no_proxy, *self.prepared.late_options()]
        if not self.given:
            return own
        host, port = self.given
        servers = ["--server_list", f"{_host(host)}:{port}"] if self.conf.server_list else []
        return ["--server", host, port_option(self.version), str(port), *servers, *own]


@dataclass(slots=True)
class AsMaster:
    """The agent is sent to the proxy as to its master."""

    conf: PuppetConf
    version: Version | None
    master: tuple[str, int]
    listen: str
    ssldir: Path
    """Where the certificate is that the proxy presents."""
    environment: Mapping[str, str]
    notes: Sequence[str] = ()
    plan: Plan | None = field(default=None, init=False)

    @classmethod
    def build(
        cls,
        conf: PuppetConf,
        version: Version | None,
        given: tuple[str, int] | None,
        listen: str | None,
        stack: contextlib.ExitStack,
    ) -> AsMaster:
        """Prepare it; ``stack`` takes it away again. Raises InspectorError."""
        master = given or _master(conf)
        if not _resolve(master[0]):
            raise InspectorError(f"The master's name {master[0]} does not resolve.", "Pass it: --master HOST[:PORT].")
        _must_be_lower_case(conf)
        _must_have_certificate(conf)
        where = _listen(conf.certname, listen)
        ssldir = conf.ssldir
        if puppetconf.read(conf.ssldir).certname != conf.certname:
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="puppet-inspector-"))
            ssldir = _only(conf, Path(directory))
        return cls(conf, version, master, where, ssldir, _environment(conf), tuple(_detours(conf, master)))

    @property
    def proxy_options(self) -> dict[str, str | Path | tuple[str, ...]]:
        host, port = self.master
        return {
            "puppet_master": f"{_host(host)}:{port}", "puppet_listen": self.listen, "puppet_ssldir": self.ssldir,
            "puppet_ca": self.conf.ca, "puppet_crl": self.conf.crl, "puppet_identity": f"keys:{self.conf.ssldir}",
        }  # fmt: skip

    def options(self, port: int) -> list[str]:
        return redirections(self.conf, port, self.version)


def port_option(version: Version | None) -> str:
    """Return the name of the setting for the master's port, which agents up to 6 call by its older name."""
    return "--masterport" if version is not None and version[0] <= 6 else "--serverport"


def _master(conf: PuppetConf) -> tuple[str, int]:
    """Return the master that the agent would use: of a server_list, the first that accepts a connection."""
    for server in conf.server_list if len(conf.server_list) > 1 else ():
        with contextlib.suppress(OSError, UnicodeError), socket.create_connection(server, REACH):
            return server
    return conf.server, conf.port


def _must_be_lower_case(conf: PuppetConf) -> None:
    if conf.certname != conf.certname.lower():
        meaning = reference.explain_output("Certificate names must be lower case", known_errors.book()) or {}
        raise InspectorError(
            f"The certname {conf.certname} is not in lower case: the agent stops before it connects.",
            meaning.get("remedy", ""),
        )


def _must_have_certificate(conf: PuppetConf) -> None:
    try:
        for file in (conf.certificate, conf.key):
            with inputs.opened(file):
                pass
    except FileNotFoundError as error:
        raise InspectorError(
            f"This host has no certificate yet that the proxy could present: {error.filename} is missing.",
            "An agent from 6.4 on needs none: omit --as-master. Enrol an older one without the proxy first "
            "(puppet agent -t), or pass its --ssldir.",
        ) from error
    except OSError as error:
        raise InspectorError(
            f"{error.filename} cannot be read: {error.strerror}.", "Run as the agent's user (root)."
        ) from error


def _detours(conf: PuppetConf, master: tuple[str, int]) -> Iterator[str]:
    """Yield a note for every setting whose requests go to another host, but in this run to the one master."""
    for name, server in (("ca_server", conf.ca_server), ("report_server", conf.report_server)):
        if server and server.lower() != master[0].lower():
            yield f"{name} is {server}, but in this run all requests go to {master[0]}."
    if _has_http_proxy(conf):
        yield "An HTTP proxy is configured, through which the agent reaches its master; in this run it does not use it."


def _listen(certname: str, listen: str | None) -> str:
    """Return where the proxy listens: an address of this host that the certname resolves to."""
    fix = f"Make it resolve to this host: add the line `127.0.0.1 {certname}` to /etc/hosts."
    why = "the agent connects to the proxy by its own certname"
    addresses = _resolve(certname)
    if not addresses:
        raise InspectorError(f"{certname} does not resolve, but {why}.", fix)
    own = sorted(
        (address for address, is_own in addresses.items() if is_own), key=lambda address: ":" in address
    )  # IPv4 first
    if not own:
        raise InspectorError(f"{certname} resolves to {', '.join(addresses)}, which is not this host, but {why}.", fix)
    if listen is None:
        return _host(own[0])
    host = split_address(listen)[0]
    if host not in ("0.0.0.0", "::") and not {host, *_resolve(host)} & set(own):  # noqa: S104
        raise InspectorError(
            f"The proxy would listen on {host}, but {certname} resolves to {own[0]}, and {why}.", "Omit --listen."
        )
    return listen


def _resolve(name: str) -> dict[str, bool]:
    """Return the addresses of a name, each with whether it is one of this host's; none if it does not resolve."""
    addresses: dict[str, bool] = {}
    with contextlib.suppress(OSError, UnicodeError):
        for family, kind, *_, sockaddr in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM):
            addresses[str(sockaddr[0])] = False
            with contextlib.suppress(OSError), socket.socket(family, kind) as probe:
                probe.bind(sockaddr)  # the port is 0: any
                addresses[str(sockaddr[0])] = True
    return addresses


def _only(conf: PuppetConf, directory: Path) -> Path:
    """Fill a directory with links to this certname's files only, so that the proxy uses no other identity."""
    for link, file in (
        (directory / "certs" / conf.certificate.name, conf.certificate),
        (directory / "private_keys" / conf.key.name, conf.key),
    ):
        link.parent.mkdir()
        link.symlink_to(file.absolute())
    return directory


def redirections(conf: PuppetConf, port: int, version: Version | None) -> list[str]:
    """Return the options that send every request of the agent to the proxy; they override those before them."""
    name = conf.certname
    options = ["--server", name, port_option(version), str(port)]
    if conf.server_list:
        options += ["--server_list", f"{name}:{port}"]
    for setting, value in (("ca_server", conf.ca_server), ("report_server", conf.report_server)):
        options += [f"--{setting}", name] if value else []
    for setting, number in (("ca_port", conf.ca_port), ("report_port", conf.report_port)):
        options += [f"--{setting}", str(port)] if number else []
    return [*options, "--no-use_srv_records"] if conf.use_srv_records else options


def _has_http_proxy(conf: PuppetConf) -> bool:
    return bool(conf.http_proxy or os.environ.get("http_proxy") or os.environ.get("HTTP_PROXY"))


def _environment(conf: PuppetConf) -> Mapping[str, str]:
    """Return the agent's environment, in which no HTTP proxy is used for the proxy."""
    environment = dict(os.environ)
    if _has_http_proxy(conf):
        known = environment.get("no_proxy") or environment.get("NO_PROXY") or conf.no_proxy
        environment["no_proxy"] = ",".join(filter(None, (known, conf.certname)))
    return environment


def _host(host: str) -> str:
    """Return a host in the form for ``HOST:PORT``."""
    return f"[{host}]" if ":" in host else host
