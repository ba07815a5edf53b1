"""What is learned of a capture before anything of it leaves: names, identifiers of code, secrets, certificates."""

from __future__ import annotations

import contextlib
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from cryptography import x509
from cryptography.x509.oid import NameOID

from inspector.analysis.analyzer import Analyzer
from inspector.formats import embedded
from inspector.model import Exchange, Handshake
from inspector.privacy import redact, secrets
from inspector.protocol import documents as d
from inspector.protocol import endpoints
from inspector.protocol.x509 import Malformed, read_der

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inspector.formats.pseudonyms import NameKind, Pseudonyms
    from inspector.formats.reissue import Reissuer
    from inspector.model import Leg, Record
    from inspector.privacy.harmless import Harmless
    from inspector.privacy.known import KnownSecrets


class Knowledge(NamedTuple):
    """The names, identifiers and secrets of a capture."""

    names: Pseudonyms
    harmless: Harmless
    secrets: KnownSecrets
    certificates: Reissuer
    searched: redact.SearchedBodies
    """The bodies in which no secret was found."""


class Learner:
    """Fills the knowledge of a capture, record by record."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._names, self._harmless, self._secrets, self._certificates, self._searched = knowledge
        self._learned: set[bytes] = set()
        """The DER of what was learned."""
        self._analyzer = Analyzer(rules=())
        self.leg = lru_cache(maxsize=1024)(self._leg)

    def names(self, record: Record) -> None:
        """Learn the names and the identifiers in a record, and its certificates."""
        match record:
            case Exchange():
                found = endpoints.match(record.request.method, record.request.target)
                self._names.host((record.request.header("host") or "").partition(":")[0], "master")
                self.leg(record.agent)
                if record.master:
                    self.leg(record.master)
                self._names.host(found.certname if found else None, "agent")
                self._names.host(record.identity.certname if record.identity else None, "agent")
                self._harmless.identifier(found.environment if found else None)
                step = self._analyzer.read(record)
                self._document(step.request)
                self._document(step.response)
                for message in (record.request, record.response):
                    for der in embedded.ders(message) if message else ():
                        self._der(der, "agent")
            case Handshake():
                self.leg(record.leg)

    def secrets(self, record: Record) -> None:
        """Learn the secrets in a record."""
        for secret in redact.known(record, self._searched) if isinstance(record, Exchange) else ():
            self._secrets.add(secret)

    def _leg(self, leg: Leg) -> None:
        """Learn the names of a connection, and its certificates."""
        self._names.host(leg.sni, "master")
        self._names.host(leg.node, "agent")
        self._names.host((leg.place or "").rpartition(" ")[2])
        agent, master = (leg.peer_chain, leg.own_chain) if leg.side == "agent" else (leg.own_chain, leg.peer_chain)
        for der in master:
            self._der(der, "master")
        for der in agent:
            self._der(der, "agent")

    def _der(self, der: bytes, kind: NameKind) -> None:
        if der in self._learned:
            return
        self._learned.add(der)
        self._certificates.learn(der)
        with contextlib.suppress(Malformed, ValueError):
            read = read_der(der)
            parsed = x509.load_der_x509_certificate(der)
            for secret in secrets.within(d.Certificates([read])):
                self._secrets.add(str(secret))
            for attribute in (*parsed.subject, *parsed.issuer):
                value = attribute.value if isinstance(attribute.value, str) else attribute.value.decode("latin-1")
                if attribute.oid not in (NameOID.COMMON_NAME, NameOID.COUNTRY_NAME):
                    self._names.subject_part(value)
            self._authority(parsed.issuer)
            with contextlib.suppress(x509.ExtensionNotFound):
                signer = parsed.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
                for name in signer.authority_cert_issuer or ():
                    if isinstance(name, x509.DirectoryName):
                        self._authority(name.value)
            if read.is_ca:
                self._authority(parsed.subject)
            else:
                self._hosts(read.common_name, read.alt_names, kind)

    def _authority(self, name: x509.Name) -> None:
        for attribute in name.get_attributes_for_oid(NameOID.COMMON_NAME):
            common_name = str(attribute.value)
            if ": " in common_name:  # Puppet CA: master.example.com
                self._names.host(common_name.rpartition(": ")[2], "master")
            self._names.authority(common_name)

    def _hosts(self, name: str | None, alt_names: Iterable[str], kind: NameKind) -> None:
        self._names.host(name, kind)
        for alt_name in alt_names:
            sort, _, value = alt_name.partition(":")
            if sort == "DNS":
                self._names.host(value, kind)

    def _document(self, document: d.Document | None) -> None:
        match document:
            case d.CatalogRequest(facts=d.Facts() as facts):
                self._document(facts)
                self._harmless.identifier(document.environment)
            case d.Facts():
                self._names.host(document.name, "agent")
                self._names.facts(document.values)
                for fact in document.values:
                    self._harmless.identifier(fact)
            case d.Node():
                self._names.host(document.name, "agent")
                self._names.facts(document.parameters or {})
                self._code(document.environment, *(document.classes or ()))
            case d.Catalog():
                self._names.host(document.name, "agent")
                self._code(document.environment, *(document.classes or ()))
                for resource in document.resources:
                    self._code(resource.type, *resource.parameters)
            case d.Report():
                self._names.host(document.host, "agent")
                self._code(document.environment)
            case d.CertificateRequest():
                self._hosts(document.common_name, document.alt_names, "agent")
            case d.CertificateStatus():
                self._names.host(document.name, "agent")
            case d.CertificateStatuses():
                for certificate in document.certificates:
                    self._names.host(certificate.name, "agent")

    def _code(self, *identifiers: object) -> None:
        for identifier in identifiers:
            self._harmless.identifier(identifier)
