"""Modules that are imported when they are first used: a start waits for none of them.

For what many functions of a module use; where few do, each has an import of its own. What reads the code (mypy, the
import contracts, PyInstaller) finds the ordinary import beside it::

    if TYPE_CHECKING:
        from inspector.protocol import x509
    else:
        x509 = Lazily("inspector.protocol.x509")
"""

from __future__ import annotations

import importlib
from typing import Any


class Lazily:
    """Stands for a module, which the first use of one of its names imports."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)
