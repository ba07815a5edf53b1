"""The measurements with other people's material (tests/material), with small material of our own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.material import auth, facts, reports, wire
from tests.material.cases import Verdict
from tests.support.material_table import Measured, dump, lines, load, with_new

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.material.cases import Case

FACTS = {"facterversion": "4.5.0", "networking": {"ip": "192.0.2.7", "flags": []}, "load": 0.5, "up": True}
TESTS = """
(def names ["a.example" "b.example"])
(deftest right
  (doseq [name names] (is (acl/allowed? (acl/allow {:certname "*.example"}) {:certname name :extensions {}})))
  (let [acl (-> (acl/allow {:extensions {:role ["web" "db"]}}) (acl/deny {:certname "bad.example"}))]
    (is (acl/allowed? acl (challenge {:role "db"})))
    (is (not (acl/allowed? acl (challenge "bad.example" {:role "db"}))))))
(deftest wrong (is (acl/allowed? (acl/allow {:certname "a.example"}) {:certname "b.example" :extensions {}})))
(deftest inner (is (= 1 (acl/compare 1 2))))
"""


def verdicts(cases: Callable[[Path], Iterator[Case]], directory: Path, **files: Any) -> list[Verdict]:
    for name, content in files.items():
        (directory / name.replace("__", ".")).write_text(content if isinstance(content, str) else json.dumps(content))
    return [case.verdict for case in cases(directory)]


def test_facts(tmp_path: Path) -> None:
    given = {"a__json": FACTS, "b__json": {"facts": FACTS}, "c__json": {"ansible_facts": {}}}
    assert verdicts(facts.cases, tmp_path, **given) == [Verdict.AGREED, Verdict.AGREED, Verdict.UNDECIDED]


def test_what_a_secret_fact_becomes_is_a_trouble() -> None:
    assert list(facts.troubles(FACTS | {"db_password": "hunter2-horse"})) == ["masked: db_password"]


def test_expectations_of_auth_conf(tmp_path: Path) -> None:
    found = verdicts(auth.cases, tmp_path, acl_test__clj=TESTS)
    assert found == [Verdict.AGREED] * 4 + [Verdict.DISAGREED, Verdict.UNDECIDED]


def resource(title: str, **parameters: Any) -> dict[str, Any]:
    return {"type": "File", "title": title, "exported": False, "tags": [], "parameters": parameters}


def test_relationships_of_a_catalog_in_puppetdb(tmp_path: Path) -> None:
    ends = {"source": {"type": "File", "title": "/a"}, "target": {"type": "File", "title": "/b"}}
    catalog = {
        "certname": "a.example", "version": "1", "environment": "production",
        "resources": [resource("/a"), resource("/b", require="File[/a]")],
        "edges": [ends | {"relationship": "required-by"}],
    }  # fmt: skip
    assert verdicts(wire.cases, tmp_path, a__json=catalog) == [Verdict.AGREED]
    assert verdicts(wire.cases, tmp_path, a__json=catalog | {"edges": []}) == [Verdict.DISAGREED]
    made_up = catalog | {"resources": [resource("/a"), resource("/b")]}
    assert verdicts(wire.cases, tmp_path, a__json=made_up) == [Verdict.UNDECIDED]


def test_reports_of_puppetdb_and_foreman(tmp_path: Path) -> None:
    event = {"status": "success", "property": "mode", "message": "m", "old_value": 1, "new_value": 2, "timestamp": "t"}
    in_puppetdb = {
        "certname": "a.example", "start_time": "t", "status": "changed", "report_format": 12, "noop": False,
        "metrics": [{"category": "resources", "name": "total", "value": 1}],
        "logs": [{"level": "notice", "message": "hello", "source": "Puppet", "line": None, "file": None, "tags": []}],
        "resources": [{
            "resource_type": "File", "resource_title": "/a", "events": [event], "file": None, "line": 3,
            "skipped": False, "timestamp": "t", "containment_path": [],
        }],
    }  # fmt: skip
    status = {"applied": 0, "failed": 0, "failed_restarts": 0}
    in_foreman = {
        "host": "a.example",
        "reported_at": "t",
        "status": status,
        "logs": None,
        "metrics": {"time": {"x": 1}},
    }
    given = {"a__json": in_puppetdb, "b__json": {"config_report": in_foreman}, "c__json": {"other": 1}}
    assert verdicts(reports.cases, tmp_path, **given) == [Verdict.AGREED, Verdict.AGREED]
    in_puppetdb["metrics"] = [{"category": "resources", "name": name, "value": 1} for name in ("total", "failed")]
    assert verdicts(reports.cases, tmp_path, a__json=in_puppetdb)[0] is Verdict.DISAGREED


def test_what_was_measured_comes_back(tmp_path: Path) -> None:
    first = Measured("facts", "owner/name 1", "2026-11-27", 3, 1, 0, {"<b>": 1})
    (path := tmp_path / "material.json").write_text(dump([first]))
    assert load(path) == [first]
    newer = Measured("facts", "owner/name 2", "2026-11-28", 4, 0, 0)
    assert with_new([first], newer) == [newer]
    assert "- 1: &lt;b>" in list(lines([first]))
