"""What the files of two runs get from the master: their sources, metadata and contents."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from inspector.compare.differences import Section
from inspector.protocol.files import NO_DIGESTS
from inspector.text import size

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inspector.compare.differences import Differences
    from inspector.compare.documents import RunDocuments
    from inspector.explain.file_transfers import FileUse

_FIELDS = ("type", "mode", "owner", "group", "links", "destination")
"""Fields of metadata that are compared; what a file is read from is not."""
_PERMISSIONS = frozenset({"mode", "owner", "group"})
"""Fields that say nothing where the agent takes no permissions from the master's file: the users of another master have
other numbers."""


class Content(NamedTuple):
    """A file's content, as far as it is known."""

    digest: str
    """As in the metadata, or of what was fetched; empty: not known."""
    kind: str
    """The kind of digest."""
    body: bytes | None
    """None: it was not fetched in this capture, or is too large."""

    @property
    def text(self) -> str | None:
        """As text; None if it is not known, or is none."""
        if self.body is None or b"\0" in self.body:
            return None
        try:
            return self.body.decode()
        except UnicodeDecodeError:
            return None

    @property
    def brief(self) -> str:
        """Its digest and size, for one that is not shown."""
        sized = f", {size(len(self.body))}" if self.body is not None else ""
        return f"{self.kind} {self.digest}{sized}"


def compare(before: RunDocuments, after: RunDocuments, found: Differences) -> None:
    """Add the differences between the files of two runs, as the master described and served them."""
    old, new = _by_name(before.files), _by_name(after.files)
    both = before.catalog is not None and after.catalog is not None
    for name in {**old, **new}:
        one, other = old.get(name), new.get(name)
        if not both and (one is None or other is None):
            continue  # without its catalog a run asks for no files
        note = ", ".join(dict.fromkeys([*(one.resources if one else ()), *(other.resources if other else ())]))
        if one is None or other is None:
            use, documents = (one, before) if one else (other, after)
            if use is not None and use.metadata is not None:
                text = content(use, documents).brief.strip() or use.metadata.type
                found.add(Section.FILES, name, "", text if one else None, text if other else None, note=note)
            continue
        if (one.metadata is None) != (other.metadata is None):
            kinds = (use.metadata.type if use.metadata else _not_served(use) for use in (one, other))
            found.add(Section.FILES, name, "served", *kinds, note=note)
            continue
        for field in _FIELDS:
            if field in _PERMISSIONS and not (one.permissions or other.permissions):
                continue
            values = [getattr(use.metadata, field, None) for use in (one, other)]
            if values[0] != values[1]:
                if field == "mode":
                    values = [f"{value:04o}" if isinstance(value, int) else value for value in values]
                found.add(Section.FILES, name, field, *values, note=note)
        _contents(name, content(one, before), content(other, after), note, found)


def _not_served(use: FileUse) -> str:
    return f"not served ({'no answer' if use.status is None else use.status})"


def content(use: FileUse, documents: RunDocuments) -> Content:
    """The content of a file in a run: fetched in it, or stored in its capture because somebody fetched it."""
    checksum = use.metadata.checksum if use.metadata and use.metadata.type in ("", "file") else None
    digest, kind = (checksum.digest, checksum.type) if checksum else ("", "")
    body = next((documents.contents[fetch.seq] for fetch in use.fetches if fetch.seq in documents.contents), None)
    if body is None and kind == "sha256":
        body = documents.stored(digest)
    return Content(digest, kind, body)


def _by_name(files: Iterable[FileUse]) -> dict[str, FileUse]:
    """The files by name; the environment is another matter."""
    found: dict[str, FileUse] = {}
    for use in files:
        if use.metadata is not None or use.name not in found:
            found[use.name] = use
    return found


def _contents(name: str, old: Content, new: Content, note: str, found: Differences) -> None:
    if old.body is not None and new.body is not None:
        if old.body == new.body:
            return
    elif old.kind != new.kind or old.digest == new.digest or not old.digest or old.kind in NO_DIGESTS:
        return  # equal, or not to be compared: the digests are of another kind
    before, after = old.text, new.text
    texts = None if before is None or after is None else (before, after)
    found.add(Section.FILES, name, "content", old.brief, new.brief, note=note, texts=texts)
