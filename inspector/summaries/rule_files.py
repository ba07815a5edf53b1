"""The rules that a site writes in Python: the files of a directory, each written like those of ``inspector.rules``.

Whoever can write these files can do everything that this user may. So a directory or a file that others can write is
refused.
"""

from __future__ import annotations

import dataclasses
import os
import stat
import sys
import traceback
from types import ModuleType
from typing import TYPE_CHECKING

from inspector import inputs, regex, rules
from inspector.errors import InspectorError
from inspector.rules.fixes import plain
from inspector.text import beginning, clean

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.rules import Rule

LARGEST = 2**20
"""Bytes of a file."""
MOST = 500
"""Files in a directory."""
OWN_ID = regex.compile("U[0-9]{2,4}")
"""The ids of a site's own rules."""
_HINT = "Each rule is a *.py file in it; docs/own-rules.md has an example."


def paths(directory: Path) -> list[Path]:
    """Return the files with rules. Raises InspectorError if the directory cannot be used."""
    try:
        status = directory.stat()
        if not stat.S_ISDIR(status.st_mode):
            raise InspectorError(f"{directory} is not a directory.", _HINT)
        found = sorted(path for path in directory.iterdir() if path.suffix == ".py")
    except OSError as error:
        raise InspectorError(f"{directory} cannot be read: {error.strerror}.", _HINT) from error
    if _by_others(status):
        raise InspectorError(
            f"Others can write to {directory}, and so decide what this user executes.",
            f"`chown $(id -un) {directory}; chmod go-w {directory}`, after a look at what is in it.",
        )
    if len(found) > MOST:
        raise InspectorError(f"{directory} has more than {MOST} files with rules.", "Name a directory with rules only.")
    return found


def text(path: Path) -> bytes:
    """Return the content of a file with rules. Raises InspectorError."""
    try:
        if _by_others(path.stat()):
            raise InspectorError(f"{path}: others can write to it.", f"`chmod go-w {path}`, after a look at it.")
        return inputs.read(path, LARGEST)
    except OSError as error:
        raise InspectorError(f"{path}: it cannot be read: {error.strerror}.", _HINT) from error


def rules_in(path: Path, text: bytes) -> list[Rule]:
    """Execute the content of a file, and return its rules. Raises InspectorError with the line of what is wrong."""
    module = ModuleType(f"puppet_inspector_rules_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # for dataclasses, for example
    try:
        with rules.collected() as found:
            exec(compile(text, str(path), "exec"), module.__dict__)  # noqa: S102 - the user named this directory
        for rule in found.values():
            _check(rule)
    except (Exception, SystemExit) as error:
        raise InspectorError(f"{path}{_line(path, error)}: {_said(error)}.", _HINT) from error
    if not found:
        raise InspectorError(f"{path}: there is no rule in it.", "A rule is a function with the decorator @rule.")
    return [dataclasses.replace(found[ident], source=found[ident].source or path.name) for ident in sorted(found)]


def _check(rule: Rule) -> None:
    """Raise ValueError for a rule that other parts could not work with."""
    if not OWN_ID.fullmatch(rule.id):
        raise ValueError(f"the id {rule.id!r} must be U and a number, such as U10")
    plain(rule.fix_for(None))
    if not (isinstance(rule.title, str) and rule.title and isinstance(rule.explanation, str)):
        raise ValueError(f"{rule.id} needs a title")


def _by_others(status: os.stat_result) -> bool:
    return status.st_uid not in (0, os.geteuid()) or bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _line(path: Path, error: BaseException) -> str:
    """Return the line of a file in which an error happened."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f", line {error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f", line {lines[-1]}" if lines else ""


def _said(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return clean(error.msg)
    return clean(beginning(f"{type(error).__name__}: {error}", 300)).rstrip(".")
