"""What it costs that something leaves: `python -m tests.bench.leaving [EXCHANGES]` (a minute; or: make bench).

A capture of 3,000 exchanges, made of the sampled runs as in ``analysis``, of which each has its own times and names in
its facts, catalog and report, is shared, and exported in each format. Each is a process of its own, from the start of
Python to its end. Prints the table of docs/performance.md.
"""

from __future__ import annotations

import dataclasses
import gzip
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench import aims, analysis
from tests.bench.start import processor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.model import Exchange, Message

COMMANDS: dict[str, tuple[str, ...]] = {
    "check": ("check",),
    "share": ("share", "-o", "shared.sqlite"),
    **{
        f"export {name}": ("export", "-o", name)
        for name in ("x.har", "x.jsonl", "x.trace.json", "x.otlp.json", "x.mitm", "x.pcapng")
    },
}
AIM = 0.5
"""CPU milliseconds for an exchange."""
_FRACTION = re.compile(rb"(:\d\d\.)\d{9}(?=\+|%252B| )")
"""What a time of Puppet's has behind its seconds: no two are equal."""
_DURATION = re.compile(rb'("evaluation_time":0\.0*)\d{6,}')


def differing() -> Iterator[Exchange]:
    """The exchanges of ``analysis``, with bodies that differ as those of real agents do."""
    chance = random.Random(7)  # noqa: S311 - always the same

    def digits(number: int) -> bytes:
        return b"%0*d" % (number, chance.randrange(10**number))

    def message[M: Message](old: M, name: bytes) -> M:
        packed = old.body[:2] == b"\x1f\x8b"
        body = gzip.decompress(old.body).replace(analysis.NAME, name) if packed else old.body
        body = _FRACTION.sub(lambda found: found[1] + digits(9), body)
        body = _DURATION.sub(lambda found: found[1] + digits(9), body)
        return old if body == old.body else dataclasses.replace(old, body=gzip.compress(body) if packed else body)

    for exchange in analysis.exchanges():
        name = b"n%04d.example" % (int(exchange.agent.id.partition("/")[0]) % analysis.AGENTS)
        yield dataclasses.replace(
            exchange,
            request=message(exchange.request, name),
            response=message(exchange.response, name) if exchange.response else None,
        )


def cost(words: tuple[str, ...], capture: Path, folder: Path) -> float:
    """The CPU seconds of a command."""
    before = processor()
    command, *rest = words
    done = subprocess.run(
        [sys.executable, "-m", "inspector.cli", command, str(capture), *rest],
        cwd=folder,
        capture_output=True,
        check=False,
    )
    if done.returncode not in (0, 1):  # check: there are errors
        raise SystemExit(done.stderr.decode())
    return processor() - before


def main() -> None:
    """Measure and print."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 3_000
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        capture = folder / "capture.sqlite"
        analysis.write(capture, number, bodies=True, made=differing())
        print(f"| of {number:,} exchanges | CPU for an exchange | aim | to `check` |")
        print("|---|---|---|---|")
        least = 0.0
        for name, words in COMMANDS.items():
            each = cost(words, capture, folder) / number * 1000
            least = least or each
            aim = "" if name == "check" else aims.at_most(round(each, 2), AIM, " ms")
            print(f"| `{name}` | {each:.2f} ms | {aim} | {each / least:.1f} |", flush=True)


if __name__ == "__main__":
    main()
