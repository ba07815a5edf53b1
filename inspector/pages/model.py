"""What a document looks like before it is drawn: trees whose branches are made when they are looked at, and tables.

No widgets: made in a thread, and tested without a terminal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from rich.text import Text

from inspector import regex
from inspector.pages import highlight, languages, styles
from inspector.privacy import hiding
from inspector.privacy.secrets import MASK, Secret
from inspector.protocol import bodies
from inspector.protocol.rich import Rich
from inspector.text import clean, excerpt

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from inspector.pages.languages import Language

BATCH = 500
"""Items under one branch; more are put into branches of so many."""
LONGEST = 500
"""Characters of a value that a line shows."""
ASK = f"{MASK} (press x to show it)"

WRONG = (*bodies.WRONG, LookupError, ArithmeticError, AttributeError, InvalidSignature, UnsupportedAlgorithm)
"""What a body that nobody thought of may lead to: it is said, and nothing else happens."""

_LINES = regex.compile(r"\s*\n\s*")

type TreePath = tuple[int, ...]
"""The way to an item: its place among its siblings, from the top."""


class Item:
    """A line of a tree: a name with a value or with child items."""

    __slots__ = (
        "_draw",
        "_inner",
        "_known",
        "_made",
        "bare",
        "group",
        "holds",
        "name",
        "note",
        "opened",
        "style",
        "value",
    )

    def __init__(
        self,
        name: str,
        value: Any = None,
        inner: Callable[[], Iterable[Item]] | None = None,
        *,
        note: str = "",
        style: str = "",
        opened: bool = False,
        group: bool = False,
        holds: Callable[[str], bool] | None = None,
        draw: Callable[[], Text] | None = None,
        bare: bool = False,
    ) -> None:
        """``inner`` makes the children, once. ``holds`` may return False for a text (in lower case) that no child
        contains. A ``group`` only keeps branches short. ``draw`` draws a short value in colours of its own.
        Texts with a secret in them are hidden unless ``bare``: it was decided about a text as a whole."""
        self.name, self.note, self.style, self.bare = name, note, style, bare
        self.value = hiding.text(value) if isinstance(value, str) and not bare else value
        self.opened, self.group, self.holds = opened, group, holds
        self._inner, self._draw = inner, draw
        self._made: list[Item] | None = None
        self._known: Collection[str] = ()

    def know(self, known: Collection[str]) -> None:
        """Hide the secrets of its record in its texts, and in all below it."""
        self._known = known
        if isinstance(self.value, str | Secret):
            self.value = hiding.without(self.value, known)

    @property
    def branch(self) -> bool:
        """Whether it may have children."""
        return self._inner is not None

    @property
    def items(self) -> list[Item]:
        """Its children."""
        if self._made is None:
            try:
                self._made = list(self._inner()) if self._inner else []
            except WRONG as error:
                self._made = [Item("cannot be shown", str(error))]
            for item in self._made if self._known else ():
                item.know(self._known)
        return self._made

    @property
    def secret(self) -> bool:
        """Whether its value is hidden."""
        return isinstance(self.value, Secret)

    def reveal(self) -> None:
        """Show a hidden value from now on."""
        if isinstance(self.value, Secret):
            shown = item_of(self.name, self.value.value, bare=True)
            self.value, self._inner, self.note, self.bare = shown.value, shown._inner, shown.note, True
            self._made, self._known, self.opened = None, (), True

    def uncovered(self) -> Item:
        """Show it, and all below it when that is made."""
        self.reveal()
        inner = self._inner
        if inner is not None:
            self._inner, self._made = lambda: [item.uncovered() for item in inner()], None
        self.bare, self._known = True, ()
        return self

    @property
    def text(self) -> str:
        """Its line, safe for a terminal."""
        return self._line(LONGEST)

    @property
    def full(self) -> str:
        """Its line with the complete value."""
        return self._line(None)

    def _line(self, longest: int | None) -> str:
        name = self._named
        if self.branch:
            return f"{name}  {clean(str(hiding.without(hiding.text(self.note), self._known)))}" if self.note else name
        text = asked(self.value) if isinstance(self.value, Secret) else word(self.value)
        if longest:
            text = excerpt(text, longest)
        return f"{name}: {clean(text)}" if name else clean(text)

    @property
    def _named(self) -> str:
        return clean(str(hiding.without(self.name if self.bare else hiding.text(self.name), self._known)))

    @property
    def label(self) -> Text:
        """Its line, styled."""
        name = self._named
        text = Text.assemble((name, self.style or _name_style(self.name)))
        rest = self.text[len(name) :]
        if self.branch or self.style:
            return text.append(rest, self.style if not self.branch else "dim")
        if not self.name and self._draw and isinstance(self.value, str) and len(self.value) <= LONGEST:
            return self._draw()
        if self.name:
            text.append(": ")
            rest = rest[2:]
        return text.append_text(highlight.value(rest, self.value))

    @property
    def copied(self) -> str:
        """Its complete value as displayed; the name for a branch."""
        return self._named if self.branch else word(self.value)


def many[T](found: Sequence[T], make: Callable[[T], Item], name: Callable[[T], str]) -> list[Item]:
    """Return one item for each value. Many items are grouped in branches, which create them when opened."""
    if len(found) <= BATCH:
        return [make(value) for value in found]

    def batch(at: int) -> Item:
        part = found[at : at + BATCH]
        title = f"{at + 1:,} to {at + len(part):,}: {name(part[0])[:40]} …"
        return Item(title, inner=lambda: map(make, part), group=True)

    return [batch(at) for at in range(0, len(found), BATCH)]


def asked(secret: Secret) -> str:
    """What is shown of a secret."""
    return ASK if secret.shown == MASK else secret.shown


def word(value: Any) -> str:
    """A single value in Puppet's terms."""
    match value:
        case None:
            return "undef"
        case bool():
            return "true" if value else "false"
        case bytes():
            return f"Binary({len(value)} bytes)"
        case _:
            return str(value)


def item_of(name: str, value: Any, language: Language | None = None, *, bare: bool = False) -> Item:
    """Any decoded value as an item: mappings, lists and multi-line texts are branches. A text may be in a language.
    Secrets are hidden unless it is ``bare``: that was done for a value around this one, or the user asked for it."""
    if not bare:
        (value,) = hiding.masked({name: value}).values()
    match value:
        case dict():
            pairs = list(value.items())
            return Item(
                name,
                inner=lambda: many(
                    pairs, lambda pair: item_of(str(pair[0]), pair[1], bare=True), lambda pair: str(pair[0])
                ),
                note=f"{{{len(value)}}}",
            )
        case list() | tuple():
            places = range(len(value))
            return Item(
                name,
                inner=lambda: many(places, lambda at: item_of(str(at), value[at], bare=True), str),
                note=f"[{len(value)}]",
            )
        case Rich(value=dict() | list() | Rich() | Secret()) if not value.sensitive:
            inner = value.value
            return Item(name, inner=lambda: _within(item_of("value", inner)), note=value.type)
        case msgspec.Struct():
            return Item(name, inner=lambda: fields(value), note=type(value).__name__)
        case str() if "\n" in value.rstrip("\n"):
            lines = value.split("\n")
            known = language or languages.of_content(value[:1000].encode("utf-8", "replace"))
            return Item(name, inner=lambda: _lines(value, lines, known), note=f"{len(lines)} lines")
        case Secret(shown=shown) if "\n" in shown.rstrip("\n"):
            masked = item_of(name, shown, language, bare=True)
            return Item(name, value, lambda: masked.items, note=masked.note)
    return Item(name, value, bare=bare)


def _lines(text: str, lines: list[str], language: Language) -> list[Item]:
    colours = highlight.Colours(text.encode("utf-8", "replace"), language)
    begins = [0, *accumulate(len(line.encode("utf-8", "replace")) + 1 for line in lines)]

    def item(at: int) -> Item:
        return Item("", lines[at], draw=lambda: colours.text(begins[at], begins[at + 1]), bare=True)

    return many(range(len(lines)), item, lambda at: lines[at])


def _name_style(name: str) -> str:
    if name.isdigit():
        return styles.NULL
    return styles.REFERENCE if highlight.reference(name) else styles.KEY


def _within(item: Item) -> list[Item]:
    return item.items if item.branch else [item]


def fields(struct: msgspec.Struct) -> list[Item]:
    """A document's fields that have a value."""
    found = ((name, getattr(struct, name)) for name in struct.__struct_fields__ if name != "der")
    return [item_of(name, value) for name, value in found if value is not None and value != [] and value != {}]


# -- searching -------------------------------------------------------------------------------------------


def find(root: Item, pattern: str, at: TreePath = (), *, forward: bool = True, again: bool = False) -> TreePath | None:
    """The path to the next item (from ``at`` on, then from the start) whose line contains a text, ignoring case."""
    wanted = pattern.casefold()
    plain = not any(char in '"\\' or ord(char) < 32 for char in wanted)
    first = last = before = after = None
    for path in _matches(root, wanted, plain=plain):
        first, last = first or path, path
        if path < at or (path == at and not again and not forward):
            before = path
        if path > at or (path == at and not again):
            after = path
            if forward:
                return after
    return first if forward else before or last


def _matches(root: Item, wanted: str, *, plain: bool) -> Iterator[TreePath]:
    waiting: list[tuple[TreePath, Item]] = [((), root)]
    while waiting:
        path, item = waiting.pop()
        if path and not item.group and wanted in item.text.casefold():
            yield path
        if item.branch and not (plain and item.holds and not item.holds(wanted)):
            waiting += [((*path, place), child) for place, child in reversed([*enumerate(item.items)])]


# -- tables ----------------------------------------------------------------------------------------------

type Cell = str | int | float | Text | Secret | None


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a table."""

    title: str
    width: int
    grows: int = 0
    least: int = 0
    """Omitted on screens with fewer cells than this."""
    right: bool = False
    ends: bool = False
    """A text that is too long loses its middle, not its end."""


@dataclass(slots=True)
class Table:
    """Rows of cells; ``value`` is the column that is copied."""

    fields: tuple[Field, ...]
    rows: list[tuple[Cell, ...]]
    value: int = -1
    empty: str = "nothing"
    shown: set[tuple[int, int]] = field(default_factory=set)
    """The secrets that the user revealed: row and column."""
    known: Collection[str] = ()
    """The secrets of its record."""

    def cell(self, row: int, column: int) -> Text:
        """A cell, safe for a terminal."""
        value = self._value(row, column)
        if isinstance(value, Text):
            return value
        text = clean(_LINES.sub(" ", self.plain(row, column)).replace("\t", " ").strip())
        reference = isinstance(value, str) and highlight.reference(value)
        return highlight.masked(Text(text, styles.REFERENCE if reference else ""))

    def _value(self, row: int, column: int) -> Cell:
        """A cell's value, hidden if a secret is in it."""
        value = self.rows[row][column]
        return hiding.without(hiding.text(value), self.known) if isinstance(value, str) else value

    def plain(self, row: int, column: int) -> str:
        """A cell's text, masked if it is a secret."""
        value = self._value(row, column)
        if isinstance(value, Secret):
            return word(value.value) if (row, column) in self.shown else asked(value)
        if isinstance(value, float):
            return f"{value:,.3f}".rstrip("0").rstrip(".")
        return "" if value is None else value.plain if isinstance(value, Text) else str(value)

    def hidden(self, row: int) -> set[tuple[int, int]]:
        """The masked cells of a row."""
        places = range(len(self.rows[row]))
        return {(row, at) for at in places if isinstance(self._value(row, at), Secret)} - self.shown

    def reveal(self, row: int) -> bool:
        """Reveal the masked cells of a row; False if there are none."""
        hidden = self.hidden(row)
        self.shown |= hidden
        return bool(hidden)

    def order(self, row: int, column: int) -> tuple[bool, float, str]:
        """Sort key of a column: numbers before texts."""
        value = self.rows[row][column]
        number = isinstance(value, int | float)
        return not number, float(value) if isinstance(value, int | float) else 0.0, self.plain(row, column)
