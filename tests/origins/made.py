"""The book of origins, made of the messages that were found in sources."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from inspector.analysis import origins
from inspector.analysis.origins import Book, Template
from tests.origins.literals import BLANK
from tests.origins.places import place

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.origins.literals import Literal

LEAST = 3
"""Fixed words that a template must have."""
_SURE, _IN_A_ROW = 6, 3
"""Fixed words that no other program has in common with a template: that many, so many of them in a row."""
_SURE_OF_PUPPET = 4
"""The same, if one of them is a word of Puppet's."""
_OF_PUPPET = {
    "puppet", "facter", "hiera", "puppetdb", "puppetserver", "catalog", "catalogs", "certname", "pluginsync",
    "filebucket", "manifest", "manifests", "pson", "csr", "crl", "crls", "jruby", "epp", "noop", "augeas",
}  # fmt: skip
_LEVELS = {"lib/puppet/pops/issues.rb": "error"}
"""Files whose calls do not say a level, and what it is by default."""
_OF_SYSTEM = [origins.fixed_words([os.strerror(number)])[0] for number in range(1, 134)]
"""What any program prints that passes an error of the system on."""


def book(messages: Iterable[tuple[str, str, Literal]]) -> Book:
    """Return the book of messages, each with its program and file."""
    found: dict[tuple[bytes, bytes, bool, bool], tuple[Template, dict[tuple[str, ...], None]]] = {}
    for program, path, literal in messages:
        parts = literal.text.split(BLANK)
        fixed = origins.fixed_words(parts)
        words = [word for part in fixed for word in part if not word.isdigit()]
        if len(words) < LEAST or any(error[: len(words)] == words for error in _OF_SYSTEM):
            continue
        if (made := origins.template(parts, sure=_sure(fixed, words), origins=())) is None:
            continue
        where = place(program, path, literal.scope)
        origin = (where.printer, path, literal.level or _LEVELS.get(path, ""), where.phase, where.between)
        found.setdefault((made.key, made.pieces, made.opens, made.ends), (made, {}))[1][origin] = None
    texts: dict[str, int] = {}
    numbers: dict[tuple[str, ...], int] = {}
    templates = []
    for made, places in found.values():
        known = tuple(numbers.setdefault(each, len(numbers)) for each in sorted(_with_level(places)))
        templates.append(
            Template(made.key, made.number, made.pieces, made.sure, made.opens, made.ends, known),
        )
    rows = [tuple(texts.setdefault(field, len(texts)) for field in origin) for origin in numbers]
    return Book(tuple(texts), tuple(rows), tuple(templates))  # type: ignore[arg-type]


def _sure(fixed: list[list[str]], words: list[str]) -> bool:
    """Whether no other program prints so many of these words."""
    least = _SURE if _OF_PUPPET.isdisjoint(words) else _SURE_OF_PUPPET
    return len(words) >= least and max(map(len, fixed)) >= _IN_A_ROW


def _with_level(places: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the origins without those that only lack the level, the scope or both of another one."""
    levels = {(printer, path): level for printer, path, level, _, _ in places if level}
    return [each for each in places if each[2] or (each[0], each[1]) not in levels]
