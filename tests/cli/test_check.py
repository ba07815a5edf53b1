"""``check``, ``doctor`` and ``bootstrap``: formats, baselines, rules files, exit status."""

from __future__ import annotations

import datetime
import json
import time
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

from inspector.host import pki
from inspector.lab.ca import LabCA
from inspector.runs.examples import ca, catalog, crl, csr, issued, not_issued, plugins, private_key, report, talk
from inspector.runs.examples import node as asked_for_node
from tests.support.captures import recording, save
from tests.support.json_output import strict, valid

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.model import Record
    from tests.conftest import Run

WAITS = "already has a requested certificate"
SIGNED = "already has a signed certificate"


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A capture of a host whose certificate is for another key, and of a healthy host."""
    lost = talk(ca(), crl(), csr(key="new", status=400, text=SIGNED), issued(), certname="lost.example", after=60)
    healthy = talk(catalog(), report())
    return save(tmp_path / "broken.sqlite", *healthy, *lost)


def test_check_as_sarif(run: Run, broken: Path) -> None:
    status, out, _ = run("check", broken, "--format", "sarif")
    log = strict(out)
    assert (status, log["version"]) == (1, "2.1.0")
    (scan,) = log["runs"]
    described = {rule["id"]: rule for rule in scan["tool"]["driver"]["rules"]}
    assert described["B18"]["defaultConfiguration"] == {"level": "error"}
    results = {result["ruleId"]: result for result in scan["results"]}
    assert set(results) == set(described)
    wrong = results["B18"]
    assert (wrong["level"], scan["tool"]["driver"]["rules"][wrong["ruleIndex"]]["id"]) == ("error", "B18")
    assert wrong["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == broken.as_posix()
    assert wrong["locations"][0]["logicalLocations"] == [{"name": "lost.example", "kind": "agent"}]
    assert "puppetserver ca clean --certname lost.example" in wrong["message"]["text"]


def test_check_as_junit(run: Run, broken: Path) -> None:
    status, out, _ = run("check", broken, "--format", "junit")
    suite = ET.fromstring(out)  # noqa: S314 - our own
    assert (status, suite.get("tests"), suite.get("failures")) == (1, "2", "1")
    failed = {case.get("classname"): case.find("failure") for case in suite}
    assert failed["node1.example"] is None
    failure = failed["lost.example"]
    assert failure is not None
    assert failure.get("type") in {"B18", "B23"}
    assert "B18" in (failure.text or "")
    assert "B01" in (suite[1].findtext("system-out") or "")


@pytest.mark.parametrize(("limit", "failures"), [("warning", "1"), ("never", "0")])
def test_what_fails_a_junit_case_is_what_fails_the_check(run: Run, broken: Path, limit: str, failures: str) -> None:
    status, out, _ = run("check", broken, "--format", "junit", "--fail-on", limit)
    assert (ET.fromstring(out).get("failures"), status) == (failures, int(failures))  # noqa: S314 - our own


def test_hostile_text_makes_no_broken_xml(run: Run, tmp_path: Path) -> None:
    name = "a\x1b]0;x\x07<&>\ud800"
    records = talk(csr(status=500, body=name.encode("utf-8", "surrogatepass"), path="x%1by"), not_issued())
    status, out, _ = run("check", save(tmp_path / "x.sqlite", *records), "--format", "junit", "--fail-on", "notice")
    assert status == 1
    assert "\x1b" not in out
    assert ET.fromstring(out).tag == "testsuite"  # noqa: S314 - our own


def test_a_baseline_leaves_only_what_is_new(run: Run, broken: Path, tmp_path: Path) -> None:
    _, out, _ = run("check", broken, "--json")
    known = tmp_path / "baseline.json"
    known.write_text(out)
    status, out, _ = run("check", broken, "--json", "--baseline", known)
    assert (status, valid("check", out)["findings"]) == (0, [])
    other = talk(ca(), crl(), csr(key="o", status=400, text=SIGNED), issued(), certname="other.example", after=600)
    status, out, _ = run("check", broken, save(tmp_path / "other.sqlite", *other), "--json", "--baseline", known)
    assert status == 1
    assert {finding["certname"] for finding in valid("check", out)["findings"]} == {"other.example"}


def test_an_invalid_baseline(run: Run, broken: Path, tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    for text in (None, "", "{}", "[]", '{"findings": [1]}', "[" * 100_000):
        if text is not None:
            path.write_text(text)
        status, out, err = run("check", broken, "--baseline", path)
        assert (text, status, out) == (text, 2, "")
        assert "baseline.json" in err
        assert "check CAPTURE --json > baseline.json" in err


def test_check_with_a_rules_file(run: Run, broken: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("ignore:\n  - certname: lost.*\n")
    assert run("check", broken, "--rules", rules)[0] == 0
    rules.write_text("rules: {B100: off}\n")
    status, _, err = run("check", broken, "--rules", rules)
    assert status == 2
    assert "there is no rule 'B100'" in err


def test_a_finding_that_needs_several_captures(run: Run, tmp_path: Path) -> None:
    first = save(tmp_path / "a.sqlite", *talk(ca(), crl(), csr(key="cloned"), not_issued()))
    clone = talk(ca(), crl(), csr(key="cloned"), not_issued(), certname="clone.example", after=3600)
    second = save(tmp_path / "b.sqlite", *clone)
    alone = json.loads(run("check", second, "--json")[1])
    both = json.loads(run("check", second, first, "--json")[1])
    assert "B21" not in {finding["rule"] for finding in alone["findings"]}
    (found,) = [finding for finding in both["findings"] if finding["rule"] == "B21"]
    assert (found["certname"], found["capture"]) == ("clone.example", str(second))


def test_a_run_that_is_under_way_has_no_verdict_and_nothing_that_only_the_whole_of_it_shows(
    run: Run, tmp_path: Path
) -> None:
    going = talk(asked_for_node(uuid="a-1"), plugins(), catalog())
    path = tmp_path / "c.sqlite"
    with recording(path, *going):
        status, out, _ = run("check", path)
        assert (status, out) == (0, "1 node under way\nno deviations from the protocol\n")
        assert valid("check", run("check", path, "--json")[1])["findings"] == []
        assert "R03" not in run("doctor", path)[1]
    assert "R03" in run("check", save(tmp_path / "over.sqlite", *going))[1]


@pytest.fixture
def reinstalled(tmp_path: Path) -> Path:
    """A capture of a node whose certificate was for another key, and that completed a run since."""
    lost = talk(ca(), crl(), csr(key="new", status=400, text=SIGNED), issued(), certname="lost.example")
    well = talk(catalog(), report(), certname="lost.example", after=600)
    return save(tmp_path / "reinstalled.sqlite", *lost, *well)


def test_no_fix_is_printed_for_what_is_over(run: Run, reinstalled: Path) -> None:
    """Its commands would revoke the certificate of a node that is well."""
    for command in ("check", "runs"):
        _, out, _ = run(command, reinstalled)
        assert "\nrun 1, over since run 2: lost.example had no certificate: B18 " in out
        assert "\n  fix at the time: `puppet-inspector explain B18`\n" in out
        assert "ca clean" not in out
        assert ", since " not in out, "it was at a time"
    status, out, _ = run("check", reinstalled)
    assert status == 1
    assert out.count("fix at the time") == 1, "the finding below it has only what the verdict has not"
    assert out.count("\n  why:    it follows from B18\n") == 1
    assert run("check", reinstalled, "--full")[1].count("  message:\n") == 1
    lead, every = out.splitlines()[:2]
    assert lead == "1 node completed"
    assert every == "2 errors, 1 notice in all 2 runs; what went wrong in 1 of them is over"
    places = [line for line in out.splitlines() if line.startswith("  run 1 of lost.example; evidence: ")]
    assert [place.endswith("; over since run 2") for place in places] == [True, True, False]


def test_what_is_over_in_another_capture_says_in_which(run: Run, tmp_path: Path) -> None:
    first, second = save(tmp_path / "a.sqlite", *failing()), tmp_path / "b.sqlite"
    save(second, *talk(catalog(), report(), after=1800))
    _, out, _ = run("check", first, second)
    assert "\na.sqlite run 1, over since b.sqlite run 1: node1.example failed: S01 " in out


def test_the_fix_of_a_node_stands_though_another_has_the_same_behind_it(run: Run, tmp_path: Path) -> None:
    other = talk(catalog(status=500), report(result="failed"), certname="other.example", after=60)
    capture = save(tmp_path / "c.sqlite", *failing(), *other, *talk(catalog(), report(), after=1800))
    _, out, _ = run("check", capture)
    assert "\n  fix: " in out
    assert "\n  fix:    above, for run 2\n" in out
    assert "\n  fix at the time: " in out


# -- doctor ---------------------------------------------------------------------------------------------


def test_doctor_prints_the_worst_first_with_its_fix(run: Run, broken: Path) -> None:
    status, out, _ = run("doctor", broken)
    assert status == 1
    summary, first = out.splitlines()[:2]
    assert summary == "1 node failing, 1 node completed, 2 errors, 1 notice"
    assert "lost.example" in first
    assert "puppetserver ca clean --certname lost.example" in [line.strip() for line in out.splitlines()]
    assert "node1.example" not in out
    document = valid("doctor", run("doctor", broken, "--json")[1])
    (verdict,) = document["verdicts"]
    assert (verdict["certname"], verdict["runs"], document["diagnoses"]) == ("lost.example", 1, [])


def test_doctor_of_a_healthy_capture(run: Run, tmp_path: Path) -> None:
    capture = save(tmp_path / "fine.sqlite", *talk(catalog(), report()))
    assert run("doctor", capture)[:2] == (0, "1 node completed\n")


def failing(*, after: float = 0) -> list[Record]:
    return talk(catalog(status=500), report(result="failed"), after=after)


def test_doctor_judges_an_agent_by_its_latest_run(run: Run, tmp_path: Path) -> None:
    """What an earlier run showed is history: its fix was made, or another cause has taken its place."""
    healed = save(tmp_path / "healed.sqlite", *failing(), *talk(catalog(), report(), after=1800))
    status, out, _ = run("doctor", healed)
    assert status == 0
    assert "\nrun 1, over since run 2: node1.example failed: S01 " in out
    assert "fix:" not in out
    (verdict,) = valid("doctor", run("doctor", healed, "--json")[1])["verdicts"]
    assert (verdict["cause"], verdict["superseded_by"]) == ("S01", 2)

    again = save(tmp_path / "again.sqlite", *failing(), *talk(catalog(), report(), after=1800), *failing(after=3600))
    status, out, _ = run("doctor", again)
    assert status == 1
    assert out.startswith("1 node failing, 2 errors\nrun 3 (2 runs): node1.example failed: S01")
    assert "history" not in out

    unknown = save(tmp_path / "unknown.sqlite", *failing(), *talk(catalog(), after=1800))
    status, out, _ = run("doctor", unknown)
    assert status == 1
    assert "history" not in out, "a run that shows no cause does not contradict"


def test_what_another_run_shows_of_the_ca_explains_a_silent_one(run: Run, tmp_path: Path) -> None:
    silent = talk(ca(), certname="a.example", address="192.0.2.8")
    shows = talk(ca(), crl(expired=True), certname="b.example", address="192.0.2.9", after=60)
    capture = save(tmp_path / "two.sqlite", *silent, *shows)
    alone = save(tmp_path / "one.sqlite", *silent)
    (verdict,) = valid("doctor", run("doctor", alone, "--json")[1])["verdicts"]
    assert (verdict["cause"], verdict["certainty"]) == (None, "not visible")
    first, second = valid("doctor", run("doctor", capture, "--json")[1])["verdicts"]
    assert {first["cause"], second["cause"]} == {"B10"}
    (guessed,) = [each for each in (first, second) if each["run"] == 1]
    assert guessed["certainty"] == "likely"
    assert "(likely: run 2 shows it)" in guessed["message"]

    healthy = talk(catalog(), certname="c.example", address="192.0.2.10")
    answered = save(tmp_path / "answered.sqlite", *healthy, *shows)
    verdicts = valid("doctor", run("doctor", answered, "--json")[1])["verdicts"]
    assert {each["cause"] for each in verdicts if each["certname"] == "c.example"} == {None}


def test_a_bootstrap_is_judged_by_what_came_of_it(run: Run, tmp_path: Path) -> None:
    """Alternative names keep a CA from signing; once it has signed, they are no problem any more."""
    names = save(
        tmp_path / "names.sqlite", *talk(ca(), crl(), csr(alt_names=("puppet",)), issued(), catalog(), report())
    )
    assert "B27" in run("check", names)[1]
    status, out, _ = run("doctor", names)
    assert (status, out.splitlines()[0]) == (0, "1 node completed, 3 notices")


def test_doctor_notes_what_comes_with_the_versions_once(run: Run, tmp_path: Path) -> None:
    """It never leads, and hides nothing."""
    runs = [talk(plugins(), catalog(), report(), version="8.10.0", after=1800.0 * number) for number in range(3)]
    capture = save(tmp_path / "newer.sqlite", *(record for each in runs for record in each))
    status, out, _ = run("doctor", capture)
    assert status == 0
    assert out.splitlines() == [
        "1 node completed, 1 warning", "note: S16 the agent is newer than its master (runs 1, 2, 3)"
    ]  # fmt: skip
    document = valid("doctor", run("doctor", capture, "--json")[1])
    assert document["notes"] == [{"rule": "S16", "capture": str(capture), "runs": [1, 2, 3]}]


def test_doctor_judges_an_agent_by_its_latest_run_in_all_captures(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = save(tmp_path / "a.sqlite", *talk(plugins(), catalog(status=500)))
    healed = save(tmp_path / "b.sqlite", *talk(plugins(), catalog(), report(), after=1800.0))
    other = save(tmp_path / "c.sqlite", *talk(plugins(), catalog(status=500), certname="other.example", after=9.0))
    assert run("doctor", broken)[0] == 1
    status, out, _ = run("doctor", tmp_path)
    lines = out.splitlines()
    assert (status, lines[0]) == (1, "1 node failing, 1 node completed, 1 error")
    assert lines[1].startswith("c.sqlite run 1: other.example failed: S01 ")
    assert any(line.startswith("a.sqlite run 1, over since b.sqlite run 1: node1.example failed: ") for line in lines)
    assert run("doctor", broken, healed)[0] == 0
    first, second = valid("doctor", run("doctor", tmp_path, "--json")[1])["verdicts"]
    assert (first["capture"], first["superseded_in"]) == (str(other), None)
    assert (second["capture"], second["superseded_by"], second["superseded_in"]) == (str(broken), 1, str(healed))
    (tmp_path / "d.sqlite").write_bytes(b"no capture")
    status, out, err = run("doctor", tmp_path)
    assert (status, out.splitlines()[0]) == (2, "1 node failing, 1 node completed, 1 error")
    assert "d.sqlite" in err
    # Without any word it reads the newest.
    (tmp_path / "captures").mkdir()
    monkeypatch.chdir(tmp_path)
    assert run("doctor")[0] == 2
    save(tmp_path / "captures" / "e.sqlite", *talk(plugins(), catalog(), report()))
    assert run("doctor")[:2] == (0, "1 node completed\n")


def test_doctor_fits_on_a_screen(run: Run, tmp_path: Path) -> None:
    agents = [talk(ca(), crl(expired=True), certname=f"n{n}.example", address=f"192.0.2.{n}") for n in range(1, 31)]
    capture = save(tmp_path / "many.sqlite", *(record for agent in agents for record in agent))
    _, out, _ = run("doctor", capture)
    assert len(out.splitlines()) <= 40
    assert out.count("fix: as for run 1") == 10
    assert "more: `puppet-inspector runs`" in out


def test_doctor_compares_a_capture_with_what_the_ca_holds(run: Run, tmp_path: Path) -> None:
    """Of a request that the CA refused (400) the agent has kept nothing: its fingerprint is in the traffic only."""
    site = LabCA("ca.example")
    mine, other = private_key("mine"), private_key("other")
    capture = save(tmp_path / "two.sqlite", *talk(ca(), crl(), csr(key="mine", status=400, text=WAITS), not_issued()))
    site.write_cadir(tmp_path / "ca")
    pending = tmp_path / "ca" / "requests" / "node1.example.pem"
    pending.parent.mkdir(exist_ok=True)
    document = valid("doctor", run("doctor", capture, "--json")[1])
    (verdict,) = document["verdicts"]
    own = verdict["remedy"].partition("fingerprint ")[2][:95]
    assert own.count(":") == 31
    assert "`puppet agent --fingerprint`" not in verdict["remedy"]

    pending.write_bytes(pki.pem(pki.make_csr("node1.example", other)))
    status, out, _ = run("doctor", capture, "--cadir", tmp_path / "ca")
    assert status == 1
    assert "ERROR the CA holds a request of another key" in out
    assert f"has {own}" in out
    assert "puppetserver ca clean --certname node1.example" in out

    pending.write_bytes(pki.pem(pki.make_csr("node1.example", mine)))
    _, out, _ = run("doctor", capture, "--cadir", tmp_path / "ca")
    assert "the agent's request waits to be signed" in out
    assert "the CA holds a request of another key" not in out


def test_doctor_compares_a_directory_with_a_capture(run: Run, broken: Path, tmp_path: Path) -> None:
    ssl = tmp_path / "ssl"
    (ssl / "private_keys").mkdir(parents=True, mode=0o750)
    pki.write_private(ssl / "private_keys" / "lost.example.pem", pki.key_pem(private_key("new")))
    status, out, _ = run("doctor", broken, "--ssldir", ssl)
    assert status == 1
    assert "the agent's key matches the CSR of" in out
    assert "another key" in out
    document = valid("doctor", run("doctor", broken, "--ssldir", ssl, "--json")[1])
    assert any("CSR of" in diagnosis["detail"] for diagnosis in document["diagnoses"])


def test_doctor_prints_the_problems_of_the_ca_before_the_agents(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = LabCA("ca.example")
    lab.enrol(tmp_path / "ssl", "node1.example")
    lab.write_cadir(tmp_path / "ca")
    now = time.time() + (5 * 365 + 1) * 86400
    monkeypatch.setattr("inspector.doctor.report.time.time", lambda: now)
    status, out, _ = run("doctor", "--ssldir", tmp_path / "ssl", "--cadir", tmp_path / "ca", "--json")
    titles = [diagnosis["what"] for diagnosis in valid("doctor", out)["diagnoses"]]
    assert status == 1
    assert 0 <= titles.index("the CA's CRL has expired") < titles.index("the agent's CRL has expired")
    assert "consequence of 'the CA's CRL has expired'" in out


def test_doctor_of_an_unknown_certname(run: Run, tmp_path: Path) -> None:
    LabCA("ca.example").enrol(tmp_path / "ssl", "node1.example")
    status, out, err = run("doctor", "--ssldir", tmp_path / "ssl", "--certname", "nope")
    assert (status, out) == (2, "")
    assert "It has files of node1.example." in err


def test_doctor_without_anything_to_check(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where `make demo` was, there is a capture
    status, _, err = run("doctor")
    assert status == 2
    assert "--live HOST" in err


def test_doctor_of_an_unreachable_master(run: Run) -> None:
    status, out, _ = run("doctor", "--live", "127.0.0.1:1")
    assert status == 1
    assert "ERROR" in out


# -- bootstrap ------------------------------------------------------------------------------------------


def test_bootstrap_prints_the_steps_of_each_agent(run: Run, broken: Path) -> None:
    status, out, _ = run("bootstrap", broken)
    assert status == 0
    assert "CA 200 (unverified, sha256 " in " ".join(out.split())
    assert "key mismatch: the agent asked with " in out
    assert "stops at certificate since " in out
    (bootstrap,) = [agent for agent in valid("bootstrap", run("bootstrap", broken, "--json")[1])
                 if agent["certname"] == "lost.example"]  # fmt: skip
    assert [step["state"] for step in bootstrap["rungs"]][:2] == ["CA", "CRL"]
    assert [step["verified"] for step in bootstrap["rungs"]][:2] == [False, True]
    assert {key["kind"] for key in bootstrap["keys"]} == {"csr", "certificate"}
    assert run("bootstrap", broken, "--agent", "lost.*")[1].startswith("lost.example ")
    for words in ((broken, "lost.example"), (broken, "--agent", "lost.example")):
        assert run("bootstrap", *words) == run("bootstrap", broken, "--agent", "lost.*")


def test_bootstrap_at_a_future_date(run: Run, broken: Path) -> None:
    tomorrow = (datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)).isoformat()
    (today,) = valid("bootstrap", run("bootstrap", broken, "lost.example", "--json", "--at", tomorrow)[1])
    (later,) = valid("bootstrap", run("bootstrap", broken, "lost.example", "--json", "--at", "2060-01-01")[1])
    assert (today["now"]["works"], later["now"]["works"]) == (True, False)
    assert today["breaks"]
    assert later["now"]["at"] == "2060-01-01T00:00:00.000Z"
    assert any("has expired" in problem for problem in later["now"]["problems"])


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("lst.example",), "contains no bootstrap of 'lst.example'. It contains lost.example"),
        (("lost.example", "--at", "soon"), "'soon' is not a date"),
    ],
)
def test_a_mistake_with_bootstrap(run: Run, broken: Path, argv: tuple[str, ...], message: str) -> None:
    status, out, err = run("bootstrap", broken, *argv)
    assert (status, out) == (2, "")
    assert message in " ".join(err.split())


def test_an_exemption_that_has_ended_is_reported(run: Run, broken: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("ignore: [{rules: B18, until: 2020-01-01}]\n")
    status, out, err = run("check", broken, "--rules", rules)
    assert status == 1
    assert "ERROR B18" in out
    assert "the exception for B18 ended on 2020-01-01" in err
    rules.write_text('ignore: [{certname: "\\e]0;x\\a", until: 2020-01-01}]\n')
    _, _, err = run("check", broken, "--rules", rules)
    assert "\\x1b]0;x\\x07 ended on" in err


def test_ignored_findings_are_counted(run: Run, broken: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("ignore: [{certname: '*', until: 2200-01-01}]\n")
    _, out, _ = run("check", broken, "--rules", rules)
    assert out.splitlines()[0] == "1 node waiting for a signature, 1 node completed"
    assert out.splitlines()[1].startswith("no findings; ")
    assert f"ignored by {rules}" in out.splitlines()[1]
