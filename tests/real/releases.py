"""Other releases of Debian in directories, for the versions of Puppet that this machine's release does not have.

Debian's own ``debootstrap`` makes them; commands run in them with mounts of their own, so nothing stays mounted. What
is made once is kept for the next session.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8"}
RELEASES = {"trixie": ("puppet-agent", "puppetserver"), "sid": ("openvox-agent",)}
"""What is installed in each: Puppet Server 8.7 with agent 8.10, and OpenVox 9's agent. Directories are named so."""
ALSO = {
    "trixie": {"puppet-terminus-puppetdb": "usr/lib/ruby/vendor_ruby/puppet/indirector/facts/puppetdb.rb"},
    "sid": {"procps": "usr/bin/ps", "adduser": "usr/sbin/adduser"},
}
"""What is installed besides, each with a file of it: a directory that was made before lacks it. An agent of Puppet that
finds a lock looks with ``ps`` whose it is; our package needs ``adduser``."""
_OLD_INDEXES = 'Acquire::Check-Valid-Until "false";\nAcquire::Check-Date "false";\n'
"""A mirror may hold a day of the past, and the index of a release under development is valid for a week."""
_NO_SERVICES = "#!/bin/sh\nexit 101\n"
NOT_HAD = "no directory with Debian"
"""Begins the reason for which tests with another release are not run; the session's last line names it
(tests/conftest)."""


class TooSlow(RuntimeError):
    """A directory was not made in time."""


class System:
    """A Debian in a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def command(self, script: str, *binds: Path) -> list[str]:
        """The command that runs a shell script in it; ``binds`` are directories of this machine that are there, too.

        The process of the command is that of the script's shell: a signal reaches it.
        """
        mounts = [f"mount -t proc none {self.root}/proc", f"mount --bind /etc/hosts {self.root}/etc/hosts",
                  f"mount --rbind /dev {self.root}/dev", f"mount --rbind /sys {self.root}/sys"]  # fmt: skip
        for bind in binds:
            (self.root / bind.relative_to("/")).mkdir(parents=True, exist_ok=True)
            mounts.append(f"mount --rbind {bind} {self.root}{bind}")
        inside = f"exec chroot {self.root} /bin/sh -c {shlex.quote(script)}"
        return ["unshare", "--mount", "/bin/sh", "-ec", "\n".join([*mounts, inside])]

    def run(self, script: str, *binds: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a shell script in it."""
        return subprocess.run(self.command(script, *binds), env=ENVIRONMENT | environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True)  # fmt: skip

    def program(self, name: str, directory: Path) -> Path:
        """Write a script of this name to a directory, which is that program of this Debian, and return its path."""
        own_path = f"export PATH={ENVIRONMENT['PATH']}"  # the caller's may lead back to this script
        *outer, script = self.command(f'{own_path}; exec {name} "$@"', *SHARED)
        path = directory / name
        path.write_text(f'#!/bin/sh\nexec {shlex.join([*outer, f'{script} {name} "$@"', name])} "$@"\n')
        path.chmod(0o755)
        return path

    def quit_after(self, shown: str, script: str, *binds: Path) -> str:
        """Run a program in a terminal of it, press q when it shows a text, and return what it showed."""
        command = self.command(f"script -qec {shlex.quote(script)} /dev/null", *binds)
        pipe = subprocess.PIPE
        with subprocess.Popen(command, env=ENVIRONMENT | {"TERM": "xterm"}, stdin=pipe, stdout=pipe) as process:
            assert process.stdin
            assert process.stdout
            found = b""
            while (part := os.read(process.stdout.fileno(), 2**16)) and shown.encode() not in found:
                found += part
            process.stdin.write(b"q")
            process.stdin.flush()
            found += process.stdout.read()
        return found.decode(errors="replace")

    def done(self, script: str, *binds: Path) -> str:
        """Run a script that must succeed; return what it prints."""
        done = self.run(script, *binds)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def make(release: str, root: Path, packages: Sequence[str], seconds: float | None = None) -> System:
    """Make a Debian of this release with these packages and what they need, in a directory that is empty or absent.

    It comes from where this machine's own packages come from. Raises RuntimeError when it cannot be had, TooSlow when
    it is not made in so many seconds.
    """
    deadline = None if seconds is None else time.monotonic() + seconds

    def left() -> float | None:
        return None if deadline is None else max(0, deadline - time.monotonic())

    try:
        # With mounts of its own: one that is killed leaves none behind.
        debootstrap = ("unshare", "--mount", "debootstrap", "--variant=minbase")
        _succeed(*debootstrap, release, f"{root}", _mirror(), seconds=left())
        root.chmod(0o755)  # its users must be able to go through
        (root / "etc/hosts").touch()
        (root / "etc/apt/apt.conf.d/99old-indexes").write_text(_OLD_INDEXES)
        system = System(root)
        _install(system, packages, left())
    except subprocess.TimeoutExpired as error:
        raise TooSlow(f"{NOT_HAD} {release}: {', '.join(packages)} took more than {seconds:.0f} s") from error
    except (OSError, subprocess.CalledProcessError) as error:
        printed = f"{error.stdout}{error.stderr}"[-2000:] if isinstance(error, subprocess.CalledProcessError) else ""
        raise RuntimeError(f"{NOT_HAD} {release} with {', '.join(packages)}: {error}\n{printed}") from error
    return system


def _install(system: System, packages: Sequence[str], seconds: float | None) -> None:
    """Install packages without starting their services."""
    policy = system.root / "usr/sbin/policy-rc.d"
    policy.write_text(_NO_SERVICES)
    policy.chmod(0o755)
    script = f"apt-get update -q && apt-get install -q -y --no-install-recommends {shlex.join(packages)}"
    command = system.command(f"export DEBIAN_FRONTEND=noninteractive; {script} && apt-get clean")
    _succeed(*command, seconds=seconds)
    policy.unlink()


def stored(release: str, seconds: float | None = None) -> System:
    """The release with its packages of ``RELEASES``, made by the first who asks.

    Raises RuntimeError when it cannot be had, TooSlow when it is not there yet and not made in so many seconds.
    """
    packages = RELEASES[release]
    root = cache() / "-".join((release, *packages))
    root.parent.mkdir(parents=True, exist_ok=True)
    with Path(f"{root}.lock").open("w") as lock:
        flock(lock, LOCK_EX)  # two sessions may want it
        if not root.exists():
            unfinished = Path(f"{root}.unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            make(release, unfinished, (*packages, *ALSO.get(release, ())), seconds)
            unfinished.rename(root)
        system = System(root)
        absent = [name for name, file in ALSO.get(release, {}).items() if not (root / file).exists()]
        if absent:
            try:
                _install(system, absent, seconds)
            except (OSError, subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
                raise RuntimeError(f"{NOT_HAD} {release} with {', '.join(absent)}: {error}") from error
    return system


def cache() -> Path:
    """A directory outside of the checkout, and of /tmp, which is seen from inside."""
    named = os.environ.get("XDG_CACHE_HOME")
    return Path(named) / "puppet-inspector-tests" if named else Path("/var/cache/puppet-inspector-tests")


def _mirror() -> str:
    """Where this machine's packages of its own release come from."""
    own = "$(SITE) $(CODENAME) $(ORIGIN) $(LABEL)"
    listed = _succeed("apt-get", "indextargets", "--format", own).splitlines()
    sites = [line.split()[0] for line in listed if line.endswith(" Debian Debian") and "-" not in line.split()[1]]
    if not sites:
        raise OSError("apt's sources here name no mirror of Debian")
    return sites[0]


def _succeed(*command: str, seconds: float | None = None) -> str:
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=os.environ | ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe,
                          text=True, start_new_session=True) as process:  # fmt: skip
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with all that it has started
            raise
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, out, err)
    return out


SCRATCH = Path(tempfile.gettempdir())
"""What is to be seen in a release's directory too: where tests keep what they make."""
SHARED = (SCRATCH, *Path("/usr/lib").glob("*/faketime"))
"""The same, and this machine's library for wrong clocks, which needs nothing but an older libc."""


def visible(path: Path) -> tuple[Path, ...]:
    """Return what must be bound in a release's directory, so that a path is seen there."""
    return SHARED if path.is_relative_to(SCRATCH) else (*SHARED, path)
