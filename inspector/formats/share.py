"""A capture to share: it has the same findings, and does not reveal whose network was captured.

Secrets are masked (``redact``), names and addresses are replaced (``pseudonyms``), certificates are issued again
(``reissue``), and digests are adapted to the new contents. Unchanged are: times, sizes, versions, the names of
environments, modules, classes, resources and users, and the texts of manifests and files except for names in them.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import dataclasses
import itertools
import os
import secrets
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from cryptography import x509
from cryptography.x509.oid import NameOID

from inspector import regex
from inspector.analysis.analyzer import retrace
from inspector.capture.store import Capture
from inspector.errors import CaptureError, InspectorError
from inspector.formats.pseudonyms import Pseudonyms
from inspector.formats.reissue import Reissuer
from inspector.model import Connection, Exchange, Gap, Handshake, Request
from inspector.privacy import redact, rewrite
from inspector.protocol import bodies, endpoints, files, kinds
from inspector.protocol import documents as d
from inspector.protocol.x509 import Malformed, fingerprint, read_der

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from inspector.formats.pseudonyms import NameKind
    from inspector.model import Headers, Leg, Message, Record

_CONTENT = (*kinds.CONTENT, kinds.Kind.BACKUP)
"""Kinds of requests whose bodies have digests that other requests contain."""
_PEM = regex.compile(
    r"(-----BEGIN ((?:NEW )?CERTIFICATE REQUEST|(?:X509 |TRUSTED )?CERTIFICATE|X509 CRL)-----\s*)([A-Za-z0-9+/=\s]*?)"
    r"(\s*-----END ([A-Z0-9 ]{1,40})-----)"
)
_BATCH = 200


def share(source: Path, target: Path, progress: Callable[[str], None] = lambda _: None) -> int:
    """Make the capture to share; return the number of its records. ``progress`` is called with messages about
    slow steps.

    Raises CaptureError, also if ``target`` exists.
    """
    if os.path.lexists(target):
        raise CaptureError(f"{target} already exists.", "Choose another name.")
    with Capture.open(source) as capture:
        pseudonymizer, last = Pseudonymizer(progress), capture.last
        connections = capture.connections()
        for connection in connections:
            pseudonymizer.learn_leg(connection.leg)
        for record in _records(capture, last):
            pseudonymizer.learn(record)
        for record in _records(capture, last):
            pseudonymizer.learn_digests(record)
        try:
            return _write(_records(capture, last), connections, pseudonymizer, target, after=max(capture.first, 1) - 1)
        except BaseException:
            for path in (target, *(target.with_name(target.name + end) for end in ("-wal", "-shm"))):
                with contextlib.suppress(OSError):
                    path.unlink()
            raise


def _records(capture: Capture, last: int) -> Iterator[Record]:
    """Yield the records that existed at the start: a proxy may be writing, and the names in later ones were not
    learned."""
    return itertools.takewhile(lambda record: record.seq <= last, capture.records())


def _write(
    records: Iterable[Record],
    connections: Iterable[Connection],
    pseudonymizer: Pseudonymizer,
    target: Path,
    *,
    after: int,
) -> int:
    number = 0
    with Capture.create(target, after=after) as made:
        for connection in connections:
            made.note(Connection(pseudonymizer.leg(connection.leg), connection.closed))
        for number, record in enumerate(records, 1):
            if made.append(pseudonymizer.record(record)).seq != record.seq:
                raise InspectorError(
                    f"Records before record {record.seq} are missing, so record numbers would change.",
                    "First renumber them: `puppet-inspector merge CAPTURE -o FILE`.",
                )
            if number % _BATCH == 0:
                made.flush()
        made.set_meta([("shared", "secrets masked, names and addresses replaced, certificates issued again")])
    return number


class Pseudonymizer:
    """Replaces the names of a capture: learns them first, then replaces them. Pure except for the new keys."""

    def __init__(self, progress: Callable[[str], None] = lambda _: None) -> None:
        salt = secrets.token_bytes(32)
        self.names = Pseudonyms(salt)
        self.certificates = Reissuer(self.names.text, self.names.packed, salt, progress)
        self._learned: set[bytes] = set()

    # -- learning -----------------------------------------------------------------------------------------

    def learn(self, record: Record) -> None:
        """Learn the names in a record, and its certificates."""
        match record:
            case Exchange():
                found = endpoints.match(record.request.method, record.request.target)
                self.names.host((record.request.header("host") or "").partition(":")[0], "master")
                self.learn_leg(record.agent)
                if record.master:
                    self.learn_leg(record.master)
                self.names.host(found.certname if found else None, "agent")
                self.names.host(record.identity.certname if record.identity else None, "agent")
                (step,) = retrace([record])
                self._document(step.request)
                self._document(step.response)
                for message in (record.request, record.response):
                    for der in _ders(message) if message else ():
                        self._der(der, "agent")
            case Handshake():
                self.learn_leg(record.leg)

    def learn_leg(self, leg: Leg) -> None:
        self.names.host(leg.sni, "master")
        agent, master = (leg.peer_chain, leg.own_chain) if leg.side == "agent" else (leg.own_chain, leg.peer_chain)
        for der in master:
            self._der(der, "master")
        for der in agent:
            self._der(der, "agent")

    def _der(self, der: bytes, kind: NameKind) -> None:
        if der in self._learned:
            return
        self._learned.add(der)
        self.certificates.learn(der)
        with contextlib.suppress(Malformed, ValueError):
            read = read_der(der)
            parsed = x509.load_der_x509_certificate(der)
            for attribute in (*parsed.subject, *parsed.issuer):
                value = attribute.value if isinstance(attribute.value, str) else attribute.value.decode("latin-1")
                if attribute.oid not in (NameOID.COMMON_NAME, NameOID.COUNTRY_NAME):
                    self.names.subject_part(value)
            self._authority(parsed.issuer)
            if read.is_ca:
                self._authority(parsed.subject)
            else:
                self._hosts(read.common_name, read.alt_names, kind)

    def _authority(self, name: x509.Name) -> None:
        for attribute in name.get_attributes_for_oid(NameOID.COMMON_NAME):
            common_name = str(attribute.value)
            if ": " in common_name:  # Puppet CA: master.example.com
                self.names.host(common_name.rpartition(": ")[2], "master")
            self.names.authority(common_name)

    def _hosts(self, name: str | None, alt_names: Iterable[str], kind: NameKind) -> None:
        self.names.host(name, kind)
        for alt_name in alt_names:
            sort, _, value = alt_name.partition(":")
            if sort == "DNS":
                self.names.host(value, kind)

    def _document(self, document: d.Document | None) -> None:
        match document:
            case d.CatalogRequest(facts=d.Facts() as facts):
                self._document(facts)
            case d.Facts():
                self.names.host(document.name, "agent")
                self.names.facts(document.values)
            case d.Node():
                self.names.host(document.name, "agent")
                self.names.facts(document.parameters or {})
            case d.Catalog():
                self.names.host(document.name, "agent")
            case d.Report():
                self.names.host(document.host, "agent")
            case d.CertificateRequest():
                self._hosts(document.common_name, document.alt_names, "agent")
            case d.CertificateStatus():
                self.names.host(document.name, "agent")
            case d.CertificateStatuses():
                for certificate in document.certificates:
                    self.names.host(certificate.name, "agent")

    def learn_digests(self, record: Record) -> None:
        """Learn the new digests of contents and certificates."""
        match record:
            case Exchange():
                masked = redact.exchange(record)
                for before, after in ((record.request, masked.request), (record.response, masked.response)):
                    if before and after and before.body and _is_content(record):
                        self._contents(before, after)
                    for der in _ders(before) if before else ():
                        self._fingerprints(der)
                for leg in (record.agent, record.master):
                    for der in (*leg.peer_chain, *leg.own_chain) if leg else ():
                        self._fingerprints(der)
            case Handshake():
                for der in (*record.leg.peer_chain, *record.leg.own_chain):
                    self._fingerprints(der)

    def _fingerprints(self, der: bytes) -> None:
        made = self.certificates.made(der)
        for digest in ("sha256", "sha1", "md5", "sha512"):
            old, new = fingerprint(der, digest), fingerprint(made, digest)
            self.names.digest(old.replace(":", ""), new.replace(":", ""))

    def _contents(self, before: Message, after: Message) -> None:
        old, masked = _plain(before), _plain(after)
        new = self._content(masked)
        if new == old:
            return
        for algorithm in files.DIGESTS:
            digest = files.digest(new, algorithm) or ""
            for content in (old, masked):
                self.names.digest(files.digest(content, algorithm) or "", digest)

    # -- replacing ----------------------------------------------------------------------------------------

    def record(self, record: Record) -> Record:
        """Return a record without secrets, with pseudonyms."""
        match masked := redact.redacted(record):
            case Exchange():
                response, identity = masked.response, masked.identity
                content = _is_content(masked)
                return dataclasses.replace(
                    masked,
                    agent=self.leg(masked.agent),
                    master=self.leg(masked.master) if masked.master else None,
                    request=self._message(masked.request, content=content),
                    response=self._message(response, content=content) if response else None,
                    identity=dataclasses.replace(
                        identity,
                        certname=self._text(identity.certname) if identity.certname else None,
                        reason=self._text(identity.reason) if identity.reason else None,
                    )
                    if identity
                    else None,
                    error=self._text(masked.error) if masked.error else masked.error,
                )
            case Handshake():
                return dataclasses.replace(
                    masked,
                    leg=self.leg(masked.leg),
                    reason=self._text(masked.reason),
                    culprits=tuple(map(self._text, masked.culprits)),
                )
            case Gap():
                return dataclasses.replace(masked, reason=self._text(masked.reason))

    def leg(self, leg: Leg) -> Leg:
        masked = redact.leg(leg)
        return dataclasses.replace(
            masked,
            id=self._text(masked.id),
            address=self.names.address(masked.address) if masked.address else masked.address,
            sni=self._text(masked.sni) if masked.sni else masked.sni,
            peer_chain=tuple(map(self.certificates.made, masked.peer_chain)),
            own_chain=tuple(map(self.certificates.made, masked.own_chain)),
        )

    def _message[M: Message](self, message: M, *, content: bool) -> M:
        plain = _plain(message)
        new = self._content(plain) if content else self._body(plain, rewrite.media(message))
        body = message.body if new == plain else rewrite.encoded(message, new) if _packed(message) else new
        headers = self._headers(message.headers, len(body) - len(message.body))
        digest = message.digest if body == message.body else ""
        changed = dataclasses.replace(message, headers=headers, body=body, digest=digest)
        if isinstance(changed, Request):
            path, mark, query = changed.target.partition("?")
            query = self._body(query.encode("latin-1", "replace"), rewrite.FORM).decode("latin-1") if query else ""
            changed = dataclasses.replace(changed, target=f"{self._text(path)}{mark}{query}")
        return changed

    def _headers(self, headers: Headers, longer: int) -> Headers:
        return tuple((name, self._header(rewrite.promised(name, value, longer))) for name, value in headers)

    def _header(self, value: str) -> str:
        if "-----BEGIN" in value and "%" in value:  # a certificate, as passed on by a TLS-terminating proxy
            return quote(self._text(unquote(value)), safe="")
        return self._text(value)

    def _content(self, plain: bytes) -> bytes:
        """Return a file's content. Its digest was learned: later names must not change the result."""
        return self._rewritten(rewrite.text(plain), plain)

    def _body(self, plain: bytes, media: str) -> bytes:
        return self._rewritten(rewrite.anything(plain, media), plain)

    def _rewritten(self, tree: rewrite.Tree, plain: bytes) -> bytes:
        for leaf in rewrite.leaves(tree.top):
            if isinstance(leaf.value, str) and (new := self._text(leaf.value)) != leaf.value:
                leaf.new = new
        if not tree.changed:
            return plain
        try:
            return tree.write()
        except (bodies.Unreadable, *bodies.WRONG):
            return self._text(plain.decode("latin-1")).encode("latin-1", "replace")

    def _text(self, value: str) -> str:
        if "-----BEGIN " not in value:
            return self.names.text(value)
        parts, at = [], 0
        for found in _PEM.finditer(value):
            parts += [self.names.text(value[at : found.start()]), self._block(found)]
            at = found.end()
        return "".join([*parts, self.names.text(value[at:])])

    def _block(self, found: regex.Match[str]) -> str:
        der = _decoded(found[3]) if found[2] == found[5] else None
        if der is None:
            return found[0]
        lines = regex.findall(".{1,64}", base64.b64encode(self.certificates.made(der)).decode())
        return found[1] + "\n".join(lines) + found[4]


def _is_content(exchange: Exchange) -> bool:
    found = endpoints.match(exchange.request.method, exchange.request.target)
    return found is not None and found.endpoint.kind in _CONTENT


def _plain(message: Message) -> bytes:
    try:
        return bodies.plain(message)
    except bodies.Unreadable:
        return message.body


def _packed(message: Message) -> bool:
    """Whether the Content-Encoding is correct."""
    try:
        bodies.plain(message)
    except bodies.Unreadable:
        return False
    return True


def _decoded(text: str) -> bytes | None:
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return None


def _ders(message: Message) -> Iterator[bytes]:
    """Yield the DER of what a body contains as PEM."""
    plain = _plain(message)
    if b"-----BEGIN " not in plain:
        return
    for leaf in rewrite.leaves(rewrite.anything(plain, rewrite.media(message)).top):
        for found in _PEM.finditer(leaf.value) if isinstance(leaf.value, str) else ():
            if (der := _decoded(found[3])) is not None:
                yield der
