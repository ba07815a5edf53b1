"""S12, S32 and F17: redirects, and files that failed because of them."""

from inspector.model import Exchange
from inspector.rules.kit import *
from inspector.runs.observations import ObservedFiles, is_redirect

_FOLLOWED = (301, 302, 307)
_TARGET = regex.compile(r"(https?)://(?:[^/?#@]*@)?([^/?#@]{1,200})([^?#]*)", regex.IGNORECASE)

_FIX = (
    on_node("give it the master's own address", "puppet config set server <master> --section agent"),
    advice("use 307 with an absolute Location, and no gzip at its target: agents of 6 and 7 do not unpack that",
           only_if="a redirect is unavoidable"),
)  # fmt: skip


@rule(
    "S12",
    Severity.WARNING,
    at=(*RUN, *BOOTSTRAP),
    otherwise="error if agents do not follow it",
    title="the agent is redirected to another address",
    fix=_FIX,
    source="docs/protocol.md#redirects; puppet 7.23.0 lib/puppet/http/redirector.rb",
    without_catalog=("P01", "P05", "P15", *NO_CATALOG_NO_REPORT),
    event=True,
    good=lambda: [
        talk(plugins(), catalog(), report()),
        talk(crl(status=304, refresh=True), plugins(), catalog(), report()),
    ],
    bad=lambda: [
        talk(
            plugins(),
            altered(catalog(status=302), answers={"Location": "https://other.example:8140/puppet/v3/catalog/x"}),
            catalog(),
            report(),
        ),
        talk(
            plugins(), altered(catalog(status=302), answers={"Location": "/puppet/v3/other"}), report(result="failed")
        ),
    ],
)
def redirected(case: ExchangeCase) -> Iterator[Statement]:
    """Masters do not redirect agents; a load balancer or web server in front of the master does. Agents follow 301, 302
    and 307 to an absolute address only, and agents up to version 3 lose the query when they follow."""
    response = case.exchange.response
    if response is None or not is_redirect(response.status) or _to_itself(case.exchange):
        return
    target = _TARGET.match(response.header("location") or "")
    if target is None or response.status not in _FOLLOWED:
        why = "but not to an absolute address" if target is None else "which agents do not follow"
        yield Statement(
            f"{case.endpoint} was redirected with {response.status}, {why}", severity=Severity.ERROR, at=places.STATUS
        )
    else:
        yield Statement(
            f"{case.endpoint} was redirected with {response.status} to {target[1].lower()}://{target[2]}",
            at=places.response_header(case, "location"),
        )


_ITSELF = altered(catalog(status=302), answers={"Location": f"https://{MASTER}:8140/puppet/v3/catalog/node1.example"})


@rule(
    "S32",
    Severity.WARNING,
    at=(*RUN, *BOOTSTRAP),
    title="the agent is redirected to the URL that it asked for",
    fix=(
        advice("see which device in front of the master answers (its name is often in the header Server or Via of the "
               "redirect), and why: a rule for a login page, for another host name, or from http to https"),
        advice("let it pass the agents' requests on to the master instead"),
    ),
    source="docs/protocol.md#redirects; puppet 7.23.0 lib/puppet/http/redirector.rb",
    without_catalog=("P01", "P05", "P15", *NO_CATALOG_NO_REPORT),
    event=True,
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [
        talk(plugins(), _ITSELF, catalog(), report()),
        talk(plugins(), *(_ITSELF for _ in range(11)), report(result="failed")),
    ],
)  # fmt: skip
def redirected_to_itself(case: ExchangeCase) -> Iterator[Statement]:
    """Masters do not redirect agents; a load balancer or web server in front of the master does, and sends the agent
    where it is already. The agent asks for the same again, ten times at most."""
    if (response := case.exchange.response) is not None and _to_itself(case.exchange):
        yield Statement(
            f"{case.endpoint} was redirected with {response.status} to the URL that the agent had asked for",
            at=places.response_header(case, "location"),
        )


_PATH = "modules/demo/app.conf"
_FILE = {"type": "File", "title": "/etc/app.conf", "parameters": {"source": f"puppet:///{_PATH}"}}
_FAILED = report(result="failed", resource_statuses={"File[/etc/app.conf]": {"failed": True}})
_ELSEWHERE = altered(metadata(_PATH, status=302), answers={"Location": "https://other.example:8140/app.conf"})


@rule(
    "F17",
    Severity.ERROR,
    at=(Kind.REPORT,),
    visible=Visible.CONSEQUENCE,
    title="files failed whose requests were redirected",
    fix=_FIX,
    source="docs/protocol.md#redirects",
    explains=("S12", "S32", "F02", "P01", "P13"),
    good=lambda: [talk(plugins(), catalog(resources=[_FILE]), metadata(_PATH), report())],
    bad=lambda: [talk(plugins(), catalog(resources=[_FILE]), _ELSEWHERE, _FAILED)],
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


def _to_itself(exchange: Exchange) -> bool:
    """Whether a request was redirected to the URL that the agent asked for, which agents follow."""
    response, request = exchange.response, exchange.request
    if response is None or response.status not in _FOLLOWED:
        return False
    target = _TARGET.match(response.header("location") or "")
    host = request.header("host") or ""
    # The query counts for nothing: agents up to version 3 lose it.
    asked = ("https", host.lower(), request.target.partition("?")[0])
    return target is not None and (target[1].lower(), target[2].lower(), target[3]) == asked
