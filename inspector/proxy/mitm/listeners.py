"""Asks only those addons about an event that listen to it.

mitmproxy (12.2) asks each of its forty, twice for a flow, with a coroutine for each: half of the cost of a request.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from mitmproxy import addonmanager
from mitmproxy.exceptions import AddonHalt

if TYPE_CHECKING:
    from collections.abc import Callable

    from mitmproxy import hooks


class Listeners:
    """Which function of which addon listens to an event, in the place of mitmproxy's addon manager."""

    def __init__(self, addons: Any) -> None:
        """``addons``: mitmproxy's addon manager."""
        self._addons = addons
        self._loaded: tuple[Any, ...] = ()
        self._functions: dict[str, list[Callable[..., Any]]] = {}

    def install(self) -> None:
        """Be asked in the addon manager's place."""
        self._addons.trigger_event = self.trigger_event

    def uninstall(self) -> None:
        """Let the addon manager be asked again."""
        vars(self._addons).pop("trigger_event", None)

    async def trigger_event(self, event: hooks.Hook) -> None:
        """Tell the addons of an event, in their order."""
        arguments = event.args()
        for function in self._listening_to(event.name):
            try:
                result = function(*arguments)
                if result is not None and inspect.isawaitable(result):
                    await result
            except AddonHalt:
                return
            except Exception:
                with addonmanager.safecall():  # it reports it
                    raise

    def _listening_to(self, name: str) -> list[Callable[..., Any]]:
        if (loaded := (*self._addons.chain, *self._addons.lookup.values())) != self._loaded:
            self._loaded = loaded  # a script that is reloaded is another one
            self._functions.clear()
        functions = self._functions.get(name)
        if functions is None:
            traverse: Any = addonmanager.traverse
            attributes = [getattr(addon, name, None) for addon in traverse(self._addons.chain)]
            # A script may import a module that is called like an event.
            functions = self._functions[name] = [function for function in attributes if callable(function)]
        return functions
