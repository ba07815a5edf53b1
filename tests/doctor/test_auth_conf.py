"""``doctor --auth-conf``: the rule behind a 403, and what to change."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from inspector.host.auth_conf import reading
from tests.support import auth_confs, json_output
from tests.support.captures import save
from tests.support.conversations import Agent, together

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

WITHOUT_CATALOG = auth_confs.USUAL.replace("^/puppet/v3/catalog/([^/]+)$", "^/puppet/v3/nothing$").replace(
    '"$1"', '"x"', 1
)


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """One run of a.example, whose catalog was refused."""
    agent = Agent()
    agent.ask("GET", "/puppet/v3/file_metadatas/plugins?environment=production&recurse=true", own=True, body=b"[]",
              media="application/json")  # fmt: skip
    agent.ask("POST", "/puppet/v3/catalog/a.example?environment=production", own=True, status=403)
    return save(tmp_path / "capture.sqlite", *together(agent))


class Doctor:
    """Asks for the fix with an auth.conf of some content."""

    def __init__(self, run: Run, capture: Path) -> None:
        self.run, self.capture, self.conf = run, capture, capture.with_name("auth.conf")

    def __call__(self, text: str) -> dict[str, Any]:
        """Return the verdict."""
        self.conf.write_text(text)
        status, out, err = self.run("doctor", self.capture, "--auth-conf", self.conf, "--json")
        assert (status, err) == (1, "")
        verdict: dict[str, Any]
        (verdict,) = json_output.valid("doctor", out)["verdicts"]
        assert verdict["cause"] == "S02"
        return verdict

    def steps(self, text: str) -> list[str]:
        """Return the steps of the fix: what a person does, and commands."""
        steps = self(text)["steps"]
        return [step["command"] or step["text"].replace(str(self.conf), "FILE") for step in steps]


@pytest.fixture
def doctor(run: Run, capture: Path) -> Doctor:
    return Doctor(run, capture)


def test_the_verdict_names_the_rule_and_its_line(doctor: Doctor) -> None:
    message = doctor(auth_confs.USUAL.replace('"$1"', '"b.example"', 1))["message"]
    assert ': denied by "own catalog" (sort-order 500, auth.conf:4): no entry is for a.example, since ' in message


def test_a_node_that_is_in_no_entry_is_added(doctor: Doctor) -> None:
    steps = doctor.steps(auth_confs.USUAL.replace('"$1"', '"b.example"', 1))
    assert steps == [
        "grep -rhs --include=puppetserver.log \"denied by rule 'own catalog'\" /var/log/puppet* | tail",
        "add a.example to `allow` of the rule that begins in line 4 of FILE",
        (
            f"puppet-inspector auth --auth-conf {doctor.conf} --request 'POST /puppet/v3/catalog/a.example' "
            "--certname a.example"
        ),
        "systemctl reload puppetserver",
        "puppet agent -t",
    ]


def test_a_rule_that_is_missing_is_inserted_by_a_command(doctor: Doctor, run: Run) -> None:
    """As it is printed."""
    command = doctor.steps(WITHOUT_CATALOG)[1]
    assert command.startswith("sed -i '3a\\ ")
    assert shutil.which("sed")
    before = doctor.conf.stat().st_mode
    subprocess.run(["sh", "-c", command], check=True)
    conf = reading.read(doctor.conf)
    assert len(conf.rules) == 7
    assert doctor.conf.stat().st_mode == before
    (check,) = [step for step in doctor.steps(doctor.conf.read_text()) if step.startswith("grep")]
    assert "Forbidden request" in check  # this file allows it
    words = ["auth", "--auth-conf", str(doctor.conf), "--certname", "a.example", "--request"]
    assert run(*words, "POST /puppet/v3/catalog/a.example")[1].startswith("allowed by ")


def test_the_inserted_rule_comes_before_a_general_one(doctor: Doctor) -> None:
    text = WITHOUT_CATALOG.replace("sort-order: 999", "sort-order: 100").replace(
        '"all else"', '"puppetlabs v3 catalog from agents"'
    )
    command = doctor.steps(text)[1]
    assert 'sort-order: 99, name: "puppetlabs v3 catalog from agents (2)"' in command
    # Nothing comes before this one.
    steps = doctor.steps(text.replace("sort-order: 100", "sort-order: 1"))
    assert steps[1] == "remove the rule that begins in line 34 of FILE"
    assert steps[2].startswith("sed -i ")


def test_where_nothing_can_be_inserted_it_says_so(doctor: Doctor) -> None:
    text = WITHOUT_CATALOG.replace("rules: [\n        {", "rules: [ {").replace(
        '            deny: "*"\n            sort-order: 999',
        '            deny: ["*", "b.example"]\n            sort-order: 999',
    )
    assert doctor.steps(text)[1] == "take `deny *` out of line 35 of FILE"


def test_an_entry_that_denies_is_taken_out(doctor: Doctor) -> None:
    text = auth_confs.USUAL.replace('allow: "$1"', 'allow: "$1"\n            deny: [a.example, b.example]', 1)
    assert doctor.steps(text)[1] == "take `deny a.example` out of line 7 of FILE"


def test_a_rule_that_only_denies_is_removed(doctor: Doctor) -> None:
    nobody = (
        '{ match-request: { path: "/puppet/v3/catalog", type: path }, deny: "*", sort-order: 1, name: "no { braces" },'
    )
    steps = doctor.steps(auth_confs.USUAL.replace("rules: [\n", f"rules: [\n{nobody}\n"))
    assert steps[0].startswith("grep -rhs --include=puppetserver.log 'denied by rule '\"'\"'no { braces'\"'\"'' ")
    assert steps[1] == "remove the rule that begins in line 4 of FILE"


def test_an_auth_conf_that_allows_it_is_not_the_masters(doctor: Doctor) -> None:
    found = doctor(auth_confs.USUAL)
    assert (
        'this auth.conf allows it, so the master has another one, or has not read it again (allowed by "own'
        in found["message"]
    )
    assert [step["command"] for step in found["steps"][1:]] == ["systemctl reload puppetserver", "puppet agent -t"]


BUCKET = "/puppet/v3/file_bucket_file"


def refused_bucket(run: Run, tmp_path: Path, text: str, method: str) -> tuple[str, list[str]]:
    """Return message and steps of the verdict on a refused request to the filebucket, with an auth.conf."""
    agent = Agent().ask(method, f"{BUCKET}/sha256/{'0' * 64}?environment=production", own=True, status=403)
    capture, conf = save(tmp_path / "c.sqlite", *together(agent)), tmp_path / "auth.conf"
    conf.write_text(text)
    status, out, _ = run("doctor", capture, "--auth-conf", conf, "--json")
    (verdict,) = json_output.valid("doctor", out)["verdicts"]
    assert (status, verdict["cause"]) == (1, "S02")
    return verdict["message"], [step["command"] or step["text"].replace(str(conf), "FILE") for step in verdict["steps"]]


@pytest.mark.parametrize("query", ["", ", query-params: {environment: production}"])
def test_a_rule_for_certificates_with_an_extension_may_be_intended(run: Run, tmp_path: Path, query: str) -> None:
    """OpenVox Server 9 brings such a rule."""
    reading_rule = (
        f'{{name: "bucket read", sort-order: 500, match-request: {{path: "{BUCKET}", type: path, method: [get, post]'
        f'{query}}}, allow: {{extensions: {{pp_cli_auth: "true"}}}}}}'
    )
    text = auth_confs.USUAL.replace("rules: [\n", f"rules: [\n{reading_rule},\n")
    message, steps = refused_bucket(run, tmp_path, text, "GET")
    assert (
        'denied by "bucket read" (sort-order 500, auth.conf:4): the certificate has no pp_cli_auth, which may be '
        "intended"
    ) in message
    assert steps[1:3] == [
        (
            "change nothing if that is intended: the rule is for certificates with pp_cli_auth; the server's own has "
            "it, so the command works on the master"
        ),
        "add a.example to `allow` of the rule that begins in line 4 of FILE",
    ]


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_the_filebucket_is_never_opened_to_all(run: Run, tmp_path: Path, method: str) -> None:
    text = auth_confs.USUAL.replace('"/puppet/v3/file"', '"/nothing"')
    message, steps = refused_bucket(run, tmp_path, text, method)
    assert 'denied by "all else"' in message
    line = text[: text.index('path: "/"')].count("\n")
    request = f"{method} {BUCKET}/sha256/{'0' * 64}"
    assert steps[1] == f"add a rule to FILE, before line {line}, that allows `{request}` to a.example"
    assert not any('allow: "*"' in step for step in steps)


def test_an_expression_that_is_not_decided_is_named(doctor: Doctor) -> None:
    steps = doctor.steps(auth_confs.USUAL.replace("^/puppet/v3/catalog/", "^(?=/)/puppet/v3/catalog/"))
    assert steps[1].startswith("look at the rule that begins in line 4 of FILE: the regular expression has look-around")


def test_the_ruby_masters_file(doctor: Doctor) -> None:
    steps = doctor.steps("path ~ ^/puppet/v3/catalog/\nmethod find\nallow b.example\n")
    assert steps[1] == "add a.example to `allow` of the rule that begins in line 1 of FILE"
    assert steps[0] == "look for `Denying access: Forbidden request` in its log"
    assert steps[-1] == "restart the master, so that it reads the file"


def test_a_refusal_that_follows_from_another_cause_is_named_as_well(run: Run, tmp_path: Path) -> None:
    """A node asks under another name than its certificate's (T04)."""
    agent = Agent().ask("POST", "/puppet/v3/catalog/b.example?environment=production", own=True, status=403)
    capture = save(tmp_path / "c.sqlite", *together(agent))
    conf = tmp_path / "auth.conf"
    conf.write_text(auth_confs.USUAL)
    _, out, _ = run("doctor", capture, "--auth-conf", conf, "--json")
    found = json_output.valid("doctor", out)
    assert [verdict["cause"] for verdict in found["verdicts"]] == ["T04"]
    (notice,) = found["diagnoses"]
    assert (notice["severity"], notice["rule"]) == ("notice", "S02")
    assert notice["detail"] == (
        'run 1, record 1, POST /puppet/v3/catalog/b.example: denied by "own catalog" (sort-order 500, auth.conf:4): '
        "no entry is for a.example; $1 is b.example"
    )
    assert "NOTICE auth.conf: run 1, record 1, " in run("doctor", capture, "--auth-conf", conf)[1]


def test_it_needs_a_capture(run: Run, tmp_path: Path) -> None:
    status, out, err = run("doctor", "--auth-conf", tmp_path / "x", "--ssldir", tmp_path)
    assert (status, out) == (2, "")
    assert err.startswith("puppet-inspector: --auth-conf needs a capture.\n")


def test_hostile_names_are_quoted(run: Run, tmp_path: Path) -> None:
    agent = Agent("a.example").ask("POST", "/puppet/v3/catalog/a'$(id);b?environment=production", own=True, status=403)
    capture = save(tmp_path / "c.sqlite", *together(agent))
    conf = tmp_path / "auth.conf"
    conf.write_text(auth_confs.USUAL.replace('"$1"', '"b.example"', 1).replace("own catalog", "$(id) `id`"))
    _, out, _ = run("doctor", capture, "--auth-conf", conf, "--json")
    for verdict in json_output.valid("doctor", out)["verdicts"]:
        for command in [step["command"] for step in verdict["steps"] if step["command"] and "(id)" in step["command"]]:
            assert "'$(id)" in command.replace("'\"'\"'", "'") or "'denied by rule" in command
