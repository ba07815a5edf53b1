"""What the measurements with other people's material gave (tests/material), as golden/material.json and
docs/coverage.md have it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from tests.support import places

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

FILE = places.GOLDEN / "material.json"

NOTES = {
    "facts": "Not decided are facts of Ansible, Chef and Salt, which Foreman keeps beside Puppet's.",
    "catalog-differences": "Expected is what octocatalog-diff itself prints of each two of its catalogs (with Debian's "
    "ruby-hashdiff and ruby-diffy). All that it says otherwise is a matter of choice: `diff` counts relationships, and "
    "compares values by what they mean. It cannot read PuppetDB's catalogs.",
    "auth": "Not decided are tests of its inner functions, of roles, and of values that no file can have.",
    "ssl": "An agent whose certificate is of a CA that neither its bundle nor its CRLs have only warns, and its master "
    "refuses it: `doctor --ssldir` calls that an error.",
    "names": "Subjects and issuers of certificates and CRLs, as Ruby writes them: agents print them so.",
    "schemas": "The schema of reports is stricter than OpenVox's own agents are: lines are numbers, `redacted` and "
    "`configuration_version` may be null. It has no older formats of reports; curl sent `{}` on purpose. Measured are "
    "the samples and the recordings. Not decided are examples that are only a part of a document.",
    "reports": "All statuses, lines of log, numbers and events are as they were.",
    "wire": "Two of PuppetDB's samples have relationships that none of their parameters states, and lack others: its "
    "benchmark exchanges edges. Not decided are catalogs whose relationships were made up.",
}
"""What the figures of a kind mean."""


@dataclass(slots=True)
class Measured:
    """What came of one source of a kind."""

    kind: str
    source: str
    """Repository and commit."""
    date: str
    agreed: int
    disagreed: int
    undecided: int
    reasons: dict[str, int] = field(default_factory=dict)
    """Why cases disagreed, and how many."""


def load(path: Path = FILE) -> list[Measured]:
    """Return what was kept."""
    return [Measured(**each) for each in json.loads(path.read_text())]


def dump(results: Sequence[Measured]) -> str:
    """As golden/material.json keeps it."""
    return json.dumps([asdict(each) for each in results], indent=1, ensure_ascii=False) + "\n"


def with_new(results: Sequence[Measured], new: Measured) -> list[Measured]:
    """Return the results with a new one, in the place of the one from the same repository."""

    def of(each: Measured) -> tuple[int, str]:
        return [*NOTES].index(each.kind), each.source.partition(" ")[0]

    return sorted([*(each for each in results if of(each) != of(new)), new], key=of)


def lines(results: Sequence[Measured]) -> Iterator[str]:
    """The section of docs/coverage.md."""
    yield "## Material of others"
    yield ""
    yield "What nobody here wrote, and whether we come to the same result as those who did. Their files are not part of"
    yield "this repository; `python -m tests.material KIND DIRECTORY` measures a checkout of theirs and names each case"
    yield "that disagrees (`--write 'REPOSITORY COMMIT'`: into this table)."
    yield ""
    yield "| kind | source | measured | agreed | disagreed | not decided |"
    yield "|---|---|---|---|---|---|"
    for each in results:
        counts = " | ".join(str(number or "") for number in (each.agreed, each.disagreed, each.undecided))
        yield f"| {each.kind} | {each.source} | {each.date} | {counts} |"
    for kind, note in NOTES.items():
        found = [each for each in results if each.kind == kind]
        if found:
            yield ""
            yield f"**{kind}**: {note}"
        reasons = [(reason, number) for each in found for reason, number in each.reasons.items()]
        if reasons:
            yield ""
        for reason, number in reasons:
            yield f"- {number}: {reason.replace('|', '/').replace('<', '&lt;')}"
