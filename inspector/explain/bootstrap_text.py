"""Bootstraps as text and as JSON (docs/json/bootstrap.schema.json)."""

from __future__ import annotations

import textwrap
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Literal, override

import msgspec

from inspector import regex
from inspector.columns import Number, Utc
from inspector.explain.bootstrap import Condition, short
from inspector.explain.bootstrap_requests import NEAR, BootstrapState
from inspector.explain.trust_chain import refusal_of
from inspector.protocol.chains import Revocation
from inspector.rules.words import lasting
from inspector.summaries import wording
from inspector.text import clean, stamp, utc, utc_day, utc_second

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.explain.bootstrap import AgentBootstrap, BootstrapStep, KeySighting, Stuck
    from inspector.explain.trust import Judgement

NO_BUNDLE = "this capture contains no CA bundle, so whether the agent trusts certificates and CRLs is unknown"
_DIGITS = frozenset("0123456789abcdefABCDEF:")
KINDS = {"csr": "in a CSR", "certificate": "in the issued certificate", "client": "in the presented certificate"}


class _Wrapper(textwrap.TextWrapper):
    """Wraps text; a fingerprint or digest that no line has room for is broken between groups of digits."""

    @override
    def _split(self, text: str) -> list[str]:
        room = self.width - len(self.subsequent_indent)
        words = super()._split(text)
        return [part for word in words for part in ([word] if len(word) <= room else _groups(word))]


def _groups(word: str) -> list[str]:
    """The groups of digits of a fingerprint or digest; any other word in one."""
    size = {95: 24, 64: 32}.get(len(digits := word.rstrip(",)")))
    if size is None or not _DIGITS.issuperset(digits):
        return [word]
    cuts = [*range(0, len(digits), size), len(word)]
    return [word[begin:end] for begin, end in pairwise(cuts)]


def records(seqs: tuple[int, ...]) -> str:
    """The first and the last record of a step or key: ``record 3``, ``records 11 and 27``."""
    return wording.numbers(seqs).replace(", ", " and ") if len(seqs) == 2 else wording.numbers(seqs)


def lines(bootstrap: AgentBootstrap, width: int | None = None) -> list[str]:
    """A bootstrap as lines of text for a terminal of some width; without one, all fingerprints are whole."""
    wrapper = textwrap.TextWrapper if width is None else _Wrapper
    width = width or wording.PLAIN

    def wrapped(label: str, text: str) -> list[str]:
        below = " " * min(len(label) + 2, width // 4)
        return wrapper(width, subsequent_indent=below, break_on_hyphens=False, break_long_words=False).wrap(
            label + text
        )

    who = ", ".join([*([f"puppet {bootstrap.version}"] if bootstrap.version else []), *bootstrap.addresses[:NEAR]])
    output = [f"{bootstrap.certname} ({who})" if who else bootstrap.certname]
    if bootstrap.ca_service:
        output.append(f"  CA: {bootstrap.ca_service}")
    several = len({step.run for step in bootstrap.steps}) > 1
    run: int | None = None
    risks: set[str] = set()
    for n, step in enumerate(bootstrap.steps):
        if several and step.run != run:
            run = step.run
            output.append(f"  run {run}")
        arrow = "->" if n else "  "
        output += wrapped(f"  {utc_second(step.began)}  {arrow} ", f"{_step_text(step)} [{records(step.seqs)}]")
        if step.risk and step.risk not in risks:
            output += wrapped(" " * 26, f"not verified: {step.risk}")
            risks.add(step.risk)
    if not bootstrap.steps:
        output.append("  no record of it")
    for line in _end(bootstrap):
        output += wrapped("  ", line)
    return [clean(line) for line in output]


def _step_text(step: BootstrapStep) -> str:
    text = " ".join([asked(step), *([answered(step)] if step.answers else [])])
    if often := repeated(step):
        text += f", {often}" if step.answers[1:] else f" {often}"
    facts = [f"{label} {brief(label, value)}" for label, value in step.facts]
    if step.state is not BootstrapState.TLS and not step.verified:
        facts.insert(0, trusted(step))
    return f"{text} ({', '.join(facts)})" if facts else text


def asked(step: BootstrapStep) -> str:
    """Return the request of a step."""
    return f"{step.state} PUT" if step.state is BootstrapState.CSR else str(step.state)


def answered(step: BootstrapStep) -> str:
    """Return the answers of a step."""
    return ", then ".join(step.answers)


def repeated(step: BootstrapStep) -> str:
    """How many requests there were, for how long and at what interval; empty if there was only one."""
    if step.times < 2:
        return ""
    text = f"{step.times} in all" if step.answers[1:] else f"x{step.times}"
    text += f" over {lasting(step.ended - step.began)}" if step.ended - step.began >= 1 else ""
    return text + (f", every {lasting(step.interval)}" if step.interval else "")


def trusted(step: BootstrapStep) -> str:
    """Whether the agent verified the server; empty where that does not apply."""
    if step.state is BootstrapState.TLS:
        return ""
    return {True: "verified", False: "unverified", None: "unknown whether verified"}[step.verified]


def brief(label: str, value: str) -> str:
    """A fact's value; a digest is shortened but still distinguishable."""
    return short(value) if label == "key" else f"{value[:23]}..." if label == "with" else value


def _end(bootstrap: AgentBootstrap) -> Iterator[str]:
    if bootstrap.stuck:
        yield stuck_text(bootstrap.stuck)
    for key in sorted(bootstrap.keys, key=lambda key: (key.seqs[0], key.last)):
        at = f" from {', '.join(key.addresses[:NEAR])}" if key.addresses else ""
        yield f"key {short(key.key)} {KINDS[key.kind]}, {period(key)}{at} [{records(key.seqs)}]"
    yield from bootstrap.conclusions
    if bootstrap.now is None:
        yield NO_BUNDLE
        return
    breaks = [f"on {on}: {'; '.join(problems)}" for on, problems in outlook(bootstrap)]
    if bootstrap.now.problems:
        yield judged(bootstrap, bootstrap.now)
    else:
        yield judged(bootstrap, bootstrap.now) + (f"; breaks {breaks.pop(0)}" if breaks else "")
    for forecast in breaks:
        yield f"then {forecast}"
    if how := limits(bootstrap):
        yield f"(assumed: {how})"


def stuck_text(stuck: Stuck) -> str:
    """Where an agent is stuck, since when, why, and when it tries again."""
    text = f"stops at {stuck.state} since {stamp(stuck.since)}"
    text += f", for {lasting(stuck.last - stuck.since)}" if stuck.last - stuck.since >= 1 else ""
    text += f": {stuck.why}"
    if stuck.overdue and stuck.next_try:
        text += f"; it was due to retry at {stamp(stuck.next_try)} and did not, so it was stopped"
    elif stuck.next_try:
        text += f"; it retries at {stamp(stuck.next_try)}"
    elif stuck.state is BootstrapState.CERTIFICATE:
        text += "; if it waits, it retries after waitforcert (2 minutes by default)"
    return text


def period(key: KeySighting) -> str:
    """When a key was seen."""
    return stamp(key.first) + (f" to {stamp(key.last)}" if key.last - key.first >= 1 else "")


def judged(bootstrap: AgentBootstrap, now: Judgement) -> str:
    """The agent's judgement at a time of its CA, CRLs and certificate; before it, that it is refused itself."""
    refusal, day = refused(bootstrap), utc_day(now.at)
    if now.problems:
        found = f"refuses on {day}: {'; '.join(now.problems)}"
    else:
        found = f"{'the trust it received is accepted on' if bootstrap.stuck else 'works on'} {day}"
    return f"{refusal}; {found}" if refusal else found


def refused(bootstrap: AgentBootstrap) -> str:
    """Who refused the agent, and why in a word or two; empty if nobody did."""
    refusal = refusal_of(bootstrap)
    if refusal is None or refusal.by == "agent":
        return ""
    return f"refused by the {refusal.by}: {refusal.breaks}"


def condition(bootstrap: AgentBootstrap) -> Condition:
    """What the agent's bootstrap is now: sound, waiting for the certificate, broken, or not known."""
    if bootstrap.now and bootstrap.now.problems:
        return Condition.BROKEN
    if bootstrap.stuck:
        there = (bootstrap.stuck.state, bootstrap.stuck.last)
        last = [step.condition for step in bootstrap.steps if (step.state, step.ended) == there]
        return Condition.WAITING if last[-1:] == [Condition.WAITING] else Condition.BROKEN
    return Condition.SOUND if bootstrap.now else Condition.UNKNOWN


def outlook(bootstrap: AgentBootstrap) -> list[tuple[str, list[str]]]:
    """The days on which new errors will appear, and which."""
    return [
        (on, [_coming(problem) for forecast in same for problem in forecast.problems])
        for on, same in groupby(bootstrap.breaks, key=lambda forecast: utc_day(forecast.at))
    ]


_EXPIRED = regex.compile(
    r"The ((?:certificate|CRL issued by) '.*') has expired, verify time is synchronized", regex.DOTALL
)


def _coming(problem: str) -> str:
    """The agent's error on a later day, worded for the day on which it begins."""
    ends = _EXPIRED.fullmatch(problem)
    return f"the {ends[1]} expires" if ends else f"refused from then on: {problem}"


def limits(bootstrap: AgentBootstrap) -> str:
    """The data used for the judgement if it is not all the data of the agent; empty if it is."""
    trust = bootstrap.trust
    if trust is None:
        return ""
    output = [] if trust.own else ["by the CA bundle that another agent downloaded"]
    output += [] if trust.shown else ["the certificate presented to the agent is not in this capture"]
    output += ["with certificate_revocation leaf"] if trust.revocation == "leaf" else []
    output += ["its CRLs are not in this capture"] if trust.crls is None else []
    return "; ".join(output)


class PlainFact(msgspec.Struct):
    """What a request or its answer contains."""

    name: str
    value: str


class Rung(msgspec.Struct):
    """A step of the bootstrap."""

    state: BootstrapState
    agent_state: str | None
    """The state's name in agents of 6.4 and later."""
    run: int | None
    began: Utc
    ended: Utc
    times: int
    """Number of requests in this state."""
    interval_s: float | None
    """Seconds between two attempts."""
    answers: tuple[str, ...]
    """The answers, each kind once."""
    verified: bool | None
    """Whether the agent verified the server; null without a request."""
    risk: str | None
    """What an attacker could have done there."""
    facts: list[PlainFact]
    seqs: tuple[Number, ...]
    """The records that are the evidence."""


class PlainKey(msgspec.Struct):
    """A public key used with the certname."""

    kind: Literal["csr", "certificate", "client"]
    key: str
    """SHA-256 of the public key."""
    fingerprint: str
    first: Utc
    last: Utc
    addresses: tuple[str, ...]
    """The addresses that used it."""
    seqs: tuple[Number, ...]
    """The records that are the evidence."""


class Hangs(msgspec.Struct):
    """The state in which the bootstrap is blocked."""

    state: BootstrapState
    why: str
    since: Utc
    last: Utc
    next_try: Utc | None
    overdue: bool
    """True if the next attempt is overdue."""


class JudgedBy(msgspec.Struct):
    """What the verification is based on."""

    own_bundle: bool
    """True: the CA bundle that this agent downloaded; false: one that another agent downloaded."""
    revocation: Revocation
    crls: bool
    master_certificate: bool
    """Whether the capture contains the certificate presented to the agent."""


class PlainJudgement(msgspec.Struct):
    """Result of the agent's verification of the certificates and CRLs."""

    at: Utc
    works: bool
    problems: tuple[str, ...]
    """The verification errors, worded as the agent prints them."""


class PlainBootstrap(msgspec.Struct):
    """The bootstrap of an agent."""

    certname: str
    """The agent's certname, or its address if the name is not known."""
    addresses: tuple[str, ...]
    """The agent's addresses."""
    agent_version: str | None
    generation: str | None
    rungs: list[Rung]
    """The states of the agent's SSL state machine, in order ('rungs': the steps of the bootstrap)."""
    keys: list[PlainKey]
    """Every public key used with the certname."""
    keys_prove: tuple[str, ...]
    """Conclusions from the keys: a mismatch, a clone, a reinstalled host."""
    hangs: Hangs | None
    """The state in which the bootstrap is blocked; null if it is not."""
    judged_by: JudgedBy | None
    """What the verification in ``now`` and ``breaks`` is based on; null if there is not enough data."""
    now: PlainJudgement | None
    """Result at the requested time."""
    breaks: list[PlainJudgement]
    """Later times at which the result changes."""
    ca_service: str | None
    """The program that the CA is, if its answers show that it is not Puppet's own; null: not known."""


def plain(bootstrap: AgentBootstrap) -> PlainBootstrap:
    """Return a bootstrap for JSON."""
    stuck, trust = bootstrap.stuck, bootstrap.trust
    return PlainBootstrap(
        certname=bootstrap.certname,
        addresses=bootstrap.addresses,
        agent_version=bootstrap.version,
        generation=bootstrap.generation,
        rungs=[_rung(step) for step in bootstrap.steps],
        keys=[
            PlainKey(key.kind, key.key, key.fingerprint, utc(key.first), utc(key.last), key.addresses, key.seqs)
            for key in bootstrap.keys
        ],
        keys_prove=bootstrap.conclusions,
        hangs=_hangs(stuck) if stuck else None,
        judged_by=JudgedBy(trust.own, trust.revocation, trust.crls is not None, bool(trust.shown)) if trust else None,
        now=_plain(bootstrap.now) if bootstrap.now else None,
        breaks=[_plain(forecast) for forecast in bootstrap.breaks],
        ca_service=bootstrap.ca_service,
    )


def _rung(step: BootstrapStep) -> Rung:
    return Rung(
        state=step.state,
        agent_state=step.agent_state,
        run=step.run,
        began=utc(step.began),
        ended=utc(step.ended),
        times=step.times,
        interval_s=None if step.interval is None else round(step.interval, 3),
        answers=step.answers,
        verified=step.verified,
        risk=step.risk or None,
        facts=[PlainFact(name, value) for name, value in step.facts],
        seqs=step.seqs,
    )


def _hangs(stuck: Stuck) -> Hangs:
    return Hangs(
        state=stuck.state,
        why=stuck.why,
        since=utc(stuck.since),
        last=utc(stuck.last),
        next_try=None if stuck.next_try is None else utc(stuck.next_try),
        overdue=stuck.overdue,
    )


def _plain(judgement: Judgement) -> PlainJudgement:
    return PlainJudgement(utc(judgement.at), not judgement.problems, judgement.problems)
