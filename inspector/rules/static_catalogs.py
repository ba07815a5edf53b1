"""R21, F08 and F09: static catalogs, and the files that they name."""

from inspector.rules.kit import *

_FILE = "modules/demo/app.conf"
_VERSIONED = "modules/demo/files/app.conf"
_UNSET = b'Cannot retrieve code content because the "versioned-code.code-content-command" setting is not present'
_LACKING = b"Error: A /static_file_content request requires an environment, a code-id, and a file-path"
_EMPTY = regex.compile(r"[?&]code_id=(?:&|$)")
_RESOURCE = {"type": "File", "title": "/etc/app.conf", "parameters": {"source": f"puppet:///{_FILE}"}}


def static_catalog(*, uri: bool = True) -> ExamplePart:
    """A static catalog with one file; ``uri=False``: without the path of the file's version."""
    digest = "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"
    metadata: dict[str, object] = {
        "path": "/srv/app.conf",
        "relative_path": None,
        "type": "file",
        "source": f"puppet:///{_FILE}",
        "checksum": {"type": "sha256", "value": f"{{sha256}}{digest}"},
    }
    if uri:
        metadata["content_uri"] = f"puppet:///{_VERSIONED}"
    return catalog(code_id="v1", metadata={"/etc/app.conf": metadata}, resources=[_RESOURCE])


def _versioned() -> ExamplePart:
    return catalog(form={"static_catalog": "true"}, code_id="v1", resources=[_RESOURCE])


@rule(
    "R21",
    Severity.NOTICE,
    at=(Kind.CATALOG,),
    generations=SINCE_4,
    title="an ordinary catalog where the one before was static",
    fix=(
        on_master("see that each master and compiler has versioned-deploys, or code-id-command and "
                  "code-content-command (versioned-code.conf)"),
        on_master("see whether code-id-command printed an error (puppetserver.log)",
                  only_if="this is the master that made the other catalog"),
    ),
    source="docs/protocol.md#static-catalogs; puppet 7.23.0 lib/puppet/indirector/catalog/compiler.rb",
    good=lambda: [
        talk(plugins(), _versioned(), report()),
        talk(plugins(), catalog(form={"static_catalog": "true"}, resources=[_RESOURCE]), report()),
        talk(
            plugins(), _versioned(), report(), wait(1800),
            plugins(), catalog(uuid="a-2", environment="other", asks="other", form={"static_catalog": "true"},
                               resources=[_RESOURCE]), report(uuid="a-2"),
        ),
    ],
    bad=lambda: [
        talk(
            plugins(), _versioned(), report(), wait(1800),
            plugins(), catalog(uuid="a-2", form={"static_catalog": "true"}, resources=[_RESOURCE]), report(uuid="a-2"),
        ),
    ],
)  # fmt: skip
def static_catalog_not_given(case: ExchangeCase) -> Iterator[Statement]:
    """The catalog before it, of the same environment, was static: the site has versioned code. This master has not, or
    could not tell the version. So the agent requests the metadata of each file, and a deployment during a run can give
    it files of newer code. A site without versioned code, as most are, has no such finding."""
    request, answer = case.step.request, case.step.response
    if not isinstance(request, d.CatalogRequest) or not isinstance(answer, d.Catalog) or not request.static_catalog:
        return
    before = case.ledger.versioned.get(answer.environment or "")
    if before is None or answer.static or case.run.tool:
        return
    if any(source.startswith("puppet:") for file in answer.files for source in file.sources):
        yield Statement(
            "the agent requested a static catalog and received one without code_id",
            (before, case.exchange.seq),
            at=(places.meaning("code_id", "about"), places.meaning("static: no", "about")),
        )


@rule(
    "F08",
    Severity.WARNING,
    at=(Kind.FILE_CONTENT,),
    generations=SINCE_4,
    title="a static catalog's file is fetched in its current version",
    fix=(
        on_node("see its version: static catalogs need 4.4", "puppet --version"),
        on_node("see whether it uses them", "puppet config print static_catalogs --section agent"),
        advice("find out what may rewrite the path static_file_content between agent and master"),
    ),
    source="docs/protocol.md#static-catalogs",
    good=lambda: [
        talk(plugins(), static_catalog(), content(_VERSIONED, code_id="v1"), report()),
        talk(plugins(), static_catalog(uri=False), content(_FILE), report()),
    ],
    bad=lambda: [talk(plugins(), static_catalog(), content(_FILE), report())],
)
def static_file_by_other_path(case: ExchangeCase) -> Iterator[Statement]:
    """The static catalog names the path of this exact version of the file, but the file was fetched from the path that
    serves the currently deployed version. The node may get content that differs from what was compiled."""
    match, files = case.step.match, case.run.files
    if match is None or case.status != 200 or files.catalog is None or not files.inlined.get(match.key or ""):
        return
    yield Statement(
        f"{brief(match.key or '')} was fetched through file_content although the catalog names a version",
        (files.catalog, case.exchange.seq),
        at=(places.meaning(match.key or "", "catalog"), places.REQUEST_LINE),
    )


@rule(
    "F09",
    Severity.ERROR,
    at=(Kind.STATIC_CONTENT,),
    refused=True,
    title="a static catalog's file cannot be served",
    fix=(
        on_master("see that code-id-command and code-content-command in versioned-code.conf are both set"),
        on_master(
            "let code-id-command print the version of the environment's code, here it prints nothing",
            "<command> <environment>",
            only_if="the catalog's code_id is empty",
        ),
        on_master("run code-content-command by hand", "<command> <environment> <code id> <path>", only_if="it is not"),
        on_master("or turn static catalogs off", "puppet config set static_catalogs false --section server"),
    ),
    source="docs/protocol.md#endpoint-static_file_content; "
    "puppetserver 7.9.5 src/clj/puppetlabs/services/master/master_core.clj",
    explains=("P01", "P13"),
    event=True,
    good=lambda: [talk(plugins(), static_catalog(), content(_VERSIONED, code_id="v1"), report())],
    bad=lambda: [
        talk(
            plugins(),
            static_catalog(),
            asked(f"static_file_content/{_VERSIONED}", _UNSET, status=500, media="text/plain", query="&code_id=v1"),
            report(result="failed"),
        ),
        talk(
            plugins(),
            static_catalog(),
            asked(f"static_file_content/{_VERSIONED}", _LACKING, status=400, media="text/plain", query="&code_id="),
            report(result="failed"),
        ),
    ],
)
def static_content_refused(case: ExchangeCase) -> Iterator[Statement]:
    """The catalog tells the agent to fetch a file in the version for which the catalog was compiled, and the master
    cannot serve it: the commands of the versioned code service are not set, or one fails. Or code-id-command, which
    names the version, printed nothing: the master compiles all the same, and then refuses every file. The resource
    fails."""
    status = case.status
    if status == 503:
        return
    if status in (401, 403) and not case.exchange.agent.peer_chain:  # T03
        return
    if _EMPTY.search(case.exchange.request.target):
        yield Statement(
            f"static_file_content was answered {status}: the catalog has no code_id: code-id-command printed nothing",
            at=(places.REQUEST_LINE, *places.answer(case.step.response)),
        )
        return
    yield Statement(f"static_file_content was answered {status}: {brief(case.answer) or 'no reason'}")
