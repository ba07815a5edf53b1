from inspector.protocol import decode
from inspector.protocol.files import Checksum, ChecksumResult, check
from inspector.rules.kit import *

FILE = "modules/demo/app.conf"


@rule(
    "F03",
    Severity.ERROR,
    at=CONTENT,
    title="a file's content does not match its metadata",
    fix=(
        advice(
            "deploy code to all compilers at the same time, and not while agents run; static catalogs "
            "(`versioned-code.conf`) tie content to the catalog"
        ),
        on_master("compare the file on each compiler", "sha256sum <file>", only_if="nothing was deployed"),
    ),
    source="docs/protocol.md#file-metadata",
    explains=("P01", "P13"),
    event=True,
    good=lambda: [
        talk(plugins(), catalog(), metadata(FILE, b"new"), content(FILE, b"new"), report()),
        talk(plugins(), catalog(), metadata(FILE, b"old"), metadata(FILE, b"new"), content(FILE, b"new"), report()),
    ],
    bad=lambda: [talk(plugins(), catalog(), metadata(FILE, b"old"), content(FILE, b"new"), report(result="failed"))],
)
def content_differs(case: ExchangeCase) -> Iterator[Statement]:
    """The digest of the received content differs from the digest that the master gave for this file in the same run.
    Code was deployed between the two requests, two compilers have different code, or something changed the bytes."""
    match, files, response = case.step.match, case.run.files, case.exchange.response
    answer = case.step.response
    if case.status != 200 or match is None or match.key is None or response is None or case.exchange.error:
        return
    if not isinstance(answer, d.Opaque):
        return
    length = (response.header("content-length") or "").strip()
    if response.lost or (length.isdecimal() and int(length[:20]) > response.size):  # incomplete in the capture
        return
    announced: list[tuple[Checksum, int]] = []
    if case.kind is Kind.STATIC_CONTENT:
        code_id = next((value for name, value in match.parameters if name == "code_id"), None)
        if files.catalog is not None and code_id == files.code_id:
            announced = [(checksum, files.catalog) for checksum in files.static.get(match.key, ())]
    elif (metadata := files.checksums.get(match.key)) and metadata.environment == match.environment:
        announced = [(metadata.checksum, metadata.seq)]
    for checksum, seq in announced:
        if checksum.type.endswith("lite") or not _differs(checksum, answer, case):
            continue
        yield Statement(
            f"{brief(match.key)}: the content does not have the digest that the master announced, "
            f"{brief(checksum.value)}",
            (seq, case.exchange.seq),
            at=(places.meaning(checksum.value.rpartition("}")[2]), places.REQUEST_LINE),
        )


def _differs(checksum: Checksum, answer: d.Opaque, case: ExchangeCase) -> bool:
    if checksum.digest == answer.sha256:
        return False
    response = case.exchange.response
    body = decode.content(response) if response else None
    return body is not None and check(body, checksum) is ChecksumResult.WRONG
