"""On a Debian like this one with nothing but puppet-agent: what brings the tool, what it does, what takes it away.

Debian's own ``debootstrap`` makes the system, in a directory; commands run in it with mounts of their own.
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inspector import __version__
from tests.real import releases
from tests.real.machine import free_port
from tests.real.releases import System
from tests.support import packages
from tests.support.programs import program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.agent import RealAgent
    from tests.real.through import Stage

pytestmark = pytest.mark.usefixtures("master")  # skips where real Puppet cannot be run

VOLATILE = ("proc", "dev", "sys", "run", "tmp", "root", "srv", "var/log", "var/cache/apt", "var/cache/debconf",
            "var/lib/apt", "var/lib/dpkg", "var/lib/rpm", "var/cache/ldconfig", "var/backups")  # fmt: skip
"""What the package manager itself leaves, and what is in no file."""


SERVICE = ("setpriv --reuid puppet-inspector --regid puppet-inspector --init-groups "
           "puppet-inspector proxy --options /etc/puppet-inspector.conf")  # fmt: skip
"""The command of the unit, as its user."""
ENROLLED = """
rm -rf /var/lib/puppet/ssl; mv /srv/ssl /var/lib/puppet/ssl
chown -R puppet:puppet /var/lib/puppet/ssl; chmod -R g=rX,o= /var/lib/puppet/ssl
cp /etc/puppet/puppet.conf /srv
printf '[main]\\ncertname = clean.example\\nserver = SERVER\\n' > /etc/puppet/puppet.conf
"""
"""Makes a host of it that has a certificate, as Debian's puppet-agent has it: its group may read the keys."""
SHARED = ("man/man1/puppet-inspector.1.gz", "bash-completion/completions/puppet-inspector",
          "zsh/vendor-completions/_puppet-inspector", "fish/vendor_completions.d/puppet-inspector.fish")  # fmt: skip
"""What the package has below /usr/share for shells and man."""


class Clean(System):
    """A Debian whose files are looked at."""

    def files(self) -> set[str]:
        """All its files and directories."""
        return {
            str(path.relative_to(self.root))
            for top in self.root.iterdir() if top.name not in VOLATILE
            for path in (top, *top.rglob("*")) if not str(path.relative_to(self.root)).startswith(VOLATILE)
        }  # fmt: skip


@pytest.fixture(scope="module")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clean]:
    """A Debian with puppet-agent, without our Python and without the checkout. (An older one has not the glibc that is
    needed by what is built here.)"""
    root = tmp_path_factory.mktemp("debian")
    releases.make(platform.freedesktop_os_release()["VERSION_CODENAME"], root, ["puppet-agent"])
    yield Clean(root)
    shutil.rmtree(root)


@pytest.fixture
def agent(stage: Stage) -> RealAgent:
    """An agent of the master, whose configuration and identity are in a directory that the Debian gets."""
    agent = stage.enrolled("clean.example")
    (agent.ssldir / "private_keys/clean.example.pem").chmod(0o600)
    agent.configure(server=stage.master.name, port=stage.master.port)
    return agent


def test_one_line_puts_the_file_there_and_one_takes_it_away(debian: Clean, stage: Stage, agent: RealAgent) -> None:
    (debian.root / "srv" / packages.one_file().name).write_bytes(packages.one_file().read_bytes())
    before = debian.files()
    debian.done("install -m 755 /srv/puppet-inspector-*-linux-* /usr/local/bin/puppet-inspector")
    assert debian.done("puppet-inspector --version") == f"puppet-inspector {__version__}\n"
    assert debian.run("python3 --version").returncode == 127

    # The puppet that `run` starts has this machine's libraries, not those of the build.
    (debian.root / "usr/local/bin/puppet").write_text('#!/bin/sh\necho "${LD_LIBRARY_PATH-unset}" > /srv/path\n'
                                                      'exec /usr/bin/puppet "$@"\n')  # fmt: skip
    (debian.root / "usr/local/bin/puppet").chmod(0o755)
    base = agent.base
    capture = base / "capture.sqlite"
    done = debian.run(
        f"puppet-inspector run -o {capture} --json -- puppet agent -t --color=false --confdir {agent.confdir}",
        base, RUBYLIB=f"{base}/ruby", INVENTED_FACTS=f"{base}/facts.json",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (2, ""), done.stdout + done.stderr
    runs = json.loads("[" + done.stdout.partition("\n[\n")[2])
    assert [(run["certname"], run["outcome"]) for run in runs] == [("clean.example", "complete")]
    assert (debian.root / "srv/path").read_text() == "unset\n"

    found = json.loads(debian.run(f"puppet-inspector doctor --json {capture}", base).stdout)
    assert found
    opened = debian.quit_after("clean.example", f"stty rows 30 cols 100; puppet-inspector open {capture}", base)
    assert "clean.example" in opened
    started = debian.run("puppet-inspector proxy --set puppet_master=nowhere.invalid")
    assert (started.returncode, "Traceback" in started.stderr) == (2, False), started.stderr

    (debian.root / "usr/local/bin/puppet").unlink()
    debian.done("rm -r /usr/local/bin/puppet-inspector /var/cache/puppet-inspector")
    left = {name for name in debian.files() - before if not name.startswith(str(base).strip("/"))}
    assert left - {str(Path(*base.parts[1:index])) for index in range(2, len(base.parts))} == set()


def test_the_rpm_is_installed_upgraded_and_removed(debian: Clean) -> None:
    """Its scripts run in that directory; what rpm knows of it is there, too."""
    # Debian's rpm up to 4.18 installs on Debian only with it, and 4.20 does not know it; its plugins warn of a root.
    forced = [program("rpm", "rpm"), "--force-debian"]
    begin = forced[: 2 if subprocess.run([*forced, "--version"], capture_output=True).returncode == 0 else 1]

    def rpm(*words: object) -> str:
        command = [*begin, "--noplugins", "--root", debian.root, "--dbpath", "/var/lib/rpm", *words]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    before = debian.files()
    assert rpm("--install", "--nodeps", packages.rpm()) == ""
    assert debian.done("puppet-inspector --version") == f"puppet-inspector {__version__}\n"
    state = debian.done(
        "stat -c '%a %U %G' /var/lib/puppet-inspector /etc/puppet-inspector.conf; id -Gn puppet-inspector"
    )
    assert state == "700 puppet-inspector puppet-inspector\n644 root root\npuppet-inspector puppet\n"
    names = [name.replace("vendor-completions/_", "site-functions/_") for name in SHARED]
    assert [each for each in names if (debian.root / "usr/share" / each).stat().st_size < 100] == []
    unit = (debian.root / "usr/lib/systemd/system/puppet-inspector.service").read_text()
    assert "ExecStart=/usr/bin/puppet-inspector proxy --options /etc/puppet-inspector.conf\n" in unit
    assert rpm("--verify", "--nodeps", "puppet-inspector") == ""

    (debian.root / "etc/puppet-inspector.conf").write_text("puppet_master: changed.example\n")
    (debian.root / "var/lib/puppet-inspector/a.sqlite").write_text("a capture")
    assert rpm("--upgrade", "--nodeps", packages.rpm(later=True)) == ""
    assert rpm("--query", "--queryformat", "%{VERSION}", "puppet-inspector") == f"{__version__}+later"
    assert (debian.root / "etc/puppet-inspector.conf").read_text() == "puppet_master: changed.example\n"

    (debian.root / "var/lib/puppet-inspector/a.sqlite").unlink()
    saved = "/etc/puppet-inspector.conf"
    assert rpm("--erase", "puppet-inspector") == f"warning: {saved} saved as {saved}.rpmsave\n"
    debian.done("rm /etc/puppet-inspector.conf.rpmsave; userdel puppet-inspector")
    assert debian.files() - before == set()


def test_the_package_is_installed_upgraded_removed_and_purged(debian: Clean, stage: Stage, agent: RealAgent) -> None:
    for path in (packages.deb(), packages.deb(later=True)):
        shutil.copy(path, debian.root / "srv")
    before = debian.files()
    debian.done(f"apt-get install -q -y --no-install-recommends /srv/{packages.deb().name}")
    assert debian.done("command -v puppet-inspector; puppet-inspector --version").split("\n")[:2] == [
        "/usr/bin/puppet-inspector", f"puppet-inspector {__version__}",
    ]  # fmt: skip
    state = debian.done(
        "stat -c '%a %U %G' /var/lib/puppet-inspector /etc/puppet-inspector.conf; id -Gn puppet-inspector"
    )
    assert state == "700 puppet-inspector puppet-inspector\n644 root root\npuppet-inspector puppet\n"
    assert [each for each in SHARED if (debian.root / "usr/share" / each).stat().st_size < 100] == []
    unit = (debian.root / "usr/lib/systemd/system/puppet-inspector.service").read_text()
    assert "ExecStart=/usr/bin/puppet-inspector proxy --options /etc/puppet-inspector.conf\n" in unit
    assert "SupplementaryGroups" not in unit
    assert not list((debian.root / "etc/systemd/system").rglob("puppet-inspector*")), "it is not enabled"
    # The unit's command, as its user: on a host that was never enrolled, one sentence.
    service = debian.run(SERVICE)
    assert service.returncode == 2
    assert service.stderr.startswith("puppet-inspector: Cannot read the CA bundle /var/lib/puppet/ssl"), service.stderr
    # On one that was enrolled it starts with the options as they are installed, and ends in order.
    shutil.copytree(agent.ssldir, debian.root / "srv/ssl")
    debian.done(ENROLLED.replace("SERVER", stage.master.name))
    service = debian.run(f"timeout --signal INT 20 {SERVICE} --set puppet_listen=127.0.0.1:{free_port('127.0.0.1')}")
    assert "The capture is /var/lib/puppet-inspector/" in service.stdout, service.stdout + service.stderr
    debian.done("mv /srv/puppet.conf /etc/puppet; rm -r /var/lib/puppet/ssl")

    # An upgrade asks nothing, and leaves the configuration and the captures alone.
    (debian.root / "etc/puppet-inspector.conf").write_text("puppet_master: changed.example\n")
    (debian.root / "var/lib/puppet-inspector/a.sqlite").write_text("a capture")
    debian.done(f"dpkg -i /srv/{packages.deb(later=True).name}")
    assert debian.done("dpkg-query -W -f '${Version}' puppet-inspector") == f"{__version__}+later"
    assert (debian.root / "etc/puppet-inspector.conf").read_text() == "puppet_master: changed.example\n"

    debian.done("apt-get remove -q -y puppet-inspector")
    assert (debian.root / "var/lib/puppet-inspector/a.sqlite").read_text() == "a capture"
    assert not (debian.root / "usr/lib/puppet-inspector").exists()
    debian.done("apt-get purge -q -y puppet-inspector")
    assert debian.files() - before == set()
    assert debian.run("getent passwd puppet-inspector; getent group puppet-inspector").stdout == ""
