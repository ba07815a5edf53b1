"""What understanding costs: `python -m tests.bench.analysis [EXCHANGES]` (some two minutes; or: make bench).

Captures of 10,000 and of 100,000 exchanges, made by repeating sampled runs with other names, addresses, connections,
ids and times, are read and analysed, each in a process of its own, so that its peak memory (``getrusage``) is known;
then a catalog of 10 MB and reports of 5 MB are decoded. Prints the tables of docs/performance.md.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from email.utils import formatdate, parsedate_to_datetime
from itertools import batched, count, islice
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.serialization import Encoding

from inspector.analysis.analyzer import Analyzer
from inspector.capture.store import Capture
from inspector.host import pki
from inspector.model import Connection, Exchange, Leg, Message, Phase, Request, Response
from inspector.protocol import decode
from inspector.protocol.documents import Undecodable
from tests.bench import aims
from tests.support.recorded import SAMPLES, records_of

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = b"node1.example"
AGENTS = 1000
EVERY = 1.0
"""Seconds between the beginnings of two runs: each agent runs every 1000 s, some five at a time."""
KILLED = 25
"""Each so many-th run ends without its report."""
_UUID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


# -- captures --------------------------------------------------------------------------------------------


def templates() -> list[list[Exchange]]:
    """The runs in the samples of an agent that has its certificate, without the certificate requests."""
    found = []
    for sample in (path for path in SAMPLES if path.stem in ("out-of-sync", "compile-error", "first-run")):
        analyzer = Analyzer()
        steps = [analyzer.feed(record) for record in records_of(sample)]
        for run in analyzer.finish():
            own = [step for step in steps if step.run is not None and step.run.seqs is run.seqs]
            found.append([step.exchange for step in own if step.exchange and step.phase is not Phase.CERTIFICATES])
    return found


@functools.cache
def _authority() -> tuple[pki.Authority, pki.PrivateKey]:
    return pki.make_ca("Bench CA"), pki.new_key()


@functools.cache
def _certificate(name: bytes) -> bytes:
    authority, key = _authority()
    return pki.sign(authority, key.public_key(), name.decode()).public_bytes(Encoding.DER)


def again(run: list[Exchange], number: int, agents: int = AGENTS, every: float = EVERY) -> list[Exchange]:
    """A run once more, by another agent, at another time."""
    agent = number % agents
    name = b"n%04d.example" % agent
    shift = 1_800_000_000.0 + number * every - run[0].time
    uuid = b"%08x-0000-4000-8000-000000000000" % number
    address = f"10.{agent // 62_500}.{agent // 250 % 250}.{agent % 250 + 1}"

    def named(data: bytes) -> bytes:
        return _UUID.sub(uuid, data.replace(NAME, name)) if data else data

    def leg(old: Leg) -> Leg:
        mine = old.side == "agent"
        chain = (_certificate(name),)
        return dataclasses.replace(
            old,
            id=f"{number}/{old.id}",
            address=address if mine else old.address,
            secured=old.secured + shift if old.secured else None,
            connected=old.connected + shift if old.connected else None,
            peer_chain=chain if mine else old.peer_chain,
            own_chain=old.own_chain if mine else chain,
        )

    def dated(text: str) -> str:
        return formatdate(parsedate_to_datetime(text).timestamp() + shift, usegmt=True)

    def message[M: Message](old: M) -> M:
        return dataclasses.replace(
            old,
            headers=tuple((key, dated(value) if key.lower() == "date" else value) for key, value in old.headers),
            body=named(old.body),
            started=old.started + shift if old.started else None,
            ended=old.ended + shift if old.ended else None,
        )

    legs = {exchange.agent.id: leg(exchange.agent) for exchange in run}
    masters = {exchange.master.id: leg(exchange.master) for exchange in run if exchange.master}
    return [
        dataclasses.replace(
            exchange,
            agent=legs[exchange.agent.id],
            master=masters[exchange.master.id] if exchange.master else None,
            request=dataclasses.replace(
                message(exchange.request), target=named(exchange.request.target.encode("latin-1")).decode("latin-1")
            ),
            response=message(exchange.response) if exchange.response else None,
        )
        for exchange in run
    ]


def exchanges(begin: int = 0, agents: int = AGENTS, every: float = EVERY, end: int | None = None) -> Iterator[Exchange]:
    """Those of this run and the following ones, to before ``end`` or without end, in the order in which they ended."""
    runs = templates()
    waiting: list[Exchange] = []
    for number in count(begin) if end is None else range(begin, end):
        run = again(runs[number % len(runs)], number, agents, every)
        waiting += run if number % KILLED else run[:-1]
        waiting.sort(key=lambda exchange: exchange.ended)
        started = run[0].time
        while waiting and waiting[0].ended < started:
            yield waiting.pop(0)
    yield from waiting


def write(path: Path, number: int | None, *, bodies: bool, made: Iterator[Exchange] | None = None) -> None:
    """A capture of so many exchanges (None: all): of these, or of those from the first run on."""
    with Capture.create(path) as capture:
        noted: set[str] = set()
        for place, exchange in enumerate(islice(made or exchanges(), number), 1):
            if not bodies:
                request = dataclasses.replace(exchange.request, body=b"")
                response = dataclasses.replace(exchange.response, body=b"") if exchange.response else None
                exchange = dataclasses.replace(exchange, request=request, response=response)
            for leg in (exchange.agent, exchange.master):
                if leg and leg.id not in noted:
                    noted.add(leg.id)
                    capture.note(Connection(leg))
            capture.append(exchange)
            if place % 1000 == 0:
                capture.flush()


@dataclasses.dataclass(slots=True)
class Cost:
    """What one capture costs."""

    exchanges: int
    runs: int
    reading: float
    """Seconds of CPU, which other work on the machine does not change much; from the file to records."""
    analysing: float
    """The same; ``Analyzer.feed``."""
    before: int
    """Peak memory before the first record, in bytes."""
    peak: int
    """Peak memory at the end."""


def cost(path: Path) -> Cost:
    """Read and analyse a capture in this process."""
    clock = time.process_time
    before, began, feeding, number, runs = _peak(), clock(), 0.0, 0, 0
    analyzer = Analyzer()
    with Capture.open(path) as capture:
        for some in batched(capture.records(), 100):  # to ask the clock costs about as much as a rule
            start = clock()
            for record in some:
                step = analyzer.feed(record)
                for run in step.over:  # as the proxy does: it tells a run that is over, and forgets it
                    analyzer.forget(run)
                    runs += run.real
                if step.trouble:
                    raise SystemExit(f"{record.seq}: {step.trouble}")
            feeding += clock() - start
            number += len(some)
    total = clock() - began
    return Cost(number, runs + len(analyzer.finish()), total - feeding, feeding, before, _peak())


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def apart(path: Path) -> Cost:
    """``cost`` in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.analysis", "--cost", str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Cost(**json.loads(done.stdout))


# -- documents -------------------------------------------------------------------------------------------


def catalog(size: int) -> Response:
    """A catalog of at least so many bytes."""
    parameters = {"ensure": "file", "owner": "root", "mode": "0644", "content": "some text\n" * 20, "backup": False}
    resources = [
        {"type": "File", "title": f"/etc/app/{number}.conf", "tags": ["file", "app", "class"], "file": "/site.pp",
         "line": number, "exported": False, "parameters": parameters}
        for number in range(size // 520)
    ]  # fmt: skip
    edges = [{"source": "Class[App]", "target": f"File[{resource['title']}]"} for resource in resources]
    body = json.dumps({"name": "a.example", "version": 1, "environment": "production", "classes": ["app"],
                       "resources": resources, "edges": edges}).encode()  # fmt: skip
    return Response((("Content-Type", "application/vnd.puppet.rich+json"),), body, status=200)


def _status(number: int) -> dict[str, object]:
    return {
        "title": f"/etc/app/{number}.conf", "file": "/site.pp", "line": number, "resource": f"File[{number}]",
        "resource_type": "File", "containment_path": ["Stage[main]", "App", f"File[{number}]"],
        "evaluation_time": 0.001, "tags": ["file", "app"], "time": "2026-11-21T12:00:00.000+00:00", "failed": False,
        "changed": True, "out_of_sync": True, "skipped": False, "change_count": 1, "out_of_sync_count": 1,
        "events": [{"audited": False, "property": "content", "previous_value": "{md5}0", "desired_value": "{md5}1",
                    "message": "content changed", "name": "content_changed", "status": "success",
                    "time": "2026-11-21T12:00:00.000+00:00"}],
    }  # fmt: skip


def report(size: int) -> Request:
    """A report in JSON."""
    statuses = {f"File[/etc/app/{number}.conf]": _status(number) for number in range(size // 660)}
    logs = [{"level": "notice", "message": "content changed", "source": key, "tags": [], "time": "2026-11-21T12:00:00"}
            for key in statuses]  # fmt: skip
    body = json.dumps({"host": "a.example", "status": "changed", "report_format": 12, "puppet_version": "7.23.0",
                       "logs": logs, "metrics": {}, "resource_statuses": statuses}).encode()  # fmt: skip
    return Request((("Content-Type", "application/json"),), body, method="PUT")


def old_report(size: int) -> Request:
    """A report in YAML with Ruby's tags, as 2.7 and 3.x send it."""
    head = "--- !ruby/object:Puppet::Transaction::Report\nhost: a.example\nstatus: changed\nreport_format: 3\n"
    head += 'puppet_version: "2.7.26"\nlogs: []\nresource_statuses:\n'
    status = """  "File[/etc/app/{0}.conf]": !ruby/object:Puppet::Resource::Status
    title: /etc/app/{0}.conf
    resource: "File[/etc/app/{0}.conf]"
    resource_type: File
    file: /site.pp
    line: {0}
    evaluation_time: 0.001
    time: 2026-11-21 08:25:37.123456789 +00:00
    failed: false
    changed: true
    out_of_sync: true
    skipped: false
    tags:
      - file
      - app
    events:
      - !ruby/object:Puppet::Transaction::Event
        audited: false
        property: content
        previous_value: !ruby/sym absent
        desired_value: "md5"
        message: content changed
        name: !ruby/sym content_changed
        status: success
        time: 2026-11-21 08:25:37.123456789 +00:00
"""
    body = (head + "".join(status.format(number) for number in range(size // 720))).encode()
    return Request((("Content-Type", "text/yaml"),), body, method="PUT")


def decoding() -> Iterator[str]:
    """The table of documents."""
    yield "| document | size | time (best of 3) | aim |"
    yield "|---|---|---|---|"
    for name, decoder, message in (
        ("catalog, rich JSON", decode.catalog, catalog(10_000_000)),
        ("report, JSON", decode.report, report(5_000_000)),
        ("report, YAML with Ruby's tags", decode.report, old_report(5_000_000)),
    ):
        taken = []
        for _ in range(3):
            start = time.process_time()
            document = decoder(message)
            taken.append(time.process_time() - start)
        output = f"not read: {document.reason}" if isinstance(document, Undecodable) else f"{min(taken):.2f} s"
        aim = aims.at_most(min(taken), 0.3, " s") if decoder is decode.catalog else ""
        yield f"| {name} | {len(message.body) / 1e6:.1f} MB | {output} | {aim} |"


def analysing(numbers: tuple[int, ...]) -> Iterator[str]:
    """The table of captures."""
    yield "| capture | runs | analysed | aim | with reading | peak memory | of it, by the capture |"
    yield "|---|---|---|---|---|---|---|"
    with tempfile.TemporaryDirectory() as folder:
        for bodies in (False, True):
            for number in numbers:
                path = Path(folder) / f"{number}-{bodies}.sqlite"
                write(path, number, bodies=bodies)
                output = apart(path)
                path.unlink()
                both = output.exchanges / (output.reading + output.analysing)
                aim = "" if bodies else aims.at_least(output.exchanges / output.analysing, 20_000, "/s")
                yield (
                    f"| {output.exchanges:,} exchanges, {'with' if bodies else 'without'} bodies | {output.runs:,} "
                    f"| {output.exchanges / output.analysing:,.0f}/s | {aim} | {both:,.0f}/s "
                    f"| {output.peak / 1e6:.0f} MB | {(output.peak - output.before) / 1e6:.0f} MB |"
                )


def main() -> None:
    """Measure and print."""
    match sys.argv[1:]:
        case ["--cost", path]:
            print(json.dumps(dataclasses.asdict(cost(Path(path)))))
        case given:
            number = int(given[0]) if given else 100_000
            for lines in (analysing((number // 10, number)), decoding()):
                for line in lines:
                    print(line, flush=True)
                print()


if __name__ == "__main__":
    main()
