"""A record as text: what is captured cannot leave its place in a Markdown document."""

from __future__ import annotations

import re

from inspector.analysis.analyzer import retrace
from inspector.model import Finding, Severity
from inspector.pages import plain
from inspector.runs.examples import altered, catalog, talk
from inspector.summaries.summary import RunBrief


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
