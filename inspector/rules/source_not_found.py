from inspector.rules.kit import *

ONE, OTHER = "modules/demo/a.conf", "modules/demo/b.conf"


def _file(*names: str) -> dict[str, object]:
    sources = [f"puppet:///{name}" for name in names]
    return {"type": "File", "title": "/etc/a.conf", "parameters": {"source": sources}}


@rule(
    "F02",
    Severity.ERROR,
    title="a file resource's source does not exist",
    fix=(
        advice(
            "put the file into the module's `files` directory (puppet:///modules/<module>/<file> omits `files`), or "
            "correct `source`"
        ),
        advice("deploy it in the environment that the agent uses"),
        advice("rename it: masters decode the name a second time", only_if="the file's name contains a `%`"),
    ),
    source="docs/protocol.md#endpoint-file_metadata",
    explains=("P01", "P13"),
    event=True,
    good=lambda: [
        talk(
            plugins(),
            catalog(resources=[_file(ONE, OTHER)]),
            metadata(ONE, status=404),
            metadata(OTHER),
            content(OTHER),
            report(),
        ),
        talk(plugins(), catalog(resources=[_file(ONE, OTHER)]), metadata(ONE, status=404)),
    ],
    bad=lambda: [
        talk(
            plugins(),
            catalog(resources=[_file(ONE, OTHER)]),
            metadata(ONE, status=404),
            metadata(OTHER, status=404),
            report(result="failed"),
        )
    ],
)
def source_not_found(case: RunCase) -> Iterator[Statement]:
    """None of the files that a file resource may be copied from exists on the master, so the resource fails and
    resources that depend on it are skipped. A list of sources is tried in order: a missing source is not an error if a
    later one exists."""
    files = case.run.files
    missing = {name for name, answer in files.metadata_answers.items() if answer.missing}
    if not missing or files.catalog is None:
        return
    for ref, names in files.sources.items():
        if missing.issuperset(names):
            problem = "none of its sources exists" if len(names) > 1 else "its source does not exist"
            seqs = (files.catalog, *(files.metadata_answers[name].seq for name in names[:20]))
            yield Statement(
                f"{brief(ref)}: {problem} on the master ({some(list(names))})",
                seqs,
                at=(places.meaning(ref, "catalog"), places.error("not find"), places.STATUS),
            )
