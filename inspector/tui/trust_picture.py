"""Draws an agent's trust and identity: boxes, the links between them, and what breaks at its link.

Wide: the CRL, the CA and the master's certificate in a row, below them the agent's key, request and certificate.
Narrow: one box per line.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from inspector.explain.bootstrap import Condition
from inspector.explain.trust_chain import Part
from inspector.pages.styles import BAD, DOUBT, GOOD
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.explain.trust_chain import Box, Link, TrustChain

WIDE = 108
"""Columns from which boxes are drawn side by side."""
_STYLES = {
    Condition.SOUND: GOOD,
    Condition.BROKEN: f"bold {BAD}",
    Condition.WAITING: DOUBT,
    Condition.UNKNOWN: "dim",
}
_MARKS = {Condition.SOUND: "", Condition.BROKEN: "✗ ", Condition.WAITING: "… ", Condition.UNKNOWN: "? "}
_ROWS = ((Part.CRL, Part.CA, Part.MASTER), (Part.KEY, Part.REQUEST, Part.CERTIFICATE))
_LEAST, _MOST = 3, 5
"""Lines within a box."""
_PASSIVE = {"issues": "issued"}
"""A verb as the box says it at which a link ends that begins elsewhere."""
_LABEL = 2 + max(map(len, Part))
"""Columns of a box's mark and title, where there is one box per line."""


def picture(chain: TrustChain, width: int) -> Text:
    """Draw it in so many columns, below the sentence for each link that breaks."""
    lines = [Text(f"✗ {link.breaks}: {clean(link.why)}", style=BAD, overflow="fold") for link in chain.broken]
    lines += _wide(chain, width) if width >= WIDE else _narrow(chain, width)
    return Text("\n").join(lines)


# -- side by side -------------------------------------------------------------------------------------------------


def _wide(chain: TrustChain, width: int) -> Iterator[Text]:
    link = 16 if width >= 120 else 14
    box = (width - 2 * link) // 3
    for row in _ROWS:
        if row is _ROWS[1]:
            yield from _down(chain.link(Part.CA, Part.CERTIFICATE), box, link)
        within = {part: _within(chain.box(part), box - 4) for part in row}
        height = max(_LEAST, *map(len, within.values()))
        boxes = [_boxed(chain.box(part), within[part], height, box, _style(chain, part)) for part in row]
        links = [chain.link(before, after) for before, after in pairwise(row)]
        for at in range(height + 2):
            line = Text().append_text(boxes[0][at])
            for following, between in zip(boxes[1:], links, strict=True):
                line.append_text(_across(between, link, at)).append_text(following[at])
            yield line


def _style(chain: TrustChain, part: Part) -> str:
    """The colour of a box; at a link that breaks none is good."""
    condition = chain.box(part).condition
    broken = any(part in (link.source, link.target) for link in chain.broken)
    return "" if condition is Condition.SOUND and broken else _STYLES[condition]


def _within(box: Box, width: int) -> list[str]:
    """What identifies it, in lines of at most this width: a long one goes on in the next, between two words."""
    lines: list[str] = []
    for text in map(clean, box.lines):
        line, *words = text.split(" ")
        for word in words:
            if cell_len(f"{line} {word}") > width:
                lines.append(line)
                line = word
            else:
                line += f" {word}"
        lines.append(line)
    return lines[:_MOST]


def _boxed(box: Box, within: list[str], height: int, width: int, style: str) -> list[Text]:
    """A box in lines of this width."""
    title = f" {_MARKS[box.condition]}{box.part} "
    lines = [Text(f"╭─{title}".ljust(width - 1, "─") + "╮", style=style)]
    for at in range(height):
        line = _fitted(within[at] if at < len(within) else "", width - 4)
        line.stylize("" if at == 0 and box.condition is not Condition.UNKNOWN else "dim")
        lines.append(Text.assemble(("│ ", style), line, (" │", style)))
    lines.append(Text(f"╰{'─' * (width - 2)}╯", style=style))
    return lines


def _across(link: Link, width: int, at: int) -> Text:
    """One of the lines between two boxes of a row: the verb above the arrow, what breaks below it."""
    style = _STYLES[link.condition]
    if at == 1:
        return Text(link.does.center(width), style="dim")
    if at == 2:
        line = "─" * (width - 1)
        half = len(line) // 2
        if link.condition is Condition.BROKEN:
            line = f"{line[: half - 1]} ✗ {line[half + 2 :]}"
        elif link.condition is not Condition.SOUND:
            line = "╌" * (width - 1)
        return Text(f"{line}▶", style=style)
    if at == 3:
        return Text((link.breaks or _word(link)).center(width), style=style)
    return Text(" " * width)


def _down(link: Link, box: int, between: int) -> Iterator[Text]:
    """The lines between the two rows: from the CA to the agent's certificate."""
    style = _STYLES[link.condition]
    start, end = box + between + box // 2, 2 * (box + between) + box // 2
    words = f" {link.does}: ✗ {link.breaks} " if link.condition is Condition.BROKEN else f" {link.does}{_aside(link)} "
    line = words.center(end - start - 1, "─" if link.condition is Condition.SOUND else "╌")
    yield Text(" " * start + f"╰{line}╮", style=style)
    yield Text(" " * end + "▼", style=style)


def _word(link: Link) -> str:
    return "" if link.condition is Condition.SOUND else "waits" if link.condition is Condition.WAITING else "unknown"


def _aside(link: Link) -> str:
    word = _word(link)
    return f" ({word})" if word else ""


# -- one below the other --------------------------------------------------------------------------------------------


def _narrow(chain: TrustChain, width: int) -> Iterator[Text]:
    """A box per line, and the link to the next one between them."""
    order = (Part.CRL, Part.CA, Part.MASTER, Part.KEY, Part.REQUEST, Part.CERTIFICATE)
    for before, part in zip((None, *order), order, strict=False):
        links = [link for link in chain.links if (link.source, link.target) == (before, part)]
        if part is Part.CERTIFICATE:
            links.append(chain.link(Part.CA, Part.CERTIFICATE))
        elif before is not None and not links:
            yield Text("")
        for link in links:
            style = _STYLES[link.condition]
            does = link.does
            if link.source is not before:
                does = f"{_PASSIVE.get(does, does)} by the {link.source}"
            what = f"✗ {link.breaks}" if link.condition is Condition.BROKEN else _word(link)
            bar = "│" if link.condition is Condition.SOUND else "╎"
            yield Text(f"  {bar} {does} {what}".rstrip(), style=style)
        yield from _listed(chain.box(part), width, _style(chain, part))


def _listed(box: Box, width: int, style: str) -> Iterator[Text]:
    """A box without a frame: what identifies it stands behind its title, and where that does not fit below it."""
    line = Text(f"{_MARKS[box.condition]}{box.part}".ljust(_LABEL), style=style)
    room = max(8, width - _LABEL - 2)
    for text in map(clean, box.lines):
        if line.cell_len > _LABEL and line.cell_len + 2 + min(cell_len(text), room) > width:
            yield line
            line = Text(" " * _LABEL)
        line.append_text(_short(f"  {text}", room + 2))
    yield line


def _short(text: str, width: int) -> Text:
    line = Text(text, style="dim")
    line.truncate(width, overflow="ellipsis")
    return line


def _fitted(text: str, width: int) -> Text:
    """Text in exactly so many columns."""
    line = Text(text)
    line.truncate(width, overflow="ellipsis", pad=True)
    return line
