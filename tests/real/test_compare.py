"""Runs of a real agent against a real master are compared, and what is different is what was changed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.real.agent import installed

if TYPE_CHECKING:
    from tests.conftest import Run
    from tests.real.agent import RealAgent
    from tests.real.through import Stage

BEFORE = """
file { 'BASE': ensure => directory }
file { 'BASE/motd': content => "one\\ntwo\\nthree\\n", mode => '0644' }
file { 'BASE/secret': content => Sensitive('hunter2-before') }
file { 'BASE/binary': content => Binary('AAECAwQ=') }
file { 'BASE/deferred': content => Deferred('sprintf', ['hello %s', 'you']) }
file { 'BASE/copied': source => 'puppet:///modules/compared/copied.txt' }
file { 'aliased': path => 'BASE/aliased', content => 'a' }
file { 'BASE/after': content => 'b', require => File['aliased'] }
create_resources('notify', { 1 => {} })
notify { 'gone': }
"""
AFTER = """
# another line

file { 'BASE': ensure => directory }
file { 'BASE/motd': content => "one\\nTWO\\nthree\\n", mode => '0600' }
file { 'BASE/secret': content => Sensitive('hunter2-after') }
file { 'BASE/binary': content => Binary('AAECAwU=') }
file { 'BASE/deferred': content => Deferred('sprintf', ['hello %s', 'me']) }
file { 'BASE/copied': source => 'puppet:///modules/compared/copied.txt' }
file { 'aliased': path => 'BASE/aliased', content => 'a' }
file { 'BASE/after': content => 'b', require => File['BASE/aliased'] }
create_resources('notify', { 1 => {} })
notify { 'new': }
"""


def _play(stage: Stage, agent: RealAgent, code: str, copied: str, status: int, *extra: str) -> None:
    stage.master.module_file("compared", "files/copied.txt", copied.encode())
    stage.master.manifest(agent.certname, code.replace("BASE", str(agent.target)))
    with stage.proxy(f"keys:{agent.ssldir}", own=True) as road:
        done = road.run(agent, *extra)
    assert done.status == status, done.output


def _diff(run: Run, *words: object) -> tuple[int, list[tuple[str, str, str]], dict[str, Any]]:
    status, out, err = run("diff", *words, "--json")
    assert out, err
    found = json.loads(out)
    assert "hunter2" not in out
    briefs = [
        (each["section"], each["change"], "/".join(filter(None, (each["name"], each["part"]))))
        for each in found["differences"]
    ]
    return status, briefs, found


def test_what_a_change_of_code_changes(stage: Stage, run: Run) -> None:
    agent = stage.enrolled("compared.example")
    base = agent.target
    _play(stage, agent, BEFORE, "copied\n", 2)
    _play(stage, agent, BEFORE, "copied\n", 2)  # the notifications are changes
    _play(stage, agent, AFTER, "copied\nand changed\n", 2)
    if pson := installed() < (8,):  # to 8, it is a gem of its own
        _play(stage, agent, AFTER, "copied\nand changed\n", 2, "--preferred_serialization_format", "pson")
    _play(stage, agent, "fail('no role')", "copied\n", 1)
    capture = stage.capture

    status, found, _ = _diff(run, f"{capture}:2", f"{capture}:3", "--ignore", "requests:*", "--ignore", "findings:*")
    assert status == 1
    assert sorted(found) == sorted([
        ("catalog", "changed", f"File[{base}/motd]/content"),
        ("catalog", "changed", f"File[{base}/motd]/mode"),
        ("catalog", "changed", f"File[{base}/secret]/content"),
        ("catalog", "changed", f"File[{base}/binary]/content"),
        ("catalog", "changed", f"File[{base}/deferred]/content"),
        ("catalog", "removed", "Notify[gone]"),
        ("catalog", "added", "Notify[new]"),
        ("files", "changed", "modules/compared/copied.txt/content"),
        ("report", "changed", f"File[{base}/motd]/outcome"),
        ("report", "changed", f"File[{base}/secret]/outcome"),
        ("report", "changed", f"File[{base}/binary]/outcome"),
        ("report", "changed", f"File[{base}/deferred]/outcome"),
        ("report", "changed", f"File[{base}/copied]/outcome"),
        ("report", "changed", "Notify[gone]/outcome"),
        ("report", "changed", "Notify[new]/outcome"),
    ])  # fmt: skip
    status, found, whole = _diff(run, f"{capture}:2", f"{capture}:3", "--ignore", "requests:*")
    (copied,) = [each for each in whole["differences"] if each["section"] == "files"]
    assert copied["lines"] == ["@@ -1 +1,2 @@", " copied", "+and changed"]

    if pson:  # The same code: only what PSON cannot express is another value.
        status, found, _ = _diff(run, f"{capture}:3", f"{capture}:4")
        assert ("run", "changed", "catalog format") in found
        assert [each for each in found if each[0] == "catalog"] == [
            ("catalog", "changed", f"File[{base}/deferred]/content")
        ]

    status, out, err = run("diff", capture)
    assert status == 2
    assert "no role" in out
    assert "The catalogs were not compared" in err

    status, out, _ = run("diff", f"{capture}:1", f"{capture}:1")
    assert (status, "no difference: run, findings, catalog (" in out) == (0, True)


SHARED = """
file { 'BASE': ensure => directory }
file { 'BASE/name': content => "this is ${facts['networking']['hostname']} VERSION\\n" }
file { 'BASE/copied': source => 'puppet:///modules/compared/copied.txt' }
"""


def test_the_same_change_on_several_nodes(stage: Stage, run: Run) -> None:
    """Three nodes get the same change, one gets none, one cannot be compiled any more."""
    names = [f"{name}.example" for name in ("first", "second", "third", "same", "broken")]
    agents = {name: stage.enrolled(name) for name in names}
    captures = {when: stage.directory / f"{when}.sqlite" for when in ("before", "after")}
    for when, capture in captures.items():
        stage.capture = capture
        for name, agent in agents.items():
            version = "one" if when == "before" or name == "same.example" else "two"
            code = SHARED.replace("VERSION", version)
            status = 2 if when == "before" or version == "two" else 0
            if when == "after" and name == "broken.example":
                code, status = "fail('no role for this node')", 1
            _play(stage, agent, code, "copied\n", status)
    status, out, err = run("diff", captures["before"], captures["after"], "--json")
    assert (status, err) == (2, "")
    found = json.loads(out)
    (group,) = found["groups"]
    assert group["nodes"] == names[:3]
    (change,) = group["differences"]
    assert (change["name"], change["part"]) == (f"File[{agents['first.example'].target}/name]", "content")
    assert (change["before"], change["after"]) == ("this is first one\n", "this is first two\n")
    assert found["without_change"] == ["same.example"]
    (failed,) = found["not_compared"]
    assert failed["nodes"] == ["broken.example"]
    assert "no role for this node" in failed["reason"]


def test_why_a_file_changed(stage: Stage, run: Run) -> None:
    """From the event to the bytes, and to those of the run before."""
    agent = stage.enrolled("explained.example")
    for copied in ("one\n", "two\n"):
        _play(stage, agent, SHARED.replace("VERSION", "x"), copied, 2)
    ref = f"File[{agent.target}/copied]"
    status, out, _ = run("why", stage.capture, ref, "--json")
    found = json.loads(out)
    assert (status, found["outcome"], found["run"]["run"]) == (0, "changed", 2)
    assert found["messages"][0]["text"].startswith("content changed ")
    assert found["file"].endswith(f"/manifests/{agent.certname}.pp")
    assert found["containers"] == ["Stage[main]", "Class[main]", f"Node[{agent.certname}]"]
    (copy,) = found["files"]
    assert (copy["name"], copy["content"]) == ("modules/compared/copied.txt", "two\n")
    assert {fetch["digest"] for fetch in copy["fetches"]} == {"right"}
    lines = [line for difference in found["differences"] for line in difference["lines"]]
    assert lines == ["@@ -1 +1 @@", "-one", "+two"]
