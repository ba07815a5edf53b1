"""The HTML page: templates, filled with escaped values, and a policy by which nothing else can run or be loaded."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from itertools import batched, islice
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from inspector import __version__, installation, regex
from inspector.remembering import remembered
from inspector.report import answers, data, ladders, sequences, validity, waterfalls
from inspector.report.data import Block
from inspector.rules.fixes import begun
from inspector.text import clean, plural, size, stamp, utc_minute, utc_second

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jinja2 import Template

    from inspector.report.content import ReportContent, RunSection

INLINE = 4
"""Sections of runs in the markup: they can be read without JavaScript."""
ROWS = 200
"""Runs in the markup's table."""
TOGETHER = 10
"""Sections of runs in one block of data."""
LARGE = 20_000_000
"""Bytes from which a page says that it is large."""
_TICKED = regex.compile("`([^`]+)`")
_JOINTS = {"/": regex.compile(r"(/)([^/\s])"), ":": regex.compile(r"(:)([^:\s])")}
_LOADER = FileSystemLoader(installation.PACKAGE / "report" / "templates")


@cache
def _environment() -> Environment:
    def finalize(value: Any) -> Any:
        # What a template escapes is also free of control characters, and of those that turn the direction of writing.
        return clean(value) if type(value) is str else value

    made = Environment(
        loader=_LOADER,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=finalize,
    )
    made.filters |= {
        "moment": stamp,
        "bytes": size,
        "steps": answers.fix_steps,
        "begun": begun,
        "marked": _marked,
        "breakable": _breakable,
    }
    made.globals |= {
        "plural": plural,
        "waterfalls": waterfalls,
        "sequences": sequences,
        "ladders": ladders,
        "validity": validity,
    }
    return made


def _breakable(text: str, joint: str = "/") -> Markup:
    """Return a text whose lines may break after a joint: a path's slash, a fingerprint's colon."""
    # What is remembered of a text is also found for markup of the same characters: that must be escaped, too.
    return _broken(str(text), joint)


@remembered(20_000)
def _broken(text: str, joint: str) -> Markup:
    return Markup(_JOINTS[joint].sub(r"\1<wbr>\2", str(escape(clean(text)))))  # noqa: S704 - it is escaped


def _marked(text: str) -> Markup:
    """Return a text in which what stands between backticks is code."""
    return Markup(_TICKED.sub(r"<code>\1</code>", str(escape(clean(text)))))  # noqa: S704 - it is escaped


def _template(name: str) -> Template:
    return _environment().get_template(name)


def rendered(name: str, *, script: str = "report.js", styles: Sequence[str] = ("report.css",), **values: Any) -> str:
    """Return a page from a template, with styles, script and policy."""
    style, script = "".join(map(_file, styles)), _file(script)
    return _template(name).render(
        version=__version__, style=style, script=script, policy=policy(style, script), **values
    )


@cache
def _file(name: str) -> str:
    return _LOADER.get_source(_environment(), name)[0]


def policy(style: str, script: str) -> str:
    """Return the Content-Security-Policy that lets this style and this script run, and nothing be loaded."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def html(content: ReportContent) -> str:
    """Return the page of a report."""
    sections = iter(content.sections)
    inline = list(islice(sections, INLINE))
    blocks = _blocks(content, sections)
    taken = sum(len(block.data) for block in blocks)
    large = size(taken) if taken > LARGE and content.messages else ""
    copy, runs = content.copy, content.runs
    return rendered(
        "report.html.j2",
        title=f"Puppet traffic: {clean(copy.name)}",
        content=content,
        copy=copy,
        answers=content.answers,
        period=_period(content),
        sections=inline,
        rows=[(run, utc_second(run.started)) for run in runs[:ROWS]],
        inline={section.run.number for section in inline},
        blocks=blocks,
        large=large,
    )


def _period(content: ReportContent) -> str:
    if not content.runs:
        return ""
    began = min(run.started for run in content.runs)
    ended = max(run.ended for run in content.runs)
    first, last = map(utc_minute, (began, ended))
    return f"{first} UTC" if first == last else f"{first} to {last[11:] if first[:10] == last[:10] else last} UTC"


def _blocks(content: ReportContent, sections: Iterator[RunSection]) -> list[Block]:
    """All data of the page; ``sections`` are those that are not in the markup."""
    section = _template("run.html.j2")
    made = []
    places: dict[int, int] = {}
    for number, group in enumerate(batched(sections, TOGETHER)):
        made.append(Block.of(f"sections-{number}", {each.run.number: section.render(section=each) for each in group}))
        places |= {each.run.number: number for each in group}
    runs = data.runs_plain(content.runs)
    latest = max((run.ended for run in content.runs), default=None)
    made.append(Block.of("runs", {"runs": runs, "places": places, "latest": latest, "columns": data.COLUMNS}))
    made.append(Block.of("records", content.records.plain()))
    made += content.messages.blocks() if content.messages else ()
    return made
