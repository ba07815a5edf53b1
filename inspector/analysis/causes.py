"""Which deviation follows from which, and why: a small graph.

A new rule that is a cause or a consequence gets a row in ``FOLLOWS``. A rule that reports what happened at a moment,
and not a condition that lasts, belongs to ``EVENTS`` as well: it explains nothing that was there before.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from inspector.model import Finding


class Row(NamedTuple):
    """A cause and its direct consequences, as rule ids."""

    cause: str
    why: str
    """Why they follow."""
    effects: tuple[str, ...] = ()
    """Consequences in any run."""
    without_catalog: tuple[str, ...] = ()
    """Consequences in a run that got no catalog: one that got it has another reason for them."""


SKIPPED = ("R20", "R19", "R03", "P13")
"""What an agent without a catalog does: it applies nothing or the cached one, sends no report, or one with errors."""
_REFUSED = (*SKIPPED, "P03")
"""The same where the report is refused for the same reason."""
_BROKEN = ("T06", "T07", "T08", "T09", "R03", "R04")
"""What an agent or master without trust in the other does."""
_COMPILE = ("S01", "S25", "S26", "S27", "S28")
"""Why the master compiled no catalog."""
_KEYS = ("B18", "B20", "B22", "B23", "B02")

FOLLOWS: tuple[Row, ...] = (
    # No way to the master, or none any more.
    Row(
        "S14",
        "a master that goes away in an answer is not there for the next",
        ("T18", "T20", "T22", "F03", "P01"),
        _REFUSED,
    ),
    Row("T18", "without a connection nothing is answered", ("S21", "F03", "P01"), _REFUSED),
    Row("T19", "without an address there is no connection", ("S21", "F03", "P01"), _REFUSED),
    Row("T20", "without a connection nothing is answered", ("S21", "F03", "P01"), _REFUSED),
    Row("T27", "without a connection nothing is answered", ("S21", "F03", "P01"), _REFUSED),
    Row("T26", "what the proxy does not pass on is not answered", ("S21", "F03", "P01"), _REFUSED),
    Row("T21", "without TLS there is no master", ("T09", "S21", "F03", "P01"), _REFUSED),
    Row("T22", "without TLS there is no master", ("T09", "S21", "F03", "P01"), _REFUSED),
    # Trust: a wrong clock, certificate or CRL explains the alert that follows.
    Row("T15", "an agent without TLS is another client"),
    Row("T10", "a date is past or future by the clock", ("B10", "B12", "B33", "B35", *_BROKEN)),
    Row("B14", "a CRL that does not verify is as good as none", _BROKEN),
    Row("B10", "an agent with an expired CRL trusts nobody", _BROKEN),
    Row("B12", "an agent with a CRL of the future trusts nobody", _BROKEN),
    Row("B13", "an agent that lacks a CRL of the chain trusts nobody", _BROKEN),
    Row("B05", "without CA certificates nobody is trusted", ("B13", *_BROKEN)),
    Row("B04", "another CA's certificates are not trusted", _BROKEN),
    Row("B33", "an expired certificate is refused", _BROKEN),
    Row("B35", "a certificate of the future is refused", _BROKEN),
    Row("T05", "a revoked certificate is refused", ("T06", "T08", "T09", "S02"), _REFUSED),
    Row("T07", "a certificate without the name is refused", ("T08", "T09")),
    Row("T24", "an agent that cannot verify the master stops", ("B23",)),
    Row("T06", "a certificate of another CA is refused", ("T09",)),
    Row("T08", "who refuses a certificate ends the handshake", ("T09",)),
    # The agent's identity towards the CA.
    Row("B06", "a server without a CA signs nothing", ("B43",)),
    Row("S17", "the CRL is refused to everybody without a certificate", ("B09",)),
    Row("B09", "the CRL is missing, and the agent goes on"),
    Row("B08", "the CRL is missing, and the agent goes on"),
    Row("B21", "the CA holds one of the names for the key", ("B46", "T17", *_KEYS)),
    Row("B46", "each of the two hosts replaces what the other asked for", (*_KEYS, "B17", "R17", "T17", "B39", "B41")),
    Row("B19", "the CA takes no request for a revoked name", ("B43", "B20", "B22", "B39")),
    Row("B18", "the CA keeps the certificate of the old key", ("B20", "B22", "B23", "B02", "B43", "B39")),
    Row("B22", "the request is for a new key", ("B20", "B02")),
    Row("B20", "the CA keeps the first request", ("B17", "B39", "B41", "B23", "B02")),
    Row("B23", "the agent discards the certificate and begins again", ("B02",)),
    Row("B38", "the certificate is for another name", ("T04", "S02")),
    Row("B25", "no CA takes upper case", ("B26", "B24", "B43", "B44", "B39", "B40")),
    Row("B26", "no CA takes the name", ("B24", "B43", "B44", "B39", "B40", "S15")),
    Row("B24", "the CA refuses a request of two names", ("B43", "B44", "B39", "B40")),
    Row("B28", "the CA does not sign it", ("B43", "B29", "B39", "B41", "B42")),
    Row("B27", "the CA does not sign it", ("B43", "B29", "B39", "B41", "B42")),
    Row("B29", "the CA does not sign it", ("B43", "B39", "B41", "B42")),
    Row("B44", "the CA cannot read it", ("B43",)),
    Row("B43", "nothing can be signed", ("B39", "B40")),
    Row("B40", "without a request there is no certificate", ("B39", "B41", "B42")),
    Row("B42", "while nobody signs, the agent asks again", ("B17", "B39", "B41")),
    Row("B17", "the agent waits for the certificate", ("B39", "B41")),
    Row("B39", "the interval is that of the waiting", ("B41",)),
    # The agent's identity towards the master.
    Row("T23", "the master sees no certificate", ("S02", "T04"), _REFUSED),
    Row("T03", "who presents no certificate is refused", ("S02", "T04"), _REFUSED),
    Row("T04", "nobody reads another node's data", ("S02",), _REFUSED),
    Row("S18", "the master has no such URLs", ("S03", "B06", "R09"), _REFUSED),
    Row("S31", "the web server refuses the request", ("S15",), ("P01", *_REFUSED)),
    Row("S10", "without JSON there is no rich data", ("P16",)),
    Row("S30", "what is not compiled is not applied", ("S01",), SKIPPED),
    Row("S16", "an old master prefers PSON", ("S10",)),
    Row("S03", "the master has no such URLs", ("S04", "R01", "R09"), _REFUSED),
    Row("S02", "who is refused gets no catalog", (), ("P01", *_REFUSED)),
    # Why there is no catalog.
    Row("R13", "facts of another node are refused", _COMPILE, SKIPPED),
    Row("F07", "the master refuses to compile", (), (*_COMPILE, "P01", *SKIPPED)),
    Row("R09", "nothing is compiled for an environment that does not exist", (), (*_COMPILE, "R01", *_REFUSED)),
    Row("S15", "a page is no catalog", (*_COMPILE, "S04", "S06", "S09", "P01"), _REFUSED),
    Row("S24", "the agent gives up instead of waiting", (*_COMPILE, "P01"), _REFUSED),
    Row("S06", "nothing is served", (), (*_COMPILE, "S07", "P01", *_REFUSED)),
    Row("S05", "nothing is served now", (), (*_COMPILE, "S07", "P01", *_REFUSED)),
    Row("S12", "the agent does not get what it asked for", (), ("P01", "P05", "P15", *_REFUSED)),
    Row("S32", "the agent does not get what it asked for", (), ("P01", "P05", "P15", *_REFUSED)),
    Row("S23", "nothing is answered", ("P01", "F03"), ("S08", *_REFUSED)),
    Row("S13", "the agent cannot read it", ("S09", "P01"), SKIPPED),
    Row("S09", "the agent cannot read it", ("P01",), SKIPPED),
    Row("R06", "no run follows a catalog of yet another environment", ("R05", "R07", "R08"), SKIPPED),
    Row("R07", "the catalog is of another environment", ("R08", "P05", "P15")),
    Row("S08", "the agent gives up", (), SKIPPED),
    Row("S28", "what is not compiled is not applied", (), SKIPPED),
    Row("S26", "what is not compiled is not applied", (), SKIPPED),
    Row("S25", "what is not compiled is not applied", (), SKIPPED),
    Row("S27", "what is not compiled is not applied", (), SKIPPED),
    Row("S01", "what is not compiled is not applied", (), SKIPPED),
    Row("R20", "without a catalog", ("R19", "R03", "P13")),
    # Why a resource failed, and what happened to the report.
    Row("S20", "masters with different code", ("F02", "F03", "P01", "P13")),
    Row("F17", "the file's resource fails", ("S12", "S32", "F02", "P01", "P13")),
    Row("F09", "the file's resource fails", ("P01", "P13")),
    Row("F02", "the file's resource fails", ("P01", "P13")),
    Row("F03", "the file's resource fails", ("P01", "P13")),
    Row("P01", "each failure is logged", ("P13",)),
    Row("P06", "each failure is logged", ("P13",)),
    Row("P15", "nothing of the catalog is applied, and each failure is logged", ("P01", "P13")),
    Row("P05", "each failure is logged", ("P13",)),
    Row("S04", "a report in that format is refused", ("P03",)),
    Row("P04", "a report of that size is refused", ("P03",)),
    Row("P03", "the report is the end"),
    # What closes connections.
    Row("T12", "a closed connection is not used again", ("T11",)),
    Row("T13", "a closed connection is not used again", ("T11",)),
    Row("T14", "a closed connection is not used again", ("T11",)),
    Row("R17", "one of the two ends the other", ("R03", "R04", "P10")),
    Row("R02", "a part of the run was not recorded", ("R04",)),
    Row("B36", "what is not renewed expires", ("B34",)),
    Row("S11", "an agent that knows no version sends YAML", ("P08",)),
    Row("P11", "what is changed is fetched again", ("F05",)),
)
"""Deeper causes first."""

EVENTS = frozenset({
    "T18", "T19", "T20", "T21", "T22", "T26", "T27", "S01", "S02", "S05", "S06", "S08", "S09", "S12", "S13", "S14",
    "S15", "S23", "S24", "S25", "S26", "S27", "S28", "S32", "R09", "R20", "F02", "F03", "F09", "P01", "P05", "P06",
    "P15",
})  # fmt: skip
"""What happens at a moment. All others are conditions that last (a certificate, a clock, a setting): they may be
recorded after what follows from them."""


def effects(ident: str, *, catalog: bool = False) -> frozenset[str]:
    """Return the ids of all rules that follow from a rule, directly or through others; ``catalog``: in a run that got
    its catalog."""
    return _effects(catalog).get(ident, frozenset())


def explains(cause: Finding, effect: Finding, *, catalog: bool = False) -> bool:
    """Whether a finding follows from another one of the same run; ``catalog``: the run got its catalog."""
    later = cause.rule in EVENTS and 0 < effect.since < cause.since
    return not later and effect.rule in effects(cause.rule, catalog=catalog)


@cache
def _effects(catalog: bool) -> dict[str, frozenset[str]]:  # noqa: FBT001 - the key of a cache
    table = {row.cause: row.effects if catalog else row.effects + row.without_catalog for row in FOLLOWS}
    closed = {}
    for cause in table:
        found: set[str] = set()
        ahead = list(table[cause])
        while ahead:
            effect = ahead.pop()
            if effect not in found:
                found.add(effect)
                ahead += table.get(effect, ())
        closed[cause] = frozenset(found - {cause})
    return closed
