"""A fault as a user writes it, in one line: an action, which requests it is for, and how often.

``503=10 agent:web1.example phase:catalog nth:1``: the action comes first, then terms of the filter language
(``inspector.summaries.filters``) about what is known when a request arrives, and ``nth:``, ``for:``, ``share:``,
``seed:``.
"""

from __future__ import annotations

import difflib
import hashlib
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector import regex
from inspector.errors import InspectorError
from inspector.proxy.faults import actions
from inspector.summaries import filters, terms

if TYPE_CHECKING:
    from collections.abc import Callable

    from inspector.proxy.faults.actions import Action
    from inspector.summaries.filters import Candidate, Filter, Number
    from inspector.summaries.terms import TypedTerm

KNOWN = ("agent", "phase", "endpoint", "method", "path", "env", "version")
"""The keys of the filter language about what is known when a request arrives."""
OWN = {
    "nth": "which ones of an agent's matching requests, as in nth:2, nth:1-3 or nth:>=4",
    "for": "how long after the proxy's start, as in for:10m",
    "share": "which share of them, as in share:30%",
    "seed": "another choice of that share, the same each time, as in seed:7",
}
"""Keys about how often, with their meanings."""
_ACTION = regex.compile(r'\s*([A-Za-z0-9_-]+)(?:=("[^"]*"|\S*))?(?:\s+|$)')
_PART = 2**32


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that is to be injected."""

    line: str
    """As it was written."""
    action: Action
    chooses: Filter
    agents: tuple[str, ...] = ()
    """The certnames and addresses that it names, with * and ?."""
    nth: Number | None = None
    lasts: float | None = None
    """Seconds after the start of the proxy."""
    share: float = 1.0
    seed: str = ""

    def wants(self, candidate: Candidate) -> bool:
        """Whether it is for a request like this one, or for a connection from this agent."""
        return self.chooses.matches_step(candidate)

    def hits(self, agent: str, number: int) -> bool:
        """Whether it happens to the matching request of this number of an agent: always the same answer."""
        if self.nth is not None and not self.nth(number):
            return False
        if self.share >= 1.0:
            return True
        digest = hashlib.sha256(f"{self.seed}\0{agent}\0{number}".encode()).digest()
        return int.from_bytes(digest[:4]) / _PART < self.share

    def over(self, since_start: float) -> bool:
        """Whether its time has passed."""
        return self.lasts is not None and since_start > self.lasts


def parse(line: str) -> Fault:
    """Return the fault that a line describes. Raises InspectorError."""
    found = _ACTION.match(line)
    name = found[1] if found else line.split()[0] if line.split() else ""
    if found is None or name not in actions.KINDS:
        near = difflib.get_close_matches(name, actions.KINDS, 1)
        raise InspectorError(
            f"There is no fault {name!r}." if name else "A fault is empty.",
            f"Do you mean {near[0]}?" if near else f"A fault begins with one of: {', '.join(actions.KINDS)}.",
        )
    chosen, own = _terms(line, found.end())
    action = actions.make(name, found[2].strip('"') if found[2] is not None else None)
    agents = tuple(term.value for term in chosen if _key(term) == "agent" and not term.negated)
    if action.in_handshake:
        _check_handshake(name, chosen, agents)
    return Fault(
        line=line.strip(),
        action=action,
        chooses=filters.parse(" ".join(line[term.begin : term.end] for term in chosen)),
        agents=tuple(agent for agent in agents if any(map(str.isalnum, agent))),
        nth=_value("nth", own, filters.numbers),
        lasts=_value("for", own, actions.duration),
        share=_value("share", own, _share) or 1.0,
        seed=own.get("seed", ""),
    )


def names_agent(line: str) -> bool:
    """Whether a line names agents. Raises InspectorError if it is not valid."""
    found = _ACTION.match(line)
    terms_of, _ = _terms(line, found.end() if found else len(line))
    return any(_key(term) == "agent" and not term.negated for term in terms_of)


def _key(term: TypedTerm) -> str:
    return (term.key or "").lower()


def _terms(line: str, at: int) -> tuple[list[TypedTerm], dict[str, str]]:
    """Return the terms of the filter, and the values of our own keys."""
    chosen: list[TypedTerm] = []
    own: dict[str, str] = {}
    rest = line.rstrip()
    while at < len(rest):
        term = terms.read(rest, at)
        if term is None or not term.closed:
            raise InspectorError(
                f"The fault is not valid from {rest[at:]!r} on.", "A value in quotes ends with a quote and a space."
            )
        at, key = term.end, _key(term)
        if key in OWN:
            if term.negated or key in own:
                raise InspectorError(f"{key}: is given once, and not negated.", f"{key}: {OWN[key]}.")
            own[key] = term.value
            continue
        if key not in KNOWN:
            raise _unknown(term)
        if key == "phase" and term.value.lower() in ("handshake", "gap"):
            raise InspectorError(
                f"No request has the phase {term.value}.", "For handshakes there are the faults refuse and certificate."
            )
        chosen.append(term)
    return chosen, own


def _unknown(term: TypedTerm) -> InspectorError:
    keys = f"{', '.join(KNOWN)}; {', '.join(OWN)}"
    if term.key is None:
        return InspectorError(
            f"A fault has no plain words: {term.written!r}.", f"Write path:{term.written}, or another of {keys}."
        )
    key = _key(term)
    if key in filters.KEYS:
        return InspectorError(
            f"A fault cannot depend on {key}: that is not known when the request arrives.", f"There are {keys}."
        )
    near = difflib.get_close_matches(key, [*KNOWN, *OWN], 1)
    hint = filters.OTHER_NAMES.get(key) or (near[0] if near else "")
    raise InspectorError(
        f"A fault has no key {key!r}.", f"Do you mean {hint}?" if hint in KNOWN or near else f"There are {keys}."
    )


def _check_handshake(name: str, chosen: list[TypedTerm], agents: tuple[str, ...]) -> None:
    """Raise InspectorError unless only the agent's address decides: nothing else is known in the handshake."""
    example = actions.KINDS[name].example
    if other := next((term for term in chosen if _key(term) != "agent"), None):
        raise InspectorError(
            f"The fault {name} cannot depend on {_key(other)}: there is no request yet in the handshake.",
            f"As in: {example}",
        )
    if not agents or not all(map(_is_address, agents)):
        raise InspectorError(
            f"The fault {name} needs the agent's address: its certname is not known yet in the handshake.",
            f"As in: {example}",
        )


def _is_address(text: str) -> bool:
    """Whether a pattern can only mean addresses."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return regex.fullmatch(r"[0-9.*?]*[0-9]\.[0-9.*?]*", text) is not None
    return True


def _value[T](key: str, own: dict[str, str], read: Callable[[str], T]) -> T | None:
    if key not in own:
        return None
    try:
        return read(own[key])
    except ValueError as error:
        raise InspectorError(f"{key}: cannot be {own[key]!r}.", f"{key}: {OWN[key]}.") from error


def _share(text: str) -> float:
    found = regex.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,3})?)%", text)
    if found is None or not 0 < float(found[1]) <= 100:
        raise ValueError(text)
    return float(found[1]) / 100
