"""Compare the answers of another master to a node with those that the agent received; noise is left out."""

from __future__ import annotations

import dataclasses
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from inspector.compare import comparison
from inspector.compare.masks import Masks
from inspector.explain.containment import key
from inspector.protocol.kinds import Kind
from inspector.protocol.rich import MARK, MAX_DEPTH, VALUE
from inspector.rehearsal import answered, fetching
from inspector.rehearsal.compiling import Role
from inspector.rehearsal.noise import Noise
from inspector.rehearsal.result import Time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inspector.compare.comparison import Choices, Comparison
    from inspector.compare.documents import RunDocuments
    from inspector.explain.file_transfers import FileUse
    from inspector.model import Exchange
    from inspector.rehearsal.requests import Asked
    from inspector.rehearsal.result import Result

    type Sides = Mapping[Role, RunDocuments]
    """The answers, by the role of their requests."""
    from inspector.protocol.documents import Catalog

_NAMED = ("metadata", "listing", "catalog")
"""How an agent learns of a file that its catalog names."""
DEEPEST = 64
"""Directories of a file's path that are looked at: a hostile one may have tens of thousands."""
_TWICE = ((Role.PLAIN, Role.AGAIN), (Role.OLD, Role.OLD_AGAIN))
"""Two compiles of the same by one master."""


class How(NamedTuple):
    """How the answers are compared."""

    choices: Choices
    files: bool
    """Whether files are, too."""
    v4: bool
    """Whether the answers are those of v4, which makes text of a Deferred before Puppet 8.10."""


def compare(
    how: How, result: Result, asked: Asked, before: RunDocuments, exchanges: Mapping[Role, list[Exchange]]
) -> None:
    """Compare the answers to a node with the recorded run; add what is found to the result."""
    name = before.name
    sides = {role: answered.gathered(asked, made, name) for role, made in exchanges.items()}
    for role in (role for role in sides if not role.of_old):
        found = answered.catalog_of(exchanges[role])
        if found is not None and found.response:
            result.new_versions.update(filter(None, [found.response.header("x-puppet-version")]))
        if found is not None and sides[role].without_catalog:
            reason = answered.failure(asked, found, sides[role])
            with_facts = " with the other facts" if role is Role.CHANGED else ""
            result.fail(name, f"no catalog{with_facts}: {reason}")
            return
    _add_time(result, name, before, [exchanges[role] for role in (Role.PLAIN, Role.AGAIN) if role in exchanges])
    old, new, role = before, sides[Role.PLAIN], Role.PLAIN
    if Role.CHANGED in sides:
        old, new, role = sides[Role.PLAIN], sides[Role.CHANGED], Role.CHANGED
    _add_logs(result, old, new, exchanges[role])
    if old.without_catalog:
        result.fail(name, f"it has a catalog now; the recorded run {old.without_catalog}: {old.catalog_failure}")
        return
    if how.files:
        old = dataclasses.replace(old, files=_named(old))
        if role is Role.PLAIN:
            new = _without_unasked(result, old, new)
    if how.v4 and role is Role.PLAIN and old.catalog is not None and new.catalog is not None:
        restored, count = with_deferred(old.catalog, new.catalog)
        result.deferred += count
        new = dataclasses.replace(new, catalog=restored)
    found_all = comparison.answers(old, new, how.choices, with_files=how.files)
    result.add(name, _without_noise(how, result, name, found_all, sides))


def _without_unasked(result: Result, old: RunDocuments, new: RunDocuments) -> RunDocuments:
    """Leave out the files that the recorded catalog names too, but for which the agent did not ask: the resource was
    skipped."""
    asked = {each for use in old.files for each in _and_above(use.name)}
    sources = fetching.sources_of(old.catalog) if old.catalog else ()
    unasked = {name for source in sources for name in source.names} - asked
    left = [use for use in new.files if not unasked.intersection(_and_above(use.name))]
    result.unasked += sum(use.metadata is not None for use in new.files) - sum(use.metadata is not None for use in left)
    return dataclasses.replace(new, files=left)


def _and_above(name: str) -> list[str]:
    """A file and the directories in which it is, from the top."""
    parts = name.split("/", DEEPEST)[:DEEPEST]
    return [name, *accumulate(parts, lambda above, part: f"{above}/{part}")]


def _without_noise(how: How, result: Result, name: str, found: Comparison, sides: Sides) -> Comparison:
    noise = Noise()
    for one, other in _TWICE:
        if one not in sides or other not in sides:
            continue
        if sides[one].without_catalog or sides[other].without_catalog:
            result.unmeasured.append(name)  # the old master: without a catalog of the new one nothing is compared
            continue
        noise.learn(comparison.answers(sides[one], sides[other], how.choices, with_files=False).differences)
    if not noise:
        return found
    left = []
    for difference in found.differences:
        if noise.covers(difference):
            result.noise.setdefault(difference.address, []).append(name)
        else:
            left.append(difference)
    result.noisy.append(name)
    return dataclasses.replace(found, differences=left)


def _add_time(result: Result, name: str, before: RunDocuments, compiled: list[list[Exchange]]) -> None:
    """Add how long a catalog took: of two compiles the faster, for the first may be of a cold master."""
    recorded = [made.duration for made in before.requests if made.kind is Kind.CATALOG]
    found = [catalog for made in compiled if (catalog := answered.catalog_of(made)) is not None]
    if recorded and found:
        took = min(max(0.0, catalog.ended - catalog.time) for catalog in found)
        result.times.append(Time(name, recorded[-1], took, found[0].time))
    if before.run.master_version:
        result.old_versions.add(before.run.master_version)


def _add_logs(result: Result, before: RunDocuments, after: RunDocuments, exchanges: list[Exchange]) -> None:
    found = answered.catalog_of(exchanges)
    if found is not None:
        both = (before, after)
        masks = Masks([side.catalog for side in both if side.catalog], [side.facts for side in both if side.facts])
        result.logs.add(after, found, masks)


def _named(of: RunDocuments) -> list[FileUse]:
    """The files that a catalog names: not plugins."""
    return [use for use in of.files if use.asking in _NAMED]


# -- Deferred values: before Puppet 8.10 an answer of v4 has a text in the place of each, an agent gets them as they are

_DEFERRED_TEXT = "Deferred("


def with_deferred(recorded: Catalog, answer: Catalog) -> tuple[Catalog, int]:
    """Return a catalog with the recorded Deferred values in the place of their texts, and how many: what is in them is
    not compared."""
    known = {key(resource.ref): resource.parameters for resource in recorded.resources}
    resources, count = [], 0
    for resource in answer.resources:
        parameters, found = _restored(known.get(key(resource.ref), {}), resource.parameters, 0)
        resources.append(msgspec.structs.replace(resource, parameters=parameters) if found else resource)
        count += found
    return (msgspec.structs.replace(answer, resources=resources), count) if count else (answer, 0)


def _restored(before: Any, after: Any, depth: int) -> tuple[Any, int]:
    """A value with those of a recorded one, and how many."""
    if depth > MAX_DEPTH:
        return after, 0
    match before, after:
        case {"__ptype": "Sensitive"}, _ if not (isinstance(after, dict) and after.get(MARK) == "Sensitive"):
            return _restored(before.get(VALUE), after, depth + 1)  # v4 lists the parameter as sensitive instead
        case {"__ptype": "Deferred"}, str() if after.startswith(_DEFERRED_TEXT):
            return before, 1
        case dict(), dict():
            pairs = {name: _restored(before.get(name), value, depth + 1) for name, value in after.items()}
            return {name: value for name, (value, _) in pairs.items()}, sum(found for _, found in pairs.values())
        case list(), list() if len(before) == len(after):
            items = [_restored(one, other, depth + 1) for one, other in zip(before, after, strict=True)]
            return [value for value, _ in items], sum(found for _, found in items)
    return after, 0
