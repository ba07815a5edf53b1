"""Pass TCP connections from one network namespace to another, over a socket in the file system that both see.

``python -m tests.real.relay in ADDRESS PORT FILE`` listens on the address and asks the file; ``out`` is the reverse.
"""

from __future__ import annotations

import asyncio
import sys


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass  # one side is gone, and so is the other in a moment
    finally:
        writer.close()


async def main(direction: str, address: str, port: str, file: str) -> None:
    """Relay until the process is ended."""

    async def passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened = (
            asyncio.open_unix_connection(file) if direction == "in" else asyncio.open_connection(address, int(port))
        )
        there, back = await opened
        await asyncio.gather(_copy(reader, back), _copy(there, writer))

    started = asyncio.start_server(passed_on, address, int(port))
    server = await (started if direction == "in" else asyncio.start_unix_server(passed_on, file))
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
