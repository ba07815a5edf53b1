"""The file with the addon's options that a service reads (``puppet-inspector proxy --options FILE``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from inspector import inputs
from inspector.errors import InspectorError

if TYPE_CHECKING:
    from pathlib import Path


_HINT = "Write an option in a line: `puppet_master: NAME`."


def assignments_of(path: Path) -> list[str]:
    """Return the options that a file sets, as ``NAME=VALUE``: YAML like mitmproxy's ``config.yaml``, in which an option
    without a value is not set and a list sets an option several times. Raises InspectorError."""
    try:
        found = yaml.safe_load(inputs.read(path, inputs.SMALL).decode())
    except OSError as error:
        raise InspectorError(f"Cannot read {path}: {error.strerror}.", "Check the path and its permissions.") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark else ""
        raise InspectorError(
            f"{path} is no YAML{where}.", "Write an option in a line: `puppet_master: NAME`."
        ) from error
    if not isinstance(found, dict | None):
        raise InspectorError(f"{path} sets no options.", _HINT)
    words: list[str] = []
    for name, value in (found or {}).items():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict | list):
                raise InspectorError(f"{path}: {name} is no single value.", "Write `NAME: VALUE`.")
            if each is not None:
                words.append(f"{name}={str(each).lower() if isinstance(each, bool) else each}")
    return words
