"""Print what differs between two CAs, as text and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from inspector.columns import Count
from inspector.doctor import report
from inspector.protocol.certificates import printed_serial
from inspector.summaries import wording
from inspector.summaries.wording import Block
from inspector.text import clean, counts, plural

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inspector.doctor.ca_view import CaView
    from inspector.doctor.migration import Migration


def headline(found: Migration) -> str:
    """Return one line on what differs."""
    nodes = plural(found.nodes, "node")
    if not found.differences:
        return f"no difference for {nodes}"
    return f"{counts([one.diagnosis for one in found.differences])} for {nodes}"


def blocks(found: Migration, width: int | None = None) -> Iterator[Block]:
    """Yield the text: both CAs, what differs with its fixes, what was not compared. ``width`` is the terminal's."""
    for label, view in (("OLD", found.old), ("NEW", found.new)):
        yield Block(wording.flowing(f"{label} {clean(view.where)}: {_facts(view)}", width))
    yield Block(wording.flowing(headline(found), width))
    if found.differences:
        yield from report.diagnosis_blocks([one.diagnosis for one in found.differences], width)
    for sentence in found.unknown:
        yield Block(wording.flowing(f"note: {clean(sentence)}", width))


def _facts(view: CaView) -> str:
    """Return what is known of a CA, in short."""
    signing = view.signing
    facts = [clean(signing.subject) if signing else "its CA is not known"]
    facts += [plural(len(view.certificates), "certificate"), plural(len(view.requests), "request")]
    for crl in view.crls or ():
        if signing and crl.issuer == signing.subject:
            facts.append(f"CRL {'?' if crl.number is None else crl.number} with {len(crl.revoked):,} revoked")
    if view.serial is not None:
        facts.append(f"next serial number {printed_serial(view.serial)}")
    return ", ".join(facts)


class PlainCrl(msgspec.Struct):
    """A CRL that a CA gives."""

    issuer: str
    number: int | None
    revoked: Count
    """Its serial numbers."""


class PlainCa(msgspec.Struct):
    """What is known of one of the two CAs."""

    kind: Literal["directory", "capture", "live"]
    where: str
    """The path or the address."""
    subject: str | None
    """The CA that signs nodes; null: not known."""
    fingerprint: str | None
    """That of its certificate (SHA-256)."""
    key: str | None
    """The digest of its public key: equal keys, equal strings."""
    certificates: Count
    requests: Count
    """Signing requests that wait, or that were recorded."""
    next_serial: str | None
    """As ``puppetserver ca list`` prints numbers; null: not known, or the CA counts none."""
    crls: list[PlainCrl]


class PlainDifference(report.PlainDiagnosis):
    """What OLD and NEW answer differently, and what follows."""

    nodes: list[str]
    """All nodes that it is about."""


class PlainMigration(msgspec.Struct):
    """What differs between a CA and the one that is to take its place."""

    old: PlainCa
    new: PlainCa
    nodes: Count
    """The nodes of which either of them has, or shows, a certificate or a request."""
    differences: list[PlainDifference]
    """The worst first."""
    not_compared: list[str]
    """What could not be compared, in sentences."""
    fix_script: str | None
    """The script that --fix-script wrote; null without the option, and if there is nothing to do."""
    headline: str
    """The whole answer in one line."""


def plain(found: Migration, script: Path | None) -> PlainMigration:
    """Return the same for JSON; ``script`` is the one that was written."""
    differences = [
        PlainDifference(**msgspec.structs.asdict(report.plain_diagnosis(one.diagnosis)), nodes=list(one.nodes))
        for one in found.differences
    ]
    return PlainMigration(
        old=_plain(found.old),
        new=_plain(found.new),
        nodes=found.nodes,
        differences=differences,
        not_compared=list(found.unknown),
        fix_script=str(script) if script else None,
        headline=headline(found),
    )


def _plain(view: CaView) -> PlainCa:
    signing = view.signing
    return PlainCa(
        kind=view.kind,
        where=view.where,
        subject=signing.subject if signing else None,
        fingerprint=signing.fingerprint if signing else None,
        key=signing.key if signing else None,
        certificates=len(view.certificates),
        requests=len(view.requests),
        next_serial=None if view.serial is None else printed_serial(view.serial),
        crls=[PlainCrl(crl.issuer, crl.number, len(crl.revoked)) for crl in view.crls or ()],
    )
