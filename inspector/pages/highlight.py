"""The colours of text: found line by line, when a line is drawn, in time linear in its length.

What is behind ``LONGEST`` in a line, and behind ``LARGEST`` in a file whose lines depend on each other, has no colours:
captured text is hostile, and no key waits for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rich.text import Text

from inspector import regex
from inspector.pages import languages, styles
from inspector.privacy.secrets import MASK, Secret
from inspector.protocol.rich import Rich
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inspector.pages.languages import Language

LONGEST = 2048
"""Bytes of a line that are read for its colours."""
LARGEST = 250_000
"""Bytes of a text that are read in advance, where a line may be part of what begins before it."""
TAB = 4
MOST = 64
"""Lines whose colours are remembered."""
STYLES = {
    "comment": styles.COMMENT,
    "string": styles.STRING,
    "number": styles.NUMBER,
    "boolean": styles.BOOLEAN,
    "null": styles.NULL,
    "key": styles.KEY,
    "reference": styles.REFERENCE,
    "keyword": styles.KEYWORD,
    "variable": styles.VARIABLE,
    "heading": styles.HEADING,
    "added": styles.ADDED,
    "removed": styles.REMOVED,
}
_REFERENCE = regex.compile(r"(?:::)?[A-Z]\w*(?:::[A-Z]\w*)*\[[^\n]+\]", regex.DOTALL)
_NUMBER = regex.compile(rb"[-+]?(?:[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|0x[0-9a-fA-F]+)")
_WORDS = {
    **dict.fromkeys((b"true", b"false", b"yes", b"no", b"on", b"off"), "boolean"),
    **dict.fromkeys((b"null", b"~"), "null"),
}

type Span = tuple[int, int, str]
"""Start, end and style of a piece of a text, in bytes. The pieces of a line are in order and do not overlap."""


class Open(NamedTuple):
    """What began on a line before and has not ended."""

    kind: str
    closes: regex.Pattern[bytes] | None
    """None: it ends before the first line that is not indented by more than ``indent``."""
    indent: int = 0


class State(NamedTuple):
    """What a line is part of."""

    open: Open | None = None
    code: bool = False
    """Whether it is between ``<%`` and ``%>``."""


START = State()


def scan(language: Language, line: bytes, state: State = START) -> tuple[list[Span], State]:
    """Return the coloured pieces of a line, and the state behind it."""
    if language.code is None:
        spans, behind = _scan(language, line, state.open)
        return spans, State(behind)
    spans, at, (held, code) = [], 0, state
    while True:
        end = line.find(b"%>" if code else b"<%", at)
        stop = len(line) if end < 0 else end
        found, held = _scan(language.code if code else language, line[at:stop], held)
        spans += [(at + begin, at + upto, style) for begin, upto, style in found]
        if end < 0:
            return spans, State(held, code)
        if not code and line[end + 2 : end + 3] == b"#":
            upto = line.find(b"%>", end)
            at = len(line) if upto < 0 else upto + 2
            spans.append((end, at, styles.COMMENT))
            held = None
            continue
        at = end + 2
        if not code:
            at += line[at : at + 1] in (b"=", b"-", b"|")
        code, held = not code, None
        spans.append((end, at, styles.HEADING))


def _scan(language: Language, line: bytes, held: Open | None) -> tuple[list[Span], Open | None]:
    spans: list[Span] = []
    at = 0
    if held is not None:
        end = _end(held, line)
        if end is None:
            return [(0, len(line), STYLES[held.kind])], held
        at = end
        if at:
            spans.append((0, at, STYLES[held.kind]))
    following: Open | None = None
    for found in language.pattern.finditer(line, at) if language.pattern else ():
        for begin, end, group in found.parts():
            kind = group.rstrip("0123456789")
            match kind:
                case "open":
                    kind, closes = language.closes[int(group[4:])]
                    spans.append((begin, len(line), STYLES[kind]))
                    return spans, Open(kind, closes)
                case "word" | "declared":
                    kind = language.words.get(line[begin:end], "reference" if kind == "declared" else "")
                case "scalar":
                    text = line[begin:end].rstrip()
                    kind, end = _scalar(text), begin + len(text)
                case "heredoc":
                    following = Open("string", _heredoc(line[begin:end].strip(b"\"'`\\ ")))
                    kind = "keyword"
                case "block":
                    following = Open("string", None, len(line) - len(line.lstrip(b" ")))
                    kind = "keyword"
            if kind in STYLES and end > begin:
                spans.append((begin, end, STYLES[kind]))
    return spans, following


def _end(held: Open, line: bytes) -> int | None:
    """Return where on a line something open ends; None if it goes on."""
    if held.closes is None:
        inner = line.lstrip(b" ")
        return None if not inner.strip() or len(line) - len(inner) > held.indent else 0
    found = held.closes.search(line)
    return found.end() if found else None


def _heredoc(tag: bytes) -> regex.Pattern[bytes]:
    return regex.compile(rb"^[ \t]*\|?[ \t]*-?[ \t]*" + regex.escape(tag[:64]) + rb"[ \t]*$")


def _scalar(text: bytes) -> str:
    if kind := _WORDS.get(text.lower()):
        return kind
    if _NUMBER.fullmatch(text):
        return "number"
    return "reference" if reference(text.decode("utf-8", "replace")) else "string"


def reference(text: str) -> bool:
    """Return whether a text refers to a resource: ``File[/etc/motd]``."""
    return text[-1:] == "]" and len(text) <= LONGEST and _REFERENCE.fullmatch(text) is not None


def style_of(value: Any) -> str:
    """Return the style of a single decoded value."""
    match value:
        case Secret():
            return styles.SECRET
        case Rich():
            return styles.SECRET if value.sensitive else styles.REFERENCE
        case bool():
            return styles.BOOLEAN
        case None:
            return styles.NULL
        case int() | float():
            return styles.NUMBER
        case str() if reference(value):
            return styles.REFERENCE
    return styles.STRING


class Colours:
    """The colours of a text of any size."""

    def __init__(self, data: bytes, language: Language = languages.PLAIN) -> None:
        """Read as much of the text in advance as its language needs."""
        self._data, self._language = data, language
        self._until = len(data) if language.by_line else min(len(data), LARGEST)
        self._states: dict[int, State] = {}
        """By the offset of a line what it is part of, unless that is nothing."""
        self._lines: dict[int, list[Span]] = {}
        if not language.by_line:
            self._read()

    def _read(self) -> None:
        at, state = 0, START
        while at < self._until:
            if state is not START and state != START:
                self._states[at] = state
            _, state = scan(self._language, self._line(at), state)
            end = self._data.find(b"\n", at)
            if end < 0:
                return
            at = end + 1

    def _line(self, at: int) -> bytes:
        end = self._data.find(b"\n", at, at + LONGEST)
        return self._data[at : at + LONGEST if end < 0 else end]

    def text(self, begin: int, end: int, found: Sequence[tuple[int, int]] = (), style: str = "") -> Text:
        """Return a line, or a piece of one, safe for a terminal; what is in ``found`` has a style of its own."""
        text, at = Text(), begin
        end = begin + len(self._data[begin:end].rstrip(b"\r\n"))
        for first, last in found:
            self._add(text, at, first)
            self._append(text, first, last, style)
            at = last
        self._add(text, at, end)
        return masked(text)

    def _add(self, text: Text, begin: int, end: int) -> None:
        at = begin
        for first, last, style in self._spans(begin, end):
            self._append(text, at, first)
            self._append(text, first, last, style)
            at = last
        self._append(text, at, end)

    def _append(self, text: Text, begin: int, end: int, style: str = "") -> None:
        piece = self._data[begin:end].decode("utf-8", "replace")
        if "\t" in piece:
            before = len(text) % TAB
            piece = (" " * before + piece).expandtabs(TAB)[before:]
        text.append(clean(piece), style)

    def _spans(self, begin: int, end: int) -> Iterator[Span]:
        if self._language is languages.PLAIN:
            return
        at = self._data.rfind(b"\n", max(0, begin - LONGEST), begin) + 1
        if (at == 0 and begin > LONGEST) or at >= self._until:
            return
        for first, last, style in self._scanned(at):
            if at + last > begin and at + first < end:
                yield max(begin, at + first), min(end, at + last), style

    def _scanned(self, at: int) -> list[Span]:
        found = self._lines.get(at)
        if found is None:
            if len(self._lines) >= MOST:
                self._lines.clear()
            found = self._lines[at] = scan(self._language, self._line(at), self._states.get(at, START))[0]
        return found


def masked(text: Text) -> Text:
    """Give the masks in a text the style of hidden values."""
    at = text.plain.find(MASK)
    while at >= 0:
        text.stylize(styles.SECRET, at, at + len(MASK))
        at = text.plain.find(MASK, at + len(MASK))
    return text


def lines(text: str, language: Language = languages.PLAIN) -> Iterator[Text]:
    """Yield the lines of a text."""
    data = text.encode("utf-8", "replace")
    colours, at = Colours(data, language), 0
    while at <= len(data):
        end = data.find(b"\n", at)
        stop = len(data) if end < 0 else end
        yield colours.text(at, stop)
        at = stop + 1


def value(text: str, decoded: Any) -> Text:
    """Return how a single decoded value is drawn that is written like this."""
    return masked(Text(clean(text), style_of(decoded)))
