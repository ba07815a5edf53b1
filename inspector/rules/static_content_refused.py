from inspector.rules.kit import *
from inspector.rules.static_file_by_other_path import static_catalog

FILE = "modules/demo/files/app.conf"
UNSET = b'Cannot retrieve code content because the "versioned-code.code-content-command" setting is not present'


@rule(
    "F09",
    Severity.ERROR,
    at=(Kind.STATIC_CONTENT,),
    refused=True,
    title="a static catalog's file cannot be served",
    fix=(
        on_master("see that code-id-command and code-content-command in versioned-code.conf are both set"),
        on_master("run the latter by hand", "<command> <environment> <code id> <path>"),
        on_master("or turn static catalogs off", "puppet config set static_catalogs false --section server"),
    ),
    source="docs/protocol.md#endpoint-static_file_content; "
    "puppetserver 7.9.5 src/clj/puppetlabs/services/master/master_core.clj",
    good=lambda: [
        talk(
            plugins(),
            static_catalog(),
            content(FILE, code_id="v1"),
            report(),
        ),
    ],
    bad=lambda: [
        talk(
            plugins(),
            static_catalog(),
            asked(f"static_file_content/{FILE}", UNSET, status=500, media="text/plain", query="&code_id=v1"),
            report(result="failed"),
        ),
    ],
    also=("P01",),
)
def static_content_refused(case: ExchangeCase) -> Iterator[Statement]:
    """The catalog tells the agent to fetch a file in the version for which the catalog was compiled, and the master
    cannot serve it: the commands of the versioned code service are not set, or one fails. The resource fails."""
    status = case.status
    if status == 503:
        return
    if status in (401, 403) and not case.exchange.agent.peer_chain:  # T03
        return
    yield Statement(f"static_file_content was answered {status}: {brief(case.answer) or 'no reason'}")
