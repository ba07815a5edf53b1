from inspector.rules.kit import *

FILE = "modules/demo/app.conf"


def static_catalog(*, uri: bool = True) -> ExamplePart:
    """A static catalog with one file; ``uri=False``: without the path of the file's version."""
    digest = "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"
    metadata: dict[str, object] = {
        "path": "/srv/app.conf",
        "relative_path": None,
        "type": "file",
        "source": f"puppet:///{FILE}",
        "checksum": {"type": "sha256", "value": f"{{sha256}}{digest}"},
    }
    if uri:
        metadata["content_uri"] = "puppet:///modules/demo/files/app.conf"
    file = {"type": "File", "title": "/etc/app.conf", "parameters": {"source": f"puppet:///{FILE}"}}
    return catalog(code_id="v1", metadata={"/etc/app.conf": metadata}, resources=[file])


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
        talk(
            plugins(),
            static_catalog(),
            content("modules/demo/files/app.conf", code_id="v1"),
            report(),
        ),
        talk(plugins(), static_catalog(uri=False), content(FILE), report()),
    ],
    bad=lambda: [talk(plugins(), static_catalog(), content(FILE), report())],
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
