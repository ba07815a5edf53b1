"""The languages of files and bodies: what of a line is a comment, a string, a key, for the colours of ``highlight``.

A language is a table of patterns in linear time, tried in their order at each place of a line. A group's name is the
kind of what it matches, followed by a number where a language needs several of one kind:

- ``word`` is looked up in the words of the language, ``declared`` too and otherwise is a type;
- ``scalar`` is a value of YAML: its kind depends on how it is written;
- ``open0`` begins what may go on over lines, and ends it the pattern of that number in ``closes``;
- ``heredoc`` is the word that ends the text on the next lines, ``block`` the sign of an indented text;
- ``skip`` has no colour.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inspector import regex

if TYPE_CHECKING:
    from collections.abc import Sequence

_DOUBLE = rb'"(?:[^"\\]|\\.)*"'
_SINGLE = rb"'(?:[^'\\]|\\.)*'"
_STRINGS = rb"(?P<string>" + _DOUBLE + rb"|" + _SINGLE + rb")"
_OPEN_STRINGS = (_STRINGS, rb'(?P<open0>")', rb"(?P<open1>')")
_TO_DOUBLE, _TO_SINGLE = (("string", rb'^(?:[^"\\]|\\.)*"'), ("string", rb"^(?:[^'\\]|\\.)*'"))
_TYPE = rb"(?:::)?[A-Z]\w*(?:::[A-Z]\w*)*"
_NUMBER = rb"(?P<number>\b[0-9](?:[\w.]|[eE][+-])*)"


@dataclass(frozen=True, eq=False, slots=True)
class Language:
    """A language; ``pattern`` is None if nothing in it has a colour."""

    name: str
    pattern: regex.Pattern[bytes] | None = None
    words: dict[bytes, str] = field(default_factory=dict)
    closes: tuple[tuple[str, regex.Pattern[bytes]], ...] = ()
    by_line: bool = False
    """Whether the colours of a line do not depend on the lines before it."""
    code: Language | None = None
    """The language between ``<%`` and ``%>``."""


def _language(
    name: str,
    tokens: Sequence[bytes],
    words: dict[str, str] | None = None,
    closes: Sequence[tuple[str, bytes]] = (),
    *,
    by_line: bool = False,
) -> Language:
    known = {word.encode(): kind for kind, listed in (words or {}).items() for word in listed.split()}
    endings = tuple((kind, regex.compile(pattern)) for kind, pattern in closes)
    return Language(name, regex.compile(b"|".join(tokens)), known, endings, by_line)


PLAIN = Language("plain", by_line=True)
JSON = _language(
    "json",
    (
        rb"(?P<key>" + _DOUBLE + rb")\s*:",
        rb'(?P<reference>"' + _TYPE + rb'\[(?:[^"\\]|\\.)+\]")',
        rb'(?P<string>"(?:[^"\\]|\\.)*(?:"|\\?$))',
        rb"(?P<number>-?\b[0-9][0-9.eE+-]*)",
        rb"(?P<key1>^[\w.-]+) =(?: |$)",  # a field of a form
        rb"(?P<word>\w+)",
    ),
    {"boolean": "true false", "null": "null"},
    by_line=True,
)
YAML = _language(
    "yaml",
    (
        rb"(?P<comment>#.*)",
        rb"(?P<keyword>^(?:---|\.\.\.)(?:$| ))",
        rb"^\s*(?:[-?] +)*(?P<key>" + _DOUBLE + rb"|" + _SINGLE + rb"""|[^\s#"'\[\]{},&*!|>%@`][^#]*?)\s*:(?:\s|$)""",
        rb"(?P<block>[|>][0-9+-]*)\s*(?:$|#)",
        rb"(?P<variable>[&*][\w.-]+)",
        rb"(?P<keyword1>![\w:/.-]*)",
        _STRINGS,
        rb"(?P<reference>\b" + _TYPE + rb"\[[^\]]*\])",
        rb"\b(?P<key1>[A-Za-z_][\w.-]*):(?:\s|$)",
        rb"""(?P<scalar>(?:[^\s"'#\[\]{},&*!|>%@`:-]|-[^\s#,\[\]{}])(?:[^\s,:\[\]{}]#|:\S|[^#,:\[\]{}])*)""",
    ),
)
PUPPET = _language(
    "puppet",
    (
        rb"(?P<comment>#.*|/\*.*?\*/)",
        rb"(?P<open2>/\*)",
        *_OPEN_STRINGS,
        rb'@\(\s*(?P<heredoc>"?[^"):/\s][^"):/]*)[^)]*\)',
        rb"[=!]~\s*(?P<string1>/(?:[^/\\]|\\.)+/)",
        rb"(?P<variable>\$(?:::)?\w+(?:::\w+)*)",
        rb"(?P<reference>" + _TYPE + rb")",
        rb"\b(?P<key>[a-z_]\w*)\s*(?:=>|\+>)",
        rb"\b(?P<declared>[a-z_]\w*(?:::\w+)*)\s*\{",
        _NUMBER,
        rb"(?P<word>\b[a-z_]\w*(?:::\w+)*)",
    ),
    {
        "keyword": "class define node inherits if elsif else unless case default include require contain import "
        "function plan type application and or in return attr private",
        "boolean": "true false",
        "null": "undef",
    },
    (_TO_DOUBLE, _TO_SINGLE, ("comment", rb"\*/")),
)
RUBY = _language(
    "ruby",
    (
        rb"(?P<open2>^=begin)",
        rb"(?P<comment>#.*)",
        rb"(?P<string1>%[qQwWiIr]?(?:\{[^}]*\}|\([^)]*\)|\[[^\]]*\])[imxo]*)",
        rb"(?P<open3>%[qQwW]?\{)",
        rb"(?P<open4>%[qQwW]?\()",
        rb"""<<[~-]?(?P<heredoc>["'`]?[A-Z_]\w*)["'`]?""",
        rb"(?:[=(,~|&!{]|^|\b(?:if|when|unless|and|or|not)\b)\s*(?P<string2>/(?:[^/\\\s]|\\.)(?:[^/\\]|\\.)*/[imxou]*)",
        *_OPEN_STRINGS,
        rb"(?P<skip>::)",
        rb"(?P<number1>:[a-zA-Z_]\w*[?!=]?)",
        rb"(?P<variable>(?:@@?|\$)\w+)",
        rb"(?P<key>\b[a-zA-Z_]\w*[?!]?):(?:\s|$)",
        rb"(?P<reference>\b[A-Z]\w*(?:::[A-Z]\w*)*)",
        _NUMBER,
        rb"(?P<word>\b[a-z_]\w*[?!]?)",
    ),
    {
        "keyword": "alias and begin break case class def defined? do else elsif end ensure for if in module next not "
        "or raise redo require require_relative rescue retry return self super then undef unless until when while "
        "yield attr_accessor attr_reader attr_writer include extend private protected public",
        "boolean": "true false",
        "null": "nil",
    },
    (_TO_DOUBLE, _TO_SINGLE, ("comment", rb"^=end"), ("string", rb"\}"), ("string", rb"\)")),
)
PYTHON = _language(
    "python",
    (
        rb"(?P<comment>#.*)",
        rb'(?P<string1>""".*?""")',
        rb"(?P<string2>'''.*?''')",
        rb'(?P<open0>""")',
        rb"(?P<open1>''')",
        _STRINGS,
        rb"(?P<variable>@[\w.]+)",
        rb"(?P<word1>\b(?:None|True|False)\b)",
        rb"(?P<reference>\b[A-Z]\w*)",
        _NUMBER,
        rb"(?P<word>\b[a-z_]\w*)",
    ),
    {
        "keyword": "and as assert async await break case class continue def del elif else except finally for from "
        "global if import in is lambda match nonlocal not or pass raise return try while with yield",
        "boolean": "True False",
        "null": "None",
        "variable": "self cls",
    },
    (("string", rb'"""'), ("string", rb"'''")),
)
SHELL = _language(
    "shell",
    (
        rb"(?:^|[\s;])(?P<comment>#.*)",
        rb"(?P<skip>\\.|<<<)",
        *_OPEN_STRINGS,
        rb"""<<-?\s*(?P<heredoc>["'\\]?\w+)["']?""",
        rb"(?P<variable>\$\{[^}]*\}|\$\w+|\$[@#?$!*-])",
        rb"(?:^|;|\b(?P<word1>export|local|readonly|declare)\b)\s*(?P<key>\w+)=",
        rb"(?P<word>[\w-]+)",
    ),
    {
        "keyword": "if then else elif fi for in do done while until case esac function return export local readonly "
        "declare exit set unset shift trap source exec eval",
        "boolean": "true false",
    },
    (_TO_DOUBLE, _TO_SINGLE),
)
CONF = _language(
    "conf",
    (
        rb"(?:^|\s)(?P<comment>[#;].*)",
        rb"^\s*(?P<heading>\[[^\]]*\])",
        rb"^\s*(?P<heading1></?\w[^>]*>)",
        rb"""^\s*(?P<key>[^\s=:#;\[<"'{}][^=:#]*?)\s*=""",
        rb"^\s*(?P<key2>[\w.-]+)\s*:(?:\s|$)",
        rb"^\s*(?P<key1>[A-Za-z][\w.-]*)(?:\s|$)",
        _STRINGS,
        rb"(?P<number>\b[0-9]+(?:[.:/][0-9]+)*\b)",
        rb"(?P<word>[\w./-]+)",
    ),
    {"boolean": "true false yes no on off True False Yes No On Off"},
    by_line=True,
)
XML = _language(
    "xml",
    (
        rb"(?P<comment><!--.*?-->)",
        rb"(?P<open0><!--)",
        rb"(?P<keyword></?[\w:.-]+|<[?!][\w-]+|[/?]?>)",
        rb"""(?P<key>[\w:.-]+)\s*=\s*(?P<string>"[^"]*"?|'[^']*'?)""",
        rb"(?P<number>&#?\w+;)",
    ),
    {},
    (("comment", rb"-->"),),
)
DIFF = _language(
    "diff",
    (
        rb"^(?P<heading>(?:---|\+\+\+|diff|index|Index:)(?: .*|$))",
        rb"^(?P<reference>@@.*)",
        rb"^(?P<added>[+>].*)",
        rb"^(?P<removed>[-<].*)",
        rb"^(?P<comment>\\.*)",
    ),
    by_line=True,
)

_ENDINGS = {
    PUPPET: "pp",
    RUBY: "rb gemspec rake",
    JSON: "json jsonl ndjson",
    YAML: "yaml yml eyaml fixtures",
    SHELL: "sh bash zsh ksh profile bashrc",
    PYTHON: "py pyi",
    CONF: "conf cfg ini cnf cf properties toml repo list rules service timer socket mount target desktop env config",
    XML: "xml html htm xhtml svg xsl xsd",
    DIFF: "diff patch",
}
_BY_ENDING = {ending: language for language, endings in _ENDINGS.items() for ending in endings.split()}
_BY_NAME = {"rakefile": RUBY, "gemfile": RUBY, "puppetfile": RUBY} | dict.fromkeys(
    ["sshd_config", "ssh_config", "hosts", "fstab", "crontab", "sudoers", "ntp", "resolv", "environment"], CONF
)
_SHEBANG = regex.compile(rb"^#![^\n]*?\b(?P<name>bash|dash|zsh|ksh|sh|ruby|python)[0-9.]*(?:\s|$)")
_TEMPLATES = {"epp": PUPPET, "erb": RUBY}


def of_file(name: str, data: bytes = b"") -> Language:
    """Return the language of a file, by its name, or else by how it begins."""
    stem, dot, ending = name.rpartition("/")[2].lower().rpartition(".")
    if code := _TEMPLATES.get(ending) if dot else None:
        around = of_file(stem)
        return Language(f"{around.name} with {code.name}", around.pattern, around.words, around.closes, code=code)
    if found := (_BY_ENDING.get(ending) if dot else None) or _BY_NAME.get(ending if not dot else f"{stem}.{ending}"):
        return found
    return of_content(data)


def of_content(data: bytes) -> Language:
    """Return the language of a text without a name, if its beginning tells."""
    begin = data[:256]
    if shebang := _SHEBANG.search(begin):
        return {"ruby": RUBY, "python": PYTHON}.get(shebang["name"].decode(), SHELL)
    if begin.startswith((b"<?xml", b"<!DOCTYPE", b"<html")):
        return XML
    if begin.startswith((b"--- !", b"---\n")):
        return YAML
    return DIFF if is_diff(begin) else PLAIN


_HUNK = regex.compile(rb"(?:^|\n)@@ -[0-9]|(?:^|\n)--- [^\n]*\n\+\+\+ ")


def is_diff(data: bytes) -> bool:
    """Return whether a text contains a unified diff."""
    return b"@@" in data and _HUNK.search(data) is not None
