from inspector.protocol.kinds import Access
from inspector.rules.kit import *
from inspector.rules.puppet_commands import FORBIDDEN, in_server_log
from inspector.rules.trust import without_identity

_AT = tuple(kind for kind in RUN if kind is not Kind.STATIC_CONTENT)  # that one has its own reasons: F09

_LOOK = (
    on_master("read in its log which rule refused it", in_server_log(f"'{FORBIDDEN}'"), only_if="it is puppetserver"),
    on_master("see where that rule stands, and what to change", "puppet-inspector doctor <capture> --auth-conf <file>"),
    on_master(
        "compare its auth.conf (`/etc/puppetlabs/puppetserver/conf.d/auth.conf`, up to version 3 "
        "`/etc/puppet/auth.conf`) with the defaults of its version"
    ),
)
_OWN = advice(
    "compare the name in the URL with the certificate's: catalog, node, facts and report may only be requested by the "
    "node of that name"
)
_BUCKET = advice(
    "let the rule for `/puppet/v3/file_bucket_file` be if the node only wanted to read: OpenVox Server 9 gives backups "
    "to certificates with pp_cli_auth only, on purpose, and the command works on the master"
)
_FILES = on_master(
    "allow the node in the rule for the path in the message; a mount is the part after `file_metadata` and "
    "`file_content`, and needs both"
)


def _fix(run: Run) -> Fix | None:
    """Return the fix for what this run was refused: only some requests have a certname in their path."""
    refused = [endpoint for endpoint in run.forbidden.values() if endpoint.kind in _AT]
    steps = [
        step
        for step, refuses in (
            (_OWN, any(endpoint.access is Access.OWN for endpoint in refused)),
            (_BUCKET, any(endpoint.kind is Kind.BACKUP for endpoint in refused)),
            (_FILES, any(endpoint.kind in (*METADATA, *CONTENT, Kind.ENVIRONMENT_CHECK) for endpoint in refused)),
        )
        if refuses
    ]
    return (*_LOOK, *steps)


@rule(
    "S02",
    Severity.ERROR,
    at=_AT,
    refused=True,
    otherwise="warning for the node request",
    title="refused although the agent presented its certificate",
    fix=(*_LOOK, _OWN, _BUCKET, _FILES),
    instead=_fix,
    source="docs/protocol.md#default-rules; docs/protocol.md#failures-in-a-run; "
    "puppetserver 7.9.5 ezbake/config/conf.d/auth.conf",
    without_catalog=("P01", *NO_CATALOG_NO_REPORT),
    event=True,
    good=lambda: [
        talk(plugins(), catalog(), metadata("modules/demo/a"), content("modules/demo/a"), report()),
        talk(plugins(), catalog(), metadata("modules/demo/a", status=404), report()),
    ],
    bad=lambda: [
        talk(plugins(), catalog(status=403), report(status=403, result="failed")),
        talk(node(status=403), plugins(), catalog(), report()),
        talk(plugins(), catalog(), bucket(method="GET", status=403), report()),
    ],
)
def request_forbidden(case: ExchangeCase) -> Iterator[Statement]:
    """The master knows which node sends the request and does not allow it: auth.conf has a stricter rule for this path,
    or none. Catalog, node, facts and report it allows only if the name in the path is the one in the certificate.
    Without catalog or plugins the run ends; if only the node request is refused, the run continues in the configured
    environment."""
    if case.status not in (401, 403) or not case.exchange.agent.peer_chain:
        return
    if without_identity(case.exchange):
        return  # the master saw no certificate: T23
    client = case.step.certname or "an unreadable certificate"
    severity = Severity.WARNING if case.kind is Kind.NODE else None
    key = case.step.match.key if case.step.match else None
    # Not the file: a mount is refused as a whole.
    mount = f" of the mount {cut(key.partition('/')[0], 60)}" if key and case.kind is not Kind.BACKUP else ""
    yield Statement(
        f"{case.endpoint}{mount} was refused with {case.status}, requested with the certificate of {client}",
        severity=severity,
    )
