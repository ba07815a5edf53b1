"""``puppet-inspector auth``: which rule of an auth.conf allows or denies a request."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from inspector import inputs
from inspector.capture.store import Capture
from inspector.cli.arguments import add_captures, add_rules
from inspector.cli.output import print_json
from inspector.cli.progress import shown
from inspector.cli.reading import as_one
from inspector.errors import InspectorError
from inspector.explain.authorization import decision, decision_text
from inspector.explain.authorization.decision import ANONYMOUS, Client, Question
from inspector.explain.authorization.traffic import Traffic
from inspector.host.auth_conf import reading
from inspector.model import Exchange
from inspector.progress import watched
from inspector.protocol import x509
from inspector.text import beginning, clean

if TYPE_CHECKING:
    import argparse

EXAMPLE = "puppet-inspector auth captures/FILE.sqlite --auth-conf auth.conf"

_WARNINGS = 20
"""Warnings that are printed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_captures(parser)
    parser.add_argument(
        "--auth-conf", type=Path, metavar="FILE", required=True,
        help="the master's auth.conf: puppetserver's (HOCON), or that of Puppet 2.7 to 5 in Ruby",
    )  # fmt: skip
    parser.add_argument(
        "--new", type=Path, metavar="FILE", help="another auth.conf: show only what would change with it"
    )
    parser.add_argument(
        "--request", metavar="'METHOD PATH'", help="decide about this request instead of recorded ones, for example "
        "'GET /puppet/v3/catalog/web1.example'",
    )  # fmt: skip
    parser.add_argument("--certname", metavar="NAME", help="with --request: the client's certificate has this name and "
                        "no others (default: it has no certificate)")  # fmt: skip
    parser.add_argument("--cert", type=Path, metavar="PEM", help="with --request: the client's certificate, for rules "
                        "that ask for extensions or alternative names")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON (docs/json/auth.schema.json)")
    add_rules(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Show which rule of an auth.conf allows or denies each recorded request, or one that is given, and where it
    stands; with --new only what another auth.conf would change. The exit status is 1 if something is denied, would
    change or cannot be decided."""
    if not arguments.request and (arguments.certname or arguments.cert):
        raise InspectorError("--certname and --cert belong to --request.", "Recorded requests have certificates.")
    if arguments.request and arguments.captures:
        raise InspectorError("A capture and --request cannot be used together.", "Leave one of them out.")
    conf = reading.read(arguments.auth_conf)
    new = reading.read(arguments.new) if arguments.new else None
    warnings = [*conf.warnings, *(new.warnings if new else ())]
    for warning in warnings[:_WARNINGS]:
        print(f"puppet-inspector: {beginning(clean(warning), 400)}", file=sys.stderr)
    if len(warnings) > _WARNINGS:
        print(f"puppet-inspector: and {len(warnings) - _WARNINGS} more (--json has all)", file=sys.stderr)
    traffic = Traffic(conf, new)
    if arguments.request:
        traffic.ask(_question(arguments))
    else:
        with shown() as watch, as_one(arguments.captures, watch) as capture, Capture.open(capture) as records:
            for record in watched(records.records(), watch, records.count()):
                if isinstance(record, Exchange):
                    traffic.add(record)
    if arguments.json:
        print_json(decision_text.plain(traffic))
    elif arguments.request and not new:
        print(decision_text.sentence(traffic.groups[0].decision, conf))
    else:
        print(*decision_text.lines(traffic), sep="\n")
    return int(not traffic.quiet)


def _question(arguments: argparse.Namespace) -> Question:
    """Return the request that was given. Raises InspectorError."""
    method, _, target = arguments.request.strip().partition(" ")
    target = target.strip()
    if not method.isalpha() or not target.startswith("/") or not target.isprintable() or " " in target:
        raise InspectorError(
            f"{arguments.request!r} is no request.", "Use the form 'GET /puppet/v3/catalog/web1.example'."
        )
    return Question(method, target.encode().decode("latin-1"), _client(arguments))


def _client(arguments: argparse.Namespace) -> Client:
    if not arguments.cert:
        return Client(arguments.certname) if arguments.certname else ANONYMOUS
    try:
        found = x509.read_certificates(inputs.read(arguments.cert, inputs.SMALL))[0]
    except OSError as error:
        raise InspectorError(f"Cannot read {arguments.cert}: {error.strerror}.", "Give a certificate (PEM).") from error
    except x509.Malformed as error:
        raise InspectorError(f"{arguments.cert} is no certificate: {error}.", "Give a certificate (PEM).") from error
    client = decision.of_certificate(found)
    if arguments.certname and arguments.certname != client.name:
        raise InspectorError(
            f"The certificate in {arguments.cert} is for {client.name!r}, not for {arguments.certname!r}.",
            "Leave --certname out.",
        )
    return client
