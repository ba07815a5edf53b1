from inspector.model import REHEARSAL
from inspector.rules.kit import *


@rule(
    "R22",
    Severity.NOTICE,
    title="requests from a client that is not an agent",
    fix=(
        advice(
            "identify it by address and certificate", only_if="you do not know the tool (otherwise nothing is wrong)"
        ),
        on_master(
            "see in auth.conf what it may request", only_if="you do not know the tool (otherwise nothing is wrong)"
        ),
    ),
    source="docs/protocol.md#request-headers",
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [talk(altered(catalog(), headers={"X-Puppet-Version": None, "User-Agent": "curl/7.88.1"}))],
)
def unknown_client(case: RunCase) -> Iterator[Statement]:
    """A client that is not a Puppet agent sent requests that agents send: curl, a monitoring check, a script with an
    agent's certificate. Its requests are not judged as an agent's run."""
    run = case.run
    if run.tool and run.tool != REHEARSAL:
        seqs = tuple(dict.fromkeys((run.seqs[0], run.seqs[-1])))
        yield Statement(
            f"{cut(run.tool, 80)} sends requests that agents send",
            seqs,
            at=(places.header("request", "User-Agent"), places.REQUEST_LINE),
        )
