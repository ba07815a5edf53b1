"""Install what ``make package repo`` built in directories of Debian 11, 12 and 13 that have nothing of ours, record a
run of their agents with a real master, and take it away: the one file, and the .deb and the .rpm from the signed
repository (root, debootstrap, rpmbuild, real Puppet, some minutes).

    python3 .ci/package/check.py
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import build
import repo

from tests.real import releases
from tests.real.machine import host_names
from tests.real.overlay import overlay
from tests.real.puppet import RealMaster
from tests.real.through import PROXY_HOST, PROXY_NAME, Stage

RELEASES = {"bullseye": ("Debian 11", "2.31", "puppet"), "bookworm": ("Debian 12", "2.36", "puppet-agent"),
            "trixie": ("Debian 13", "2.41", "puppet-agent")}  # fmt: skip
"""Each with its glibc and the package of its agent (5.5, 7.23, 8.10)."""
STARTED = """
puppet-inspector --version
puppet-inspector explain B01 > /srv/explained && grep -q B01 /srv/explained
puppet-inspector list /srv/sample.sqlite > /srv/listed && grep -q catalog /srv/listed
puppet-inspector run -o /srv/run.sqlite -- puppet agent -t --color=false --confdir $CONFDIR || [ $? = 2 ]
puppet-inspector runs --json /srv/run.sqlite | grep '"outcome": "complete"'
rm /srv/run.sqlite*
"""
OLD_AGENT = """
set -eu
puppet config set masterport $PORT --section agent --confdir $CONFDIR
puppet config set certificate_revocation leaf --section main --confdir $CONFDIR
"""
"""Puppet 5.5 has another name for the port. It reads only the first CRL of its file, and the CA has two: T08's fix."""
ONE_FILE = f"""
set -eu
install -m 755 /srv/puppet-inspector-*-linux-* /usr/local/bin/puppet-inspector
{STARTED}
rm -r /usr/local/bin/puppet-inspector /var/cache/puppet-inspector
"""
APT = f"""
set -eu
cp /srv/repo/puppet-inspector.asc /usr/share/keyrings/puppet-inspector.asc
echo 'deb [signed-by=/usr/share/keyrings/puppet-inspector.asc] file:/srv/repo/deb ./' > /etc/apt/sources.list.d/own.list
apt-get update -q
apt-get install -q -y --no-install-recommends puppet-inspector
{STARTED}
apt-get purge -q -y puppet-inspector
"""
STAND_IN = """
Name: debian
Version: 1
Release: 1
Summary: What the .rpm requires, which is there, but not as a package that dnf knows
License: none
BuildArch: noarch
Provides: glibc = {glibc} /bin/sh /usr/sbin/useradd /usr/sbin/usermod /usr/bin/getent
%description
%files
"""
DNF = f"""
set -eu
mkdir -p /etc/yum.repos.d
cat > /etc/yum.repos.d/own.repo <<END
[own]
name=own
baseurl=file:///srv/repo/rpm
gpgkey=file:///srv/repo/puppet-inspector.asc
gpgcheck=1
repo_gpgcheck=1
END
dnf() {{ /usr/bin/dnf -y --releasever 9 "$@"; }}
dnf install /srv/debian.rpm puppet-inspector
{STARTED}
dnf upgrade /srv/*+later-1.*.rpm
rpm --query --queryformat '%{{VERSION}}' puppet-inspector | grep later
puppet-inspector --version
dnf remove puppet-inspector
[ ! -e /usr/bin/puppet-inspector ]
"""


def main() -> int:
    with tempfile.TemporaryDirectory() as directory, host_names({PROXY_NAME: PROXY_HOST}), RealMaster() as master:
        master.generate(PROXY_NAME)
        with closing(Stage(master, Path(directory))) as stage:
            failed = [_fails(release, stage) for release in RELEASES]
    return int(any(failed))


def _fails(release: str, stage: Stage) -> bool:
    """Whether something does not work in a directory of this release."""
    name, glibc, package = RELEASES[release]
    agent = stage.enrolled(f"{release}.example")
    (agent.ssldir / f"private_keys/{release}.example.pem").chmod(0o600)
    agent.configure(server=stage.master.name, port=stage.master.port)
    given = {
        "CONFDIR": f"{agent.confdir}",
        "PORT": f"{stage.master.port}",
        "RUBYLIB": f"{agent.base}/ruby",
        "INVENTED_FACTS": f"{agent.base}/facts.json",
    }
    place, above = (Path(tempfile.mkdtemp(prefix=f"puppet-inspector-{release}-")) for _ in range(2))
    failed = False
    try:
        lower = releases.make(release, place, ("ca-certificates", "dnf", "rpm", package))
        # As a mount of its own: rpm of Debian 13 makes / private before it starts a script.
        with overlay(lower.root, above) as system:
            srv = system.changes / "srv"
            shutil.copy(next(build.DIST.glob(f"{build.NAME}-{build.VERSION}-linux-*")), srv)
            shutil.copy(next(build.BUILD.glob("*+later-1.*.rpm")), srv)
            shutil.copy(build.ROOT / "captures/samples/first-run.sqlite", srv / "sample.sqlite")
            shutil.copytree(repo.PLACE, srv / "repo")
            _build_stand_in(srv, glibc)
            scripts = {"one file": ONE_FILE, "apt": APT, "dnf": DNF}
            if release == "bullseye":
                scripts = {"its agent's settings": OLD_AGENT, **scripts}
            for what, script in scripts.items():
                done = system.run(script, agent.base, **given)
                print(f"{name}, {what}: {'failed' if done.returncode else 'works'}", flush=True)
                if done.returncode:
                    failed = True
                    print(done.stdout[-3000:], done.stderr[-3000:], sep="\n", file=sys.stderr)
    finally:
        shutil.rmtree(place)
        above.rmdir()
    return failed


def _build_stand_in(target: Path, glibc: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        spec = Path(directory, "debian.spec")
        spec.write_text(STAND_IN.format(glibc=glibc))
        defined = (
            "--define",
            f"_topdir {directory}",
            "--define",
            f"_rpmdir {target}",
            "--define",
            "_rpmfilename debian.rpm",
        )
        build._run("rpmbuild", "-bb", *defined, spec)


if __name__ == "__main__":
    raise SystemExit(main())
