"""``puppet-inspector certificates``: what ends when, and who breaks if a certificate or a CRL does."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from inspector.cli import tables
from inspector.cli.arguments import add_captures, add_rules
from inspector.cli.output import columns, print_json, print_line
from inspector.cli.rows import print_rows
from inspector.errors import InspectorError
from inspector.fleet.trust import inventory, listing, scenario, text
from inspector.fleet.trust.radius import radius
from inspector.text import plural, utc

if TYPE_CHECKING:
    import argparse

    from inspector.fleet.trust.inventory import Inventory

EXAMPLE = "puppet-inspector certificates tables/ --what-if revoke=0x0004"
LONGEST = 36_525
"""Days that --expiring looks ahead: a hundred years."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_captures(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--what-if", action="append", default=[], metavar="CASE",
        help="who breaks, when and why: revoke=SERIAL, date=2027-03-01 or crl=none; may be repeated",
    )  # fmt: skip
    what.add_argument("--expiring", type=int, metavar="DAYS", help="only what ends within so many days, or has ended")
    parser.add_argument("--json", action="store_true", help="print JSON (docs/json/certificates.schema.json)")
    add_rules(parser)


def execute(arguments: argparse.Namespace) -> int:
    """List the certificates and CRLs of a directory of tables, or of captures, by what ends first. With --what-if:
    which nodes break if a certificate is revoked, at a date, or without CRLs, from when on, why and unless what, by the
    rules of agents of their versions and of their masters; which keep working; and what to do before
    (docs/certificates.md)."""
    now = time.time()
    if arguments.expiring is not None and not 0 <= arguments.expiring <= LONGEST:
        raise InspectorError(f"{arguments.expiring} days are too many or too few.", "Use for example --expiring 60.")
    asked = scenario.assumptions(arguments.what_if, now)
    rules = bool(arguments.rules or arguments.rules_dir)
    with tables.opened(arguments.captures, rules=rules) as (directory, status), directory.reading() as connection:
        found = inventory.read(connection)
    if arguments.what_if:
        _what_if(asked, found, now, as_json=arguments.json)
    else:
        _list(found, now, arguments.expiring, as_json=arguments.json)
    return status


def _what_if(asked: scenario.Assumptions, found: Inventory, now: float, *, as_json: bool) -> None:
    scenarios = scenario.scenarios(asked, found)
    results = [radius(found, one, now) for one in scenarios]
    if as_json:
        print_json(text.Supposed(utc(now), [text.plain(result) for result in results]))
        return
    if len(results) > 1:
        print_line(f"{len(results)} certificates are meant; one is revoked at a time.")
        print()
    for number, result in enumerate(results):
        if number:
            print()
        print_line(text.head(result))
        print()
        if rows := text.rows(result):
            print_rows(text.COLUMNS, rows)
            print()
        print(*text.details(result, columns()), sep="\n")


def _list(found: Inventory, now: float, within: int | None, *, as_json: bool) -> None:
    entries = listing.entries(found)
    if within is not None:
        entries = [
            one for one in entries if not one.replaced and one.end is not None and one.end < now + within * 86_400
        ]
    if as_json:
        print_json(text.Listed(utc(now), [text.plain_entry(one, now) for one in entries]))
    elif entries:
        print_rows(text.LISTED, [text.row(one, now) for one in entries])
    elif within is None:
        print("there are no certificates")
    else:
        print_line(f"nothing ends within {plural(within, 'day')}")
