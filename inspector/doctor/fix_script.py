"""Write fixes as a POSIX shell script, which reaches each host and stops at the first step that fails.

Texts and names come from the traffic and from names of files: each gets into the script as one quoted word, or into a
comment of one line.
"""

from __future__ import annotations

import os
import shlex
import textwrap
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from inspector import inputs, regex
from inspector.errors import InspectorError
from inspector.formats import files
from inspector.rules.fixes import AGENT_RUN, BLANK, PLACES, Host, begun, sentence
from inspector.text import clean, utc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from inspector.rules.fixes import Fix, Step

MARK = "# Written by `puppet-inspector doctor --fix-script`"
"""The second line of a script: only a file that has it is overwritten."""
_PLAIN = regex.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*")
_SIGNS = regex.compile(r"(?:puppet(?:server ca| cert)(?: --allow-dns-alt-names)?|openvox-ca-ctl) sign\b")
_WIDTH = 110

_FUNCTIONS = r"""
say() { printf '%s\n' "$@"; }

stop() { printf 'Stopped: %s.\n' "$1" >&2; exit 1; }

# Nobody is asked without a terminal: the answer is no.
ask() {
    [ -t 0 ] || return 1
    printf '%s [y/N] ' "$1"
    read -r answer || return 1
    case $answer in [yY]|[yY][eE][sS]) ;; *) return 1 ;; esac
}

enter() { if [ -t 0 ]; then printf '   Enter when this is done. '; read -r answer; fi; }

delete() { [ "$yes" = --yes ] || ask '   This deletes. Execute it?' || stop 'nothing was deleted by this step'; }

blank() { stop "fill in $1 in the command of step $2, and remove the line above it that begins with blank"; }

failed() { stop "the command failed with status $1"; }

# 24: there was a request to be removed, but no certificate to be revoked.
cleaned() { [ "$1" -eq 24 ] || failed "$1"; }

shown() { say "   (status $1)"; }

# The agent's status: 2 is a run that changed something, 1 is also a request that waits for its signature.
ran() { [ "$1" -eq 2 ] || failed "$1"; }

requested() { case $1 in 1) signed=no ;; 2) ;; *) failed "$1" ;; esac; }
"""


type _Place = tuple[Host, str | None]
"""A host, and which one it is if it is a node."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The problem that a part of the script heals."""

    what: str
    """In one sentence."""
    steps: Fix
    node: str | None = None
    """The agent's certname or address; None: the one whose directory was examined."""


def script(problems: Iterable[Problem], made: float) -> str:
    """Return the script that heals these problems, in their order; ``made`` is the time in its header.

    Steps that are the same are in it once.
    """
    parts: dict[tuple[Fix, str | None], Problem] = {}
    for problem in problems:
        of_node = any(step.on is Host.NODE and step.command for step in problem.steps)
        parts.setdefault((problem.steps, problem.node if of_node else None), problem)
    variables = _variables(parts.values())
    lines = [
        "#!/bin/sh",
        f"{MARK} at {utc(made)}",
        "# It heals:",
        *(_comment(problem.what) for problem in parts.values()),
        "# Each step is printed before it is executed; the first one that fails ends the script.",
        "# --yes as its first argument: steps that delete something do not ask.",
        "set -euf",
        "yes=${1-}",
        "",
    ]
    if variables:
        lines += [
            "# How each host is reached, as root: 'ssh root@HOST', or 'sh -c' for this host.",
            "# For a host that does not find puppet:",
            "# 'ssh root@HOST export PATH=$PATH:/opt/puppetlabs/bin:/opt/puppetlabs/server/bin;'",
        ]
    for (_, node), variable in variables.items():
        lines.append(f"{variable}=${{{variable}-}}" + (f"  # {clean(node)}" if node else ""))
    for (host, node), variable in variables.items():
        name = node if node and _PLAIN.fullmatch(node) else PLACES[host].removeprefix("on ")
        lines.append(f': "${{{variable}:?is not set: write into this script how {name} is reached}}"')
    lines.append(_FUNCTIONS)
    number = 1
    for problem in parts.values():
        lines += [f"say {shlex.quote(f'== {clean(problem.what)}')}", *_steps(problem, number, variables), ""]
        number += len(problem.steps)
    return "\n".join(lines)


def write(problems: Sequence[Problem], path: Path, made: float) -> None:
    """Write the script to a file, mode 0700. It replaces a script that this function wrote.

    Raises InspectorError, also if the file is anything else.
    """
    text = script(problems, made)
    if _is_ours(path):
        path.unlink()
    elif path.exists():
        raise InspectorError(f"{path} exists, and is no script of this option.", "Choose another name.")
    with files.created(path) as file:
        os.fchmod(file.fileno(), 0o700)
        file.write(text.encode("utf-8", "replace"))


def _is_ours(path: Path) -> bool:
    try:
        if path.is_symlink() or not path.is_file():
            return False
        return inputs.read(path, inputs.SMALL, links=False).startswith(f"#!/bin/sh\n{MARK}".encode())
    except OSError as error:
        raise InspectorError(f"Cannot read {path}: {error.strerror}.", "Choose another name.") from error


def _place(problem: Problem, step: Step) -> _Place | None:
    """Return the host to which a step's command goes; None if it is no command, or one for any host."""
    if step.on is None or not step.command:
        return None
    return step.on, problem.node if step.on is Host.NODE else None


def _variables(problems: Iterable[Problem]) -> dict[_Place, str]:
    """Return the variable of each host to which a command goes: there are as many nodes as agents."""
    variables: dict[_Place, str] = {}
    for place in filter(None, (_place(problem, step) for problem in problems for step in problem.steps)):
        nodes = sum(host is Host.NODE for host, _ in variables)
        again = f"_{nodes + 1}" if place[0] is Host.NODE and nodes else ""
        variables.setdefault(place, f"ON_{place[0].name}{again}")
    return variables


def _steps(problem: Problem, number: int, variables: dict[_Place, str]) -> Iterator[str]:
    """Yield the lines of a fix, whose first step has this number."""
    after_run = False
    numbered = list(enumerate(problem.steps, number))
    for condition, group in groupby(numbered, key=lambda pair: pair[1].only_if):
        steps = list(group)
        margin = "    " if condition else ""
        if condition:
            yield f"if ask {shlex.quote(f'If {clean(condition)}: is this the case?')}; then"
        for at, step in steps:
            last = max((later for later, each in numbered if _SIGNS.match(each.command)), default=0)
            place = _place(problem, step)
            reached = f"${variables[place]}" if place else "sh -c"
            for line in _step(at, step, reached, after_run=after_run, signed_later=at < last):
                yield margin + line
            after_run = after_run or AGENT_RUN in step.command
        if condition:
            skipped = [f"{at}. Skipped: {clean(sentence(step)) or step.command}" for at, step in steps]
            yield "else"
            yield f"    say {' '.join(map(shlex.quote, skipped))}"
            yield "fi"


def _step(number: int, step: Step, reached: str, *, after_run: bool, signed_later: bool) -> Iterator[str]:
    """Yield the lines of a step; ``reached``: how a command line on its host begins, ``after_run``: a step before runs
    the agent, ``signed_later``: one after it signs."""
    does = f"{number}. {begun(clean(sentence(step)) or 'run')}"
    shown = textwrap.wrap(f"{does}{':' if step.command else '.'}", _WIDTH, subsequent_indent="   ")
    shown += [f"   {clean(step.command)}"] if step.command else []
    shown += [f"   ({clean(step.variant_for)}: {clean(step.variant)})"] if step.variant else []
    yield f"say {' '.join(map(shlex.quote, shown))}"
    if not step.command:
        yield "enter"
        return
    if blanks := dict.fromkeys(found[0] for found in BLANK.finditer(step.command)):
        yield f"blank {shlex.quote(', '.join(blanks))} {number}"
    if step.destroys:
        yield "delete"
    line = f"{reached} {shlex.quote(step.command)} </dev/null"
    if AGENT_RUN in step.command and signed_later:
        yield "signed=yes"
        yield f"{line} || requested $?"
    elif AGENT_RUN in step.command:
        yield f"{line} || ran $?"
    elif after_run and _SIGNS.match(step.command):
        yield f'if [ "$signed" = yes ]; then say "   (not needed: it is signed)"; else {line} || failed $?; fi'
    else:
        cleans = step.command.startswith("puppetserver ca clean ")
        yield f"{line} || {'cleaned' if cleans else 'failed' if step.changes else 'shown'} $?"


def _comment(text: str) -> str:
    return f"#   {clean(text)}"
