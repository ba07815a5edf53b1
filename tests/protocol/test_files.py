"""Content against the checksum that goes with it."""

from __future__ import annotations

import hashlib

import pytest

from inspector.model import Request, Response
from inspector.protocol import decode, endpoints, files
from inspector.protocol import documents as d
from inspector.protocol.files import ChecksumResult, check
from inspector.protocol.kinds import Kind
from tests.support.bodies import answered, asked

CONTENT = b"x" * 600


@pytest.mark.parametrize("name", ["md5", "sha1", "sha224", "sha256", "sha384", "sha512", "md5lite", "sha256lite"])
def test_a_digest_is_right_or_wrong(name: str) -> None:
    part = CONTENT[:512] if name.endswith("lite") else CONTENT
    digest = hashlib.new(name.removesuffix("lite"), part).hexdigest()
    for value in (digest, f"{{{name}}}{digest}", f"{{{name}}}{digest.upper()}"):
        assert check(CONTENT, d.Checksum(name, value)) is ChecksumResult.RIGHT
        assert check(b"y" + CONTENT, d.Checksum(name, value)) is ChecksumResult.WRONG
    # What comes after the first 512 bytes is not looked at by the lite ones.
    after = ChecksumResult.RIGHT if name.endswith("lite") else ChecksumResult.WRONG
    assert check(CONTENT[:-1] + b"y", d.Checksum(name, digest)) is after


@pytest.mark.parametrize(
    "checksum",
    [
        None,
        d.Checksum("mtime", "{mtime}2026-11-21 08:00:00 +0000"),
        d.Checksum("ctime", "{ctime}2026-11-21 08:00:00 +0000"),
        d.Checksum("none", "{none}"),
        d.Checksum("md5", "{md5}"),
        d.Checksum("blake3", "{blake3}00"),
    ],
)
def test_what_is_no_digest_is_not_checkable(checksum: d.Checksum | None) -> None:
    assert check(CONTENT, checksum) is ChecksumResult.UNCHECKABLE


SHA = hashlib.sha256(b"drift\n").hexdigest()


@pytest.mark.parametrize(
    ("target", "media", "body", "path", "verdict"),
    [
        (
            f"/puppet/v3/file_bucket_file/sha256/{SHA}//etc/x?environment=p",
            "",
            b"drift\n",
            "/etc/x",
            ChecksumResult.RIGHT,
        ),
        (f"/puppet/v3/file_bucket_file/sha256/{SHA}?environment=p", "", b"other", None, ChecksumResult.WRONG),
        ("/p/file_bucket_file/md5/ae4a092d", "text/plain", b"x", None, ChecksumResult.WRONG),
        (f"/p/file_bucket_file/sha256/{SHA}//x", "text/pson", b'{"contents":"drift\\n"}', "/x", ChecksumResult.RIGHT),
        ("/p/elsewhere", "", b"drift\n", None, ChecksumResult.UNCHECKABLE),
    ],
)
def test_a_buckets_file_is_checked_against_its_url(
    target: str, media: str, body: bytes, path: str | None, verdict: ChecksumResult
) -> None:
    found = decode.bucket(asked(media, body, target=target))
    assert isinstance(found, d.BucketFile)
    assert (found.path, found.verdict) == (path, verdict)
    assert d.plain(found) is not None


def test_pson_of_a_bucket_keeps_bytes_that_are_no_text() -> None:
    digest = hashlib.md5(b"caf\xe9", usedforsecurity=False).hexdigest()
    found = decode.bucket(asked("text/pson", b'{"contents":"caf\xe9"}', target=f"/p/file_bucket_file/md5/{digest}"))
    assert isinstance(found, d.BucketFile)
    assert (found.size, found.verdict) == (4, ChecksumResult.RIGHT)


def test_head_is_answered_with_nothing() -> None:
    head = Request(method="HEAD", target="/x")
    for decoder in (decode.node, decode.catalog, decode.opaque, decode.certificates):
        answer = Response(headers=(("Content-Type", "application/json"), ("Content-Encoding", "gzip")), status=200)
        assert decode.answer(decoder, head, answer) == d.Nothing()
    body = answered("application/json", b'{"name":"a"}')
    assert decode.answer(decode.node, Request(), body) == d.Node("a")
    assert decode.bucket(Request(method="HEAD", target="/p/file_bucket_file/md5/00")) == d.Nothing()


def test_content_comes_without_its_encoding_or_not_at_all() -> None:
    assert decode.content(answered("", b"x")) == b"x"
    assert decode.content(answered("", b"x", "gzip")) is None


@pytest.mark.parametrize("mount", files.PLUGIN_MOUNTS)
def test_what_is_in_a_plugin_mount_is_a_plugin(mount: str) -> None:
    listing = endpoints.match("GET", f"/puppet/v3/file_metadatas/{mount}?environment=production&recurse=true")
    content = endpoints.match("GET", f"/puppet/v3/file_content/{mount}/a/b.rb?environment=production")
    assert listing
    assert content
    assert (listing.endpoint.kind, listing.key) == (Kind.PLUGIN_LISTING, mount)
    assert (content.endpoint.kind, content.key) == (Kind.PLUGIN_CONTENT, f"{mount}/a/b.rb")
    assert files.is_plugin(mount)
    assert files.is_plugin(f"{mount}/a/b.rb")
    assert not files.is_plugin(f"modules/{mount}/a.rb")
