"""``puppet-inspector demo``: record an embedded lab through the real proxy.

The lab master's answers, except those of its CA, come from a recorded real run (``captures/samples``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector import installation, rules
from inspector.capture.store import Capture
from inspector.cli.arguments import add_rules, capture_to_write, must_be_terminal
from inspector.cli.output import columns
from inspector.cli.rows import print_rows
from inspector.cli.runs import print_runs
from inspector.errors import InspectorError
from inspector.lab import FAULTS, HEALED, HEALTHY, Lab, LabLoop
from inspector.model import Exchange
from inspector.proxy.console import fitted
from inspector.proxy.launcher import Proxy
from inspector.proxy.options import of_rules

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from pathlib import Path

    from inspector.lab import Fault

SAMPLE = "first-run.sqlite"
"""The recorded run that the lab's master replays."""

EXAMPLE = "puppet-inspector demo --fault expired-crl"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", metavar="CAPTURE", help="the capture to write (default: captures/<UTC time>.sqlite)"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--fault", metavar="FAULT", help="break one thing on purpose; `list` lists the faults")
    what.add_argument("--healthy", action="store_true", help="break nothing: a node's first run and its second")
    parser.add_argument("--own", action="store_true", help="through `puppet-inspector proxy` instead of mitmdump")
    parser.add_argument("--serve", action="store_true", help="keep the lab running and open the terminal inspector on "
                        "it; there D breaks something else")  # fmt: skip
    add_rules(parser)
    parser.add_argument("--json", action="store_true", help="print the runs as JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Start an embedded lab (a master with a real CA, and an agent) and the real proxy between them, on loopback: a
    node that gets no certificate, and the same node once the fix that is printed was applied. Then print the runs of
    the capture, with cause and fix."""
    if arguments.fault in ("list", "help"):
        print_rows(("fault", "description"), faults())
        return 0
    if arguments.serve:
        return serve(arguments)
    chosen = scenario(arguments.fault) if arguments.fault or arguments.healthy else HEALED
    if not arguments.json:
        print(chosen.description, flush=True)
    capture = record(capture_to_write(arguments), chosen, quiet=arguments.json, own=arguments.own)
    status = print_runs([capture], as_json=arguments.json, healed=chosen is HEALED)
    if not arguments.json:
        print("\nnext:")
        for words in (["check"], ["bootstrap"], []):
            print(f"  {installation.typed(*words, str(capture))}")
    return status


def serve(arguments: argparse.Namespace) -> int:
    """Keep a lab running and open the inspector on its capture, until the user quits."""
    chosen = scenario(arguments.fault)
    must_be_terminal("Without --serve the lab runs once, and prints its runs.")
    if arguments.json:
        raise InspectorError("--serve opens the terminal inspector, which prints no JSON.", "Omit one of the two.")
    capture = capture_to_write(arguments)
    print("starting a master, a proxy and three agents on 127.0.0.1 ...", flush=True)
    with (
        Lab(answers=recorded(), spread=True) as lab,
        Proxy(options(lab, capture), own=True) as proxy,
    ):
        lab.proxy_address = proxy.address
        with LabLoop(lab, chosen) as loop:
            from inspector.tui import app

            status = app.run(capture, lab=loop)
    print(f"The capture is {capture}")
    return status


def recorded(name: str = SAMPLE) -> list[Exchange]:
    """Return the exchanges of a sample capture."""
    with Capture.open(installation.samples() / name) as capture:
        return [record for record in capture.records() if isinstance(record, Exchange)]


def faults() -> list[tuple[str, str]]:
    """Return the name and the description of every fault."""
    return [(name, fault.description) for name, fault in FAULTS.items()]


def scenario(name: str | None) -> Fault:
    """Return the fault of that name, the healthy scenario for None. Raises InspectorError."""
    if name is None:
        return HEALTHY
    if name not in FAULTS:
        raise InspectorError(f"There is no fault {name!r}.", f"Choose one of: {', '.join(FAULTS)}.")
    return FAULTS[name]


def record(capture: Path, chosen: Fault = HEALTHY, *, quiet: bool = False, own: bool = False) -> Path:
    """Play a scenario through the proxy, and return the capture."""
    on_line: Callable[[str], None] = (lambda _: None) if quiet else _print_line
    with Lab(answers=recorded()) as lab, Proxy(options(lab, capture), on_line=on_line, own=own) as proxy:
        lab.proxy_address = proxy.address
        chosen.play(lab)
    with Capture.create(capture) as written:  # the agents have ended
        written.settle()
    return capture


def _print_line(line: str) -> None:
    print(fitted(line, columns()), flush=True)


def options(lab: Lab, capture: Path) -> dict[str, str | Path]:
    """Return the addon's options for a lab."""
    host, port = lab.master_address
    return {
        "puppet_master": f"{host}:{port}",
        "puppet_master_name": lab.master_name,
        "puppet_ssldir": lab.proxy_ssldir,
        "puppet_listen": "127.0.0.1",
        "puppet_identity": f"keys:{lab.identities}",
        "puppet_capture": capture,
        **of_rules(rules.in_use().arguments),
    }
