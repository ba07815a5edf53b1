"""A Puppet 7.23 agent: its bootstrap, and the start of its runs.

Follows docs/protocol.md#ssl-state-machine, connection by connection. Network errors end a run, as they would end
``puppet agent --onetime``; they are never raised. The requests of a run are in ``inspector.lab.run``.
"""

from __future__ import annotations

import ssl
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509

from inspector.host import pki
from inspector.lab.run import AgentRun
from inspector.lab.wire import Wire, WireError, insecure, verifying

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from inspector.lab.wire import LabResponse, ServerAddress


@dataclass(frozen=True, slots=True)
class AgentResult:
    """The result of an agent's run."""

    status: int
    """Exit status of ``puppet agent -t``: 0, 2, 4, 6; 1: no certificate or no catalog."""
    log: tuple[str, ...]


class LabAgent:
    """An agent with its own directory, in which its key, certificate and state survive between runs.

    Times are in seconds. ``certificate_revocation`` False: the agent downloads and checks no CRL. ``show_certificate``
    False: broken on purpose, the agent runs without its certificate. ``identities``: the directory for
    ``<certname>.pem`` (key and certificate), for the proxy's identity mode ``keys``.
    """

    def __init__(
        self,
        certname: str,
        directory: Path,
        server: ServerAddress,
        *,
        environment: str = "production",
        waitforcert: float = 0.0,
        maxwaitforcert: float = 10.0,
        certificate_revocation: bool = True,
        show_certificate: bool = True,
        identities: Path | None = None,
    ) -> None:
        self.certname = certname
        self.directory = directory
        self.server = server
        self.environment = environment
        self.waitforcert = waitforcert
        self.maxwaitforcert = maxwaitforcert
        self.certificate_revocation = certificate_revocation
        self.show_certificate = show_certificate
        self.identities = identities
        self.place = pki.SslDirPaths(directory / "ssl", certname)
        self._summary = directory / "public" / "last_run_summary.yaml"
        self._log: list[str] = []

    def run(self, on_wait: Callable[[int], object] | None = None) -> AgentResult:
        """Do ``puppet agent -t``; ``on_wait`` is called before each pause of ``waitforcert`` with its number."""
        self._log = []
        status = 1
        try:
            if self._bootstrap(on_wait):
                status = self._run()
        except (WireError, _StateError, ssl.SSLError) as error:
            self._log.append(f"Error: {error}")
        return AgentResult(status, tuple(self._log))

    # -- bootstrap -----------------------------------------------------------------------------

    def _bootstrap(self, on_wait: Callable[[int], object] | None) -> bool:
        """Repeat the bootstrap until there is a certificate; return False after ``maxwaitforcert``."""
        self.place.create()
        waits = 0
        while True:
            self._need_ca()
            if self.certificate_revocation:
                self._need_crl()
            enrolled = self.place.certificate.exists() and self.place.key.exists()
            if enrolled or self._need_certificate():
                return True
            waits += 1
            if self.waitforcert <= 0 or waits * self.waitforcert > self.maxwaitforcert:
                self._log.append("Exiting; no certificate found and waitforcert is disabled or at its end")
                return False
            if on_wait:
                on_wait(waits)
            time.sleep(self.waitforcert)

    def _need_ca(self) -> None:
        """Download the CA bundle: unverified, on its own connection, after an empty connection."""
        if self.place.ca.exists():
            return
        with Wire(self.server, insecure()) as wire:
            wire.probe()
            answer = _plain(wire, "certificate/ca")
        if not answer.ok:
            missing = "CA certificate is missing from the server"
            raise _StateError(missing if answer.status == 404 else f"Could not download CA certificate: {answer}")
        self._save(self.place.ca, answer.body, x509.load_pem_x509_certificates, "CA")

    def _need_crl(self) -> None:
        """Download the CRLs: verified with the CA bundle only, because there is no CRL yet."""
        if self.place.crl.exists():
            return
        with Wire(self.server, verifying(self.place.ca)) as wire:
            answer = _plain(wire, "certificate_revocation_list/ca")
        if not answer.ok:
            missing = "CRL is missing from the server"
            raise _StateError(missing if answer.status == 404 else f"Could not download CRLs: {answer}")
        self._save(self.place.crl, answer.body, x509.load_pem_x509_crl, "CRL")

    def _need_certificate(self) -> bool:
        """Submit the signing request and download the certificate, on one connection; return False if it is not signed.

        Every cycle submits a new request for the same key; the answer that the CA already has one (400) is no error.
        """
        if not self.place.key.exists():
            pki.write_private(self.place.key, pki.key_pem(pki.new_key()))
        key = pki.read_key(self.place.key)
        name = self.certname
        with Wire(self.server, self._context()) as wire:
            csr = pki.pem(pki.make_csr(name, key))
            path = f"/puppet-ca/v1/certificate_request/{name}"
            submitted = wire.request("PUT", path, "text/plain", csr, "text/plain")
            if not submitted.ok and submitted.status != 400:
                raise _StateError(f"Failed to submit the CSR, HTTP response was {submitted.status}")
            answer = _plain(wire, f"certificate/{name}")
        if answer.status == 404:
            self._log.append(f"Certificate for {name} has not been signed yet")
            return False
        if not answer.ok:
            raise _StateError(f"Failed to retrieve certificate for {name}: {answer}")
        try:
            matches = x509.load_pem_x509_certificate(answer.body).public_key() == key.public_key()
        except ValueError as error:
            raise _StateError(f"Failed to parse certificate: {error}") from error
        if not matches:
            raise _StateError(f"The certificate for '{name}' does not match its private key")
        self.place.certificate.write_bytes(answer.body)
        if self.identities:
            pki.write_private(self.identities / f"{name}.pem", pki.key_pem(key) + answer.body)
        return True

    def _save(self, path: Path, body: bytes, parse: Callable[[bytes], object], kind: str) -> None:
        try:
            parse(body)
        except ValueError as error:
            raise _StateError(f"Failed to parse {kind} certificates as PEM: {error}") from error
        path.write_bytes(body)

    # -- with a certificate ---------------------------------------------------------------------------

    def _run(self) -> int:
        files = self.directory / "files"
        files.mkdir(mode=0o700, exist_ok=True)
        identity = (self.place.certificate, self.place.key) if self.show_certificate else None
        with Wire(self.server, self._context(identity)) as wire:
            run = AgentRun(wire, self.certname, self.environment, files)
            status = run.go(first=not self._summary.exists())
        self._log += [f"{level.capitalize()}: {message}" for level, message in run.report.logs]
        self.remember_run(run.report.status)
        return status

    def remember_run(self, status: str) -> None:
        """Write the summary because of which the next run sends no node request."""
        self._summary.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._summary.write_text(f"---\napplication:\n  run_mode: agent\n  status: {status}\n")

    def _context(self, identity: tuple[Path, Path] | None = None) -> ssl.SSLContext:
        return verifying(self.place.ca, self.place.crl if self.certificate_revocation else None, identity)


class _StateError(Exception):
    """The state machine reached its state Error: the agent gives up."""


def _plain(wire: Wire, path: str) -> LabResponse:
    return wire.request("GET", f"/puppet-ca/v1/{path}", "text/plain")
