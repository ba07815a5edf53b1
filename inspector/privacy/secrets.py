"""The values that a record marks as secret, and their places in its bytes.

Puppet sends sensitive values in plain text and only marks them; a signing request contains attributes for the CA.
Nothing here protects a value: ``hiding`` has what views hide until the user asks for it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

from inspector import regex
from inspector.protocol import documents, rich
from inspector.protocol.documents import Catalog, Certificate, CertificateRequest, Certificates, Undecodable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from inspector.protocol.documents import Document

MASK = "•••••"
"""The mask in views. Its length reveals nothing."""
_CREDENTIALS = frozenset({"authorization", "authentication", "cookie", "cookie2", "session"})
"""How names of headers with credentials end: ``Proxy-Authorization``, ``X-Session-Id``."""

_WORK = 2_000_000_000
"""Bytes that are searched for all the secrets of a body together: this takes some seconds."""
_DEPTH = 200
"""Levels that are searched one by one."""
_SHORT = 4
"""Minimum length of a text to be searched as a part of others: a shorter one may occur anywhere."""
_HARMLESS = frozenset({"pp_auth_auto_renew", "1.3.6.1.4.1.34380.1.3.2"})
"""Attributes of a signing request that are not credentials. All others are for the CA to check."""
_PRESHARED = frozenset({"pp_preshared_key", "1.3.6.1.4.1.34380.1.1.4"})
_SPACE = rb"(?: |\+|%20)"
_LABEL = (
    _SPACE + rb"(?:[A-Z0-9]{1,20}" + _SPACE + rb"){0,3}PRIVATE" + _SPACE + rb"KEY"
    rb"(?:" + _SPACE + rb"BLOCK)?" + _SPACE + rb"?-{4,5}"
)  # fmt: skip
_KEY = regex.compile(
    rb"-{4,5}" + _SPACE + rb"?BEGIN" + _LABEL + rb'[^"<>]*?(?:-{4,5}' + _SPACE + rb"?END" + _LABEL + rb'|["<>]|\z)'
)
_MARKED = regex.compile(
    rb'Sensitive|sensitive_parameters(?:"?\s*:\s*(?:\[\s*[^\]\s]|-\s)|[\x91-\x9f\xdc\xdd])'
    rb"|challengePassword|PRIVATE KEY"
)
"""A non-empty list of names in JSON, YAML, msgpack and others."""
_POSSIBLE = regex.compile(rb'Sensitive|sensitive_parameters"\s*:\s*\[\s*[^\]\s]|PRIVATE|\\[uU]00[2-7]')
"""Texts of which JSON with a secret contains one; the last may be a letter of one of the others."""


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A value that is hidden until the user asks for it."""

    value: Any
    shown: str = MASK
    """What is shown instead: a text with masks in it, if only parts of it are secrets."""

    def __str__(self) -> str:
        return self.shown

    __repr__ = __str__


def credential(name: str) -> bool:
    """Whether a header of this name contains a credential."""
    return name.strip().casefold().removesuffix("-id").rpartition("-")[2] in _CREDENTIALS


def text(value: str) -> str | Secret:
    """Return a text, hidden if it contains a private key."""
    return Secret(value) if "PRIVATE KEY" in value and _KEY.search(value.encode("utf-8", "replace")) else value


def _masked(value: Any, depth: int) -> Any:
    """Return a decoded structure with every marked secret in it as ``Secret``."""
    if depth > _DEPTH:
        return hidden(value) if rich.secrets(value) else value
    match value:
        case dict() if value.get(rich.MARK) == "Sensitive":
            return hidden(value)
        case dict():
            named = value.get("sensitive_parameters")
            inner = {str(key): _masked(item, depth + 1) for key, item in value.items()}
            original, shown = value.get("parameters"), inner.get("parameters")
            # Not if the parameters are hidden as a whole.
            if isinstance(named, list) and isinstance(original, dict) and isinstance(shown, dict):
                names = (name for name in named if isinstance(name, str) and name in original)
                shown |= {name: hidden(original[name]) for name in names}
            return inner
        case list():
            return [_masked(item, depth + 1) for item in value]
        case str():
            return text(value)
    return value


def hidden(value: Any) -> Any:
    """Return a sensitive value, hidden unless it is empty."""
    while isinstance(value, dict) and value.get(rich.MARK) == "Sensitive":
        value = value.get(rich.VALUE)
    return value if value is None or value in ("", rich.REDACTED) else Secret(value)


def attributes(request: CertificateRequest) -> dict[str, str | Secret]:
    """Return the custom attributes of a signing request."""
    return {name: value if name in _HARMLESS else Secret(value) for name, value in request.attributes.items()}


def extensions(of: CertificateRequest | Certificate) -> dict[str, str | Secret]:
    """Return the requested extensions, or those of a certificate."""
    return {name: Secret(value) if name in _PRESHARED else value for name, value in of.extensions.items()}


def possible(body: bytes | None, media: str, document: Document | None) -> bool:
    """Whether a document may contain a secret; if not, it need not be searched, which takes seconds for a large one.
    ``body`` is its source without Content-Encoding; None if that is not available."""
    opaque = isinstance(document, Undecodable | CertificateRequest | Certificates)
    if body is None or opaque or not any(notation in media for notation in ("json", "pson")):
        return True
    return hinted(body, media)


def hinted(body: bytes, media: str) -> bool:
    """Whether a body without Content-Encoding may mark something as secret. Notations other than JSON and PSON have too
    many forms of an empty list to recognize it."""
    return _POSSIBLE.search(body) is not None or (
        b"sensitive_parameters" in body and not any(notation in media for notation in ("json", "pson"))
    )


def marked(body: bytes) -> bool:
    """Whether a body that cannot be parsed marks something as secret, as far as can be detected."""
    return _MARKED.search(body) is not None


def within(document: Document | None) -> list[Any]:
    """Return the secrets in a document, each a text, a number or a boolean."""
    return list(dict.fromkeys(leaf for secret in _secrets(document) for leaf in _leaves(secret.value)))


def _secrets(document: Document | None) -> Iterator[Secret]:
    match document:
        case None | Undecodable():
            return
        case Catalog():
            for resource in document.resources:
                sent = {"parameters": resource.parameters, "sensitive_parameters": resource.sensitive_parameters}
                yield from _found(_masked(sent, 0))
        case documents.Command():
            yield from _secrets(document.payload)
        case CertificateRequest():
            yield from _found([attributes(document), extensions(document)])
        case Certificates():
            yield from _found([extensions(certificate) for certificate in document.certificates])
        case _:
            yield from _found(_masked(documents.plain(document), 0))


def _found(value: Any) -> Iterator[Secret]:
    waiting = [value]
    while waiting:
        match waiting.pop():
            case dict() as container:
                waiting += container.values()
            case list() as container:
                waiting += container
            case Secret() as secret:
                yield secret


def _leaves(value: Any) -> Iterator[Any]:
    waiting = [value]
    while waiting:
        match waiting.pop():
            case dict() as container:
                waiting += [item for key, item in container.items() if key != rich.MARK]
            case list() as container:
                waiting += container
            case None | "" | rich.REDACTED:
                pass
            case str() | int() | float() as leaf:
                yield leaf


type Spans = list[tuple[int, int]]
"""Start and end of pieces of a text, in bytes, in order, without overlaps."""


def spans(body: bytes, document: Document | None) -> Spans:
    """Return the places of a document's secrets in its body; the whole body if one cannot be found in it: encoded,
    compressed."""
    if isinstance(document, Undecodable):
        return [(0, len(body))] if _MARKED.search(body) else []
    pieces = [(found.start(), found.end() - found[0].endswith((b'"', b"<", b">"))) for found in _KEY.finditer(body)]
    secrets = within(document)
    if len(secrets) * len(body) > _WORK:
        return [(0, len(body))]
    for secret in secrets:
        places = list(_places(body, secret))
        if not places and not any(_within(secret, body[begin:end]) for begin, end in pieces):
            return [(0, len(body))]
        pieces += places
    return _joined(pieces)


def _within(secret: Any, piece: bytes) -> bool:
    """Whether a piece that is hidden anyway (a private key) contains the whole secret."""
    return isinstance(secret, str) and any(value in piece for value in _plain(secret.strip()))


def _places(body: bytes, secret: Any) -> list[tuple[int, int]]:
    if not isinstance(secret, str):
        token = regex.escape(json.dumps(secret).encode())
        return [
            found.span() for found in regex.compile(rb"(?:^|[^\w.])(?P<it>" + token + rb")(?:$|[^\w.])").finditer(body)
        ]
    return list(_written_in(body, _plain(secret))) or list(_written_in(body, _escaped(secret)))


def _written_in(body: bytes, forms: Iterable[bytes]) -> Iterator[tuple[int, int]]:
    for form in forms:
        begin = body.find(form)
        while begin >= 0:
            end = begin + len(form)
            inside_word = body[begin - 1 : begin].isalnum() or body[end : end + 1].isalnum()
            if len(form) >= _SHORT or not inside_word:
                yield begin, end
            begin = body.find(form, end)


def _plain(secret: str) -> set[bytes]:
    """Return the forms of a text in JSON, PSON and YAML."""
    as_json = json.dumps(secret, ensure_ascii=False)[1:-1].encode("utf-8", "replace")
    forms = {secret.encode("utf-8", "replace"), as_json, json.dumps(secret)[1:-1].encode()}
    return forms | {form.replace(b"/", b"\\/") for form in forms}


def _escaped(secret: str) -> set[bytes]:
    """Return the forms of a text in forms; the facts in a form are escaped twice."""
    once = {how(plain).encode() for plain in _plain(secret) for how in (quote, quote_plus)}
    return once | {quote(value).encode() for value in once}


def _joined(pieces: Spans) -> Spans:
    joined: Spans = []
    for begin, end in sorted(pieces):
        if joined and begin <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((begin, end))
    return joined


def covered(body: bytes, pieces: Spans, mask: str = MASK) -> bytes:
    """Return a body with the mask instead of these pieces."""
    parts, at = [], 0
    for begin, end in pieces:
        parts += [body[at:begin], mask.encode()]
        at = end
    return b"".join([*parts, body[at:]])
