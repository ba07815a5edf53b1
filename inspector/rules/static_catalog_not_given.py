from inspector.rules.kit import *

_SOURCE = {"type": "File", "title": "/etc/app.conf", "parameters": {"source": "puppet:///modules/demo/app.conf"}}


@rule(
    "R21",
    Severity.NOTICE,
    at=(Kind.CATALOG,),
    generations=SINCE_4,
    title="static catalog requested, ordinary one returned",
    fix=(
        on_master("set versioned-deploys, or code-id-command and code-content-command (versioned-code.conf)",
                  only_if="files are to be pinned to the catalog's version of the code (otherwise nothing is wrong)"),
    ),
    source="docs/protocol.md#static-catalogs; puppet 7.23.0 lib/puppet/indirector/catalog/compiler.rb",
    good=lambda: [
        talk(
            plugins(), catalog(form={"static_catalog": "true"}, code_id="v1", resources=[_SOURCE]), report(),
        ),
        talk(plugins(), catalog(form={"static_catalog": "true"}), report()),
    ],
    bad=lambda: [talk(plugins(), catalog(form={"static_catalog": "true"}, resources=[_SOURCE]), report())],
)  # fmt: skip
def static_catalog_not_given(case: ExchangeCase) -> Iterator[Statement]:
    """The agent could check files using only the catalog, but the master has no versioned code configured. So the agent
    requests the metadata of each file, and a deployment during a run can give it files of newer code. Most masters are
    configured this way; it is reported for an agent's first run only."""
    request, answer = case.step.request, case.step.response
    if not isinstance(request, d.CatalogRequest) or not isinstance(answer, d.Catalog) or not request.static_catalog:
        return
    if (
        answer.code_id
        or answer.metadata
        or answer.recursive_metadata
        or case.run.tool
        or case.ledger.fleet.before(case.run)
    ):
        return
    if any(source.startswith("puppet:") for file in answer.files for source in file.sources):
        yield Statement(
            "the agent requested a static catalog and received one without code_id",
            at=(places.meaning("static: no", "about")),
        )
