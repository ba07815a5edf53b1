"""Decisions in words and for JSON."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Literal

import msgspec
from rich.cells import cell_len

from inspector.columns import Count, Number
from inspector.explain.authorization.decision import Verdict
from inspector.rules.words import some
from inspector.text import clean, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from inspector.explain.authorization.decision import Decision
    from inspector.explain.authorization.traffic import Group, Traffic
    from inspector.host.auth_conf.rules import AuthConf

_VERBS = {
    Verdict.ALLOWED: "allowed",
    Verdict.DENIED: "denied",
    Verdict.FAILS: "answered with an error",
    Verdict.UNASKED: "answered without auth.conf",
    Verdict.UNDECIDED: "not decided here",
}
_RECORDS = 6
"""Record numbers that a line shows."""


def by(decision: Decision, conf: AuthConf) -> str:
    """Return which rule decides, and where it stands."""
    rule = decision.rule
    if rule is None:
        return "because no rule is for it" if decision.verdict is Verdict.DENIED else ""
    order = "" if rule.order is None else f"sort-order {rule.order}, "
    preposition = "because of" if decision.verdict is Verdict.UNDECIDED else "by"
    return f'{preposition} "{clean(rule.name)}" ({order}{clean(conf.place(rule.line))})'


def sentence(decision: Decision, conf: AuthConf, nodes: int = 1) -> str:
    """Return a decision, its rule and its reason; ``nodes`` is for how many clients it is."""
    found = by(decision, conf)
    result = f"{_VERBS[decision.verdict]}{' ' * bool(found)}{found}"
    if decision.rule is None and decision.verdict is Verdict.DENIED:
        return result
    entry, rule = decision.entry, decision.rule
    place = f" ({clean(conf.place(entry.line))})" if entry and rule and entry.line != rule.line else ""
    return f"{result}{', for example' if nodes > 1 else ''}: {clean(decision.why)}{place}"


def lines(traffic: Traffic) -> Iterator[str]:
    """Yield what an auth.conf says to recorded requests, or what would change with another one."""
    if not traffic.requests:
        yield "there are no requests"
    elif traffic.new is not None:
        yield from _changes(traffic, traffic.new)
    else:
        yield from _decisions(traffic, traffic.conf)


def _decisions(traffic: Traffic, conf: AuthConf) -> Iterator[str]:
    used = len({group.decision.rule.name for group in traffic.groups if group.decision.rule})
    counts = (f"{count} {_VERBS[verdict]}" for verdict in _VERBS if (count := traffic.counts.get(verdict)))
    rules = f"by {used} of the {len(conf.rules)} rules of {clean(str(conf.path))}"
    yield f"{plural(traffic.requests, 'request')}: {', '.join(counts)}, {rules}"
    rest = [group for group in traffic.groups if group.decision.verdict is not Verdict.ALLOWED]
    yield from _under(rest, lambda group: group.decision, conf, lambda group: _records(group.records))
    allowed = [group for group in traffic.groups if group.decision.verdict is Verdict.ALLOWED]
    if allowed:
        yield from ("", "allowed:")
        yield from _table([*_row(group), by(group.decision, conf)] for group in allowed)
    if contradicted := sorted(record for group in traffic.groups for record in group.contradicted):
        yield ""
        yield f"the master answered otherwise ({_records(contradicted)}): its auth.conf was another one"


def _changes(traffic: Traffic, new: AuthConf) -> Iterator[str]:
    groups = traffic.groups
    if not groups:
        yield f"nothing changes for {plural(traffic.requests, 'request')} with {clean(str(new.path))}"
        return
    nodes = len({node for group in groups for node in group.nodes})
    changed = sum(group.requests for group in groups)
    yield (
        f"{changed} of {plural(traffic.requests, 'request')}, of {plural(nodes, 'node')}, would be answered "
        f"otherwise with {clean(str(new.path))}"
    )

    def now(group: Group) -> str:
        return f"now {_VERBS[group.decision.verdict]} {by(group.decision, traffic.conf)}".rstrip()

    yield from _under(groups, lambda group: group.then or group.decision, new, now)


def _under(
    groups: Sequence[Group], decision: Callable[[Group], Decision], conf: AuthConf, last: Callable[[Group], str]
) -> Iterator[str]:
    """Yield groups below the decision that they share; ``last`` is the last column."""
    for _, shared in groupby(groups, key=lambda group: by(decision(group), conf) or decision(group).why):
        listed = [*shared]
        nodes = len({node for group in listed for node in group.nodes})
        yield ""
        yield f"{sentence(decision(listed[0]), conf, nodes)}"
        yield from _table([*_row(group), last(group)] for group in listed)


def _row(group: Group) -> list[str]:
    return [f"{group.requests}", clean(f"{', '.join(group.methods)} {group.endpoint}"), clean(some([*group.nodes]))]


def _table(rows: Iterable[list[str]]) -> Iterator[str]:
    cells = [*rows]
    widths = [max(cell_len(row[at]) for row in cells) for at in range(3)]
    for number, *texts, last in cells:
        padded = (text + " " * (width - cell_len(text)) for text, width in zip(texts, widths[1:], strict=True))
        yield f"  {number:>{widths[0]}}  {'  '.join(padded)}  {last}".rstrip()


def _records(records: list[int]) -> str:
    shown = ", ".join(map(str, records[:_RECORDS]))
    more = f" and {len(records) - _RECORDS} more" if len(records) > _RECORDS else ""
    return f"record{'' if len(records) == 1 else 's'} {shown}{more}" if records else ""


class PlainConf(msgspec.Struct):
    """An auth.conf."""

    path: str
    kind: Literal["puppetserver", "ruby"]
    rules: Count
    """With those that the Ruby master adds."""
    allow_header_cert_info: bool
    warnings: tuple[str, ...]


class PlainRule(msgspec.Struct):
    """The rule that decides, and where it stands."""

    name: str
    sort_order: int | None
    """null: the Ruby master has none."""
    file: str
    line: Number | None
    """null: it is built into the master."""


class PlainEntry(msgspec.Struct):
    """An entry of allow or deny."""

    text: str
    line: Number | None


class PlainDecision(msgspec.Struct):
    """The decision on the first of the requests."""

    verdict: Verdict
    """``fails``: the master ends with an error while it decides; ``not asked``: it answers without auth.conf."""
    why: str
    rule: PlainRule | None
    """null: no rule is for the request, or auth.conf is not asked."""
    entry: PlainEntry | None
    """The entry of allow or deny that is for the client; null if none is."""


class PlainGroup(msgspec.Struct):
    """Requests to one endpoint that one rule decides in one way."""

    endpoint: str
    """A name of docs/endpoints.md, or ``other``."""
    methods: list[str]
    requests: Number
    nodes: list[str]
    """The certnames of the clients; of one without a certificate its address."""
    records: list[Number]
    """The record numbers; empty with --request."""
    contradicted: list[Number]
    """The records in which the master decided otherwise: it had another auth.conf."""
    decision: PlainDecision
    then: PlainDecision | None
    """The decision of the other auth.conf; null without --new."""


class PlainTraffic(msgspec.Struct):
    """What an auth.conf, or two of them, say to requests."""

    auth_conf: PlainConf
    new: PlainConf | None
    """The other auth.conf (--new); null without one."""
    requests: Count
    counts: dict[Verdict, Count]
    """The requests by what auth_conf says to them."""
    groups: list[PlainGroup]
    """What is denied first. With --new only those that would be answered otherwise, or of which that is not known."""


def plain(traffic: Traffic) -> PlainTraffic:
    """Return the same for JSON."""
    return PlainTraffic(
        auth_conf=_plain_conf(traffic.conf),
        new=_plain_conf(traffic.new) if traffic.new else None,
        requests=traffic.requests,
        counts={verdict: traffic.counts.get(verdict, 0) for verdict in Verdict},
        groups=[
            PlainGroup(
                endpoint=group.endpoint,
                methods=[*group.methods],
                requests=group.requests,
                nodes=[*group.nodes],
                records=group.records,
                contradicted=group.contradicted,
                decision=_plain_decision(group.decision, traffic.conf),
                then=_plain_decision(group.then, traffic.new) if group.then and traffic.new else None,
            )
            for group in traffic.groups
        ],
    )


def _plain_conf(conf: AuthConf) -> PlainConf:
    return PlainConf(str(conf.path), conf.kind, len(conf.rules), conf.headers, conf.warnings)


def _plain_decision(decision: Decision, conf: AuthConf) -> PlainDecision:
    rule, entry = decision.rule, decision.entry
    return PlainDecision(
        verdict=decision.verdict,
        why=decision.why,
        rule=PlainRule(rule.name, rule.order, str(conf.path), rule.line) if rule else None,
        entry=PlainEntry(str(entry), entry.line) if entry else None,
    )
