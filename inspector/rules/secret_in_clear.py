from inspector.privacy import patterns
from inspector.rules.kit import *

_KEYS = {
    "a private key": regex.compile(
        r"-----BEGIN (?:(?:[A-DF-Z]|E[A-MO-Z])[A-Z]* ){0,2}PRIVATE KEY-----\s*[A-Za-z0-9+/=]{16}"
    ),
    "an AWS access key": patterns.AWS_KEY,
    "a GitHub token": patterns.GITHUB_TOKEN,
    "a GitLab token": patterns.GITLAB_TOKEN,
}
"""Patterns that match only secrets."""
_SHORTEST = 20
"""Length in characters of the shortest of them."""
_PASSWORD = regex.compile(
    r"(?im)^(?P<diff>[+-])?(?:.*?[^a-z0-9\n])??(?:[a-z0-9]+[_-]){0,4}(?:password|passwd|passphrase|secret_?key|api_?key|"
    r"auth_?token)['\"]?[ \t]*(?:(?P<sure>=>|=)|:)[ \t]*(?P<quote>['\"]?)(?P<value>[^\s'\",;]{6,})"
)
_NO_SECRETS = regex.compile(
    r"(?i)[$%{<\[(*/@&].*|(?:true|false|undef|null|none|nil)\b.*|sensitive.*|redacted.*|changed.*|required.*"
)
"""Values that may follow ``password =`` without being a password: references, masks, paths, common words."""
_QUIET = frozenset({"debug", "info"})


@rule(
    "P14",
    Severity.ERROR,
    at=(Kind.CATALOG, Kind.REPORT),
    otherwise="warning for a value that only looks like a password, and for secrets in a catalog",
    title="secret in plain text",
    fix=(
        advice("treat it as compromised and change it"),
        advice("wrap the value in Sensitive(...) in the manifest"),
        advice("set `show_diff => false` for a file that contains it, and `logoutput => false` for an exec"),
    ),
    source="docs/protocol.md#sensitive-values",
    good=lambda: [
        talk(
            plugins(),
            catalog(resources=[{
                "type": "File", "title": "/etc/app.key", "sensitive_parameters": ["content"],
                "parameters": {"content": f"-----BEGIN PRIVATE KEY-----\n{'MIIEvQ' * 20}\n"},
            }]),
            report(result="changed", logs=[
                _line("--- a\n+++ b\n-password = $OLD\n+password = [redacted]\n+password_file=/etc/x"),
                _line("changed password"), _line("password: authentication failed"),
                _line("-----BEGIN PUBLIC KEY-----\nMIIEvQMIIEvQMIIEvQ"),
            ]),
        ),
    ],
    bad=lambda: [
        talk(plugins(), catalog(), report(result="changed", logs=[
            _line(f"content changed\n+-----BEGIN RSA PRIVATE KEY-----\n{'MIIEvQ' * 20}"),
        ])),
        talk(plugins(), catalog(), report(result="changed", logs=[
            _line("--- a\n+++ b\n-db_password = horse-battery\n+db_password = correct-staple"),
        ])),
        talk(
            plugins(),
            catalog(resources=[{
                "type": "File", "title": "/etc/app.key",
                "parameters": {"content": f"-----BEGIN PRIVATE KEY-----\n{'MIIEvQ' * 20}\n"},
            }]),
            report(),
        ),
    ],
)  # fmt: skip
def secret_in_clear(case: ExchangeCase) -> Iterator[Statement]:
    """A secret is readable in a place where it is stored: in the log of a report (a diff, the output of a command), or
    in a catalog in a parameter that is not marked as sensitive, so that its changes appear in reports. A value marked
    as sensitive is also sent unmasked, but only from master to agent; this rule does not report it. A value that only
    looks like a password is a warning: check it."""
    request, answer = case.step.request, case.step.response
    if isinstance(request, d.Report):
        yield from _of_report(request)
    elif isinstance(answer, d.Catalog):
        yield from _of_catalog(answer)


def _of_report(report: d.Report) -> Iterator[Statement]:
    for line in report.logs:
        for secret in _keys(line.message):
            yield Statement(
                f"{secret} is in the report, in the log of {_masked(line.source)}",
                at=places.meaning(_masked(line.source), "log"),
            )
        if line.level.lstrip(":") not in _QUIET and _password(line.message):
            yield Statement(
                f"what looks like a password is in the report, in the log of {_masked(line.source)}",
                severity=Severity.WARNING,
                at=places.meaning(_masked(line.source), "log"),
            )
    for ref, status in report.resource_statuses.items():
        for event in status.events or []:
            for value in (event.previous_value, event.desired_value):
                for secret in _keys(value) if isinstance(value, str) else ():
                    yield Statement(
                        f"{secret} is in the report, in an event of {_masked(ref)}",
                        at=places.meaning(_masked(ref), "events"),
                    )


def _of_catalog(catalog: d.Catalog) -> Iterator[Statement]:
    for resource in catalog.resources:
        for name, value in resource.parameters.items():
            if isinstance(value, str) and name not in resource.sensitive_parameters:
                for secret in _keys(value):
                    yield Statement(
                        f"{secret} is in the catalog and is not marked as sensitive: {_masked(resource.ref)}, "
                        f"parameter {cut(name, 40)}",
                        severity=Severity.WARNING,
                        at=places.meaning(_masked(resource.ref), "catalog"),
                    )


def _keys(text: str) -> list[str]:
    # Thousands of lines and parameters pass here: a cheap test first, regular expressions for few of them.
    if len(text) < _SHORTEST or not (
        "PRIVATE KEY-----" in text
        or "AKIA" in text
        or "ASIA" in text
        or "glpat-" in text
        or "ghp_" in text
        or "gho_" in text
        or "ghu_" in text
        or "ghs_" in text
        or "ghr_" in text
    ):
        return []
    return [secret for secret, pattern in _KEYS.items() if pattern.search(text)]


def _password(text: str) -> bool:
    if "=" not in text and ":" not in text:
        return False
    lowered = text.lower()
    if "pass" not in lowered and "key" not in lowered and "token" not in lowered:
        return False
    return any(
        (match["sure"] or match["diff"]) and not _NO_SECRETS.fullmatch(match["value"]) and len(set(match["value"])) > 1
        for match in _PASSWORD.finditer(text)
    )


def _masked(text: str | None) -> str:
    """The name for the message; a name that contains a secret is not repeated."""
    if text and (_password(text) or _keys(text)):
        return "a resource whose name holds it"
    return cut(text or "the agent", 100)


def _line(message: str) -> dict[str, str]:
    return {"level": "notice", "source": "/Stage[main]/Main/File[/etc/app.conf]/content", "message": message}
