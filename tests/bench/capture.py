"""What a capture takes: `python -m tests.bench.capture [RECORDS]` (some five minutes; or: make bench).

The first runs of a hundred agents are written as a capture and as the flow file that `mitmdump -w` would write of the
same exchanges behind this proxy; then small exchanges are recorded until there are a million, and the first and the
last of them are timed. Prints the tables of docs/performance.md.
"""

from __future__ import annotations

import dataclasses
import functools
import gzip
import itertools
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.capture.store import Capture
from inspector.formats.mitm_flows import export_flows
from inspector.host import pki
from inspector.model import Connection, Exchange, Leg, Request, Response
from tests.bench import aims, analysis
from tests.support.recorded import SAMPLES, records_of

if TYPE_CHECKING:
    from collections.abc import Iterator

AGENTS = 100
PLUGINS = 300
"""Files of a node's first pluginsync, with some modules installed (stdlib alone has 250)."""
BATCH = 50
"""Records between two commits."""
TIMED = 10_000
"""Records that are timed at a time."""


# -- size ------------------------------------------------------------------------------------------------


def first_run() -> list[Exchange]:
    """The first run of an agent that has no certificate yet, as it was recorded."""
    (sample,) = (path for path in SAMPLES if path.stem == "first-run")
    return [record for record in records_of(sample) if isinstance(record, Exchange)]


def again(run: list[Exchange], number: int) -> list[Exchange]:
    """The same run of another agent. Whatever names the agent differs: its CSR, certificate, facts, catalog, report."""
    name = b"n%04d.example" % number

    def other(exchange: Exchange) -> Exchange:
        request, response = exchange.request, exchange.response
        if request.path.startswith("/puppet-ca/v1/certificate_request/"):
            request = dataclasses.replace(request, body=_csr(name))
        if response is not None and request.path.startswith("/puppet-ca/v1/certificate/n"):
            response = dataclasses.replace(response, body=gzip.compress(_certificate(name), mtime=0))
        elif response is not None and response.header("content-encoding") == "gzip":
            plain = gzip.decompress(response.body)
            if analysis.NAME in plain:
                response = dataclasses.replace(
                    response, body=gzip.compress(plain.replace(analysis.NAME, name), mtime=0)
                )
        return dataclasses.replace(exchange, request=request, response=response)

    return [other(exchange) for exchange in analysis.again(run, number)]


@functools.cache
def _authority() -> tuple[pki.Authority, pki.PrivateKey]:
    """A CA, and the key that all agents have here (another one each would make nothing smaller)."""
    return pki.make_ca("Bench CA"), pki.new_key()


def _csr(name: bytes) -> bytes:
    return pki.pem(pki.make_csr(name.decode(), _authority()[1]))


def _certificate(name: bytes) -> bytes:
    authority, key = _authority()
    return pki.pem(pki.sign(authority, key.public_key(), name.decode()))


def larger(run: list[Exchange]) -> list[Exchange]:
    """The run with as many plugins, and with a catalog and a report as large, as a node in production has."""
    dice = random.Random(1)  # noqa: S311 - texts that are the same each time
    words = [bytes(dice.choices(b"abcdefghijklmnopqrstuvwxyz_", k=dice.randint(2, 12))) for _ in range(3000)]
    found: list[Exchange] = []
    for exchange in run:
        request, response = exchange.request, exchange.response
        if response is not None and request.path.startswith("/puppet/v3/file_content/plugins/"):
            for number in range(PLUGINS):
                text = b" ".join(dice.choices(words, k=dice.randint(50, 1000)))
                target = f"/puppet/v3/file_content/plugins/puppet/functions/f{number}.rb?environment=production"
                found.append(
                    dataclasses.replace(
                        exchange,
                        request=dataclasses.replace(request, target=target),
                        response=dataclasses.replace(response, body=gzip.compress(text, mtime=0)),
                    )
                )
            continue
        if response is not None and request.path.startswith("/puppet/v3/catalog/"):
            body = analysis.catalog(200_000).body.replace(b"a.example", analysis.NAME)
            response = dataclasses.replace(response, body=gzip.compress(body, mtime=0))
        elif request.path.startswith("/puppet/v3/report/"):
            request = dataclasses.replace(
                request, body=analysis.report(200_000).body.replace(b"a.example", analysis.NAME)
            )
        found.append(dataclasses.replace(exchange, request=request, response=response))
    return found


def sizes() -> Iterator[str]:
    """The table of sizes."""
    yield f"| first runs of {AGENTS} agents | exchanges | flow file | capture | ratio | aim |"
    yield "|---|---|---|---|---|---|"
    for name, run in (("as recorded", first_run()), (f"with {PLUGINS} plugins", larger(first_run()))):
        with tempfile.TemporaryDirectory() as folder:
            capture, flows = Path(folder, "c.sqlite"), Path(folder, "c.mitm")
            with Capture.create(capture) as made:
                for number in range(AGENTS):
                    _keep(made, again(run, number))
            with Capture.open(capture) as made:
                exchanges = export_flows(made.records(), flows)
            before, after = flows.stat().st_size, capture.stat().st_size
            figures = f"{before / 1e6:.1f} MB | {after / 1e6:.1f} MB | {after / before:.3f}"
            yield f"| {name} | {exchanges:,} | {figures} | {aims.at_most(after / before, 0.1)} |"


def _keep(capture: Capture, exchanges: list[Exchange]) -> None:
    for some in itertools.batched(exchanges, BATCH):
        for exchange in some:
            for leg in (exchange.agent, exchange.master):
                if leg:
                    capture.note(Connection(leg))
            capture.append(exchange)
        capture.flush()


# -- growth ----------------------------------------------------------------------------------------------


def small() -> Iterator[Exchange]:
    """Without end: five exchanges a connection, one of them with a body of its own (as in first runs), the others with
    one that all share."""
    headers = tuple((f"X-Header-{number}", "v" * 20) for number in range(6))
    for number in itertools.count():
        at = 1_800_000_000.0 + number / 10
        agent = Leg(f"a-{number // 5}", "agent", "192.0.2.1", 1024 + number // 5 % 60_000, connected=at, secured=at)
        master = Leg(f"m-{number // 5}", "master", "192.0.2.9", 8140, at, at, at)
        target = f"/puppet/v3/file_metadata/modules/m/{number % 1000}"
        body = b"facts of %d" % number if number % 5 == 0 else b""
        yield Exchange(
            agent,
            Request(headers, body, started=at, ended=at, target=target),
            Response(headers, b"answer", started=at, ended=at, status=200),
            master,
        )


def growth(number: int) -> Iterator[str]:
    """The table of costs."""
    yield f"| records in the capture | size | CPU for an exchange, over the last {TIMED:,} |"
    yield "|---|---|---|"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "c.sqlite")
        exchanges = small()
        with Capture.create(path) as capture:
            written = 0
            while written < number:
                some = list(itertools.islice(exchanges, TIMED))
                began = time.process_time()
                _keep(capture, some)
                taken = time.process_time() - began
                written += TIMED
                if written in (TIMED, number // 10, number // 2, number):
                    yield f"| {written:,} | {path.stat().st_size / 1e6:,.0f} MB | {taken / TIMED * 1e6:.0f} µs |"


def main() -> None:
    """Measure and print."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    for lines in (sizes(), growth(number)):
        for line in lines:
            print(line, flush=True)
        print()


if __name__ == "__main__":
    main()
