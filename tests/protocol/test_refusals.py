"""Why an agent refuses a catalog, compared with what Puppet said of the same catalogs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inspector.protocol import decode
from inspector.protocol import documents as d
from inspector.protocol.refusals import Refusal, refusal
from tests.support.bodies import JSON, answered
from tests.support.catalog_verdicts import ACCEPTED, REFUSED, Case, cat, res


def _refusal(catalog: dict[str, Any]) -> Refusal | None:
    found = decode.catalog(answered(JSON, json.dumps(catalog).encode()))
    assert isinstance(found, d.Catalog), found
    return refusal(found)


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.name)
def test_what_puppet_accepts_is_not_refused(case: Case) -> None:
    assert _refusal(case.catalog) is None


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_what_puppet_refuses_is_refused_in_its_words(case: Case) -> None:
    found = _refusal(case.catalog)
    assert found is not None
    if case.exact:
        assert found.message == case.message


def test_a_refusal_names_the_resource_and_its_place() -> None:
    found = _refusal(cat(res() | {"tags": ["a b"]}))
    assert found == Refusal("Invalid tag 'a b'", False, "Notify[a]", "(file: /m/a.pp, line: 7)")
    found = _refusal(cat(res(require="Exec[b]")))
    assert found is not None
    assert (found.read, found.ref, found.place) == (True, "Notify[a]", "")


@pytest.mark.parametrize(
    "catalog",
    [
        cat(res(require="Mine[b]"), res("Mine", "a", path="b")),
        cat(res("Mine", "a", name="x"), res("Mine", "b", name="x")),
        cat(res("File", "a", path="//x/y"), res("File", "/x/y")),
        cat(res("File", "C:/x")),
        cat(res("Mine", "a", invented=None), res(title="b", loglevel="loud")),
        cat(res("Thing", "a", name="x"), res("Thing", "b", name="x"), res(message=None), catalog_format=1),
    ],
)
def test_what_depends_on_types_and_systems_is_not_judged(catalog: dict[str, Any]) -> None:
    assert _refusal(catalog) is None


def test_the_first_collision_is_the_agents() -> None:
    """It is at the resource that the agent comes to first, not the one whose name is looked at first."""
    found = _refusal(
        cat(res("File", "a", path="/2"), res("File", "b", path="/1"), res("File", "/1"), res("File", "/2"))
    )
    assert found is not None
    assert found.message.startswith("Duplicate declaration: File[/1] ")


def test_a_chain_of_many_thousands_is_no_cycle() -> None:
    chain = [res(title=str(number), require=f"Notify[{number - 1}]") for number in range(1, 20_000)]
    assert _refusal(cat(res(title="0"), *chain)) is None
    found = _refusal(cat(res(title="0", require="Notify[19999]"), *chain))
    assert found is not None
    assert found.message.startswith("Found 1 dependency cycle: (Notify[0] => Notify[1] => Notify[2] => ")
