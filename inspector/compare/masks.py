"""Masks for what is shown of two runs: secrets are compared, and shown by neither side.

What is masked is what ``privacy`` masks in exported records: values that are marked as sensitive, parameters and facts
whose names mean a secret, what has the shape of one, and the same values wherever else they occur in the two runs.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import TYPE_CHECKING, Any

from inspector.compare import meaning
from inspector.privacy import redact
from inspector.privacy.known import SHORTEST, KnownSecrets
from inspector.privacy.names import MASK, named
from inspector.protocol import rich
from inspector.protocol.facts import leaves
from inspector.protocol.rich import MAX_DEPTH, Rich

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from inspector.protocol.documents import Catalog, Facts, Resource

LONGEST = 2**20
"""Characters of a text that is shown; of a longer one its digest is."""
_MARKED = b'"Sensitive"'


class Masks:
    """Masks of the secrets in some documents. They are only looked for once something is shown."""

    def __init__(self, catalogs: Iterable[Catalog] = (), facts: Iterable[Facts] = ()) -> None:
        self._catalogs, self._facts = tuple(catalogs), tuple(facts)

    @cached_property
    def _known(self) -> KnownSecrets:
        found = KnownSecrets()
        for catalog in self._catalogs:
            for resource in catalog.resources:
                for text, sure in _secrets(resource):
                    if redact.telling(text, sure=sure):
                        found.add(text)
        for facts in self._facts:
            for path, value in leaves(facts.values):
                if (
                    isinstance(value, str)
                    and any(named(str(name)) for name in path)
                    and redact.mask_of(value, sure=False, likely=True)
                    and redact.telling(value, sure=False)
                ):
                    found.add(value)
        return found

    def text(self, text: str) -> str:
        """A text with masks instead of its secrets."""
        return text if len(text) < SHORTEST else self._known.replaced(redact.text(text))

    def value(self, name: str, value: Any, *, sensitive: bool = False) -> Any:
        """A value with a name, in which rich data was read, as a JSON-able structure with masks."""
        return self._value(value, sure=sensitive, likely=named(name), depth=0)

    def _value(self, value: Any, *, sure: bool, likely: bool, depth: int) -> Any:
        sure = sure or (isinstance(value, Rich) and value.sensitive)
        value = meaning.bare(value)
        if sure and value is not None:
            return MASK
        if depth > MAX_DEPTH:
            return MASK if likely else "..."
        match value:
            case dict():
                return {
                    self.text(str(key)): self._value(
                        item, sure=False, likely=likely or named(str(key)), depth=depth + 1
                    )
                    for key, item in value.items()
                }
            case list():
                return [self._value(item, sure=False, likely=likely, depth=depth + 1) for item in value]
            case Rich(value=bytes() as data):
                digest = f"{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}"
                return MASK if likely else {rich.MARK: value.type, rich.VALUE: digest}
            case Rich():
                inner = self._value(value.value, sure=False, likely=likely, depth=depth + 1)
                return {rich.MARK: value.type} | ({} if inner is None else {rich.VALUE: inner})
        mask = redact.mask_of(value, sure=False, likely=likely)
        if mask is not None:
            return mask
        if isinstance(value, str) and len(value) > LONGEST:
            return f"{len(value):,} characters, sha256 {hashlib.sha256(value.encode('utf-8', 'replace')).hexdigest()}"
        return self.text(value) if isinstance(value, str) else meaning.plain(value)


def _secrets(resource: Resource) -> Iterator[tuple[str, bool]]:
    """The texts in a resource that are marked as sensitive, or likely secret by the name of their parameter."""
    sure = resource.sensitive_parameters
    for name, value in resource.parameters.items():
        if sure and name in sure:
            yield from ((leaf, True) for leaf in _texts(value))
        elif type(value) is str:
            if named(name) and redact.mask_of(value, sure=False, likely=True):
                yield value, False
        elif isinstance(value, dict | list) and _MARKED in meaning.encoded(value):
            yield from ((leaf, True) for marked in _marked(value) for leaf in _texts(marked))


def _marked(value: Any) -> Iterator[Any]:
    waiting = [value]
    while waiting:
        match waiting.pop():
            case {rich.MARK: "Sensitive"} as found:
                yield found.get(rich.VALUE)
            case dict() as found:
                waiting += found.values()
            case list() as found:
                waiting += found


def _texts(value: Any) -> Iterator[str]:
    return (leaf for path, leaf in leaves(value) if isinstance(leaf, str) and path[-1:] != (rich.MARK,))
