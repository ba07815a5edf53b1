"""Lay out what a container needs, in ``build/package/container``: a Containerfile, and a root made of the .deb that
``make package`` built, libc and its loader.

    python3 .ci/package/container.py
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import build

PLACE = build.BUILD / "container"
LIBC = ("c", "m", "dl", "pthread", "rt", "util", "resolv", "nss_files", "nss_dns")
OPTIONS = "puppet_listen: 0.0.0.0:8140\npuppet_ssldir: /keys\npuppet_capture: /captures/\n"
USER = "puppet-inspector:x:10001:10001::/captures:/nonexistent\n"


def main() -> int:
    deb = next(build.DIST.glob(f"{build.NAME}_{build.VERSION}_*.deb"), None)
    if not deb:
        sys.exit("There is no .deb to make it of.\n  make package container")
    shutil.rmtree(PLACE, ignore_errors=True)
    root = PLACE / "root"
    root.mkdir(parents=True)
    build._run("dpkg-deb", "--extract", deb, root)
    for name in ("usr/lib/systemd", "usr/share/bash-completion", "usr/share/fish", "usr/share/zsh", "usr/share/man",
                 "usr/share/lintian", "var"):  # fmt: skip
        shutil.rmtree(root / name, ignore_errors=True)
    _libc(root)
    build._place(root / "etc/passwd", f"root:x:0:0::/:/nonexistent\n{USER}".encode())
    build._place(root / "etc/group", b"root:x:0:\npuppet-inspector:x:10001:\n")
    build._place(root / "etc/nsswitch.conf", b"passwd: files\ngroup: files\nhosts: files dns\n")
    build._place(root / "etc/puppet-inspector.conf", OPTIONS.encode())
    for name in ("captures", "keys", "tmp", "proc", "dev"):
        (root / name).mkdir()
    shutil.copy(build.HERE / "Containerfile", PLACE)
    print(f"podman build -t {build.NAME} {PLACE}")
    return 0


def _libc(root: Path) -> None:
    """Copy libc, what it loads by name, and the loader to where the program names it."""
    program = root / "usr/lib" / build.NAME / build.NAME
    loader = re.search(r"interpreter: (\S+)\]", build._run("readelf", "--program-headers", program))[1]  # type: ignore[index]
    (root / loader.strip("/")).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(loader, root / loader.strip("/"))
    # The loader looks into the directory of its machine first; ldd says where that is.
    libc = Path(re.search(r"libc\.so\.6 => (\S+)", build._run("ldd", program))[1])  # type: ignore[index]
    target = root / libc.parent.relative_to("/")
    target.mkdir(parents=True, exist_ok=True)
    for name in LIBC:
        for path in libc.parent.glob(f"lib{name}.so.[0-9]"):
            shutil.copy(path, target)
    package = build._package_of(libc.name)
    if package:
        shutil.copy(
            f"/usr/share/doc/{package['name']}/copyright", root / f"usr/share/doc/{build.NAME}/licenses/libc.txt"
        )


if __name__ == "__main__":
    raise SystemExit(main())
