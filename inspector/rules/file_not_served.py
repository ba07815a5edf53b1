from inspector.protocol.files import is_plugin
from inspector.rules.kit import *
from inspector.runs.observations import Refusal

_OF_RESOURCES = (Kind.FILE_METADATA, Kind.FILE_LISTING, Kind.FILE_CONTENT, Kind.BACKUP)
_MOUNT = regex.compile(r"Not authorized to call (?:find|search) on /file_(?:metadatas?|content)/([^/\s]{1,255})")
"""What a master says of a mount that it does not have, or (up to version 6) does not give to the node."""
_NO_RIGHT = regex.compile(r"Permission denied|EACCES|not permitted")

_MOUNTS = (
    on_master("see which mounts its fileserver.conf has", 'cat "$(puppet config print fileserverconfig --section '
              'master)"'),
    advice("add the mount with its `path` there, or correct `source` on the resource: a file of a module is "
           "`puppet:///modules/<module>/<file>`"),
    on_master("add `allow *` below `path`; who may have it is said in auth.conf", only_if="it is older than version 7"),
    on_master("restart it: it reads the file when it starts", "systemctl restart puppetserver"),
)  # fmt: skip
_RIGHTS = (
    on_master("look at the file that the message names, and at its directories", "namei -l <file>"),
    on_master("let the server's own user read it", "chmod a+rX <file>"),
)
_BUCKET = (
    on_master("see where its filebucket is and whose it is",
              'ls -ld "$(puppet config print bucketdir --section master)"'),
    on_master("give it to the server's own user, and make room on the disk if it is full"),
)  # fmt: skip
_LOG = on_master("read its log (puppetserver.log) of that time")


def _fix(run: Run) -> Fix | None:
    return tuple(step for steps in _fixes(_of_resources(run)) for step in steps) or None


def _fixes(refusals: list[Refusal]) -> Iterator[Fix]:
    if any(_MOUNT.search(refused.message) for refused in refusals):
        yield _MOUNTS
    others = [refused for refused in refusals if not _MOUNT.search(refused.message)]
    if any(_NO_RIGHT.search(refused.message) for refused in others):
        yield _RIGHTS
    elif any(refused.kind is Kind.BACKUP for refused in others):
        yield _BUCKET
    if any(not _NO_RIGHT.search(refused.message) for refused in others):
        yield (_LOG,)


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
    fix=(*_MOUNTS, *_RIGHTS, *_BUCKET, _LOG),
    instead=_fix,
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
    seqs = tuple(each.seq for each in refused)
    return Statement(
        f"{what} ({some(list(dict.fromkeys(names)))})", seqs, at=(places.error(refused[0].message), places.STATUS)
    )
