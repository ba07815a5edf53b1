from inspector.protocol.files import is_plugin
from inspector.rules.kit import *
from inspector.runs.observations import Refusal

_OF_RESOURCES = (Kind.FILE_METADATA, Kind.FILE_LISTING, Kind.FILE_CONTENT, Kind.BACKUP)
_MOUNT = regex.compile(r"Not authorized to call (?:find|search) on /file_(?:metadatas?|content)/([^/\s]{1,255})")
"""What a master says of a mount that it does not have, or (up to version 6) does not give to the node."""


def _of_resources(run: Run) -> list[Refusal]:
    """Return what the master did not serve to file resources by a fault of its own."""
    return [
        refused
        for refused in run.files.refusals.values()
        if refused.status >= 500
        and refused.status != 503  # S05
        and refused.kind in _OF_RESOURCES
        and not refused.key.startswith("md5/")  # F07
        and not is_plugin(refused.key)
    ]


_UNKNOWN = (
    'Server Error: Not authorized to call find on /file_metadata/secure/a.txt with {:rest=>"secure/a.txt", '
    ':links=>"manage"}'
)
_LOCKED = "Server Error: Permission denied @ rb_sysopen - /etc/puppetlabs/code/modules/demo/files/a.txt"


def _failing(name: str, text: str) -> list[ExamplePart]:
    """The metadata of a file that the master answers with 500, and the report of the resource."""
    file = {"type": "File", "title": "/etc/a.txt", "parameters": {"source": f"puppet:///{name}"}}
    event = {"status": "failure", "message": f"Could not retrieve file metadata for puppet:///{name}: Error 500 on "
                                             f"SERVER: {text}"}  # fmt: skip
    statuses = {"File[/etc/a.txt]": {"failed": True, "events": [event]}}
    return [
        plugins(),
        catalog(resources=[file]),
        asked(f"file_metadata/{name}", status=500, text=text),
        report(result="failed", resource_statuses=statuses),
    ]


@rule(
    "F18",
    Severity.ERROR,
    title="the master could not serve a file",
    fix=(
        on_master("read its log (puppetserver.log) of that time"),
        on_master(
            "see whose its filebucket is, and give it to the server's own user",
            'ls -ld "$(puppet config print bucketdir --section master)"',
            only_if="a backup was refused",
        ),
        advice("make room on the master's disk if it is full"),
    ),
    source="docs/protocol.md#endpoint-file_metadata; puppet 7.23.0 lib/puppet/indirector/file_server.rb; "
    "puppet 7.23.0 lib/puppet/file_serving/configuration/parser.rb",
    good=lambda: [talk(plugins(), catalog(), metadata("modules/demo/a.txt"), report())],
    bad=lambda: [
        talk(*_failing("secure/a.txt", _UNKNOWN)),
        talk(*_failing("modules/demo/a.txt", _LOCKED)),
    ],
    also=("P01",),
)
def file_not_served(case: RunCase) -> Iterator[Statement]:
    """The master answered the request for a file with an error of its own: the mount in its URL is not in
    fileserver.conf, its user may not read the file, or its filebucket cannot be written. The node and the resource are
    not the cause."""
    if case.run.tool:
        return
    refusals = _of_resources(case.run)
    mounts: dict[str, list[Refusal]] = {}
    reasons: dict[str, list[Refusal]] = {}
    for refused in refusals:
        found = _MOUNT.search(refused.message)
        if found:
            mounts.setdefault(found[1], []).append(refused)
        else:
            reasons.setdefault(brief(refused.message) or f"status {refused.status} without a reason", []).append(
                refused
            )
    if mounts:
        files = [refused for each in mounts.values() for refused in each]
        named = f"the mount{'s' if len(mounts) > 1 else ''} {some(list(mounts))}"
        yield _statement(f"the master does not know or does not serve {named}", files)
    for reason, files in reasons.items():
        yield _statement(f"the master answered {files[0].status}: {reason}", files)


def _statement(what: str, refused: list[Refusal]) -> Statement:
    names = [each.key if each.kind is not Kind.BACKUP else "a backup" for each in refused]
    return Statement(
        f"{what} ({some(list(dict.fromkeys(names)))})",
        tuple(each.seq for each in refused),
        at=(places.error(refused[0].message), places.STATUS),
        printed=f"Error {refused[0].status} on SERVER: {refused[0].message}" if refused[0].message else "",
    )
