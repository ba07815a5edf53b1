"""What the packaged Puppet says of damaged catalogs: the same as we, except where only its types can know."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from inspector.model import Exchange
from inspector.protocol import decode
from inspector.protocol import documents as d
from inspector.protocol.refusals import Refusal, refusal
from tests.real.agent import installed
from tests.support import catalog_mutants
from tests.support.bodies import JSON, answered
from tests.support.catalog_verdicts import ACCEPTED, REFUSED
from tests.support.recorded import SAMPLES, records_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

JUDGE = Path(__file__).with_name("catalog_judge.rb")
SEED = 40
TYPES = "which parameters and values a type takes, only the type knows"
SYSTEM = "the agent's system decides what is a path"
UNJUDGED = {
    "unknown parameter": TYPES, "bad value": TYPES, "null parameter": TYPES, "tag parameter": TYPES, "rich": TYPES,
    "resource: no parameters": TYPES, "resource: parameters of another type": TYPES,
    "relative path": SYSTEM, "same path": SYSTEM, "root path": SYSTEM,
    "unknown type": "an agent may have any type of a module",
    "odd title": "a type looks for resources that its parameters name: a file for its bucket",
    "other kind": "an agent may have a type of the name of a define",
    "odd type": "no master writes such names, which Ruby reads as that of a container",
    "twice in other case": "no master writes types in capitals, or with colons before them",
    "metadata": "Ruby fails on types of fields that nothing else uses",
    "auto cycle": "types add relationships of their own",
}  # fmt: skip
"""The kinds of mutants that Puppet may refuse and we do not, and why."""


def _verdicts(catalogs: Iterable[Any], base: Path) -> list[dict[str, Any]]:
    """Puppet's answer on each catalog."""
    if not shutil.which("puppet"):
        pytest.skip("no Puppet is installed")
    asked = "".join(f"{json.dumps(catalog)}\n" for catalog in catalogs)
    done = subprocess.run(
        ["ruby", str(JUDGE), str(base)], input=asked, capture_output=True, text=True, check=True, timeout=600
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def _ours(catalog: Any) -> Refusal | None:
    found = decode.catalog(answered(JSON, json.dumps(catalog).encode()))
    assert isinstance(found, d.Catalog), found
    return refusal(found)


def test_puppet_says_what_the_table_says(tmp_path: Path) -> None:
    cases = [*ACCEPTED, *REFUSED]
    verdicts = _verdicts((case.catalog for case in cases), tmp_path)
    for case, verdict in zip(cases, verdicts, strict=True):
        message = verdict.get("message", "")
        assert message == case.message if case.exact else message.startswith(case.message), case.name


def _recorded() -> dict[str, Any]:
    """The catalog of a recorded run."""
    (sample,) = (path for path in SAMPLES if path.stem == "first-run")
    exchanges = (record for record in records_of(sample) if isinstance(record, Exchange))
    bodies = (decode.content(made.response) for made in exchanges if made.response and "/catalog/" in made.request.path)
    found: dict[str, Any] = json.loads(next(body for body in bodies if body))
    return found


def _only_puppet_8_refuses(catalog: Any) -> bool:
    """Whether an empty list stands for an empty map, and this is Puppet 8: to 7 they are the same."""
    return installed() >= (8,) and [] in (catalog.get("metadata"), catalog.get("recursive_metadata"))


@pytest.mark.parametrize("base", [catalog_mutants.base, _recorded], ids=["made", "recorded"])
def test_puppet_and_we_refuse_the_same_mutants(tmp_path: Path, base: Callable[[], dict[str, Any]]) -> None:
    chance = random.Random(SEED)  # noqa: S311 - the same mutants each time
    mutants = [*catalog_mutants.mutants(base(), chance)]
    counted: dict[str, Counter[str]] = {}
    for mutant, verdict in zip(mutants, _verdicts((mutant.catalog for mutant in mutants), tmp_path), strict=True):
        ours, refused = _ours(mutant.catalog), "message" in verdict
        assert refused or ours is None, f"{mutant.kind}: Puppet accepts it, and we say {ours}"
        unjudged = mutant.kind in UNJUDGED or _only_puppet_8_refuses(mutant.catalog)
        assert ours or not refused or unjudged, f"{mutant.kind}: {verdict}"
        answer = "both refuse" if ours else "Puppet refuses" if refused else "both accept"
        counted.setdefault(mutant.kind, Counter())[answer] += 1
    for kind, answers in counted.items():
        print(f"{kind}: {', '.join(f'{count} {answer}' for answer, count in answers.items())}")
    total = sum(counted.values(), Counter())
    assert total["both refuse"] > 500
    assert total["both accept"] > 500
    assert total["Puppet refuses"] < len(mutants) / 10
