"""The addon's options, and the settings made from them: values that are not given come from puppet.conf.

``resolve`` checks as much as possible before the first agent connects, so that a mistake is one sentence at the start
instead of a failed run later.
"""

from __future__ import annotations

import contextlib
import datetime
import difflib
import ipaddress
import os
import shlex
import shutil
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from inspector import __version__, inputs, regex
from inspector.capture import paths, rotation
from inspector.capture.places import STANDS
from inspector.capture.rotation import Rotation
from inspector.capture.spool import KEEP
from inspector.errors import InspectorError
from inspector.fleet import database
from inspector.fleet.directory import TableDirectory
from inspector.host import puppetconf
from inspector.host.puppetconf import split_address
from inspector.protocol import endpoints, x509
from inspector.proxy import identity, tls
from inspector.proxy.connect import site
from inspector.proxy.connect.plan import Plan
from inspector.proxy.connect.trust import NodeTrust
from inspector.proxy.faults import ALARM, fault
from inspector.proxy.identity import Nobody, UnprivilegedMint
from inspector.proxy.telemetry import settings as telemetry
from inspector.proxy.telemetry.settings import NOTHING, Telemetry
from inspector.summaries import rule_files, ruleset
from inspector.text import address, clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from inspector.proxy.faults.fault import Fault
    from inspector.proxy.masking_client import Redaction
    from inspector.proxy.tap.plan import TapPlan

    type Network = ipaddress.IPv4Network | ipaddress.IPv6Network

OPTIONS: tuple[tuple[str, str], ...] = (
    (
        "puppet_master",
        (
            "The master, HOST[:PORT]; several separated by commas: an agent is connected to the one that it names "
            "(SNI), or else to the first. Default: server and serverport (or server_list) of puppet.conf."
        ),
    ),
    (
        "puppet_master_name",
        "The name that the master's certificate must contain, also sent as SNI. Default: puppet_master's host.",
    ),
    (
        "puppet_connect",
        (
            "A directory. Agents use the proxy as their HTTP proxy, under the names of their masters, and find there "
            "what they need to trust for that."
        ),
    ),
    (
        "puppet_listen",
        (
            "Where to listen for agents, HOST[:PORT]. Default: 127.0.0.1, or another loopback address that the "
            "presented certificate's name has (127.0.1.1 on Debian), and port 8140, or the next free one."
        ),
    ),
    (
        "puppet_ssldir",
        "The ssldir with the CA, CRL, certificate and key to use. Default: this host's own, from puppet.conf.",
    ),
    (
        "puppet_cert",
        (
            "The certificate to present to agents: a PEM file with key, certificate and chain. "
            "Default: this host's own certificate and key."
        ),
    ),
    ("puppet_ca", "The CA bundle (PEM) to verify agents and master with. Default: the ssldir's certs/ca.pem."),
    ("puppet_crl", "The CRLs (PEM) to check agents and master against. Default: the ssldir's crl.pem."),
    (
        "puppet_identity",
        (
            "The identity to use towards the master on behalf of a verified agent: keys:DIR (an ssldir, or a directory "
            "of <certname>.pem), headers (for a master with allow-header-cert-info), mint:CADIR (a lab's CA directory) "
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
            "Certnames to record, with * and ?, several separated by commas. The requests of other agents pass "
            "unrecorded. Default: all agents."
        ),
    ),
    (
        "puppet_keep_body",
        "The largest body to record whole; of a larger one record the first 64 KiB, size and digest. Default: 64M.",
    ),
    (
        "puppet_redact",
        "`write`: record no secrets. `closed`: record only what is known to be harmless. Default: record everything.",
    ),
    (
        "puppet_proxy_protocol",
        (
            "Load balancers that say where a connection comes from (PROXY protocol, version 1 or 2): addresses or "
            "networks, several separated by commas. Only for `puppet-inspector proxy`. Default: none."
        ),
    ),
    (
        "puppet_metrics",
        (
            "Where to serve metrics for Prometheus, HOST[:PORT] (docs/viewers.md). There is no access control: use a "
            "loopback address. Default: nowhere."
        ),
    ),
    (
        "puppet_otlp",
        "A collector to send runs to as OpenTelemetry spans (docs/viewers.md): http://HOST:4318. Default: none.",
    ),
    (
        "puppet_tables",
        (
            "A directory for tables of what is recorded, written every hour (docs/tables.md); needs the extra `sql`. "
            "Default: none."
        ),
    ),
    *rotation.OPTIONS,
    (
        "puppet_rules",
        (
            "A YAML file with rules of the site's own, severities, thresholds and findings to ignore "
            "(docs/own-rules.md)."
        ),
    ),
    ("puppet_rules_dir", "A directory of Python files with rules of the site's own (docs/own-rules.md)."),
    (
        "puppet_probe_verification",
        (
            "The certname of one agent to test: it is presented once with a certificate that it must not trust, to see "
            "whether it continues. One request or run of it will fail. Default: no agent."
        ),
    ),
)
"""Name and help of each option with a value. All are strings; empty means the default."""

FLAGS: tuple[tuple[str, str], ...] = (
    ("puppet_unsafe_keys", "Use private keys even if other users on this host can read them."),
    (
        "puppet_wire",
        (
            "Record the TLS of both legs and the secrets of its sessions beside the capture, for Wireshark "
            "(docs/viewers.md): whoever has that file reads everything. Only for `puppet-inspector proxy`."
        ),
    ),
    ("puppet_metrics_certnames", "Count runs in the metrics by certname too: one series for each agent and outcome."),
)
"""Name and help of each option that is on or off. All are off by default."""

LISTS: tuple[tuple[str, str], ...] = (
    (
        "puppet_fault",
        (
            "A fault to inject on purpose, as in '503=10 agent:web1.example phase:catalog nth:1' (docs/faults.md); may "
            "be set several times. Default: none."
        ),
    ),
)
"""Name and help of each option that may be set several times. All are empty by default."""

FORMER = {"puppet_lean": "Leave it out: `puppet-inspector proxy` is what it was for."}
"""Options that were there before, and what to do instead."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything the proxy needs, checked."""

    conf: puppetconf.PuppetConf
    masters: tuple[tuple[str, int], ...]
    master_name: str
    """The name that the certificate of a single master must contain. Of several masters, each has its own host name."""
    listen: tuple[str, int]
    trust: tls.Trust
    presented: tls.PresentedCertificate | None
    """None in a run of this host's own agent (``plan``), which gets a certificate for each server."""
    presented_path: Path
    identity_source: identity.IdentitySource
    identity_text: str
    capture: Path
    rules: tuple[str, ...]
    """The options of commands that apply the same rules."""
    probe: str = ""
    """The certname of the agent whose verification is probed; empty: none."""
    only: regex.Pattern[str] | None = None
    """The certnames that are recorded; None: all."""
    keep_body: int = KEEP
    """The largest body that is recorded whole, in bytes."""
    redact: Redaction = ""
    """Whether secrets are removed before they are recorded."""
    balancers: tuple[Network, ...] = ()
    """Who says by the PROXY protocol where a connection comes from."""
    rotation: Rotation = field(default_factory=Rotation)
    faults: tuple[Fault, ...] = ()
    """The faults that are injected on purpose."""
    wire: bool = False
    """Whether the bytes of both legs are recorded, with what decrypts them."""
    telemetry: Telemetry = NOTHING
    """The metrics and spans for other systems."""
    tables: Path | None = None
    """Where tables are written; None: nowhere."""
    unreached: str = ""
    """The address of the presented certificate's name, where nobody listens: ``puppet_listen`` is not given, and it is
    not of loopback."""
    any_port: bool = False
    """Whether the next free port may be used instead."""
    connect: Path | None = None
    """Where agents that use the proxy as their HTTP proxy find what they need to trust; None: they do not use it so."""
    descriptors: tuple[int, ...] = ()
    """The sockets that listen, where whoever started the proxy has made them."""
    authority: tuple[str, int] | None = None
    """Where requests to the CA go, if that is not the master (``ca_server``, ``ca_port`` of puppet.conf)."""
    plan: Plan | None = None
    """The run of this host's agent that uses the proxy as its HTTP proxy; None: agents use it as their master."""
    warnings: tuple[str, ...] = field(default=())

    @property
    def stands_in(self) -> bool:
        """Whether the kernel hands the connections to this host's master to the proxy."""
        return bool(self.descriptors) and self.plan is None

    @property
    def interposes(self) -> bool:
        """Whether agents use the proxy as their HTTP proxy."""
        return self.plan is not None or self.connect is not None

    @property
    def master(self) -> tuple[str, int]:
        return self.masters[0]

    @property
    def master_address(self) -> str:
        return address(*self.master)

    def master_for(self, sni: str | None) -> tuple[tuple[str, int], str]:
        """Return the master for an agent that sends this SNI, and the name required in the master's certificate."""
        if len(self.masters) == 1:
            return self.master, self.master_name
        match = next((master for master in self.masters if master[0].lower() == (sni or "").lower()), self.master)
        return match, match[0]

    def authority_for(self, method: str, target: str) -> tuple[str, int] | None:
        """Return the server for a request to the CA, if it is not the master; None for all other requests."""
        if self.authority is None or self.interposes:  # then the agent itself says which server it wants
            return None
        found = endpoints.match(method, target)
        to_ca = target.startswith(endpoints.V3_PREFIXES["ca"]) or (found is not None and found.endpoint.area == "ca")
        return self.authority if to_ca else None

    def balanced(self, address: str) -> bool:
        """Whether a connection from this address begins with the PROXY protocol."""
        return bool(self.balancers) and any(_ip(address) in balancer for balancer in self.balancers)

    @property
    def listen_address(self) -> str:
        return address(*self.listen)

    @property
    def place(self) -> str:
        """Where the proxy stands, for whoever puts its capture beside those of others: its host, which has one clock,
        and where it listens there."""
        host = socket.gethostname()
        return host if self.descriptors else f"{self.listen_address}{STANDS}{host}"


def _name_in(presented: tls.PresentedCertificate) -> str:
    leaf = x509.certificate(presented.credentials.chain[0])
    return leaf.common_name or leaf.subject


def with_defaults(**values: Any) -> SimpleNamespace:
    """Return all options: these values, and defaults for the others."""
    texts, flags, lists = (dict.fromkeys(dict(kind)) for kind in (OPTIONS, FLAGS, LISTS))
    defaults = dict.fromkeys(texts, "") | dict.fromkeys(flags, False) | dict.fromkeys(lists, ())
    return SimpleNamespace(**defaults | values)


def check_name(name: str) -> None:
    """Raise InspectorError if there is no option of this name."""
    names = [*dict(OPTIONS), *dict(FLAGS), *dict(LISTS)]
    if name in names:
        return
    if name in FORMER:
        raise InspectorError(f"There is no option {name} any more.", FORMER[name])
    similar = difflib.get_close_matches(name, names, 1)
    hint = f"Do you mean {similar[0]}?" if similar else "The options begin with puppet_: docs/proxy.md lists them."
    raise InspectorError(f"There is no option {name!r}.", hint)


def parse_assignments(words: Iterable[str]) -> dict[str, Any]:
    """Parse ``NAME=VALUE`` words into options, as mitmdump does. Raises InspectorError."""
    values: dict[str, Any] = {}
    flags, lists = dict(FLAGS), dict(LISTS)
    for word in words:
        name, separator, value = word.partition("=")
        check_name(name)
        if name in flags and value not in ("true", "false"):
            raise InspectorError(f"{name} is {value!r}.", "Write true or false.")
        if not separator:
            raise InspectorError(f"--set {word} has no value.", "Write --set OPTION=VALUE.")
        if name in lists:
            values.setdefault(name, []).append(value)
        else:
            values[name] = value == "true" if name in flags else value
    return values


def declare(loader: Any) -> None:
    """Register the options with mitmproxy."""
    for name, text in OPTIONS:
        loader.add_option(name, str, "", text)
    for name, text in FLAGS:
        loader.add_option(name, bool, default=False, help=text)
    for name, text in LISTS:
        loader.add_option(name, Sequence[str], [], text)


_RULES = {"--rules": "puppet_rules", "--rules-dir": "puppet_rules_dir"}


def rules_options(values: Any) -> tuple[str, ...]:
    """Return the options of commands that apply the same rules as this proxy."""
    # The commands are there in a mitmproxy without the addon, too.
    named = ((option, getattr(values, name, "")) for option, name in _RULES.items())
    return tuple(part for option, value in named if value for part in (option, str(inputs.expanded(value))))


def of_rules(arguments: Sequence[str]) -> dict[str, str]:
    """Return the options of a proxy that applies the same rules as a command with these options."""
    return {_RULES[option]: value for option, value in zip(arguments[::2], arguments[1::2], strict=True)}


def _usable_rules(values: Any) -> tuple[str, ...]:
    """Return the options of commands that apply the same rules. Raises InspectorError if the file or the directory
    cannot be used; the analysis process executes the Python files, and reports what has no effect."""
    if directory := _path(values.puppet_rules_dir):
        rule_files.paths(directory)
    ruleset.load(_path(values.puppet_rules))
    return rules_options(values)


def resolve(values: Any, *, own_mode: bool, shared: bool = False) -> Settings:
    """Return the settings that result from the options.

    ``own_mode``: the user's --mode says where to listen. ``shared``: other processes listen on the same port.

    Raises InspectorError.
    """
    conf = puppetconf.read(values.puppet_ssldir or None)
    masters = _masters(values, conf, own_mode=own_mode)
    name = values.puppet_master_name or masters[0][0]
    if values.puppet_master_name and len(masters) > 1:
        raise InspectorError(
            "puppet_master_name is only possible with a single master.",
            "Of several masters, the certificate of each must contain its own host name.",
        )
    unsafe = bool(values.puppet_unsafe_keys)
    trust = tls.SiteTrust(_path(values.puppet_ca) or conf.ca, _path(values.puppet_crl) or conf.crl)
    certificate = _path(values.puppet_cert) or conf.certificate
    key = _path(values.puppet_cert) or conf.key
    connect = _path(values.puppet_connect)
    if connect and shared:
        raise InspectorError("puppet_connect is not possible with --workers.", "Each would have a CA of its own.")
    presented = None if connect else tls.PresentedCertificate(certificate, key, unsafe=unsafe)
    identity_text = values.puppet_identity or f"keys:{conf.ssldir}"
    unreached = ""
    if values.puppet_listen:
        listen = split_address(values.puppet_listen)
    elif own_mode or presented is None:
        listen = "127.0.0.1", puppetconf.PORT
    else:
        host, unreached = _own_host(_name_in(presented))
        listen = host, puppetconf.PORT
    port_given = bool(values.puppet_listen) and split_address(values.puppet_listen, 0)[1] != 0
    if not own_mode:
        listen = _free(listen, port_given=port_given, shared=shared)
    now = time.time()
    warnings = [f"{text} Until this is fixed, no identity is used towards the master." for text in trust.problems(now)]
    warnings += _about_presented(presented, trust, now) if presented else []
    probe = _certname(values.puppet_probe_verification)
    if probe:
        warnings.append(
            f"{probe} will be presented once with a certificate that it must not trust: "
            "one request or run of it will fail"
        )
    faults = _faults(values.puppet_fault, values.puppet_only)
    outside = telemetry.read(values.puppet_metrics, values.puppet_otlp, certnames=bool(values.puppet_metrics_certnames))
    capture = capture_path(values.puppet_capture)
    wire = _wire(values)
    if wire:
        warnings.append(
            f"puppet_wire records the TLS of all connections and the secrets of their sessions beside {capture}: "
            "whoever has that file reads everything, passwords too"
        )
    if (named := tls.key_log_path()) is not None:
        warnings.append(f"SSLKEYLOGFILE: the secrets of all TLS sessions are written to {named}")
    return Settings(
        conf=conf,
        masters=masters,
        master_name=name,
        authority=_authority(conf, masters),
        listen=listen,
        trust=trust,
        presented=presented,
        presented_path=certificate,
        identity_source=identity.source_of(identity_text, unsafe=unsafe),
        identity_text=identity_text,
        capture=capture,
        rules=_usable_rules(values),
        probe=probe,
        only=_only(values.puppet_only),
        keep_body=rotation.bytes_of("puppet_keep_body", values.puppet_keep_body, KEEP),
        redact=_redact(values.puppet_redact),
        balancers=_balancers(values.puppet_proxy_protocol),
        faults=faults,
        rotation=rotation.of(
            values.puppet_rotate_size,
            values.puppet_rotate_age,
            values.puppet_keep,
            values.puppet_keep_free,
        ),
        wire=wire,
        connect=connect and connect.absolute(),
        telemetry=outside,
        tables=_tables(values.puppet_tables),
        unreached=unreached,
        any_port=not own_mode and not port_given,
        warnings=(*warnings, *outside.warnings()),
    )


def _about_presented(presented: tls.PresentedCertificate, trust: tls.SiteTrust, now: float) -> list[str]:
    """Return why agents will refuse the presented certificate."""
    authorities = [x509.certificate(authority).der for authority in trust.authorities]
    problems = x509.verify(presented.credentials.ders, authorities, [], now, "none")
    warnings = [f"Agents will refuse the presented certificate: {problem}." for problem in problems]
    serials = {entry.serial_number for crl in trust.crls for entry in crl if crl.issuer == presented.issuer}
    if presented.credentials.chain[0].serial_number in serials:
        warnings.append(f"The presented certificate is revoked ({presented.path}).")
    return warnings


def of_plan(values: Any, plan: Plan | TapPlan) -> Settings:
    """Return the settings of a proxy that `run` or `tap` starts. Raises InspectorError."""
    return of_run(values, plan) if isinstance(plan, Plan) else of_tap(values, plan)


def of_run(values: Any, plan: Plan) -> Settings:
    """Return the settings for a run of this host's own agent. Raises InspectorError."""
    ssldir = Path(plan.ssldir)
    return Settings(
        conf=puppetconf.read(ssldir),
        masters=tuple(plan.servers),
        master_name=plan.servers[0][0],
        listen=_listens(plan.descriptors),
        descriptors=tuple(plan.descriptors),
        trust=NodeTrust(Path(plan.ca), Path(plan.crl), plan.revocation),
        presented=None,
        presented_path=ssldir,
        identity_source=identity.NodeKey(ssldir, plan.certname),
        identity_text="the node's own",
        capture=capture_path(values.puppet_capture),
        rules=_usable_rules(values),
        faults=_faults(values.puppet_fault, ""),
        plan=plan,
    )


def of_tap(values: Any, plan: TapPlan) -> Settings:
    """Return the settings in the place of this host's master. Raises InspectorError."""
    certificate, key = Path(plan.certificate), Path(plan.key)
    return Settings(
        conf=puppetconf.read(),
        masters=(plan.master,),
        master_name=plan.name,
        listen=_listens(plan.descriptors),
        descriptors=tuple(plan.descriptors),
        trust=tls.SiteTrust(Path(plan.ca), Path(plan.crl)),
        # Who else can read the server's key is not changed by us.
        presented=tls.PresentedCertificate(certificate, key, unsafe=True),
        presented_path=certificate,
        identity_source=UnprivilegedMint(Path(plan.cadir)) if plan.cadir else Nobody(),
        identity_text=f"mint:{plan.cadir}" if plan.cadir else "none",
        capture=capture_path(values.puppet_capture),
        rules=_usable_rules(values),
        rotation=rotation.of(
            values.puppet_rotate_size, values.puppet_rotate_age, values.puppet_keep, values.puppet_keep_free,
        ),
    )  # fmt: skip


def _listens(descriptors: Sequence[int]) -> tuple[str, int]:
    """Return the address of the first socket that listens."""
    with socket.socket(fileno=os.dup(descriptors[0])) as listening:
        host, port = listening.getsockname()[:2]
    return str(host), int(port)


def _authority(conf: puppetconf.PuppetConf, masters: Sequence[tuple[str, int]]) -> tuple[str, int] | None:
    """Return the CA's server where puppet.conf names another one than the master.

    It counts for the master that is in the same file only: of another site's nothing is known.
    """
    apart = conf.path is not None and conf.servers[0] in masters and conf.authority != conf.servers[0]
    return conf.authority if apart else None


def _masters(values: Any, conf: puppetconf.PuppetConf, *, own_mode: bool) -> tuple[tuple[str, int], ...]:
    if values.puppet_master:
        return tuple(dict.fromkeys(split_address(master.strip()) for master in values.puppet_master.split(",")))
    return (_master(values, conf, own_mode=own_mode),)


def _master(values: Any, conf: puppetconf.PuppetConf, *, own_mode: bool) -> tuple[str, int]:
    if own_mode:
        for mode in values.mode:
            if mode.startswith("reverse:"):
                target = mode.removeprefix("reverse:").partition("@")[0].rpartition("//")[2].rstrip("/")
                return split_address(target)
    if conf.path is None:
        raise InspectorError(
            "This host has no puppet.conf, so the master is not known.",
            "Give it: --set puppet_master=HOST[:PORT] (and puppet_ssldir, or puppet_cert, puppet_ca, puppet_crl).",
        )
    return conf.server, conf.port


def _only(text: str) -> regex.Pattern[str] | None:
    patterns = [regex.glob(pattern.strip()).pattern for pattern in text.split(",") if pattern.strip()]
    if not patterns:
        return None
    only = regex.compile("|".join(patterns), regex.IGNORECASE | regex.DOTALL)
    try:
        only.check()
    except regex.error as error:
        raise InspectorError(
            f"puppet_only has too many patterns: {error}.", "Give fewer: `*` stands for many names."
        ) from error
    return only


def _faults(lines: Iterable[str], only: str) -> tuple[Fault, ...]:
    """Return the faults to inject. Each must be for some agents only."""
    faults = tuple(fault.parse(line) for line in lines if line.strip())
    for each in faults:
        if not each.agents and not only:
            raise InspectorError(
                f"The fault {each.line!r} would be injected into every agent's runs.",
                "Name the agents in it (agent:web1.example, agent:192.0.2.7), or set puppet_only.",
            )
    return faults


def _redact(text: str) -> Redaction:
    if text in ("", "write", "closed"):
        return cast("Redaction", text)
    raise InspectorError(
        f"puppet_redact is {text!r}.", "Write puppet_redact=write or puppet_redact=closed, or omit it."
    )


def _tables(text: str) -> Path | None:
    """Return the directory of the tables, which exists then. Raises InspectorError."""
    directory = _path(text)
    if directory is None:
        return None
    database.check()
    return TableDirectory.create(directory.absolute()).root


def _wire(values: Any) -> bool:
    """Whether the wire is recorded. Raises InspectorError with an option that leaves a part out: the wire is whole."""
    if not values.puppet_wire:
        return False
    for name in ("puppet_redact", "puppet_only", "puppet_rotate_size", "puppet_rotate_age"):
        if getattr(values, name):
            raise InspectorError(
                f"puppet_wire is not possible with {name}.",
                "It records everything of every connection, from the first byte to the last, for a short test.",
            )
    return True


def _balancers(text: str) -> tuple[Network, ...]:
    try:
        return tuple(ipaddress.ip_network(word.strip()) for word in text.split(",") if word.strip())
    except ValueError as error:
        raise InspectorError(
            f"puppet_proxy_protocol: {error}.", "Give addresses or networks: 192.0.2.7, 2001:db8::/64."
        ) from error


def _ip(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    found = ipaddress.ip_address(address.partition("%")[0])
    return getattr(found, "ipv4_mapped", None) or found


def _certname(text: str) -> str:
    if text and not regex.fullmatch(r"[a-z0-9._-]+", text):
        raise InspectorError(
            f"puppet_probe_verification is {text!r}, which is not a certname.",
            "Give the certname of one agent (`puppet config print certname` prints it).",
        )
    return text


def _path(text: str) -> Path | None:
    return inputs.expanded(text) if text else None


def _own_host(name: str) -> tuple[str, str]:
    """Return the address of loopback to listen on for agents that connect to this name, and the name's address if they
    do not get there."""
    found = _addresses(name)
    loopback = [host for host in found if _ip(host).is_loopback]
    default = "127.0.0.1"
    if not loopback:
        return default, found[0] if found else ""
    return default if default in loopback else loopback[0], ""


def _addresses(name: str) -> list[str]:
    """Return the addresses of a name, those of IPv4 first; none if it does not resolve."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return sorted((str(where[0]) for *_, where in found), key=lambda host: ":" in host)


def listen_again(settings: Settings) -> Settings:
    """Return the settings with a port that is free now: another process may have taken the previous one.

    Raises InspectorError.
    """
    return replace(settings, listen=_free(settings.listen, port_given=not settings.any_port, shared=False))


def _free(listen: tuple[str, int], *, port_given: bool, shared: bool) -> tuple[str, int]:
    """Return the address to listen on: as given, or with the next free port if none was given."""
    host, first = listen
    for port in range(first, first + (1 if port_given else 100)):
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                # As the server will listen: closed connections of an earlier proxy do not block the port.
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shared)
                probe.bind((host, port))
                return host, port
        except OSError as error:
            reason = error.strerror or str(error)
    raise InspectorError(
        f"Cannot listen on {address(host, first)}: {reason}.",
        "Choose another address with puppet_listen=HOST:PORT.",
    )


def capture_path(text: str) -> Path:
    """Return the capture to record in: a file as given, or a new file in a directory (default ``captures``)."""
    path = inputs.expanded(text) if text else Path("captures")
    if text and not path.is_dir() and not text.endswith("/"):
        return path
    if not text and path.is_dir():
        # The default directory: other users do not need to read the traffic.
        with contextlib.suppress(OSError):
            path.chmod(0o700)
    return paths.fresh(path)


_NO_RENEWAL = (
    "              renewals of certificates are answered 404 here, not by the CA: it would sign the key of that one",
)


def startup_lines(settings: Settings, addresses: Sequence[str]) -> list[str]:
    """Return the lines that the proxy prints when it starts: its settings, and how to send an agent through it."""
    alarms = [f"{ALARM}on purpose, as long as this proxy runs: {clean(each.line)}" for each in settings.faults]
    if settings.descriptors:
        return [f"  listens on  {', '.join(addresses)}", f"  records to  {settings.capture}", *alarms]
    identity_used = {
        "keys": "the agent's own certificate and key, for verified agents",
        "mint": "a certificate made for the agent, for verified agents",
        "headers": "headers with the agent's name, for verified agents",
        "none": "none, for all agents",
    }[settings.identity_source.mode]
    masters = ", ".join(address(*master) for master in settings.masters)
    required = "" if settings.master_name == settings.master[0] else f" (certificate for {settings.master_name})"
    lines = [
        f"puppet-inspector {__version__}",
        f"  master      {masters}{required}",
        *([f"  CA          {address(*settings.authority)} (ca_server of puppet.conf)"] if settings.authority else ()),
        f"  presents    {_presents(settings)}",
        f"  identity    {identity_used} ({settings.identity_text})",
        *(_NO_RENEWAL if settings.identity_source.mode == "mint" else ()),
        f"  listens on  {', '.join(addresses) or 'nothing'}",
        f"  records to  {settings.capture}",
        *(f"  balancer    {network}, which says where agents are" for network in settings.balancers),
        *settings.telemetry.lines(),
        *_how(settings, split_address(addresses[0]) if addresses else settings.listen),
    ]
    return [*lines, *(f"-- {warning}" for warning in (*_exposed(addresses), *settings.warnings)), *alarms]


def _presents(settings: Settings) -> str:
    if settings.presented is None:
        return "a certificate for the master's name, of a CA of this proxy's own"
    leaf = x509.certificate(settings.presented.credentials.chain[0])
    until = datetime.datetime.fromtimestamp(leaf.not_after, datetime.UTC)
    return f"{settings.presented_path}: {leaf.subject}, {', '.join(leaf.alt_names)}; until {until:%Y-%m-%d}"


def _how(settings: Settings, listening: tuple[str, int]) -> Iterator[str]:
    """Yield how to send an agent through the proxy."""
    if settings.presented is None:
        yield from _to_connect(settings, listening)
    elif settings.unreached:
        yield from _to_reach(_name_in(settings.presented), settings)
    else:
        yield from _to_try(_name_in(settings.presented), str(listening[1]), apart=settings.authority is not None)


def _to_connect(settings: Settings, listening: tuple[str, int]) -> Iterator[str]:
    """Yield how an agent uses the proxy as its HTTP proxy, and what it needs for that."""
    host, port = listening
    bundle, crls = (shlex.quote(str(settings.connect / name)) for name in (site.BUNDLE, site.CRLS))  # type: ignore[operator]
    yield f"  try         puppet agent -t --http_proxy_host {host} --http_proxy_port {port} --no_proxy none \\"
    yield f"                --localcacert {bundle} --hostcrl {crls}"
    yield "              On another host, copy both files there first. A node without a certificate needs neither: give"
    yield "              names of files that do not exist, and it downloads both. They are valid until this proxy ends."


def _to_try(name: str, port: str, *, apart: bool) -> Iterator[str]:
    """Yield how to send an agent through the proxy. ``apart``: the CA is on another host than the master."""
    authority = f" --ca_server {name} --ca_port {port}" if apart else ""
    yield f"  try         puppet agent -t --server {name} --serverport {port}{authority}"
    yield "              (--masterport up to Puppet 6; the name must resolve to the address above)"


def _to_reach(name: str, settings: Settings) -> Iterator[str]:
    """Yield how to start the proxy so that agents reach it by its name, and who else does then."""
    host = settings.unreached
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        try:
            probe.bind((host, 0))
        except OSError:  # an address of a balancer, or of a NAT
            host = "0.0.0.0"  # noqa: S104 - the user decides
    yield f"  try         not yet: agents look for {name} at {settings.unreached}. Start it so:"
    yield f"                {_command(f'[{host}]' if ':' in host else host)}"
    yield "              Then every host that reaches that address can connect: without a certificate it gets what the"
    yield "              master gives to anybody, and agents that are verified act under their own identity."


def _command(listen: str) -> str:
    """Return the command that this process was started with, listening on an address."""
    program, *arguments = sys.argv
    name = Path(program).name
    if name in ("-c", "__main__.py"):
        program, arguments = "puppet-inspector", arguments if name != "-c" else ["proxy"]
    elif shutil.which(name):
        program = name
    return shlex.join([program, *arguments, "--set", f"puppet_listen={listen}"])


def _exposed(addresses: Sequence[str]) -> list[str]:
    """Return a warning about the addresses that other hosts can reach, if there are any."""
    exposed = [text for text in addresses if not ipaddress.ip_address(split_address(text)[0]).is_loopback]
    warning = (
        f"{', '.join(exposed)} can be reached from the network: any host can send the master requests that need no "
        "certificate, and verified agents act under their own identity; allow only agents to reach it"
    )
    return [warning] if exposed else []
