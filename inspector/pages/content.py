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

    from inspector.privacy.secrets import Spans


@dataclass(frozen=True, slots=True)
class Content:
    """What is shown, and how."""

    title: str
    data: bytes
    """What is shown; of a text with its secrets covered already."""
    hexed: bool = False
    hidden: Spans | tuple[tuple[int, int], ...] = ()
    """Pieces of ``data`` that hold secrets: only where it is shown in hexadecimal."""
    strong: int = 0
    """Bytes at the beginning that are what it is about."""

    def hiding(self, offset: int) -> tuple[int, int]:
        """The last hidden piece that begins at a byte or before it."""
        place = bisect_right(self.hidden, (offset, len(self.data) + 1)) - 1
        return self.hidden[place] if place >= 0 else (0, 0)


def breaks(data: bytes, width: int) -> array[int]:
    """Where lines begin: after line feeds, and in lines of more than ``width`` bytes at a blank or else anywhere but
    within a character."""
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
    """A line of text, fit for a terminal."""
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
