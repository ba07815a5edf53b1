"""The connection to the master, before there is one."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import Mock

from inspector.proxy.engine.sides import MasterEnd
from tests.support.ends import Tls, Transport


def test_a_connection_that_is_given_up_while_it_is_made_is_no_refusal() -> None:
    """TCP may connect in the moment in which the attempt is cancelled."""
    link, tls = Mock(), Tls()
    tls.do_handshake = lambda: link.began()  # type: ignore[method-assign]

    async def play() -> None:
        master = MasterEnd(link, tls, Mock(), None)  # type: ignore[arg-type]
        made: Any = Transport()

        async def connecting(*_: object) -> None:
            try:
                await asyncio.sleep(60)
            finally:
                master.connection_made(made)
                master.connection_lost(None)

        asyncio.get_running_loop().create_connection = connecting  # type: ignore[method-assign, assignment]
        master.open("192.0.2.1", 8140)
        await asyncio.sleep(0)
        master.drop()
        assert master._task
        await asyncio.wait([master._task])

    asyncio.run(play())
    assert [call[0] for call in link.method_calls] == ["master_lost"]
