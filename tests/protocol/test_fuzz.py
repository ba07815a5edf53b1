"""Real bodies, changed in ways that keep most of their structure, through every decoder: none raises."""

from __future__ import annotations

import base64
import gzip
import json
import shutil
import tempfile
import zlib
from contextlib import suppress
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inspector.capture.store import Capture
from inspector.model import Exchange, Message, Request, Response
from inspector.protocol import bodies, decode, endpoints
from inspector.protocol import documents as d
from tests.support import places
from tests.support.touching import DECODERS, touch

SAMPLES = places.SAMPLES
NOTATIONS = ["application/json", "text/pson", "text/yaml", "application/x-msgpack", "text/plain", "text/html", "",
             "application/vnd.puppet.rich+json", "application/vnd.puppet.rich+msgpack",
             "application/x-www-form-urlencoded", "application/octet-stream", "text/dot"]  # fmt: skip


@cache
def real() -> tuple[tuple[str, str, bytes, bool], ...]:
    """Of the samples, one body for each decoder, notation, status and size: (decoder, notation, body, is a tree)."""
    found: dict[tuple[str, str, int, int], tuple[str, str, bytes, bool]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for sample in sorted(SAMPLES.glob("*.sqlite")):
            with Capture.open(Path(shutil.copy(sample, folder))) as capture:
                for record in capture.records():
                    if isinstance(record, Exchange):
                        for name, message in _sides(record):
                            body = decode.content(message) or b""
                            media = bodies.content_type(message)
                            status = message.status if isinstance(message, Response) else 0
                            key = name, media, status // 100, len(body).bit_length()
                            if body and len(body) < 60_000:
                                found[key] = name, media, body, body.lstrip()[:1] in (b"{", b"[")
    return tuple(found.values())


def _sides(exchange: Exchange) -> list[tuple[str, Message]]:
    match = endpoints.match(exchange.request.method, exchange.request.target)
    if match is None:
        return []
    names = {id(decoder): name for name, decoder in DECODERS.items()}
    sides: list[tuple[str, Message]] = [(names[id(match.endpoint.request)], exchange.request)]
    if exchange.response is not None:
        sides.append((names[id(match.endpoint.response)], exchange.response))
    return sides


def test_the_samples_have_bodies_of_every_important_kind() -> None:
    names = {name for name, *_ in real()}
    assert names >= {"catalog", "catalog_request", "report", "metadata", "metadatas", "certificates", "crls", "csr"}


ODD: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(), st.text(max_size=20),
    st.sampled_from(["", "{md5}", "--- !ruby/object:X", "\x00", "\ud7ff", "%7B", "é" * 50, "Type[title]"]),
    st.sampled_from([[], {}, [[]], {"": ""}, {"__ptype": "Hash", "__pvalue": [1, 2, 3]}, {"__ptype": {}},
                     {"__ptype": "Sensitive"}, {"__ptype": "LocalRef", "__pvalue": "$"},
                     {"__ptype": "LocalRef", "__pvalue": "$['parameters'][0]"}, {"__ptype": "Deferred"},
                     {"__ptype": "Binary", "__pvalue": "="}, {"document_type": "x"}])
    .map(deepcopy),
)  # fmt: skip


def positions(tree: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a tree."""
    found: list[tuple[Any, Any]] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        keys = node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        found += [(node, key) for key in keys]
        waiting += [node[key] for key in keys]
    return found


def change(draw: st.DrawFn, tree: Any) -> Any:
    """A tree with a few of its values replaced, taken away, moved, or buried deep."""
    for _ in range(draw(st.integers(1, 4))):
        all_places = positions(tree)
        if not all_places:
            return draw(ODD)
        holder, key = all_places[draw(st.integers(0, len(all_places) - 1))]
        match draw(st.sampled_from(["odd", "gone", "moved", "deep", "renamed"])):
            case "odd":
                holder[key] = draw(ODD)
            case "gone":
                del holder[key]
            case "moved":
                other, at = all_places[draw(st.integers(0, len(all_places) - 1))]
                holder[key] = json.loads(json.dumps(other[at]))
            case "deep":
                value = holder[key]
                for _ in range(draw(st.sampled_from([1, 199, 499, 501]))):
                    value = [value]
                holder[key] = value
            case _:
                if isinstance(holder, dict):
                    holder[draw(st.sampled_from(["", "kind", "name", "__ptype", "<<", "der"]))] = holder.pop(key)
    return tree


def spoil(draw: st.DrawFn, body: bytes) -> bytes:
    """Bytes with pieces replaced, repeated, or cut off."""
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(body)))
        to = min(len(body), at + draw(st.integers(0, 40)))
        match draw(st.sampled_from(["replace", "repeat", "cut", "move"])):
            case "replace":
                body = body[:at] + draw(st.binary(max_size=8)) + body[to:]
            case "repeat":
                body = body[:at] + body[at:to] * draw(st.sampled_from([2, 50])) + body[to:]
            case "cut":
                body = body[:at]
            case _:
                body = body[:at] + body[to:] + body[at:to]
    return body


def written(draw: st.DrawFn, tree: Any, media: str) -> bytes:
    match media:
        case "application/x-msgpack" | "application/vnd.puppet.rich+msgpack":
            return msgspec.msgpack.encode(tree)
        case "text/yaml":
            return b"--- !ruby/object:Puppet::X " + msgspec.json.encode(tree)
        case "application/x-www-form-urlencoded":
            text = msgspec.json.encode(tree)
            notation = draw(st.sampled_from(["pson", "application/json", "b64_zlib_yaml", "yaml", "?"]))
            if notation == "b64_zlib_yaml":
                text = base64.encodebytes(zlib.compress(text))
            once = quote_plus(text)
            twice = quote_plus(once) if draw(st.booleans()) else once
            return f"facts_format={quote_plus(notation)}&facts={twice}&environment=x".encode()
        case _:
            return msgspec.json.encode(tree)


@st.composite
def messages(draw: st.DrawFn) -> tuple[str, Message]:
    """A decoder and a body that was once real."""
    name, media, body, is_tree = draw(st.sampled_from(real()))
    if draw(st.integers(0, 5)) == 0:
        media = draw(st.sampled_from(NOTATIONS))
    if is_tree and draw(st.integers(0, 3)):
        with suppress(RecursionError):  # buried several times: too deep to be written
            body = written(draw, change(draw, json.loads(body)), media)
    body = spoil(draw, body)
    encoding = draw(st.sampled_from(["", "", "gzip", "deflate", "br", "gzip,gzip"]))
    if encoding == "gzip":
        body = spoil(draw, gzip.compress(body, 1, mtime=0)) if draw(st.booleans()) else gzip.compress(body, 1, mtime=0)
    headers = (("Content-Type", media), ("Content-Encoding", encoding))
    if draw(st.integers(0, 4)) == 0:
        name = draw(st.sampled_from(sorted(DECODERS)))
    if draw(st.booleans()):
        return name, Response(headers, body, status=draw(st.sampled_from([200, 200, 200, 304, 400, 500])))
    target = "/x/file_bucket_file/md5/00?" + body[:50].decode("latin-1")
    return name, Request(headers, body, method=draw(st.sampled_from(["PUT", "GET", "HEAD"])), target=target)


@settings(max_examples=400, suppress_health_check=list(HealthCheck))
@given(messages())
def test_no_change_of_a_real_body_makes_a_decoder_raise(sent: tuple[str, Message]) -> None:
    name, message = sent
    touch(DECODERS[name](message))


def test_every_decoder_is_fuzzed() -> None:
    rows = {id(decoder) for row in endpoints.ENDPOINTS for decoder in (row.request, row.response)}
    assert rows <= {id(decoder) for decoder in DECODERS.values()}
    assert isinstance(DECODERS["node"](Response(status=200)), d.Undecodable)
