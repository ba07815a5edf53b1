"""What this host's puppet.conf says, as far as the proxy needs it.

Reads the usual places; interpolates ``$confdir``, ``$vardir``, ``$ssldir`` and the other settings it knows. It
does not ask Puppet (a Ruby start takes seconds).
"""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.errors import InspectorError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PORT = 8140


@dataclass(frozen=True, slots=True)
class _Place:
    """Where one way of packaging Puppet keeps its files."""

    confdir: str
    vardir: str
    ssldirs: tuple[str, ...]
    cadirs: tuple[str, ...]
    root: bool = True
    """For root (and the services); other users have places of their own."""


_PLACES = (
    # the official packages of Puppet 4 and later, and OpenVox
    _Place(
        "/etc/puppetlabs/puppet", "/opt/puppetlabs/puppet/cache", ("$confdir/ssl",),
        ("/etc/puppetlabs/puppetserver/ca", "$ssldir/ca"),
    ),
    # Debian's packages, and the official ones of Puppet 3
    _Place(
        "/etc/puppet", "/var/cache/puppet", ("/var/lib/puppet/ssl", "$confdir/ssl"),
        ("/etc/puppet/puppetserver/ca", "$ssldir/ca"),
    ),
    _Place("~/.puppetlabs/etc/puppet", "~/.puppetlabs/opt/puppet/cache", ("$confdir/ssl",), ("$ssldir/ca",), False),
    _Place("~/.puppet/etc", "~/.puppet/cache", ("$confdir/ssl",), ("$ssldir/ca",), False),
    _Place("~/.puppet", "~/.puppet/var", ("$confdir/ssl",), ("$ssldir/ca",), False),
)  # fmt: skip
_SECTIONS = ("agent", "main", "server", "master")
_SETTING = re.compile(r"^\s*([A-Za-z_]+)\s*=\s*(.*?)\s*$")
_SECTION = re.compile(r"^\s*\[(\w+)\]\s*$")
_REFERENCE = re.compile(r"\$\{(\w+)\}|\$(\w+)")


@dataclass(frozen=True, slots=True)
class PuppetConf:
    """The settings of one confdir."""

    path: Path | None
    """The puppet.conf that was read; None if there was none."""
    server: str
    port: int
    ssldir: Path
    certname: str
    server_list: tuple[tuple[str, int], ...] = ()
    """Names and ports; the agent takes the first that answers."""
    ca_server: str | None = None
    report_server: str | None = None
    ca_port: int | None = None
    report_port: int | None = None
    use_srv_records: bool = False
    daemonize: bool = True
    cadir: Path | None = None
    """Where a CA of this host keeps its key: as configured, else the first usual place that has one."""
    http_proxy: bool = False
    """The agent reaches its master through an HTTP proxy."""
    no_proxy: str = ""

    @property
    def ca(self) -> Path:
        return self.ssldir / "certs" / "ca.pem"

    @property
    def crl(self) -> Path:
        return self.ssldir / "crl.pem"

    @property
    def certificate(self) -> Path:
        return self.ssldir / "certs" / f"{self.certname}.pem"

    @property
    def key(self) -> Path:
        return self.ssldir / "private_keys" / f"{self.certname}.pem"


_VALUED = frozenset({
    "confdir", "vardir", "ssldir", "config", "certname", "server", "serverport", "server_list",
    "ca_server", "ca_port", "report_server", "report_port", "http_proxy_host", "no_proxy",
})  # fmt: skip
_FLAGS = frozenset({"use_srv_records", "daemonize"})


def settings_of(command: Sequence[str]) -> dict[str, str]:
    """The settings among an agent's options (``--server X``, ``--server=X``); the last of each counts."""
    settings: dict[str, str] = {}
    words = iter(command)
    for word in words:
        if not word.startswith("--"):
            continue
        name, equals, value = word[2:].partition("=")
        name = {"fqdn": "certname", "masterport": "serverport"}.get(name, name)
        if name in _VALUED:
            settings[name] = value if equals else next(words, "")
        elif (flag := name.removeprefix("no-")) in _FLAGS:
            settings[flag] = "false" if name.startswith("no-") else "true"
    return settings


def split_address(text: str, port: int = PORT) -> tuple[str, int]:
    """``HOST``, ``HOST:PORT`` or ``[IPV6]:PORT`` as a pair. Raises InspectorError."""
    text = text.strip()
    host, colon, tail = text.rpartition(":")
    if text.startswith("[") and text.endswith("]"):
        host, colon, tail = text[1:-1], "", ""
    elif text.count(":") > 1 and not text.startswith("["):
        host, colon, tail = text, "", ""
    elif not colon:
        host, tail = text, ""
    host = host.strip("[]")
    if not host or (colon and not (tail.isdigit() and 0 < int(tail) < 65536)):
        raise InspectorError(f"{text!r} is no address.", "Write HOST or HOST:PORT.")
    return host, int(tail) if colon else port


def read(
    ssldir: str | Path | None = None,
    confdir: str | Path | None = None,
    given: Mapping[str, str] | None = None,
) -> PuppetConf:
    """This host's settings. Raises InspectorError.

    ``ssldir`` overrides the one that is found, ``confdir`` the usual places. ``given`` are settings from a
    command line, which win over the file's: also ``confdir``, ``vardir`` and ``config`` (the file itself).
    """
    given = dict(given or {})
    confdir = confdir or given.get("confdir")
    place, conf = _place(Path(confdir).expanduser() if confdir else None)
    file = Path(given["config"]).expanduser() if given.get("config") else conf / "puppet.conf"
    values = _Values(given, _parse(file) if _is_file(file) else {}, {"confdir": str(conf), "vardir": place.vardir})
    configured = str(ssldir) if ssldir else values.get("ssldir")
    chosen = Path(configured).expanduser() if configured else _default_ssldir(values, place)
    values.defaults["ssldir"] = str(chosen)
    port = _port(values.get("serverport", "masterport"), file) or PORT
    listed = (address for address in (values.get("server_list") or "").split(",") if address.strip())
    servers = tuple(split_address(address, port) for address in listed)
    server, port = servers[0] if servers else (values.get("server") or "puppet", port)
    proxy = (values.get("http_proxy_host") or "none").lower()
    return PuppetConf(
        path=file if _is_file(file) else None,
        server=server,
        port=port,
        ssldir=chosen,
        certname=given.get("certname") or _certname(chosen, values.get("certname")),
        server_list=servers,
        ca_server=values.get("ca_server"),
        report_server=values.get("report_server"),
        ca_port=_port(values.get("ca_port"), file, "ca_port"),
        report_port=_port(values.get("report_port"), file, "report_port"),
        use_srv_records=(values.get("use_srv_records") or "").lower() == "true",
        daemonize=(values.get("daemonize") or "").lower() != "false",
        cadir=_cadir(values, place),
        http_proxy=proxy != "none",
        no_proxy=values.get("no_proxy") or "",
    )


@dataclass(slots=True)
class _Values:
    """Settings by name: from the command line, else the file, else Puppet's defaults."""

    given: Mapping[str, str]
    sections: Mapping[str, Mapping[str, str]]
    defaults: dict[str, str]

    def get(self, *names: str) -> str | None:
        """The first of these names that is set, interpolated; None if none is. Defaults do not count."""
        for source in (self.given, *(self.sections.get(section, {}) for section in _SECTIONS)):
            for name in names:
                if source.get(name):
                    return self.expand(source[name], name)
        return None

    def expand(self, text: str, *within: str) -> str:
        """``text`` with its references filled in; what is not known, or refers to itself, stays as it is."""

        def fill(found: re.Match[str]) -> str:
            name = found[1] or found[2]
            if name in within:
                return found[0]
            raw = next((s[name] for s in (self.given, *self.sections.values()) if s.get(name)), None)
            raw = raw or self.defaults.get(name)
            return self.expand(raw, name, *within) if raw else found[0]

        return _REFERENCE.sub(fill, text)


def _place(confdir: Path | None) -> tuple[_Place, Path]:
    """The way in which this host's Puppet is packaged, and its confdir."""
    ours, others = [p for p in _PLACES if p.root], [p for p in _PLACES if not p.root]
    places = [*ours, *others] if os.geteuid() == 0 else [*others, *ours]
    expanded = [(place, Path(place.confdir).expanduser()) for place in places]
    if confdir is not None:
        known = next((place for place, conf in expanded if conf == confdir), None)
        return known or next((p for p, conf in expanded if p.root and conf.is_dir()), places[0]), confdir
    with_file = next((candidate for candidate in expanded if _is_file(candidate[1] / "puppet.conf")), None)
    return with_file or next((candidate for candidate in expanded if candidate[1].is_dir()), expanded[0])


def _default_ssldir(values: _Values, place: _Place) -> Path:
    """Where Puppet keeps its certificates unless told otherwise; the first that holds a key, else that exists."""
    candidates = [Path(values.expand(directory)).expanduser() for directory in place.ssldirs]
    if values.defaults["confdir"] != str(Path(place.confdir).expanduser()):
        candidates.reverse()  # a confdir of one's own: what lies in it comes first
    with_key = next((directory for directory in candidates if _keys(directory)), None)
    return with_key or next((directory for directory in candidates if directory.is_dir()), candidates[0])


def _cadir(values: _Values, place: _Place) -> Path | None:
    if configured := values.get("cadir"):
        return Path(configured).expanduser()
    candidates = [Path(values.expand(directory)).expanduser() for directory in place.cadirs]
    return next((directory for directory in candidates if _is_file(directory / "ca_key.pem")), None)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a directory that we may not enter
        return False


def _keys(ssldir: Path) -> Sequence[Path]:
    return sorted(ssldir.glob("private_keys/*.pem"))


def _port(text: str | None, file: Path, name: str = "serverport") -> int | None:
    if text is None:
        return None
    if not (text.isdigit() and 0 < int(text) < 65536):
        raise InspectorError(f"{file} gives the port {text!r}, which is none.", f"Correct {name}.")
    return int(text)


def _certname(ssldir: Path, configured: str | None) -> str:
    """As configured if the ssldir knows that name, else whose key it holds; Puppet's default is the host's name."""
    names = [key.stem for key in _keys(ssldir)]
    if configured and (len(names) != 1 or configured in names):
        return configured
    if len(names) == 1:
        return names[0]
    own = [socket.getfqdn().lower(), _own_name()]
    return configured or next((name for name in own if name in names), own[1])


def _own_name() -> str:
    """This host's name with its domain, as Facter finds it."""
    name = socket.gethostname().lower().rstrip(".")
    if "." in name:
        return name
    try:
        canonical = socket.getaddrinfo(name, None, flags=socket.AI_CANONNAME)[0][3].lower()
    except (OSError, UnicodeError):
        canonical = ""
    if canonical.startswith(f"{name}."):
        return canonical
    try:
        text = Path("/etc/resolv.conf").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return name
    domain = re.search(r"^(?:domain|search)[ \t]+(\S+)", text, re.MULTILINE)
    return f"{name}.{domain[1].lower().rstrip('.')}" if domain and domain[1].strip(".") else name


def _parse(file: Path) -> dict[str, dict[str, str]]:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise InspectorError(f"{file} can't be read: {error.strerror}.", "Run as a user who may.") from error
    values: dict[str, dict[str, str]] = {}
    section = "main"
    for line in lines:
        if found := _SECTION.match(line):
            section = found.group(1)
        elif (found := _SETTING.match(line)) and not line.lstrip().startswith("#"):
            value = re.sub(r"\s+#.*$", "", found.group(2)).strip("\"'")
            values.setdefault(section, {})[found.group(1)] = value
    return values
