"""Make ``inspector/messages/origins.msgpack`` of the public sources: ``python -m tests.origins MIRRORS``.

MIRRORS is a directory with a git directory of each repository of ``tests.origins.sources``, below ``OWNER+NAME``. What
could not be had is printed.
"""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from inspector import installation
from inspector.analysis import origins
from tests.origins import literals, made
from tests.origins.sources import SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.origins.literals import Literal
    from tests.origins.sources import Source

_READERS = {".rb": literals.ruby, ".clj": literals.clojure, ".cc": literals.cpp}
_LEFT_OUT = ("/vendor/", "/spec/", "/tests/", "/docs/", "/schema/")


class _Repository:
    """The versions of a repository."""

    def __init__(self, git: Path) -> None:
        self.git = git
        self.read: dict[str, list[Literal]] = {}

    def output(self, *arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(self.git), *arguments], capture_output=True, check=False)
        return done.stdout.decode("utf-8", "replace")

    def templates(self, tag: str, folder: str) -> Iterator[tuple[str, Literal]]:
        """Yield the files of a version, and their templates."""
        for line in self.output("ls-tree", "-r", tag, folder).splitlines():
            blob, path = line.split()[2], line.partition("\t")[2]
            reader = _READERS.get(Path(path).suffix)
            if reader is None or any(part in f"/{path}" for part in _LEFT_OUT):
                continue
            if blob not in self.read:
                self.read[blob] = list(reader(self.output("cat-file", "blob", blob)))
            for literal in self.read[blob]:
                yield path, literal


def _of(source: Source, repository: _Repository) -> Iterator[tuple[str, str, Literal]]:
    """Yield the program, file and template of every message of a source; name what it does not have."""
    for tag in source.tags:
        found = [each for folder in source.folders for each in repository.templates(tag, folder)]
        print(f"{source.repository} {tag}: {len(found)}" if found else f"{source.repository} {tag}: NOT TO BE HAD")
        if source.translations:
            catalog = repository.output("show", f"{tag}:{source.translations}")
            texts = {literal.text for _, literal in found}
            found += [each for each in literals.translations(catalog) if each[1].text not in texts]
        yield from ((source.program, path, literal) for path, literal in found)


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("mirrors", type=Path)
    mirrors = parser.parse_args().mirrors
    repositories: dict[str, _Repository] = {}
    messages: list[tuple[str, str, Literal]] = []
    for source in SOURCES:
        folder = mirrors / source.repository.replace("/", "+")
        git = next((path.parent for path in sorted(folder.glob("**/HEAD"))), folder)
        messages += _of(source, repositories.setdefault(source.repository, _Repository(git)))
    book = made.book(messages)
    stored = origins.encoded(book)
    (installation.PACKAGE / "messages/origins.msgpack").write_bytes(stored)
    print(f"{len(book.templates)} templates, {len(book.origins)} origins, {len(stored):,} bytes")


if __name__ == "__main__":
    main()
