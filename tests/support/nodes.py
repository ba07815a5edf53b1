"""Runs of several nodes: some go well, some fail for the same reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.runs.examples import ca, catalog, crl, csr, not_issued, plugins, report, stored, talk
from tests.support.conversations import SIGNED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.model import Record

BROKEN = "Server Error: Could not find class ::profile::web for {name} on node {name}"


def well(number: int, after: float = 0) -> Sequence[Record]:
    return talk(
        plugins(), catalog(), report(), certname=f"web{number}.example", address=f"192.0.2.{number}", after=after
    )


def uncompiled(number: int, after: float = 0) -> Sequence[Record]:
    name = f"web{number}.example"
    failed = catalog(status=500, text=BROKEN.format(name=name))
    return talk(plugins(), failed, report(result="failed"), certname=name, address=f"192.0.2.{number}", after=after)


def refused(number: int) -> Sequence[Record]:
    return talk(
        ca(), crl(), csr(status=400, text=SIGNED), not_issued(), certname=f"db{number}.example",
        address=f"192.0.2.{40 + number}",
    )  # fmt: skip


def not_stored(times: int = 2) -> Sequence[Record]:
    """What a master sends to PuppetDB, part of no run: values that cannot be stored."""
    return talk(*[stored(values={"a": [{"x\0y": 1}]})] * times, certname="puppet.example", after=10)
