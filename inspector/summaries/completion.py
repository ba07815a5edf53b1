"""Completion of a filter while the user types it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector import regex
from inspector.model import Phase, Severity
from inspector.protocol.endpoints import ENDPOINTS
from inspector.rules import known_rules
from inspector.summaries import terms
from inspector.summaries.filters import KEYS, OTHER_NAMES, OUTCOMES
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


SHORT = 3
"""Letters of a plain word from which it may be meant as a value."""


def complete(text: str, values: Mapping[str, Iterable[str]] | None = None) -> list[str]:
    """Possible completions of a filter up to the cursor: each result replaces all of ``text``.

    ``values`` are the values of a capture, by key (``agent``, ``env``, ``version``, ``rule``); they come before the
    built-in ones. A key's other name (``certname``) is completed to its main name.
    """
    typed = terms.read(text, 0)
    while typed is not None and typed.end < len(text):
        typed = terms.read(text, typed.end)
    if typed is None:  # a quote in the middle of a word: not a filter
        return []
    negation = text[typed.begin] if typed.negated else ""
    head, name, value = text[: typed.begin] + negation, typed.key, typed.written
    if name is None:
        meant = [] if typed.negated else _meant(value.casefold())
        completions = [f"{head}{term}" for term in (*meant, *(f"{key}:" for key in _keys(value.casefold())))]
    else:
        begun = value.strip("\"'").casefold()
        known = [*((values or {}).get(name.lower(), ())), *_known(name.lower())]
        fitting = dict.fromkeys(
            value for value in known if value.casefold().startswith(begun) and clean(value) == value
        )
        completions = [f"{head}{name}:{_quoted(value)}" for value in fitting if value]
    return [completion for completion in completions if completion != text]


def _keys(begun: str) -> list[str]:
    meant = (key for name, key in OTHER_NAMES.items() if begun and name.startswith(begun))
    return [key for key in KEYS if key.startswith(begun)] or list(dict.fromkeys(meant))


def _meant(begun: str) -> list[str]:
    """Return the terms that a plain word may mean: values that only one key has. For the outcomes other than complete,
    that includes ``!outcome:complete``."""
    if len(begun) < SHORT:
        return []
    found = [f"{key}:{value}" for key in ("outcome", "severity") for value in _known(key) if value.startswith(begun)]
    if any(term.startswith("outcome:") and term != "outcome:complete" for term in found):
        found.append("!outcome:complete")
    return found


def _known(key: str) -> Iterable[str]:
    match key:
        case "phase":
            return (*map(str, Phase), "handshake", "gap")
        case "method":
            return dict.fromkeys(method for endpoint in ENDPOINTS for method in endpoint.methods)
        case "endpoint":
            return dict.fromkeys(endpoint.name for endpoint in ENDPOINTS)
        case "outcome":
            return OUTCOMES
        case "severity":
            return map(str, Severity)
        case "rule":
            return ("any", *(rule.id for rule in known_rules()))
        case "status":
            return ("none", "2xx", "3xx", "4xx", "5xx", ">=400")
        case _:
            return ()


def _quoted(value: str) -> str:
    if not regex.search(r"\s", value) and value[0] not in "\"':":
        return value
    return '"' + regex.sub(r'(["\\])', r"\\\1", value) + '"'
