"""What was played with a real openvox-ca (tests/real/test_openvox_ca), as golden/openvox_ca.json and docs/coverage.md
have it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.support import places

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FILE = places.GOLDEN / "openvox_ca.json"


def dump(date: str, version: str, rows: Sequence[tuple[str, str, str]]) -> str:
    """As it is stored: scenario, agent and road, and what came of each."""
    return json.dumps({"date": date, "version": version, "rows": rows}, indent=1, ensure_ascii=False) + "\n"


def number() -> int:
    """How many rows were written last."""
    return len(json.loads(FILE.read_text())["rows"])


def lines() -> Iterator[str]:
    """The section of docs/coverage.md."""
    played = json.loads(FILE.read_text())
    yield "## openvox-ca"
    yield ""
    version = played["version"]
    yield f"Played on {played['date']} with a real openvox-ca ({version}) as the CA of all agents, whose master"
    yield "is a puppetserver 7.9.5 with its CA service disabled. All was as expected. `make test-openvox-ca` plays it,"
    yield "with the program that `PUPPET_INSPECTOR_OPENVOX_CA` names: it is no package of Debian's."
    yield ""
    yield "| scenario | agent, road | came of it |"
    yield "|---|---|---|"
    for row in played["rows"]:
        yield f"| {' | '.join(row)} |"
