"""Read the settings that the proxy needs from this host's puppet.conf.

Searches the standard locations, and interpolates ``$confdir``, ``$vardir``, ``$ssldir`` and other settings. Puppet
itself is not called: Ruby takes seconds to start.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from inspector import inputs, regex
from inspector.errors import InspectorError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PORT = 8140


@dataclass(frozen=True, slots=True)
class _Place:
    """The locations of Puppet's files in one kind of package."""

    confdir: str
    vardir: str
    ssldirs: tuple[str, ...]
    cadirs: tuple[str, ...]
    root: bool = True
    """Whether root and the services use this location; other users have their own."""


_PLACES = (
    # official packages of Puppet 4 and later, and of OpenVox
    _Place(
        "/etc/puppetlabs/puppet", "/opt/puppetlabs/puppet/cache", ("$confdir/ssl",),
        ("/etc/puppetlabs/puppetserver/ca", "$ssldir/ca"),
    ),
    # Debian's packages, and official packages of Puppet 3
    _Place(
        "/etc/puppet", "/var/cache/puppet", ("/var/lib/puppet/ssl", "$confdir/ssl"),
        ("/etc/puppet/puppetserver/ca", "$ssldir/ca"),
    ),
    _Place(
        "~/.puppetlabs/etc/puppet", "~/.puppetlabs/opt/puppet/cache", ("$confdir/ssl",), ("$ssldir/ca",), root=False,
    ),
    _Place("~/.puppet/etc", "~/.puppet/cache", ("$confdir/ssl",), ("$ssldir/ca",), root=False),
    _Place("~/.puppet", "~/.puppet/var", ("$confdir/ssl",), ("$ssldir/ca",), root=False),
)  # fmt: skip
OF_AGENT = ("agent", "main", "server", "master")
"""The sections of puppet.conf where an agent's settings stand, the first comes first. What only a server reads tells an
agent's host where its CA is."""
OF_SERVER = ("server", "master", "main")
"""The sections with a server's settings."""
_SETTING = regex.compile(r"^\s*([A-Za-z_]+)\s*=\s*(.*?)\s*$")
_SECTION = regex.compile(r"^\s*\[(\w+)\]\s*$")
_REFERENCE = regex.compile(r"\$\{(\w+)\}|\$(\w+)")


@dataclass(frozen=True, slots=True)
class PuppetConf:
    """The settings of one confdir."""

    path: Path | None
    """The puppet.conf; None if there is none."""
    server: str
    port: int
    ssldir: Path
    certname: str
    server_list: tuple[tuple[str, int], ...] = ()
    """Names and ports; the agent uses the first that answers."""
    ca_server: str | None = None
    report_server: str | None = None
    ca_port: int | None = None
    report_port: int | None = None
    use_srv_records: bool = False
    daemonize: bool = True
    cadir: Path | None = None
    """The directory of this host's CA: as configured, else the first standard location with a CA key."""
    http_proxy: tuple[str, int] | None = None
    """The HTTP proxy through which the agent reaches its master; None if there is none."""
    http_proxy_credentials: str = ""
    """``user:password`` for it."""
    no_proxy: str = "localhost, 127.0.0.1"
    localcacert: Path | None = None
    """The CA bundle, if it is not where it usually is."""
    hostcrl: Path | None = None
    """The CRLs, if they are not where they usually are."""
    revocation: Literal["chain", "leaf", "false"] = "chain"
    """``certificate_revocation``: what the agent looks up in its CRLs."""
    connect_timeout: float = 120.0
    """``http_connect_timeout``, in seconds; 0: for ever."""
    read_timeout: float = 600.0
    """``http_read_timeout``, in seconds; 0: for ever."""
    ca_fingerprint: str = ""
    """The digest that the CA bundle must have which the agent downloads first."""
    statedir: Path = Path()
    """Where the agent stores its latest report, and what it did."""

    @property
    def ca(self) -> Path:
        return self.localcacert or self.ssldir / "certs" / "ca.pem"

    @property
    def crl(self) -> Path:
        return self.hostcrl or self.ssldir / "crl.pem"

    @property
    def servers(self) -> tuple[tuple[str, int], ...]:
        """Every server that the settings name, with its port."""
        named = self.server_list or ((self.server, self.port),)
        others = (self.ca_server, self.ca_port), (self.report_server, self.report_port)
        return tuple(dict.fromkeys((
            *named, *((name or named[0][0], port or self.port) for name, port in others if name or port),
        )))  # fmt: skip

    @property
    def authority(self) -> tuple[str, int]:
        """The CA's server and its port: by default the first master's."""
        server, port = self.servers[0]
        return self.ca_server or server, self.ca_port or port

    @property
    def certificate(self) -> Path:
        return self.ssldir / "certs" / f"{self.certname}.pem"

    @property
    def key(self) -> Path:
        return self.ssldir / "private_keys" / f"{self.certname}.pem"


_VALUED = frozenset({
    "confdir", "vardir", "ssldir", "config", "certname", "server", "serverport", "server_list",
    "ca_server", "ca_port", "report_server", "report_port", "http_proxy_host", "http_proxy_port", "http_proxy_user",
    "http_proxy_password", "no_proxy", "localcacert", "hostcrl", "certificate_revocation", "http_connect_timeout",
    "http_read_timeout", "ca_fingerprint",
})  # fmt: skip
_LONGEST = 10_000
"""Characters of a value with its references."""
_FLAGS = frozenset({"use_srv_records", "daemonize"})


def settings_of(command: Sequence[str]) -> dict[str, str]:
    """Return the settings in an agent's options (``--server X``, ``--server=X``); the last value counts."""
    settings: dict[str, str] = {}
    options = iter(command)
    for option in options:
        if not option.startswith("--"):
            continue
        name, equals, value = option[2:].partition("=")
        name = {"fqdn": "certname", "masterport": "serverport"}.get(name, name)
        if name in _VALUED:
            settings[name] = value if equals else next(options, "")
        elif (flag := name.removeprefix("no-")) in _FLAGS:
            settings[flag] = "false" if name.startswith("no-") else "true"
    return settings


def split_address(text: str, port: int = PORT) -> tuple[str, int]:
    """Split ``HOST``, ``HOST:PORT`` or ``[IPV6]:PORT`` into host and port. Raises InspectorError."""
    text = text.strip()
    host, colon, tail = text.rpartition(":")
    if text.startswith("[") and text.endswith("]"):
        host, colon, tail = text[1:-1], "", ""
    elif text.count(":") > 1 and not text.startswith("["):
        host, colon, tail = text, "", ""
    elif not colon:
        host, tail = text, ""
    host = host.strip("[]")
    if not host or (colon and not _is_port(tail)):
        raise InspectorError(f"{text!r} is not an address.", "Use HOST or HOST:PORT.")
    return host, int(tail) if colon else port


def read(
    ssldir: str | Path | None = None,
    confdir: str | Path | None = None,
    options: Mapping[str, str] | None = None,
    sections: Sequence[str] = OF_AGENT,
) -> PuppetConf:
    """Read this host's settings. Raises InspectorError.

    ``ssldir`` overrides the configured one, ``confdir`` the standard locations. ``options`` are settings of a command
    line, which override those of the file: also ``confdir``, ``vardir`` and ``config`` (the file itself).
    ``sections`` of the file are read.
    """
    options = dict(options or {})
    confdir = confdir or options.get("confdir")
    place, conf = _place(inputs.expanded(confdir) if confdir else None)
    file = inputs.expanded(options["config"]) if options.get("config") else conf / "puppet.conf"
    values = _Values(
        options, sections_of(file) if _is_file(file) else {}, {"confdir": str(conf), "vardir": place.vardir}, sections
    )
    configured = str(ssldir) if ssldir else values.get("ssldir")
    chosen = inputs.expanded(configured) if configured else _default_ssldir(values, place)
    values.defaults["ssldir"] = str(chosen)
    port = _port(values.get("serverport", "masterport"), file) or PORT
    addresses = (address for address in (values.get("server_list") or "").split(",") if address.strip())
    servers = tuple(split_address(address, port) for address in addresses)
    server, port = servers[0] if servers else (values.get("server") or "puppet", port)
    proxy = values.get("http_proxy_host") or "none"
    bundle, crls = values.get("localcacert"), values.get("hostcrl")
    return PuppetConf(
        path=file if _is_file(file) else None,
        server=server,
        port=port,
        ssldir=chosen,
        certname=options.get("certname") or _certname(chosen, values.get("certname")),
        server_list=servers,
        ca_server=values.get("ca_server"),
        report_server=values.get("report_server"),
        ca_port=_port(values.get("ca_port"), file, "ca_port"),
        report_port=_port(values.get("report_port"), file, "report_port"),
        use_srv_records=(values.get("use_srv_records") or "").lower() == "true",
        daemonize=(values.get("daemonize") or "").lower() != "false",
        cadir=_cadir(values, place),
        http_proxy=None if proxy.lower() == "none" else (proxy, _port(values.get("http_proxy_port"), file) or 3128),
        http_proxy_credentials=_credentials(values),
        no_proxy=values.get("no_proxy") or "localhost, 127.0.0.1",
        localcacert=inputs.expanded(bundle) if bundle else None,
        hostcrl=inputs.expanded(crls) if crls else None,
        revocation=_revocation(values.get("certificate_revocation")),
        connect_timeout=_seconds(values.get("http_connect_timeout"), 120.0),
        read_timeout=_seconds(values.get("http_read_timeout"), 600.0),
        ca_fingerprint=values.get("ca_fingerprint") or "",
        statedir=inputs.expanded(values.get("statedir") or values.expand("$vardir/state")),
    )


@dataclass(slots=True)
class _Values:
    """The value of a setting: from the command line, else from the file, else Puppet's default."""

    options: Mapping[str, str]
    sections: Mapping[str, Mapping[str, str]]
    defaults: dict[str, str]
    order: Sequence[str]

    def get(self, *names: str) -> str | None:
        """Return the interpolated value of the first of these settings that has one, without defaults."""
        for source in (self.options, *(self.sections.get(section, {}) for section in self.order)):
            for name in names:
                if source.get(name):
                    return self.expand(source[name], name)
        return None

    def expand(self, text: str, *within: str) -> str:
        """Replace the references in a text; unknown ones, and those that refer to themselves, stay."""

        def fill(reference: regex.Match[str]) -> str:
            name = reference[1] or reference[2]
            if name in within:
                return reference[0]
            raw = next((s[name] for s in (self.options, *self.sections.values()) if s.get(name)), None)
            raw = raw or self.defaults.get(name)
            return self.expand(raw, name, *within) if raw else reference[0]

        filled = _REFERENCE.sub(fill, text)
        if len(filled) > _LONGEST:  # references to references can double it each time
            raise InspectorError(f"The setting {within[0] if within else text} is too long.", "Correct puppet.conf.")
        return filled


def _place(confdir: Path | None) -> tuple[_Place, Path]:
    """Return the locations of this host's Puppet, and its confdir."""
    ours, others = [p for p in _PLACES if p.root], [p for p in _PLACES if not p.root]
    places = [*ours, *others] if os.geteuid() == 0 else [*others, *ours]
    expanded = [(place, Path(place.confdir).expanduser()) for place in places]
    if confdir is not None:
        known = next((place for place, conf in expanded if conf == confdir), None)
        return known or next((p for p, conf in expanded if p.root and _is_dir(conf)), places[0]), confdir
    with_file = next((candidate for candidate in expanded if _is_file(candidate[1] / "puppet.conf")), None)
    return with_file or next((candidate for candidate in expanded if _is_dir(candidate[1])), expanded[0])


def _default_ssldir(values: _Values, place: _Place) -> Path:
    """Return the default ssldir: the first candidate with a private key, else the first that exists."""
    candidates = [inputs.expanded(values.expand(directory)) for directory in place.ssldirs]
    if values.defaults["confdir"] != str(Path(place.confdir).expanduser()):
        candidates.reverse()  # a non-standard confdir: an ssldir inside it comes first
    with_key = next((directory for directory in candidates if _keys(directory)), None)
    return with_key or next((directory for directory in candidates if _is_dir(directory)), candidates[0])


def _cadir(values: _Values, place: _Place) -> Path | None:
    if configured := values.get("cadir"):
        return inputs.expanded(configured)
    candidates = [inputs.expanded(values.expand(directory)) for directory in place.cadirs]
    return next((directory for directory in candidates if _is_file(directory / "ca_key.pem")), None)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a directory that this user may not enter
        return False


def _is_dir(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # it is in a directory that this user may not enter
        return False


def _keys(ssldir: Path) -> Sequence[Path]:
    return sorted(ssldir.glob("private_keys/*.pem"))


def _port(text: str | None, file: Path, name: str = "serverport") -> int | None:
    if text is None:
        return None
    if not _is_port(text):
        raise InspectorError(f"{file} sets the port {text!r}, which is not a port number.", f"Correct {name}.")
    return int(text)


def _credentials(values: _Values) -> str:
    user, second = (values.get(f"http_proxy_{name}") or "none" for name in ("user", "password"))
    return "" if user == "none" else f"{user}:{'' if second == 'none' else second}"


def _revocation(text: str | None) -> Literal["chain", "leaf", "false"]:
    match (text or "chain").lower():
        case "leaf":
            return "leaf"
        case "false":
            return "false"
    return "chain"


def _seconds(text: str | None, default: float) -> float:
    """Return a duration in seconds: a number with one of Puppet's units, or without; the default for another text."""
    units = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "y": 31_536_000}
    found = regex.fullmatch(r"([0-9]{1,9})([smhdy]?)", (text or "").strip())
    return float(int(found[1]) * units[found[2]]) if found else default


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 6 and 0 < int(text) < 65536


def _certname(ssldir: Path, configured: str | None) -> str:
    """Return the configured certname if the ssldir has a key for it, else the one of the only key.

    Without either it is Puppet's default, the host's name.
    """
    names = [key.stem for key in _keys(ssldir)]
    if configured and (len(names) != 1 or configured in names):
        return configured
    if len(names) == 1:
        return names[0]
    own = [socket.getfqdn().lower(), _own_name()]
    return configured or next((name for name in own if name in names), own[1])


def _own_name() -> str:
    """Return this host's name with its domain, as Facter determines it."""
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
    domain = regex.search(r"^(?:domain|search)[ \t]+(\S+)", text, regex.MULTILINE)
    return f"{name}.{domain[1].lower().rstrip('.')}" if domain and domain[1].strip(".") else name


def sections_of(file: Path) -> dict[str, dict[str, str]]:
    """Return the settings of a puppet.conf by section. Raises InspectorError."""
    try:
        lines = inputs.read(file, inputs.SMALL).decode("utf-8", "replace").splitlines()
    except OSError as error:
        raise InspectorError(f"{file} cannot be read: {error.strerror}.", "Run as a user who may read it.") from error
    if any("\0" in line for line in lines):
        raise InspectorError(f"{file} is not a text file: it contains a NUL.", "Correct it, or name another confdir.")
    values: dict[str, dict[str, str]] = {}
    section = "main"
    for line in lines:
        if heading := _SECTION.match(line):
            section = heading[1]
        elif (setting := _SETTING.match(line)) and not line.lstrip().startswith("#"):
            value = regex.sub(r"\s+#.*$", "", setting[2]).strip("\"'")
            values.setdefault(section, {})[setting[1]] = value
    return values
