"""The addon's options, and what they come to: every value that is not given comes from puppet.conf.

``settle`` checks everything that can be checked before the first agent comes, so that a mistake is one
sentence at start and not a broken run later.
"""

from __future__ import annotations

import contextlib
import datetime
import difflib
import fnmatch
import ipaddress
import re
import socket
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from inspector import __version__
from inspector.analysis import ruleset
from inspector.capture import paths, rotation
from inspector.capture.rotation import Rotation
from inspector.capture.spool import KEEP
from inspector.errors import InspectorError
from inspector.host import puppetconf
from inspector.host.puppetconf import split_address
from inspector.protocol import x509
from inspector.proxy import identity, tls

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

OPTIONS: tuple[tuple[str, str], ...] = (
    (
        "puppet_master",
        (
            "The master, HOST[:PORT]; several with commas: an agent is led to the one that it asks for by name (SNI), "
            "or else to the first. Default: server and serverport (or server_list) of puppet.conf."
        ),
    ),
    (
        "puppet_master_name",
        "The name that the master's certificate must carry, and the only SNI ever sent. Default: puppet_master's host.",
    ),
    (
        "puppet_listen",
        "Where agents come in, HOST[:PORT]. Default: 127.0.0.1:8140, or the next free port if that is taken.",
    ),
    (
        "puppet_ssldir",
        "The ssldir whose CA, CRL, certificate and key are used. Default: this host's own, from puppet.conf.",
    ),
    (
        "puppet_cert",
        (
            "What agents are shown for the master's certificate: a PEM file with key, certificate and chain. "
            "Default: this host's own certificate and key."
        ),
    ),
    ("puppet_ca", "The CA bundle (PEM) that agents and master are verified with. Default: the ssldir's certs/ca.pem."),
    ("puppet_crl", "The CRLs (PEM) that agents and master are checked against. Default: the ssldir's crl.pem."),
    (
        "puppet_identity",
        (
            "As whom to speak to the master for a verified agent: keys:DIR (an ssldir, or a directory of "
            "<certname>.pem), headers (for a master with allow-header-cert-info), mint:CADIR (a lab's CA directory) "
            "or none. Default: keys:<ssldir>."
        ),
    ),
    (
        "puppet_capture",
        "The file to record in, or a directory for a new one. Default: captures/<UTC time>.sqlite.",
    ),
    (
        "puppet_only",
        (
            "Certnames to record, with * and ?, several with commas. The others' requests go through, and nothing of "
            "them is kept. Default: all agents."
        ),
    ),
    (
        "puppet_keep_body",
        "Bytes of one body that are recorded; of a larger one the first 64 KiB, size and digest are. Default: 64M.",
    ),
    ("puppet_redact", "`write`: take secrets out before they are recorded. Default: record what was seen."),
    *rotation.OPTIONS,
    (
        "puppet_rules",
        "A YAML file with severities, thresholds and what to ignore, as for `puppet-inspector check --rules`.",
    ),
    (
        "puppet_probe_verification",
        (
            "The certname of one agent to show, once, a certificate that it must not trust, to see whether it goes "
            "on: one request or run of it will fail. Default: no agent."
        ),
    ),
)
"""Name and help of each; all are strings, empty means the default."""

FLAGS: tuple[tuple[str, str], ...] = (
    ("puppet_lean", "Take those of mitmproxy's own addons out of mitmdump that a Puppet proxy does without."),
    ("puppet_unsafe_keys", "Use private keys also if others on this host can read them."),
)
"""Name and help of each; all are off by default."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything the proxy needs, checked."""

    conf: puppetconf.PuppetConf
    masters: tuple[tuple[str, int], ...]
    master_name: str
    """What the certificate of the only master must carry; of several, each its own host."""
    listen: tuple[str, int]
    material: tls.Material
    shown: tls.Shown
    shown_path: Path
    source: identity.Source
    identity_text: str
    capture: Path
    rules: Path | None
    """The file that says which rules to ask; None: all of them."""
    probe: str = ""
    """The certname of the agent whose verification is probed; empty: nobody's."""
    only: re.Pattern[str] | None = None
    """The certnames that are recorded; None: all."""
    keep_body: int = KEEP
    """Bytes of one body that are recorded."""
    redact: bool = False
    """Take secrets out before they are recorded."""
    rotation: Rotation = field(default_factory=Rotation)
    lean: bool = False
    any_port: bool = False
    """The next free port will do."""
    warnings: tuple[str, ...] = field(default=())

    @property
    def master(self) -> tuple[str, int]:
        return self.masters[0]

    @property
    def master_address(self) -> str:
        return address(*self.master)

    def toward(self, sni: str | None) -> tuple[tuple[str, int], str]:
        """To which master somebody is led that asks for this name, and the name that its certificate must carry."""
        if len(self.masters) == 1:
            return self.master, self.master_name
        found = next((each for each in self.masters if each[0].lower() == (sni or "").lower()), self.master)
        return found, found[0]

    @property
    def listen_address(self) -> str:
        return address(*self.listen)

    @property
    def shown_name(self) -> str:
        """The name under which agents reach the proxy."""
        leaf = x509.certificate(self.shown.credentials.chain[0])
        return leaf.common_name or leaf.subject


def given(**chosen: Any) -> SimpleNamespace:
    """The options with what was chosen, and defaults for the others."""
    return SimpleNamespace(**{**dict.fromkeys(dict(OPTIONS), ""), **dict.fromkeys(dict(FLAGS), False), **chosen})


def chosen(words: Iterable[str]) -> dict[str, Any]:
    """The options of ``NAME=VALUE`` words, as mitmdump would read them. Raises InspectorError."""
    found: dict[str, Any] = {}
    flags = dict(FLAGS)
    for word in words:
        name, separator, value = word.partition("=")
        if name not in flags and name not in dict(OPTIONS):
            near = difflib.get_close_matches(name, [*dict(OPTIONS), *flags], 1)
            hint = f"Do you mean {near[0]}?" if near else "They are in the README, and begin with puppet_."
            raise InspectorError(f"There is no option {name!r}.", hint)
        if name in flags and value not in ("true", "false"):
            raise InspectorError(f"{name} is {value!r}.", "Write true or false.")
        if not separator:
            raise InspectorError(f"--set {word} sets nothing.", "Write --set OPTION=VALUE.")
        found[name] = value == "true" if name in flags else value
    return found


def declare(loader: Any) -> None:
    """Tell mitmproxy our options."""
    for name, text in OPTIONS:
        loader.add_option(name, str, "", text)
    for name, text in FLAGS:
        loader.add_option(name, bool, default=False, help=text)


def settle(given: Any, *, own_mode: bool, shared: bool = False) -> Settings:
    """The settings that the options come to. ``own_mode``: the user's --mode says where to listen; ``shared``: others
    listen there as well.

    Raises InspectorError.
    """
    conf = puppetconf.read(given.puppet_ssldir or None)
    masters = _masters(given, conf, own_mode=own_mode)
    name = given.puppet_master_name or masters[0][0]
    if given.puppet_master_name and len(masters) > 1:
        raise InspectorError("puppet_master_name is for one master.", "Of several, each must carry its own host name.")
    unsafe = bool(given.puppet_unsafe_keys)
    material = tls.Material(_path(given.puppet_ca) or conf.ca, _path(given.puppet_crl) or conf.crl)
    certificate = _path(given.puppet_cert) or conf.certificate
    key = _path(given.puppet_cert) or conf.key
    shown = tls.Shown(certificate, key, unsafe=unsafe)
    identity_text = given.puppet_identity or f"keys:{conf.ssldir}"
    listen = split_address(given.puppet_listen) if given.puppet_listen else ("127.0.0.1", puppetconf.PORT)
    port_given = bool(given.puppet_listen) and split_address(given.puppet_listen, 0)[1] != 0
    if not own_mode:
        listen = _free(listen, port_given=port_given, shared=shared)
    now = time.time()
    warnings = [f"{text} No agent's identity can be lent until that is repaired." for text in material.problems(now)]
    problems = x509.verify(
        shown.credentials.ders, [x509.certificate(each).der for each in material.authorities], [], now, "none"
    )
    rules = _path(given.puppet_rules)
    warnings += ruleset.load(rules, now).warnings
    warnings += [f"Agents will refuse the certificate that they are shown: {problem}." for problem in problems]
    serials = {entry.serial_number for crl in material.crls for entry in crl if crl.issuer == shown.issuer}
    if shown.credentials.chain[0].serial_number in serials:
        warnings.append(f"The certificate that agents are shown is revoked ({certificate}).")
    probe = _certname(given.puppet_probe_verification)
    if probe:
        warnings.append(
            f"one connection of {probe} will be shown a certificate that it must not trust: one request or run of it "
            "will fail"
        )
    return Settings(
        conf=conf,
        masters=masters,
        master_name=name,
        listen=listen,
        material=material,
        shown=shown,
        shown_path=certificate,
        source=identity.source_of(identity_text, unsafe=unsafe),
        identity_text=identity_text,
        capture=capture_path(given.puppet_capture),
        rules=rules,
        probe=probe,
        only=_only(given.puppet_only),
        keep_body=rotation.bytes_of("puppet_keep_body", given.puppet_keep_body, KEEP),
        redact=_redact(given.puppet_redact),
        rotation=rotation.of(
            given.puppet_rotate_size, given.puppet_rotate_age, given.puppet_keep, given.puppet_keep_free
        ),
        lean=bool(given.puppet_lean),
        any_port=not own_mode and not port_given,
        warnings=tuple(warnings),
    )


def _masters(given: Any, conf: puppetconf.PuppetConf, *, own_mode: bool) -> tuple[tuple[str, int], ...]:
    if given.puppet_master:
        return tuple(dict.fromkeys(split_address(each.strip()) for each in given.puppet_master.split(",")))
    return (_master(given, conf, own_mode=own_mode),)


def _master(given: Any, conf: puppetconf.PuppetConf, *, own_mode: bool) -> tuple[str, int]:
    if own_mode:
        for mode in given.mode:
            if mode.startswith("reverse:"):
                target = mode.removeprefix("reverse:").partition("@")[0].rpartition("//")[2].rstrip("/")
                return split_address(target)
    if conf.path is None:
        raise InspectorError(
            "There is no puppet.conf on this host, so the master is not known.",
            "Name it: --set puppet_master=HOST[:PORT] (and puppet_ssldir, or puppet_cert, puppet_ca, puppet_crl).",
        )
    return conf.server, conf.port


def _only(text: str) -> re.Pattern[str] | None:
    patterns = [fnmatch.translate(each.strip()) for each in text.split(",") if each.strip()]
    return re.compile("|".join(patterns), re.IGNORECASE) if patterns else None


def _redact(text: str) -> bool:
    if text not in ("", "write"):
        raise InspectorError(f"puppet_redact is {text!r}.", "Write puppet_redact=write, or leave it out.")
    return text == "write"


def _certname(text: str) -> str:
    if text and not re.fullmatch(r"[a-z0-9._-]+", text):
        raise InspectorError(
            f"puppet_probe_verification is {text!r}, which is no certname.",
            "Name one agent, as `puppet config print certname` does on it.",
        )
    return text


def _path(text: str) -> Path | None:
    return Path(text).expanduser() if text else None


def listen_again(settings: Settings) -> Settings:
    """The settings with a port that is free now: since they were made somebody else may have taken theirs. Raises
    InspectorError."""
    return replace(settings, listen=_free(settings.listen, port_given=not settings.any_port, shared=False))


def _free(listen: tuple[str, int], *, port_given: bool, shared: bool) -> tuple[str, int]:
    """The address to listen on: as given, or with the next free port if none was given."""
    host, first = listen
    for port in range(first, first + (1 if port_given else 100)):
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT if shared else socket.SO_REUSEADDR, 1)
                probe.bind((host, port))
                return host, port
        except OSError as error:
            reason = error.strerror or str(error)
    raise InspectorError(
        f"The proxy can't listen on {address(host, first)}: {reason}.",
        "Choose another address with puppet_listen=HOST:PORT.",
    )


def capture_path(text: str) -> Path:
    """Where to record: a file as given, or a new file in a directory (default ``captures``)."""
    path = Path(text).expanduser() if text else Path("captures")
    if text and not path.is_dir() and not text.endswith("/"):
        return path
    if not text and path.is_dir():
        # Our own directory: nobody else needs to see what agents and master say.
        with contextlib.suppress(OSError):
            path.chmod(0o700)
    return paths.fresh(path)


def address(host: str, port: int) -> str:
    """``HOST:PORT``, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def whole(each: tuple[str, int]) -> str:
    """An address as ``HOST:PORT``."""
    return address(*each)


def introduction(settings: Settings, addresses: Sequence[str]) -> list[str]:
    """What the proxy says when it starts: what it shows, what it lends, and how to send an agent through it."""
    leaf = x509.certificate(settings.shown.credentials.chain[0])
    until = datetime.datetime.fromtimestamp(leaf.not_after, datetime.UTC)
    lends = {
        "keys": "the agent's own certificate, to agents that were verified",
        "mint": "a certificate made for the agent, to agents that were verified",
        "headers": "headers with the agent's name, for agents that were verified",
        "none": "no identity to anybody",
    }[settings.source.mode]
    port = addresses[0].rpartition(":")[2] if addresses else str(settings.listen[1])
    masters = ", ".join(address(*each) for each in settings.masters)
    verified = "" if settings.master_name == settings.master[0] else f" (must be {settings.master_name})"
    lines = [
        f"puppet-inspector {__version__}",
        f"  master      {masters}{verified}",
        f"  shows       {settings.shown_path}: {leaf.subject}, {', '.join(leaf.alt_names)}; until {until:%Y-%m-%d}",
        f"  lends       {lends} ({settings.identity_text})",
        f"  listens on  {', '.join(addresses) or 'nothing'}",
        f"  records in  {settings.capture}",
        f"  try         puppet agent -t --server {settings.shown_name} --serverport {port}",
        "              (--masterport up to Puppet 6; the name must lead to the address above)",
    ]
    return lines + [f"-- {warning}" for warning in (*_exposed(addresses), *settings.warnings)]


def _exposed(addresses: Sequence[str]) -> list[str]:
    """What others than this host can reach, as a sentence."""
    reached = [each for each in addresses if not ipaddress.ip_address(split_address(each)[0]).is_loopback]
    told = (
        f"{', '.join(reached)} can be reached from the network: whoever does can ask the master what anybody may, and "
        "agents that were verified are lent their identity; let agents only reach it"
    )
    return [told] if reached else []
