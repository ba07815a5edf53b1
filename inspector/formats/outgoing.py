"""What leaves a capture: every record of a shared capture and of an export passes through here.

Closed unless known: secrets are masked (``redact``, ``known``), and of the rest only what is known to be harmless
stays (``harmless``). What is needed for runs, findings and the structure of catalogs does; the values of facts and
parameters, the contents of files and the texts of logs do not, unless the user opens them. Where names are replaced too
(``pseudonyms``), certificates are issued again (``reissue``). Digests are adapted to the new contents.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import hashlib
import itertools
import secrets
from collections import Counter
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm

from inspector import regex
from inspector.analysis import limits
from inspector.errors import InspectorError
from inspector.formats import der_values, embedded
from inspector.formats.learning import Knowledge, Learner
from inspector.formats.pseudonyms import Pseudonyms
from inspector.formats.reissue import Reissuer, identifiers, parse
from inspector.model import Exchange, Gap, Handshake, Request, Response
from inspector.privacy import patterns, redact, rewrite
from inspector.privacy import secrets as marks
from inspector.privacy.harmless import Harmless
from inspector.privacy.known import KnownSecrets
from inspector.privacy.rewrite import Fields, Leaf
from inspector.progress import unwatched, watched
from inspector.protocol import bodies, endpoints, files, kinds
from inspector.protocol.der import places
from inspector.protocol.pem import guard
from inspector.protocol.x509 import Malformed, fingerprint, key_id
from inspector.text import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from inspector.capture.store import Capture
    from inspector.model import Headers, Leg, Message, Record
    from inspector.privacy.rewrite import ValueNode
    from inspector.progress import Watch
    from inspector.protocol.kinds import Kind


class Content(StrEnum):
    """A kind of content that a user can open."""

    FACTS = "facts"
    PARAMETERS = "parameters"
    LOGS = "logs"
    FILES = "files"
    OTHER = "other"


ALL = frozenset(Content)
_NOUNS = {
    Content.FACTS: ("value of a fact", "values of facts"),
    Content.PARAMETERS: ("value of a parameter", "values of parameters"),
    Content.LOGS: ("text of a log or an error", "texts of logs and errors"),
    Content.FILES: ("content of a file", "contents of files"),
    Content.OTHER: ("other value", "other values"),
}
"""What is withheld, one and several."""
_CONTENT = (*kinds.CONTENT, kinds.Kind.BACKUP)
"""Kinds of requests whose bodies have digests that other requests contain."""
_CIPHER = regex.compile(
    r"(?:TLS|SSL|ECDHE?|DHE?|EDH|A(?:EC)?DH|RSA|DSS|ECDSA|PSK|SRP|KRB5|AES(?:128|256)?|CAMELLIA(?:128|256)?|ARIA(?:128|256)?"
    r"|CHACHA20|POLY1305|RC[24]|I?DES|3DES|EDE3?|CBC3?|GCM|CCM8?|SHA(?:1|256|384|512)?|MD5|NULL|EXP(?:ORT)?(?:1024)?|SEED|IDEA"
    r"|WITH|GOST(?:94|2001|2012|89)?|128|256|40|56|8|[-_])+"
)
"""Names of cipher suites."""
_VERSION = regex.compile(r"D?(?:TLS|SSL)v?[0-9](?:\.[0-9])?")
_ALERT = regex.compile(
    r"(?:access|application|bad|ca|canceled|certificate|close|decode|decompression|decrypt|decryption|denied|error"
    r"|expired|export|extension|failed|failure|fallback|handshake|hash|identity|illegal|inappropriate|insufficient"
    r"|internal|mac|message|missing|name|no|notify|overflow|parameter|protocol|psk|record|renegotiation|required"
    r"|response|restriction|revoked|security|status|unexpected|unknown|unobtainable|unrecognized|unsupported|user|value"
    r"|version|_)+"
)
"""Names of TLS alerts."""
_HEADERS = frozenset(
    """
    accept accept-encoding accept-language accept-ranges age allow cache-control connection content-disposition
    content-encoding content-language content-length content-range content-type date etag expect expires from host
    if-modified-since if-none-match keep-alive last-modified link location max-forwards pragma range referer retry-after
    server strict-transport-security te trailer transfer-encoding upgrade user-agent vary via warning x-forwarded-for
    x-forwarded-host x-forwarded-proto x-forwarded-port x-puppet-version x-puppet-compiler-name x-puppet-compiler-uri
    x-puppetdb-version x-openvox-version x-runtime x-powered-by x-cache x-request-id x-content-type-options
    x-frame-options content-security-policy forwarded proxy-connection www-authenticate x-real-ip x-client-verify
    x-client-dn x-client-cn x-client-cert x-ssl-subject ssl-client-verify ssl-client-dn
    """.split()  # noqa: SIM905 - names in a row are easier to read
)
"""Headers whose values are texts of the protocol; of all others only the names leave."""
_UNQUOTED = "/:"
"""What stays as it is in a path (RFC 3986, 3.3): a CONNECT has the server's port behind a colon."""
_PIECES = 16
"""Pieces of a path at which a secret may begin that has slashes in it."""
_DESCRIBED = frozenset({"previous_value", "desired_value", "historical_value"})
_REMEMBERED = 1024
"""Bodies that are remembered as they leave."""
_CACHED, _SHORT = 100_000, 200
"""Texts whose result is remembered, and their maximum length."""
_FAILURES = frozenset({"err", "error", "crit", "alert", "emerg"})
"""Levels of a log."""
_VALUES = frozenset({"parameters", "values", *_DESCRIBED})
"""The fields with free values: numbers in them are free too."""


def summary(withheld: Counter[Content]) -> str:
    """Return how much was withheld, and how to open it; an empty text if nothing was."""
    found = [content for content in Content if withheld[content]]
    if not found:
        return ""
    numbers = ", ".join(plural(withheld[content], *_NOUNS[content]) for content in found)
    kinds = ",".join(content for content in found if content is not Content.OTHER)
    openings = (
        f"--with {kinds} opens these kinds, --with all everything but secrets" if kinds else "--with all opens them"
    )
    return f"withheld: {numbers} ({openings})"


def records_until(capture: Capture, last: int) -> Iterator[Record]:
    """Yield the records of a capture up to a number: a proxy may be writing more."""
    return itertools.takewhile(lambda record: record.seq <= last, capture.records())


class _Results:
    """What short texts become as they leave, until something is learned: then it may be something else."""

    def __init__(self) -> None:
        self._found: dict[tuple[str | bool, ...], tuple[Any, int]] = {}
        """With how many values were withheld, by what was closed and how."""
        self.get = self._found.get
        self.learned = 0
        """How often something was learned."""

    def add(self, key: tuple[str | bool, ...], found: tuple[Any, int], learned: int) -> None:
        """Add a result, unless something was learned by looking at it."""
        if learned == self.learned and sum(len(part) for part in key if isinstance(part, str)) <= _SHORT:
            if len(self._found) >= _CACHED:
                self._found.clear()
            self._found[key] = found

    def forget(self) -> None:
        """Forget all of them: something was learned."""
        self.learned += 1
        self._found.clear()


class _Given(NamedTuple):
    """Everything that decides how a body is closed, besides what was learned."""

    plain: bytes
    media: str
    content: Content
    kind: Kind | None
    prose: bool


def secrets_of(record: Record) -> set[str]:
    """What a record marks as secret: to be added to ``Outgoing.known`` before another one leaves that may quote it."""
    return redact.known(record) if isinstance(record, Exchange) else set()


class Outgoing:
    """Replaces what must not leave. It learns all records first: a name or a secret of one may be in another."""

    def __init__(
        self, *, pseudonyms: bool, opened: frozenset[Content] = frozenset(), salt: bytes | None = None
    ) -> None:
        """``pseudonyms`` replaces names too, as strangers may see it; without it the texts of errors stay as well.
        ``opened`` is what leaves though it is free. Stand-ins of equal values are equal under the same ``salt``."""
        salt = salt or secrets.token_bytes(32)
        self._pseudonyms, self._opened, self._salt = pseudonyms, opened, salt
        self._results = _Results()
        forget = self._results.forget
        self.names = Pseudonyms(salt, forget)
        self.harmless = Harmless(salt, self.names.given if pseudonyms else self.names.known, forget)
        self.known = KnownSecrets(learned=forget)
        self.certificates = Reissuer(self._text, self.names.packed, salt)
        self._searched = redact.SearchedBodies()
        self._learner = Learner(Knowledge(self.names, self.harmless, self.known, self.certificates, self._searched))
        for algorithm in files.DIGESTS:  # nothing is withheld of an empty file
            empty = files.digest(b"", algorithm) or ""
            self._digest(empty, empty)
        self._fingerprinted: set[bytes] = set()
        """Certificates, and what identifies contents, whose digests were learned."""
        self._texts: dict[bytes, bytes] = {}
        self._bodies: dict[_Given, tuple[bytes, Counter[Content]]] = {}
        """Bodies as they leave, with what was withheld of them."""
        self.unmasked: dict[int, str] = {}
        """Why a record cannot leave, by its number."""
        self.withheld: Counter[Content] = Counter()
        """The number of values that were withheld, by what opens them."""
        self.leg = lru_cache(maxsize=1024)(self._leg)

    # -- learning -----------------------------------------------------------------------------------------

    @classmethod
    def of(
        cls,
        *captures: tuple[Capture, int],
        pseudonyms: bool,
        opened: frozenset[Content] = frozenset(),
        watch: Watch = unwatched,
    ) -> Outgoing:
        """Learn whole captures, each up to a record number: equal values of theirs stay equal. Raises CaptureError."""
        made = cls(pseudonyms=pseudonyms, opened=opened)
        for capture, _ in captures:
            for connection in capture.connections():
                made._learner.leg(connection.leg)

        def records() -> Iterator[Record]:
            for capture, last in captures:
                yield from records_until(capture, last)

        made.learn(records, watch, sum(capture.count() for capture, _ in captures))
        return made

    def learn(self, records: Callable[[], Iterable[Record]], watch: Watch = unwatched, total: int = 0) -> None:
        """Learn all records, of which there are ``total``; they are read twice."""
        self._bodies.clear()
        for what, *steps in (
            ("learning the names in record", self._learner.names, self._learner.secrets),
            ("learning the digests in record", self._learn_digests),
        ):
            for record in watched(records(), watch, total, what):
                for step in steps:
                    self._attempt(step, record)
        self.withheld.clear()  # what was only looked at

    def _learn_digests(self, record: Record) -> None:
        """Learn the new digests of contents and certificates."""
        if isinstance(record, Exchange):
            messages = [message for message in (record.request, record.response) if message]
            if any(message.body and _is_content(record, message) for message in messages):
                masked = redact.exchange(record, self._searched)
                for before, after in ((record.request, masked.request), (record.response, masked.response)):
                    if before and after and before.body and _is_content(record, before):
                        self._contents(before, after)
            for message in messages:
                for der in embedded.ders(message):
                    self._fingerprints(der)
        for leg in record.legs:
            for der in (*leg.peer_chain, *leg.own_chain):
                self._fingerprints(der)

    def _fingerprints(self, der: bytes) -> None:
        if der in self._fingerprinted:
            return
        self._fingerprinted.add(der)
        made = self._issued(der)
        for digest in ("sha256", "sha1", "md5", "sha512"):
            old, new = fingerprint(der, digest), fingerprint(made, digest)
            self._digest(old.replace(":", ""), new.replace(":", ""))
        if (key := _key(der)) and (other := _key(made)):
            self._digest(key, other)

    def _contents(self, before: Message, after: Message) -> None:
        old, masked = embedded.plain(before), embedded.plain(after)
        given = hashlib.sha256(old).digest() + hashlib.sha256(masked).digest()
        if given in self._fingerprinted:
            return
        self._fingerprinted.add(given)
        new = self._content(masked)
        for algorithm in files.DIGESTS:
            digest = files.digest(new, algorithm) or ""
            for content in (old, masked):
                self._digest(files.digest(content, algorithm) or "", digest)

    def _digest(self, old: str, new: str) -> None:
        self.names.digest(old, new)
        self.harmless.digest(old, new)

    # -- records ------------------------------------------------------------------------------------------

    def leaving(self, record: Record) -> Record | None:
        """Return a record as it may leave; None if it cannot be masked: ``unmasked`` has the reason."""
        made: Record | None = None if record.seq in self.unmasked else self._attempt(self.record, record)
        return made

    def _attempt[T](self, work: Callable[[Record], T], record: Record) -> T | None:
        try:
            limits.begin(limits.SECONDS)
            return work(record)
        except limits.TooLong as error:
            self.unmasked[record.seq] = str(error)
        except Exception as error:  # noqa: BLE001 - a mistake of ours: what cannot be masked does not leave
            self.unmasked[record.seq] = f"masking it failed ({type(error).__name__})"
        finally:
            limits.end()
        return None

    def record(self, record: Record) -> Record:
        """Return a record as it may leave."""
        match masked := redact.redacted(record, self._searched):
            case Exchange():
                identity = masked.identity
                return dataclasses.replace(
                    masked,
                    agent=self.leg(masked.agent),
                    master=self.leg(masked.master) if masked.master else None,
                    request=self._message(masked, masked.request),
                    response=self._message(masked, masked.response) if masked.response else None,
                    identity=dataclasses.replace(
                        identity,
                        certname=self._text(identity.certname) if identity.certname else None,
                        reason=self._reason(identity.reason) if identity.reason else None,
                    )
                    if identity
                    else None,
                    error=self._reason(masked.error) if masked.error else masked.error,
                    stripped=tuple(map(self._text, masked.stripped)),
                    injected=self._reason(masked.injected),
                    added=self._reason(masked.added),
                )
            case Handshake():
                return dataclasses.replace(
                    masked,
                    leg=self.leg(masked.leg),
                    reason=self._reason(masked.reason),
                    alert=self._if_unknown(masked.alert, _ALERT),
                    culprits=tuple(map(self._reason, masked.culprits)),
                    injected=self._reason(masked.injected),
                )
            case Gap():
                return dataclasses.replace(masked, reason=self._reason(masked.reason))

    def _leg(self, leg: Leg) -> Leg:
        return dataclasses.replace(
            leg,
            id=self._text(leg.id),
            address=self.names.address(leg.address) if leg.address and self._pseudonyms else leg.address,
            sni=self._text(leg.sni) if leg.sni else leg.sni,
            node=self._text(leg.node) if leg.node else leg.node,
            place=self._text(leg.place) if leg.place else leg.place,
            tls_version=self._if_unknown(leg.tls_version, _VERSION),
            cipher=self._if_unknown(leg.cipher, _CIPHER),
            alpn=self._text(leg.alpn) if leg.alpn else leg.alpn,
            peer_chain=tuple(map(self._issued, leg.peer_chain)),
            own_chain=tuple(map(self._issued, leg.own_chain)),
        )

    def _if_unknown(self, text: str | None, known: regex.Pattern[str]) -> str | None:
        """Return a text as it is if it is one of the protocol's names."""
        return text if text is None or known.fullmatch(text) else self._text(text)

    def sentence(self, text: str) -> str:
        """Return a finding's sentence as it may leave."""
        return self._reason(redact.text(text))

    # -- messages -----------------------------------------------------------------------------------------

    def _message[M: Message](self, exchange: Exchange, message: M) -> M:
        found = endpoints.match(exchange.request.method, exchange.request.target)
        plain, packed = embedded.unpacked(message)
        if _is_content(exchange, message):
            new = self._content(plain)
        else:
            new = self._body(message, plain, found.endpoint.kind if found else None)
        body = message.body if new == plain else rewrite.encoded(message, new) if packed else new
        headers = self._headers(message.headers, len(body) - len(message.body))
        digest = message.digest if body == message.body else ""
        line: dict[str, Any] = {}
        if isinstance(message, Request):
            line["method"] = self._text(message.method)
            line["target"] = self._once(("target", message.target), Content.OTHER, self._target, message.target)
        if isinstance(message, Response):
            line["reason"] = self._reason(message.reason)
        version = self._text(message.http_version)
        return dataclasses.replace(message, headers=headers, body=body, digest=digest, http_version=version, **line)

    def _target(self, target: str) -> str:
        path, mark, query = target.partition("?")
        pieces = path.split("/")
        whole = [unquote(piece) for piece in pieces]
        ends = ("/".join(whole[at:]) for at in range(min(len(whole), _PIECES)))
        if any(self.known.masked(end) != end for end in ends):  # in several pieces, perhaps
            pieces = [quote(self.harmless.text(self._renamed(piece)), _UNQUOTED) for piece in whole]
        path = "/".join(
            piece if (new := self._text(plain := unquote(piece))) == plain else quote(new, _UNQUOTED)
            for piece in pieces
        )
        if query:
            tree = rewrite.anything(query.encode("latin-1", "replace"), rewrite.FORM, self._text)
            query = self._rewritten(tree, query.encode("latin-1", "replace"), Content.OTHER, None).decode("latin-1")
        return f"{path}{mark}{query}"

    def _headers(self, headers: Headers, longer: int) -> Headers:
        return tuple(self._pair(name, rewrite.promised(name, value, longer)) for name, value in headers)

    def _pair(self, name: str, value: str) -> tuple[str, str]:
        return self._once(("header", name, value), Content.OTHER, self._header, name, value)

    def _once[*Given, New](
        self, key: tuple[str | bool, ...], content: Content, work: Callable[[*Given], New], *given: *Given
    ) -> New:
        """Return what something becomes; only what is of this content may be withheld of it."""
        found = self._results.get(key)
        if found is None:
            learned, before = self._results.learned, self.withheld[content]
            new = work(*given)
            found = new, self.withheld[content] - before
            self._results.add(key, found, learned)
        elif found[1]:
            self.withheld[content] += found[1]
        made: New = found[0]
        return made

    def _header(self, name: str, value: str) -> tuple[str, str]:
        return self._text(name), self._header_value(name, value)

    def _header_value(self, name: str, value: str) -> str:
        if "-----BEGIN" in value and "%" in value:  # a certificate, as passed on by a TLS-terminating proxy
            return quote(self._text(unquote(value)), safe="")
        if name.strip().lower() in _HEADERS or marks.credential(name) or Content.OTHER in self._opened:
            return self._text(value)
        new = self.harmless.stand_in(value) if value else value
        self.withheld[Content.OTHER] += bool(value)
        return new

    def _content(self, plain: bytes) -> bytes:
        """Return a file's content. Its digest was learned: later names must not change the result."""
        if Content.FILES in self._opened:
            return self._rewritten(rewrite.text(plain), plain, Content.FILES, None)
        self.withheld[Content.FILES] += bool(plain)
        return self.harmless.content(plain)

    def _body(self, message: Message, plain: bytes, kind: Kind | None) -> bytes:
        if not plain:
            return plain
        content = _content_of(message, kind)
        prose = content is Content.LOGS and not self._pseudonyms and isinstance(message, Response)
        given = _Given(plain, rewrite.media(message), content, kind, prose)
        return self._repeated(given) if len(plain) <= redact.REPEATED else self._closed_body(given)

    def _repeated(self, given: _Given) -> bytes:
        """Close a body that many agents may receive: each once."""
        found = self._bodies.pop(given, None)
        if found is None:
            before = self.withheld.copy()
            found = self._closed_body(given), self.withheld - before
        else:
            self.withheld += found[1]
        self._bodies[given] = found
        if len(self._bodies) > _REMEMBERED:
            del self._bodies[next(iter(self._bodies))]
        return found[0]

    def _closed_body(self, given: _Given) -> bytes:
        tree = rewrite.anything(given.plain, given.media, self._text)
        return self._rewritten(tree, given.plain, given.content, given.kind, prose=given.prose)

    def _rewritten(
        self, tree: rewrite.Tree, plain: bytes, content: Content, kind: Kind | None, *, prose: bool = False
    ) -> bytes:
        self._close(tree.top, content, kind, prose=prose)
        if not tree.changed:
            return plain
        try:
            return tree.write()
        except (bodies.Unreadable, *bodies.WRONG):
            return self._closed(plain.decode("latin-1"), content).encode("latin-1", "replace")

    def _close(self, top: ValueNode, content: Content, kind: Kind | None, *, prose: bool) -> None:
        """Replace the leaves of a body."""
        waiting: list[tuple[ValueNode, Content, bool, bool]] = [(top, content, kind is None, prose)]
        visited: set[int] = set()
        while waiting:
            node, content, free, prose = waiting.pop()
            if isinstance(node, Leaf):
                value = node.value
                new = (
                    self._closed(value, content, prose=prose)
                    if isinstance(value, str)
                    else self._leaf(value, content, free=free)
                )
                node.new = None if new is value or new == value else new
                continue
            if id(node) in visited:
                continue
            visited.add(id(node))
            if not isinstance(node, Fields):
                waiting += [(child, content, free, prose) for child in node]
                continue
            loud = prose or (kind is kinds.Kind.REPORT and not self._pseudonyms and _failed(node))
            for key, value in node.pairs:
                name = str(key.value)
                key.new = None if (written := self._key(name)) == name else written
                of = Content.PARAMETERS if name in _DESCRIBED else content
                if content is Content.FACTS and node is top and name != "facts" and node.get("facts"):
                    of = Content.OTHER  # a field of the form that requests a catalog
                waiting.append((value, of, free or name in _VALUES, loud and name == "message"))

    def _leaf(self, value: Any, content: Content, *, free: bool) -> str | float | None:
        """Return what a scalar that is no text becomes."""
        match value:
            case None | bool():
                return value
            case int() | float():
                if not free or content in self._opened:
                    return value
                new = self.harmless.number(value)
                self.withheld[content] += new != value
                return new
        return self.harmless.stand_in(repr(value))

    def _key(self, name: str) -> str:
        return self._once(("key", name), Content.OTHER, self._closed_key, name)

    def _closed_key(self, name: str) -> str:
        renamed = self._renamed(name)
        return renamed if self._opened == ALL else self.harmless.key(renamed)

    # -- texts --------------------------------------------------------------------------------------------

    def _text(self, value: str) -> str:
        return self._closed(value, Content.OTHER)

    def _reason(self, value: str) -> str:
        """Return the text of an error, which stays in an export."""
        return self._closed(value, Content.OTHER, prose=not self._pseudonyms)

    def _closed(self, value: str, content: Content, *, prose: bool = False) -> str:
        opened = content in self._opened
        return self._once((prose, opened, value), content, self._closed_text, value, content, prose)

    def _closed_text(self, value: str, content: Content, prose: bool) -> str:  # noqa: FBT001 - see _once
        if "-----BEGIN " not in value:
            return self._harmless(value, content, prose=prose)
        parts, at = [], 0
        for found in embedded.PEM.finditer(value):
            parts += [self._harmless(value[at : found.start()], content, prose=prose), self._block(found, content)]
            at = found.end()
        return "".join([*parts, self._harmless(value[at:], content, prose=prose)])

    def _harmless(self, value: str, content: Content, *, prose: bool) -> str:
        renamed = self._renamed(value)
        if content in self._opened:
            return renamed
        new = self.harmless.text(renamed, prose=prose)
        self.withheld[content] += new != renamed
        return new

    def _renamed(self, value: str) -> str:
        value = self.known.masked(value)
        return self.names.text(value) if self._pseudonyms else value

    def _block(self, found: regex.Match[str], content: Content) -> str:
        der = embedded.decoded(found[3]) if found[2] == found[5] else None
        if der is None:
            return found[1] + self._harmless(found[3], content, prose=False) + found[4]
        lines = regex.findall(".{1,64}", base64.b64encode(self._issued(der)).decode())
        return found[1] + "\n".join(lines) + found[4]

    def _issued(self, der: bytes) -> bytes:
        """Return a certificate, a signing request or a CRL as it may leave."""
        if self._pseudonyms:
            return self.certificates.made(der)
        if der not in self._texts:
            self._texts[der] = self._anew(patterns.der(der))
        return self._texts[der]

    def _anew(self, der: bytes) -> bytes:
        """Return a certificate with harmless texts; if a text changed, its signature no longer fits."""
        try:
            known = {identifier: identifier for identifier in identifiers(guard(parse, der))}
        except Malformed:
            return self._text(der.decode("latin-1")).encode("latin-1", "replace")
        changes = der_values.Changes(self._text, bytes, self._salt, known)
        outer = places(der, 0, len(der))[0]
        inner, *rest = places(der, *outer[2:])
        made = der_values.rewritten(der, inner, changes)
        return (
            der if made == der[inner[0] : inner[3]] else der_values.value(outer[1], made + der[rest[0][0] : outer[3]])
        )


def alone(record: Record, salt: bytes) -> Record:
    """Return a record as an export has it, made without the knowledge of any other one. Contents of files are left out:
    other records may have their digests, and may have left already. Raises InspectorError if it cannot be masked."""
    outgoing = Outgoing(pseudonyms=False, salt=salt)
    if isinstance(record, Exchange):
        record = _without_content(record)
    outgoing.learn(lambda: [record])
    if (made := outgoing.leaving(record)) is None:
        raise InspectorError(outgoing.unmasked[record.seq])
    return made


def leg_alone(leg: Leg, salt: bytes) -> Leg:
    """Return a connection as an export has it, made without the knowledge of any record."""
    outgoing = Outgoing(pseudonyms=False, salt=salt)
    outgoing._learner.leg(leg)
    return outgoing.leg(redact.leg(leg))


def _without_content(exchange: Exchange) -> Exchange:
    request, response = exchange.request, exchange.response
    if _is_content(exchange, request):
        request = _emptied(request)
    if response is not None and _is_content(exchange, response):
        response = _emptied(response)
    return dataclasses.replace(exchange, request=request, response=response)


def _emptied[M: Message](message: M) -> M:
    """Return a message without its body, as if that was too large to be recorded (`puppet_keep_body`)."""
    return dataclasses.replace(message, body=b"", lost=message.size, digest="")


def _key(der: bytes) -> str | None:
    """Return the digest of the public key in a certificate or a signing request."""
    with contextlib.suppress(Malformed, ValueError, TypeError, UnsupportedAlgorithm):
        read = parse(der)
        return None if isinstance(read, x509.CertificateRevocationList) else key_id(read.public_key())
    return None


def _failed(node: Fields) -> bool:
    """Whether a mapping is a line of a log about an error."""
    level = node.get("level")
    return isinstance(level, Leaf) and str(level.value).lstrip(":").lower() in _FAILURES


def _content_of(message: Message, kind: Kind | None) -> Content:
    """Return what a body consists of."""
    if isinstance(message, Response):
        if message.status >= 400:
            return Content.LOGS
        return Content.PARAMETERS if kind in (kinds.Kind.CATALOG, kinds.Kind.NODE) else Content.OTHER
    if kind in (kinds.Kind.CATALOG, kinds.Kind.FACTS):
        return Content.FACTS
    return Content.LOGS if kind is kinds.Kind.REPORT else Content.OTHER


def _is_content(exchange: Exchange, message: Message) -> bool:
    if isinstance(message, Response) and message.status >= 400:
        return False
    found = endpoints.match(exchange.request.method, exchange.request.target)
    return found is not None and found.endpoint.kind in _CONTENT
