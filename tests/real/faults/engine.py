"""Play a fault: it is made, the agent fails, the cause is asked for, and its fix executed as it is written.

A fix is read from the JSON that a user gets, and nothing else. Where it tells an administrator to correct something
without a command (a manifest, a firewall), what the fault changed is undone.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self

from inspector.doctor.cross_check import CONSEQUENCE
from inspector.model import Severity
from inspector.rules import rule_of
from inspector.rules.fixes import BLANK
from tests.real.agent import installed
from tests.real.hosts import Hosts, host_of
from tests.real.machine import free_port
from tests.real.through import PROXY_HOST, Road, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.real.agent import RealAgent
    from tests.real.hosts import Host
    from tests.real.puppet import RealMaster
    from tests.real.releases import System

type Way = Literal["proxy", "mitmdump", "run"]
"""The agent takes `puppet-inspector proxy` or mitmdump for its master, or is started with `run`."""
HOSTS: dict[str, Host] = {"node": "node", "CA": "ca", "master": "master", "proxy": "proxy"}
"""The hosts of steps."""
RAN = (0, 2)
"""How a run ends in which everything was applied."""
_TIMES = re.compile(
    r"[0-9.]+ seconds|transaction_uuid=[0-9a-f-]+| - connect\(2\) for [^()]*|peeraddr=\S+| \(corrective\)"
    r"|file[0-9]{8}-\w+-\w+\.lock|Connection reset by peer"
    r"|SSL_read: (?:unexpected eof while reading|\(null\) \(tls_retry_write_records failure\))"
)
"""What differs from run to run, by the version of Ruby, and by who is at the other end of the connection."""
_TIMEOUT = re.compile(
    r"timed out connect operation after |failed after : Failed to open TCP connection to \S+ \(execution expired\)"
)
"""A timeout is the answer of an HTTP proxy, where it is one."""
_ERROR = re.compile(r"^(?:Error|Notice: Skipping|Notice: Run of)[^\n]*", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A way to fail, and what must be said of it."""

    name: str
    kind: str
    make: Callable[[Scene], None]
    """Makes the fault; what it changes is undone afterwards (``Scene.edit``, ``Scene.later``)."""
    cause: str
    """A rule's id, the title of a diagnosis, or words of the message if nothing of it is a deviation. Empty: agent and
    master come to terms with it, and no error may be named."""
    through: str | None = None
    """The cause with `run`, which sees each connection that the agent asks for; None: the same."""
    agent: Literal["standing", "enrolled", "fresh"] = "standing"
    """Has a certificate that other faults use as well; has one of its own; has none yet."""
    looks: tuple[str, ...] = ()
    """Where the administrator looks besides the capture: ``ssldir``, ``cadir``, ``live``, or ``explain`` instead of
    it: at the agent's error message."""
    true: tuple[str, ...] = ()
    """Words of the conditions in the fix that are true here."""
    fill: tuple[tuple[str, str], ...] = ()
    """What the administrator puts in the place of a ``<word>`` in a command."""
    corrects: str = ""
    """Words of the fix that tell to correct by hand what the fault broke; then no command does it."""
    ends: tuple[int, ...] = (1,)
    """How the agent's run may end."""
    fails: int = 1
    """Runs that fail before the cause is asked for."""
    also: tuple[str, ...] = ()
    """Errors besides the cause that are true."""
    rests: float = 0
    """Seconds that the proxy goes on afterwards: it waits for a master longer than an impatient agent."""
    restarts: bool = False
    """Whether the master is restarted, which takes half a minute."""
    once: bool = False
    """Whether a second run meets another fault."""
    from_8: str | None = None
    """The cause with a master of version 8 or later; None: the same."""
    repeated: str | None = None
    """The cause with an agent that repeats what a busy master did not answer; None: the same."""
    or_else: tuple[str, ...] = ()
    """Causes that are right as well: which one is named depends on what came first."""
    since: int = 0
    """The first major version of agents for which it is a fault."""
    needs: str = ""
    """A program without which it cannot be made."""
    agent_needs: str = ""
    """A program of the node's system without which its agent does not come as far."""

    def cause_with(self, scene: Scene) -> str:
        """Return the cause on the way that the agent takes, with the master that it has."""
        if self.repeated is not None and repeats(scene.agent):
            return self.repeated
        if scene.way == "run" and self.through is not None:
            return self.through
        if scene.way != "run" and scene.master.system and self.from_8 is not None:
            return self.from_8
        return self.cause


def repeats(agent: RealAgent) -> bool:
    """Whether an agent repeats a request as a busy master says: those before 7.26 and 8.2 fail (S24)."""
    version = installed()
    return agent.system is not None or version >= (8, 2) or (7, 26) <= version < (8,)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a fix."""

    text: str
    on: str | None = None
    command: str | None = None
    only_if: str | None = None
    destroys: str | None = None


@dataclass(slots=True)
class Tally:
    """How a play ended."""

    named: str = ""
    """The cause, as the inspector names it."""
    right: bool = False
    works: bool = False
    by_hand: bool = False
    alarms: list[str] = field(default_factory=list)
    """Other errors that are no consequences."""
    harm: list[str] = field(default_factory=list)
    """Keys and certificates that a command deleted without saying so."""
    seconds: float = 0
    log: list[str] = field(default_factory=list)
    """What happened, for who looks for the reason."""

    @property
    def good(self) -> bool:
        return self.right and self.works and not self.alarms and not self.harm


class Scene:
    """An agent, its road through a proxy, and what a fault changes of them and of the master."""

    def __init__(
        self, master: RealMaster, directory: Path, *, name: str, fresh: bool, way: Way, system: System | None = None
    ) -> None:
        """``system``: another release of Debian whose agent it is, instead of this machine's."""
        self.master, self.directory, self.way = master, directory, way
        self.stage = Stage(master, directory, own=way == "proxy")
        self.port = master.port if way == "run" else free_port(PROXY_HOST)
        self.options: dict[str, str | Path] = {}
        """Of the proxy."""
        self.agent = (self.stage.agent if fresh else self.stage.enrolled)(name, system=system)
        self.node = self.certname = name
        direct = Road(master, master.name, master.port)
        self.hosts = Hosts(self.agent, direct if way == "run" else Road(master, "proxy.example", self.port))
        self.identity = f"keys:{self.agent.ssldir}"
        """Of the proxy towards the master."""
        self._changes, self._end = ExitStack(), ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.undo()
        self._end.close()
        self.stage.close()

    # -- what a fault changes ----------------------------------------------------------------------------

    def later(self, callback: Callable[..., object], *arguments: object) -> None:
        """Undo a change with this."""
        self._changes.callback(callback, *arguments)

    def at_the_end(self, callback: Callable[..., object], *arguments: object) -> None:
        """Do this when all is over: what the fault leaves behind, and the fix may leave as well."""
        self._end.callback(callback, *arguments)

    def undo(self) -> None:
        """Undo all that the fault changed, the last change first."""
        self._changes.close()

    def edit(self, path: Path, content: bytes | str | None) -> None:
        """Write a file, or delete it (None)."""
        before = path.read_bytes() if path.is_file() else None
        self.later(self.put, path, before)
        self.put(path, content.encode() if isinstance(content, str) else content)

    def put(self, path: Path, content: bytes | None) -> None:
        """Write a file of the node or of the master, or delete it (None), for good."""
        if content is None:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        if path.is_relative_to(self.master.confdir):
            self.master.give_to_puppet(path)

    def manage(self, code: str) -> None:
        """What the master manages on this node."""
        self.edit(self.master.environment / f"manifests/{self.certname}.pp", f"node '{self.certname}' {{\n{code}\n}}\n")

    def configure(self, **settings: object) -> None:
        """Set something in the node's puppet.conf."""
        conf = self.agent.confdir / "puppet.conf"
        self.later(self.put, conf, conf.read_bytes())
        for name, value in settings.items():
            assert self.hosts.shell("node", f"puppet config set {name} '{value}' --section agent").returncode == 0

    def configure_master(self, **settings: object) -> None:
        """Set something in the master's puppet.conf, and let it read that."""
        self._changes.enter_context(self.master.configured(**settings))

    def behind(self, target: str) -> None:
        """Let the proxy take this address for its master, or the agent where it asks for its master itself."""
        if self.way == "run":
            host, _, port = target.rpartition(":")
            self.configure(server=host, serverport=port)
            return
        self.options["puppet_master"] = target
        self.later(self.options.pop, "puppet_master")

    # -- what happens ------------------------------------------------------------------------------------

    @contextmanager
    def proxy(self, capture: str) -> Iterator[None]:
        """The proxy, running; `run` starts its own."""
        self.stage.capture = self.directory / capture
        if self.way == "run":
            yield
            return
        options: dict[str, Any] = {
            "puppet_crl": self.master.cadir / "ca_crl.pem", "puppet_listen": f"{PROXY_HOST}:{self.port}", **self.options
        }  # fmt: skip
        with self.stage.proxy(self.identity, **options):
            yield

    def directly(self) -> subprocess.CompletedProcess[str]:
        """A run of the agent without the proxy, which is not recorded."""
        own = "" if self.way == "run" else f" --server {self.master.name} --serverport {self.master.port}"
        return self.hosts.shell("node", f"puppet agent -t{own}")

    @property
    def address(self) -> str:
        """Where the node reaches its master."""
        return self.master.host if self.way == "run" else PROXY_HOST

    def rename(self, certname: str) -> None:
        """Give the node another certname."""
        self.certname = certname
        conf = self.agent.confdir / "puppet.conf"
        self.edit(conf, re.sub(r"(?m)^certname = .*", f"certname = {certname}", conf.read_text()))

    def run(self) -> subprocess.CompletedProcess[str]:
        """The agent's next run."""
        through = f"puppet-inspector run --confdir {self.agent.confdir} -o {self.stage.capture} -- "
        return self.hosts.shell("node", f"{through if self.way == 'run' else ''}puppet agent -t")

    def ask(self, looks: tuple[str, ...], output: str) -> dict[str, Any]:
        """What `doctor` says of the capture and of where the administrator looks besides, or `explain` of an error."""
        if "explain" in looks:
            found = _ERROR.search(output)
            assert found, output
            message = found[0].replace("'", "'\\''")
            return {"explained": self._json(f"puppet-inspector explain --json -- '{message}'")}
        words = [f"puppet-inspector doctor --json {self.stage.capture}"]
        if "ssldir" in looks:
            words.append(f"--ssldir {self.agent.ssldir} --certname {self.certname}")
        if "cadir" in looks:
            words.append(f"--cadir {self.master.cadir}")
        if "live" in looks:
            words.append(f"--live {self.options.get('puppet_master', f'{self.master.name}:{self.master.port}')}")
        return self._json(" ".join(words))

    def _json(self, command: str) -> dict[str, Any]:
        done = self.hosts.shell("node", f"{command} 2>{self.directory}/stderr")
        assert done.returncode in (0, 1), f"{command}\n{done.stdout}\n{(self.directory / 'stderr').read_text()}"
        found: dict[str, Any] = json.loads(done.stdout)
        return found


# -- what was answered ------------------------------------------------------------------------------------


@dataclass(slots=True)
class Advice:
    """The cause that is named first, and its fix."""

    names: tuple[str, ...]
    """All its names: rule, title, message."""
    text: str
    steps: list[Step]
    message: str
    alarms: list[str]
    error: bool = True
    """Whether what is named is an error."""


def advice(found: dict[str, Any], fault: Fault, certname: str) -> Advice:
    """Choose what is named first: the verdict on the agent's latest run, or the worst diagnosis."""
    if "explained" in found:
        answer = found["explained"]
        assert "meaning" in answer, f"`explain` does not know it: {answer}"
        return Advice(
            (answer["meaning"],), answer["remedy"], steps_of(answer), f"{answer['meaning']} {answer['causes']}", []
        )
    # A certificate's name is not known of an agent that stopped before it showed one.
    verdicts = [v for v in found["verdicts"] if v.get("superseded_by") is None and v["certname"] in (certname, None)]
    errors = [d for d in found["diagnoses"] if d["severity"] == "error"]
    candidates = [
        *((v, (v["cause"],), v["message"], v["besides"]) for v in verdicts if _is_error(v)),
        *((d, (d["rule"] or "", d["what"]), f"{d['what']}: {d['detail']}", []) for d in errors),
        *((v, (v["cause"] or "",), v["message"], v["besides"]) for v in verdicts),
        *((d, (d["rule"] or "", d["what"]), f"{d['what']}: {d['detail']}", []) for d in found["diagnoses"]),
    ]
    if not candidates:
        return Advice(("",), "", [], "no problems", [], error=False)
    item, names, message, besides = candidates[0]
    known = {fault.cause, *names, *fault.also}
    alarms = [rule for rule in besides if rule not in known]
    alarms += [v["cause"] for v in verdicts if v["cause"] not in known and _is_error(v)]
    alarms += [d["what"] for d in errors if not known & {d["rule"], d["what"]} and CONSEQUENCE not in d["detail"]]
    fix = item.get("remedy") or ""
    error = item in errors or (item in verdicts and _is_error(item))
    return Advice(names, fix, steps_of(item), message, list(dict.fromkeys(alarms)), error)


def _is_error(verdict: dict[str, Any]) -> bool:
    return bool(verdict["cause"]) and rule_of(verdict["cause"]).severity is Severity.ERROR


def steps_of(item: dict[str, Any]) -> list[Step]:
    """The steps of a fix."""
    return [
        Step(step["text"] or "", step["on"], step["command"], step["only_if"], step["destroys"])
        for step in item["steps"]
    ]


# -- the play ---------------------------------------------------------------------------------------------


def play(
    fault: Fault, master: RealMaster, directory: Path, *, way: Way = "proxy", system: System | None = None
) -> Tally:
    """Play one fault in a new directory, with the agent of another release (``system``) if that is given."""
    began, tally = time.monotonic(), Tally()
    words = re.sub(r"[^a-z0-9]+", "-", fault.name.lower()).strip("-")[:40].strip("-")
    name = f"{'node' if fault.agent == 'standing' else words}-{way}.example"
    with Scene(master, directory, name=name, fresh=fault.agent == "fresh", way=way, system=system) as scene:
        try:
            _play(fault, scene, tally)
        except (AssertionError, subprocess.TimeoutExpired, RuntimeError, OSError) as error:
            tally.log.append(f"stopped: {error!r}")
    tally.seconds = time.monotonic() - began
    return tally


def _play(fault: Fault, scene: Scene, tally: Tally) -> None:
    fault.make(scene)
    with scene.proxy("failed.sqlite"):
        for _ in range(fault.fails):
            done = scene.run()
        time.sleep(fault.rests)
    failed = done.stdout
    tally.log.append(failed)
    if scene.way == "run":
        _compare(fault, scene, done, tally)
    assert done.returncode in fault.ends, f"the run ended with {done.returncode}"
    found = scene.ask(fault.looks, failed)
    answer = advice(found, fault, scene.certname)
    tally.log.append(json.dumps(found, indent=1))
    cause = fault.cause_with(scene)
    causes = (cause, *fault.or_else)
    tally.right = any(c in answer.names or c in answer.message for c in causes) if cause else not answer.error
    tally.named = next(filter(None, answer.names), cause if tally.right else answer.message) or answer.message
    tally.alarms = answer.alarms
    tally.by_hand = bool(fault.corrects)
    if fault.corrects:
        assert fault.corrects.lower() in answer.text.lower(), f"the fix does not say {fault.corrects!r}: {answer.text}"
        scene.undo()
    with scene.proxy("after.sqlite"):
        for step in answer.steps:
            _execute(step, fault, scene, tally)
        done = scene.run()
    tally.log.append(done.stdout)
    # A run that succeeded in spite of the fault must not show its error any more.
    error = _ERROR.search(failed)
    tally.works = done.returncode in RAN and not (error and error[0] in done.stdout)


def _compare(fault: Fault, scene: Scene, through: subprocess.CompletedProcess[str], tally: Tally) -> None:
    """Compare a run through `run` with a direct one, which comes after it: its status, and its red lines."""
    if fault.agent == "fresh" or fault.once:
        return  # the first run has changed what the next one does
    direct = scene.directly()
    tally.log.append(f"directly:\n{direct.stdout}")
    # Of two good runs the first changes more.
    same = through.returncode == direct.returncode or {through.returncode, direct.returncode} <= set(RAN)
    assert same, f"directly it ends with {direct.returncode}"
    ours, own = (
        {_TIMEOUT.sub("timed out", _TIMES.sub("", line).replace("502 ", "").replace('"', ""))
         for line in _ERROR.findall(text)}
        for text in (through.stdout, direct.stdout)
    )  # fmt: skip
    assert own <= ours, f"directly it prints {own - ours}"


def _identities(scene: Scene) -> set[tuple[Path, bytes]]:
    """The keys and certificates that are there: of the node, of the server, and those that the CA signed."""
    ssldirs = (scene.agent.ssldir, scene.master.ssldir)
    return {
        (path, path.read_bytes())
        for directory in (*ssldirs, scene.master.cadir / "signed")
        for path in directory.rglob("*.pem")
        if path.parent.name in ("private_keys", "certs", "signed")
    }


def _execute(step: Step, fault: Fault, scene: Scene, tally: Tally) -> None:
    if step.command is None or (step.only_if and not any(words in step.only_if for words in fault.true)):
        return
    command = step.command
    for word, value in fault.fill:
        command = command.replace(word, value.format(name=scene.node, server=scene.hosts.road.server, port=scene.port))
    if BLANK.search(command):
        tally.log.append(f"not filled in: {command}")
        return
    host = HOSTS[step.on] if step.on else host_of(command)
    before = _identities(scene)
    done = scene.hosts.shell(host, command)
    lost = before - _identities(scene)
    if lost and not step.destroys:
        tally.harm.append(f"{command}: {', '.join(sorted(path.name for path, _ in lost))}")
    tally.log.append(f"{host}$ {command}\n{done.stdout}[{done.returncode}]")
