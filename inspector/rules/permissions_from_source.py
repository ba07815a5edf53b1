from inspector.rules.kit import *

USE = ("source_permissions", "use")


@rule(
    "F16",
    Severity.NOTICE,
    at=METADATA,
    title="owner and mode are taken from the master's file",
    fix=(
        advice("set `owner`, `group` and `mode` of the file resources, and omit `source_permissions`"),
        advice(
            "set `source_permissions => ignore`, as a default of all files in site.pp",
            only_if="the agent is of version 3 or earlier",
        ),
    ),
    source="docs/protocol.md#source-permissions",
    good=lambda: [
        talk(
            asked("file_metadatas/pluginfacts", [], query="&recurse=true&source_permissions=use"),
            plugins(),
            catalog(),
            metadata("modules/demo/a"),
            report(),
        )
    ],
    bad=lambda: [
        talk(
            plugins(),
            catalog(),
            asked(
                "file_metadata/modules/demo/a",
                {"type": "file", "checksum": {"type": "mtime", "value": "{mtime}2026"}},
                query="&source_permissions=use",
            ),
            report(),
        )
    ],
)
def permissions_from_source(case: ExchangeCase) -> Iterator[Statement]:
    """Files get the owner, group and mode that they have on the master, whose users may not even exist on the node.
    Agents up to version 3 do so by default, later ones when a resource sets source_permissions."""
    match = case.step.match
    if match and USE in match.parameters and (match.key or "").partition("/")[0] != "pluginfacts":
        old = match.dialect == "legacy"
        yield Statement(
            f"permissions come from the master's files{' (the default of agents up to 3)' if old else ''}",
            at=places.REQUEST_LINE,
        )
