"""auth.conf with a real puppetserver: its decisions, the files that it does not start with, and the fix of a 403."""

from __future__ import annotations

import json
import re
import signal
import time
from typing import TYPE_CHECKING

import pytest

from inspector.errors import InspectorError
from inspector.host.auth_conf import reading
from tests.real.authorization import Clients, compare
from tests.real.faults.engine import Scene
from tests.support import auth_confs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.puppet import RealMaster

SEED = 11


def test_decisions_are_those_of_puppetserver(master: RealMaster, tmp_path: Path) -> None:
    found = compare(master, tmp_path, seed=SEED, confs=5, requests=80)
    assert found.differences == []
    assert found.compared > 250
    assert {"allowed", "denied", "not asked"} <= {*found.counts}


@pytest.fixture
def auth_conf(master: RealMaster) -> Iterator[Path]:
    """The master's auth.conf, for a test to change."""
    path = master.confdir / "conf.d/auth.conf"
    before = path.read_text()
    yield path
    path.write_text(before)
    master.ensure_running()
    master.reload()


def _ends(master: RealMaster) -> bool:
    """Whether the server ends as it reads its configuration anew. The process of 8 remains then, without serving."""
    process, log = master._process, master.logdir / "puppetserver.log"
    assert process is not None
    ready = master.confdir / "run/restart"
    before, size = ready.read_text(), log.stat().st_size
    master.signal(signal.SIGHUP)

    def ended() -> bool:
        return process.poll() is not None or b"Finished shutdown sequence" in log.read_bytes()[size:]

    while ready.read_text() in ("", before) and not ended():
        time.sleep(0.1)
    return ended()


def test_a_file_that_is_refused_ends_puppetserver(master: RealMaster, auth_conf: Path) -> None:
    """Hundreds more were compared with its library; a restart takes half a minute."""
    random = auth_confs.generator(SEED)
    texts = [auth_confs.broken(random) for _ in range(30)]
    refused = [text for text in texts if _is_refused(auth_conf, text)]
    for text in [text for text in texts if text not in refused][:2]:
        auth_conf.write_text(text)
        assert not _ends(master), text
    for text in refused[:1]:
        auth_conf.write_text(text)
        assert _ends(master), text
        auth_conf.write_text(auth_confs.conf(random))
        master.stop()
        master.start()


def _is_refused(path: Path, text: str) -> bool:
    path.write_text(text)
    try:
        reading.read(path)
    except InspectorError:
        return True
    return False


def test_the_log_names_the_rule(master: RealMaster, auth_conf: Path, tmp_path: Path) -> None:
    """At level ERROR, so that it is there by default; without a rule it names nothing."""
    auth_conf.write_text(
        'authorization: {version: 1, rules: [{match-request: {path: "/puppet-ca/v1/clean", type: path}, deny: "*", '
        'sort-order: 500, name: "no cleaning"}]}'
    )
    master.reload()
    clients = Clients(master, tmp_path)
    assert clients.ask("PUT", "/puppet-ca/v1/clean", auth_confs.PEERS[0], ()) == 403
    assert clients.ask("GET", "/puppet-ca/v1/other", auth_confs.PEERS[0], ()) == 403
    clients.close()
    log = (master.logdir / "puppetserver.log").read_text()
    line = r" ERROR .* Forbidden request: n1\.example\(127\.0\.0\.1\) access to /puppet-ca/v1/clean \(method :put\) "
    assert re.search(rf"{line}\(authenticated: true\) denied by rule 'no cleaning'\.\n", log)
    assert re.search(r" ERROR .* global deny all - no rules matched\n", log)


@pytest.fixture
def scene(master: RealMaster, auth_conf: Path, tmp_path: Path) -> Iterator[Scene]:
    """An agent that auth.conf will refuse."""
    with Scene(master, tmp_path, name="refused.example", fresh=False, way="proxy") as made:
        yield made


def _edited(scene: Scene, auth_conf: Path, text: str) -> list[dict[str, str | None]]:
    """Load a file with which the agent fails; return the steps of the fix."""
    scene.edit(auth_conf, text)
    scene.master.reload()
    with scene.proxy("failed.sqlite"):
        done = scene.run()
    assert done.returncode == 1, done.stdout
    answer = scene._json(f"puppet-inspector doctor --json {scene.stage.capture} --auth-conf {auth_conf}")
    (verdict,) = answer["verdicts"]
    assert verdict["cause"] == "S02"
    steps: list[dict[str, str | None]] = verdict["steps"]
    return steps


def _execute(scene: Scene, steps: list[dict[str, str | None]]) -> None:
    """Execute the commands as they are printed; the last one runs the agent through the proxy."""
    hosts = {"node": "node", "master": "ca"}
    with scene.proxy("after.sqlite"):
        for step in steps:
            if not step["command"]:
                continue
            done = scene.hosts.shell(hosts[step["on"] or ""], step["command"])
            assert done.returncode in (0, 2) or step["command"].startswith("grep"), f"{step}\n{done.stdout}"
            if step["command"].startswith("puppet-inspector auth"):
                assert done.stdout.startswith("allowed by "), done.stdout
    assert [step["command"] for step in steps[-2:]] == ["systemctl reload puppetserver", "puppet agent -t"]


def test_a_rule_that_is_missing_is_inserted(scene: Scene, auth_conf: Path) -> None:
    text = auth_conf.read_text()
    without = re.sub(r"\{\n[^{}]*match-request: \{\n[^{}]*/catalog/[^{}]*\}[^{}]*\$1[^{}]*\},\n", "", text, count=1)
    assert len(without) < len(text)
    steps = _edited(scene, auth_conf, without)
    assert any("sed -i" in (step["command"] or "") for step in steps)
    _execute(scene, steps)


def test_a_rule_that_denies_is_removed(scene: Scene, auth_conf: Path) -> None:
    rule = {
        "name": "nobody",
        "sort-order": 1,
        "deny": "*",
        "match-request": {"path": "/puppet/v3/catalog", "type": "path"},
    }
    text = auth_conf.read_text().replace("rules: [", f"rules: [\n{json.dumps(rule)},", 1)
    steps = _edited(scene, auth_conf, text)
    (found,) = [
        re.fullmatch(r"remove the rule that begins in line (\d+) of .*", step["text"] or "") for step in steps[1:2]
    ]
    assert found
    lines = text.splitlines()
    del lines[int(found[1]) - 1]
    scene.edit(auth_conf, "\n".join(lines))
    _execute(scene, steps)


def test_a_node_is_added_to_a_rule(scene: Scene, auth_conf: Path) -> None:
    text = auth_conf.read_text().replace('allow: "$1"', 'allow: ["other.example"]', 1)
    steps = _edited(scene, auth_conf, text)
    does = steps[1]["text"] or ""
    found = re.fullmatch(r"add refused\.example to `allow` of the rule that begins in line (\d+) of .*", does)
    assert found
    before, after = text.splitlines()[: int(found[1]) - 1], text.splitlines()[int(found[1]) - 1 :]
    rest = "\n".join(after).replace('["other.example"]', '["other.example", "refused.example"]', 1)
    scene.edit(auth_conf, "\n".join([*before, rest]))
    _execute(scene, steps)
