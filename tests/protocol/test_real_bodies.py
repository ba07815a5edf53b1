"""Bodies of real agents and masters, where the recordings are at hand: all are read but what is really broken."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from inspector.capture.store import Capture
from inspector.formats.importing import load
from inspector.model import Exchange
from inspector.protocol import decode, endpoints
from inspector.protocol import documents as d
from inspector.protocol.bodies import content_type
from inspector.protocol.files import ChecksumResult, check
from tests.support import places
from tests.support.touching import touch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RECORDINGS = places.RECORDINGS

pytestmark = pytest.mark.skipif(not RECORDINGS.is_dir(), reason=f"there are no recordings at {RECORDINGS}")

BROKEN = Counter({"facts: Object missing required field `name`": 2, "no CERTIFICATE REQUEST in PEM form": 1})
"""What curl sent on purpose in 19-curl-no-cert-and-foreign-node."""


@pytest.fixture(scope="module")
def exchanges(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, Exchange, endpoints.Match]]:
    return list(_read(tmp_path_factory.mktemp("recordings")))


def _read(folder: Path) -> Iterator[tuple[str, Exchange, endpoints.Match]]:
    for number, flows in enumerate(sorted(RECORDINGS.rglob("*.mitm"))):
        path = folder / f"{number}.sqlite"
        load([flows], path)
        with Capture.open(path) as capture:
            for record in capture.records():
                if isinstance(record, Exchange):
                    match = endpoints.match(record.request.method, record.request.target)
                    if match is not None:
                        yield str(flows.parent.relative_to(RECORDINGS)), record, match


type Exchanges = list[tuple[str, Exchange, endpoints.Match]]


@pytest.mark.slow
def test_nothing_real_is_undecodable(exchanges: Exchanges) -> None:
    broken: Counter[str] = Counter()
    for where, exchange, match in exchanges:
        documents = [match.endpoint.request(exchange.request)]
        if exchange.response is not None:
            documents.append(decode.answer(match.endpoint.response, exchange.request, exchange.response))
        for document in documents:
            touch(document)
            output = document.facts if isinstance(document, d.CatalogRequest) else document
            if isinstance(output, d.Undecodable):
                assert "19-curl" in where
                broken[output.reason] += 1
    assert broken == BROKEN


@pytest.mark.slow
def test_every_real_report_has_what_views_read(exchanges: Exchanges) -> None:
    formats = set()
    for _, exchange, match in exchanges:
        if match.endpoint.name == "report" and exchange.response and exchange.response.status != 403:
            report = match.endpoint.request(exchange.request)
            assert isinstance(report, d.Report)
            if "curl" in (exchange.request.header("user-agent") or ""):
                continue
            assert report.known_format
            assert report.outcome in ("changed", "unchanged", "failed")
            assert report.logs
            assert all(line.time and line.level and line.level[0].isalpha() for line in report.logs)
            if report.resource_statuses:
                assert report.counts["total"] > 0
                assert report.times["total"] > 0
                assert report.metric("resources", "total") == report.counts["total"]
                assert report.metric("time", "total") == report.times["total"]
            assert report.host
            assert report.time
            number = report.report_format or 0
            if number >= 6:
                assert None not in (report.noop, report.noop_pending, report.corrective_change)
                assert report.cached_catalog_status in (None, "not_used", "explicitly_requested", "on_failure")
            if number >= 10:
                assert report.transaction_completed is not None
                if report.resource_statuses:
                    assert report.metric("resources", "failed_to_restart") is not None
            for ref, status in report.resource_statuses.items():
                if status.title is not None:  # 2.7 on a newer Ruby sends empty ones
                    assert None not in (status.changed, status.failed, status.out_of_sync, status.skipped), ref
                    assert (status.corrective_change is None) is (number < 6), ref
            formats.add((report.report_format, content_type(exchange.request)))
    assert {number for number, _ in formats} >= {3, 4, 6, 10, 11, 12}
    assert {media for _, media in formats} >= {"text/yaml", "text/pson", "application/json", "application/x-msgpack"}


@pytest.mark.slow
def test_every_real_catalog_is_whole(exchanges: Exchanges) -> None:
    static = sensitive = files = 0
    for _, exchange, match in exchanges:
        if match.endpoint.name == "catalog" and exchange.response and exchange.response.status == 200:
            catalog = match.endpoint.response(exchange.response)
            assert isinstance(catalog, d.Catalog)
            if catalog.resources:
                assert catalog.classes
                assert catalog.edges
                assert all(edge.source and edge.target for edge in catalog.edges)
            static += catalog.static
            sensitive += len(catalog.sensitive)
            files += len(list(catalog.files))
    assert static > 0
    assert sensitive > 0
    assert files > 100


def test_real_content_has_the_checksum_of_its_metadata(exchanges: Exchanges) -> None:
    """Within one recording, of plugins and files that did not change meanwhile."""
    verdicts: Counter[ChecksumResult] = Counter()
    known: dict[tuple[str, str], set[d.Checksum]] = {}
    for where, exchange, match in exchanges:
        response, key = exchange.response, match.key or ""
        if response is None or response.status != 200:
            continue
        found = match.endpoint.response(response)
        listed = found.files if isinstance(found, d.FileMetadatas) else [found]
        for metadata in listed:
            if isinstance(metadata, d.FileMetadata) and metadata.checksum is not None:
                path = key if metadata.relative_path in (None, ".") else f"{key}/{metadata.relative_path}"
                known.setdefault((where, path), set()).add(metadata.checksum)
        if match.endpoint.name in ("plugin_file", "file_content") and (where, key) in known:
            content = decode.content(response)
            assert content is not None
            checked = {check(content, checksum) for checksum in known[where, key]}
            verdicts[ChecksumResult.RIGHT if ChecksumResult.RIGHT in checked else checked.pop()] += 1
    assert verdicts[ChecksumResult.RIGHT] > 400
    assert verdicts[ChecksumResult.WRONG] == 0


def test_real_static_content_has_the_checksum_that_the_catalog_says(exchanges: Exchanges) -> None:
    inlined: dict[str, dict[str, list[d.FileMetadata]]] = {}
    verdicts: Counter[ChecksumResult] = Counter()
    for where, exchange, match in exchanges:
        if exchange.response is None:
            continue
        answered = decode.answer(match.endpoint.response, exchange.request, exchange.response)
        if isinstance(answered, d.Catalog) and answered.static:
            assert (answered.code_id, answered.environment, answered.catalog_format) == (
                "v1",
                "static",
                2,
            )
            inlined.setdefault(where, answered.contents)
            own = [file.contents for file in answered.files if file.metadata]
            assert len(own) == 4
            assert {path for contents in own for path in contents} == set(answered.contents)
        if match.endpoint.name == "static_file_content":
            assert match.verb is None
            assert isinstance(answered, d.Opaque)
            content = decode.content(exchange.response)
            assert content is not None
            (metadata,) = inlined[where][match.key or ""]
            assert (metadata.type, metadata.links, metadata.destination) == ("file", "manage", None)
            assert metadata.checksum is not None
            assert metadata.checksum.type in ("md5", "sha256")
            verdicts[check(content, metadata.checksum)] += 1
    assert verdicts[ChecksumResult.RIGHT] > 20
    assert set(verdicts) <= {ChecksumResult.RIGHT, ChecksumResult.WRONG}


def test_real_empty_files_are_files(exchanges: Exchanges) -> None:
    empty: Counter[tuple[str, str | None, str]] = Counter()
    for _, exchange, match in exchanges:
        response = exchange.response
        if response and response.status == 200 and match.endpoint.response is decode.opaque and not response.body:
            answered = decode.answer(match.endpoint.response, exchange.request, response)
            assert answered == d.Nothing() or (isinstance(answered, d.Opaque) and answered.size == 0)
            empty[match.endpoint.name, match.verb, type(answered).__name__] += 1
    assert set(empty) == {
        ("file_content", "find", "Opaque"),
        ("file_bucket_file", "find", "Opaque"),
        ("file_bucket_file", "head", "Nothing"),
        ("file_bucket_file", "save", "Nothing"),
    }


def test_real_requests_are_what_the_protocol_says(exchanges: Exchanges) -> None:
    verbs = {(match.endpoint.name, exchange.request.method, match.verb) for _, exchange, match in exchanges}
    assert {row for row in verbs if row[2] in ("search", "head", "save", "destroy")} >= {
        ("plugin_list", "GET", "search"),
        ("file_bucket_file", "HEAD", "head"),
        ("file_bucket_file", "PUT", "save"),
        ("certificate_request", "PUT", "save"),
        ("report", "PUT", "save"),
    }
    assert ("catalog", "POST", "find") in verbs
    assert not any(verb == "search" for name, _, verb in verbs if name in ("catalog", "node", "file_content", "report"))


def test_real_secrets_are_in_clear(exchanges: Exchanges) -> None:
    found = 0
    for _, exchange, match in exchanges:
        if match.endpoint.name == "catalog" and exchange.response and exchange.response.status == 200:
            catalog = match.endpoint.response(exchange.response)
            assert isinstance(catalog, d.Catalog)
            assert catalog.in_clear == catalog.sensitive
            found += len(catalog.in_clear)
    assert found > 0


def test_real_requests_for_catalogs_say_what_the_agent_can(exchanges: Exchanges) -> None:
    asked = {
        (request.static_catalog, request.checksum_type or "", request.facts_format)
        for where, exchange, match in exchanges
        if match.endpoint.name == "catalog" and "19-curl" not in where
        for request in [match.endpoint.request(exchange.request)]
        if isinstance(request, d.CatalogRequest)
    }
    for static, types, notation in asked:
        assert bool(types) is static
        known = "md5 sha256 sha384 sha512 sha224 sha1 md5lite sha256lite mtime ctime none"
        assert not types or set(types.split(".")) <= set(known.split())
        assert notation in ("pson", "b64_zlib_yaml", "application/json")
    assert {static for static, *_ in asked} == {True, False}


def test_real_buckets_get_what_their_url_says(exchanges: Exchanges) -> None:
    verdicts = Counter(
        found.verdict
        for _, exchange, match in exchanges
        if match.endpoint.name == "file_bucket_file" and exchange.request.method == "PUT"
        for found in [decode.bucket(exchange.request)]
        if isinstance(found, d.BucketFile)
    )
    assert verdicts[ChecksumResult.RIGHT] >= 15
    assert set(verdicts) == {ChecksumResult.RIGHT}
