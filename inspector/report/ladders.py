"""An agent's bootstrap as a ladder of steps, and its certificates and keys as a chain that breaks where it breaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector.explain import bootstrap_text
from inspector.explain.bootstrap import Condition
from inspector.explain.trust_chain import Part, chain_of
from inspector.text import beginning, clean, utc_second

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inspector.explain.bootstrap import AgentBootstrap, BootstrapStep
    from inspector.explain.trust_chain import Box, Link

WIDTH, HEIGHT = 760, 260
"""Units of the picture of a chain."""
BOX, TALL = 180, 88
"""Units of a box."""
_PLACES = {
    Part.CRL: (0, 8), Part.CA: (290, 8), Part.MASTER: (580, 8),
    Part.KEY: (0, 164), Part.REQUEST: (290, 164), Part.CERTIFICATE: (580, 164),
}  # fmt: skip
LETTERS = 24
"""Characters that fit in a box."""
MARKS = {Condition.SOUND: "✓", Condition.BROKEN: "✗", Condition.WAITING: "…", Condition.UNKNOWN: "?"}
"""What a condition looks like without colour."""


@dataclass(frozen=True, slots=True)
class Rung:
    """A step of the bootstrap."""

    when: str
    state: str
    asked: str
    answered: str
    repeated: str
    verified: str
    risk: str
    facts: tuple[tuple[str, str], ...]
    condition: Condition
    seqs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DrawnBox:
    """A box of the chain at its place."""

    title: str
    mark: str
    condition: Condition
    lines: tuple[str, ...]
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class DrawnLink:
    """A link between two boxes, from one point to another."""

    does: str
    breaks: str
    why: str
    condition: Condition
    path: str
    x: int
    y: int
    """Where its text is."""


@dataclass(frozen=True, slots=True)
class Ladder:
    """The bootstrap of an agent."""

    certname: str
    about: str
    stuck: str
    """Empty: it is not."""
    rungs: tuple[Rung, ...]
    boxes: tuple[DrawnBox, ...]
    links: tuple[DrawnLink, ...]
    conclusions: tuple[str, ...]
    """What its keys show, and until when it works."""

    @property
    def broken(self) -> list[DrawnLink]:
        return [link for link in self.links if link.condition is Condition.BROKEN]


def ladder(bootstrap: AgentBootstrap, at: float) -> Ladder:
    """Return an agent's ladder and chain, judged at a time."""
    chain = chain_of(bootstrap, at)
    about = ", ".join([*([f"puppet {bootstrap.version}"] if bootstrap.version else []), *bootstrap.addresses[:3]])
    stuck = bootstrap_text.stuck_text(bootstrap.stuck) if bootstrap.stuck else ""
    return Ladder(
        clean(bootstrap.certname),
        clean(about),
        clean(stuck),
        tuple(map(_rung, bootstrap.steps)),
        tuple(map(_box, chain.boxes)),
        tuple(map(_link, chain.links)),
        tuple(map(clean, _conclusions(bootstrap))),
    )


def _conclusions(bootstrap: AgentBootstrap) -> Iterable[str]:
    yield from bootstrap.conclusions
    if bootstrap.now is None:
        yield bootstrap_text.NO_BUNDLE
        return
    yield bootstrap_text.judged(bootstrap, bootstrap.now)
    for on, problems in bootstrap_text.outlook(bootstrap):
        yield f"breaks on {on}: {'; '.join(problems)}"
    if how := bootstrap_text.limits(bootstrap):
        yield f"assumed: {how}"


def _rung(step: BootstrapStep) -> Rung:
    return Rung(
        utc_second(step.began),
        step.agent_state or "",
        clean(bootstrap_text.asked(step)),
        clean(bootstrap_text.answered(step)),
        bootstrap_text.repeated(step),
        bootstrap_text.trusted(step),
        step.risk,
        tuple((name, clean(value)) for name, value in step.facts),
        step.condition,
        step.seqs,
    )


def _box(box: Box) -> DrawnBox:
    x, y = _PLACES[box.part]
    lines = tuple(beginning(clean(line), LETTERS) for line in box.lines)
    return DrawnBox(str(box.part), MARKS[box.condition], box.condition, lines, x, y)


def _link(link: Link) -> DrawnLink:
    (x1, y1), (x2, y2) = _PLACES[link.source], _PLACES[link.target]
    if y1 == y2:
        path, x, y = f"M{x1 + BOX} {y1 + TALL // 2}H{x2 - 8}", (x1 + BOX + x2) // 2, y1 + TALL // 2
    else:
        middle = (y1 + TALL + y2) // 2
        path = f"M{x1 + BOX // 2} {y1 + TALL}V{middle}H{x2 + BOX // 2}V{y2 - 8}"
        x, y = (x1 + x2 + BOX) // 2, middle
    return DrawnLink(link.does, link.breaks, clean(link.why), link.condition, path, x, y)
