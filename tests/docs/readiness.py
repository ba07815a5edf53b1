"""The table of docs/readiness.md, made of the changes that ``readiness`` looks for."""

from __future__ import annotations

import inspect
import re

from inspector.explain.readiness.changes import CHANGES
from inspector.rules import rule_of
from tests.docs.markdown import anchor

HEAD = "| change | since | shown by | source |\n|---|---|---|---|\n"


def table() -> str:
    """Return the rows of the table."""
    rows = []
    for change in CHANGES:
        rules = ", ".join(f"[{ident}](rules.md#{anchor(f'{ident} {rule_of(ident).title}')})" for ident in change.rules)
        sign = inspect.getdoc(change.sign).removeprefix("Return ").rstrip(".").replace("``", "`") if change.sign else ""  # type: ignore[union-attr]
        sources = ", ".join(map(_source, change.sources))
        rows.append(f"| {change.title} ({change.effect}) | {change.since} | {rules or sign} | {sources} |\n")
    return "".join(rows)


def _source(source: str) -> str:
    page, _, section = source.partition("#")
    return f"[{section}]({page.removeprefix('docs/')}#{section})" if page.startswith("docs/") else f"`{source}`"


def renewed(page: str) -> str:
    """Return the page with the current table."""
    return re.sub(re.escape(HEAD) + r"(?:\|.*\n)*", lambda _: HEAD + table(), page)
