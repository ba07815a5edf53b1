from inspector.rules.kit import *

PAGE = b"<html><head><title>502 Bad Gateway</title></head></html>"


@rule(
    "S15",
    Severity.ERROR,
    at=(*RUN, *BOOTSTRAP),
    title="HTML page instead of a master's answer",
    fix=(
        on_node("see whether a web proxy is set", "puppet config print http_proxy_host --section agent"),
        on_proxy("ask the master directly", "curl -k https://<master>:8140/status/v1/simple"),
        advice(
            "find out which server answered: a load balancer without a healthy master behind it, a web proxy, a login "
            "page"
        ),
    ),
    source="docs/protocol.md#other-error-answers",
    explains=(*NOT_COMPILED, "S04", "S06", "S09", "P01"),
    without_catalog=NO_CATALOG_NO_REPORT,
    event=True,
    good=lambda: [
        talk(plugins(), catalog(), asked("file_metadata/modules/demo/a", status=404, text="Not Found: a"), report())
    ],
    bad=lambda: [
        talk(
            plugins(),
            asked("catalog/node1.example", PAGE, method="POST", status=502, media="text/html"),
            report(result="failed"),
        )
    ],
)
def html_answer(case: ExchangeCase) -> Iterator[Statement]:
    """The answer is an HTML page, so it was not written by a master but by something in between: a load balancer
    without a healthy master, a web proxy, or the bare web server for an unknown path."""
    match, answer = case.step.match, case.step.response
    page = answer.message if isinstance(answer, d.ErrorDocument) and answer.html else None
    if page is None and media_type(case) not in ("text/html", "application/xhtml+xml"):
        return
    if match is None or (match.dialect == "legacy" and case.status == 404):  # S18
        return
    title = page.removeprefix(d.HTML).removeprefix(": ") if page else ""
    yield Statement(f"{case.endpoint} was answered {case.status} with a web page{f': {brief(title)}' if title else ''}")
