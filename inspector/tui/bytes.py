"""Text and bytes of any size, as a list that draws only its visible lines."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, cast

from inspector import regex
from inspector.pages.content import Content, breaks, dump, read
from inspector.pages.highlight import Colours
from inspector.text import clean
from inspector.tui.columns import Column
from inspector.tui.rows import Rows
from inspector.tui.view import later

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

SMALL = 500_000
"""Size up to which bytes are laid out at once; larger ones in a thread."""
_NARROW = 20
_BRACKETS = " \t{}[](),;"
_FOUND = "black on #ffcb6b"


class Bytes(Rows[int]):
    """A text, or bytes in hexadecimal, line by line."""

    DEFAULT_CSS = "Bytes { height: 1fr; }"

    def __init__(self, content: Content | None = None) -> None:
        super().__init__((), lambda line: line)
        self.content = content or Content("", b"")
        self._colours = Colours(b"")
        self._starts: array[int] = array("Q", [0])
        self._laid = 0
        self._needle: regex.Pattern[bytes] | None = None
        self._wanted = ""

    def on_mount(self) -> None:
        self.open(self.content)

    def open(self, content: Content, at: float = 0.0) -> None:
        """Show other content, from a relative position (0 to 1)."""
        self.content = content
        self._colours = content.colours or Colours(content.data)
        self.at = 0
        self.columns = (Column(clean(content.title), lambda line, _: self.line(line), 1, 1),)
        self._laid = 0
        self._layout(at)

    def on_resize(self) -> None:
        self._layout(self.part)
        super().on_resize()

    @property
    def part(self) -> float:
        """The relative position of the cursor in the content, 0 to 1."""
        return self._start(self.at) / len(self.content.data) if self.content.data else 0.0

    # -- lines ------------------------------------------------------------------------------------------

    @property
    def _per(self) -> int:
        """Bytes per line in hexadecimal."""
        return 16 if self._room >= 78 else 8

    @property
    def _room(self) -> int:
        return max(_NARROW, (self.scrollable_content_region.width or self.size.width or 80) - 1)

    def _layout(self, at: float) -> None:
        width = self._room
        if width == self._laid:
            return
        self._laid = width
        if self.content.hexed or len(self.content.data) <= SMALL:
            self._take(breaks(self.content.data, width) if not self.content.hexed else array("Q"), at)
        else:
            content = self.content

            def lay() -> None:
                starts = breaks(content.data, width)
                later(self, self._laid_out, content, width, starts, at)

            self.run_worker(lay, thread=True, exclusive=True, group="layout")

    def _laid_out(self, content: Content, width: int, starts: array[int], at: float) -> None:
        if content is self.content and width == self._laid and self.is_attached:
            self._take(starts, at)

    def _take(self, starts: array[int], at: float) -> None:
        self._starts = starts
        size = len(self.content.data)
        number = -(-size // self._per) if self.content.hexed else len(starts) if size else 0
        self.show(range(number))
        self.move_to(self._line_of(int(at * size)))
        if self._wanted:
            wanted, self._wanted = self._wanted, ""
            self.search(wanted)

    def _arrange(self) -> None:
        # A range stays a range: fifty megabytes have millions of lines.
        self.items = cast("list[int]", self._given)

    def _find(self, key: object) -> bool:
        if not isinstance(key, int) or key >= len(self.items):
            return False
        self.at = key
        return True

    def _start(self, line: int) -> int:
        if self.content.hexed:
            return line * self._per
        return self._starts[line] if line < len(self._starts) else len(self.content.data)

    def _line_of(self, offset: int) -> int:
        return offset // self._per if self.content.hexed else bisect_right(self._starts, offset) - 1

    def line(self, number: int) -> Text:
        """A line, safe for a terminal."""
        begin, end = self._start(number), min(self._start(number + 1), len(self.content.data))
        return self._hex(begin, end) if self.content.hexed else self._text(begin, end)

    def plain(self, item: int) -> str:
        return self.line(item).plain

    def _text(self, begin: int, end: int) -> Text:
        text = self._colours.text(begin, end, self._matches(begin, end), _FOUND)
        text.style = "bold" if begin < self.content.strong else ""
        return text

    def _hex(self, begin: int, end: int) -> Text:
        found = {at for first, last in self._matches(begin, end) for at in range(first, last)}
        return dump(self.content, begin, self._per, found, _FOUND)

    # -- searching --------------------------------------------------------------------------------------

    def _matches(self, begin: int, end: int) -> list[tuple[int, int]]:
        """Mark the matches of a search in a line, also those that its ends cut."""
        if self._needle is None:
            return []
        spare = len(self.pattern.encode())
        found = self._needle.finditer(self.content.data, max(0, begin - spare), end + spare)
        spans = [place.span() for place in found if not self._secret(place.start(), place.end())]
        return [(max(first, begin), min(last, end)) for first, last in spans if last > begin and first < end]

    def _secret(self, begin: int, end: int) -> bool:
        return any(self.content.hiding(at)[1] > at for at in (begin, end - 1))

    def search(self, pattern: str, *, forward: bool = True, again: bool = False) -> bool:
        """Go to the next line that contains a text (ignoring case); False if there is none."""
        self.pattern = pattern.casefold()
        self._needle = (
            regex.compile(regex.escape(pattern.encode("utf-8", "replace")), regex.IGNORECASE) if pattern else None
        )
        self.refresh()
        if self._needle is None:
            return False
        if not self.items:
            self._wanted = pattern  # not laid out yet
            return bool(self._needle.search(self.content.data))
        begin, end = self._start(self.at), self._start(self.at + 1)
        size = len(self.content.data)
        if forward:
            ways: Sequence[tuple[int, int]] = [(end if again else begin, size), (0, end)]
        else:
            ways = [(0, begin if again else end), (begin, size)]
        for first, last in ways:
            found = [
                place.start()
                for place in self._first(first, last, forward=forward)
                if not self._secret(place.start(), place.end())
            ]
            if found:
                self.move_to(self._line_of(found[0 if forward else -1]))
                return True
        return False

    def _first(self, begin: int, end: int, *, forward: bool) -> list[regex.Match[bytes]]:
        if self._needle is None:
            return []
        matches: list[regex.Match[bytes]] = []
        for match in self._needle.finditer(self.content.data, begin, end):
            if forward and not self._secret(match.start(), match.end()):
                return [match]
            matches = [match] if not self._secret(match.start(), match.end()) else matches
        return matches

    def center(self) -> None:
        """Scroll the selected line to the middle."""
        self.scroll_to(y=self.at - self.size.height // 2, animate=False)

    def copy_value(self) -> str | None:
        """The selected line as shown; all of the text if there is no value on that line."""
        if not self.items:
            return None
        line = self.plain(self.items[self.at])
        if self.content.hexed or line.strip(_BRACKETS) or len(self.content.data) > SMALL:
            return line
        return "\n".join(map(read, self.content.data.rstrip(b"\n").split(b"\n")))
