"""Text and bytes of any size, and how a line of them is written."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text

from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from inspector.pages.highlight import Colours
    from inspector.privacy.secrets import Spans


@dataclass(frozen=True, slots=True)
class Content:
    """Displayed data, and how to display it."""

    title: str
    data: bytes
    """The displayed data; in a text, secrets are already masked."""
    hexed: bool = False
    hidden: Spans | tuple[tuple[int, int], ...] = ()
    """Ranges of ``data`` that contain secrets; only for hexadecimal display."""
    strong: int = 0
    """Number of leading bytes that are drawn in bold."""
    colours: Colours | None = None
    """The colours of a text; None: only masked values have one."""
    unmasked: Content | None = None
    """The text with its secrets, to be shown if the user asks for it."""

    def hiding(self, offset: int) -> tuple[int, int]:
        """The last masked range that begins at a byte or before it."""
        place = bisect_right(self.hidden, (offset, len(self.data) + 1)) - 1
        return self.hidden[place] if place >= 0 else (0, 0)


def breaks(data: bytes, width: int) -> array[int]:
    """The offsets of lines: after line feeds; lines of more than ``width`` bytes are split at a blank, or else between
    two characters."""
    starts, at, size = array("Q", [0]), 0, len(data)
    while True:
        end = data.find(b"\n", at)
        stop = size if end < 0 else end
        while stop - at > width:
            blank = data.rfind(b" ", at + width // 2, at + width)
            cut = blank + 1 if blank >= 0 else at + width
            for _ in range(3):
                if data[cut] & 0xC0 == 0x80:
                    cut -= 1
            starts.append(cut)
            at = cut
        if end < 0 or end + 1 >= size:
            return starts
        at = end + 1
        starts.append(at)


def read(data: bytes) -> str:
    """A line of text, safe for a terminal."""
    return clean(data.decode("utf-8", "replace").rstrip("\r\n").expandtabs(4))


def dump(content: Content, begin: int, per: int = 16, found: AbstractSet[int] = frozenset(), style: str = "") -> Text:
    """A line of ``per`` bytes in hexadecimal and as characters, those in ``found`` in a style, hidden ones covered."""
    text, shown = Text(f"{begin:08x}  "), content.data[begin : begin + per]
    chars = Text("  ")
    for place in range(per):
        if place >= len(shown):
            text.append("   ")
        else:
            at, byte = begin + place, shown[place]
            first, last = content.hiding(at)
            marked, drawn = first <= at < last, style if at in found else ""
            text.append("•• " if marked else f"{byte:02x} ", drawn)
            chars.append("•" if marked else chr(byte) if 32 <= byte < 127 else ".", drawn)
        if place == per // 2 - 1:
            text.append(" " if per == 16 else "")
    return text.append_text(chars)
