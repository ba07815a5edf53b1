"""The answer in Markdown, for a ticket: what failed, why, what to do, and what shows it."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from inspector import regex
from inspector.formats.outgoing import summary
from inspector.report.answers import fix_steps
from inspector.text import beginning, clean, plural, stamp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.report.answers import Answer, Answers
    from inspector.report.copies import LeavingCapture

MOST = 58
"""Lines: a ticket is read."""
CAUSES = 3
"""Causes in full."""
LONG = 600
"""Characters of a sentence."""
_MEANING = regex.compile(r"([\\`*_\[\]<>#|~&])")
_BACKTICKS = regex.compile(r"`+")


def lines(answers: Answers, copy: LeavingCapture) -> list[str]:
    """Return the answer in fewer than 60 lines."""
    found = list(islice(_lines(answers, copy), MOST + 1))
    if len(found) <= MOST:
        return found
    return [*found[: MOST - 1], "… the rest is in the report: `puppet-inspector report CAPTURE`"]


def _lines(answers: Answers, copy: LeavingCapture) -> Iterator[str]:
    yield f"# {_plain(answers.headline)}"
    yield ""
    of = "" if copy.whole else f" of {copy.every}"
    yield f"{_plain(copy.name)}, {plural(len(copy.runs), 'run')}{of}" + (
        f", the latest ended at {stamp(answers.latest)}" if answers.latest is not None else ""
    )
    for answer in answers.found[:CAUSES]:
        yield from _answer(answer)
    for answer in answers.found[CAUSES : CAUSES + 5]:
        yield f"- {_plain(answer.sentence)} ({_plain(answer.where)}, since {stamp(answer.since)})"
    if len(answers.found) > CAUSES + 5:
        yield f"- and {plural(len(answers.found) - CAUSES - 5, 'more cause')}"
    if answers.past and not answers.found:
        for number, answer in enumerate(answers.past[:5]):
            yield ""
            over = "over" if answer.over else "not seen since"
            yield f"- {over}: {_plain(answer.sentence)} ({_plain(answer.where)}, last at {stamp(answer.last)})"
            yield from _why(answer) if number < CAUSES else ()
    for number, group in enumerate(copy.apart[: CAUSES + 5]):
        if not number:
            yield ""
            yield "## Outside runs"
            yield ""
        found = group.members[-1].finding
        more = f" ({len(group.members)} times)" if len(group.members) > 1 else ""
        yield f"- {group.key} {_plain(group.title)}{more}: {_plain(found.message)}" + (
            f"; record {found.seqs[0]}" if found.seqs else ""
        )
    yield ""
    if withheld := summary(copy.withheld):
        yield f"{_plain(withheld)}; secrets are masked."
    else:
        yield "Secrets are masked."


def _answer(answer: Answer) -> Iterator[str]:
    yield ""
    yield f"## {_plain(answer.sentence)}"
    yield ""
    nodes = ", ".join(map(_plain, answer.named))
    more = len(answer.nodes) - len(answer.named)
    yield f"- nodes: {nodes}" + (f" and {more} more" if more else "")
    runs = f"{answer.runs} runs, the latest is " if answer.runs > 1 else ""
    yield f"- since: {stamp(answer.since)}, in {runs}run {answer.run.number}"
    if answer.rule:
        yield f"- rule: {answer.rule} {_plain(answer.title)}"
    if answer.certainty:
        yield f"- certainty: {_plain(answer.certainty)}"
    if answer.seqs:
        yield f"- evidence: {plural(len(answer.seqs), 'record')}: {', '.join(map(str, answer.seqs[:8]))}"
    yield from _why(answer)


def _why(answer: Answer) -> Iterator[str]:
    """Why it happens, and its fix."""
    if answer.explanation:
        yield ""
        yield _plain(answer.explanation)
    if answer.steps:
        yield ""
        if answer.over:
            yield "The fix at the time, nothing is to be done now:"
            yield ""
        for number, step in enumerate(fix_steps(answer.steps), 1):
            condition = f"If {step.only_if}: " if step.only_if else ""
            text = f"{number}. {_plain(condition + step.text)}"
            yield f"{text}: {_code(step.command)}" if step.command else f"{text}."
            if step.variant:
                yield f"   {_plain(step.variant_for)}: {_code(step.variant)}"


def _plain(text: str) -> str:
    """Text in which Markdown and HTML have no meaning, in one line, and that mentions nobody."""
    return _MEANING.sub(r"\\\1", beginning(clean(text), LONG)).replace("@", "@\u200b")


def _code(command: str) -> str:
    """A command as code, whatever backticks it contains."""
    text = clean(command)
    longest = max((len(found) for found in _BACKTICKS.findall(text)), default=0)
    fence = "`" * (longest + 1)
    space = " " if longest else ""
    return f"{fence}{space}{text}{space}{fence}"
