from inspector.protocol import decode
from inspector.rules.kit import *

FRAME = "/usr/lib/ruby/vendor_ruby/puppet/network/http/api/indirected_routes.rb:42:in `do_find'"
WARNED = "The 'stacktrace' property is deprecated and will be removed in a future version of Puppet."


def _answer(trace: list[str]) -> dict[str, object]:
    return {"message": "Server Error: x", "issue_kind": "RUNTIME_ERROR", "stacktrace": trace}


@rule(
    "S22",
    Severity.WARNING,
    refused=True,
    title="the master reveals its stack trace",
    fix=(
        on_master("upgrade it: from 4.10 on errors contain no stack frames"),
        advice("until then, let only your own nodes reach port 8140"),
    ),
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
def stack_trace_shown(case: ExchangeCase) -> Iterator[Statement]:
    """With its error the master sent the place in its own code where the error occurred. That shows every client which
    software and versions the master runs, and where; it does not help the node's administrator."""
    answer, response = case.step.response, case.exchange.response
    if not isinstance(answer, d.ErrorDocument) or not answer.stacktrace or response is None:
        return
    # 4.10 sends a list with one warning, and no frames.
    _, _, trace = (decode.content(response) or b"").partition(b'"stacktrace"')
    if b".rb:" in trace:
        yield Statement("the master's errors contain stack traces", at=places.body("response", "stacktrace"))
