"""Catalogs as typed documents (docs/protocol.md#catalogs). Rich values stay raw until they are read."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from inspector.protocol import rich
from inspector.protocol.files import FileMetadata

if TYPE_CHECKING:
    from collections.abc import Iterator


type Title = str
"""A title. A number is accepted, and read as its text."""
if not TYPE_CHECKING:
    Title = str | int | float


class Resource(msgspec.Struct, frozen=True):
    type: str
    title: Title
    parameters: dict[str, Any] = {}
    """As sent; ``value`` and ``values`` read rich data."""
    file: str | None = None
    line: int | None = None
    exported: bool = False
    sensitive_parameters: list[str] = []
    tags: list[str] = []
    kind: str | None = None

    def __post_init__(self) -> None:
        if type(self.title) is not str:
            msgspec.structs.force_setattr(self, "title", str(self.title))

    @property
    def ref(self) -> str:
        return f"{self.type}[{self.title}]"

    def named(self, ref: str) -> bool:
        """Whether ``Type[title]`` is this resource; the type is not case-sensitive, and may contain anything."""
        size = len(self.type)
        return ref[:size].lower() == self.type.lower() and ref[size:] == f"[{self.title}]"

    def value(self, name: str) -> Any:
        """A parameter for display: rich data as ``Rich``, including values that are only listed as sensitive."""
        value = rich.read(self.parameters.get(name), self.parameters)
        if name in self.sensitive_parameters and not (isinstance(value, rich.Rich) and value.sensitive):
            return rich.Rich("Sensitive", value)
        return value

    @property
    def values(self) -> dict[str, Any]:
        return {name: self.value(name) for name in self.parameters}

    @property
    def sensitive(self) -> list[str]:
        """The parameters that contain a secret, whichever way they are marked."""
        names = set(self.sensitive_parameters)
        return [name for name, value in self.parameters.items() if name in names or rich.secrets(value)]

    @property
    def in_clear(self) -> list[str]:
        """Those of ``sensitive`` whose value is readable in the catalog: not empty ones, and not those that the
        agent computes itself (Deferred)."""
        return [name for name in self.sensitive if rich.readable(self.parameters[name])]


class Edge(msgspec.Struct, frozen=True, omit_defaults=True):
    source: str = ""
    target: str = ""
    event: Any = None
    callback: Any = None


class FileResource(msgspec.Struct, frozen=True):
    """A file resource that gets its content from a master."""

    ref: str
    path: str
    sources: list[str]
    """In the order in which the agent tries them."""
    metadata: list[FileMetadata]
    """The metadata in a static catalog: one entry for a file, the tree for a directory; else empty."""
    checksum: str | None = None
    """How the agent compares content, if the manifest sets it: ``md5``, ``sha256lite``, ``mtime``, ..."""
    checksum_value: str | None = None
    """The digest that the content must have (4.6 and later)."""

    @property
    def contents(self) -> dict[str, FileMetadata]:
        """``metadata`` by the key of the static_file_content request that fetches it."""
        return {path: metadata for metadata in self.metadata if (path := metadata.content_path)}


class Catalog(msgspec.Struct, frozen=True):
    """A catalog. An empty one for another environment is normal (docs/protocol.md#catalog-request)."""

    unreadable: ClassVar[str] = ""
    """Why no agent can read it (``UnreadableCatalog``); empty if it can."""
    name: str = ""
    environment: str | None = None
    version: int | str | float | None = None
    catalog_uuid: str | None = None
    code_id: str | None = None
    catalog_format: int | None = None
    resources: list[Resource] = []
    classes: list[str] = []
    edges: list[Edge] = []
    tags: list[str] = []
    metadata: dict[str, FileMetadata] = {}
    """Static catalogs: the metadata of each file resource, by its title."""
    recursive_metadata: dict[str, dict[str, list[FileMetadata]]] = {}
    """Static catalogs: the metadata of each directory, by its title and its source."""

    @property
    def static(self) -> bool:
        return bool(self.code_id or self.metadata or self.recursive_metadata)

    def find(self, ref: str) -> Resource | None:
        """The resource ``Type[title]``; the type is not case-sensitive."""
        return next((resource for resource in self.resources if resource.named(ref)), None)

    @property
    def sensitive(self) -> dict[str, list[str]]:
        """The parameters that hold secrets, by resource."""
        return {resource.ref: names for resource in self.resources if (names := resource.sensitive)}

    @property
    def in_clear(self) -> dict[str, list[str]]:
        """Those of ``sensitive`` whose values are readable, by resource."""
        return {resource.ref: names for resource in self.resources if (names := resource.in_clear)}

    @property
    def contents(self) -> dict[str, list[FileMetadata]]:
        """The metadata of each file in a static catalog, by the key of the static_file_content request that fetches it.

        Several resources may copy one file, and their checksums may have different types.
        """
        trees = (tree for by_source in self.recursive_metadata.values() for tree in by_source.values())
        found: dict[str, list[FileMetadata]] = {}
        for metadata in chain(self.metadata.values(), *trees):
            if path := metadata.content_path:
                found.setdefault(path, []).append(metadata)
        return found

    @property
    def files(self) -> Iterator[FileResource]:
        """File resources with a source."""
        for resource in self.resources:
            source = resource.parameters.get("source") if resource.type == "File" else None
            if not source:
                continue  # most of them
            if named := [item for item in (source if isinstance(source, list) else [source]) if isinstance(item, str)]:
                path, checksum, value = (
                    found if isinstance(found := resource.parameters.get(name), str) else None
                    for name in ("path", "checksum", "checksum_value")
                )
                yield FileResource(
                    resource.ref, path or resource.title, named, self._metadata(resource.title), checksum, value
                )

    def _metadata(self, title: str) -> list[FileMetadata]:
        if title in self.metadata:
            return [self.metadata[title]]
        return [metadata for tree in self.recursive_metadata.get(title, {}).values() for metadata in tree]


class UnreadableCatalog(Catalog, frozen=True):
    """A catalog that no agent can read, without what is wrong in it."""

    unreadable: str = ""  # type: ignore[misc]
