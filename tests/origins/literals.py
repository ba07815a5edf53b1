"""The message templates in a source file: its string literals that are printed, raised or translated."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from pygments.lexers.jvm import ClojureLexer  # type: ignore[import-untyped]
from pygments.lexers.ruby import RubyLexer  # type: ignore[import-untyped]
from pygments.token import Comment, Keyword, Name, String, Text  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Iterator

    type Form = str | Quoted | list[Form]

BLANK = "\0"
"""What stands in a template for a part that varies."""


class Literal(NamedTuple):
    """A template in a source file."""

    text: str
    """With ``BLANK`` for what varies."""
    scope: str
    """The function that contains it, for Ruby with its class (``NeedCert.next_state``); empty: none."""
    level: str
    """A key of ``LEVELS``' values; empty: the call that surrounds it does not say."""


LEVELS = {
    **dict.fromkeys(("raise", "fail", "devfail", "error", "errorf", "err", "log_exception", "log_and_raise", "throw",
                     "throw+", "ex-info", "issue", "hard_issue", "bad_request", "not_found"), "error"),
    **dict.fromkeys(("crit", "alert", "emerg", "fatal", "critical"), "critical error"),
    **dict.fromkeys(("warn", "warnf", "warning", "warnonce", "warn_once", "puppet_warn_once", "deprecation_warning",
                     "puppet_deprecation_warning", "log_warn"), "warning"),
    **dict.fromkeys(("notice", "inform"), "notice"),
    **dict.fromkeys(("info", "infof"), "info"),
    **dict.fromkeys(("debug", "debugf", "trace", "debug_once", "debugonce"), "debug"),
    **dict.fromkeys(("puts", "print", "say"), "output"),
}  # fmt: skip
"""What a call says about the level of its message."""
_TRANSLATED = {"_", "n_", "N_", "s_", "trs", "tru", "trsn", "trun", "mark"}
_HELP = {"desc", "doc", "summary", "description", "returns", "examples", "notes", "arguments", "banner"}
"""Calls and settings whose text is documentation."""
_HOLDS_MESSAGE = {"message", "msg", "detail", "reason", "errors", "error_message", "error_msg", "warnings", "text"}
"""Names of variables that hold what is printed elsewhere."""
_CONTINUES = {
    ",",
    "(",
    "[",
    "\\",
    "+",
    "=",
    "=>",
    "||",
    "&&",
    "%",
    "<<",
    ".",
    "|",
    "?",
    ":",
    "raise",
    "return",
    "and",
    "or",
}
_INTERPOLATED = re.compile(r"#\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")
_FORMATTED = re.compile(r"%\{[^}]*\}|%<[^>]*>[a-z]?|%[0-9]+%|%[-0]*[0-9]*(?:\.[0-9]+)?[sdifpx]")
_NUMBERED = re.compile(r"\{[0-9][^}]*\}")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def _plain(text: str) -> str:
    """Return a literal's text with ``BLANK`` for its placeholders, without escapes."""
    return _ESCAPED.sub(lambda found: " " if found[1] in "nrt" else found[1], _FORMATTED.sub(BLANK, text))


# -- Ruby -------------------------------------------------------------------------------------------------


def ruby(source: str) -> Iterator[Literal]:
    """Yield the templates in a Ruby file."""
    scope, owner, depth = "", "", 0
    names: list[str] = []  # what stands before the literal in its statement
    text: list[str] = []  # the literal that is not complete, and those that it is joined with
    last, joined = "", False
    announced: list[list[str]] = []  # what stands before a heredoc, whose text comes after its statement
    tokens = list(_ruby_tokens(source))
    for kind, value in [*tokens, ("code", "\n")]:
        if kind == "heredoc":
            announced.append(list(names))
            continue
        if kind == "heredoc text":
            yield from _of_statement(value, scope, announced.pop(0) if announced else [])
            continue
        if kind == "literal":
            if text and not joined:
                yield from _of_statement("".join(text), scope, names)
                text = []
            text.append(value)
            joined = False
            last = "literal"
            continue
        if value == "\\" or (value == "+" and text):
            joined = True
            last = value
            continue
        if value == "\n" and (joined or not last):
            continue
        if text:
            yield from _of_statement("".join(text), scope, names)
            text, joined = [], False
        if value == "\n":
            if depth <= 0 and last not in _CONTINUES:
                names, depth = [], 0
            continue
        if kind == "class" and value != "self":
            owner = scope = value
        if kind == "function":
            scope = f"{owner}.{value}"
        depth += (value in {"(", "["}) - (value in {")", "]"})
        if value == ";":
            names, depth = [], 0
        if kind == "name":
            names.append(value)
        last = value


def _ruby_tokens(source: str) -> Iterator[tuple[str, str]]:
    """Yield what matters of a Ruby file: names, functions, literals with their placeholders blank, other code."""
    inner = 0
    text: list[str] = []
    heredoc = ""
    open_string = None
    for kind, value in RubyLexer().get_tokens(source):
        if heredoc and kind not in String.Heredoc:
            yield "heredoc text", _plain(_INTERPOLATED.sub(BLANK, heredoc))
            heredoc = ""
        if kind in String.Interpol:
            inner += 1 if value.endswith("{") else -1 if value == "}" else 0
            if value.endswith("{") and inner == 1:
                text.append(BLANK)
        elif inner:
            continue
        elif kind in String.Delimiter:
            if "\n" not in value:
                yield "heredoc", value
        elif kind in String.Heredoc:
            heredoc += value
        elif kind in String.Escape:
            text.append(" " if value in {"\\n", "\\t", "\\r"} else value[-1])
        elif kind in String.Double or kind in String.Single or kind in String.Other:
            if open_string is None:
                open_string, text = value, []
                # The lexer gives an empty literal in one token, and everything else with its delimiters.
                if value in {'""', "''"}:
                    open_string = None
            elif _closes(open_string, value):
                yield "literal", _plain("".join(text))
                open_string, text = None, []
            else:
                text.append(value)
        elif open_string is not None and kind in String:
            text.append(value)
        elif kind in String.Symbol:
            yield "name", value.strip(":\"'")
        elif kind in Comment:
            continue
        elif kind in Name.Class:
            yield "class", value
        elif kind in Name.Function:
            yield "function", value
        elif kind in Name or kind in Keyword:
            yield "name", value.strip("@:")
        elif kind in Text:
            if "\n" in value:
                yield "code", "\n"
        elif value.strip():
            yield "code", value.strip()


def _closes(opened: str, value: str) -> bool:
    return value == {"(": ")", "[": "]", "{": "}", "<": ">"}.get(opened[-1], opened[-1])


def _of_statement(text: str, scope: str, names: list[str]) -> Iterator[Literal]:
    """Yield a literal of Ruby if what stands before it in its statement shows that it is a message."""
    nearest = names[::-1]
    translated = any(name in _TRANSLATED for name in nearest)
    if any(name in _HELP for name in nearest):
        if translated:
            yield Literal(text, scope, "help")
        return
    level = next((found for name in nearest if (found := _level(name))), "")
    if level or translated or any(name in _HOLDS_MESSAGE for name in nearest):
        yield Literal(text, scope, level)


def _level(name: str) -> str:
    return LEVELS.get(name, "error" if name.endswith(("Error", "Exception")) else "")


# -- Clojure ----------------------------------------------------------------------------------------------


def clojure(source: str) -> Iterator[Literal]:
    """Yield the templates in a Clojure file."""
    for form in _forms(source):
        function = ""
        if isinstance(form, list) and len(form) > 1 and isinstance(form[1], str):
            function = next((part for part in form[1:] if isinstance(part, str) and part[0] not in "^:"), "")
        yield from _of_form(form, function, "")


class Quoted(str):
    """A string of Clojure, where other strings are symbols."""

    __slots__ = ()


def _forms(source: str) -> list[Form]:
    stack: list[list[Form]] = [[]]
    for kind, value in ClojureLexer().get_tokens(source):
        if kind in Comment:
            continue
        if kind in String and value.startswith('"'):
            stack[-1].append(Quoted(_plain(_NUMBERED.sub(BLANK, value[1:-1]))))
        elif value in {"(", "[", "{"}:
            stack.append([])
            stack[-2].append(stack[-1])
        elif value in {")", "]", "}"}:
            if len(stack) > 1:
                stack.pop()
        elif value.strip(" ,\n\t"):
            stack[-1].append(value.strip())
    return stack[0]


def _of_form(form: Form, function: str, level: str) -> Iterator[Literal]:
    if not isinstance(form, list):
        return
    head = form[0].rpartition("/")[2] if form and isinstance(form[0], str) and not isinstance(form[0], Quoted) else ""
    level = LEVELS.get(head, "error" if head.endswith(("Exception.", "Error.")) else "") or level
    if head in _TRANSLATED:
        for part in form[1:]:
            if (text := _written(part)) and text != BLANK:
                yield Literal(text, function, level)
    elif level and head not in {"str", "format"}:
        for part in form[1:]:
            if isinstance(part, Quoted) or (isinstance(part, list) and part[:1] in (["str"], ["format"])):
                yield Literal(_written(part), function, level)
    else:
        for before, part in pairwise(form):
            if (
                isinstance(before, str)
                and before in {":msg", ":message", ":error"}
                and (text := _written(part)) != BLANK
            ):
                yield Literal(text, function, level or "error")
    for part in form:
        yield from _of_form(part, function, level)


def _written(form: Form) -> str:
    """Return the text that a form gives, ``BLANK`` for what is not written in it."""
    if isinstance(form, Quoted):
        return str(form)
    if isinstance(form, list) and form and form[0] == "str":
        return "".join(map(_written, form[1:]))
    if isinstance(form, list) and len(form) > 1 and form[0] == "format":
        return _written(form[1])
    return BLANK


# -- C++ and translations ---------------------------------------------------------------------------------

_CALL = re.compile(r'\b(LOG_\w+|log|throw\s+[\w:]+|_)\s*\(\s*(?:_\(\s*)?((?:"(?:[^"\\\n]|\\.)*"\s*)+)')
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def cpp(source: str) -> Iterator[Literal]:
    """Yield the templates in a C++ file of Facter 3."""
    for found in _CALL.finditer(source):
        text = "".join(_STRING.findall(found[2]))
        call = found[1]
        level = "error" if call.startswith("throw") else LEVELS.get(call.lower().removeprefix("log_"), "")
        yield Literal(_plain(_NUMBERED.sub(BLANK, text)), "", level)


_ENTRY = re.compile(r'((?:^#.*\n)*)((?:^msgid(?:_plural)? (?:".*"\n)+)+)', re.MULTILINE)


def translations(source: str) -> Iterator[tuple[str, Literal]]:
    """Yield the files and templates of a catalog of messages (.pot)."""
    for references, entry in _ENTRY.findall(source):
        places = [word for line in references.splitlines() if line.startswith("#: ") for word in line[3:].split()]
        files = [place.partition(":")[0].removeprefix("../") for place in places]
        for one in re.split(r"^msgid(?:_plural)? ", entry, flags=re.MULTILINE)[1:]:
            text = _plain(_NUMBERED.sub(BLANK, "".join(_STRING.findall(one))))
            yield from ((file, Literal(text, "", "")) for file in dict.fromkeys(files))
