"""``run --on``: over a real ssh to an sshd of the test's own, and against a node that is hostile."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inspector import installation
from inspector.cli import commands, run, run_on
from inspector.cli.main import main
from inspector.errors import InspectorError
from tests.support import places, sshd
from tests.support.sshd import Node
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SAMPLE = places.SAMPLES / "compile-error.sqlite"

# What `run` and `share` do is tested with them; this is what they are to the script.
PROGRAM = f"""#!/bin/sh
case $1 in
    --version) ;;
    share) cp "$4" "$3" ;;
    run)
        capture=$3
        cp {shlex.quote(str(SAMPLE))} "$capture"
        while [ "$1" != -- ]; do echo "option $1"; shift; done
        shift
        trap 'kill $agent' TERM
        "$@" & agent=$!
        wait $agent
        status=$?
        echo "1 error: $0 check $capture"
        exit $status ;;
esac
"""
WAITS = ("--", "sh", "-c", "echo began; exec sleep 600")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    if reason := sshd.missing():
        pytest.skip(reason)
    with Node(tmp_path_factory.mktemp("node")) as running:
        yield running


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return _installed(tmp_path / "program")


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "captures" / "copy.sqlite"


@pytest.fixture
def reach(node: Node, monkeypatch: pytest.MonkeyPatch) -> Node:
    """The node, which this process reaches too."""
    monkeypatch.setenv("PATH", node.environment["PATH"])
    return node


def _installed(path: Path, text: str = PROGRAM) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def _words(program: Path, output: Path, *words: str, host: str = sshd.HOST) -> list[str]:
    return ["run", "--on", host, "--program", str(program), "-o", str(output), *words]


def _begun(node: Node, *words: str) -> subprocess.Popen[str]:
    """Begin a run in a process of its own, and wait until its command prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "inspector.cli", *words],
        env=node.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert eventually(lambda: process.stdout.readline() in ("began\n", ""))  # type: ignore[union-attr]
    return process


def _clients(process: subprocess.Popen[str]) -> list[int]:
    """Return the ssh of a run."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(number) for number in children.split()]


# -- another node --------------------------------------------------------------------------------------------


def test_what_was_there_is_here(reach: Node, program: Path, output: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = "umask; pwd; echo so >&2; exit 4"

    assert main(_words(program, output, "--", "sh", "-c", script)) == 4

    printed = capfd.readouterr()
    assert printed.out.splitlines()[3:] == [
        oct(os.umask(os.umask(0o22)))[1:].zfill(4).replace("o", "0")[-4:],
        str(Path.home()),
        f"1 error: {installation.typed()} check {output}",
    ]
    assert printed.err == f"so\npuppet-inspector: the copy without secrets and names is {output}\n"
    assert output.read_bytes() == SAMPLE.read_bytes()
    assert output.stat().st_mode & 0o777 == 0o600
    assert reach.left == []


def test_a_commands_words_arrive_as_they_are(
    reach: Node, program: Path, output: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["a b", "it's", '$HOME `id` "x" !!', "two\nlines\n", "", "-t", "\\n%s", "*", "@NONCE@ @WORDS@", "ü"]
    main(_words(program, output, "--", "printf", "<%s>", *words))
    assert "".join(f"<{word}>" for word in words) in capfd.readouterr().out


def test_options_of_the_run_go_with_it(
    reach: Node, program: Path, output: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    options = [
        "--master",
        "m.example:1",
        "--also",
        "a:1",
        "--also",
        "b:2",
        "--fault",
        "503 nth:1",
        "--as-master",
        "--json",
    ]
    main(_words(program, output, *options, "--", "true"))
    lines = [line.removeprefix("option ") for line in capfd.readouterr().out.splitlines()]
    assert lines[3:-1] == [
        "--master=m.example:1",
        "--also=a:1",
        "--also=b:2",
        "--fault=503 nth:1",
        "--as-master",
        "--json",
    ]


def test_in_json_the_capture_has_its_name_here(
    reach: Node, program: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / 'a "name"'
    main(_words(program, output, "--json", "--", "true"))
    assert capfd.readouterr().out.endswith(f'{tmp_path}/a \\"name\\"\n')


def test_the_capture_itself_comes_only_if_it_is_asked_for(
    reach: Node, tmp_path: Path, output: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    masks = _installed(tmp_path / "program", PROGRAM.replace('cp "$4" "$3"', "exit 3"))
    assert main(_words(masks, output, "--", "true")) == 2
    assert "No copy of the capture could be made on node." in capfd.readouterr().err
    assert not output.exists()

    assert main(_words(masks, output, "--raw", "--", "true")) == 0
    assert "the capture, with its secrets and names, is" in capfd.readouterr().err
    assert output.stat().st_mode & 0o777 == 0o600
    assert reach.left == []


def test_a_run_that_records_nothing_has_its_status(
    reach: Node, tmp_path: Path, output: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = _installed(tmp_path / "program", '#!/bin/sh\n[ "$1" = run ] || exit 0\necho no puppet >&2; exit 2\n')
    assert main(_words(program, output, "--", "true")) == 2
    assert capfd.readouterr().err == "no puppet\n"
    assert not output.exists()
    assert reach.left == []


def test_control_characters_stay_there(
    reach: Node, program: Path, output: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = r"\033[1;31mError\033[0m\tred \033]0;title\007 \033[8mhidden \342\200\256bidi \377 over\rwritten\n"
    main(_words(program, output, "--", "sh", "-c", f"printf '{text}'; printf '{text}' >&2"))
    clean = "\x1b[1;31mError\x1b[0m\tred \\x1b]0;title\\x07 \\x1b[8mhidden \\x202ebidi \\xff over\\x0dwritten\n"
    printed = capfd.readouterr()
    assert clean in printed.out
    assert printed.err.startswith(clean)


def test_the_program_is_one_for_that_machine(
    reach: Node, tmp_path: Path, output: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    machine = os.uname().machine
    other = _installed(tmp_path / "puppet-inspector-0.1.0-linux-vax")
    assert main(_words(other, output, "--", "true")) == 2
    assert capfd.readouterr().err == (
        f"puppet-inspector: {other.name} is for vax, but node is {machine}.\n"
        "  Build it on a host like that one (`make onefile`), and pass it: --program FILE.\n"
    )

    newer = '#!/bin/sh\necho "version \\`GLIBC_2.99\' not found" >&2; exit 1\n'
    built = _installed(tmp_path / f"puppet-inspector-0.1.0-linux-{machine}", newer)
    assert main(_words(built, output, "--", "true")) == 2
    error = capfd.readouterr().err
    assert f"{built.name} does not start on node ({machine}, " in error
    assert "GLIBC_2.99' not found.\n  Build it on a host like that one" in error
    assert reach.left == []


def test_without_a_build_there_is_one_error(
    reach: Node, output: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(installation, "PACKAGE", tmp_path / "inspector")
    assert main(["run", "--on", sshd.HOST, "-o", str(output), "--", "true"]) == 2
    assert f"There is no build here for node, which is {os.uname().machine}." in capfd.readouterr().err
    assert reach.left == []


def test_what_unpacks_itself_is_unpacked_there(program: Path, tmp_path: Path) -> None:
    """Of a one-file build only the archive is sent, of the program that runs its directory."""
    tree = tmp_path / "tree"
    _installed(tree / "puppet-inspector")
    for each in (program, tree):
        with run_on._packed(each) as packed:
            archive = packed.read()
        target = tmp_path / f"unpacked {each.name}"
        target.mkdir()
        subprocess.run(["tar", "-xzf", "-", "-C", target], input=archive, check=True)
        assert (target / "puppet-inspector").read_text() == PROGRAM

    one_file = _installed(tmp_path / "one-file", "#!/bin/sh\nexec something\n")
    with one_file.open("ab") as file:
        file.write(archive)
    with run_on._packed(one_file) as packed:
        assert packed.read() == archive


# -- who may be root there -----------------------------------------------------------------------------------


def _as_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sudo: str) -> None:
    """Let ssh be a shell of a user who is not root."""
    _installed(tmp_path / "bin/ssh", '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nexec sh -c "$3"\n')
    _installed(tmp_path / "bin/id", "#!/bin/sh\n[ $1 = -u ] && echo 1000 || echo alice\n")
    _installed(tmp_path / "bin/sudo", f"#!/bin/sh\n{sudo}\n")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def test_a_user_is_root_there_with_sudo(
    program: Path, output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    _as_user(tmp_path, monkeypatch, f'echo "$@" >>{tmp_path}/log; [ "$1" = -n ] && shift && exec "$@"')
    assert main(_words(program, output, "--", "echo", "secret")) == 0
    assert "secret\n" in capfd.readouterr().out
    # What sudo logs has neither the words of the command nor the script.
    assert "secret" not in (tmp_path / "log").read_text()


def test_who_is_not_root_there_gets_one_error(
    program: Path, output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    _as_user(tmp_path, monkeypatch, "exit 1")
    assert main(_words(program, output, "--", "true", host="far.example")) == 2
    assert capfd.readouterr().err == (
        "puppet-inspector: alice is not root on far.example, and sudo asks for a password there.\n"
        "  Log in as root (--on root@HOST), or allow `sudo -n sh` there.\n"
    )


# -- what ends a run -----------------------------------------------------------------------------------------


def test_ctrl_c_ends_the_run_there_and_brings_what_it_recorded(node: Node, program: Path, output: Path) -> None:
    process = _begun(node, *_words(program, output, *WAITS))
    # As of a terminal: to all of the group that are in the foreground.
    for each in (process.pid, *_clients(process)):
        os.kill(each, signal.SIGINT)
    out, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "1 error: " in out
    assert "the copy without secrets and names is" in error
    assert output.exists()
    assert node.left == []


def test_a_second_ctrl_c_ends_the_connection(node: Node, tmp_path: Path, output: Path) -> None:
    stubborn = _installed(tmp_path / "program", PROGRAM.replace("trap 'kill $agent' TERM", "trap '' TERM"))
    process = _begun(node, *_words(stubborn, output, "--", "sh", "-c", "echo began; exec sleep 6"))
    process.send_signal(signal.SIGINT)
    assert eventually(lambda: _takes(process))
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert not output.exists()
    assert eventually(lambda: node.left == [])


def _takes(process: subprocess.Popen[str]) -> bool:
    """Whether no signal is pending."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return all(int(line.split()[1], 16) == 0 for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd")))


@pytest.mark.parametrize("side", ["here", "there"])
def test_nothing_stays_there_when_the_connection_is_killed(node: Node, program: Path, output: Path, side: str) -> None:
    process = _begun(node, *_words(program, output, *WAITS))
    assert node.left
    if side == "there":
        node.kill_sessions()
    else:
        for each in _clients(process):
            os.kill(each, signal.SIGKILL)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "puppet-inspector: The connection with node was lost.\n" in error
    assert not output.exists()
    assert eventually(lambda: node.left == [])


def test_nothing_stays_there_when_this_process_is_killed(node: Node, program: Path, output: Path) -> None:
    process = _begun(node, *_words(program, output, *WAITS))
    process.kill()
    process.communicate(timeout=60)
    assert eventually(lambda: node.left == [])


def test_nothing_stays_there_when_nothing_is_heard_from_here(
    reach: Node, program: Path, output: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """As after a cable is cut: neither end sees that."""
    monkeypatch.setattr(run_on, "SILENCE", 1)
    assert main(_words(program, output, *WAITS)) == 2
    assert "The connection with node was lost." in capfd.readouterr().err
    assert reach.left == []


def test_signs_of_life_keep_a_run_alive(
    reach: Node, program: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_on, "SILENCE", 2)
    monkeypatch.setattr(run_on, "BEAT", 0.2)
    assert main(_words(program, output, "--", "sleep", "3")) == 0


@pytest.mark.slow
def test_what_a_kill_of_all_leaves_is_removed_by_the_next(
    node: Node, program: Path, output: Path, tmp_path: Path
) -> None:
    process = _begun(node, *_words(program, output, *WAITS))
    (own,) = node.place.iterdir()
    script, run = int(own.name.split(".")[1]), int((own / "pid").read_text())
    for each in map(int, Path(f"/proc/{script}/task/{script}/children").read_text().split()):
        if each != run:  # the one that watches
            os.kill(each, signal.SIGKILL)
    os.kill(script, signal.SIGKILL)
    os.kill(run, signal.SIGTERM)
    process.communicate(timeout=60)
    assert own.exists()  # nobody is left who could

    other = node.place / f"puppet-inspector-on.{os.getpid()}.abc"
    other.mkdir()  # a process of this number lives, but it is none of ours
    (node.place / "puppet-inspector-on.1.link").symlink_to(tmp_path)
    subprocess.run(
        [sys.executable, "-m", "inspector.cli", *_words(program, output, "--", "true")],
        env=node.environment, capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    assert node.left == ["puppet-inspector-on.1.link"]
    assert tmp_path.exists()
    (node.place / "puppet-inspector-on.1.link").unlink()


@pytest.mark.slow
def test_two_runs_do_not_disturb_each_other(node: Node, program: Path, output: Path, tmp_path: Path) -> None:
    process = _begun(node, *_words(program, output, *WAITS))
    (own,) = node.place.iterdir()
    subprocess.run(
        [sys.executable, "-m", "inspector.cli", *_words(program, tmp_path / "second.sqlite", "--", "true")],
        env=node.environment, capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    assert (own / "run.sqlite").exists()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143
    assert output.exists()
    assert node.left == []


# -- a node that is hostile ----------------------------------------------------------------------------------


@pytest.fixture
def hostile(tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch, output: Path) -> Callable[[str], int]:
    """Lets ``n`` be the mark of the script's lines for a script that answers in its place; returns the exit status."""

    def answered(script: str) -> int:
        read = "n=$(dd bs=65536 count=1 2>/dev/null | grep -o '[0-9a-f]\\{32\\}' | head -n 1)"
        _installed(tmp_path / "bin/ssh", f"#!/bin/sh\n{read}\n{script}\n")
        monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
        return main(_words(program, output, "--", "true"))

    return answered


READY = (
    "echo $n ready $(uname -m) /tmp/puppet-inspector-on.1.a glibc 2.36; read size; dd bs=1 count=$size >/dev/null 2>&1"
)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exit 255", "ssh could start nothing on node: exit status 255."),
        ("echo $n ready", "node sent what its script cannot have sent."),
        ("echo $n 'ready \033[2J\tvax' /x", "The connection with node was lost."),
        (f"{READY}; echo $n done 0 99999999999999", "node sent what its script cannot have sent."),
        (f"{READY}; echo $n done 0 -1", "node sent what its script cannot have sent."),
        (f"{READY}; echo $n done zero 1", "node sent what its script cannot have sent."),
        (f"{READY}; echo $n done 0 3000000000", "The capture of node has 3000.0 MB; no more than 2147.5 MB are taken."),
        (f"{READY}; echo $n done 0 9; echo", "The connection with node was lost."),
        (f"{READY}; echo $n done 0 5; echo junk", "captures/copy.sqlite"),
        (f"{READY}; exec yes", "node printed more than 100.0 kB."),
        (f"{READY}; exec yes >&2", "node printed more than 100.0 kB."),
        (f"{READY}; printf '%s ' $n; dd if=/dev/zero bs=65536 count=9", "node sent what its script cannot have sent."),
        (f"{READY}; echo $n failed unpack $(printf '\\033]0;x')", "cannot be unpacked on node: \\x1b]0;x."),
    ],
)  # fmt: skip
def test_what_a_node_sends_is_bounded_and_harmless(
    hostile: Callable[[str], int],
    script: str,
    message: str,
    output: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(run_on, "PRINTED", 100_000)
    assert hostile(script) == 2
    printed = capfd.readouterr()
    assert message in printed.err
    assert "\x1b" not in printed.out + printed.err
    assert not output.exists()


@pytest.mark.parametrize("host", ["-oProxyCommand=x", "", "a b", "a;b", "-l@b", "a@-b", "$(x)", "a\nb"])
def test_a_host_is_no_option_and_no_command(
    host: str, program: Path, output: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert main(["run", f"--on={host}", "--program", str(program), "-o", str(output), "--", "true"]) == 2
    assert "is no destination for ssh." in capfd.readouterr().err


@pytest.mark.parametrize("host", ["web1", "root@web1.example", "10.0.0.1", "fe80::1%eth0", "ssh://a@b:22", "EX\\a@b"])
def test_what_ssh_takes_is_taken(
    host: str, program: Path, output: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert main(["run", f"--on={host}", "--program", str(program), "-o", str(output), "--", "true"]) == 2
    assert "OpenSSH's client ssh is not installed on this host." in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--on", "node"], "There is no agent command."),
        (["--raw", "--", "true"], "--program and --raw are for a run on another node."),
        (["--on", "node", "-o", "{exists}", "--", "true"], "already exists."),
        (["--on", "node", "--program", "/nowhere/x", "--", "true"], "Cannot use /nowhere/x: No such file"),
    ],
)  # fmt: skip
def test_mistakes_are_found_before_anything_is_connected(
    words: Sequence[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    exists = tmp_path / "exists"
    exists.touch()
    assert main(["run", *(word.replace("{exists}", str(exists)) for word in words)]) == 2
    assert message in capfd.readouterr().err


def test_rules_are_for_the_copy() -> None:
    given = commands.parser_of("run").parse_args(["--on", "node", "--rules-dir", "rules", "--", "true"])
    with pytest.raises(InspectorError, match="name files of this host"):
        run.execute(given)
