"""The known messages as they are written (``inspector/messages/*.yaml``), and how they are compiled."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import msgspec
import yaml

from inspector import installation
from inspector.analysis import known_errors
from inspector.analysis.known_errors import KnownError
from inspector.model import Visible
from inspector.rules.fixes import Host, Step

FOLDER = installation.PACKAGE / "messages"
SUBJECTS = (
    "certificates", "trust", "connections", "manifests", "node_data", "catalogs", "resources", "agents",
    "authorities", "servers",
)  # fmt: skip
"""The files, in the order in which equally long texts are found."""
MESSAGES = known_errors.book()
_HOSTS = {"node": Host.NODE, "ca": Host.CA, "master": Host.MASTER, "proxy": Host.PROXY, "advice": None}


class Printed(msgspec.Struct, forbid_unknown_fields=True):
    """A whole line that is found to be the message."""

    by: str
    """``agent 7.23.0``, ``puppetserver ca 2.4.0``: the real one printed it; ``log``: it is in public logs and threads;
    the version and file of a source: then the values in it are invented."""
    line: str


class Written(msgspec.Struct, forbid_unknown_fields=True):
    """A message as it is written; the fields are those of ``KnownError``."""

    texts: list[str]
    meaning: str
    printed: list[Printed]
    causes: list[str] = []
    check: list[Any] = []
    """Steps, or lists of steps that several messages share."""
    fix: list[Any] = []
    rules: list[str] = []
    visible: Visible | None = None
    old: bool | None = None
    frame: bool = False
    first: bool = False

    def compiled(self) -> KnownError:
        return KnownError(
            tuple(self.texts), self.meaning, tuple(self.causes), _steps(self.check), _steps(self.fix),
            tuple(self.rules), self.visible, self.old, self.frame, self.first,
        )  # fmt: skip


class _File(msgspec.Struct, forbid_unknown_fields=True):
    messages: list[Written]
    shared: list[Any] = []


class _Step(msgspec.Struct, forbid_unknown_fields=True):
    """What is done where: one of the first six."""

    node: str = ""
    ca: str = ""
    master: str = ""
    proxy: str = ""
    advice: str = ""
    group: str = ""
    run: str = ""
    only_if: str = ""
    destroys: str = ""
    variant: str = ""
    variant_for: str = ""


class Found(NamedTuple):
    """A message of a file."""

    subject: str
    number: int
    written: Written


@cache
def written() -> tuple[Found, ...]:
    """All messages. Raises msgspec.ValidationError for one that is not written as it has to be."""
    found = []
    for subject in SUBJECTS:
        loaded = yaml.safe_load((FOLDER / f"{subject}.yaml").read_text(encoding="utf-8"))
        file = msgspec.convert(loaded, _File)
        found += [Found(subject, number, message) for number, message in enumerate(file.messages)]
    return tuple(found)


def compiled() -> bytes:
    """The content of the file that is read: a line for each message, so that a difference is one that can be read."""
    return b"[" + b",\n".join(msgspec.json.encode(each.written.compiled()) for each in written()) + b"]\n"


def _steps(items: list[Any]) -> tuple[Step, ...]:
    steps: list[Step] = []
    for item in items:
        steps += _steps(item) if isinstance(item, list) else [_step(msgspec.convert(item, _Step))]
    return tuple(steps)


def _step(step: _Step) -> Step:
    if step.group:
        return Step("", f"{{{step.group}}}", only_if=step.only_if)
    ((place, text),) = ((name, getattr(step, name)) for name in _HOSTS if getattr(step, name))
    return Step(text, step.run, _HOSTS[place], step.only_if, step.destroys, step.variant, step.variant_for)
