"""Bodies that once did harm, or might: found by fuzzers and by thinking. Each file is a header line and a body.

The header: decoder, status (0 for a request), the document's kind, Content-Type, Content-Encoding; ``-`` for none.
"""

from __future__ import annotations

from pathlib import Path

from inspector.model import Message, Request, Response
from tests.support.touching import DECODERS, touch

CASES = sorted((Path(__file__).parent / "cases").glob("*.case"))


def test_each_case_is_the_document_that_it_should_be() -> None:
    assert len(CASES) > 30
    for path in CASES:
        head, _, body = path.read_bytes().partition(b"\n")
        decoder, status, kind, media, encoding = (word if word != "-" else "" for word in head.decode().split(" "))
        headers = (("Content-Type", media), ("Content-Encoding", encoding))
        message: Message = Response(headers, body, status=int(status))
        if status == "0":
            message = Request(headers, body, method="PUT", target="/p/file_bucket_file/md5/00?facts=x")
        found = DECODERS[decoder](message)
        assert type(found).__name__ == kind, path.stem
        touch(found)
