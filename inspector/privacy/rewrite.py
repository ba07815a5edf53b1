"""Bodies as trees of leaves whose values can be replaced; the body is written again with the other bytes unchanged.

``redact`` and ``share`` decide about the values. JSON, PSON and YAML keep every byte around a leaf; msgpack and the
content of forms are encoded again.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from inspector import regex
from inspector.model import Request
from inspector.protocol import bodies, endpoints, ruby_yaml
from inspector.protocol.bodies import Unreadable
from inspector.protocol.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import yaml

    from inspector.model import Message

FORM = "application/x-www-form-urlencoded"
_DIGITS = 15
"""Maximum number of digits in a Content-Length that is adjusted."""


class Leaf(msgspec.Struct, eq=False, gc=False):
    """A scalar, and its replacement."""

    value: Any
    new: str | float | None = None
    """None: unchanged."""
    begin: int = 0
    end: int = 0

    @property
    def now(self) -> Any:
        return self.value if self.new is None else self.new


class Fields(msgspec.Struct, eq=False):
    """A mapping: keys need not be different."""

    pairs: list[tuple[Leaf, ValueNode]]

    def get(self, name: str) -> ValueNode | None:
        """Return the value of a key; of several, the last one, as decoders do."""
        return next((value for key, value in reversed(self.pairs) if key.value == name), None)


type ValueNode = Leaf | Fields | list[ValueNode]


@dataclass(slots=True, eq=False)
class Tree:
    """A parsed body. ``write`` returns its bytes with the replacements."""

    top: ValueNode
    write: Callable[[], bytes]
    always: bool = False
    """Whether there are parts besides leaves that ``write`` replaces."""

    @property
    def changed(self) -> bool:
        return self.always or any(leaf.new is not None for leaf in leaves(self.top))


def leaves(top: ValueNode) -> Iterator[Leaf]:
    """Yield every leaf once, keys too."""
    waiting, visited = [top], set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, Leaf):
            yield node
        elif id(node) not in visited:
            visited.add(id(node))  # YAML may refer to it again
            if isinstance(node, Fields):
                for key, value in node.pairs:
                    yield key
                    waiting.append(value)
            else:
                waiting += node


def media(message: Message) -> str:
    """Return the media type to parse a body with: a catalog request is a form, even if it does not declare that or
    declares another type."""
    declared = bodies.content_type(message)
    if isinstance(message, Request) and message.body[:1] not in (b"{", b"["):
        found = endpoints.match(message.method, message.target)
        if found is not None and found.endpoint.kind is Kind.CATALOG and (not declared or b"facts=" in message.body):
            return FORM
    return declared


def read(body: bytes, media: str, between: Callable[[str], str] | None = None) -> Tree:
    """Parse a body without its Content-Encoding, by its media type; without a structure it is one leaf. ``between``
    replaces what YAML has between leaves: comments, tags, anchors. Raises Unreadable."""
    if media == FORM:
        return form(body, between)
    if media in bodies.PACKED:
        return _packed(bodies.structure(body, media, Any))
    if media in bodies.YAML or (media in ("", "text/plain") and body[:4] == b"--- "):
        return _yaml(body, between)
    declared = any(notation in media for notation in ("json", "pson"))
    if declared or (media != "application/octet-stream" and _is_json(body)):
        return _json(body, "text/pson" if "pson" in media else "application/json")
    return text(body)


def anything(body: bytes, media: str, between: Callable[[str], str] | None = None) -> Tree:
    """Parse a body by its media type, as ``read`` does; as one leaf if it is not valid."""
    try:
        return read(body, media, between)
    except (Unreadable, *bodies.WRONG):
        return text(body)


def _is_json(body: bytes) -> bool:
    return body[:64].lstrip()[:1] in (b"{", b"[") and body.rstrip()[-1:] in (b"}", b"]")


def text(body: bytes) -> Tree:
    """Return a body as one leaf."""
    decoded, encoding = _decoded(body)
    leaf = Leaf(decoded)
    return Tree(leaf, lambda: str(leaf.now).encode(encoding, "replace"))


def _decoded(body: bytes) -> tuple[str, str]:
    try:
        return body.decode(), "utf-8"
    except UnicodeDecodeError:
        return body.decode("latin-1"), "latin-1"


def encoded(message: Message, body: bytes) -> bytes:
    """Apply a message's Content-Encodings, which ``bodies.plain`` removed."""
    for encoding in (message.header("content-encoding") or "").lower().split(","):
        match encoding.strip():
            case "gzip" | "x-gzip":
                body = _packing(body, zlib.MAX_WBITS | 16)
            case "deflate":
                body = _packing(body, zlib.MAX_WBITS)
    return body


def promised(name: str, value: str, longer: int) -> str:
    """Return a header's value; Content-Length grows with the body, so that missing bytes are still missing."""
    if not longer or name.strip().lower() != "content-length":
        return value
    return str(max(0, int(value) + longer)) if value.isascii() and value.isdecimal() and len(value) < _DIGITS else value


def _packing(body: bytes, wbits: int) -> bytes:
    packer = zlib.compressobj(wbits=wbits)
    return packer.compress(body) + packer.flush()


# -- JSON -------------------------------------------------------------------------------------------------

_BETWEEN = str.maketrans(dict.fromkeys("\t\n\r,:[]{}", " "))
"""What stands between numbers and constants."""
_BACKSLASH, _QUOTE = "\ud800", "\ud801"
"""Stand for an escaped backslash and an escaped quotation mark. Text that was decoded has no half characters."""


class _Digits(str):
    """A number of more digits than Python reads."""

    __slots__ = ()


def _json(body: bytes, media: str) -> Tree:
    bodies.structure(body, media, msgspec.Raw)  # raises if the body is not valid or too large
    source, encoding = _decoded(body)
    try:
        top = _wrapped(_DECODER.decode(source))
    except ValueError:
        top = _wrapped(_LARGE.decode(source))
    return Tree(top, lambda: _json_again(source, top).encode(encoding))


def _wrapped(value: Any) -> ValueNode:
    """Return a value as a node; mappings are already."""
    if isinstance(value, Fields):
        return value
    return [_wrapped(item) for item in value] if isinstance(value, list) else Leaf(value)


def _fields(pairs: list[tuple[str, Any]]) -> Fields:
    return Fields([(Leaf(key), Leaf(value) if type(value) is str else _wrapped(value)) for key, value in pairs])


def _digits(number: str) -> int | _Digits:
    try:
        return int(number)
    except ValueError:
        return _Digits(number)


_DECODER = json.JSONDecoder(object_pairs_hook=_fields, strict=False)
_LARGE = json.JSONDecoder(object_pairs_hook=_fields, strict=False, parse_int=_digits)


def _json_again(source: str, top: ValueNode) -> str:
    """Return JSON with the replacements. Every second piece between quotation marks is a text, and texts and other
    scalars have the same order as the leaves."""
    pieces = source.replace("\\\\", _BACKSLASH).replace('\\"', _QUOTE).split('"')
    at = 0
    others: list[Leaf] = []
    any_new = False
    for leaf in _in_order(top):
        if type(leaf.value) is not str:
            others.append(leaf)
            any_new = any_new or leaf.new is not None
            continue
        if others:
            if any_new:
                pieces[at] = _scalars_again(pieces[at], others)
            others, any_new = [], False
        at += 2
        if leaf.new is not None:
            pieces[at - 1] = json.dumps(leaf.new)[1:-1]
    pieces[at] = _scalars_again(pieces[at], others)
    return '"'.join(pieces).replace(_QUOTE, '\\"').replace(_BACKSLASH, "\\\\")


def _scalars_again(piece: str, leaves: list[Leaf]) -> str:
    """Return a piece of JSON without texts, with the replacements of the scalars in it."""
    parts, done, at = [], 0, 0
    for leaf, scalar in zip(leaves, piece.translate(_BETWEEN).split(), strict=True):
        begin = piece.index(scalar, at)
        at = begin + len(scalar)
        if leaf.new is not None:
            parts += [piece[done:begin], json.dumps(leaf.new)]
            done = at
    return "".join([*parts, piece[done:]])


def _in_order(top: ValueNode) -> Iterator[Leaf]:
    """Yield every leaf, in the order of the text."""
    waiting = [top]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Leaf):
            yield node
        elif isinstance(node, Fields):
            waiting += [leaf for key, value in reversed(node.pairs) for leaf in (value, key)]
        else:
            waiting += reversed(node)


def _spliced(
    source: str,
    top: ValueNode,
    written: Callable[[Leaf, str | float], str],
    between: Callable[[str], str] | None = None,
) -> str:
    parts, at = [], 0
    rest = between or _unchanged
    places = (leaf for leaf in leaves(top) if between or leaf.new is not None)
    for leaf in sorted(places, key=lambda leaf: leaf.begin):
        if leaf.begin >= at:
            own = source[leaf.begin : leaf.end]
            parts += [rest(source[at : leaf.begin]), own if leaf.new is None else written(leaf, leaf.new)]
            at = leaf.end
    return "".join([*parts, rest(source[at:])])


def _unchanged(text: str) -> str:
    return text


# -- YAML -------------------------------------------------------------------------------------------------


def _yaml(body: bytes, between: Callable[[str], str] | None = None) -> Tree:
    import yaml  # few agents write it

    try:
        ruby_yaml.load(bodies.utf8(body))  # limits depth, number of values and cycles
    except bodies.WRONG as error:
        raise Unreadable(str(error)) from error
    source, encoding = _decoded(body)
    top: list[ValueNode] = []
    path: list[list[ValueNode] | Fields] = [top]
    keys: list[Leaf | None] = [None]
    anchors: dict[str | None, ValueNode] = {}
    for event in yaml.parse(source, Loader=yaml.CSafeLoader):
        node: ValueNode
        match event:
            case yaml.ScalarEvent():
                node = Leaf(_plain(event), None, *_place(event))
            case yaml.AliasEvent():
                node = anchors[event.anchor]
            case yaml.SequenceStartEvent():
                node = []
            case yaml.MappingStartEvent():
                node = Fields([])
            case yaml.CollectionEndEvent():
                path.pop()
                keys.pop()
                continue
            case _:
                continue
        if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            anchors[event.anchor] = node
        inside = path[-1]
        if isinstance(inside, list):
            inside.append(node)
        elif isinstance(key := keys[-1], Leaf):
            inside.pairs.append((key, node))
            keys[-1] = None
        elif isinstance(node, Leaf):
            keys[-1] = node
            continue
        if isinstance(event, yaml.CollectionStartEvent) and not isinstance(node, Leaf):
            path.append(node)
            keys.append(None)

    def write() -> bytes:
        written = _spliced(source, top, lambda leaf, text: _as_yaml(source[leaf.begin : leaf.end], text), between)
        new = written.encode(encoding)
        try:
            ruby_yaml.load(bodies.utf8(new))
        except bodies.WRONG as error:
            raise Unreadable(f"the result is not valid YAML: {error}") from error
        return new

    return Tree(top, write, always=between is not None)


def _place(event: yaml.Event) -> tuple[int, int]:
    assert event.start_mark and event.end_mark  # noqa: S101, PT018 - the loader sets them
    return event.start_mark.index, event.end_mark.index


def _plain(event: yaml.ScalarEvent) -> Any:
    text: str = event.value
    if event.tag in ("!binary", "tag:yaml.org,2002:binary"):
        return _decoded(base64.b64decode(text.encode()))[0]
    if event.implicit[0] and text in ("", "~", "null"):
        return None
    value = ruby_yaml.typed(event)
    return text if value is None else value


_ANCHOR = regex.compile(r"(?:!\S*\s+)?(&\S+\s)")


def _as_yaml(before: str, text: str | float) -> str:
    """Return a scalar as YAML, with its anchor and the line end of a block."""
    anchor = _ANCHOR.match(before)
    written = json.dumps(text, ensure_ascii=False)
    if isinstance(text, float) and "." not in written:
        written = written.replace("e", ".0e")  # a number in YAML has a point
    return (anchor[1] if anchor else "") + written + ("\n" if before[-1:] == "\n" else "")


# -- msgpack ----------------------------------------------------------------------------------------------


def _packed(value: Any) -> Tree:
    top = node(value)
    return Tree(top, lambda: msgspec.msgpack.encode(_rebuilt(top)))


def node(value: Any) -> ValueNode:
    """Return decoded data as a tree."""
    match value:
        case dict():
            return Fields([(Leaf(_scalar_of(key)), node(item)) for key, item in value.items()])
        case list():
            return [node(item) for item in value]
    return Leaf(_scalar_of(value))


def _scalar_of(value: Any) -> Any:
    # Ruby sends text that is not marked as UTF-8 as bytes.
    return _decoded(value)[0] if isinstance(value, bytes) else value


def _rebuilt(node: ValueNode) -> Any:
    match node:
        case Leaf():
            return node.now
        case Fields():
            return {_rebuilt(key): _rebuilt(value) for key, value in node.pairs}
        case list():
            return [_rebuilt(child) for child in node]


# -- forms ------------------------------------------------------------------------------------------------


def form(body: bytes, between: Callable[[str], str] | None = None) -> Tree:
    """Parse a form or a query, and the facts in it. Raises Unreadable."""
    values = bodies.form(body)
    notation = values.get(b"facts_format", b"").decode("latin-1")
    top = Fields([])
    fields: list[tuple[bytes, Leaf, Tree, Callable[[bytes], bytes]]] = []
    for field in body.split(b"&"):
        name, _, value = field.partition(b"=")
        key = Leaf(_decoded(bodies.unescape(name))[0])
        tree, written = _field(key.value, bodies.unescape(value), notation, between)
        top.pairs.append((key, tree.top))
        fields.append((field, key, tree, written))

    def write() -> bytes:
        made = []
        for field, key, tree, written in fields:
            name, equals, value = field.partition(b"=")
            name = name if key.new is None else _escaped(str(key.new).encode("utf-8", "replace"))
            made.append(name + b"=" + written(tree.write()) if tree.changed else name + equals + value)
        return b"&".join(made)

    return Tree(top, write, always=any(tree.always for _, _, tree, _ in fields))


def _escaped(value: bytes) -> bytes:
    return quote(value, safe="").encode()


def _twice(value: bytes) -> bytes:
    return _escaped(_escaped(value))


def _field(
    name: str, value: bytes, notation: str, between: Callable[[str], str] | None
) -> tuple[Tree, Callable[[bytes], bytes]]:
    """Return a field's value and how to write it; facts as in ``bodies.facts_of_form``."""
    if name != "facts":
        return text(value), _escaped
    head = value[:64].lstrip()
    if notation == "b64_zlib_yaml":
        twice = b"%" in value
        packed = (bodies.unescape(value) if twice else value).replace(b" ", b"+")
        try:
            tree = _yaml(bodies.inflate(base64.b64decode(packed), zlib.MAX_WBITS, "zlib"), between)
        except ValueError as error:
            raise Unreadable(str(error)) from error
        escape = _twice if twice else _escaped
        return tree, lambda new: escape(base64.b64encode(zlib.compress(new)))
    twice = (b"%" in head or b"+" in head[:4]) if notation == "yaml" else head[:1] != b"{"
    inner = bodies.unescape(value) if twice else value
    media = {"yaml": "text/yaml", "pson": "text/pson"}.get(notation, notation if notation in bodies.PACKED else "")
    return read(inner, media or "application/json", between), _twice if twice else _escaped
