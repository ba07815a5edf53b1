"""What a request asks for, as far as it decides the answer: equal questions have equal answers.

Facts, transaction ids and the like are left out. Two dialects, or GET and POST of one find, ask the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl

from inspector.protocol import endpoints
from inspector.protocol.bodies import content_type
from inspector.protocol.kinds import Kind
from inspector.text import beginning

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from inspector.model import Request

IRRELEVANT = frozenset({"environment", "configured_environment", "transaction_uuid", "fail_on_404"})
"""Parameters that do not decide an answer; the environment is a field of its own."""
UNLIMITED = {("max_files", "0"), ("max_files", "-1")}
"""Parameters that agents up to 6.13 leave out."""
EVERYWHERE = (Kind.REPORT, Kind.FACTS, Kind.BACKUP)
"""Requests that mean the same in every environment."""
_FORM = 65_536
"""The largest form that is looked at for parameters."""
_TEXT = 200


class Question(NamedTuple):
    """What a request asks for."""

    endpoint: str
    method: str
    subject: str
    """The certname, or the path of a file or of a list."""
    environment: str
    parameters: frozenset[tuple[str, str]]

    def __str__(self) -> str:
        where = f" in {self.environment}" if self.environment else ""
        return f"{self.method} {self.endpoint} {beginning(self.subject, _TEXT)}".rstrip() + where


def question_of(request: Request) -> Question | None:
    """Return the question of a request; None if it is none of Puppet's."""
    match = endpoints.match(request.method, request.target)
    if match is None:
        return None
    kind, parameters = match.endpoint.kind, [*match.parameters]
    if request.method == "POST" and kind is not Kind.CATALOG:
        parameters += _form(request)
    environment = match.environment or dict(parameters).get("environment", "")
    everywhere = kind in EVERYWHERE
    return Question(
        match.endpoint.name,
        "GET" if request.method == "POST" and "GET" in match.endpoint.methods and kind is not Kind.CATALOG
        else request.method,
        match.certname or match.key or "",
        "" if everywhere else environment,
        frozenset() if everywhere or kind is Kind.CATALOG else frozenset(_deciding(parameters)),
    )  # fmt: skip


def _form(request: Request) -> list[tuple[str, str]]:
    if content_type(request) != "application/x-www-form-urlencoded" or len(request.body) > _FORM:
        return []
    return parse_qsl(request.body.decode("utf-8", "replace"), keep_blank_values=True)


def _deciding(parameters: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for name, value in parameters:
        if name not in IRRELEVANT and (name, value) not in UNLIMITED:
            yield name, value


def closest(asked: Question, recorded: Iterable[Question]) -> Question | None:
    """Return the recorded question that is most like another one; None if there is none."""
    return max(recorded, key=lambda one: _likeness(asked, one), default=None)


def _likeness(asked: Question, one: Question) -> tuple[bool, bool, int, bool, bool, int]:
    return (
        one.endpoint == asked.endpoint,
        one.subject == asked.subject,
        _common(asked.subject, one.subject),
        one.environment == asked.environment,
        one.method == asked.method,
        -len(one.parameters ^ asked.parameters),
    )


def _common(one: str, other: str) -> int:
    """Count the parts that two paths begin and end with in common."""
    ones, others = one.split("/"), other.split("/")
    return _shared(ones, others) + _shared(ones[::-1], others[::-1])


def _shared(ones: list[str], others: list[str]) -> int:
    count = 0
    for one, other in zip(ones, others, strict=False):
        if one != other:
            break
        count += 1
    return count


def differences(asked: Question, recorded: Question) -> list[str]:
    """Return in what a question differs from a recorded one, each in words."""
    found = []
    if asked.endpoint != recorded.endpoint:
        return [f"the run has no request of the kind {asked.endpoint}"]
    if asked.method != recorded.method:
        found.append(f"method {asked.method} instead of {recorded.method}")
    if asked.subject != recorded.subject:
        found.append(f"{beginning(asked.subject, _TEXT)} instead of {beginning(recorded.subject, _TEXT)}")
    if asked.environment != recorded.environment:
        found.append(f"environment {asked.environment or 'none'} instead of {recorded.environment or 'none'}")
    if asked.parameters != recorded.parameters:
        more = _listed(asked.parameters - recorded.parameters)
        less = _listed(recorded.parameters - asked.parameters)
        found.append(f"parameters {more or 'none'} instead of {less or 'none'}")
    return found


def _listed(parameters: frozenset[tuple[str, str]]) -> str:
    return beginning(", ".join(f"{name}={value}" for name, value in sorted(parameters)), _TEXT)
