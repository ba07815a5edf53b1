"""``puppet-inspector tap``: on the master's host, look at what all agents do, for a while, and touch none of them."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sys
from typing import TYPE_CHECKING

from inspector import inputs, regex, rules
from inspector.cli.arguments import add_rules, capture_to_write
from inspector.cli.output import print_line
from inspector.cli.runs import print_runs
from inspector.errors import InspectorError
from inspector.host import serverconf
from inspector.proxy.launcher import Proxy
from inspector.proxy.options import of_rules
from inspector.proxy.tap import table as tables
from inspector.proxy.tap.plan import DIRECT, TapPlan, listen
from inspector.proxy.tap.preparing import Prepared, ask_proxy, prepare
from inspector.proxy.tap.supervision import End, Goal, Supervisor
from inspector.proxy.tap.table import Table
from inspector.proxy.tap.watch import Watch
from inspector.text import address, clean, lasting

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from pathlib import Path

EXAMPLE = "puppet-inspector tap --during 15m"

NICE = 5
"""By how much the proxy stands back for the master."""
PATIENCE = 180.0
"""Seconds that the proxy has to end: what agents have begun is served."""
NAMES = 5
"""Certnames that are listed of an address."""
_DURATION = regex.compile(r"(\d{1,6})([smh]?)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", metavar="CAPTURE", help="the capture to write (default: captures/<UTC time>.sqlite)"
    )
    parser.add_argument(
        "--during", dest="time", default="15m", metavar="TIME", help="how long: 90s, 15m, 2h (default: 15m)"
    )
    parser.add_argument(
        "--agent", action="append", default=[], metavar="PATTERN",
        help="only these agents: a certname with * and ?, or an address; several are possible",
    )  # fmt: skip
    parser.add_argument("--until", default="", metavar="NODE", help="end after the next run of this node")
    parser.add_argument("--runs", type=int, default=0, metavar="N", help="end after so many runs")
    parser.add_argument("--config", metavar="DIR", help="the directory of the server's webserver.conf")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--remove", action="store_true", help="take away what a tap that was killed has left")
    parser.add_argument("--json", action="store_true", help="print the runs as JSON (docs/json/runs.schema.json)")
    add_rules(parser)


def execute(arguments: argparse.Namespace) -> int:
    """On the host of a master, as root: record what its agents do, for a while; nothing is changed on them or on the
    server. The kernel hands new connections to a proxy as long as that answers. At the end, or if anything is wrong,
    they are direct again. The exit status is 1 if it ended before it should."""
    if os.geteuid() != 0:
        raise InspectorError("Only root can take over connections to the master.", "Run it as root.")
    if arguments.remove:
        there = tables.exists()
        tables.remove()
        print_line(f"The table {tables.NAME} {'is removed' if there else 'was not there'}.")
        return 0
    if arguments.runs < 0:
        raise InspectorError(f"{arguments.runs} is no number of runs.", "Write 1 or more.")
    goal = Goal(_seconds(arguments.time), arguments.runs, arguments.until)
    found = prepare(serverconf.read(inputs.expanded(arguments.config) if arguments.config else None), arguments.agent)
    capture = capture_to_write(arguments)
    for line in _announcement(found, goal, capture):
        _note(line)
    if not arguments.yes and not _agreed():
        raise InspectorError("Nothing was changed.", "Answer with y, or use --yes.")
    ended = _tap(found, goal, capture)
    print_runs([capture], as_json=arguments.json)
    if not arguments.json:
        print_line(f"the report: puppet-inspector report {shlex.quote(str(capture))}")
    return 0 if ended.expected else 1


def _tap(found: Prepared, goal: Goal, capture: Path) -> End:
    """Run it; return why it ended. Raises InspectorError."""
    server = found.server
    table = Table(server.port, None if server.host in serverconf.EVERYWHERE else server.host, found.chosen)
    os.nice(NICE)
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(each) for each in listen()]
        plan = TapPlan(
            descriptors=[each.fileno() for each in sockets],
            master=server.address,
            name=found.name,
            certificate=str(server.certificate),
            key=str(server.key),
            ca=str(server.ca),
            crl=str(server.crl),
            cadir=str(server.cadir or ""),
        )
        tap: Supervisor | None = None

        def on_line(line: str) -> None:
            if tap:
                tap.read(line)
            _shown(line)

        own: dict[str, str | Path | tuple[str, ...]] = {"puppet_capture": capture}
        options = own | of_rules(rules.in_use().arguments)
        proxy = stack.enter_context(Proxy(options, own=True, plan=plan, on_line=on_line, patience=PATIENCE))
        ask_proxy(proxy.address, found.name)
        watch = Watch(proxy.address, found.name)
        stack.callback(watch.close)
        table.create([each.getsockname()[:2] for each in sockets])
        try:
            tap = Supervisor(table, proxy.process, watch, found, capture, goal, _note)
            with _signals(tap):
                ended = tap.run()
        finally:
            tables.remove()
        _note(f"ended: {ended.reason}; new connections are direct")
        if proxy.process.poll() is None:
            _note("what agents have begun is served to its end (Ctrl-C: end now)")
        return ended


@contextlib.contextmanager
def _signals(tap: Supervisor) -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, lambda *_: tap.stopped.set()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _announcement(found: Prepared, goal: Goal, capture: Path) -> Iterator[str]:
    """Yield what will be done, and who is affected."""
    server = found.server
    yield f"server    {address(server.host, server.port)}, presents {server.certificate}"
    who = "these agents" if found.chosen else "every agent that connects from another host"
    yield f"records   {who}, new connections only, to {capture}"
    for host, names in sorted(found.chosen.items()):
        yield f"          {host}: {', '.join(sorted(names)[:NAMES]) or 'no node is known there'}{_several(names)}"
    if server.cadir:
        yield f"identity  for each verified agent a certificate of one hour, signed by the key in {server.cadir};"
        yield "          a renewal is answered 404"
    else:
        yield "identity  none: the CA's key is not on this host, so agents with a certificate are direct"
    yield f"way       the table {tables.NAME} of nftables (TPROXY): connections are direct {tables.LIFE} s after the"
    yield "          proxy's last answer"
    more = "".join((f", or {goal.runs} runs" if goal.runs else "", f", or a run of {goal.until}" if goal.until else ""))
    yield f"ends      after {lasting(goal.seconds)}{more}, with Ctrl-C, or if anything is wrong"


def _several(names: set[str]) -> str:
    if len(names) < 2:
        return ""
    more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    return f"{more}; a NAT or a balancer, all of them are recorded"


def _agreed() -> bool:
    if not sys.stdin.isatty():
        raise InspectorError("Nobody can be asked here.", "Add --yes.")
    return input("Begin? [y/N] ").strip().lower() in ("y", "yes")


def _seconds(text: str) -> float:
    found = _DURATION.fullmatch(text)
    if not found or not int(found[1]):
        raise InspectorError(f"{text!r} is no time.", "Write 90s, 15m or 2h.")
    return float(int(found[1]) * _SECONDS[found[2]])


def _shown(line: str) -> None:
    """Print a line of the proxy's; who is direct is printed once."""
    if not line.startswith(("  ", DIRECT)):
        print(clean(line), file=sys.stderr, flush=True)


def _note(text: str) -> None:
    print(f"puppet-inspector: {clean(text.removeprefix('-- '))}", file=sys.stderr, flush=True)
