"""How single values are written for people: captured text, times, sizes, durations, paths.

Captured bytes are hostile: control characters never reach a terminal, and nothing that a reader cannot see. Records
are worded in ``summaries.wording``.
"""

from __future__ import annotations

import json
import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import parse_qsl

import msgspec

from inspector import clocks, regex

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

_BLANK = frozenset(
    map(
        chr,
        (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x2800, 0x3164, *range(0xFE00, 0xFE10), 0xFFA0,
         0x16FE4, 0x1D159, *range(0xE0100, 0xE01F0)),
    )
)  # fmt: skip
"""What Unicode calls letters, marks and symbols, and what shows nothing: fillers, joiners, variation selectors."""

WIDTH = 46
"""Characters of a path that a console line shows."""
ERROR = 200
"""Characters of an error message in a sentence."""
TAIL = 60
"""Characters at the end of a sentence that stay when its middle is left out: there it often names what is wrong."""
READ = 20_000
"""Characters of a message that are looked at."""
_REPORTERS = regex.compile(
    r"(?:Error: |Evaluation Error: |(?:5\d\d )?(?:Internal )?Server Error: |Error \d{3} on SERVER: "
    r"|Could not retrieve catalog from remote server: |Failed to compile catalog for node \S+: "
    r"|Error while evaluating an? [A-Za-z' ]{1,60}, |\([A-Z][A-Za-z0-9_:]*(?:Error|Exception)\) "
    r"|(?:[a-z][a-z0-9_]*\.)+(?P<thrown>[A-Z][A-Za-z0-9_$]*: ))+"
)
"""The beginnings of error messages that say only who reports it: agent, master, compiler, Java, JRuby."""
_NODE = regex.compile(r" on node [^\s,;]+$")
_PLACE = regex.compile(r" ?\((?:file|at|line)[^()]*\)$")
_PATH = regex.compile(r"(?:/[^\s/:,()']+){5,}")


def is_shown(character: str) -> bool:
    """Whether a character can be seen, or is a space, and is obeyed by nothing that prints it.

    Not: control characters, what changes the direction of writing, what has no width (U+200B, U+00AD, U+FEFF, tags,
    variation selectors), other spaces and ends of lines, and codes without a character (also those of private use).
    """
    return character.isprintable() and character not in _BLANK


class _Table(dict[int, int | str]):
    """For ``str.translate``: what each character becomes. What is beyond the first ones is not kept: hostile texts have
    all of them."""

    def __init__(self, form: Callable[[int], str], besides: str = "") -> None:
        self._form = form
        super().__init__((code, code) for code in map(ord, besides))
        self.update((code, self[code]) for code in range(0x250))

    def __missing__(self, code: int) -> int | str:
        return code if is_shown(chr(code)) else self._form(code)


def _in_json(code: int) -> str:
    return json.dumps(chr(code))[1:-1] if code > 0x7F else f"\\u{code:04x}"


_CLEAN = _Table(lambda code: f"\\x{code:02x}")
_LINES = _Table(lambda code: f"\\x{code:02x}", "\n\t")
# Line feeds outside strings are the layout of JSON; those within are escaped already.
_JSON = _Table(_in_json, "\n")


def clean(text: str) -> str:
    """Return captured text with all that is not shown, or that a terminal obeys, as an escape (``is_shown``)."""
    return text if text.isprintable() and _BLANK.isdisjoint(text) else text.translate(_CLEAN)


def clean_lines(text: str) -> str:
    """Return text with all but its characters that can be seen, tabs and ends of lines as escapes."""
    return text.translate(_LINES)


def as_json(value: Any) -> str:
    """A JSON-able structure, also of structs and dataclasses, as text for a terminal: what ``clean`` would take out is
    escaped in JSON's own way."""
    return json.dumps(msgspec.to_builtins(value), indent=2, ensure_ascii=False).translate(_JSON)


def json_line(value: Any) -> str:
    """A JSON-able structure as one line of text for a terminal."""
    return json.dumps(value, ensure_ascii=False).translate(_JSON)


def clock(time: float) -> str:
    """Local time of day with milliseconds."""
    time = _within(time)
    whole = math.floor(time)
    return f"{_second(whole)}.{math.floor((time - whole) * 1000):03}"


@lru_cache(maxsize=64)
def _second(time: int) -> str:
    return _local(time).strftime("%H:%M:%S")


def _within(time: float) -> float:
    # A day's margin at both ends of the calendar: no zone leads out of it.
    return max(clocks.FIRST + clocks.DAY, min(time, clocks.LAST - clocks.DAY))


def _local(time: float) -> datetime:
    return clocks.date(_within(time)).astimezone()


def day(time: float) -> str:
    """Local date."""
    return _local(time).strftime("%Y-%m-%d")


def local_second(time: float) -> str:
    """Local date and time of day, to the second: ``2026-11-27 14:05:59``."""
    return f"{day(time)} {clock(time)[:8]}"


def stamp(time: float) -> str:
    """Date and time of day in UTC, to the second, with the name of the zone: ``2026-11-27 14:05:59 UTC``."""
    return f"{utc_second(time)} UTC"


def utc(time: float) -> str:
    """ISO 8601, UTC, milliseconds: the form of the public JSON."""
    return clocks.date(time).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def utc_day(time: float) -> str:
    """Date in UTC: ``2026-11-27``."""
    return utc(time)[:10]


def utc_minute(time: float) -> str:
    """Date and time of day in UTC, to the minute: ``2026-11-27 14:05``."""
    return utc(time)[:16].replace("T", " ")


def utc_second(time: float) -> str:
    """Date and time of day in UTC, to the second: ``2026-11-27 14:05:59``."""
    return utc(time)[:19].replace("T", " ")


def utc_in_name(time: float) -> str:
    """Date and time of day in UTC as parts of file names have it: ``20261127T140559Z``."""
    return clocks.date(time).strftime("%Y%m%dT%H%M%SZ")


def size(count: int) -> str:
    """Bytes for people: 512 B, 27.1 kB, 1.4 MB."""
    if count < 1000:
        return f"{count} B"
    if count < 1_000_000:
        return f"{count / 1000:.1f} kB"
    return f"{count / 1_000_000:.1f} MB"


def address(host: str, port: int) -> str:
    """Return ``HOST:PORT``, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def seconds(duration: float) -> str:
    """A duration for people: 12 ms, 2.1 s, 3 min 20 s; of one that a damaged capture made endless: not known."""
    if not math.isfinite(duration):
        return "not known"
    if duration < 1:
        return f"{duration * 1000:.0f} ms"
    if duration < 120:
        return f"{duration:.1f} s"
    return f"{int(duration) // 60} min {int(duration) % 60} s"


def lasting(duration: float) -> str:
    """How long something takes that is not over, for people: 7 s, 75 s, 3 min, 2 h 5 min."""
    if not math.isfinite(duration):
        return "not known"
    if 0 < duration < 1:
        return seconds(duration)
    whole = int(duration)
    if whole < 120:
        return f"{whole} s"
    minutes = whole // 60
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def plural(number: int, one: str, several: str = "") -> str:
    """How many of something: ``1 node``, ``1,000 nodes``; with ``several`` as the words where an s is not enough:
    ``1 file was``, ``2 files were``."""
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def beginning(text: str, width: int) -> str:
    """A text without its end, if it is longer than ``width``."""
    return text if len(text) <= width else f"{text[: width - 1]}…"


def ends(text: str, width: int, front: int | None = None) -> str:
    """A text without its middle, if it is longer than ``width``; ``front`` characters stay before the gap."""
    front = width // 2 - 1 if front is None else front
    return text if len(text) <= width else f"{text[:front]}…{text[front + 1 - width :]}"


def excerpt(text: str, length: int) -> str:
    """The first characters of a long text, and how many it has."""
    return text if len(text) <= length else f"{text[:length]}… ({len(text):,} characters)"


def decisive(text: str) -> str:
    """An error message from the words on that say what is wrong, without who reports it.

    The class of an exception of Java stays, without its package, where only one word follows it.
    """
    found = _REPORTERS.match(text)
    rest = text[found.end() :] if found else ""
    if found and found["thrown"] and found.end("thrown") == found.end() and " " not in rest:
        return text[found.start("thrown") :]
    return rest or text


def brief(text: str, width: int = ERROR) -> str:
    """An error message on one line of at most ``width`` characters, what is wrong first.

    Who reports it is left out, then as much as must be: the node's name, which is known, the directories of the file,
    the middle. File and line at the end stay.
    """
    line = decisive(" ".join(text[:READ].split()))
    for shorten in (_without_node, without_directories):
        if len(line) <= width:
            return line
        line = shorten(line)
    place = _PLACE.search(line)
    tail = min(TAIL, width // 3)
    return ends(line, width, width - min(len(place[0]) if place else 0, width // 2) - tail)


def essence(text: str) -> str:
    """What an error message says, without who reports it and for which node."""
    return _without_node(decisive(" ".join(text[:READ].split())))


def _without_node(line: str) -> str:
    return _NODE.sub("", line)


def without_directories(line: str) -> str:
    """A text with the last three parts of each long path."""
    return _PATH.sub(lambda path: f".../{'/'.join(path[0].split('/')[-4:])}", line)


COMMANDS = "/pdb/cmd/v1"
"""The path of all commands to PuppetDB: what each is stands behind it."""


def _command(query: str) -> str:
    given = dict(parse_qsl(query)) if len(query) < READ else {}
    return " ".join(filter(None, [given.get("command"), given.get("certname")]))


def short(target: str, certname: str | None = None, width: int = WIDTH) -> str:
    """A request's target without what every line repeats: prefix, own certname, query."""
    path, _, query = target.partition("?")
    path = clean(f"{path} {_command(query)}".rstrip() if path == COMMANDS else path)
    for prefix in ("/puppet/v3/", "/puppet-ca/v1/"):
        path = path.removeprefix(prefix)
    if certname and path.endswith("/" + certname):
        path = path[: -len(certname)] + "~"
    return ends(path, width)


class Judged(Protocol):
    """Something with a severity: a finding, a diagnosis."""

    @property
    def severity(self) -> str: ...


def counts(findings: Sequence[Judged]) -> str:
    """How many findings, or diagnoses, of each severity, the worst first; empty if there are none."""
    parts = []
    for severity in ("error", "warning", "notice"):
        number = sum(finding.severity == severity for finding in findings)
        if number:
            parts.append(plural(number, severity))
    return ", ".join(parts)
