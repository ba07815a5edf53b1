from inspector.protocol import x509
from inspector.rules.fixes import Fix
from inspector.rules.kit import *
from inspector.rules.server_name_mismatch import fix, name_in
from inspector.rules.trust import leaf
from inspector.runs.run import Run

_WRONG = {"sni": "puppet.wrong.example"}
_HOST = {"Host": "puppet.wrong.example:8140"}


def _fix(run: Run) -> Fix | None:
    return fix(name_in(leaf([run.presented]))) if run.presented else None


@rule(
    "T24",
    Severity.ERROR,
    visible=Visible.CONSEQUENCE,
    title="the agent stopped, and the master's name is not in its certificate",
    fix=fix("<name>"),
    instead=_fix,
    source="docs/protocol.md#verification-by-agents; docs/protocol.md#bootstrap-up-to-5",
    good=lambda: [
        talk(altered(ca(), leg=_WRONG), crl(), csr(), issued(), catalog(), report()),
        talk(altered(ca(), leg=_WRONG), altered(not_issued(), leg=_WRONG), version="5.5.22"),
    ],
    bad=lambda: [
        talk(altered(ca(), leg=_WRONG)),
        talk(*(altered(part, headers=_HOST, leg={"sni": None}) for part in (ca(), csr(), issued())), version="5.5.22"),
    ],
    also=("B01", "B03", "B45"),
)
def stopped_at_another_name(case: RunCase) -> Iterator[Statement]:
    """The agent downloaded what it gets without verifying the master, and stopped when it had to verify it. It called
    the master by a name that is not among the names in the certificate presented to it. Agents that verify the name
    only after the handshake close the connection without an alert; imported files do not contain alerts at all."""
    run = case.run
    if run.outcome != "unfinished" or not run.bootstrapping or run.handshakes or not run.server or not run.presented:
        return
    # Up to 6.3 an agent verifies nothing before it has its certificate; later ones verify after the CA's download.
    verified = run.certificate is not None if run.old_engine else bool(run.cas and not run.csrs and not run.crls)
    server = leaf([run.presented])
    if verified and server is not None and not x509.names_match(server, run.server):
        names = some([name.partition(":")[2] for name in server.alt_names] or [server.subject])
        yield Statement(
            brief(f"the agent called the master '{run.server}' and stopped; its certificate is for {names}"),
            at=(places.tls(f"SNI: {run.server}"), places.tls("presented to the agent")),
        )
