"""``puppet-inspector provision``: get a certificate for the proxy that agents trust.

The certificate is this host's own, one from the CA on this host (a command to run), or one made here with the key of
a CA directory. A preflight then makes the checks that an agent makes.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cryptography import x509 as cx509

from inspector import inputs, regex
from inspector.cli.output import print_json
from inspector.doctor import preflight
from inspector.errors import InspectorError
from inspector.host import pki, puppetconf
from inspector.protocol import x509
from inspector.protocol.signatures import signed_by
from inspector.proxy import identity
from inspector.rules import fixes
from inspector.rules.fixes import on_ca
from inspector.text import clean

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from inspector.host.puppetconf import PuppetConf
    from inspector.rules.fixes import Fix

type How = Literal["own", "ca", "cadir", "given"]
"""This host's own certificate, one from the CA on this host, one made with a CA's key, or a file of the caller."""

LIFETIME = timedelta(days=30)
"""Lifetime of a certificate made with ``--cadir``: short, because the CA has no record of it to revoke it by name."""

_FOLDERS = ("certs", "private_keys", "public_keys", "certificate_requests")
"""The directories of an ssldir with a file for each name."""
_NAME = regex.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")

EXAMPLE = "puppet-inspector provision proxy.example"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="the name that agents use for the proxy")
    parser.add_argument("--alt-name", action="append", default=[], metavar="NAME", help="an additional name")
    parser.add_argument(
        "--cadir", type=Path, metavar="DIR", help="make the certificate with the key of this CA directory"
    )
    parser.add_argument(
        "--ca", type=Path, metavar="PEM", help="preflight: the agents' CA bundle (default: the ssldir's)"
    )
    parser.add_argument("--crl", type=Path, metavar="PEM", help="preflight: the agents' CRLs (default: the ssldir's)")
    parser.add_argument("--cert", type=Path, metavar="PEM", help="only check this PEM file with key and certificate")
    parser.add_argument("--execute", action="store_true", help="run the command on this CA host instead of printing it")
    parser.add_argument("-o", "--output", type=Path, metavar="PEM", help="the file to create with key and certificate")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Get a certificate for the proxy that agents trust: this host's own, one from this host's CA (prints the command),
    or one made with a CA directory. Then check it as an agent would, and print how to use it and how to undo this. The
    exit status is 1 if a check fails, or a step is left to be done."""
    result = provision(
        arguments.name,
        alt_names=arguments.alt_name,
        cadir=arguments.cadir,
        ca=arguments.ca,
        crl=arguments.crl,
        cert=arguments.cert,
        output=arguments.output,
        execute=arguments.execute,
    )
    if arguments.json:
        print_json(result.json())
    else:
        for line in result.lines():
            print(line)
    return 0 if result.ok else 1


@dataclass(slots=True)
class Result:
    """The certificate, the commands to use and to undo it, and the results of the preflight."""

    name: str
    how: How
    certificate: Path | None = None
    key: Path | None = None
    command: list[str] = field(default_factory=list)
    """The command that issues the certificate on this CA host."""
    executed: bool = False
    checks: list[preflight.Check] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    proxy: str = ""
    agent: str = ""
    take_back: list[str] = field(default_factory=list)
    steps: Fix = ()
    """The way out, where what lies here is of no use."""
    made: list[Path] = field(default_factory=list)
    """The files that this call made."""
    revoke: tuple[str, ...] = ()
    """The command that takes the certificate back that the CA issued for this call."""

    @property
    def ok(self) -> bool:
        return not self.steps and all(check.ok for check in self.checks)

    def undo(self) -> str:
        """Remove what this call made; return what was removed in a sentence, empty for nothing."""
        done = [f"the certificate of {self.name} on the CA"] if self.revoke and not _status(self.revoke) else []
        left = [shlex.join(self.revoke)] if self.revoke and not done else []
        for path in self.made:
            try:
                path.unlink()
                done.append(str(path))
            except OSError:
                left.append(f"rm {shlex.quote(str(path))}")
        self.made, self.revoke, self.take_back = [], (), left
        return f"What this made was removed again: {', '.join(done)}." if done else ""

    def json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "how": self.how,
            "certificate": str(self.certificate) if self.certificate else None,
            "key": str(self.key) if self.key else None,
            "command": self.command or None,
            "executed": self.executed,
            "ok": self.ok,
            "checks": [{"check": check.name, "ok": check.ok, "message": check.message} for check in self.checks],
            "notes": self.notes,
            "proxy": self.proxy,
            "agent": self.agent,
            "take_back": self.take_back,
            "steps": fixes.fields(self.steps),
        }

    def lines(self) -> list[str]:
        lines = list(self.notes)
        if self.command and not self.executed:
            lines += ["", "Run on this host (or use `puppet-inspector provision --execute`):"]
            lines += [f"  {shlex.join(self.command)}"]
        if self.checks:
            lines += ["", f"Will agents that connect to {self.name} trust {self.certificate}?"]
            lines += [f"  {'OK  ' if check.ok else 'FAIL'}  {check.name:<11} {check.message}" for check in self.checks]
        if self.ok:
            lines += ["", "Start the proxy:", f"  {self.proxy}", "Run the agent once (--masterport up to Puppet 6):"]
            lines += [
                f"  {self.agent}",
                "The name must resolve to the proxy's address: 127.0.0.1, or --set puppet_listen=ADDRESS.",
            ]
        if self.steps:
            lines += ["", "The way out:", *(f"  {line}" for line in fixes.lines(self.steps))]
        if self.take_back:
            lines += ["", "To undo this afterwards:", *(f"  {line}" for line in self.take_back)]
        return [clean(line) for line in lines]


def provision(
    name: str | None = None,
    *,
    alt_names: Sequence[str] = (),
    cadir: Path | None = None,
    ca: Path | None = None,
    crl: Path | None = None,
    cert: Path | None = None,
    output: Path | None = None,
    execute: bool = False,
) -> Result:
    """Find a certificate for the proxy, make it, or return the command that does; then run the preflight.

    ``name`` is the agents' name for the proxy; by default this host's own certname. Raises InspectorError.
    """
    conf = puppetconf.read()
    for certname in (name, *alt_names) if not cert else ():
        if certname is not None and not _NAME.fullmatch(certname):
            raise InspectorError(f"{certname!r} is not a valid certname.", "Use a host name in lower case.")
    if cert is not None:
        result = _from_files(name, cert)
    elif cadir is not None:
        result = _made(name, alt_names, cadir, output)
        ca, crl = ca or cadir / "ca_crt.pem", crl or cadir / "ca_crl.pem"
    elif name is None or name == conf.certname:
        result = _own(conf, conf.certname)
    elif (authority := _authority(conf)) is not None:
        result = _from_ca(name, alt_names, conf, authority, output, execute=execute)
    else:
        result = _own(conf, name)
    if result.how != "own":
        trusted = [
            f"--set puppet_{option}={shlex.quote(str(file))}" for option, file in (("ca", ca), ("crl", crl)) if file
        ]
        master = ["--set puppet_master=HOST[:PORT]"] if conf.path is None else []
        result.proxy = " ".join([result.proxy, *trusted, *master])
    if result.certificate and result.key:
        try:
            result.checks = preflight.checks(
                result.name, result.certificate, result.key, ca or conf.ca, crl or conf.crl
            )
        except InspectorError as error:
            raise InspectorError(error.message, " ".join(filter(None, (error.hint, result.undo())))) from error
        if not result.ok and (undone := result.undo()):
            result.notes.append(undone)
    return result


# -- where the certificate comes from ----------------------------------------------------------------------------------


def _own(conf: PuppetConf, name: str) -> Result:
    """Use this host's own certificate: Puppet's CA issues every certificate for servers and clients alike."""
    if not _readable(conf.certificate, conf.key):
        raise InspectorError(
            f"This host has no certificate ({conf.certificate} is missing) and no CA that could issue one.",
            "Enrol the host (puppet agent -t), run this on the CA's host, or pass a CA directory: --cadir DIR.",
        )
    result = Result(name, "own", conf.certificate, conf.key)
    result.proxy = 'mitmdump -s "$(puppet-inspector addon)"'
    result.agent = _agent(conf.certname)
    result.notes = [
        f"The proxy can use this host's own certificate under the name {conf.certname}: Puppet's CA issues every",
        "certificate for servers and clients. Nothing has to be issued or undone.",
    ]
    if name != conf.certname:
        result.notes += [
            f"For another name, issue one on the CA's host: puppet-inspector provision {name}",
            "and copy the PEM file to this host: puppet-inspector provision --cert FILE",
        ]
    return result


def _from_files(name: str | None, cert: Path) -> Result:
    credentials = identity.load(cert, cert)
    leaf = x509.certificate(credentials.chain[0])
    name = name or leaf.common_name or leaf.subject
    result = Result(name, "given", cert, cert)
    result.proxy, result.agent = _proxy(cert), _agent(name)
    return result


def _made(name: str | None, alt_names: Sequence[str], cadir: Path, output: Path | None) -> Result:
    """Make a certificate with the CA's own key; the CA has no record of it."""
    if name is None:
        raise InspectorError("The certificate needs a name.", "puppet-inspector provision NAME --cadir DIR")
    signed = cadir / "signed" / f"{name}.pem"
    if _readable(signed):
        raise InspectorError(
            f"The CA already has a certificate for {name}: {signed}. A second one would have that node's permissions.",
            "Choose another name, or use that host's own certificate for the proxy.",
        )
    authority = pki.read_authority(cadir)
    key = pki.new_key()
    # A random serial number of 159 bits cannot collide with the CA's own, which count from 1.
    leaf = pki.sign(authority, key.public_key(), name, alt_names, lifetime=LIFETIME)
    chain = cx509.load_pem_x509_certificates(inputs.read(cadir / "ca_crt.pem", inputs.SMALL))
    intermediates = [certificate for certificate in chain if certificate.subject != certificate.issuer]
    target = output or Path(f"{name}.pem")
    _write(target, pki.key_pem(key) + pki.pem(leaf, *intermediates))
    result = Result(name, "cadir", target, target, executed=True, made=[target])
    result.notes = [
        f"{target} contains a new key, a certificate for {', '.join(dict.fromkeys((name, *alt_names)))} and its chain,",
        f"valid until {leaf.not_valid_after_utc:%Y-%m-%d}. The CA has no record of it and cannot revoke it by name.",
    ]
    result.proxy = f"{_proxy(target)} --set puppet_identity=mint:{shlex.quote(str(cadir))}"
    result.agent = _agent(name)
    result.take_back = [f"rm {shlex.quote(str(target))}"]
    return result


@dataclass(frozen=True, slots=True)
class _Authority:
    """The commands of this host's CA."""

    generate: tuple[str, ...]
    clean: tuple[str, ...]
    alt_names: str
    """The option for additional names; its value is the names, separated by commas."""
    note: str


def _authority(conf: PuppetConf) -> _Authority | None:
    """Return the commands of the CA on this host; None if the host has no CA key or no command."""
    if conf.cadir is None or not _readable(conf.cadir / "ca_key.pem"):
        return None
    places = ("puppetserver", "/opt/puppetlabs/bin/puppetserver", "/opt/puppetlabs/server/bin/puppetserver")
    if server := next((program for program in places if shutil.which(program)), None):
        return _Authority(
            (server, "ca", "generate", "--certname"), (server, "ca", "clean", "--certname"), "--subject-alt-names",
            "The server must be running; additional names require allow-subject-alt-names in its ca.conf.",
        )  # fmt: skip
    if puppet := shutil.which("puppet"):
        return _Authority((puppet, "cert", "generate"), (puppet, "cert", "clean"), "--dns_alt_names", "")
    return None


def _from_ca(
    name: str, alt_names: Sequence[str], conf: PuppetConf, ca: _Authority, output: Path | None, *, execute: bool
) -> Result:
    """Return the command for this host's CA; with ``execute`` run it, and write key and certificate to one file."""
    target = output or Path(f"{name}.pem")
    result = Result(name, "ca", command=[*ca.generate, name])
    if alt_names:
        names = ",".join(dict.fromkeys((name, *alt_names)))
        result.command += (
            [ca.alt_names, names] if ca.alt_names == "--subject-alt-names" else [f"{ca.alt_names}={names}"]
        )
    files = [conf.ssldir / folder / f"{name}.pem" for folder in _FOLDERS]
    certificate, key = files[:2]
    result.take_back = [shlex.join([*ca.clean, name]), f"rm -f {shlex.join(map(str, (target, *files)))}"]
    result.proxy, result.agent = _proxy(target), _agent(name)
    for lying, all_of_it in ((certificate, (target, *files)), (target, (target,))):
        if useless := _useless(lying, conf):
            return _with_way_out(result, useless, ca, conf, all_of_it)
    if _readable(certificate, key):
        # Issued by an earlier call: nothing to run, and the CA would refuse a second certificate.
        result.command = []
        result.notes = [f"This host's CA has already issued the certificate: {certificate}."]
    elif not execute:
        result.notes = [f"The CA on this host ({conf.cadir}) can issue the certificate. {ca.note}".rstrip()]
        result.notes += ["--execute runs the command, writes key and certificate to one file, and checks them."]
        return result
    else:
        _must_be_new(target)
    try:
        if result.command:
            _execute(result, files, _signed(conf, name), (*ca.clean, name))
        if not target.exists():
            _write(target, inputs.read(key, inputs.SMALL) + inputs.read(certificate, inputs.SMALL))
            result.made.append(target)
            result.notes += [f"{target} contains key and certificate."]
    except (InspectorError, OSError) as error:
        message, hint = (error.message, error.hint) if isinstance(error, InspectorError) else (f"{error}.", "")
        raise InspectorError(message, " ".join(filter(None, (hint, result.undo())))) from error
    result.certificate = result.key = target
    return result


def _signed(conf: PuppetConf, name: str) -> Path:
    """Return where the CA on this host stores the certificate of a name."""
    return (conf.cadir or conf.ssldir) / "signed" / f"{name}.pem"


def _useless(file: Path, conf: PuppetConf) -> str:
    """Return why agents do not trust a certificate that lies here, by what the CA on this host has: it is revoked, or
    of another CA. Empty if neither is known."""
    cadir = conf.cadir or Path()
    try:
        own = x509.usable_certificates(inputs.read(file, inputs.SMALL))[0]
        authorities = x509.usable_certificates(inputs.read(cadir / "ca_crt.pem", inputs.SMALL))
        crls = x509.usable_crls(inputs.read(cadir / "ca_crl.pem"))
    except (OSError, x509.Malformed, IndexError):
        return ""
    if all(signed_by(own, authority) is False for authority in authorities):
        return f"{file} is of another CA than the one on this host: {own.issuer}."
    if any(crl.issuer == own.issuer and own.serial in crl.revoked for crl in crls):
        return f"{file} is revoked: serial number {own.serial:04X} is on the CRL of the CA on this host."
    return ""


def _with_way_out(result: Result, useless: str, ca: _Authority, conf: PuppetConf, files: Sequence[Path]) -> Result:
    """Return how to get another certificate for a name whose certificate is of no use."""
    present = [path for path in files if path.exists() or path.is_symlink()]
    forget = on_ca(
        "remove it from the CA",
        shlex.join([*ca.clean, result.name]),
        destroys=f"the CA's copy of the certificate of {result.name}, and revokes it",
    )
    result.notes = [useless]
    result.steps = (
        *((forget,) if len(files) > 1 and _readable(_signed(conf, result.name)) else ()),
        on_ca(
            "remove the key and the certificate",
            f"rm {shlex.join(map(str, present))}",
            destroys=f"them for good: {', '.join(map(str, present))}",
        ),
        on_ca("make another one", f"puppet-inspector provision {shlex.quote(result.name)} --execute"),
    )
    result.take_back = []
    return result


def _status(command: Sequence[str]) -> int:
    """Run a command, and return its exit status."""
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True).returncode


def _execute(result: Result, files: Sequence[Path], signed: Path, clean: tuple[str, ...]) -> None:
    """Let the CA issue the certificate; note what that made: of ``files`` on this host, and in ``signed`` on the CA,
    which ``clean`` takes back. Raises InspectorError."""
    before = {path for path in (*files, signed) if path.exists()}
    process = subprocess.run(result.command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    result.made = [path for path in files if path.exists() and path not in before]
    if signed.exists() and signed not in before:
        result.revoke = clean
    output = [line for line in (process.stdout + process.stderr).splitlines() if line.strip()]
    if process.returncode != 0:
        raise InspectorError(
            f"`{shlex.join(result.command)}` exited with status {process.returncode}.",
            "\n  ".join(output[-10:]) or "It printed nothing.",
        )
    result.executed = True
    result.notes = output


def _must_be_new(target: Path) -> None:
    if target.exists() or target.is_symlink():
        raise InspectorError(f"{target} already exists and may contain a key.", "Choose another file with --output.")


def _write(target: Path, data: bytes) -> None:
    _must_be_new(target)
    try:
        pki.write_private(target, data)
    except OSError as error:
        raise InspectorError(
            f"{target} cannot be written: {error.strerror}.", "Choose another file with --output."
        ) from error


def _readable(*files: Path) -> bool:
    try:
        for file in files:
            with inputs.opened(file):
                pass
    except FileNotFoundError:
        return False
    except OSError as error:
        raise InspectorError(f"{error.filename} cannot be read: {error.strerror}.", "Run as root.") from error
    return True


def _proxy(pem: Path) -> str:
    return f'mitmdump -s "$(puppet-inspector addon)" --set puppet_cert={shlex.quote(str(pem))}'


def _agent(name: str) -> str:
    return f"puppet agent -t --server {name} --serverport {puppetconf.PORT}"
