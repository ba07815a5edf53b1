"""What this host's puppet.conf says, as far as the proxy needs it.

Reads the usual places; interpolates ``$confdir``, ``$vardir`` and ``$ssldir``. It does not ask Puppet (a
Ruby start takes seconds) and knows none of its other settings.
"""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass
from pathlib import Path

from inspector.errors import InspectorError

PORT = 8140

_PLACES = (
    # confdir, vardir, ssldirs (Debian's packages keep them apart)
    ("/etc/puppetlabs/puppet", "/opt/puppetlabs/puppet/cache", ("$confdir/ssl",)),
    ("/etc/puppet", "/var/lib/puppet", ("/var/lib/puppet/ssl", "$confdir/ssl")),
    ("~/.puppetlabs/etc/puppet", "~/.puppetlabs/opt/puppet/cache", ("$confdir/ssl",)),
)
_SECTIONS = ("agent", "main", "server", "master")
_SETTING = re.compile(r"^\s*([A-Za-z_]+)\s*=\s*(.*?)\s*$")
_SECTION = re.compile(r"^\s*\[(\w+)\]\s*$")


@dataclass(frozen=True, slots=True)
class PuppetConf:
    """The settings of one confdir."""

    path: Path | None
    """The puppet.conf that was read; None if there was none."""
    server: str
    port: int
    ssldir: Path
    certname: str
    server_list: tuple[str, ...] = ()
    ca_server: str | None = None
    report_server: str | None = None

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


def read(ssldir: str | Path | None = None, confdir: str | Path | None = None) -> PuppetConf:
    """This host's settings. ``ssldir`` overrides the one that is found, ``confdir`` the usual places."""
    places = _PLACES if confdir is None else ((str(confdir), "/var/lib/puppet", ("$confdir/ssl",)),)
    if os.geteuid() != 0 and confdir is None:
        places = (*places[2:], *places[:2])
    expanded = [(Path(c).expanduser(), Path(v).expanduser(), s) for c, v, s in places]
    conf, var, ssldirs = next((each for each in expanded if (each[0] / "puppet.conf").is_file()), expanded[0])
    file = conf / "puppet.conf"
    values = _parse(file) if file.is_file() else {}

    def setting(*names: str) -> str | None:
        for section in _SECTIONS:
            for name in names:
                if values.get(section, {}).get(name):
                    return values[section][name]
        return None

    def path_of(text: str) -> Path:
        text = re.sub(r"\$\{?confdir\}?", str(conf), text)
        text = re.sub(r"\$\{?vardir\}?", setting("vardir") or str(var), text)
        return Path(text).expanduser()

    candidates = [path_of(each) for each in ssldirs]
    default = next((each for each in candidates if each.is_dir()), candidates[0])
    configured = setting("ssldir")
    chosen = Path(ssldir).expanduser() if ssldir else path_of(configured) if configured else default
    servers = tuple(each.strip() for each in (setting("server_list") or "").split(",") if each.strip())
    port = _port(setting("serverport", "masterport"), file)
    server, port = split_address(servers[0], port) if servers else (setting("server") or "puppet", port)
    return PuppetConf(
        path=file if file.is_file() else None,
        server=server,
        port=port,
        ssldir=chosen,
        certname=_certname(chosen, setting("certname")),
        server_list=servers,
        ca_server=setting("ca_server"),
        report_server=setting("report_server"),
    )


def _port(text: str | None, file: Path) -> int:
    if text is None:
        return PORT
    if not (text.isdigit() and 0 < int(text) < 65536):
        raise InspectorError(f"{file} gives the port {text!r}, which is none.", "Correct serverport.")
    return int(text)


def _certname(ssldir: Path, configured: str | None) -> str:
    """As configured if the ssldir knows that name, else whose key it holds; Puppet's default is the host's name."""
    keys = sorted(ssldir.glob("private_keys/*.pem"))
    if configured and (len(keys) != 1 or (ssldir / "private_keys" / f"{configured}.pem") in keys):
        return configured
    return keys[0].stem if len(keys) == 1 else configured or socket.getfqdn().lower()


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
