"""``--ascii``: all terminal output, including Textual's own widgets, in ASCII."""

from __future__ import annotations

from rich.cells import cell_len
from textual.drivers.linux_driver import LinuxDriver

_DRAWN = {
    "-": "─━╌╍┄┅┈┉═╸╺╴╶╼╾‐‑‒–—―▔▁🭶🭷⎯",
    "|": "│┃╎╏┆┇┊┋║╵╷╹╻▏▕▎▍▌▐",
    "+": "┌┍┎┏┐┑┒┓└┕┖┗┘┙┚┛├┝┞┟┠┡┢┣┤┥┦┧┨┩┪┫┬┭┮┯┰┱┲┳┴┵┶┷┸┹┺┻┼┽┾┿╀╁╂╃╄╅╆╇╈╉╊╋╔╗╚╝╠╣╦╩╬╭╮╯╰╒╓╕╖╘╙╛╜╞╟╡╢╤╥╧╨╪╫",
    "#": "█▉▊▋▄▀▅▆▇▃▂▖▗▘▙▚▛▜▝▞▟",
    ":": "░▒▓",
    ">": "▶▸►→⇒❯›⏵⟶➜",
    "<": "◀◂◄←⇐❮‹⏴⟵",
    "^": "▲△↑⇑⌃⏶",
    "v": "▼▽↓⇓⌄⏷✓✔",
    "*": "●•◉★◆■▪⬤⭘○◯◦∙·⏺",
    "x": "✗✘✕×╳",
    "~": "≈∼⌇…⋯",
    "=": "↔⇄",
    "'": "‘’",
    '"': "“”",
}


class _Table(dict[int, str]):
    def __missing__(self, code: int) -> str:
        char = chr(code)
        plain = char if code < 0x80 else "?" * cell_len(char)
        self[code] = plain
        return plain


TABLE = _Table({ord(char): plain for plain, chars in _DRAWN.items() for char in chars})
"""For ``str.translate``: a character without an equivalent becomes as many question marks as the cells it takes."""


class AsciiDriver(LinuxDriver):
    """Textual's driver for terminals that display ASCII only."""

    def write(self, data: str) -> None:
        """Write to the terminal."""
        super().write(data.translate(TABLE))
