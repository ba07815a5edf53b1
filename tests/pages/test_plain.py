"""A record as text: what is captured cannot leave its place in a Markdown document."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from inspector.analysis.analyzer import Analyzer, retrace
from inspector.model import Finding, Severity
from inspector.pages import plain
from inspector.protocol.documents import CertificateRequest, ErrorDocument
from inspector.runs.examples import altered, ca, catalog, crl, csr, issued, not_issued, report, talk
from inspector.summaries import wording
from inspector.summaries.summary import RunBrief
from tests.support.conversations import SIGNED, steps

if TYPE_CHECKING:
    from inspector.analysis.analyzer import Step
    from inspector.runs.examples import ExamplePart


def _refused(step: Step) -> bool:
    return isinstance(step.request, CertificateRequest) and isinstance(step.response, ErrorDocument)


NORMAL = f"  This is normal: {wording.SENT_AGAIN}."


@pytest.mark.parametrize(
    ("parts", "normal"),
    [
        ((csr(), not_issued(), csr(status=400, text=SIGNED)), True),
        ((csr(), not_issued(), csr(status=400, text=SIGNED), issued(), catalog(), report()), True),
        ((csr(status=400, text=SIGNED), issued(), catalog(), report()), True),
        ((csr(status=400, text=SIGNED), issued(key="other")), False),
        ((csr(), not_issued(), csr(status=400, text=SIGNED), issued(key="other")), False),
        ((csr(), not_issued(), csr(key="other", status=400, text=SIGNED)), False),
        ((csr(status=400, text=SIGNED),), False),
        ((csr(status=400, body=b"CSR has a forbidden extension"), csr(), issued(), catalog(), report()), False),
    ],
)
def test_a_request_that_is_sent_again_after_it_was_signed_is_normal(
    parts: tuple[ExamplePart, ...], *, normal: bool
) -> None:
    analyzer = Analyzer()
    taken = list(steps(analyzer, talk(ca(), crl(), *parts)))
    analyzer.finish()
    at = next(at for at, step in enumerate(taken) if _refused(step))
    shown = plain.lines(taken[at], taken[at].run, taken[:at])
    assert (NORMAL in shown) is normal


def test_markdown_is_a_heading_what_is_wrong_and_a_fence_that_nothing_ends() -> None:
    body = b'{"message": "```\\n# heading <script>alert(1)</script> ````"}'
    (record,) = talk(altered(catalog(status=500), response={"body": body}))
    (step,) = retrace([record])
    finding = Finding("S01", Severity.ERROR, "[x](javascript:1) <b> `a`", (step.record.seq,))
    title, empty, wrong, _, fence, *rest = plain.markdown(step, RunBrief(number=1, findings=(finding,)))
    assert title.startswith("### Record ")
    assert empty == ""
    assert wrong == r"- error S01: \[x\](javascript:1) \<b\> \`a\`"
    assert set(fence) == {"`"}
    longest = max(len(run) for line in rest[:-2] for run in re.findall("`+", line))
    assert rest[-2:] == [fence, ""]
    assert longest < len(fence)
