"""What this host's Puppet or OpenVox server is set to: its addresses, its certificate, its CA.

Its settings stand in three places, as its service reads them: ``webserver.conf`` and the other files of ``conf.d``
(HOCON), ``services.d``, and ``puppet.conf`` for what the first does not say (puppetserver's
``puppet_server_config_core.clj``).
"""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from inspector import inputs, regex
from inspector.errors import InspectorError
from inspector.host import puppetconf
from inspector.host.auth_conf import hocon
from inspector.host.puppetconf import PORT, PuppetConf

if TYPE_CHECKING:
    from collections.abc import Iterator

PLACES = (Path("/etc/puppetlabs/puppetserver/conf.d"), Path("/etc/puppet/puppetserver/conf.d"))
"""Where packages of Puppet and OpenVox, and Debian's, have ``conf.d``."""
EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104
"""A server that listens on all addresses."""
_PROGRAM = regex.compile(r"(?:.*/)?puppet-?server(?:-release)?\.jar")
# Not by the parser: the packages' file has references.
_CONFDIR = regex.compile(r"^[ \t]*\"?(?:server|master)-conf-dir\"?[ \t]*[:=][ \t]*\"?([^\"\s#,]+)", regex.MULTILINE)
_CA_SERVICE = regex.compile(r"^[ \t]*puppetlabs\.services\.ca\.certificate-authority-service/", regex.MULTILINE)
_OVERRIDES = ("ssl-cert", "ssl-key", "ssl-ca-cert", "ssl-crl-path")


@dataclass(frozen=True, slots=True)
class ServerConf:
    """A server of this host."""

    directory: Path
    """Its ``conf.d``."""
    host: str
    """The address that it listens on."""
    port: int
    certificate: Path
    key: Path
    ca: Path
    """The CA bundle by which it verifies agents."""
    crl: Path
    """The CRLs by which it does."""
    cadir: Path | None
    """The directory of the CA that it is; None if it is none."""
    plain: bool
    """Whether it listens for plain HTTP as well, as behind a balancer that ends TLS."""
    trusts_headers: bool
    """Whether it believes headers that say who an agent is (``allow-header-cert-info``)."""
    access_log: Path | None
    """Where its requests are logged; None if that is not known."""

    @property
    def address(self) -> tuple[str, int]:
        """Where a program of this host reaches it."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host), self.port  # noqa: S104


def read(directory: Path | None = None) -> ServerConf:
    """Return the settings of the server with this ``conf.d``, by default of the one that runs or is installed here.

    Raises InspectorError.
    """
    directory = directory or _running() or next((place for place in PLACES if place.is_dir()), None)
    if directory is None or not inputs.is_directory(directory):
        raise InspectorError(
            f"There is no Puppet server on this host: {directory or 'none is installed, and none'} "
            f"{'is no directory' if directory else 'runs'}.",
            "Give the directory of its webserver.conf: --config DIR.",
        )
    web = section(directory, "webserver.conf", "webserver")
    if "ssl-port" not in web and "ssl-host" not in web:
        raise InspectorError(
            f"The server of {directory} listens without TLS only.", "What ends TLS before it is where agents connect."
        )
    conf = _puppet_conf(directory)
    given = {name: Path(web[name]) for name in _OVERRIDES if name in web}
    if given and len(given) < len(_OVERRIDES) - 1:
        raise InspectorError(
            f"{directory / 'webserver.conf'} sets {', '.join(given)} without the others.",
            f"The server needs all of {', '.join(_OVERRIDES)}, or none of them.",
        )
    authorization = section(directory, "auth.conf", "authorization")
    return ServerConf(
        directory=directory,
        host=_address(web.get("ssl-host", "0.0.0.0"), directory),  # noqa: S104 - as the server does
        port=_port(web.get("ssl-port"), directory),
        certificate=given.get("ssl-cert", conf.certificate),
        key=given.get("ssl-key", conf.key),
        ca=given.get("ssl-ca-cert", conf.ca),
        crl=given.get("ssl-crl-path", conf.crl),
        cadir=conf.cadir if _is_ca(directory) and conf.cadir and (conf.cadir / "ca_key.pem").is_file() else None,
        plain="port" in web or "host" in web,
        trusts_headers=authorization.get("allow-header-cert-info", "false").lower() == "true",
        access_log=_access_log(web.get("access-log-config")),
    )


def _running() -> Path | None:
    """Return the ``conf.d`` of the server that runs on this host. Raises InspectorError."""
    found = sorted({config.resolve() for config in _configs() if config.is_dir()})
    if len(found) > 1:
        raise InspectorError(
            f"Several servers run on this host, with {', '.join(map(str, found))}.", "Name one: --config DIR."
        )
    return found[0] if found else None


def _configs() -> Iterator[Path]:
    """Yield what the servers that run were given as ``--config``."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = inputs.read(entry, inputs.SMALL).decode(errors="replace").split("\0")
        except OSError:
            continue
        if any(_PROGRAM.fullmatch(word) for word in words) and "--config" in words[:-1]:
            yield entry.parent / "cwd" / words[words.index("--config") + 1]


def section(directory: Path, name: str, section: str) -> dict[str, str]:
    """Return the plain values of a section of a file; nothing if there is no such file. Raises InspectorError."""
    path = directory / name
    try:
        text = inputs.read(path, inputs.SMALL).decode()
        node = hocon.parse(text).get(section)
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise InspectorError(f"{path} cannot be read: {getattr(error, 'strerror', error)}.", "Run as root.") from error
    except hocon.Malformed as error:
        raise InspectorError(f"{path} cannot be read: line {error.line}: {error.reason}.", "Correct it.") from error
    fields = node.value if node and isinstance(node.value, dict) else {}
    return {
        key: str(each.value).lower() if isinstance(each.value, bool) else str(each.value)
        for key, each in fields.items()
        if not isinstance(each.value, (dict, list))
    }


def _puppet_conf(directory: Path) -> PuppetConf:
    """Return the server's settings in puppet.conf."""
    found = None
    with contextlib.suppress(OSError, UnicodeDecodeError):
        found = _CONFDIR.search(inputs.read(directory / "puppetserver.conf", inputs.SMALL).decode())
    return puppetconf.read(confdir=found[1] if found else None, sections=puppetconf.OF_SERVER)


def _is_ca(directory: Path) -> bool:
    """Whether the server's CA service is on (``services.d/ca.cfg``)."""
    try:
        return _CA_SERVICE.search(inputs.read(directory.parent / "services.d/ca.cfg").decode()) is not None
    except (OSError, UnicodeDecodeError):
        return True  # another layout: whether there is a key decides


def _access_log(config: str | None) -> Path | None:
    """Return the file that a logback configuration names first."""
    try:
        text = inputs.read(Path(config), inputs.SMALL).decode() if config else ""
    except (OSError, UnicodeDecodeError):
        return None
    found = regex.search(r"<file>\s*([^<\s]{1,1000})\s*</file>", text)
    return Path(found[1]) if found else None


def _address(host: str, directory: Path) -> str:
    """Return the address of ssl-host, which may be a name. Raises InspectorError."""
    try:
        return str(socket.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM)[0][4][0])
    except (OSError, UnicodeError) as error:
        raise InspectorError(
            f"{directory / 'webserver.conf'} sets ssl-host to {host!r}, which has no address.", "Correct it."
        ) from error


def _port(text: str | None, directory: Path) -> int:
    if text is None:
        return PORT
    if not (text.isascii() and text.isdecimal() and len(text) < 6 and 0 < int(text) < 65536):
        raise InspectorError(f"{directory / 'webserver.conf'} sets ssl-port to {text!r}.", "It is no port.")
    return int(text)
