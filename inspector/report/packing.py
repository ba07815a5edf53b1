"""Data in a page: JSON, compressed, as base64; the browser unpacks a block when it is needed."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import dataclass
from typing import Any

LEVEL = 9
"""Of the compression."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block of data, by the name under which the page's script finds it."""

    name: str
    data: str
    """Base64: no character of it has a meaning in HTML."""

    @classmethod
    def of(cls, name: str, value: Any) -> Block:
        """Pack a JSON-able value."""
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
        return cls(name, base64.b64encode(gzip.compress(text, LEVEL, mtime=0)).decode())

    def unpacked(self) -> Any:
        """Return the value."""
        return json.loads(gzip.decompress(base64.b64decode(self.data)))
