"""What happens to one exchange instead of being passed on, or to the answer that passes: a fault, or an answer of the
proxy's own."""

from __future__ import annotations

import contextlib
import dataclasses
import socket
import struct
from typing import TYPE_CHECKING

from inspector.model import Identity

if TYPE_CHECKING:
    from collections.abc import Callable

    from inspector.model import Exchange
    from inspector.proxy.faults.actions import Action
    from inspector.proxy.faults.answers import Answer

CORRUPT = b"#"
"""What replaces the first byte of a body: no JSON document begins so."""
WITHHELD = "the CA would have signed the key of the identity that the proxy uses, not the agent's (puppet_identity)"
"""Why a renewal is not passed on."""


class Injection:
    """A fault that happens to one exchange."""

    __slots__ = ("_announce", "_passed", "_withheld", "action", "answer", "cut_off", "note")

    def __init__(
        self, action: Action, answer: Answer | None, announce: Callable[[], None], *, withheld: str = ""
    ) -> None:
        """``announce`` is called once it happens: what concerns a body does not if there is none. ``withheld``: why the
        master is not asked, if it is no fault."""
        self.action = action
        self.answer = answer
        """The answer in the master's place."""
        self._withheld = withheld
        self.note = ""
        """What was done, as it is recorded; empty as long as nothing was."""
        self.cut_off = False
        """Whether the rest of the answer is not passed on."""
        self._announce = announce
        self._passed = 0
        if not self.changes:
            self._happen()

    @property
    def in_place(self) -> bool:
        """Whether the master is not asked."""
        return self.answer is not None or self.action.reset

    @property
    def changes(self) -> bool:
        """Whether the answer's body is changed as it passes."""
        return self.action.cut is not None or self.action.corrupt

    def change(self, piece: bytes) -> bytes:
        """Return a piece of the answer's body as it is passed on."""
        before, self._passed = self._passed, self._passed + len(piece)
        if self.action.cut is not None and self._passed > self.action.cut:
            if not self.cut_off:
                self.cut_off = True
                self._happen()
            return piece[: max(self.action.cut - before, 0)]
        if self.action.corrupt and piece and not before:
            self._happen()
            return CORRUPT + piece[1:]
        return piece

    def marked(self, exchange: Exchange) -> Exchange:
        """Return the exchange with what was done to it."""
        if self._withheld:
            mode = exchange.identity.mode if exchange.identity else ""
            return dataclasses.replace(exchange, master=None, identity=Identity(mode, reason=self._withheld))
        return dataclasses.replace(exchange, injected=self.note) if self.note else exchange

    def _happen(self) -> None:
        self.note = self.action.note
        self._announce()


def plain_answer(fields: tuple[tuple[bytes, bytes], ...]) -> tuple[tuple[bytes, bytes], ...]:
    """Return the headers of a request without the one that asks for a compressed answer: a byte of one that is replaced
    would show that it cannot be unpacked."""
    return tuple((name, value) for name, value in fields if name.lower() != b"accept-encoding")


def end_with_reset(connection: socket.socket) -> None:
    """Let a connection end with a reset when it is closed (socket(7), SO_LINGER)."""
    with contextlib.suppress(OSError):  # the agent has closed it meanwhile
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
