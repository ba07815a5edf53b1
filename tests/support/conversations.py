"""Agents that talk as scripted: records for tests that need more than ``inspector.runs.examples`` says.

An ``Agent`` appends one record a call to ``records`` and moves its clock; ``together`` puts the records of
several agents in the order of time and numbers them.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import quote

from cryptography.hazmat.primitives.serialization import Encoding

from inspector.analysis.analyzer import Analyzer, Step
from inspector.host import pki
from inspector.model import Exchange, Finding, Handshake, Leg, Record, Request, Response
from inspector.rules import rule_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from inspector.rules import Rule
    from inspector.runs.run import Run

ROOT = pki.make_ca("Test Root CA", serial=1)
CA = pki.make_ca("Test CA", ROOT, serial=2)
MASTER = "master.example"
START = ROOT.certificate.not_valid_before_utc.timestamp() + 129_600
"""A moment at which everything made here is valid, and twelve hours ahead: a run that is under way there is so for the
whole session."""
WAITS = "already has a requested certificate"
SIGNED = "already has a signed certificate"


@cache
def key(owner: str) -> pki.PrivateKey:
    return pki.new_key()


@cache
def certificate(certname: str, owner: str) -> bytes:
    return pki.sign(CA, key(owner).public_key(), certname).public_bytes(Encoding.DER)


@cache
def crls() -> bytes:
    first = ROOT.certificate.not_valid_before_utc
    return pki.pem(*(pki.make_crl(authority, last_update=first) for authority in (CA, ROOT)))


@dataclass(slots=True)
class Agent:
    """One agent, and what it said so far."""

    certname: str = "a.example"
    address: str = "192.0.2.1"
    version: str = "7.23.0"
    owner: str = ""
    """Whose key it has; its own by default."""
    time: float = START
    uuid: str | None = "u-1"
    environment: str = "production"
    records: list[Record] = field(default_factory=list)
    leg: str = ""

    @property
    def legacy(self) -> bool:
        return self.version.startswith(("2.", "3."))

    def wait(self, seconds: float) -> Agent:
        self.time += seconds
        return self

    def ask(
        self, method: str, path: str, *, status: int | None = 200, body: bytes = b"", sent: bytes = b"",
        media: str = "text/plain", sends: str = "text/plain", own: bool = False, leg: str = "",
        headers: tuple[tuple[str, str], ...] = (),
    ) -> Agent:  # fmt: skip
        """One exchange: ``own`` with the agent's certificate, on the run's connection; else on a new one."""
        self.time += 0.1
        version = () if self.legacy else (("X-Puppet-Version", self.version),)
        ident = leg or (f"{self.certname}-{self.leg}" if own else f"{self.certname}-{self.owner}-{self.time}")
        self.records.append(
            Exchange(
                Leg(
                    id=ident,
                    side="agent",
                    address=self.address,
                    secured=self.time - 0.05,
                    tls_version="TLSv1.3",
                    peer_chain=(certificate(self.certname, self.owner or self.certname),) if own else (),
                ),
                Request(
                    (*version, ("Content-Type", sends), *headers), sent, "HTTP/1.1", self.time, self.time + 0.01,
                    method, path,
                ),
                None
                if status is None
                else Response(
                    (("Content-Type", media), ("X-Puppet-Version", "7.9.0")), body, "HTTP/1.1", self.time + 0.02,
                    self.time + 0.05, status,
                ),
                error="the master closed the connection" if status is None else None,
            )
        )  # fmt: skip
        return self

    def url(self, rest: str, *, ca: bool = False) -> str:
        if self.legacy:
            return f"/{self.environment}/{rest}"
        return f"/puppet-ca/v1/{rest}" if ca else f"/puppet/v3/{rest}?environment={self.environment}"

    # -- certificates -----------------------------------------------------------------------------

    def ca(self, *, refresh: bool = False, own: bool = False) -> Agent:
        headers = (("If-Modified-Since", "Thu, 01 Jan 2026 00:00:00 GMT"),) if refresh else ()
        bundle = pki.pem(CA.certificate, ROOT.certificate)
        return self.ask("GET", self.url("certificate/ca", ca=True), body=bundle, headers=headers, own=own)

    def crl(self, *, status: int = 200, refresh: bool = False, own: bool = False) -> Agent:
        headers = (("If-Modified-Since", "Thu, 01 Jan 2026 00:00:00 GMT"),) if refresh else ()
        body = crls() if status == 200 else b""
        path = self.url("certificate_revocation_list/ca", ca=True)
        return self.ask("GET", path, status=status, body=body, headers=headers, own=own)

    def csr(self, *, status: int = 200, text: str = "") -> Agent:
        body = f"{self.certname} {text}; ignoring certificate request".encode() if text else b""
        request = pki.pem(pki.make_csr(self.certname, key(self.owner or self.certname)))
        path = self.url(f"certificate_request/{self.certname}", ca=True)
        return self.ask("PUT", path, sent=request, status=status, body=body)

    def look(self, status: int = 404) -> Agent:
        """Up to 6.3: is a request of ours waiting already?"""
        return self.ask("GET", self.url(f"certificate_request/{self.certname}", ca=True), status=status, body=b"none")

    def poll(self) -> Agent:
        return self.ask("GET", self.url(f"certificate/{self.certname}", ca=True), status=404, body=b"Not Found")

    def issued(self, owner: str = "") -> Agent:
        from cryptography import x509

        der = certificate(self.certname, owner or self.owner or self.certname)
        body = x509.load_der_x509_certificate(der).public_bytes(Encoding.PEM)
        return self.ask("GET", self.url(f"certificate/{self.certname}", ca=True), body=body)

    def bootstrap(self, polls: int = 0) -> Agent:
        """From nothing to a certificate, as 6.4 and later do it."""
        self.ca().crl().csr()
        for _ in range(polls):
            self.poll().csr(status=400, text=WAITS)
        return self.issued()

    def old_bootstrap(self, polls: int = 1) -> Agent:
        """The CA twice, the same lookups several times, the CRL with the certificate.

        docs/protocol.md#bootstrap-up-to-5
        """
        self.ca().poll().look().csr().poll().ca()
        for _ in range(polls):
            self.poll()
        return self.issued().crl(own=True)

    # -- the run -----------------------------------------------------------------------------------

    def probe(self) -> Agent:
        return self.ask("GET", "/status/v1/simple/server", body=b"running", own=True)

    def node(self, status: int = 200) -> Agent:
        body = json.dumps({"name": self.certname, "environment": self.environment}).encode()
        path = self.url(f"node/{self.certname}")
        if self.uuid:
            path += f"{'?' if self.legacy else '&'}transaction_uuid={self.uuid}"
        return self.ask("GET", path, status=status, body=body, media="application/json", own=True)

    def plugins(self, status: int = 200) -> Agent:
        if not self.legacy:
            self.listing("file_metadatas/plugins", "recurse=false", status)
        return self.listing("file_metadatas/pluginfacts", "recurse=true", status).listing(
            "file_metadatas/plugins", "recurse=true", status
        )

    def listing(self, path: str, query: str, status: int = 200) -> Agent:
        target = self.url(path) + f"{'?' if self.legacy else '&'}{query}"
        return self.ask("GET", target, status=status, body=b"[]", media="application/json", own=True)

    def catalog(
        self, *, status: int | None = 200, environment: str = "", body: bytes | None = None, own: bool = True
    ) -> Agent:
        facts = quote(quote(json.dumps({"name": self.certname, "values": {"puppetversion": self.version}})))
        form = f"environment={self.environment}&facts_format=application%2Fjson&facts={facts}"
        form += f"&transaction_uuid={self.uuid}" if self.uuid else ""
        answer = {"name": self.certname, "environment": environment or self.environment, "resources": []}
        if body is None:
            body = json.dumps(answer if status == 200 else {"message": "Server Error: nothing"}).encode()
        return self.ask(
            "POST", self.url(f"catalog/{self.certname}"), status=status, sent=form.encode(), body=body,
            sends="application/x-www-form-urlencoded", media="application/json", own=own,
        )  # fmt: skip

    def file(self) -> Agent:
        body = json.dumps({"path": "/x", "type": "file"}).encode()
        return self.ask("GET", self.url("file_metadata/modules/m/f"), body=body, media="application/json", own=True)

    def report(self, outcome: str = "unchanged", *, status: int | None = 200, cached: str | None = None) -> Agent:
        document = {
            "host": self.certname, "status": outcome, "transaction_uuid": self.uuid, "cached_catalog_status": cached,
            "puppet_version": self.version, "environment": self.environment,
        }  # fmt: skip
        return self.ask(
            "PUT", self.url(f"report/{self.certname}"), status=status, sent=json.dumps(document).encode(),
            sends="application/json", body=b"[]", media="application/json", own=True,
        )  # fmt: skip

    def run(self, uuid: str | None = "u-1") -> Agent:
        """A healthy run: plugins, catalog, one file, report."""
        self.uuid, self.leg = uuid, f"run-{uuid}-{self.time}"
        if self.legacy:
            self.node()
        return self.plugins().catalog().file().report()

    def refused(self, reason: str = "certificate verify failed", *, own: bool = False) -> Agent:
        """A failed handshake on the agent's leg; ``own`` when the proxy refused the agent's certificate."""
        self.time += 0.1
        chain = (certificate(self.certname, self.owner or self.certname),) if own else ()
        leg = Leg(id=f"{self.certname}-tls-{self.time}", side="agent", address=self.address, peer_chain=chain)
        by, alert = ("proxy", "certificate_revoked") if own else ("agent", "unknown_ca")
        record = Handshake(leg, self.time, reason, alert)
        self.records.append(dataclasses.replace(record, alert_by="proxy" if by == "proxy" else "agent"))
        return self


def numbered(records: Iterable[Record]) -> list[Record]:
    """Records in the order in which they arrive, as a capture numbers them."""
    return [dataclasses.replace(record, seq=seq) for seq, record in enumerate(records, 1)]


def together(*agents: Agent) -> list[Record]:
    """What a proxy saw of several agents."""
    records = [record for agent in agents for record in agent.records]
    return numbered(sorted(records, key=lambda record: record.time))


def analyzed(*agents: Agent) -> Analyzer:
    """A finished analyzer that was fed what a proxy saw of several agents."""
    analyzer = Analyzer()
    for _ in steps(analyzer, together(*agents)):
        pass
    analyzer.finish()
    return analyzer


def steps(analyzer: Analyzer, records: Iterable[Record]) -> Iterator[Step]:
    """Feed records, insisting that nothing of ours failed."""
    for record in records:
        step = analyzer.feed(record)
        assert step.trouble == [], step.trouble
        yield step


def runs_of(records: Iterable[Record], rules: Iterable[Rule] | None = None) -> list[Run]:
    """The runs in some records when all of them were read, by all rules or by these."""
    analyzer = Analyzer(rules)
    for _ in steps(analyzer, records):
        pass
    return analyzer.finish()


def findings(records: Iterable[Record], ident: str, **thresholds: float) -> list[Finding]:
    """What one rule says, alone, with these thresholds."""
    rule = rule_of(ident)
    assert set(thresholds) <= set(rule.thresholds)
    chosen = dataclasses.replace(rule, thresholds={**rule.thresholds, **thresholds})
    return [finding for run in runs_of(records, [chosen]) for finding in run.findings]


def all_findings(records: Iterable[Record]) -> list[Finding]:
    """What all rules say, also of what is part of no run."""
    analyzer = Analyzer()
    taken = list(steps(analyzer, records))
    found = [finding for run in analyzer.finish() for finding in run.findings]
    return found + [finding for step in taken if step.run and step.run.number is None for finding in step.findings]
