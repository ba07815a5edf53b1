"""An agent's bootstrap, rebuilt from the traffic: one step per state, and the step where the agent is stuck.

It also shows which keys were seen for a certname, and how long the agent's CA, CRLs and certificate remain valid. Pure:
the time is an argument. ``bootstrap_text`` formats the result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from inspector.explain.bootstrap_requests import FEW, MANY, Attempt, BootstrapState, Sighting, StateVisit, concerns
from inspector.explain.trust import Trust
from inspector.protocol.certificates import REQUESTED, SIGNED
from inspector.text import stamp

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from inspector.analysis.analyzer import Step
    from inspector.explain.bootstrap_requests import KeyRole, RequestDetails
    from inspector.explain.trust import Judgement
    from inspector.protocol import documents as d
    from inspector.protocol.ca_service import CaService
    from inspector.runs.run import Run

ATTEMPTS = 10_000
"""Maximum number of runs; the oldest is dropped first."""
MACHINE = {
    BootstrapState.CA: "NeedCACerts",
    BootstrapState.CRL: "NeedCRLs",
    BootstrapState.CSR: "NeedSubmitCSR",
    BootstrapState.CERTIFICATE: "NeedCert",
    BootstrapState.RENEWAL: "NeedRenewedCert",
    BootstrapState.RUN: "Done",
}
"""The names of the states in 6.4 and later (docs/protocol.md#ssl-state-machine)."""
_LATER = (BootstrapState.CSR_LOOKUP, BootstrapState.CERTIFICATE, BootstrapState.RENEWAL)
"""What may not be there yet."""
RISKS = {
    BootstrapState.CA: "an attacker in between could have delivered their own CA and act as this node's master from "
    "then on",
    BootstrapState.CRL: "an attacker in between could have hidden a revocation",
    BootstrapState.CSR_LOOKUP: "an attacker in between could have read the request, or claimed that there is none",
    BootstrapState.CSR: "an attacker in between could have read the request and its extensions, or sent the CA a "
    "different one",
    BootstrapState.CERTIFICATE: "an attacker in between could have withheld the certificate, or delivered another one",
}
"""What an attacker could have done where the agent did not verify the server."""


class Condition(StrEnum):
    """The condition of a step, of what an agent has, or of what one of these is to another."""

    SOUND = "sound"
    BROKEN = "broken"
    WAITING = "waiting"
    """Not there yet, and nothing is wrong with that."""
    UNKNOWN = "unknown"
    """Not in the capture."""


@dataclass(frozen=True, slots=True)
class BootstrapStep:
    """One step of the bootstrap: a request, or repetitions of the same request."""

    state: BootstrapState
    run: int | None
    began: float
    ended: float
    """When the latest request was answered."""
    times: int
    answers: tuple[str, ...]
    """The different answers, in the order in which they came: ``200``, ``400 already has a requested certificate``."""
    verified: bool | None
    """Whether the agent verified the server; None if unknown."""
    facts: RequestDetails
    interval: float | None
    """Seconds between two requests, if the agent waits."""
    seqs: tuple[int, ...]
    """Its first and its last record."""
    old: bool
    """Whether the agent is of version 6.3 or older."""
    settled: bool
    """It is a signing request, and the CA accepted one for the same key, or signed it: it needs no other answer."""

    @property
    def agent_state(self) -> str | None:
        """The agent's own name for the state; None if it has none."""
        return None if self.old else MACHINE.get(self.state)

    @property
    def condition(self) -> Condition:
        """What its last answer means to the agent."""
        if self.state is BootstrapState.TLS:
            return Condition.BROKEN
        if not self.answers:
            return Condition.UNKNOWN
        last = self.answers[-1]
        if last.startswith(("2", "3")):
            return Condition.SOUND
        if self.settled and SIGNED in last:
            return Condition.SOUND
        # A CA and its CRL are there, or the agent stops; up to 6.3 it goes on without a CRL.
        later = self.state in _LATER or (self.state is BootstrapState.CRL and self.old)
        return Condition.WAITING if (later and last.startswith("404")) or REQUESTED in last else Condition.BROKEN

    @property
    def risk(self) -> str:
        """What an attacker could have done here without the agent noticing; empty if the agent verified the server."""
        return RISKS.get(self.state, "") if self.verified is False else ""


@dataclass(frozen=True, slots=True)
class KeySighting:
    """A record in which a public key was seen for a certname."""

    kind: KeyRole
    key: str
    """SHA-256 of the public key (SubjectPublicKeyInfo)."""
    fingerprint: str
    """The fingerprint of the latest certificate, or of the request that the CA accepted (else of the latest one), as
    the CA lists it."""
    first: float
    last: float
    seqs: tuple[int, ...]
    addresses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stuck:
    """The step where an agent got stuck."""

    state: BootstrapState
    why: str
    since: float
    last: float
    """When the agent was last seen there."""
    next_try: float | None
    """When it will try again, if it waits at a known interval."""
    overdue: bool
    """The capture continues after that time without another attempt: the agent was stopped."""


@dataclass(frozen=True, slots=True)
class AgentBootstrap:
    """An agent's bootstrap, and how long its result remains valid."""

    certname: str
    """The certname; the address of an agent that stopped before it sent a certname."""
    addresses: tuple[str, ...]
    version: str | None
    generation: str | None
    steps: tuple[BootstrapStep, ...]
    keys: tuple[KeySighting, ...]
    conclusions: tuple[str, ...]
    """What the keys show."""
    stuck: Stuck | None
    trust: Trust | None
    """None if no CA bundle was seen."""
    shown: tuple[bytes, ...]
    """The chain that it was presented last as the master's (DER); empty if it is not in the capture."""
    host: str | None
    """The name by which it called the master last."""
    certificate: d.Certificate | None
    """The certificate that it presented last, or else the one that it was given last."""
    now: Judgement | None
    breaks: tuple[Judgement, ...]
    """The later times at which a new error appears, each with only the new errors."""
    ca_service: CaService | None = None
    """The CA's program, where its answers show it."""


class Bootstraps:
    """The bootstraps of all agents of a capture. Pass it each analyzed step in order."""

    def __init__(self) -> None:
        self._attempts: dict[Run, Attempt] = {}
        self._ca: d.Certificates | None = None
        self._crls: d.RevocationLists | None = None
        self._named: dict[str, list[Attempt]] | None = None
        self._now = 0.0

    def add(self, step: Step) -> None:
        """Add the next step."""
        run = step.run
        self._now = max(self._now, step.record.ended)
        if run is None or run.tool or not concerns(step):
            return
        attempt = self._attempts.get(run)
        if attempt is None:
            if len(self._attempts) >= ATTEMPTS:
                del self._attempts[next(iter(self._attempts))]
            attempt = self._attempts[run] = Attempt(run)
        attempt.take(step)
        self._named = None
        self._ca, self._crls = attempt.ca or self._ca, attempt.crls or self._crls

    def names(self) -> list[str]:
        """The certnames in the order in which they appeared; the address of an agent without a certname."""
        return [name for name in self._by_name() if name]

    def _by_name(self) -> dict[str, list[Attempt]]:
        """The attempts of each agent. A run may learn its certname late, so they are grouped only when requested."""
        if self._named is None:
            self._named = {}
            for attempt in self._attempts.values():
                self._named.setdefault(attempt.name, []).append(attempt)
        return self._named

    def of(self, certname: str, at: float) -> AgentBootstrap:
        """The bootstrap of a certname (or an address), judged at a time. It has no steps if nothing was seen."""
        attempts = sorted(self._by_name().get(certname, []), key=lambda attempt: attempt.began)
        keys = _keys(attempts)
        settled = _settled(keys)
        trust = self._trust(attempts) if attempts else None
        now = trust.judged(at) if trust else None
        shown = next((attempt for attempt in reversed(attempts) if attempt.shown), None)
        own = (attempt.presented or attempt.refused or attempt.certificate for attempt in reversed(attempts))
        versions = [attempt.run.agent_version for attempt in attempts if attempt.run.agent_version]
        return AgentBootstrap(
            certname,
            tuple(dict.fromkeys(attempt.run.address for attempt in attempts if attempt.run.address))[:MANY],
            versions[-1] if versions else None,
            next((attempt.run.generation for attempt in reversed(attempts) if attempt.run.generation), None),
            tuple(_joined(_frozen(visit, attempt, settled) for attempt in attempts for visit in attempt.visits)),
            tuple(_key(key) for key in keys),
            tuple(_conclusions(certname, keys, attempts)),
            self._stuck(attempts, trust),
            trust,
            shown.shown[:FEW] if shown else (),
            shown.host if shown else None,
            next(filter(None, own), None),
            now,
            tuple(trust.breaks(now)) if trust and now else (),
            next((attempt.run.ca_service for attempt in reversed(attempts) if attempt.run.ca_service), None),
        )

    def _trust(self, attempts: Sequence[Attempt]) -> Trust | None:
        """The CA and CRLs by which an agent judges: its own downloads, else those of other agents."""
        own = next((attempt for attempt in reversed(attempts) if attempt.ca), None)
        bundle = own.ca if own else self._ca
        if bundle is None:
            return None
        lists = next((attempt.crls for attempt in reversed(attempts) if attempt.crls), None) or (
            None if own else self._crls
        )
        last = next((attempt for attempt in reversed(attempts) if attempt.shown), attempts[-1])
        # Up to 5 an agent stores only the first certificate of the bundle (as observed with real agents).
        first_only = own is not None and (0, 0) < own.run.major < (6, 0)
        held = tuple(bundle.certificates[: 1 if first_only else FEW])
        crls = tuple(lists.crls[:FEW]) if lists else None
        trust = Trust(own is not None, held, crls, "chain" if crls else "none", last.shown[:FEW], last.host,
                      _own_certificate(attempts))  # fmt: skip
        worked = next((attempt.worked for attempt in reversed(attempts) if attempt.worked), None)
        if crls and worked and any("CRL" in problem for problem in trust.judged(worked).problems):
            return replace(trust, revocation="leaf")  # it continued all the same
        return trust

    def _stuck(self, attempts: Sequence[Attempt], trust: Trust | None) -> Stuck | None:
        stuck = [(attempt, why) for attempt in attempts if (why := _why(attempt, attempt.last, attempts))]
        stuck.sort(key=lambda entry: entry[0].last.ended)
        for attempt, why in reversed(stuck):
            if any(other.began > attempt.last.ended for other in attempts):
                continue  # the agent started again: the later attempt shows the outcome
            visit = attempt.last
            wrong = (
                trust.judged(visit.ended).problems
                if trust and visit.state in (BootstrapState.CA, BootstrapState.CRL)
                else ()
            )
            waits = attempt.run.polling if visit.state is BootstrapState.CERTIFICATE else None
            next_try = visit.ended + waits.interval if waits else None
            overdue = waits is not None and self._now > visit.ended + 2 * waits.interval
            why = f"{why}; with the trust it received it reports: {wrong[0]}" if wrong else why
            return Stuck(visit.state, why, visit.began, visit.ended, next_try, overdue)
        return None


def _own_certificate(attempts: Sequence[Attempt]) -> d.Certificate | None:
    """The agent's certificate; None if it belongs to another key, because the agent then discards it."""
    attempt = next((attempt for attempt in reversed(attempts) if attempt.presented or attempt.certificate), None)
    if attempt is None or attempt.presented:
        return attempt.presented if attempt else None
    asked = [key for kind, key in attempt.keys if kind == "csr"]
    return attempt.certificate if attempt.certificate and (not asked or attempt.certificate.key in asked) else None


def _settled(keys: Sequence[Sighting]) -> set[str]:
    """The keys for which the CA has issued a certificate; if it issued none, those of requests that it accepted."""
    issued = {key.key for key in keys if key.kind != "csr"}
    return issued or {key.key for key in keys if key.accepted}


def _frozen(visit: StateVisit, attempt: Attempt, settled: Container[str]) -> BootstrapStep:
    polls = visit.state is BootstrapState.CERTIFICATE and visit.same == "404" and visit.times > 1
    waits = attempt.run.polling if polls else None
    return BootstrapStep(
        visit.state, attempt.run.number, visit.began, visit.ended, visit.times, tuple(visit.answers), visit.verified,
        visit.facts, waits.interval if waits else None, tuple(dict.fromkeys(visit.seqs)), attempt.run.old_engine,
        visit.state is BootstrapState.CSR and dict(visit.facts).get("key") in settled,
    )  # fmt: skip


def _joined(steps: Iterable[BootstrapStep]) -> Iterator[BootstrapStep]:
    """Merge consecutive runs with the same certificate into one step; ``times`` is their number."""
    last: BootstrapStep | None = None
    for step in steps:
        if step.state is BootstrapState.RUN:
            step = replace(step, times=1)
        if last and last.state is step.state is BootstrapState.RUN and last.facts == step.facts:
            last = replace(last, ended=step.ended, times=last.times + 1, seqs=(last.seqs[0], step.seqs[-1]))
            continue
        if last:
            yield last
        last = step
    if last:
        yield last


def _keys(attempts: Sequence[Attempt]) -> list[Sighting]:
    """Every key of a certname, in the order in which they were last seen."""
    found = Attempt(attempts[0].run) if attempts else None
    for attempt in attempts:
        for key in attempt.keys.values():
            if found:
                found.see(replace(key, addresses=dict(key.addresses)))
    keys = list(found.keys.values()) if found else []
    return sorted(keys, key=lambda key: (key.kind != "client", key.kind != "certificate", key.last))


def _key(sighting: Sighting) -> KeySighting:
    return KeySighting(
        sighting.kind, sighting.key, sighting.fingerprint, sighting.time, sighting.last,
        tuple(dict.fromkeys(sighting.seqs)), tuple(sighting.addresses),
    )  # fmt: skip


def _conclusions(certname: str, keys: Sequence[Sighting], attempts: Sequence[Attempt]) -> Iterator[str]:
    """The conclusion from the public keys; no private key is necessary."""
    if not keys:
        return
    if len({key.key for key in keys}) == 1:
        yield f"one key in all records: {short(keys[0].key)}"
        return
    asked = [key for key in keys if key.kind == "csr"]
    used = [key for key in keys if key.kind == "client"]
    for attempt in attempts:
        mine = [key for key in attempt.keys.values() if key.kind == "csr"]
        served = [key for key in attempt.keys.values() if key.kind == "certificate"]
        for key in served:
            if mine and all(key.key != other.key for other in mine):
                yield (f"key mismatch: the agent asked with {short(mine[-1].key)}, the CA gave it the certificate for "
                       f"{short(key.key)} (records {mine[-1].seqs[-1]} and {key.seqs[0]})")  # fmt: skip
    own = [*asked, *used]
    in_turn = (one.key != other.key and one.time < other.last and other.time < one.last for one in own for other in own)
    if any(in_turn):
        yield f"two keys are in use for {certname} in turn: two hosts share the name, or two ssldirs on one host"
    elif len({key.key for key in own}) > 1:
        latest = max(own, key=lambda key: key.last)
        yield (f"the key of {certname} changed: {short(latest.key)} since {stamp(latest.time)}; the host was "
               "installed anew, lost its ssldir, or another host took the name")  # fmt: skip


def short(key: str) -> str:
    """The beginning of a digest, long enough to distinguish it."""
    return f"{key[:16]}..."


def _why(attempt: Attempt, visit: StateVisit, attempts: Sequence[Attempt]) -> str | None:
    """Why an attempt ends at a step; None if it succeeded."""
    last = next(reversed(visit.answers), "no answer")
    match visit.state:
        case BootstrapState.RENEWAL:
            return None
        case BootstrapState.RUN:
            return f"{last} for the requests of its run" if visit.same else None
        case BootstrapState.TLS:
            return dict(visit.facts)["reason"]
        case BootstrapState.CERTIFICATE if visit.same == "404":
            asked = [other for other in attempt.visits if other.state is BootstrapState.CSR]
            return _not_signed(asked[-1], attempts) if asked else "there is no certificate, and it sent no request"
        case BootstrapState.CERTIFICATE if attempt.certificate:
            keys = [key for kind, key in attempt.keys if kind == "csr"]
            if keys and attempt.certificate.key not in keys:
                return "the certificate is for another key than the agent's, so the agent discards it"
            if not keys and attempt.run.old_engine and attempt.ca:
                return "it received a certificate that it did not request; most likely for another key than the agent's"
            return "it received its certificate, but no run followed"
        case BootstrapState.CA | BootstrapState.CRL | BootstrapState.CSR if last[:1] in "23":
            # A refresh is not part of the bootstrap.
            return None if attempt.presented else f"it stopped after the {visit.state}"
    return last if last == "no answer" else f"answered {last}"


def _not_signed(request: StateVisit, attempts: Sequence[Attempt]) -> str:
    """Why there is no certificate yet for a signing request."""
    last, key = next(reversed(request.answers)), dict(request.facts).get("key")
    every = [visit for attempt in attempts for visit in attempt.visits if visit.state is BootstrapState.CSR]
    taken = [dict(visit.facts).get("key") for visit in every if any(answer[:1] == "2" for answer in visit.answers)]
    if key in taken or last[:1] == "2":
        return "its request is waiting to be signed"
    if REQUESTED not in last:
        return (
            f"its signing request was answered {last}" if last != "no answer" else "its signing request got no answer"
        )
    if other := next((known for known in reversed(taken) if known), None):
        return (f"its signing request was refused ({last}): what waits to be signed is the request with the key "
                f"{short(other)}, which it no longer has or which is another host's")  # fmt: skip
    return (f"its signing request was refused ({last}): what waits to be signed is its own request from before this "
            "capture, or one with a key that it no longer has")  # fmt: skip
