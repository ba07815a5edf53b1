"""A fix in steps: what to do, on which host, with which command.

A fix is written down once, in a rule, a known error or a diagnosis, with placeholders in braces
(``inspector.rules.puppet_commands``), and filled in for a run. Console, JSON, terminal inspector and script show the
same steps.
"""

from __future__ import annotations

import textwrap
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from inspector import regex
from inspector.protocol.ca_service import OPENVOX_CA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from inspector.runs.run import Run

WIDTH = 100
"""Columns of a fix in plain text."""


class Host(StrEnum):
    """Where a step is done."""

    NODE = "node"
    CA = "CA"
    MASTER = "master"
    PROXY = "proxy"
    PUPPETDB = "PuppetDB"


PLACES = {
    None: "",
    Host.NODE: "on the node",
    Host.CA: "on the CA",
    Host.MASTER: "on the master",
    Host.PROXY: "on the proxy's host",
    Host.PUPPETDB: "on PuppetDB's host",
}
BLANK = regex.compile(r"<[a-zA-Z][^<>|&;\n]*>")
"""A part of a command that a person has to fill in: ``<certname>``."""
_LOOKS = regex.compile(
    r"(?:date|ls|cat|grep|head|tail|ps|id|env|df|free|ss|nc|curl|getent|ip|journalctl|dmesg|command|sha256sum|openssl"
    r"|systemctl status|puppet (?:ssl verify|config print|facts|lookup|help|--version|agent --fingerprint"
    r"|module list|node find|parser|epp)|facter|puppetserver (?:ca|gem) list|puppet cert list|openvox-ca-ctl list"
    r"|puppet-inspector)\b"
)
"""How commands begin that only show something; those that can also write do so with one of ``_WRITES``."""
_WRITES = regex.compile(r" --execute\b| -out\b|; *puppet agent -t|\s>\s*(?:[^/\s]|/[^d])")
AGENT_RUN = "puppet agent -t"


class Step(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One thing to do."""

    text: str
    """What is done and what for, without a stop at its end: ``look at each CRL``. Empty if the command says it."""
    command: str = ""
    """Executable as it is, unless it has a blank (``<name>``); empty: what the text says cannot be pasted."""
    on: Host | None = None
    """Where; None: it depends, or it is no command."""
    only_if: str = ""
    """A condition that a person must check: ``the node was reinstalled``. Empty: always."""
    destroys: str = ""
    """What the command deletes or revokes for good; empty if nothing."""
    variant: str = ""
    """The command for other versions, where the version is not known."""
    variant_for: str = ""
    """Which versions these are: ``up to version 5``."""

    @property
    def pastable(self) -> bool:
        """Whether its command can be executed as it is."""
        return bool(self.command) and not BLANK.search(self.command)

    @property
    def changes(self) -> bool:
        """Whether its command changes something; a command that is not known is taken for one that does."""
        return bool(self.command) and (not _LOOKS.match(self.command) or bool(_WRITES.search(self.command)))


type Fix = tuple[Step, ...]


def advice(text: str, *, only_if: str = "") -> Step:
    """Return a step that is no command."""
    return Step(text, only_if=only_if)


def on_node(text: str, command: str = "", *, only_if: str = "", destroys: str = "") -> Step:
    """Return a step on the agent's host."""
    return Step(text, command, Host.NODE, only_if, destroys)


def on_ca(text: str, command: str = "", *, only_if: str = "", destroys: str = "") -> Step:
    """Return a step on the CA's host."""
    return Step(text, command, Host.CA, only_if, destroys)


def on_master(text: str, command: str = "", *, only_if: str = "", destroys: str = "") -> Step:
    """Return a step on the master's host."""
    return Step(text, command, Host.MASTER, only_if, destroys)


def on_proxy(text: str, command: str = "", *, only_if: str = "", destroys: str = "") -> Step:
    """Return a step on the host of this proxy."""
    return Step(text, command, Host.PROXY, only_if, destroys)


def on_puppetdb(text: str, command: str = "", *, only_if: str = "") -> Step:
    """Return a step on PuppetDB's host."""
    return Step(text, command, Host.PUPPETDB, only_if)


def group(name: str, *, only_if: str = "") -> Step:
    """Return the place of a group of steps, such as ``enrol`` (``inspector.rules.puppet_commands``)."""
    return Step("", f"{{{name}}}", only_if=only_if)


def at_openvox_ca(*steps: Step) -> Callable[[Run], Fix | None]:
    """Return the ``instead`` of a rule that has another fix where the CA is an openvox-ca."""
    return lambda run: steps if run.ca_service == OPENVOX_CA else None


def proved(steps: Fix) -> Fix:
    """Return a fix that ends with how to see that it worked, if it changes something: with a run of the agent."""
    commands = [step.command for step in steps if step.command]
    if not any(step.changes for step in steps) or commands[-1].endswith(AGENT_RUN):
        return steps
    return *steps, on_node("see that it worked", AGENT_RUN)


class PlainStep(msgspec.Struct):
    """A step of a fix, as JSON has it."""

    text: str | None
    """What is done and what for."""
    on: Host | None
    """The host; null: it depends, or it is no command."""
    command: str | None
    """Executable as it is, unless it contains <a blank>."""
    only_if: str | None
    """A condition that a person must check."""
    destroys: str | None
    """What the command deletes or revokes for good."""


def fields(steps: Sequence[Step]) -> list[PlainStep]:
    """Return a fix for JSON: None for the fields that are empty."""
    return [
        PlainStep(step.text or None, step.on, step.command or None, step.only_if or None, step.destroys or None)
        for step in steps
    ]


def plain(steps: Sequence[Step]) -> str:
    """Return a fix as one line of text, with its commands in backticks."""
    pieces = []
    condition = ""
    for number, step in enumerate(steps, 1):
        mark = f"{number}. " if len(steps) > 1 else ""
        pieces.append(mark + _in_full(step, conditional=step.only_if != condition))
        condition = step.only_if
    return " ".join(pieces)


def markdown(steps: Sequence[Step]) -> list[str]:
    """Return a fix as the lines of a numbered list, each step with its condition."""
    return [f"{number}. {_in_full(step, conditional=True)}" for number, step in enumerate(steps, 1)]


def _in_full(step: Step, *, conditional: bool) -> str:
    """Return a step as a sentence, with or without its condition."""
    head = f"If {step.only_if}: " if step.only_if and conditional else ""
    does = sentence(step)
    command = f"`{step.command}`" if step.command else ""
    variant = f" ({step.variant_for}: `{step.variant}`)" if step.variant else ""
    body = ": ".join(filter(None, (does if head else begun(does), command)))
    return f"{head}{body}{variant}."


def lines(steps: Sequence[Step], width: int = WIDTH) -> Iterator[str]:
    """Yield a fix as numbered lines; each command is alone on its line, to be copied, and never broken."""
    condition = ""
    for number, step in enumerate(steps, 1):
        if step.only_if and step.only_if != condition:
            yield from _wrapped(f"If {step.only_if}:", "", width)
        condition = step.only_if
        margin = "  " if condition else ""
        mark = margin + (f"{number}. " if len(steps) > 1 else "")
        does = sentence(step) or "run"
        yield from _wrapped(f"{begun(does)}{':' if step.command else '.'}", mark, width)
        below = " " * len(mark)
        if step.command:
            yield f"{below}  {step.command}"
        if step.variant:
            yield f"{below}{step.variant_for}:"
            yield f"{below}  {step.variant}"


def sentence(step: Step) -> str:
    """Return what a step does and where, in a clause."""
    place = PLACES[step.on]
    clause = f"{place}, {step.text}" if place and step.text else step.text or place
    return f"{clause} (deletes {step.destroys})" if step.destroys else clause


def begun(clause: str) -> str:
    """Return a clause with a capital letter, as the beginning of a sentence."""
    return clause[:1].upper() + clause[1:]


def _wrapped(text: str, mark: str, width: int) -> list[str]:
    return textwrap.wrap(
        text, max(width, 20), initial_indent=mark, subsequent_indent=" " * len(mark), break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
