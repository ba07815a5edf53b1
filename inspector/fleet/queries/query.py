"""What a named query is, and the parts that several have.

Values are parameters of prepared statements, never part of the SQL. ``$at`` is when the recordings end, unless the user
sets it: what was recorded last year is answered as of then.
"""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from inspector import clocks
from inspector.errors import InspectorError
from inspector.fleet.statements import AGENTS

if TYPE_CHECKING:
    import datetime
    from collections.abc import Iterable

    type Value = int | float | str | datetime.datetime

MOST = 1_000_000
"""The largest number that a parameter may be."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value that the user may set."""

    name: str
    """What --set takes; $name in the statement."""
    default: int | float | str | None
    """Its value if it is not set; a value has its type. null: when the recordings end, and a value is a time."""
    meaning: str

    @property
    def written(self) -> str:
        """Its default as a user writes it."""
        return "TIME" if self.default is None else str(self.default)

    def read(self, given: str) -> Value:
        """Read a value as it was given. Raises InspectorError."""
        example = "2027-03-02T07:00:00Z" if self.default is None else self.default
        try:
            return self._value(given)
        except (ValueError, OverflowError) as error:
            raise InspectorError(
                f"{given!r} is no value of {self.name} ({self.meaning}).", f"For example: {self.name}={example}"
            ) from error

    def _value(self, given: str) -> Value:
        if self.default is None:
            return _naive(clocks.iso(given))
        value = type(self.default)(given)
        if not isinstance(value, str) and not (math.isfinite(value) and 0 <= value <= MOST):
            raise ValueError
        return value


class DescribedQuery(msgspec.Struct):
    """A named query."""

    name: str
    """What --query takes."""
    question: str
    """What it answers."""
    parameters: tuple[Parameter, ...]
    statement: str
    """Its SQL."""


@dataclass(frozen=True, slots=True)
class Query:
    """A question, and the statement that answers it."""

    name: str
    question: str
    sql: str
    parameters: tuple[Parameter, ...] = ()
    judged: bool = False
    """Whether it asks for the states of nodes after runs."""

    def __str__(self) -> str:
        return self.name

    def values(self, settings: Iterable[str], end: datetime.datetime | None) -> dict[str, Value]:
        """Return the values of its parameters: those of ``NAME=VALUE``, and defaults; ``end`` is when the recordings
        end (UTC). Raises InspectorError."""
        known = {parameter.name: parameter for parameter in self.parameters}
        last = end or _naive(0)
        found = {name: last if each.default is None else each.default for name, each in known.items()}
        for setting in settings:
            name, equals, given = setting.partition("=")
            if not equals or name not in known:
                raise InspectorError(f"{setting!r} sets nothing of the query {self.name}.", self._settable())
            found[name] = known[name].read(given)
        return found

    def _settable(self) -> str:
        names = ", ".join(f"{each.name}={each.written}" for each in self.parameters)
        return f"It has these parameters: {names}." if names else "It has no parameters."

    def described(self) -> DescribedQuery:
        """Return it for JSON."""
        return DescribedQuery(self.name, self.question, self.parameters, inspect.cleandoc(self.sql))


def _naive(time: float) -> datetime.datetime:
    """A time as DuckDB takes it for a TIMESTAMP."""
    return clocks.date(time).replace(tzinfo=None)


# -- parts of statements --------------------------------------------------------------------------------------

AT = Parameter("at", None, "the time for which the answer is given")
DAYS = Parameter("days", 30, "how many days before that are considered")
TOP = Parameter("top", 50, "how many rows at most")
WINDOW = (
    "time > $at - to_days($days::INTEGER) AND time <= $at "
    "AND date >= ($at - to_days($days::INTEGER))::DATE AND date <= $at::DATE"
)
"""The rows of some days; ``date`` says which files are read at all."""
LATEST = f"""
            SELECT certname, arg_max({{'outcome': outcome, 'cause': cause, 'reason': reason}}, time) AS run,
                   arg_max({{'capture': capture, 'run': facts}}, time) FILTER (facts IS NOT NULL) AS facts,
                   arg_max(agent_version, time) AS agent_version, arg_max(master_version, time) AS master_version,
                   arg_max(environment, time) AS environment, arg_max(address, time) AS address,
                   arg_max(checksum_type, time) AS checksum_type, arg_max(noop, time) AS noop,
                   count(*) AS runs, max(time) AS last
            FROM runs WHERE {AGENTS} AND time <= $at GROUP BY certname
        """
"""What is known of each node at last: `arg_max` passes over what is null, a value of several parts does not. What a
query does not use is not read."""


def seconds(expression: str) -> str:
    """Return the expression of a duration with milliseconds."""
    return f"round(({expression})::DOUBLE, 3)"


def share_of(share: float, column: str, condition: str = "") -> str:
    """Return the expression of the duration that a share of all, or of those of a condition, are not above.

    Approximately: its memory does not depend on how many they are.
    """
    only = f" FILTER ({condition})" if condition else ""
    return seconds(f"approx_quantile({column}, {share}){only}")
