"""``puppet-inspector fix``: repair files of Puppet that no short command repairs."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from inspector.cli.output import print_json
from inspector.columns import Count, Utc
from inspector.host import crls
from inspector.text import clean, utc, utc_minute

if TYPE_CHECKING:
    import argparse

    from inspector.protocol.certificates import RevocationList

EXAMPLE = "puppet-inspector fix new-crl --cadir /etc/puppetlabs/puppetserver/ca"

_FORGOTTEN = "No earlier CRL of {} is known. Certificates that it revoked are accepted again."
_OLDER = "If there is one in a backup, or in an agent's crl.pem, pass that file with --add."
_LACKING = "There is no usable CRL of {}, and its key is not here."
_ELSEWHERE = (
    "Pass a file that has one with --add: a backup of ca_crl.pem, infra_crl.pem beside it, or an agent's crl.pem. An "
    "external CA has to issue it."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("fix", choices=("new-crl",), help="new-crl: sign the CA's own CRL anew")
    parser.add_argument("--cadir", type=Path, metavar="DIR", required=True, help="the CA's directory, or a copy of it")
    parser.add_argument("--add", type=Path, metavar="FILE", help="take missing or newer CRLs of the CAs from this file")
    parser.add_argument(
        "--execute", action="store_true", help="write the file instead of only showing what it would be"
    )
    parser.add_argument("--json", action="store_true", help="print JSON (docs/json/fix.schema.json)")


def execute(arguments: argparse.Namespace) -> int:
    """Sign the CA's own CRL anew (`new-crl`): with the same revoked certificates, for five years or as long as before.
    The CRL of a CA that is missing is added if the CA's key is in the directory. Without --execute it only shows each
    CRL of the file and what it would write. The old file is kept as a copy. The exit status is 1 if a CA is left
    without a usable CRL."""
    now = time.time()
    plan = crls.plan(arguments.cadir, now, arguments.add)
    copy = crls.write(plan, now) if arguments.execute else None
    if arguments.json:
        print_json(_plain(plan, copy, written=arguments.execute))
    else:
        for line in _lines(plan):
            print(clean(line))
        if arguments.execute:
            copied = f"The old file is {copy}." if copy else "There was no such file before."
            print(clean(f"Written: {plan.path}. {copied}"))
        else:
            print(f"Nothing was written. To write it: {_command(arguments)}")
    return int(bool(plan.lacking))


def _lines(plan: crls.Plan) -> list[str]:
    lines = [f"{plan.path}:"]
    for change in plan.changes:
        lines.append(f"  {change.issuer}: {change.action}")
        if change.before:
            lines.append(f"    now:  {_facts(change.before)}; {change.state}")
        if change.after and change.after is not change.before:
            lines.append(f"    then: {_facts(change.after)}")
    lines += [_FORGOTTEN.format(name) for name in plan.forgotten]
    lines += [_OLDER] if plan.forgotten else []
    lines += [_LACKING.format(name) for name in plan.lacking]
    lines += [_ELSEWHERE] if plan.lacking else []
    return lines


def _facts(crl: RevocationList) -> str:
    number = "without a number" if crl.number is None else f"number {crl.number}"
    until = "no end" if crl.next_update is None else utc_minute(crl.next_update)
    return f"{number}, {utc_minute(crl.last_update)} to {until} UTC, {len(crl.revoked)} revoked"


def _command(arguments: argparse.Namespace) -> str:
    added = ["--add", str(arguments.add)] if arguments.add else []
    words = ["puppet-inspector", "fix", arguments.fix, "--cadir", str(arguments.cadir), *added, "--execute"]
    return shlex.join(words)


class PlainCrl(msgspec.Struct, rename={"begin": "from", "end": "to"}):
    """A CRL."""

    number: Count | None
    begin: Utc
    end: Utc | None
    """nextUpdate; null: it has no end."""
    revoked: Count
    """Number of revoked certificates."""


class PlainChange(msgspec.Struct):
    """What becomes of the CRL of a CA."""

    issuer: str
    action: crls.Action
    """replaced: by the newer one of --add. missing: there is none, and the CA's key is not here."""
    state: crls.State | None
    """Of the CRL in the old file; null if it is not in it."""
    before: PlainCrl | None
    """The CRL in the old file; null: none."""
    after: PlainCrl | None
    """The CRL in the new file; null: none."""


class Planned(msgspec.Struct):
    """What becomes of each CRL of a CA's directory."""

    file: str
    """Path of the CA's CRLs, without links."""
    written: bool
    """False without --execute: nothing was changed."""
    copy: str | None
    """Path of the copy of the old file; null if nothing was written, or if there was no file."""
    crls: list[PlainChange]
    """Of each CA in the bundle, and of each other CRL in the file."""
    lacking: tuple[str, ...]
    """CAs of which the new file has no usable CRL. Not empty: exit status 1."""
    forgotten: tuple[str, ...]
    """CAs that get a CRL without entries, because none of their earlier ones is known."""


def _plain(plan: crls.Plan, copy: Path | None, *, written: bool) -> Planned:
    return Planned(
        file=str(plan.path),
        written=written,
        copy=str(copy) if copy else None,
        crls=[
            PlainChange(each.issuer, each.action, each.state, _plain_crl(each.before), _plain_crl(each.after))
            for each in plan.changes
        ],
        lacking=plan.lacking,
        forgotten=plan.forgotten,
    )


def _plain_crl(crl: RevocationList | None) -> PlainCrl | None:
    if crl is None:
        return None
    until = None if crl.next_update is None else utc(crl.next_update)
    return PlainCrl(crl.number, utc(crl.last_update), until, len(crl.revoked))
