"""Rows of facts, resources and events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from inspector.runs.examples import catalog, plugins, report, talk, together
from tests.support.compared import resource
from tests.support.tables_of import asked, of_records

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.model import Record

DAY = 86_400


def runs(*each: tuple[float, dict[str, Any], list[dict[str, Any]]]) -> list[Record]:
    """One node's runs: when, with which facts, with which resources."""
    return together(
        *(
            talk(catalog(uuid=f"u-{after}", facts=facts, resources=resources), report(uuid=f"u-{after}"), after=after)
            for after, facts, resources in each
        )
    )


def test_facts_that_a_node_sent_before_are_not_there_again(tmp_path: Path) -> None:
    facts = {"os": {"family": "Debian", "release": ["12", 5]}, "up": True}
    directory = of_records(tmp_path, runs((0, facts, []), (1800, facts, []), (3600, facts | {"up": False}, [])))
    assert asked(directory, "SELECT run, facts FROM runs ORDER BY run") == [(1, 1), (2, 1), (3, 3)]
    rows = asked(directory, "SELECT run, path, value, type FROM facts WHERE path <> 'puppetversion' ORDER BY run, path")
    first = [
        (1, "os.family", "Debian", "string"),
        (1, "os.release.0", "12", "string"),
        (1, "os.release.1", "5", "integer"),
    ]
    assert rows == [
        *first, (1, "up", "true", "boolean"), *((3, *row[1:]) for row in first), (3, "up", "false", "boolean"),
    ]  # fmt: skip


def test_an_empty_fact_is_a_row_too(tmp_path: Path) -> None:
    facts = {"hypervisors": {"vmware": {}}, "flags": [], "dns": {"servers": ["192.0.2.1", {}]}}
    directory = of_records(tmp_path, runs((0, facts, []), (1800, facts | {"flags": {}}, [])))
    rows = asked(directory, "SELECT run, path, value, type FROM facts WHERE path NOT LIKE 'puppet%' ORDER BY run, path")
    assert rows[:4] == [
        (1, "dns.servers.0", "192.0.2.1", "string"),
        (1, "dns.servers.1", "{}", "hash"),
        (1, "flags", "[]", "array"),
        (1, "hypervisors.vmware", "{}", "hash"),
    ]
    assert (2, "flags", "{}", "hash") in rows[4:]


@pytest.mark.slow
def test_facts_that_change_by_themselves_are_there_once_a_day(tmp_path: Path) -> None:
    def uptime(hours: int) -> dict[str, Any]:
        return {"system_uptime": {"hours": hours}, "role": "web"}

    noon = 43_200 - talk(plugins())[0].time % DAY
    directory = of_records(
        tmp_path, runs((noon, uptime(1), []), (noon + 1800, uptime(2), []), (noon + DAY, uptime(3), []))
    )
    rows = asked(directory, "SELECT run, value, volatile FROM facts WHERE path = 'system_uptime.hours' ORDER BY run")
    assert rows == [(1, "1", True), (3, "3", True)]
    assert asked(directory, "SELECT run, volatile FROM facts WHERE path = 'role'") == [(1, False)]
    assert asked(directory, "SELECT DISTINCT facts FROM runs") == [(1,)]


def test_secrets_in_facts_are_masked_by_their_names_and_their_forms(tmp_path: Path) -> None:
    facts = {"db_password": "correct horse", "deep": {"api_key": {"x": "battery staple"}}, "t": "ghp_" + "a1" * 18}
    directory = of_records(tmp_path, runs((0, facts, [])))
    values = dict(asked(directory, "SELECT path, value FROM facts"))
    assert (values["db_password"], values["deep.api_key.x"]) == ("MASKED", "MASKED")
    assert "a1a1" not in values["t"]


@pytest.mark.slow
def test_a_catalog_that_a_node_got_before_is_not_there_again(tmp_path: Path) -> None:
    first = [resource("File", "/a", mode="0644"), resource("Package", "p", line=7)]
    second = [resource("File", "/a", mode="0600"), resource("Package", "p", line=7)]
    directory = of_records(tmp_path, runs((0, {}, first), (1800, {}, first[::-1]), (3600, {}, second)))
    assert asked(directory, "SELECT run, catalog, resources FROM runs ORDER BY run") == [
        (1, 1, 2),
        (2, 1, 2),
        (3, 3, 2),
    ]
    rows = asked(directory, "SELECT run, type, title, file, line, parameters FROM resources ORDER BY run, type")
    assert [row[:5] for row in rows] == [
        (1, "File", "/a", "/m/site.pp", 1), (1, "Package", "p", "/m/site.pp", 7),
        (3, "File", "/a", "/m/site.pp", 1), (3, "Package", "p", "/m/site.pp", 7),
    ]  # fmt: skip
    hashes = [row[5] for row in rows]
    assert hashes[1] == hashes[3]
    assert hashes[0] != hashes[2]


@pytest.mark.slow
def test_hashes_of_parameters_cannot_be_made_without_the_key(tmp_path: Path) -> None:
    records = runs((0, {}, [resource("User", "root", password="hunter2")]))
    found = []
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        directory = of_records(tmp_path / name, records)
        found += asked(directory, "SELECT parameters FROM resources")
        assert len(directory.key) == 32
        assert (directory.root / ".key").stat().st_mode & 0o777 == 0o600
    assert found[0] != found[1]


@pytest.mark.slow
def test_events_are_what_the_report_says_with_masks(tmp_path: Path) -> None:
    status = {
        "changed": True, "failed": False, "file": "/m/site.pp", "line": 3,
        "events": [
            {"property": "content", "previous_value": "a", "desired_value": "hunter2hunter2", "status": "success",
             "message": "changed to hunter2hunter2", "corrective_change": True},
            {"property": "password", "previous_value": "old1234!", "desired_value": "new1234!", "status": "failure",
             "message": "cannot set new1234!"},
        ],
    }  # fmt: skip
    file = resource("File", "/a", content="hunter2hunter2", sensitive=["content"])
    records = talk(catalog(resources=[file]), report(result="changed", resource_statuses={"File[/a]": status}),
                   certname="a.example")  # fmt: skip
    directory = of_records(tmp_path, records)
    rows = asked(directory, "SELECT * EXCLUDE (capture, time, date, site) FROM resource_events ORDER BY property")
    assert rows == [
        (1, "a.example", "File", "/a", "content", "success", "a", "MASKED", "changed to MASKED", True, "/m/site.pp", 3),
        (1, "a.example", "File", "/a", "password", "failure", "MASKED", "MASKED", "MASKED", None, "/m/site.pp", 3),
    ]  # fmt: skip
    assert asked(directory, "SELECT report_status, changed, failed, catalog_format FROM runs") == [
        ("changed", 1, 0, "application/json")
    ]
