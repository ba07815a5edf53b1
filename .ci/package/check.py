"""Start what ``make package repo`` built in directories of Debian 11, 12 and 13 that have nothing of ours (root,
debootstrap, some minutes): the one file, and the .deb from the signed repository; the .rpm with dnf where it has it.

    python3 .ci/package/check.py
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import build
import repo

from tests.real import releases

NAMES = {"bullseye": "Debian 11", "bookworm": "Debian 12", "trixie": "Debian 13"}
STARTED = """
puppet-inspector --version
puppet-inspector explain B01 > /srv/explained && grep -q B01 /srv/explained
puppet-inspector list /srv/sample.sqlite > /srv/listed && grep -q catalog /srv/listed
"""
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
DNF = """
set -eu
rm -rf /srv/downloaded; mkdir -p /srv/downloaded /etc/yum.repos.d
cat > /etc/yum.repos.d/own.repo <<END
[own]
name=own
baseurl=file:///srv/repo/rpm
gpgkey=file:///srv/repo/puppet-inspector.asc
gpgcheck=1
repo_gpgcheck=1
END
rpm --import /srv/repo/puppet-inspector.asc
dnf -y --releasever 9 --setopt reposdir=/etc/yum.repos.d download puppet-inspector --destdir /srv/downloaded
rpm --checksig /srv/downloaded/*.rpm
"""


def main() -> int:
    failed = False
    for release, name in NAMES.items():
        place = Path(tempfile.mkdtemp(prefix=f"puppet-inspector-{release}-"))
        try:
            extra = ["ca-certificates", *(["dnf", "dnf-plugins-core", "rpm"] if release == "bookworm" else [])]
            system = releases.make(release, place, extra)
            shutil.copy(next(build.DIST.glob(f"{build.NAME}-{build.VERSION}-linux-*")), place / "srv")
            shutil.copy(build.ROOT / "captures/samples/first-run.sqlite", place / "srv/sample.sqlite")
            shutil.copytree(repo.PLACE, place / "srv/repo")
            scripts = {"one file": ONE_FILE, "apt": APT, **({"dnf": DNF} if release == "bookworm" else {})}
            for what, script in scripts.items():
                done = system.run(script)
                print(f"{name}, {what}: {'failed' if done.returncode else 'works'}")
                if done.returncode:
                    failed = True
                    print(done.stdout[-3000:], done.stderr[-3000:], sep="\n", file=sys.stderr)
        finally:
            shutil.rmtree(place)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
