"""``doctor --server-log`` with a real puppetserver: causes that only its log has."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

from tests.support import json_output

if TYPE_CHECKING:
    from tests.conftest import Run
    from tests.real.through import Stage


def _verdict(run: Run, stage: Stage) -> dict[str, Any]:
    log = stage.master.logdir / "puppetserver.log"
    _, out, err = run("doctor", stage.capture, "--server-log", log, "--json")
    assert err == ""
    verdict: dict[str, Any]
    (verdict,) = json_output.valid("doctor", out)["verdicts"]
    return verdict


def test_an_autosign_program_that_is_not_executable(stage: Stage, run: Run) -> None:
    agent, program = stage.agent("autolog.example"), stage.master.confdir / "autosign"
    program.chmod(0o644)
    try:
        with stage.proxy("none", own=True) as road:
            assert road.run(agent).status == 1
    finally:
        program.chmod(0o755)
    verdict = _verdict(run, stage)
    # By its content it is taken for a list of names.
    assert f"Invalid pattern 'exit 1' found in {program}" in [line["text"] for line in verdict["server_log"]]


def test_a_rule_of_auth_conf_is_named(stage: Stage, run: Run) -> None:
    agent, conf = stage.enrolled("denylog.example"), stage.master.confdir / "conf.d/auth.conf"
    before = conf.read_text()
    rule = 'match-request: {path: "^/puppet/v3/catalog/", type: regex, method: [get, post]}'
    rule += f', deny: "{agent.certname}", sort-order: 1, name: "no catalogs"'
    conf.write_text(before.replace("rules: [", f"rules: [ {{{rule}}},", 1))
    try:
        stage.master.reload()
        with stage.proxy(f"keys:{agent.ssldir}", own=True) as road:
            assert road.run(agent).status == 1
    finally:
        conf.write_text(before)
        stage.master.reload()
    verdict = _verdict(run, stage)
    assert verdict["cause"] == "S02"
    (line,) = verdict["server_log"]
    assert line["text"].endswith("denied by rule 'no catalogs'.")
    assert line["meaning"] == "A rule of the master's auth.conf refuses the request: no catalogs."


def test_what_the_server_may_not_read(stage: Stage, run: Run) -> None:
    agent, module = stage.enrolled("readlog.example"), stage.master.environment / "modules/filed"
    target = agent.target.parent / "x"
    code = f"class filed {{ file {{ '{target}': source => 'puppet:///modules/filed/x' }} }}"
    stage.master.module_file("filed", "files/x", b"x")
    stage.master.module_file("filed", "manifests/init.pp", code.encode())
    stage.master.manifest(agent.certname, "include filed")
    file = module / "files/x"
    os.chown(file, 0, 0)
    file.chmod(0)
    try:
        with stage.proxy(f"keys:{agent.ssldir}", own=True) as road:
            assert road.run(agent).status == 4
    finally:
        shutil.rmtree(module)
    (line,) = _verdict(run, stage)["server_log"]
    assert line["text"] == f"Puppet Server Error: Permission denied - {file}"
    assert any("chmod -R a+rX" in (step["command"] or "") for step in line["steps"])
