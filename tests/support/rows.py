"""Tables of cheap cases that one test goes through: thousands of tests of a millisecond cost more than what they do."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def each_row(
    names: str | tuple[str, ...], rows: Iterable[object]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call a test with each row of a table, as ``pytest.mark.parametrize`` does, in one pass; name the rows that fail.

    Fixtures are the same for all rows.
    """
    columns = (names,) if isinstance(names, str) else names
    table = list(rows)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def run(**fixtures: object) -> None:
            failed: list[BaseException] = []
            for row in table:
                values = (row,) if isinstance(names, str) else row
                try:
                    test(**fixtures, **dict(zip(columns, values, strict=True)))  # type: ignore[call-overload]
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - whatever fails is reported
                    error.add_note(f"in the row {row!r}"[:500])
                    failed.append(error)
            if failed:
                raise BaseExceptionGroup(f"{len(failed)} of {len(table)} rows of {test.__name__}", failed)

        others = [each for name, each in signature.parameters.items() if name not in columns]
        run.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return run

    return decorate
