"""Draw one line of cells, each as wide as its column; long texts are cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.strip import Strip

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console
    from rich.style import Style
    from rich.text import Text


def drawn(cells: Iterable[tuple[Text | str, int, bool]], style: Style, console: Console) -> Strip:
    """A line of texts, with the width of each and whether it is right-aligned; a space follows each."""
    segments: list[Segment] = []
    plain = ""
    for cell, room, right in cells:
        if isinstance(cell, str):
            plain += f"{_padded(cell, room, right=right)} "
            continue
        if plain:
            segments.append(Segment(plain, style))
        text = _fitted(cell.copy(), room, right=right)
        base = style + console.get_style(text.style)
        segments += [
            Segment(segment.text, base + segment.style if segment.style else base) for segment in text.render(console)
        ]
        plain = " "
    return Strip([*segments, Segment(plain, style)])


def _padded(text: str, width: int, *, right: bool) -> str:
    length = cell_len(text)
    if length > width:
        return set_cell_size(text, width - 1) + "…" if width else ""
    return " " * (width - length) + text if right else text + " " * (width - length)


def _fitted(text: Text, width: int, *, right: bool = False) -> Text:
    text.end = ""
    text.truncate(width, overflow="ellipsis")
    if right:
        text.pad_left(max(0, width - text.cell_len))
    else:
        text.pad_right(max(0, width - text.cell_len))
    return text
