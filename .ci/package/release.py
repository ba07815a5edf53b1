"""Check that what is about to be released belongs together: version, changelog, tag, tree, built files, digests."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

STATED_GLIBC = (2, 31)
"""The oldest glibc that the one-file build runs on, as docs/install.md says: that of the portable interpreter."""
ROOT = Path(__file__).resolve().parent.parent.parent
KINDS = {"wheel": "*.whl", "sdist": "*.tar.gz", "one-file build": "*-linux-*", ".deb": "*.deb", ".rpm": "*.rpm",
         "SBOM": "*.cdx.json"}  # fmt: skip


def problems(root: Path) -> list[str]:
    """Return what stands against a release, each as a sentence with what to do."""
    version = re.search(r'__version__ = "([^"]+)"', (root / "inspector/__init__.py").read_text())[1]  # type: ignore[index]
    found = []
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", version):
        found.append(f"The version {version!r} in inspector/__init__.py is no semantic version: write it as 1.2.3.")
    heading = re.search(r"^## (.+)$", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    if not heading or not re.fullmatch(rf"{re.escape(version)} \(\d{{4}}-\d\d-\d\d\)", heading[1]):
        found.append(f"CHANGELOG.md begins with {heading[1] if heading else 'no section'!r}: write "
                     f"'{version} (YYYY-MM-DD)'.")  # fmt: skip
    if changed := _git(root, "status", "--porcelain"):
        found.append(f"{len(changed.splitlines())} files are not committed: commit them.")
    if _git(root, "describe", "--tags", "--exact-match").strip() != f"v{version}":
        found.append(f"The commit has no tag v{version}: git tag -s v{version}.")
    return found + _wrong_files(root / "dist", version)


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True).stdout


def _wrong_files(dist: Path, version: str) -> list[str]:
    sums = dist / "SHA256SUMS"
    if not sums.is_file():
        return ["dist/ has not been built: make package."]
    lines = dict(reversed(line.split("  ", 1)) for line in sums.read_text().splitlines())
    found = [f"dist/ has no {kind} of {version}: make package." for kind, pattern in KINDS.items()
             if not any(version in path.name and path.name in lines for path in dist.glob(pattern))]  # fmt: skip
    for name, digest in lines.items():
        path = dist / name
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            found.append(f"dist/{name} is not the file that SHA256SUMS names: make package.")
        elif name.endswith(".deb"):
            found += _unfit(f"dist/{name}", _glibc(path))
    return found


def _unfit(name: str, glibc: tuple[int, ...]) -> list[str]:
    if not glibc:
        return [f"{name} does not say which glibc it needs: make package."]
    needed = ".".join(map(str, glibc))
    return [f"{name} needs glibc {needed}: make interpreter package."] if glibc > STATED_GLIBC else []


def _glibc(deb: Path) -> tuple[int, ...]:
    """The glibc that a package depends on; empty if it does not say so."""
    done = subprocess.run(["dpkg-deb", "--field", deb, "Depends"], capture_output=True, text=True)
    needed = re.search(r"libc6 \(>= ([\d.]+)\)", done.stdout)
    return tuple(map(int, needed[1].split("."))) if needed else ()


def main() -> int:
    found = problems(ROOT)
    print(
        "\n".join(found) or "Version, changelog, tag and built files belong together.",
        file=sys.stderr if found else None,
    )
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main())
