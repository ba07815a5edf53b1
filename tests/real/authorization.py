"""Decisions about generated requests, compared with what a real puppetserver answers.

``python -m tests.real.authorization --confs 10 --requests 2000 --seed 1`` compares more of them than the test does.
"""

from __future__ import annotations

import argparse
import datetime
import ssl
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPSConnection
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from inspector.explain.authorization import decision, targets, traffic
from inspector.explain.authorization.decision import ANONYMOUS, Decision, Question, Verdict
from inspector.host.auth_conf import reading
from tests.real.puppet import RealMaster
from tests.support import auth_confs

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from inspector.host.auth_conf.rules import AuthConf
    from tests.support.auth_confs import Peer

_DAY = datetime.timedelta(days=1)


class _Connection(HTTPSConnection):
    """Sends targets as they are."""

    def _encode_request(self, request: str) -> bytes:
        return request.encode("latin-1")

    def _validate_path(self, url: str) -> None:
        pass


@dataclass
class Clients:
    """The certificates of generated clients, and a connection of each to the master."""

    master: RealMaster
    directory: Path
    ders: dict[str, bytes] = field(default_factory=dict)
    open: dict[str, _Connection] = field(default_factory=dict)

    def certificate(self, peer: Peer) -> bytes:
        """Return the certificate of a client (DER), signed by the master's CA."""
        if peer.name not in self.ders:
            self.ders[peer.name] = self._enrolled(peer)
        return self.ders[peer.name]

    def _enrolled(self, peer: Peer) -> bytes:
        cadir = self.master.cadir
        authority = x509.load_pem_x509_certificates((cadir / "ca_crt.pem").read_bytes())[0]
        signing = serialization.load_pem_private_key((cadir / "ca_key.pem").read_bytes(), None)
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.datetime.now(datetime.UTC)
        names = [x509.DNSName(name) for name in (peer.name, *peer.alt_names)]
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, peer.name)]))
            .issuer_name(authority.subject).public_key(key.public_key()).serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY).not_valid_after(now + _DAY)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
        )  # fmt: skip
        for oid, value in peer.extensions.items():
            data = value.encode()
            extension = x509.UnrecognizedExtension(x509.ObjectIdentifier(oid), bytes([0x0C, len(data)]) + data)
            builder = builder.add_extension(extension, critical=False)
        made = builder.sign(signing, hashes.SHA256())  # type: ignore[arg-type] # an RSA key
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        pem = self.directory / f"{peer.name}.pem"
        pem.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
        return made.public_bytes(serialization.Encoding.DER)

    def ask(self, method: str, target: str, peer: Peer | None, headers: tuple[tuple[str, str], ...]) -> int:
        """Send a request; return the status of the answer."""
        name = peer.name if peer else ""
        for _ in range(3):
            connection = self.open.get(name) or self._connected(peer)
            self.open[name] = connection
            with suppress(HTTPException, OSError):
                connection.putrequest(method, target, skip_accept_encoding=True)
                for header, value in (("Accept", "*/*"), ("Content-Length", "0"), *headers):
                    connection.putheader(header, value)
                connection.endheaders()
                answer = connection.getresponse()
                answer.read()
                if answer.will_close:
                    self.open.pop(name).close()
                return answer.status
            self.open.pop(name).close()
        raise RuntimeError(f"no answer to {method} {target}")

    def _connected(self, peer: Peer | None) -> _Connection:
        context = ssl.create_default_context(cafile=str(self.master.ssldir / "certs/ca.pem"))
        context.check_hostname = False
        if peer:
            self.certificate(peer)
            context.load_cert_chain(self.directory / f"{peer.name}.pem")
        return _Connection(self.master.host, self.master.port, context=context, timeout=120)

    def close(self) -> None:
        """Close all connections."""
        for connection in self.open.values():
            connection.close()
        self.open.clear()


@dataclass
class Comparison:
    """What was compared."""

    counts: Counter[str] = field(default_factory=Counter)
    """Requests by verdict."""
    differences: list[str] = field(default_factory=list)

    @property
    def compared(self) -> int:
        return self.counts.total() - self.counts[Verdict.UNDECIDED]


def compare(master: RealMaster, directory: Path, *, seed: int, confs: int, requests: int) -> Comparison:
    """Compare decisions: ``confs`` files, each loaded once, and for each of them so many requests."""
    comparison, clients = Comparison(), Clients(master, directory)
    path = master.confdir / "conf.d/auth.conf"
    before = path.read_text()
    try:
        for number in range(confs):
            random = auth_confs.generator(f"{seed}/{number}")
            headers = number % 5 == 4
            path.write_text(auth_confs.conf(random, rules=random.randint(6, 14), headers=headers))
            conf = reading.read(path)
            master.reload()
            clients.close()
            for _ in range(requests):
                _compare_one(comparison, clients, conf, random)
    finally:
        path.write_text(before)
        master.reload()
        clients.close()
    return comparison


def _compare_one(comparison: Comparison, clients: Clients, conf: AuthConf, random: Random) -> None:
    method, target, peer = auth_confs.question(random)
    headers: tuple[tuple[str, str], ...] = ()
    client = decision.of_der(clients.certificate(peer)) if peer else ANONYMOUS
    if conf.headers:
        pem = ssl.DER_cert_to_PEM_cert(clients.certificate(peer)).encode() if peer else b""
        headers = auth_confs.headers(random, peer, pem)
        client = ANONYMOUS  # only headers count
    found = traffic.decide(conf, Question(method, target, client, headers))
    comparison.counts[found.verdict] += 1
    status = clients.ask(method, target, peer, headers)
    if found.verdict is Verdict.UNDECIDED:
        return
    if not _fits(found, status, method, target):
        shown = {name: value[:60] for name, value in headers}
        who = f"{peer.name if peer else 'nobody'} {shown or ''}"
        rule = f"{found.rule.name!r} ({found.rule.line})" if found.rule else "no rule"
        comparison.differences.append(
            f"{method} {target!r} of {who}: {status}, but {found.verdict} by {rule}: {found.why}\n"
            f"{conf.path.read_text() if not comparison.differences else ''}"
        )


def _fits(found: Decision, status: int, method: str, target: str) -> bool:
    """Whether a status is what a decision predicts."""
    try:
        path = targets.asked(method.lower(), target).path
    except targets.Unasked as answer:
        return found.verdict is Verdict.UNASKED and str(answer).endswith(f": {status}")
    if "\n" in path and path.startswith("/puppet/"):
        return True  # whether there is a route depends on where the line ends
    if not _routed(method, path):
        return status == 404
    if found.verdict is Verdict.UNASKED:  # its headers cannot be read
        return status == 400
    return (status == 403) == (found.verdict is Verdict.DENIED) and (
        status == 500 or found.verdict is not Verdict.FAILS
    )


def _routed(method: str, path: str) -> bool:
    """Whether puppetserver comes to its authorization: below /puppet it first looks for a route."""
    if not path.startswith("/puppet/"):
        return True
    name = path.split("/")[3:4]
    methods = {"catalog": ("GET", "POST"), "node": ("GET",)}.get(name[0] if name else "", ())
    return path.startswith("/puppet/v3/") and path.count("/") > 3 and method.upper() in methods


def main() -> int:
    """Compare in a master of its own, and print the result."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    for name, default in (("confs", 10), ("requests", 1000), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    with RealMaster(idle_timeout=30) as master:
        directory = master.confdir / "clients"
        directory.mkdir()
        found = compare(master, directory, seed=given.seed, confs=given.confs, requests=given.requests)
    print(*found.differences[:20], sep="\n")
    print(f"{found.compared} decisions compared ({dict(found.counts)}), {len(found.differences)} differences")
    return int(bool(found.differences))


if __name__ == "__main__":
    sys.exit(main())
