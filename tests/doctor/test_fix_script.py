"""Scripts of fixes are executed: what they call on which host, where they ask, and where they stop."""

from __future__ import annotations

import os
import pty
import shlex
import stat
import subprocess
from typing import TYPE_CHECKING

import pytest

from inspector.doctor import findings, fix_script, report
from inspector.doctor.fix_script import Problem
from inspector.errors import InspectorError
from inspector.rules import all_rules, rule_of
from inspector.rules.fixes import advice, group, on_ca, on_node, proved
from inspector.rules.puppet_commands import FixContext, fill
from inspector.runs.examples import ca, catalog, crl, csr, issued, talk
from inspector.runs.examples import report as reported
from inspector.runs.run import Run as AgentRun
from tests.support.captures import save
from tests.support.conversations import runs_of
from tests.support.json_output import valid
from tests.support.messages import MESSAGES
from tests.support.programs import program

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.rules import Rule
    from inspector.rules.fixes import Fix
    from tests.conftest import Run

NODE = "node1.example"


class Site:
    """A node and a CA that are reached with a command each, and note what they are asked to execute."""

    def __init__(self, path: Path) -> None:
        self.path, self.log = path, path / "log"
        self.log.touch()
        for host in ("node", "CA"):
            self.command(f"on-{host}", f'printf "%s: %s\\n" {host} "$1" >> {self.log}; exec sh -c "$1"')
        # The agent's status is 1 until its request is signed, then 2: it changes something.
        self.command("puppet", f"case $1 in agent) [ -e {path}/signed ] && exit 2; exit 1 ;; esac")
        self.command("puppetserver", f"case $2 in sign) touch {path}/signed ;; esac")

    def command(self, name: str, body: str) -> None:
        file = self.path / name
        file.write_text(f"#!/bin/sh\n{body}\n")
        file.chmod(0o755)

    def executed(self) -> list[str]:
        return self.log.read_text().splitlines()

    def run(
        self, *problems: Problem, flags: tuple[str, ...] = (), answers: str | None = None, **hosts: str
    ) -> subprocess.CompletedProcess[str]:
        """Execute the script for these problems; ``answers`` are typed on a terminal, which is missing with None."""
        script = self.path / "heal.sh"
        fix_script.write(problems, script, 1e9)
        environment = {"PATH": f"{self.path}:{os.environ['PATH']}", "ON_NODE": "on-node", "ON_CA": "on-CA", **hosts}
        master = terminal = None
        if answers is not None:
            master, terminal = pty.openpty()
            os.write(master, answers.encode())
        try:
            return subprocess.run(
                [script, *flags], env=environment, cwd=self.path, stdin=terminal or subprocess.DEVNULL,
                capture_output=True, text=True, timeout=20, check=False,
            )  # fmt: skip
        finally:
            for descriptor in filter(None, (master, terminal)):
                os.close(descriptor)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def enrol(name: str = NODE, only_if: str = "") -> Fix:
    run = AgentRun("192.0.2.1", name, agent_version="7.23.0", master_versions={"7.9.5": 1})
    return proved(fill((group("enrol", only_if=only_if),), FixContext.of(run)))


# -- what is executed ----------------------------------------------------------------------------------


def test_the_steps_are_executed_on_their_hosts_in_their_order(site: Site) -> None:
    done = site.run(Problem("it lost its key", enrol(), NODE), flags=("--yes",))
    assert (done.returncode, done.stderr) == (0, "")
    assert site.executed() == [
        f"CA: puppetserver ca clean --certname {NODE}",
        "node: puppet ssl clean; puppet agent -t",
        f"CA: puppetserver ca sign --certname {NODE}",
        "node: puppet agent -t",
    ]
    assert done.stdout.splitlines()[:3] == [
        "== it lost its key",
        "1. On the CA, remove its certificate and what waits to be signed (deletes both, and revokes the certificate):",
        f"   puppetserver ca clean --certname {NODE}",
    ]


def test_what_the_ca_has_signed_by_itself_is_not_signed_again(site: Site) -> None:
    (site.path / "signed").touch()
    done = site.run(Problem("it lost its key", enrol(), NODE), flags=("--yes",))
    assert done.returncode == 0
    assert not any(" sign " in command for command in site.executed())
    assert "(not needed: it is signed)" in done.stdout


def test_the_first_command_that_fails_ends_it(site: Site) -> None:
    site.command("puppetserver", "exit 3")
    done = site.run(Problem("it lost its key", enrol(), NODE), flags=("--yes",))
    assert (done.returncode, done.stderr) == (1, "Stopped: the command failed with status 3.\n")
    assert site.executed() == [f"CA: puppetserver ca clean --certname {NODE}"]


def test_a_request_without_a_certificate_can_be_cleaned(site: Site) -> None:
    """``puppetserver ca clean`` of 2.4.0 ends with 24 then, though it has removed the request."""
    site.command("puppetserver", f"case $2 in clean) exit 24 ;; sign) touch {site.path}/signed ;; esac")
    assert site.run(Problem("it lost its key", enrol(), NODE), flags=("--yes",)).returncode == 0
    assert len(site.executed()) == 4


@pytest.mark.parametrize("status", [1, 4, 6, 255])
def test_a_run_that_fails_ends_it(site: Site, status: int) -> None:
    site.command("puppet", f"exit {status}")
    done = site.run(Problem("it is late", (on_node("run it", "puppet agent -t"), on_ca("go on", "true")), NODE))
    assert done.stderr == f"Stopped: the command failed with status {status}.\n"
    assert site.executed() == ["node: puppet agent -t"]


def test_what_only_shows_something_may_fail(site: Site) -> None:
    steps = (on_node("check it", "puppet ssl verify"), on_ca("restart it", "true"))
    site.command("puppet", "exit 1")
    done = site.run(Problem("it is odd", steps, NODE))
    assert (done.returncode, "   (status 1)\n" in done.stdout) == (0, True)
    assert len(site.executed()) == 2


def test_steps_that_several_problems_have_are_executed_once(site: Site) -> None:
    renewal = (on_ca("sign it anew", "true"),)
    problems = [Problem("a is late", renewal, "a.example"), Problem("b is late", renewal, "b.example")]
    assert site.run(*problems).returncode == 0
    assert site.executed() == ["CA: true"]


# -- how hosts are reached -----------------------------------------------------------------------------


def test_a_host_that_is_not_named_ends_it_before_anything_is_executed(site: Site) -> None:
    done = site.run(Problem("it lost its key", enrol(), NODE), flags=("--yes",), ON_CA="")
    assert done.returncode != 0
    assert "ON_CA: is not set: write into this script how the CA is reached" in done.stderr
    assert site.executed() == []


def test_a_host_can_get_its_path_first(site: Site) -> None:
    """As ssh does it, which joins its arguments by spaces."""
    site.command("like-ssh", 'exec sh -c "$*"')
    site.command("there", f"echo $HOW > {site.path}/how")
    done = site.run(Problem("it is odd", (on_ca("go", "there"),)), ON_CA="like-ssh export HOW=$HOME:x;")
    assert (done.returncode, (site.path / "how").read_text().endswith(":x\n")) == (0, True)


def test_only_the_hosts_that_are_used_are_asked_for() -> None:
    text = fix_script.script([Problem("it is late", (on_node("run it", "puppet agent -t"),), NODE)], 1e9)
    assert "ON_NODE=${ON_NODE-}  # node1.example\n" in text
    assert not any(name in text for name in ("ON_CA=", "ON_MASTER", "ON_PROXY"))


def test_each_agent_is_a_host_of_its_own(site: Site) -> None:
    run = (on_node("run it", "puppet agent -t"),)
    site.command("puppet", "exit 0")
    site.command("on-other", f'printf "other: %s\\n" "$1" >> {site.log}')
    problems = [Problem("a is late", run, "a.example"), Problem("b is late", run, "b.example")]
    assert site.run(*problems, ON_NODE_2="on-other").returncode == 0
    assert site.executed() == ["node: puppet agent -t", "other: puppet agent -t"]
    assert "how b.example is reached" in site.run(*problems).stderr


# -- where it asks and stops ---------------------------------------------------------------------------


def test_without_a_terminal_nothing_is_deleted(site: Site) -> None:
    done = site.run(Problem("it lost its key", enrol(), NODE))
    assert (done.returncode, done.stderr) == (1, "Stopped: nothing was deleted by this step.\n")
    assert site.executed() == []


def test_on_a_terminal_each_deletion_is_asked_for(site: Site) -> None:
    done = site.run(Problem("it lost its key", enrol(), NODE), answers="y\nn\n")
    assert (done.returncode, len(site.executed())) == (1, 1)
    done = site.run(Problem("it lost its key", enrol(), NODE), answers="y\nyes\n")
    assert (done.returncode, len(site.executed())) == (0, 5)


def test_a_condition_is_asked_once_and_without_a_terminal_its_steps_are_skipped(site: Site) -> None:
    problem = Problem("it lost its key", enrol(only_if="it was reinstalled"), NODE)
    site.command("puppet", "exit 0")
    done = site.run(problem, flags=("--yes",))
    assert site.executed() == ["node: puppet agent -t"]
    assert "3. Skipped: on the CA, sign its new request, unless the CA autosigns\n" in done.stdout
    done = site.run(problem, flags=("--yes",), answers="y\n")
    assert done.stdout.count("If it was reinstalled: is this the case? [y/N]") == 1
    assert len(site.executed()) == 1 + 3


def test_advice_waits_on_a_terminal_only(site: Site) -> None:
    problem = Problem("it is odd", (advice("read the log"), on_ca("go on", "true")))
    assert site.run(problem).returncode == 0
    done = site.run(problem, answers="\n")
    assert "1. Read the log.\n   Enter when this is done." in done.stdout
    assert site.executed() == ["CA: true"] * 2


def test_a_name_that_is_not_known_has_to_be_filled_in(site: Site) -> None:
    done = site.run(Problem("its name is wrong", (on_node("set it", "puppet config set server <name>"),), NODE))
    assert done.returncode == 1
    assert "fill in <name> in the command of step 1" in done.stderr
    assert site.executed() == []


# -- hostile text --------------------------------------------------------------------------------------

HOSTILE = (
    "$(touch pwned)", "`touch pwned`", "'; touch pwned; '", '"; touch pwned; "', "a\ntouch pwned\n", "a\r\ntouch pwned",
    "x'\ntouch pwned #", "\\'; touch pwned; \\'", "}; touch pwned; {", "&& touch pwned", "\x1b]0;x\x07", "-n", "%s%n",
    "\u2028touch pwned", "*", "<name>", "${PATH}", "\ud800", "EOF\ntouch pwned",
)  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_breaks_out(site: Site, text: str) -> None:
    steps = (
        advice(text),
        on_ca(text, "true", destroys=text),
        on_node(text, "true", only_if=text),
        on_ca("", "true"),
    )
    done = site.run(Problem(text, steps, text), Problem(f"b{text}", steps, f"b{text}"), flags=("--yes",), ON_NODE_2="x")
    assert done.returncode == 0, done.stderr
    assert not (site.path / "pwned").exists()
    assert site.executed().count("CA: true") == 4
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("name", HOSTILE)
def test_no_certname_gets_into_a_command(site: Site, name: str) -> None:
    done = site.run(Problem("it lost its key", enrol(name), name), flags=("--yes",))
    assert "fill in <certname> in the command of step 1" in done.stderr
    assert site.executed() == []
    assert not (site.path / "pwned").exists()


def test_a_command_is_one_word_for_the_host(site: Site) -> None:
    path = site.path / "it's $(touch pwned) a\nfile"
    path.touch()
    remove = on_node("remove it", f"rm {shlex.quote(str(path))}")
    done = site.run(Problem("a file is old", (remove,), NODE))
    assert (done.returncode, path.exists()) == (0, False)
    assert not (site.path / "pwned").exists()


# -- every fix -----------------------------------------------------------------------------------------


def fixes_of(rule: Rule) -> list[Fix]:
    """The fixes of a rule: for the runs of its bad examples, and for a run of which nothing is known."""
    runs: list[AgentRun] = []
    for records in rule.bad():
        runs += runs_of(records)
    return [*dict.fromkeys(proved(rule.fix_for(run)) for run in [None, *runs])]


def check_syntax(path: Path, fixes: list[Fix]) -> None:
    """Write a script for each of some fixes, and for all of them together; the shell must read each."""
    problems = [Problem(f"{number}", fix, NODE) for number, fix in enumerate(fixes)]
    for each in [[problem] for problem in problems] + [problems]:
        fix_script.write(each, path, 1e9)
        done = subprocess.run(["sh", "-n", path], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: str(rule.id))
def test_the_script_of_every_rule_can_be_read(rule: Rule, tmp_path: Path) -> None:
    check_syntax(tmp_path / "heal.sh", fixes_of(rule))


def test_the_script_of_every_known_message_can_be_read(tmp_path: Path) -> None:
    fixes = [fill(fix) for known in MESSAGES for fix in (known.check, known.fix)]
    problems = [Problem(f"{number}", fix, NODE) for number, fix in enumerate(fixes)]
    path = tmp_path / "heal.sh"
    fix_script.write(problems, path, 1e9)
    done = subprocess.run(["sh", "-n", path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


STUBS = (
    "curl", "find", "gem", "getent", "git", "ip", "journalctl", "openssl", "ping", "puppet-inspector", "puppetdb", "rm",
    "ss", "systemctl", "timedatectl", "touch",
)  # fmt: skip
REAL = ("cat", "date", "grep", "head", "ps", "sh", "sha256sum", "tail")


@pytest.mark.slow
@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: str(rule.id))
def test_the_script_of_every_rule_can_be_executed(rule: Rule, site: Site) -> None:
    """On hosts that have stand-ins of the programs that change something, and no other."""
    for name in (*STUBS, "setting"):
        site.command(name, "exit 0")
    site.command("puppet", f"case $1 in agent) exit 2 ;; config) echo {site.path}/setting ;; esac")
    for name in REAL:
        (site.path / name).symlink_to(program(name, name))
    hosts = {f"ON_{name}": "on-node" for name in ("MASTER", "PROXY", "PUPPETDB")} | {"PATH": str(site.path)}
    for fix in fixes_of(rule):
        done = site.run(Problem(rule.title, fix, NODE), flags=("--yes",), **hosts)
        if done.returncode:
            assert "Stopped: fill in " in done.stderr
            continue
        assert all(f"\n{number}. " in done.stdout for number in range(1, len(fix) + 1))


def test_a_run_with_more_options_ends_as_one_without(site: Site) -> None:
    """With 2, if it changed something."""
    steps = (on_node("see what it does", "puppet agent -t --debug"), on_ca("go on", "true"))
    site.command("puppet", "exit 2")
    assert site.run(Problem("it is odd", steps, NODE)).returncode == 0
    site.command("puppet", "exit 6")
    assert site.run(Problem("it is odd", steps, NODE)).stderr == "Stopped: the command failed with status 6.\n"


# -- the file ------------------------------------------------------------------------------------------

PROBLEM = Problem("it is late", (on_node("run it", "puppet agent -t"),), NODE)


def test_the_file_is_for_its_owner_only_and_replaces_only_its_like(tmp_path: Path) -> None:
    path = tmp_path / "heal.sh"
    fix_script.write([PROBLEM], path, 1e9)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    first = path.read_text()
    fix_script.write([PROBLEM], path, 1.1e9)
    assert path.read_text() != first
    path.write_text("#!/bin/sh\nmine\n")
    with pytest.raises(InspectorError, match="exists, and is no script of this option"):
        fix_script.write([PROBLEM], path, 1e9)
    assert path.read_text() == "#!/bin/sh\nmine\n"


def test_no_file_is_written_where_none_can_be(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for path in (tmp_path, tmp_path / "none" / "heal.sh", tmp_path / "link"):
        with pytest.raises(InspectorError) as error:
            fix_script.write([PROBLEM], path, 1e9)
        assert error.value.hint
    assert [file.name for file in tmp_path.iterdir()] == ["link"]


def test_doctor_writes_it(run: Run, tmp_path: Path) -> None:
    text = "already has a signed certificate"
    lost = talk(ca(), crl(), csr(key="new", status=400, text=text), issued(), certname="lost.example", after=60)
    capture = save(tmp_path / "broken.sqlite", *talk(catalog(), reported()), *lost)
    script = tmp_path / "heal.sh"
    _, out, _ = run("doctor", capture, "--fix-script", script)
    assert out.splitlines()[-1] == f"wrote {script}: say in it how the hosts are reached, then run it"
    written = script.read_text()
    assert "$ON_CA 'puppetserver ca clean --certname lost.example'" in written
    assert subprocess.run(["sh", "-n", script], check=False).returncode == 0
    document = valid("doctor", run("doctor", capture, "--json", "--fix-script", script)[1])
    assert document["fix_script"] == str(script)
    assert valid("doctor", run("doctor", capture, "--json")[1])["fix_script"] is None


def test_the_verdict_is_printed_also_if_no_script_can_be_written(run: Run, tmp_path: Path) -> None:
    capture = save(tmp_path / "broken.sqlite", *rule_of("S01").bad()[0])
    _, verdict, _ = run("doctor", capture)
    assert "S01" in verdict
    status, out, err = run("doctor", capture, "--fix-script", tmp_path)
    assert (status, out, "exists" in err) == (2, verdict, True)
    status, out, err = run("doctor", capture, "--fix-script", tmp_path, "--json")
    assert (status, "exists" in err) == (2, True)
    document = valid("doctor", out)
    assert (document["verdicts"][0]["cause"], document["fix_script"]) == ("S01", None)


def test_without_a_problem_there_is_no_script(run: Run, tmp_path: Path) -> None:
    capture = save(tmp_path / "healthy.sqlite", *talk(catalog(), reported()))
    script = tmp_path / "heal.sh"
    status, out, _ = run("doctor", capture, "--fix-script", script)
    assert (status, out.splitlines()[-1]) == (0, f"{script} was not written: there is nothing to heal")
    assert not script.exists()


def test_only_the_worst_is_healed() -> None:
    found = [findings.error("a", "b", PROBLEM.steps), findings.warning("c", "d", PROBLEM.steps)]
    assert [problem.what for problem in report.worst(report.CaptureReport(), found)] == ["a: b"]
