"""The rules of an auth.conf, of puppetserver or of the Ruby master."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from inspector import regex

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from inspector.host.auth_conf.patterns import Pattern


class Sort(StrEnum):
    """How an entry of ``allow`` or ``deny`` is compared with a client."""

    ANY = "any"
    NAME = "name"
    WORD = "word"
    """A name without dots, or with signs that no host name has: compared as it is."""
    DOMAIN = "domain"
    GROUP = "group"
    """It contains ``$1``: a part of the path."""
    PATTERN = "pattern"
    EXTENSIONS = "extensions"
    ADDRESS = "address"
    PERMISSION = "permission"
    """A permission of Puppet Enterprise's roles."""


_NAME = regex.compile(r"(?:\w[-\w]*\.)+[-\w]+")
_DOMAIN = regex.compile(r"\*(?:\.\w[-\w]*)+")
GROUP = regex.compile(r"\$([0-9]+)")
_WORD = regex.compile(r"\w[-.@\w]*")
_PATTERN = regex.compile(r"/[^\n\r\x{85}\x{2028}\x{2029}]*/")


def sort_of(text: str) -> Sort | None:
    """Return how a name in ``allow`` or ``deny`` is compared; None if no master takes it."""
    if text == "*":
        return Sort.ANY
    for sort, pattern in ((Sort.NAME, _NAME), (Sort.DOMAIN, _DOMAIN)):
        if pattern.fullmatch(text):
            return sort
    if GROUP.search(text):
        return Sort.GROUP
    if _WORD.fullmatch(text):
        return Sort.WORD
    return Sort.PATTERN if len(text) > 1 and _PATTERN.fullmatch(text) else None


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One entry of ``allow`` or ``deny``; none is equal to another one."""

    allows: bool
    sort: Sort
    text: str
    """As it stands in the file, as far as it is one text."""
    line: int | None
    """None: it is built into the master."""
    extensions: Mapping[str, tuple[str, ...]] | None = None
    """The values of each extension, any of which is right."""
    alt_names: Mapping[str, tuple[str, ...]] | None = None
    """The subject's alternative names by their kind, any of which is right."""

    def __str__(self) -> str:
        return f"{'allow' if self.allows else 'deny'} {self.text}"


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """Whom a master allows which requests; none is equal to another one."""

    name: str
    line: int | None
    """None: it is built into the master."""
    path: str
    """The beginning of the paths that it is for, if it has no pattern."""
    pattern: Pattern | None = None
    order: int | None = None
    """The sort-order; the Ruby master has none."""
    methods: frozenset[str] | None = None
    """In lower case: puppetserver's are HTTP's, the Ruby master's those of its indirector; None: all."""
    entries: tuple[Entry, ...] = ()
    """In the order in which they are compared."""
    unauthenticated: bool = False
    """Whether it allows everybody, also clients without a certificate."""
    query: Mapping[str, frozenset[str]] | None = None
    """The values of query parameters that it is for."""
    environments: frozenset[str] = frozenset()
    """The environments that it is for; empty: all."""
    authenticated: bool = False
    """Whether it is only for clients with a certificate."""


@dataclass(frozen=True, slots=True)
class AuthConf:
    """An auth.conf."""

    path: Path
    kind: Literal["puppetserver", "ruby"]
    rules: tuple[Rule, ...]
    """In the order in which the master looks at them."""
    warnings: tuple[str, ...] = ()
    """Settings that the master takes, but hardly as they are meant."""
    headers: bool = False
    """Whether clients are identified by headers (``allow-header-cert-info``)."""
    list_line: int | None = None
    """The line after which another rule can be inserted; None if that is not so simple."""

    def place(self, line: int | None) -> str:
        """Return where a line is: ``auth.conf:12``."""
        return f"{self.path.name}:{line}" if line else "built into the master"


class Refused(ValueError):
    """The master does not start with this file, or it cannot be read here."""

    def __init__(self, line: int, reason: str, hint: str = "") -> None:
        super().__init__(f"line {line}: {reason}")
        self.line, self.reason, self.hint = line, reason, hint
