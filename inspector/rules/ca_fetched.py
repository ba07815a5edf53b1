"""B01, B02 and B47: how and when agents download the CA bundle."""

from itertools import pairwise

from inspector.rules.kit import *


@rule(
    "B01",
    Severity.NOTICE,
    at=(Kind.CA_BUNDLE,),
    title="CA fetched over an unverified connection",
    fix=(
        on_node(
            "put the CA bundle there before its first run, as ssldir/certs/ca.pem",
            only_if="others could intercept a node's first run (otherwise nothing is to be done)",
        ),
        on_node(
            "or pin it",
            "puppet config set ca_fingerprint <SHA-256 of the PEM file> --section agent",
            only_if="the agent is of version 6 or later",
        ),
    ),
    source="docs/protocol.md#ca-download; docs/protocol.md#verification-by-request; "
    "puppet 7.23.0 lib/puppet/ssl/state_machine.rb",
    good=lambda: [talk(catalog(), report()), talk(ca(refresh=True), catalog(), report())],
    bad=lambda: [talk(ca(), catalog(), report())],
)
def ca_fetched_unverified(case: ExchangeCase) -> Iterator[Statement]:
    """A node without ca.pem downloads it without verifying the server, and trusts it from then on. An attacker on the
    network at that moment can become the node's CA. Puppet bootstraps this way by default, so that every node's first
    run has it; a site can choose another way."""
    if case.kind is not Kind.CA_BUNDLE or case.status != 200 or case.exchange.agent.peer_chain:
        return
    if case.exchange.request.header("if-modified-since") is None:
        yield Statement(
            "the CA bundle was downloaded without verifying the server", at=places.tls("presented by the agent")
        )


@rule(
    "B02",
    Severity.WARNING,
    visible=Visible.CONSEQUENCE,
    title="CA downloaded again by a node that already had it",
    fix=(
        on_node("see which ssldir is used, as the user that runs the agent",
                "puppet config print ssldir --section agent"),
        advice("enrol it as a new node if the CA then refuses its request; that is a finding of its own",
               only_if="the disk was reset"),
    ),
    source="docs/protocol.md#ca-download",
    good=lambda: [
        talk(ca(), crl(), csr(), issued(), catalog(), report(),
             wait(1800), ca(refresh=True), catalog(uuid="a-2"), report(uuid="a-2")),
    ],
    bad=lambda: [talk(catalog(), report(), wait(1800), ca(), crl(), catalog(uuid="a-2"), report(uuid="a-2"))],
)  # fmt: skip
def ca_fetched_again(case: RunCase) -> Iterator[Statement]:
    """This node presented its certificate in an earlier run, so it had the CA. Now it downloads the CA like a new node:
    its ssldir was lost, emptied or restored, or the agent runs as another user, with a separate ssldir. The download is
    not verified: the node trusts any CA it receives."""
    run = case.run
    presented = case.ledger.known(run.certname).first_presented
    if run.tool or presented is None or not run.seqs or presented[0] >= run.seqs[0]:
        return
    download = next((ca_answer for ca_answer in run.cas if ca_answer.status == 200 and not ca_answer.refresh), None)
    if download:
        yield Statement(
            f"{run.certname} downloads the CA like a new node, but presented its certificate on {utc(presented[1])}",
            (presented[0], download.seq),
            at=(places.certificate("signed by"), places.tls("presented by the agent")),
        )


def _runs(refreshes: str, pause: float = 1800) -> list[ExamplePart]:
    """Runs of an agent: an ``r`` for each that asks for a newer CA bundle, a point for others."""
    parts: list[ExamplePart] = []
    for number, refreshed in enumerate(refreshes):
        asks = [altered(ca(refresh=True, status=304), leg={"id": f"ca-{number}"})] if refreshed == "r" else []
        parts += [*asks, catalog(uuid=f"a-{number}"), report(uuid=f"a-{number}"), wait(pause)]
    return parts


@rule(
    "B47",
    Severity.NOTICE,
    title="CA bundle asked for again in every run",
    fix=(
        on_node("see how often it is to ask", "puppet config print ca_refresh_interval --section agent"),
        advice("nothing breaks; if it is a day, this agent does not remember that its copy is current when the master "
               "answers 304, or cannot write the file: upgrade it, or see who owns the file"),
        on_node("save the requests of a day", 'touch "$(puppet config print localcacert)"'),
    ),
    source="docs/protocol.md#ca-download",
    good=lambda: [
        talk(*_runs("r..r"), version="8.10.0", master_version="8.10.0"),
        talk(*_runs("rrrr", DAY), version="8.10.0", master_version="8.10.0"),
    ],
    bad=lambda: [talk(*_runs("rrr"), version="8.10.0", master_version="8.10.0")],
)  # fmt: skip
def ca_refreshed_each_run(case: RunCase, *, runs: float = 3, hours: float = 12) -> Iterator[Statement]:
    """The agent asks for a newer CA bundle in each of its runs, though once a day is its default. It notes when it
    asked by the time of its own file: if an answer that nothing changed (304) leaves that unchanged, or the file cannot
    be written, the agent asks again every time."""
    run = case.run
    refresh = next((answer for answer in run.cas if answer.refresh), None)
    if refresh is None:
        return
    before = case.ledger.fleet.before(run)[::-1]
    series = before[: in_a_row(past.ca_refreshed is not None for past in before)]
    began = [run.started, *(past.started for past in series)]
    pauses = [later - earlier for later, earlier in pairwise(began)]
    if len(series) + 1 >= runs and max(pauses, default=0.0) < hours * 3600:
        seqs = [past.ca_refreshed for past in series[::-1] if past.ca_refreshed is not None]
        yield Statement(
            f"the agent asked for a newer CA bundle in {len(series) + 1} runs one after another, "
            f"within {lasting(began[0] - began[-1])}",
            (*seqs, refresh.seq),
            at=places.header("request", "If-Modified-Since"),
        )
