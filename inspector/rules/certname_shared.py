from inspector.rules.kit import *

_LONG = (plugins(), catalog(), metadata("modules/demo/a"), wait(10), metadata("modules/demo/b"), wait(10), report())


@rule(
    "B46",
    Severity.ERROR,
    title="two agents share a certname",
    fix=(
        on_node("give each host its own certname", "puppet config set certname <name> --section main"),
        on_ca("remove the shared certificate and what waits to be signed", "{clean}",
              destroys="both, and revokes the certificate"),
        on_node("enrol each of them", "{reset}", destroys="its key and its certificate"),
        on_ca("sign their new names, unless the CA autosigns"),
    ),
    source="docs/protocol.md#locks; docs/protocol.md#keys",
    explains=(*ANOTHER_KEY, "B17", "R17", "T17", "B39", "B41"),
    good=lambda: [
        together(talk(catalog(), report()),
                 talk(catalog(uuid="a-2"), report(uuid="a-2"), address="192.0.2.99", after=1800)),
        together(talk(ca(), crl(), csr(), not_issued(), wait(60), csr(status=400, text=REQUESTED), not_issued()),
                 talk(ca(), crl(), csr(), not_issued(), certname="node2.example", after=30)),
    ],
    bad=lambda: [
        together(talk(*_LONG), talk(catalog(uuid="a-2"), wait(10), report(uuid="a-2"), address="192.0.2.8", after=9)),
        together(
            talk(ca(), crl(), csr(), not_issued(), wait(120), csr(status=400, text=REQUESTED), not_issued()),
            talk(ca(), crl(), csr(key="clone", status=400, text=REQUESTED), not_issued(), address="192.0.2.8",
                 after=60),
        ),
    ],
)  # fmt: skip
def certname_shared(case: RunCase) -> Iterator[Statement]:
    """Two hosts use the same certname: a virtual machine was cloned, or a certname was assigned twice. With a copied
    key, both get the same node's catalog and overwrite each other's reports; with separate keys, one of them never gets
    a certificate. An address that changes between runs is not evidence; two addresses in use during the same run
    are."""
    run = case.run
    if run.tool or not run.certname or not run.key:
        return
    yield from _at_once(case, run)
    yield from _taking_turns(case, run)


def _at_once(case: RunCase, run: Run) -> Iterator[Statement]:
    """Overlapping runs of one name from two addresses."""
    if not run.address or not run.authenticated:
        return
    previous = case.ledger.fleet.before(run)
    # A run that is silent while it applies its catalog is closed when another host of this name reports. This run
    # may be the rest of such a run: both have one transaction_uuid.
    parts = [
        earlier for earlier in previous if run.transaction_uuid and earlier.transaction_uuid == run.transaction_uuid
    ]
    start = min([run.started, *(earlier.started for earlier in parts)])
    for other in previous:
        if other in parts or other.address in (None, run.address) or other.key is None:
            continue
        if other.started < run.ended and start < other.ended:
            keys = "with the same key: the key was copied" if other.key == run.key else "each with its own key"
            first, second = sorted((str(other.address), run.address))
            yield Statement(
                f"{first} and {second} run as {run.certname} at the same time, {keys}",
                (parts[0].seqs[0] if parts else run.seqs[0], other.seqs[0]),
                at=(places.tls(f"address: {run.address}"), places.tls("address: ")),
            )


def _taking_turns(case: RunCase, run: Run) -> Iterator[Statement]:
    """A key that is used again after another key was used: a host never returns to a lost key."""
    history = case.ledger.known(run.certname)
    request = history.csrs.get(run.key or "") if run.csrs else None
    if request is None:
        return
    hosts = "two hosts, or two ssldirs on one host (the agent was started by another user)"
    for other in history.csrs.values():
        if other is not request and other.time < request.last_time and request.time < other.last_time:
            seqs = tuple(sorted({request.seq, other.seq, request.last_seq}))
            yield Statement(
                f"signing requests for {run.certname} alternate between two keys: {hosts}",
                seqs,
                at=(places.csr("key: "), places.REQUEST_LINE),
            )
            return
    presented = history.presented
    if (
        presented
        and presented.certificate.key != request.key
        and presented.time < request.last_time
        and request.time < presented.last_time
    ):
        yield Statement(
            f"{run.certname} requests a certificate with one key while another key is in use: {hosts}",
            (presented.seq, request.seq),
            at=(places.csr("key: "), places.tls("presented by the agent")),
        )
