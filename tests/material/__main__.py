"""Measure with material that nobody here wrote: `python -m tests.material KIND DIRECTORY [--write SOURCE]`.

DIRECTORY is a checkout of it, or a part of one. Prints how many cases agreed, disagreed and were not decided, and each
of those that did not agree with the reason. ``--write`` puts the figures into docs/coverage.md, with the repository and
the commit that SOURCE names.
"""

from __future__ import annotations

import argparse
import datetime
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.text import excerpt
from tests.material import auth, catalog_differences, facts, names, reports, schemas, ssl, wire
from tests.material.cases import Verdict
from tests.support import coverage_table, material_table
from tests.support.material_table import Measured

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.material.cases import Case

KINDS: dict[str, Callable[[Path], Iterator[Case]]] = {
    "facts": facts.cases,
    "catalog-differences": catalog_differences.cases,
    "auth": auth.cases,
    "ssl": ssl.cases,
    "names": names.cases,
    "schemas": schemas.cases,
    "reports": reports.cases,
    "wire": wire.cases,
}
LONGEST = 160
"""Characters of a reason in the table."""


def main() -> None:
    """Measure one kind."""
    parser = argparse.ArgumentParser(prog="python -m tests.material", description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--write", metavar="SOURCE", help="the repository and the commit, for docs/coverage.md")
    arguments = parser.parse_args()
    verdicts, reasons = Counter[Verdict](), Counter[str]()
    for case in KINDS[arguments.kind](arguments.directory.resolve()):
        verdicts[case.verdict] += 1
        if case.verdict is not Verdict.AGREED:
            print(f"{case.verdict}  {case.name}: {case.why}")
        if case.verdict is Verdict.DISAGREED:
            reasons.update(excerpt(reason, LONGEST) for reason in case.reasons)
    print(", ".join(f"{verdicts[verdict]} {verdict}" for verdict in Verdict))
    if arguments.write:
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        agreed, disagreed, undecided = (verdicts[verdict] for verdict in Verdict)
        new = Measured(arguments.kind, arguments.write, today, agreed, disagreed, undecided, dict(reasons))
        results = material_table.load() if material_table.FILE.exists() else []
        material_table.FILE.write_text(material_table.dump(material_table.with_new(results, new)))
        coverage_table.write_page()


if __name__ == "__main__":
    main()
