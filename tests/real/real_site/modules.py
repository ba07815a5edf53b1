"""The real modules of the site: Debian's packages ``puppet-module-*``, unpacked beside the releases and kept."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.releases import System

PACKAGES = (
    *(f"puppet-module-puppetlabs-{name}" for name in (
        "apache", "apt", "concat", "cron-core", "firewall", "haproxy", "host-core", "inifile", "mysql", "ntp",
        "postgresql", "rabbitmq", "rsync", "selinux-core", "sshkeys-core", "stdlib", "vcsrepo", "xinetd")),
    *(f"puppet-module-{name}" for name in (
        "aboe-chrony", "arioch-redis", "camptocamp-kmod", "camptocamp-openssl", "camptocamp-postfix",
        "camptocamp-systemd", "cinder", "duritong-sysctl", "glance", "heat", "horizon", "ironic", "keystone", "neutron",
        "nova", "octavia", "oslo", "placement", "puppet-archive", "rodjek-logrotate", "saz-memcached", "sbitio-monit",
        "swift", "voxpupuli-collectd", "voxpupuli-corosync")),
)  # fmt: skip
"""With what these depend on they are some sixty modules, with 700 plugins."""


def unpacked(release: System, directory: Path) -> Path:
    """A modulepath of these modules, made in a directory if it is not there; a release of Debian fetches them.

    Raises AssertionError when they cannot be had.
    """
    modules = directory / "modules"
    if modules.exists():
        return modules
    archives, unfinished = directory / "archives", directory / "unfinished"
    for path in (archives / "partial", unfinished / "modules"):
        path.mkdir(parents=True, exist_ok=True)
    fetch = "apt-get install --download-only -q -y --no-install-recommends"
    release.done(f"apt-get update -q && {fetch} -o Dir::Cache::archives={archives} {' '.join(PACKAGES)}", archives)
    for archive in archives.glob("puppet-module-*.deb"):
        subprocess.run(["dpkg-deb", "-x", archive, unfinished / "packages"], check=True)
    for module in (unfinished / "packages/usr/share/puppet/modules.available").iterdir():
        # A package's postinst would make this name: puppetlabs-host-core is the module host_core.
        name = module.name.partition("-")[2] or module.name
        shutil.copytree(module, unfinished / "modules" / name.replace("-", "_"))
    (unfinished / "modules").rename(modules)
    shutil.rmtree(unfinished)
    return modules
