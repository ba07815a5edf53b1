"""Recorded real agents are rehearsed against a real puppetserver, and what is different is what was changed."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.real.through import PROXY_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Run
    from tests.real.puppet import RealMaster
    from tests.real.through import Stage

NAMES = ("first.example", "second.example")
CODE = """
file { 'BASE': ensure => directory }
file { 'BASE/trusted': content => "${trusted['certname']} ${trusted['hostname']} ${trusted['domain']} ${trusted['authenticated']}" }
file { 'BASE/secret': content => Sensitive('hunter2') }
file { 'BASE/binary': content => Binary('AAECAwQ=') }
file { 'BASE/deferred': content => Deferred('sprintf', ['hello %s', 'you']) }
file { 'BASE/copied': source => 'puppet:///modules/rehearsed/copied.txt' }
file { 'BASE/looked-up': content => lookup('rehearsed::text', String, 'first', 'no data') }
file { 'BASE/legacy': content => "${facts['osfamily']} ${facts['os']['family']}" }
file { 'BASE/flat': content => "${facts['osfamily']}" }
include rehearsed
"""  # noqa: E501 - a manifest


@pytest.fixture
def recorded(stage: Stage) -> Iterator[Stage]:
    """Two agents made a run each; afterwards the site is as it was."""
    master, code = stage.master, stage.master.environment.parent
    auth_conf = master.confdir / "conf.d/auth.conf"
    before = auth_conf.read_text()
    master.module_file("rehearsed", "files/copied.txt", b"one\n")
    master.module_file("rehearsed", "manifests/init.pp", b"class rehearsed { notify { 'as ever': } }\n")
    for name in NAMES:
        agent = stage.enrolled(name)
        facts = stage.directory / name / "facts.json"
        facts.write_text(json.dumps(json.loads(facts.read_text()) | {"osfamily": "Debian"}))
        master.manifest(name, CODE.replace("BASE", str(agent.target)))
        with stage.proxy(f"keys:{agent.ssldir}", own=True) as road:
            done = road.run(agent)
        assert done.status == 2, done.output
    yield stage
    auth_conf.write_text(before)
    shutil.rmtree(code / "staging", ignore_errors=True)
    for name in NAMES:
        (master.environment / f"manifests/{name}.pp").unlink()
    master.reload()


def _words(stage: Stage) -> list[object]:
    ssl = stage.master.ssldir
    return [
        "--master", f"{stage.master.name}:{stage.master.port}", "--ca", ssl / "certs/ca.pem",
        "--certificate", ssl / f"certs/{PROXY_NAME}.pem", "--key", ssl / f"private_keys/{PROXY_NAME}.pem",
    ]  # fmt: skip


def _staging(master: RealMaster) -> Path:
    """An environment like production."""
    target = master.environment.parent / "staging"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(master.environment, target)
    for path in (target, *target.rglob("*")):
        shutil.chown(path, "puppet", "puppet")
    return target


def test_what_another_environment_changes(recorded: Stage, run: Run) -> None:
    stage, master, count = recorded, recorded.master, iter(range(100))

    def rehearse(*words: object) -> tuple[int, dict[str, Any]]:
        output = stage.directory / f"rehearsed{next(count)}.sqlite"
        status, out, err = run("rehearse", stage.capture, *_words(stage), "-o", output, "--json", *words)
        assert out, err
        assert "hunter2" not in out
        return status, json.loads(out)

    def changes(found: dict[str, Any]) -> set[tuple[str, str]]:
        return {(each["name"].rpartition("/")[2], each["part"] or each["change"])
                for group in found["groups"] for each in group["differences"]}  # fmt: skip

    # The default auth.conf denies v4; the rule heals it as it is printed.
    status, out, err = run("rehearse", stage.capture, *_words(stage), "-o", stage.directory / "none.sqlite")
    assert (status, out) == (2, "")
    assert "does not allow proxy.example to compile catalogs of nodes (403)." in err
    rule = "{" + err.partition("\n  {")[2].replace("\n  ", "\n")
    conf = master.confdir / "conf.d/auth.conf"
    conf.write_text(conf.read_text().replace("rules: [", f"rules: [\n{rule}", 1))
    master.reload()

    status, found = rehearse("--twice", "--files")
    assert (status, found["groups"], found["not_compared"]) == (0, [], [])
    assert (sorted(found["without_change"]), found["noise"]["differences"]) == (sorted(NAMES), 0)
    assert found["deferred_not_compared"] == 2

    # As the agents themselves.
    shutil.copytree(master.ssldir, stage.directory / "keys")
    status, found = rehearse("--road", f"keys:{stage.directory / 'keys'}", "--stores-data-of-nodes")
    assert (status, sorted(found["without_change"])) == (0, sorted(NAMES))
    assert found["deferred_not_compared"] == 0

    # Other code, other data, other bytes.
    staging = _staging(master)
    (staging / "modules/rehearsed/manifests/init.pp").write_text("class rehearsed { notify { 'new': } }\n")
    (staging / "modules/rehearsed/files/copied.txt").write_text("two\n")
    (staging / "hiera.yaml").write_text("version: 5\nhierarchy: [{name: all, path: all.yaml}]\n")
    (staging / "data").mkdir(exist_ok=True)
    (staging / "data/all.yaml").write_text("rehearsed::text: from Hiera\n")
    status, found = rehearse("--environment", "staging", "--files")
    assert status == 1
    assert changes(found) == {
        ("Notify[as ever]", "removed"), ("Notify[new]", "added"), ("looked-up]", "content"), ("copied.txt", "content"),
    }  # fmt: skip

    # A module is gone.
    shutil.rmtree(staging / "modules/rehearsed")
    status, found = rehearse("--environment", "staging")
    assert status == 2
    reasons = [each["reason"] for each in found["not_compared"]]
    assert all("Could not find class ::rehearsed" in reason and reason.endswith("(S01)") for reason in reasons), reasons

    # What depends on legacy facts.
    status, found = rehearse("--without-legacy-facts")
    assert status == 1
    assert changes(found) == {("legacy]", "content"), ("flat]", "content")}
    status, found = rehearse("--fact", "os.family=Suse", "--ignore", "*[*]/mode")
    assert (status, changes(found)) == (1, {("legacy]", "content")})
    words = ["--agent", NAMES[0], "--fact", "os.family=Suse", "--without-legacy-facts"]
    status, found = rehearse(*words, "--bisect-facts", f"File[{stage.directory / NAMES[0]}/managed/flat]")
    assert (status, [fact["name"] for fact in found["facts"]]) == (1, ["osfamily"])
