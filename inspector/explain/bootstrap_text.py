"""Bootstraps as text and as JSON (docs/json)."""

from __future__ import annotations

import re
import textwrap
from itertools import groupby
from typing import TYPE_CHECKING, Any

from inspector.explain.bootstrap import short, stamp
from inspector.explain.bootstrap_requests import NEAR, BootstrapState, day
from inspector.rules.words import lasting
from inspector.summaries import wording
from inspector.text import clean, utc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.explain.bootstrap import Hang, KeySighting, Ladder, Rung
    from inspector.explain.trust import Judgement

WIDTH = 120
"""Maximum width of a line of text."""
NO_BUNDLE = "this capture contains no CA bundle, so whether the agent trusts certificates and CRLs is unknown"
KINDS = {"csr": "in a request", "certificate": "in the CA's certificate", "client": "in the certificate it presents"}


def lines(ladder: Ladder) -> list[str]:
    """A bootstrap as lines of text."""
    who = ", ".join([*([f"puppet {ladder.version}"] if ladder.version else []), *ladder.addresses[:NEAR]])
    output = [f"{ladder.certname} ({who})" if who else ladder.certname]
    several = len({rung.run for rung in ladder.rungs}) > 1
    run: int | None = None
    risks: set[str] = set()
    for n, rung in enumerate(ladder.rungs):
        if several and rung.run != run:
            run = rung.run
            output.append(f"  run {run}")
        arrow = "->" if n else "  "
        output += _wrapped(f"  {stamp(rung.began)[:19]}  {arrow} ", f"{_rung(rung)} [{wording.numbers(rung.seqs)}]")
        if rung.risk and rung.risk not in risks:
            output += _wrapped(" " * 26, f"not verified: {rung.risk}")
            risks.add(rung.risk)
    if not ladder.rungs:
        output.append("  no record of it")
    for line in _end(ladder):
        output += _wrapped("  ", line)
    return [clean(line) for line in output]


def _wrapped(label: str, text: str) -> list[str]:
    after = " " * (len(label) + 2)
    return textwrap.wrap(label + text, WIDTH, subsequent_indent=after, break_on_hyphens=False, break_long_words=False)


def _rung(rung: Rung) -> str:
    text = " ".join([asked(rung), *([answered(rung)] if rung.answers else [])])
    if often := repeated(rung):
        text += f", {often}" if rung.answers[1:] else f" {often}"
    facts = [f"{label} {brief(label, value)}" for label, value in rung.facts]
    if rung.state is not BootstrapState.TLS and not rung.verified:
        facts.insert(0, trusted(rung))
    return f"{text} ({', '.join(facts)})" if facts else text


def asked(rung: Rung) -> str:
    """The request of a step."""
    return f"{rung.state} PUT" if rung.state is BootstrapState.CSR else str(rung.state)


def answered(rung: Rung) -> str:
    """Its answers."""
    return ", then ".join(rung.answers)


def repeated(rung: Rung) -> str:
    """How many requests there were, for how long and at what interval; empty if there was only one."""
    if rung.times < 2:
        return ""
    text = f"{rung.times} in all" if rung.answers[1:] else f"x{rung.times}"
    text += f" over {lasting(rung.ended - rung.began)}" if rung.ended - rung.began >= 1 else ""
    return text + (f", every {lasting(rung.interval)}" if rung.interval else "")


def trusted(rung: Rung) -> str:
    """Whether the agent verified the server; empty where that does not apply."""
    if rung.state is BootstrapState.TLS:
        return ""
    return {True: "verified", False: "unverified", None: "unknown whether verified"}[rung.verified]


def brief(label: str, value: str) -> str:
    """A fact's value; a digest is shortened but still distinguishable."""
    return short(value) if label == "key" else f"{value[:23]}..." if label == "with" else value


def _end(ladder: Ladder) -> Iterator[str]:
    if ladder.hangs:
        yield hanging(ladder.hangs)
    for key in ladder.keys:
        at = f" from {', '.join(key.addresses[:NEAR])}" if key.addresses else ""
        yield f"key {short(key.key)} {KINDS[key.kind]}, {seen(key)}{at} [{wording.numbers(key.seqs)}]"
    yield from ladder.says
    if ladder.now is None:
        yield NO_BUNDLE
        return
    breaks = [f"on {on}: {'; '.join(problems)}" for on, problems in outlook(ladder)]
    if ladder.now.problems:
        yield judged(ladder, ladder.now)
    else:
        yield judged(ladder, ladder.now) + (f"; breaks {breaks.pop(0)}" if breaks else "")
    for forecast in breaks:
        yield f"then {forecast}"
    if how := limits(ladder):
        yield f"(assumed: {how})"


def hanging(hang: Hang) -> str:
    """Where an agent is stuck, since when, why, and when it tries again."""
    text = f"stops at {hang.state} since {stamp(hang.since)}"
    text += f", for {lasting(hang.last - hang.since)}" if hang.last - hang.since >= 1 else ""
    text += f": {hang.why}"
    if hang.overdue and hang.next_try:
        text += f"; it was due to retry at {stamp(hang.next_try)} and did not, so it was stopped"
    elif hang.next_try:
        text += f"; it retries at {stamp(hang.next_try)}"
    elif hang.state is BootstrapState.CERTIFICATE:
        text += "; if it waits, it retries after waitforcert (2 minutes by default)"
    return text


def seen(key: KeySighting) -> str:
    """When a key was seen."""
    return stamp(key.first) + (f" to {stamp(key.last)}" if key.last - key.first >= 1 else "")


def judged(ladder: Ladder, now: Judgement) -> str:
    """The agent's judgement at a time of its CA, CRLs and certificate."""
    if now.problems:
        return f"refuses on {day(now.at)}: {'; '.join(now.problems)}"
    return f"{'the trust it received is accepted on' if ladder.hangs else 'works on'} {day(now.at)}"


def outlook(ladder: Ladder) -> list[tuple[str, list[str]]]:
    """The days on which new errors will appear, and which."""
    return [
        (on, [_coming(problem) for forecast in same for problem in forecast.problems])
        for on, same in groupby(ladder.breaks, key=lambda forecast: day(forecast.at))
    ]


_EXPIRED = re.compile(r"The ((?:certificate|CRL issued by) '.*') has expired, verify time is synchronized", re.DOTALL)


def _coming(problem: str) -> str:
    """The agent's error on a later day, worded for the day on which it begins."""
    ends = _EXPIRED.fullmatch(problem)
    return f"the {ends[1]} expires" if ends else f"refused from then on: {problem}"


def limits(ladder: Ladder) -> str:
    """The data used for the judgement if it is not all the data of the agent; empty if it is."""
    trust = ladder.trust
    if trust is None:
        return ""
    output = [] if trust.own else ["by the CA bundle that another agent downloaded"]
    output += [] if trust.shown else ["the master's own certificate is not in this capture"]
    output += ["with certificate_revocation leaf"] if trust.revocation == "leaf" else []
    output += ["its CRLs are not in this capture"] if trust.crls is None else []
    return "; ".join(output)


def plain(ladder: Ladder) -> dict[str, Any]:
    """A bootstrap as a JSON-able structure; keys are only ever added."""
    hang, trust = ladder.hangs, ladder.trust
    return {
        "certname": ladder.certname,
        "addresses": list(ladder.addresses),
        "agent_version": ladder.version,
        "generation": ladder.generation,
        "rungs": [
            {
                "state": str(rung.state),
                "agent_state": rung.agent_state,
                "run": rung.run,
                "began": utc(rung.began),
                "ended": utc(rung.ended),
                "times": rung.times,
                "interval_s": None if rung.interval is None else round(rung.interval, 3),
                "answers": list(rung.answers),
                "verified": rung.verified,
                "risk": rung.risk or None,
                "facts": [{"name": name, "value": value} for name, value in rung.facts],
                "seqs": list(rung.seqs),
            }
            for rung in ladder.rungs
        ],
        "keys": [
            {
                "kind": key.kind,
                "key": key.key,
                "fingerprint": key.fingerprint,
                "first": utc(key.first),
                "last": utc(key.last),
                "addresses": list(key.addresses),
                "seqs": list(key.seqs),
            }
            for key in ladder.keys
        ],
        "keys_prove": list(ladder.says),
        "hangs": hang
        and {
            "state": str(hang.state),
            "why": hang.why,
            "since": utc(hang.since),
            "last": utc(hang.last),
            "next_try": None if hang.next_try is None else utc(hang.next_try),
            "overdue": hang.overdue,
        },
        "judged_by": trust
        and {
            "own_bundle": trust.own,
            "revocation": trust.revocation,
            "crls": trust.crls is not None,
            "master_certificate": bool(trust.shown),
        },
        "now": ladder.now and _plain(ladder.now),
        "breaks": [_plain(forecast) for forecast in ladder.breaks],
    }


def _plain(judgement: Judgement) -> dict[str, Any]:
    return {"at": utc(judgement.at), "works": not judgement.problems, "problems": list(judgement.problems)}
