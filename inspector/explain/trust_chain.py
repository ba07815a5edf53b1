"""What an agent's trust and identity are made of, as boxes and the links between them; what breaks is at its link.

CRL, CA and the certificate that the agent was shown as the master's; the agent's key, its request and its certificate.
Plain data: the terminal inspector draws it, and so can a page.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from inspector.explain.bootstrap import Condition, short
from inspector.explain.bootstrap_requests import BootstrapState
from inspector.protocol import x509
from inspector.rules.words import cut
from inspector.text import plural, utc_day

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inspector.explain.bootstrap import AgentBootstrap, BootstrapStep, KeySighting
    from inspector.explain.trust import Trust


class Part(StrEnum):
    """A box; the value is its title."""

    CRL = "CRL"
    CA = "CA"
    MASTER = "master's certificate"
    KEY = "agent's key"
    REQUEST = "signing request"
    CERTIFICATE = "agent's certificate"


@dataclass(frozen=True, slots=True)
class Box:
    """One thing that the agent has or was shown."""

    part: Part
    lines: tuple[str, ...]
    """What identifies it, the most important first."""
    condition: Condition
    seqs: tuple[int, ...] = ()
    """The records that contain it."""


@dataclass(frozen=True, slots=True)
class Link:
    """What one box is to another."""

    source: Part
    target: Part
    does: str
    """A verb: the CA ``signs`` the certificate."""
    condition: Condition
    breaks: str = ""
    """What is wrong, in a word or two: ``expired``."""
    why: str = ""
    """The same in a sentence, as the agent or the master words it."""


@dataclass(frozen=True, slots=True)
class TrustChain:
    """The boxes and links of one agent at one time."""

    boxes: tuple[Box, ...]
    links: tuple[Link, ...]

    def box(self, part: Part) -> Box:
        """Return the box of this part: there is one of each."""
        return next(box for box in self.boxes if box.part is part)

    def link(self, source: Part, target: Part) -> Link:
        """Return the link between two parts. Raises StopIteration if these two have none."""
        return next(link for link in self.links if (link.source, link.target) == (source, target))

    @property
    def broken(self) -> list[Link]:
        """The links that break."""
        return [link for link in self.links if link.condition is Condition.BROKEN]


_OF_CRL = {3: "missing", 8: "bad signature", 11: "not yet valid", 12: "expired"}
"""OpenSSL's errors that are about a CRL, in a word or two; all others are about a certificate."""
_OF_CERTIFICATE = {
    2: "another CA", 7: "bad signature", 9: "not yet valid", 10: "expired", 18: "another CA", 19: "another CA",
    20: "another CA", 23: "revoked",
}  # fmt: skip
_ALERTS = {
    "certificate_revoked": "revoked", "certificate_expired": "expired", "unknown_ca": "another CA",
    "bad_certificate": "refused", "certificate_required": "not shown",
}  # fmt: skip


def chain_of(bootstrap: AgentBootstrap, at: float) -> TrustChain:
    """Return an agent's boxes and links at a time (seconds since the epoch)."""
    trust = bootstrap.trust
    by_kind = {kind: [key for key in bootstrap.keys if key.kind == kind] for kind in ("csr", "certificate", "client")}
    asked, issued, used = (found[-1] if found else None for found in by_kind.values())
    refusal = refusal_of(bootstrap)
    covers, shows = _trusts(trust, at, refusal)
    issues = _issues(trust, at, refusal)
    if bootstrap.stuck is None and any(step.state is BootstrapState.RUN for step in bootstrap.steps):
        shows, issues = _by_effect(shows), _by_effect(issues)
    signs = Link(Part.KEY, Part.REQUEST, "signs", Condition.SOUND if asked else Condition.UNKNOWN)
    links = (covers, shows, signs, _answers(asked, issued, used, bootstrap), issues)
    boxes = (
        _crl(trust, covers),
        _ca(trust, bootstrap.steps),
        _master(bootstrap),
        _key(asked, used, bootstrap),
        _request(asked, bootstrap),
        _certificate(used or issued, bootstrap),
    )
    return TrustChain(tuple(_with_its_link(box, links) for box in boxes), links)


def _with_its_link(box: Box, links: Iterable[Link]) -> Box:
    """A box that was found sound, and is not if the link to it breaks; an expired CRL does not break its CA."""
    broken = any(
        link.condition is Condition.BROKEN and link.target is box.part and link.source is not Part.CRL for link in links
    )
    return replace(box, condition=Condition.BROKEN) if broken and box.condition is Condition.SOUND else box


# -- what the agent trusts ------------------------------------------------------------------------------------


def _ca(trust: Trust | None, steps: Iterable[BootstrapStep]) -> Box:
    if trust is None:
        return _unknown(Part.CA)
    seqs = next((step.seqs for step in steps if step.state is BootstrapState.CA), ())
    first, ends = trust.held[0], min(certificate.not_after for certificate in trust.held)
    source = "" if trust.own else "as other agents got it"
    lines = (cut(first.subject), f"until {utc_day(ends)}", source, _issuer(first.subject, first.issuer))
    return Box(Part.CA, _filled(lines), Condition.SOUND, seqs if trust.own else ())


def _crl(trust: Trust | None, covers: Link) -> Box:
    if trust is None or trust.crls is None:
        return _unknown(Part.CRL)
    ends = [crl.next_update for crl in trust.crls if crl.next_update is not None]
    revoked = sum(len(crl.revoked) for crl in trust.crls)
    lines = (f"{plural(len(trust.crls), 'list')}, {revoked} revoked", f"until {utc_day(min(ends))}" if ends else "")
    return Box(Part.CRL, _filled(lines), covers.condition)


def _master(bootstrap: AgentBootstrap) -> Box:
    if not bootstrap.shown:
        return _unknown(Part.MASTER)
    try:
        leaf = x509.read_der(bootstrap.shown[0])
    except x509.Malformed:
        return Box(Part.MASTER, ("unreadable",), Condition.BROKEN)
    called = f"called {cut(bootstrap.host)}" if bootstrap.host else ""
    lines = (cut(leaf.subject), f"until {utc_day(leaf.not_after)}", called, _issuer(leaf.subject, leaf.issuer))
    return Box(Part.MASTER, _filled(lines), Condition.SOUND)


def _trusts(trust: Trust | None, at: float, refusal: Refusal | None) -> tuple[Link, Link]:
    """The links of the CRL to the CA, and of the CA to the master's certificate."""
    covers = Link(Part.CRL, Part.CA, "covers", Condition.UNKNOWN)
    shows = Link(Part.CA, Part.MASTER, "signs", Condition.UNKNOWN)
    if trust is not None:
        found = trust.problems(trust.shown, at) if trust.shown else trust.bundle_problems(at)
        covers = _judged(covers, found, _OF_CRL, known=trust.crls is not None)
        shows = _judged(shows, found, _OF_CERTIFICATE, known=bool(trust.shown))
        if trust.shown and (mismatch := trust.name_problem()) and shows.condition is not Condition.BROKEN:
            shows = Link(Part.CA, Part.MASTER, "signs", Condition.BROKEN, "another name", mismatch)
    if refusal and refusal.by == "agent" and Condition.BROKEN not in (covers.condition, shows.condition):
        shows = Link(Part.CA, Part.MASTER, "signs", Condition.BROKEN, refusal.breaks, refusal.why)
    return covers, shows


def _by_effect(link: Link) -> Link:
    """A link of which nothing is in the capture, and which holds because the agent's runs were answered."""
    if link.condition is not Condition.UNKNOWN:
        return link
    return Link(link.source, link.target, link.does, Condition.SOUND)


def _judged(link: Link, problems: Iterable[x509.Problem], words: dict[int, str], *, known: bool) -> Link:
    """The link as the agent's verification finds it: broken by the first problem of this sort."""
    others = _OF_CERTIFICATE if words is _OF_CRL else _OF_CRL
    for problem in problems:
        if problem.code in words or (problem.code not in others and words is _OF_CERTIFICATE):
            what = words.get(problem.code, "refused")
            return Link(link.source, link.target, link.does, Condition.BROKEN, what, str(problem))
    return Link(link.source, link.target, link.does, Condition.SOUND if known else Condition.UNKNOWN)


# -- what the agent is ------------------------------------------------------------------------------------------


def _key(asked: KeySighting | None, used: KeySighting | None, bootstrap: AgentBootstrap) -> Box:
    latest = max((key for key in (asked, used) if key), key=lambda key: key.last, default=None)
    if latest is None:
        return _unknown(Part.KEY)
    several = len({key.key for key in bootstrap.keys if key.kind != "certificate"})
    more = f"one of {several} that it used" if several > 1 else ""
    return Box(Part.KEY, _filled((short(latest.key), more)), Condition.SOUND, latest.seqs)


def _request(asked: KeySighting | None, bootstrap: AgentBootstrap) -> Box:
    if asked is None:
        return _unknown(Part.REQUEST)
    steps = [step for step in bootstrap.steps if step.state is BootstrapState.CSR]
    answers = [answer for step in steps for answer in step.answers]
    same = [answer for step in steps if dict(step.facts).get("key") == asked.key for answer in step.answers]
    # It may be sent again when it is signed already: it was accepted all the same.
    answer = next((answer for answer in reversed(same) if answer.startswith("2")), next(reversed(answers), ""))
    text = f"answered {answer}" if answer else ""
    return Box(Part.REQUEST, _filled((asked.fingerprint, text)), Condition.SOUND, asked.seqs)


def _certificate(own: KeySighting | None, bootstrap: AgentBootstrap) -> Box:
    certificate = bootstrap.certificate
    if certificate is None:
        waits = bootstrap.stuck is not None and bootstrap.stuck.state is BootstrapState.CERTIFICATE
        return Box(Part.CERTIFICATE, ("not there yet",), Condition.WAITING) if waits else _unknown(Part.CERTIFICATE)
    subject, serial = certificate.subject, f"serial {certificate.serial}"[:30]
    lines = (cut(subject), f"until {utc_day(certificate.not_after)}", serial, _issuer(subject, certificate.issuer))
    return Box(Part.CERTIFICATE, _filled(lines), Condition.SOUND, own.seqs if own else ())


def _answers(
    asked: KeySighting | None, issued: KeySighting | None, used: KeySighting | None, bootstrap: AgentBootstrap
) -> Link:
    """The link of the request to the certificate that the CA gave for it, or that the agent used before."""
    given = issued or used
    source, target = Part.REQUEST, Part.CERTIFICATE
    if asked and issued and asked.key != issued.key:
        why = f"the agent asked with {short(asked.key)}, the CA gave it the certificate for {short(issued.key)}"
        return Link(source, target, "becomes", Condition.BROKEN, "another key", why)
    if asked and used and asked.key != used.key and asked.last > used.last:
        why = f"the request is made with {short(asked.key)}, the agent's certificate is for {short(used.key)}"
        return Link(source, target, "becomes", Condition.BROKEN, "another key", why)
    if asked and given is None and bootstrap.stuck:
        waits = bootstrap.stuck.state is BootstrapState.CERTIFICATE
        condition = Condition.WAITING if waits else Condition.BROKEN
        return Link(source, target, "becomes", condition, "not signed", bootstrap.stuck.why)
    return Link(source, target, "becomes", Condition.SOUND if asked and given else Condition.UNKNOWN)


def _issues(trust: Trust | None, at: float, refusal: Refusal | None) -> Link:
    """The link of the CA to the agent's certificate: the proxy or the master verify it as the agent does theirs."""
    link = Link(Part.CA, Part.CERTIFICATE, "issues", Condition.UNKNOWN)
    if refusal and refusal.by != "agent":
        return Link(link.source, link.target, link.does, Condition.BROKEN, refusal.breaks, refusal.why)
    if trust is None or trust.mine is None:
        return link
    found = [problem for problem in trust.problems((trust.mine.der,), at) if problem.code not in _OF_CRL]
    return _judged(link, found, _OF_CERTIFICATE, known=True)


class Refusal(NamedTuple):
    """Why a handshake failed."""

    breaks: str
    """In a word or two: ``revoked``."""
    why: str
    """The same in a sentence."""
    by: str
    """Who refused: the agent, the master, the proxy in its place; ``other side`` if that is not known."""


def refusal_of(bootstrap: AgentBootstrap) -> Refusal | None:
    """Return why the latest handshake failed; None if the agent is not stuck there."""
    step = next((step for step in reversed(bootstrap.steps) if step.state is BootstrapState.TLS), None)
    if step is None or bootstrap.stuck is None or bootstrap.stuck.state is not BootstrapState.TLS:
        return None
    return refusal_at(step)


def refusal_at(step: BootstrapStep) -> Refusal:
    """Return why the handshake failed that is this step."""
    facts = dict(step.facts)
    alert, _, who = facts.get("alert", "").partition(" from the ")
    return Refusal(_ALERTS.get(alert, "refused"), facts.get("reason", ""), who or "other side")


def _issuer(subject: str, issuer: str) -> str:
    return "issued by itself" if subject == issuer else f"issued by {cut(issuer)}"


def _unknown(part: Part) -> Box:
    return Box(part, ("not in this capture",), Condition.UNKNOWN)


def _filled(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(line for line in lines if line)
