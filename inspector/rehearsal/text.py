"""The result of a rehearsal in lines for a console."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.compare import diff_lines
from inspector.compare.diff_lines import Line
from inspector.rehearsal.result import HALF, PERCENTILES, SLOWEST
from inspector.text import clean, decisive, excerpt, plural, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.rehearsal.bisection import Bisected
    from inspector.rehearsal.plan import Plan
    from inspector.rehearsal.result import Result

SLOWER = 1.5
"""How many times as long a catalog takes that is listed."""


def lines(plan: Plan, result: Result, *, full: bool = False) -> Iterator[Line]:
    """Yield the summary, and each group of nodes with its differences."""
    new, old = (", ".join(sorted(map(clean, versions))) for versions in (result.new_versions, result.old_versions))
    versions = f", version {new}" if new else ""
    yield Line("head", f"{plan.target}{versions}; recorded: {f'version {old}' if old else 'another master'}")
    if older(result):
        yield Line("changed", "  it is older than the recorded master")
    if plan.facts:
        others = clean(str(plan.facts))
        yield Line("plain", f"  compared: its catalogs with the recorded facts, and with others: {others}")
    for useless in without_effect(plan, result):
        yield Line("changed", f"  {clean(useless)}: no node has such a fact, or it has this value")
    if plan.target.crl is None:
        yield Line("plain", "  whether its certificate is revoked was not checked (--crl)")
    if plan.twice and result.measured:
        by = f" by {' or '.join(str(target) for target in plan.targets)}" if plan.old else ""
        yield from _noise(result, by, full=full)
    if result.unmeasured:
        nodes = (
            f"{plural(len(result.unmeasured), 'node')} got no catalog: {diff_lines.names(result.unmeasured, full=full)}"
        )
        yield Line("plain", f"  noise of {plan.old} not known: {nodes}")
    if result.waited:
        yield Line("plain", f"  it was too busy at times: waited {seconds(result.waited)}")
    yield from _found(result, full=full)


def found(result: Result, *, full: bool = False) -> Iterator[Line]:
    """Yield what is found in the capture of a rehearsal: the same, without what was said about how it was made."""
    if result.noisy:
        yield from _noise(result, "", full=full)
    yield from _found(result, full=full)


def _found(result: Result, *, full: bool) -> Iterator[Line]:
    if result.deferred:
        values = plural(result.deferred, "Deferred value")
        yield Line(
            "plain",
            f"  not compared: {values}: v4 shows them as text before 8.10, an agent gets them (--road keys:DIR)",
        )
    if result.unasked:
        files = plural(result.unasked, "file")
        yield Line("plain", f"  not compared: {files} for which the agents did not ask when they were recorded")
    yield from _times(result, full=full)
    yield Line("plain", "")
    yield from diff_lines.nodes(result.groups, full=full)
    yield from _logs(result, full=full)


def without_effect(plan: Plan, result: Result) -> list[str]:
    """The changes of facts that change no fact of any node: mistyped, perhaps."""
    return [str(one) for one in plan.facts.each if str(one) not in result.effective]


def _noise(result: Result, by: str, *, full: bool) -> Iterator[Line]:
    count = sum(map(len, result.noise.values()))
    found = f"{plural(count, 'difference')} of {plural(len(result.noisy), 'node')} left out"
    noise = "have them" if result.noisy else "are equal"
    yield Line("plain", f"  noise: {f'{found}: ' if result.noisy else ''}two compiles of the same{by} {noise}")
    places = sorted(result.noise.items(), key=lambda item: -len(item[1]))
    for address, nodes in places if full else places[: diff_lines.MOST]:
        yield Line("note", f"    {clean(address)}: {diff_lines.names(nodes, full=full)}")
    if not full and len(places) > diff_lines.MOST:
        yield Line("note", f"    ... {len(places) - diff_lines.MOST:,} more (--full)")


def _logs(result: Result, *, full: bool) -> Iterator[Line]:
    found = list(result.logs)
    if not found:
        return
    yield Line("plain", "")
    yield Line("head", "what the master logged while it compiled")
    for each in found if full else found[: diff_lines.MOST]:
        place = f"  ({clean(each.place)})" if each.place else ""
        message = excerpt(each.message, diff_lines.WHOLE) if full else excerpt(decisive(each.message), 600)
        yield Line("plain", f"  {clean(each.level)} {clean(message)}{place}")
        yield Line("note", f"    {plural(len(each.nodes), 'node')}: {diff_lines.names(each.nodes, full=full)}")
    if not full and len(found) > diff_lines.MOST:
        yield Line("note", f"  ... {len(found) - diff_lines.MOST:,} more (--full)")


def older(result: Result) -> bool:
    """Whether every version that answered is older than every recorded one."""
    new, old = ([_order(version) for version in versions] for versions in (result.new_versions, result.old_versions))
    return bool(new and old) and max(new) < min(old)


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _times(result: Result, *, full: bool) -> Iterator[Line]:
    if not result.times:
        return
    median, *others = (f"{result.ratio(percentile) or 0.0:.2g}" for percentile in PERCENTILES)
    rest = ", ".join(f"{percentile} %: {ratio}" for percentile, ratio in zip(PERCENTILES[1:], others, strict=True))
    yield Line("plain", f"  compile time: {median} times the recorded one (median; {rest})")
    if result.cold:
        yield Line(
            "note", f"    without the earlier half ({result.cold:.2g} times): the master was cold, as after a start"
        )
    slower = [time for time in result.slowest if full or time.ratio >= SLOWER][:SLOWEST]
    for time in slower:
        spans = f"{seconds(time.before)} -> {seconds(time.after)}"
        yield Line("note", f"    {clean(time.node)}: {spans}  ({time.ratio:.1f} times)")
    if len(result.times) < 2 * HALF and (result.ratio(50) or 0.0) >= SLOWER:
        yield Line("note", "    so few do not show whether the master was cold, as after a start: rehearse again")


def bisected(found: Bisected, *, full: bool = False) -> Iterator[Line]:
    """Yield on which facts a resource depends, and what they change about it."""
    what = f"{clean(found.resource)} of {clean(found.node)}"
    tried = f"{plural(found.candidates, 'fact')} changed, {plural(found.compiles, 'compile')}"
    for address in found.noise:
        yield Line("note", f"left out: {clean(address)} differs between two compiles with the recorded facts")
    if not found.facts:
        yield Line("head", f"{what} depends on none of them ({tried})")
        return
    yield Line("head", f"{what} depends on {plural(len(found.facts), 'fact')} ({tried})")
    for fact in found.facts:
        before = "not there" if fact.before is None else excerpt(diff_lines.word(fact.before), diff_lines.LONG)
        after = "not there" if fact.after is None else excerpt(diff_lines.word(fact.after), diff_lines.LONG)
        yield Line("changed", f"  {clean(fact.name)}: {before} -> {after}")
    yield Line("plain", "what they change")
    yield from diff_lines.differences(found.differences, full=full)
