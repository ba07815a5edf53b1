"""Make a directory that apt and dnf install from, ``dist/repo``, of the .deb and the .rpm in ``dist/``.

    python3 .ci/package/repo.py KEY

KEY is the id or fingerprint of a key that gpg has; all indexes and the .rpm are signed with it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys

import build

PLACE = build.DIST / "repo"


def main() -> int:
    key = sys.argv[1] if len(sys.argv) > 1 else ""
    if not key or subprocess.run(["gpg", "--list-secret-keys", key], capture_output=True).returncode:
        print(f"There is no key to sign with{f': gpg has none of {key!r}' if key else ''}.\n"
              "  make repo KEY=FINGERPRINT, one that `gpg --list-secret-keys` names.", file=sys.stderr)  # fmt: skip
        return 2
    packages = [*build.DIST.glob(f"*{build.VERSION}*.deb"), *build.DIST.glob(f"*{build.VERSION}*.rpm")]
    if len(packages) != 2:
        print("dist/ has no .deb and .rpm.\n  make package", file=sys.stderr)
        return 2
    shutil.rmtree(PLACE, ignore_errors=True)
    for path in packages:
        target = PLACE / path.suffix[1:]
        target.mkdir(parents=True)
        shutil.copy(path, target)
    (PLACE / f"{build.NAME}.asc").write_text(build._run("gpg", "--armor", "--export", key))
    _apt(key)
    _dnf(key)
    print(PLACE)
    return 0


def _apt(key: str) -> None:
    place = PLACE / "deb"
    (place / "Packages").write_text(build._run("apt-ftparchive", "packages", ".", cwd=place))
    fields = ("Origin", "Label", "Suite")
    options = [word for name in fields for word in ("-o", f"APT::FTPArchive::Release::{name}={build.NAME}")]
    release = build._run("apt-ftparchive", *options, "release", ".", cwd=place)
    (place / "Release").write_text(release)
    _sign(key, "--clearsign", "--output", place / "InRelease", place / "Release")
    _sign(key, "--armor", "--detach-sign", "--output", place / "Release.gpg", place / "Release")


def _dnf(key: str) -> None:
    place = PLACE / "rpm"
    options = ("--define", f"_gpg_name {key}", "--define", f"__gpg {shutil.which('gpg')}")
    build._run("rpmsign", *options, "--addsign", *place.glob("*.rpm"))
    build._run("createrepo_c", "--quiet", "--set-timestamp-to-revision", "--revision", build._date(), place)
    _sign(key, "--armor", "--detach-sign", "--output", place / "repodata/repomd.xml.asc", place / "repodata/repomd.xml")


def _sign(key: str, *words: object) -> None:
    build._run("gpg", "--batch", "--yes", "--local-user", key, *words)


if __name__ == "__main__":
    raise SystemExit(main())
