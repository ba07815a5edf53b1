"""The files that a catalog names, at the master that compiled it: metadata, and contents that the agent has not had."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from inspector import regex
from inspector.rehearsal import answered, requests
from inspector.rehearsal.requests import Unsendable
from inspector.runs.observations import served

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Mapping

    from inspector.model import Exchange, Request
    from inspector.protocol.catalogs import Catalog, Resource
    from inspector.protocol.files import FileMetadata
    from inspector.rehearsal.requests import Asked

FILES = 10_000
"""Requests for files of one catalog."""
_CHECKSUMS = ("sha256", "md5", "sha512", "sha384", "sha224")
_PLAIN = ("", "file")
"""Types of metadata that have a content."""
_HERE = regex.compile(r"puppet:///+(.*[^/])/*", regex.DOTALL)
_WORD = regex.compile("[a-z0-9_]{1,20}")
_NOT = (None, False, "false", "undef", "")
"""The value of a parameter that is not set."""


class Source(NamedTuple):
    """A file resource, as far as it gets files from the master."""

    names: list[str]
    """In the order in which the agent tries them."""
    recursive: list[tuple[str, str]] | None
    """Of a directory with what is in it, the parameters of its list; None: one file."""
    every: bool = False
    """Whether what is in all sources is copied, not the first one alone."""
    query: tuple[tuple[str, str], ...] = ()
    """What the resource sets of the parameters of each request for metadata."""


def fetched(
    ask: Callable[[Request], Exchange], of: Asked, known: Mapping[str, str], compiled: Exchange, stop: threading.Event
) -> Iterator[Exchange]:
    """Ask for the files of a catalog; not for contents whose digests are ``known``, by the names of the files."""
    documents = answered.gathered(of, [compiled], "")
    if documents.catalog is None:
        return
    environment = documents.catalog.environment or of.document.environment or "production"
    kinds = (of.document.checksum_type or "").split(".")
    checksum = next((kind for kind in kinds if kind in _CHECKSUMS), "sha256")
    fetcher = _Fetcher(ask, of, known, environment, checksum)
    found = chain(fetcher.of_static(documents.catalog), fetcher.of_sources(documents.catalog))
    for each in islice(found, FILES):
        yield each
        if stop.is_set():
            return


class _Fetcher:
    def __init__(
        self, ask: Callable[[Request], Exchange], of: Asked, known: Mapping[str, str], environment: str, checksum: str
    ) -> None:  # fmt: skip
        self._ask, self._of, self._known = ask, of, known
        self._environment, self._checksum = environment, checksum

    def of_static(self, catalog: Catalog) -> Iterator[Exchange]:
        """Ask for the contents of those whose metadata is in the catalog."""
        names = {
            path: served(metadata.source) or path for metadata in _described(catalog)
            if (path := metadata.content_path) and self._new(served(metadata.source) or path, metadata)
        }  # fmt: skip
        for path in names:
            yield from self._asked(requests.static_content, path, self._environment, catalog.code_id or "")

    def of_sources(self, catalog: Catalog) -> Iterator[Exchange]:
        """Ask for the metadata of the others, and for contents."""
        for names, recursive, every, given in sources_of(catalog):
            for name in names:
                query = requests.reading(self._checksum, self._environment, recursive, dict(given))
                make = requests.metadata if recursive is None else requests.listing
                asked = next(self._asked(make, name, query), None)
                if asked is None:
                    continue
                yield asked
                if asked.response is None or asked.response.status == 404:
                    continue  # the next source of this file
                for use in answered.gathered(self._of, [asked], "").files:
                    if use.metadata is not None and self._new(use.name, use.metadata):
                        yield from self._asked(requests.content, use.name, self._environment)
                if not every:
                    break

    def _new(self, name: str, metadata: FileMetadata) -> bool:
        """Whether the content of a file may be another one than the agent had."""
        digest = metadata.checksum.digest if metadata.checksum else None
        return metadata.type in _PLAIN and (digest is None or self._known.get(name) != digest)

    def _asked(self, make: Callable[..., Request], *words: object) -> Iterator[Exchange]:
        try:
            request = make(self._of, *words)
        except Unsendable:
            return
        yield self._ask(request)


def _described(catalog: Catalog) -> Iterator[FileMetadata]:
    return chain.from_iterable(catalog.contents.values())


def sources_of(catalog: Catalog) -> Iterator[Source]:
    """Yield each file resource with a source at this master, unless its metadata is in the catalog."""
    for resource in catalog.resources:
        static = resource.title in catalog.metadata or resource.title in catalog.recursive_metadata
        if resource.type.lower() != "file" or static:
            continue
        given = resource.parameters.get("source")
        texts = given if isinstance(given, list) else [given]
        if found := [match[1] for text in texts if isinstance(text, str) and (match := _HERE.fullmatch(text))]:
            every = resource.parameters.get("sourceselect") == "all"
            yield Source(found, _recursion(resource), every, tuple(_given(resource)))


def _given(resource: Resource) -> Iterator[tuple[str, str]]:
    """What a resource sets of the parameters of a request for metadata, as the agent sends it."""
    for field, name in (
        ("links", "links"),
        ("checksum_type", "checksum"),
        ("source_permissions", "source_permissions"),
    ):
        value = resource.parameters.get(name)
        if isinstance(value, str) and value not in _NOT and _WORD.fullmatch(value):
            yield field, value


def _recursion(resource: Resource) -> list[tuple[str, str]] | None:
    """The parameters of the request for the files in a directory, as the agent makes it; None if it makes none."""
    if resource.parameters.get("recurse") in _NOT:
        return None
    query = [("recurse", "true")]
    for name in ("recurselimit", "max_files", "ignore"):
        value = resource.parameters.get(name)
        query += [(name, str(each)) for each in (value if isinstance(value, list) else [value]) if each not in _NOT]
    return query
