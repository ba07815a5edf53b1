from inspector.rules.kit import *
from inspector.rules.redirected import FIX
from inspector.runs.observations import ObservedFiles

PATH = "modules/demo/app.conf"
_FILE = {"type": "File", "title": "/etc/app.conf", "parameters": {"source": f"puppet:///{PATH}"}}
_FAILED = report(result="failed", resource_statuses={"File[/etc/app.conf]": {"failed": True}})
_ELSEWHERE = altered(metadata(PATH, status=302), answers={"Location": "https://other.example:8140/app.conf"})


@rule(
    "F17",
    Severity.ERROR,
    at=(Kind.REPORT,),
    visible=Visible.CONSEQUENCE,
    title="files failed whose requests were redirected",
    fix=FIX,
    source="docs/protocol.md#redirects",
    good=lambda: [
        talk(plugins(), catalog(resources=[_FILE]), metadata(PATH), report()),
    ],
    bad=lambda: [talk(plugins(), catalog(resources=[_FILE]), _ELSEWHERE, _FAILED)],
    also=("P01", "S12"),
)
def redirected_files(case: ExchangeCase) -> Iterator[Statement]:
    """A device in front of the master redirected requests for files, the agent did not get these files where it was
    sent to, and their resources failed. What happened there is not recorded."""
    sent, files = case.step.request, case.run.files
    if not isinstance(sent, d.Report) or not files.redirected:
        return
    seqs: dict[int, None] = {}
    failed = []
    for ref in sent.failed:
        if requests := _redirected(files, ref):
            failed.append(ref)
            seqs |= dict.fromkeys(requests)
    if failed:
        many = "1 file" if len(failed) == 1 else f"{len(failed)} files"
        yield Statement(
            brief(f"{many} failed after a redirect of what the agent requested: {some(failed)}"),
            (*seqs, case.exchange.seq),
            at=(places.header("response", "Location"), places.meaning(failed[0], "resources")),
        )


def _redirected(files: ObservedFiles, ref: str) -> list[int]:
    """Return the redirected requests for a file resource; that of a directory is made by the agent, file by file."""
    names = files.sources.get(ref)
    if names is not None:
        return [files.redirected[name] for name in names if name in files.redirected]
    title = ref.removeprefix("File[").removesuffix("]") if ref.startswith("File[") else ""
    last = title.rpartition("/")[2]
    return [seq for name, seq in files.redirected.items() if last and name.rpartition("/")[2] == last][:1]
