"""Redaction of records: everything that is exported passes through it.

Masked are values that Puppet marks as Sensitive, parameters and facts whose name means a secret, the attributes of
signing requests for the CA, private keys, tokens and credentials in headers; and the same values everywhere else in the
record, unless they are common words. A body keeps its format (JSON is JSON, gzip is gzip) and every other byte; a body
that cannot be parsed but may contain a secret is masked whole. Certificates and signing requests with masks have
invalid signatures.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import msgspec

from inspector import regex
from inspector.lazily import Lazily
from inspector.model import Exchange, Gap, Handshake, Message, Request, Response
from inspector.privacy import names, patterns, rewrite, secrets, written
from inspector.privacy.known import QuotedSecrets
from inspector.privacy.names import MASK
from inspector.privacy.rewrite import Fields, Leaf
from inspector.protocol import bodies, endpoints, files, rich
from inspector.protocol.kinds import Kind
from inspector.remembering import remembered

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from inspector.model import Headers, Leg, Record
    from inspector.privacy.rewrite import Tree, ValueNode
    from inspector.protocol import x509
else:
    x509 = Lazily("inspector.protocol.x509")

_WORK = 2_000_000_000
"""Bytes that are searched for all the secrets of a record together: this takes some seconds."""
_SEARCHED = 50_000
"""Bodies without secrets that are remembered."""
_LONG, _SHORT = 8, 5
"""Minimum length of a word, and of other values, to be masked wherever it occurs."""
_SIGNED = regex.compile(r"((?:^|[&;])(?:sig|signature|x-amz-signature)=)[^&;#]+", regex.IGNORECASE)
"""Parameters of signed URLs: anyone who has such a URL can send its request."""
_ESCAPED = regex.compile(rb"\\[uU]00[2-7]")
_QUOTED = 8 * 2**20
"""Size of a body that is searched for secrets that a finding may quote; more would block the analysis for seconds."""
_LARGE = 2000
"""Characters of a value whose size is judged (R11)."""
_PIECE = regex.compile(r"[^\s'\"`<>=,;]{8,}")
"""A piece of a text, between signs at which a secret may begin or end."""
_DESCRIBING = ("property", "name")
_DESCRIBED = (
    "previous_value", "desired_value", "historical_value", "old_value", "new_value", "default_literal",
    "default_source", "value",
)  # fmt: skip
"""Fields that describe a property or parameter which another field names."""


REPEATED = 32 * 1024
"""Bytes of a body that many agents may receive: what it contains is remembered, for a thousand of them."""
_FIELD = regex.compile(r"[A-Za-z_]{0,40}\d?")
"""The key of a mapping that is a plain word."""


class SearchedBodies:
    """The bodies in which no secret was found: they need not be read again for another pass over a capture."""

    def __init__(self) -> None:
        self._digests: set[bytes] = set()

    def add(self, plain: bytes, media: str) -> None:
        """Add a body without secrets, as long as there are few."""
        if len(self._digests) < _SEARCHED:
            self._digests.add(_digest(plain, media))

    def has(self, plain: bytes, media: str) -> bool:
        """Whether a body is known to contain no secret."""
        return bool(self._digests) and _digest(plain, media) in self._digests


def _digest(plain: bytes, media: str) -> bytes:
    return hashlib.sha256(media.encode("utf-8", "replace") + b"\0" + plain).digest()


def redacted(record: Record, searched: SearchedBodies | None = None) -> Record:
    """Return the record with a mask instead of every secret; the same object if there is none. Never raises."""
    match record:
        case Exchange():
            return exchange(record, searched)
        case Handshake():
            new: Record = dataclasses.replace(
                record, leg=leg(record.leg), reason=text(record.reason), culprits=tuple(map(text, record.culprits))
            )
        case Gap():
            new = dataclasses.replace(record, reason=text(record.reason))
    return record if new == record else new


def text(value: str) -> str:
    """Return a text (an error message, a line of a log) with masks instead of likely secrets."""
    return patterns.text(value)


def structure(value: Any) -> ValueNode:
    """Return decoded data as a tree, with masks as what is new."""
    top = rewrite.node(value)
    _mask(top, code=False)
    return top


def body(message: Message, known: Collection[str] = (), *, code: bool = False) -> bytes:
    """Return a message's body with masks, without its Content-Encoding if that can be decoded. ``known`` are secrets of
    the other message; ``code`` is a plugin's, as in ``patterns.text``."""
    part = _Part(message, code=code)
    return part.masked_plain({*part.known, *known})


def target(of: Request) -> str:
    """Return a request's target with masks."""
    return _Part(dataclasses.replace(of, body=b"")).masked(()).target


def exchange(of: Exchange, searched: SearchedBodies | None = None) -> Exchange:
    """Return an exchange without its secrets."""
    found = endpoints.match(of.request.method, of.request.target)
    code = found is not None and found.endpoint.kind is Kind.PLUGIN_CONTENT
    request = _Part(of.request, searched=searched)
    response = _Part(of.response, code=code, searched=searched) if of.response else None
    known = request.known | (response.known if response else set())
    masked_request, masked_response = request.masked(known), response.masked(known) if response else None
    agent, master = leg(of.agent), leg(of.master) if of.master else None
    masked_request = _filed(of, masked_request, masked_response)
    error = text(of.error) if of.error else of.error
    same = masked_request is of.request and masked_response is of.response
    if same and (agent, master, error) == (of.agent, of.master, of.error):
        return of
    return dataclasses.replace(
        of, agent=agent, master=master, request=masked_request, response=masked_response, error=error
    )


def known(of: Exchange, searched: SearchedBodies | None = None) -> set[str]:
    """Return the secrets of an exchange that are distinctive enough to be searched elsewhere."""
    found: set[str] = set()
    for message in (of.request, of.response):
        if message is None:
            continue
        found |= _Part(message, searched=searched).known
        for name, value in message.headers:
            if secrets.credential(name):
                words = regex.split(r"[\s;]+", value)
                parts = {value.strip(), *words, *(word.partition("=")[2] for word in words)}
                found |= {part for part in parts if telling(part, sure=True)}
    target = endpoints.match(of.request.method, of.request.target)
    if target is not None and target.endpoint.kind is Kind.CSR:
        for message in (of.request, of.response):
            with contextlib.suppress(x509.Malformed, bodies.Unreadable):
                document = x509.read_csr(bodies.plain(message)) if message is not None else None
                found |= {
                    secret
                    for secret in secrets.within(document)
                    if isinstance(secret, str) and telling(secret, sure=True)
                }
    return found


def quotable(of: Exchange, *, request: bool = True) -> frozenset[str]:
    """Return the secrets that a finding about an exchange may quote, each on one line as in findings: those of the
    request, if it was parsed, and those of a response that gives a reason for a refusal."""
    parts: list[Message] = [of.request] if request else []
    if of.response is not None and of.response.status >= 400:
        parts.append(of.response)
    read = [_Part(part) for part in parts if len(part.body) <= _QUOTED]
    known = {secret for part in read for secret in (*part.known, *part.written())}
    known.update(_lost(unquote(of.request.path), unquote(_path(of.request.path))))
    # Only the first line of a log message is quoted.
    lines = {" ".join(form.split()) for secret in known for form in (secret, secret.strip().partition("\n")[0])}
    return frozenset(line for line in lines if line in known or len(line) >= _LONG)


def quoted(message: str, known: Collection[str]) -> str:
    """Return a text with a mask instead of each secret, even if the secret was cut off. With the same frozenset again
    it takes little time."""
    return _quoted(frozenset(known)).masked(message) if known else message


_quoted: Callable[[frozenset[str]], QuotedSecrets] = lru_cache(maxsize=4)(QuotedSecrets)


def _filed(exchange: Exchange, request: Request, response: Message | None) -> Request:
    """Mask a filebucket request: its URL contains the digest of its content."""
    for before, after in ((exchange.request, request), (exchange.response, response)):
        if before is None or after is None or before.body == after.body:
            continue
        found = files.bucket_file(request.target, before.body)
        if found.sum and found.algorithm and found.verdict is files.ChecksumResult.RIGHT:
            digest = files.digest(after.body, found.algorithm)
            return dataclasses.replace(request, target=request.target.replace(found.sum, digest or "", 1))
    return request


@lru_cache(maxsize=1024)
def leg(of: Leg) -> Leg:
    """Return a connection without the preshared keys in its certificates."""
    peer, own = tuple(map(patterns.der, of.peer_chain)), tuple(map(patterns.der, of.own_chain))
    return (
        of if (peer, own) == (of.peer_chain, of.own_chain) else dataclasses.replace(of, peer_chain=peer, own_chain=own)
    )


class _Part[M: Message]:
    """A request or a response: first its secrets are collected, then it is masked."""

    def __init__(self, message: M, *, code: bool = False, searched: SearchedBodies | None = None) -> None:
        self.message = message
        self.media = rewrite.media(message)
        self.packed = True
        """Whether the Content-Encoding must be applied again."""
        self.body: Tree | None = None
        """None: contains nothing to mask."""
        try:
            self.plain = bodies.plain(message)
        except bodies.Unreadable:
            self.plain, self.packed = message.body, False
            self.body = _whole(message.body)
        if self.body is None and _broken_request(message, self.plain):
            self.body = _whole(self.plain)
        elif self.packed and self.plain and not (searched and searched.has(self.plain, self.media)):
            self.body = _read(self.plain, self.media) if _suspicious(self.plain, self.media) else None
            if searched and self.body is None:
                searched.add(self.plain, self.media)
        self.query: Tree | None = None
        if isinstance(message, Request) and message.query:
            query = _bytes(message.query)
            self.query = _read(query, rewrite.FORM) if _suspicious(query, rewrite.FORM) else None
        self.known: set[str] = set()
        """Secrets that are not common words, to be masked in other places too."""
        if self.body is not None:
            self.known |= _mask(self.body.top, code=code)
            # In code less is masked: the same text may be another body.
            if searched and not code and not self.known and not self.body.changed:
                searched.add(self.plain, self.media)
        if self.query is not None:
            self.known |= _mask(self.query.top, code=code)

    def written(self) -> Iterator[str]:
        """Yield the secrets in texts that a message may quote without what tells that they are secrets."""
        leaves = rewrite.leaves(self.body.top) if self.body is not None else ()
        for leaf in leaves:
            if isinstance(leaf.new, str) and isinstance(leaf.value, str):
                yield from _lost(leaf.value, leaf.new)

    def masked(self, known: Collection[str]) -> M:
        """Return the message with masks, also for secrets of the other message; the same object if there is nothing to
        mask."""
        message, body = self.message, self._body(known)
        headers = _headers(message, known, len(body) - len(message.body))
        # A digest of content that was not recorded would allow testing guesses at the secret.
        digest = message.digest if body == message.body else ""
        line: dict[str, Any] = {}
        if isinstance(message, Response):
            line["reason"] = _replaced(_reason(message.reason), known)
        if isinstance(message, Request):
            path, mark, query = message.target.partition("?")
            if self.query is not None:
                query = _rewritten(self.query, _bytes(query), known).decode("latin-1")
            query = _SIGNED.sub(rf"\1{MASK}", query) if "sig" in query.lower() else query
            path = _path(path)
            written = {*known, *(quote(secret, safe="") for secret in known), *(quote(secret) for secret in known)}
            line["target"] = _replaced(path + mark + query, written)
        if (
            headers == message.headers
            and body == message.body
            and all(getattr(message, name) == line[name] for name in line)
        ):
            return message
        return dataclasses.replace(message, headers=headers, body=body, digest=digest, **line)

    def masked_plain(self, known: Collection[str]) -> bytes:
        """Return the body with masks, without its Content-Encoding."""
        if self.body is None and known and self.plain:
            self.body = _read(self.plain, self.media)
        return self.plain if self.body is None else _rewritten(self.body, self.plain, known)

    def _body(self, known: Collection[str]) -> bytes:
        new = self.masked_plain(known)
        if new == self.plain:
            return self.message.body
        return rewrite.encoded(self.message, new) if self.packed else new


def _lost(text: str, masked: str) -> Iterator[str]:
    """Yield the pieces of a text that are masked in it."""
    if text != masked:
        stay = set(_PIECE.findall(masked))
        yield from (each for each in _PIECE.findall(text) if each not in stay and telling(each, sure=False))


def _path(path: str) -> str:
    """Return a request's path with masks: of what it is, of what each of its pieces means, and of what it means."""
    path = patterns.text(path) if patterns.signs(path) else path
    if "%" in path:
        path = "/".join(_meant(piece) for piece in path.split("/"))
    return _meant(path)


def _meant(quoted: str) -> str:
    if "%" not in quoted:
        return quoted
    plain = unquote(quoted)
    masked = patterns.text(plain) if patterns.signs(plain) else plain
    return quoted if masked == plain else quote(masked, "/:")


def _broken_request(message: Message, plain: bytes) -> bool:
    """Whether a body should be a signing request but cannot be parsed: it may contain a password in any encoding."""
    if not isinstance(message, Request) or not plain:
        return False
    found = endpoints.match(message.method, message.target)
    if found is None or found.endpoint.kind is not Kind.CSR:
        return False
    try:
        x509.read_csr(plain, strict=True)
    except x509.Malformed:
        return True
    return False


def _suspicious(data: bytes, media: str) -> bool:
    """Whether a body may contain secrets; False is certain."""
    return _repeated(data, media) if len(data) <= REPEATED else _searched(data, media)


def _searched(data: bytes, media: str) -> bool:
    if media == rewrite.FORM and data:
        try:
            once = bodies.unescape(data)
            data = b"\n".join((once, bodies.unescape(once)))
        except bodies.Unreadable:
            return True
        if b"b64_zlib_yaml" in data:
            return True
    if patterns.signs(data.decode("latin-1")) or (b"ensitive" in data and secrets.hinted(data, media)):
        return True
    if _ESCAPED.search(data):  # a letter of the searched text may be escaped
        return True
    return _unmarked(data, media) and not _complete(data, media)


_repeated = lru_cache(maxsize=1024)(_searched)


def _unmarked(data: bytes, media: str) -> bool:
    """Whether a document has parameters: if it is cut off, the list of sensitive ones may be missing."""
    return b"parameters" in data and (
        media in bodies.PACKED or media in bodies.YAML or any(notation in media for notation in ("json", "pson"))
    )


def _complete(data: bytes, media: str) -> bool:
    try:
        bodies.structure(data, media, msgspec.Raw)
    except (bodies.Unreadable, *bodies.WRONG):
        return False
    return True


def _bytes(text: str) -> bytes:
    return text.encode("latin-1", "replace")


def _read(body: bytes, media: str) -> Tree:
    try:
        # A file's content is a text, but JSON with marked secrets is handled as JSON.
        media = "" if media == "application/octet-stream" and b"Sensitive" in body else media
        return rewrite.read(body, media, _between)
    except (bodies.Unreadable, *bodies.WRONG):
        hides = secrets.marked(body) or _unmarked(body, media) or _ESCAPED.search(body)
        return _whole(body) if hides else rewrite.text(body)


def _between(text: str) -> str:
    """Mask the secrets in what YAML has between its values: comments."""
    return patterns.text(text) if "#" in text and patterns.signs(text) else text


def _whole(body: bytes) -> Tree:
    """Mask a body that cannot be parsed and may contain anything."""
    leaf = Leaf(body, MASK if body else None)
    return rewrite.Tree(leaf, MASK.encode)


def _rewritten(tree: Tree, before: bytes, known: Collection[str]) -> bytes:
    """Return the parsed body with masks; ``before`` if there is nothing to mask."""
    texts = [leaf for leaf in rewrite.leaves(tree.top) if isinstance(leaf.now, str)] if known else []
    whole = "\n".join(leaf.now for leaf in texts)
    if len(known) * len(whole) > _WORK:
        return MASK.encode()
    if found := [secret for secret in known if secret in whole]:
        for leaf in texts:
            replaced = _replaced(leaf.now, found)
            leaf.new = replaced if replaced != leaf.value else None
    try:
        new = tree.write() if tree.changed else before
    except (bodies.Unreadable, *bodies.WRONG):
        return MASK.encode()
    # A comment in YAML is not a leaf.
    return MASK.encode() if any(secret.encode("utf-8", "replace") in new for secret in known) else new


def _headers(message: Message, known: Collection[str], longer: int) -> Headers:
    return tuple(
        (name, _replaced(_header(name, rewrite.promised(name, value, longer)), known))
        for name, value in message.headers
    )


@remembered(20_000)
def _header(name: str, value: str) -> str:
    """Return a header's value with masks."""
    lower = name.strip().lower()
    if secrets.credential(lower) or names.named(lower):
        return _credential(value)
    return patterns.text(value) if lower != "content-length" and patterns.signs(value) else value


_reason = remembered(1024)(patterns.text)
"""Masks the reason of a status: there are few."""


def _credential(value: str) -> str:
    """Mask a credential but not its type: ``Basic MASKED``."""
    kind, space, rest = value.strip().partition(" ")
    return f"{kind} {MASK}" if space and rest and kind.isalpha() else MASK


def _replaced(value: str, known: Collection[str]) -> str:
    if not known:
        return value
    for secret in sorted(filter(value.__contains__, known), key=len, reverse=True):  # one secret may be part of another
        value = value.replace(secret, MASK)
    return value


# -- secrets in a tree ------------------------------------------------------------------------------------


def _mask(top: ValueNode, *, code: bool) -> set[str]:
    """Set masks; return the secrets that are not common words."""
    known: set[str] = set()
    signs = patterns.signs("\n".join(leaf.value for leaf in rewrite.leaves(top) if isinstance(leaf.value, str)))
    waiting: list[tuple[ValueNode, bool, bool]] = [(top, False, False)]
    visited: set[tuple[int, bool, bool]] = set()
    while waiting:
        node, sure, likely = waiting.pop()
        if isinstance(node, Leaf):
            if node.new is None:
                value = node.value
                mask = mask_of(value, sure=sure, likely=likely) if sure or likely else None
                if mask is not None and isinstance(value, str):
                    # What stands in a longer secret (password=X) is one by itself, too.
                    known |= {part for part in (value, *written.values(value)) if telling(part, sure=sure)}
                elif signs and mask is None and isinstance(value, str) and _any(signs, value):
                    mask = patterns.text(value, code=code)
                node.new = mask if mask != value else None
            continue
        if (id(node), sure, likely) in visited:
            continue
        visited.add((id(node), sure, likely))
        if isinstance(node, Fields):
            waiting += _fields(node, sure=sure, likely=likely)
        else:
            waiting += [(child, sure, likely) for child in node]
    return known


def _fields(node: Fields, *, sure: bool, likely: bool) -> Iterator[tuple[ValueNode, bool, bool]]:
    given = {key.value: value for key, value in node.pairs}
    kind = _value(given.get(rich.MARK))
    sure = sure or kind == "Sensitive"
    listed, parameters = given.get("sensitive_parameters"), given.get("parameters")
    marked = {_value(item) for item in listed} if isinstance(listed, list) else set()
    described = any(isinstance(name := _value(given.get(field)), str) and names.named(name) for field in _DESCRIBING)
    for key, value in node.pairs:
        name = key.value.lstrip(":@") if isinstance(key.value, str) else ""
        # The keys of a sensitive mapping may be secrets too. A key that is a plain word reveals no more than a
        # parameter's name.
        yield key, sure and _FIELD.fullmatch(name) is None, False
        if name == rich.MARK:
            yield value, False, False
        elif value is parameters and isinstance(value, Fields) and marked:
            yield value, sure, likely
            yield from ((item, True, False) for key, item in value.pairs if key.value in marked)
        elif kind == "Hash" and name == rich.VALUE and isinstance(value, list):
            yield from _hash(value, sure=sure, likely=likely)
        else:
            secret = names.named(name) or names.login(name, _value(value))
            yield value, sure, likely or secret or (described and name in _DESCRIBED)


def _hash(items: list[ValueNode], *, sure: bool, likely: bool) -> Iterator[tuple[ValueNode, bool, bool]]:
    """Yield a mapping whose keys need not be texts: keys and values in turn."""
    for key, value in zip(items[::2], items[1::2], strict=False):
        name = _value(key)
        yield key, sure, False
        yield value, sure, likely or (isinstance(name, str) and names.named(name))


def _value(node: ValueNode | None) -> Any:
    return node.value if isinstance(node, Leaf) else None


def mask_of(value: Any, *, sure: bool, likely: bool) -> str | None:
    """Return the mask of a secret; None if it is not a secret."""
    if value is None or value in ("", rich.REDACTED, MASK) or not (sure or likely):
        return None
    if isinstance(value, str) and not sure:
        if names.harmless(value):
            return None
        return patterns.shapes(value) if patterns.is_shape(value) else _of_size(value)
    if isinstance(value, str):
        return _of_size(value)
    return MASK if sure or not isinstance(value, bool) else None


def _of_size(value: str) -> str:
    """Return the mask of a text: of a large one as long, because rules judge its size."""
    return MASK * (len(value) // len(MASK)) if len(value) > _LARGE else MASK


def _any(signs: tuple[str, ...], value: str) -> bool:
    lowered = value.lower()
    for sign in signs:  # noqa: SIM110 - millions of values: any() takes twice as long
        if sign in lowered:
            return True
    return False


def telling(value: str, *, sure: bool) -> bool:
    """Whether a secret is distinctive enough to be masked wherever it occurs. A likely secret may be a common word."""
    mixed = not value.isalpha() and not value.isdecimal()
    return len(value) >= (_SHORT if mixed and sure else _LONG) and (mixed or sure)
