"""S22."""

from collections.abc import Iterator

from inspector.model import Severity, Visible
from inspector.protocol import decode
from inspector.protocol import documents as d
from inspector.rules import Case, On, rule
from inspector.runs.examples import asked, catalog, plugins, report, talk

FRAME = "/usr/lib/ruby/vendor_ruby/puppet/network/http/api/indirected_routes.rb:42:in `do_find'"
WARNED = "The 'stacktrace' property is deprecated and will be removed in a future version of Puppet."


def _answer(trace: list[str]) -> dict[str, object]:
    return {"message": "Server Error: x", "issue_kind": "RUNTIME_ERROR", "stacktrace": trace}


@rule(
    "S22",
    Severity.WARNING,
    On.EXCHANGE,
    refused=True,
    visible=Visible.WIRE,
    title="the master shows its stack trace",
    remedy="Upgrade the master: since 4.10 errors carry no frames. Until then let only nodes of yours reach port 8140.",
    source="docs/protocol.md#stack-traces",
    good=lambda: [
        talk(plugins(), catalog(), asked("file_metadata/modules/demo/a", _answer([WARNED]), status=404), report(),
             version="4.10.9", master_version="4.10.9"),
    ],
    bad=lambda: [
        talk(plugins(), catalog(), asked("file_metadata/modules/demo/a", _answer([FRAME]), status=404), report(),
             version="4.3.2", master_version="4.3.2"),
    ],
)  # fmt: skip
def stack_trace_shown(case: Case) -> Iterator[str]:
    """With its error the master sent where in its code it happened. That tells whoever can ask which versions of
    what it runs, and where; it helps nobody who administers nodes."""
    answer, response = case.step.response, case.exchange.response
    if not isinstance(answer, d.ErrorDocument) or not answer.stacktrace or response is None:
        return
    # 4.10 sends a list with one warning in it, and no frames.
    _, _, trace = (decode.content(response) or b"").partition(b'"stacktrace"')
    if b".rb:" in trace:
        yield "errors of the master carry its stack trace"
