"""An endpoint table with one more row: ``python -m tests.support.new_endpoint`` prints as JSON what a run with the new
endpoint is like everywhere. A process of its own, since the table is read when modules are imported."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

TABLE = "inspector.protocol.endpoints"
BEGIN = "ENDPOINTS: tuple[Endpoint, ...] = (\n"
ROW = """
    Endpoint("sealed_file", Kind.FILE_CONTENT, _FILE, "master", _GET, "sealed_file/(?P<key>.+)", "fetch a sealed file",
             "agents of a later version", _CRT),
"""
FILE = "modules/demo/app.conf"


def add_row() -> None:
    """Import the endpoint table with the row in it, before anything else imports it."""
    import inspector.protocol

    spec = importlib.util.find_spec(TABLE)
    assert spec
    assert spec.origin
    assert TABLE not in sys.modules
    module = importlib.util.module_from_spec(spec)
    sys.modules[TABLE] = inspector.protocol.endpoints = module
    source = Path(spec.origin).read_text()
    assert source.count(BEGIN) == 1
    exec(compile(source.replace(BEGIN, BEGIN + ROW), spec.origin, "exec"), module.__dict__)  # noqa: S102


def outcome() -> dict[str, object]:
    """Return what each part of the program makes of a file that came from the new endpoint and is not the right one."""
    from inspector.analysis.analyzer import Analyzer
    from inspector.explain import file_transfers, reference
    from inspector.protocol import endpoints, kinds
    from inspector.runs.examples import asked, catalog, metadata, plugins, report, talk
    from inspector.summaries import completion, filters, summary

    fetch = asked(f"sealed_file/{FILE}", b"wrong", media="application/octet-stream")
    records = talk(plugins(), catalog(), metadata(FILE), fetch, report())
    analyzer = Analyzer()
    steps = [analyzer.feed(record) for record in records]
    analyzer.finish()
    step = next(step for step in steps if step.match and step.match.endpoint.name == "sealed_file")
    (run,) = analyzer.runs
    (use,) = [use for use in file_transfers.files(steps) if use.name == FILE]
    chosen = filters.parse("endpoint:sealed_* phase:files")
    brief = summary.brief_of(step)
    return {
        "phase": str(brief.phase),
        "kind": brief.request_kind,
        "file": [use.state, [fetched.seq == step.record.seq for fetched in use.fetches], use.asking],
        "transfers": [run.files.fetched[FILE].times, list(run.file_environments)],
        "findings": sorted({finding.rule for finding in run.findings if step.record.seq in finding.seqs}),
        "filter": [chosen.matches_step(filters.candidate(other)) for other in steps]
        == [other is step for other in steps],
        "completion": completion.complete("endpoint:seal"),
        "explained": reference.explain("sealed_file")["purpose"],
        "rule": "sealed_file" in reference.explain("F03")["seen"],
        "overload": endpoints.paths(kinds.FILES).search(brief.target) is not None,
    }


if __name__ == "__main__":
    add_row()
    print(json.dumps(outcome()))
