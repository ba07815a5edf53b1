"""One animated SVG from many pictures of a terminal, as Rich and Textual export them.

CSS alone animates it: no script, no font and no file from elsewhere, so it also moves inside ``<img>`` (GitHub). A line
of the terminal that is the same in several frames is in the file once. Where nothing is animated (a printer, a viewer
without CSS animation, a reader who asked for less motion) the frame ``still`` is shown.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SVG = "{http://www.w3.org/2000/svg}"
LINE, CELL, FIRST = 24.4, 12.2, 20.0
"""Height of a line, width of a character and baseline of the first line in these pictures, in pixels."""
NBSP = "\xa0"
"""A blank that no viewer takes away beside another one."""
BORDER, BAR = 10.0, 40.0
"""Around the terminal, and above it, where the title is."""


class Frame(NamedTuple):
    svg: str
    """As ``export_svg`` (Rich) or ``export_screenshot`` (Textual) gives it."""
    seconds: float


type Line = tuple[str, ...]
"""The shapes of one line of the terminal, without their height."""


def animate(frames: Sequence[Frame], title: str, size: tuple[int, int], still: int) -> str:
    """Return the animated SVG; ``size`` is columns and lines, ``still`` the frame that is shown without animation."""
    styles: dict[str, str] = {}
    shown: dict[tuple[int, Line], list[int]] = {}
    for number, frame in enumerate(frames):
        for place, line in _lines(frame.svg, styles).items():
            shown.setdefault((place, line), []).append(number)
    shows: dict[tuple[int, ...], str] = {}
    body = []
    for (place, line), numbers in sorted(shown.items()):
        name = ""
        if len(numbers) < len(frames):
            name = f' class="{shows.setdefault(tuple(numbers), f"f{len(shows)}")}"'
        body.append(f'<g{name} transform="translate(0 {place * LINE:.1f})">{"".join(line)}</g>')
    width, height = size[0] * CELL + 2 * BORDER, size[1] * LINE + BAR + BORDER
    rules = [f".{name}{{{style}}}" for style, name in styles.items()]
    for frame_numbers, name in shows.items():
        rules += _timed(name, frame_numbers, [frame.seconds for frame in frames], still)
    label = f'role="img" aria-label={quoteattr(title)}'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" {label}>',
            "<style>",
            f"text{{font:{FIRST:.0f}px Fira Code,monospace}}",
            "@media(prefers-reduced-motion:reduce){g{animation:none!important}}",
            *rules,
            "</style>",
            f'<rect width="{width:.0f}" height="{height:.0f}" rx="8" fill="#292929"/>',
            *(f'<circle cx="{x}" cy="20" r="7" fill="{fill}"/>' for x, fill in _BUTTONS),
            f'<text x="{width / 2:.0f}" y="27" text-anchor="middle" fill="#c5c8c6">{escape(title)}</text>',
            f'<g transform="translate({BORDER:.0f} {BAR:.0f})">',
            *body,
            "</g>",
            "</svg>",
            "",
        ]
    )


_BUTTONS = ((26, "#ff5f57"), (48, "#febc2e"), (70, "#28c840"))


class _Rect(NamedTuple):
    x: float
    width: float
    fill: str

    def svg(self) -> str:
        return f'<rect x="{self.x:.5g}" width="{self.width:.5g}" height="{LINE + 0.25:g}" fill="{self.fill}"/>'


class _Text(NamedTuple):
    x: float
    content: str
    style: str

    def svg(self) -> str:
        # Blanks at the ends need no ink; without them more lines are the same in several frames.
        ink = self.content.strip()
        x = self.x + CELL * (len(self.content) - len(self.content.lstrip()))
        return (
            f'<text class="{self.style}" x="{x:.5g}" y="{FIRST - 1.5:g}" textLength="{CELL * len(ink):.5g}">'
            f"{escape(ink.replace(' ', NBSP))}</text>"
        )


def _lines(svg: str, styles: dict[str, str]) -> dict[int, Line]:
    """Return the shapes of each line of one picture; ``styles`` names the styles of all pictures."""
    root = ElementTree.fromstring(svg)  # noqa: S314 - made a moment ago by Textual or Rich
    own = dict(re.findall(r"\.(\S+-r\d+) \{ ([^}]*?);? \}", root.findtext(f"{_SVG}style", "")))
    terminal = next(group for group in root.iter(f"{_SVG}g") if "clip-terminal" in group.get("clip-path", ""))
    rects: dict[int, list[_Rect]] = {}
    for element in terminal.iter(f"{_SVG}rect"):
        x, y, width = (float(element.get(name, "0")) for name in ("x", "y", "width"))
        _add_rect(rects.setdefault(round((y - 1.5) / LINE), []), _Rect(x, width, element.get("fill", "")))
    texts: dict[int, list[_Text]] = {}
    for element in terminal.iter(f"{_SVG}text"):
        content = (element.text or "").replace("\xa0", " ").rstrip("\n")
        style = styles.setdefault(own[element.get("class", "")].replace(" ", ""), f"s{len(styles)}")
        place = round((float(element.get("y", "0")) - FIRST) / LINE)
        _add_text(texts.setdefault(place, []), _Text(float(element.get("x", "0")), content, style))
    return {
        place: (
            *(rect.svg() for rect in rects.get(place, ())),
            *(text.svg() for text in texts.get(place, ()) if text.content.strip()),
        )
        for place in rects.keys() | texts.keys()
    }


def _add_rect(row: list[_Rect], new: _Rect) -> None:
    """Add a background, as part of the one on its left if that has the same colour."""
    last = row[-1] if row else None
    if last and last.fill == new.fill and abs(last.x + last.width - new.x) < 0.1:
        row[-1] = last._replace(width=last.width + new.width)
    else:
        row.append(new)


def _add_text(row: list[_Text], new: _Text) -> None:
    """Add a text, as part of the one on its left if that looks the same."""
    last = row[-1] if row else None
    if last and last.style == new.style and abs(last.x + CELL * len(last.content) - new.x) < 0.1:
        row[-1] = last._replace(content=last.content + new.content)
    else:
        row.append(new)


def _timed(name: str, numbers: Sequence[int], seconds: Sequence[float], still: int) -> Iterable[str]:
    """Return the rules that show something in the frames ``numbers`` and hide it in the others."""
    whole, at, steps, before = sum(seconds), 0.0, [], None
    for number, length in enumerate(seconds):
        state = "visible" if number in numbers else "hidden"
        if state != before:
            steps.append(f"{100 * at / whole:.4g}%{{visibility:{state}}}")
        before, at = state, at + length
    hidden = "" if still in numbers else "visibility:hidden;"
    return (
        f".{name}{{{hidden}animation:{name} {whole:g}s step-end infinite}}",
        f"@keyframes {name}{{{''.join(steps)}}}",
    )
