"""Addons are asked about the events that they listen to, in their order, as mitmproxy's own manager asks all."""

from __future__ import annotations

import asyncio
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from mitmproxy.exceptions import AddonHalt
from mitmproxy.proxy.layers.http._hooks import HttpResponseHook
from mitmproxy.test import taddons, tflow

from inspector.proxy.mitm.listeners import Listeners

if TYPE_CHECKING:
    import pytest


class Addon:
    """Listens to an event."""

    def __init__(self, log: list[str], name: str, error: Exception | None = None) -> None:
        self._log = log
        self.name = name
        self._error = error

    def response(self, _flow: Any) -> None:
        self._log.append(self.name)
        if self._error:
            raise self._error


class Waiting(Addon):
    """Has to be waited for."""

    async def response(self, flow: Any) -> None:  # type: ignore[override]
        await asyncio.sleep(0)
        super().response(flow)


class Parent:
    """Has another addon in it, as a script has."""

    name = "parent"

    def __init__(self, child: Addon) -> None:
        self.addons = [child]


def trigger(*addons: Any) -> None:
    """Tell these addons of an event."""

    async def play() -> None:
        with taddons.context(*addons) as context:  # type: ignore[no-untyped-call]
            listeners = Listeners(context.master.addons)
            listeners.install()
            await context.master.addons.handle_lifecycle(HttpResponseHook(tflow.tflow(resp=True)))
            listeners.uninstall()
            assert "trigger_event" not in vars(context.master.addons)

    asyncio.run(play())


def test_mitmproxy_asks_each_addon_about_every_event() -> None:
    """Else ``Listeners`` is needed no more."""
    asked: list[str] = []

    class Silent:
        name = "silent"

        def __getattr__(self, name: str) -> Any:
            asked.append(name)
            raise AttributeError

    async def play() -> None:
        with taddons.context(Silent()) as context:  # type: ignore[no-untyped-call]
            asked.clear()
            for _ in range(2):
                await context.master.addons.handle_lifecycle(HttpResponseHook(tflow.tflow(resp=True)))
            assert asked.count("response") == 2
            listeners = Listeners(context.master.addons)
            listeners.install()
            asked.clear()
            for _ in range(2):
                await context.master.addons.handle_lifecycle(HttpResponseHook(tflow.tflow(resp=True)))
            assert asked.count("response") == 1
            listeners.uninstall()

    asyncio.run(play())


def test_addons_are_called_in_their_order_and_then_notified_of_the_change() -> None:
    log: list[str] = []
    watching = SimpleNamespace(name="watching", update=lambda flows: log.append(f"{len(flows)} changed"), addons=[])
    trigger(Addon(log, "first"), watching, Parent(Addon(log, "child")), Waiting(log, "waiting"), Addon(log, "last"))
    assert log == ["first", "child", "waiting", "last", "1 changed"]


def test_an_addon_that_fails_concerns_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    log: list[str] = []
    trigger(Addon(log, "a", ValueError("one")), Waiting(log, "b", ValueError("two")), Addon(log, "c"))
    assert log == ["a", "b", "c"]
    assert [str(record.exc_info and record.exc_info[1]) for record in caplog.records] == ["one", "two"]


def test_an_addon_can_be_the_last_to_be_asked() -> None:
    halt = AddonHalt()  # type: ignore[no-untyped-call]
    for kind in (Addon, Waiting):
        log: list[str] = []
        trigger(kind(log, "a", halt), Addon(log, "b"))
        assert log == ["a"]


def test_a_module_of_an_events_name_is_no_function() -> None:
    log: list[str] = []
    script: Any = ModuleType("script")
    script.response = ModuleType("response")
    trigger(script, Addon(log, "a"))
    assert log == ["a"]


def test_an_addon_that_comes_later_is_asked_too() -> None:
    async def play() -> None:
        log: list[str] = []
        with taddons.context() as context:  # type: ignore[no-untyped-call]
            addons: Any = context.master.addons
            listeners = Listeners(addons)
            addon = Addon(log, "late")
            for present in (False, True, False):
                if present:
                    addons.add(addon)
                elif "late" in addons.lookup:
                    addons.remove(addon)
                log.clear()
                await listeners.trigger_event(HttpResponseHook(tflow.tflow(resp=True)))
                assert log == ["late"] * present

    asyncio.run(play())
