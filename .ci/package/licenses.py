"""Copy the licences of the packages of this environment, and Python's own, into a directory."""

from __future__ import annotations

import sys
import sysconfig
from importlib import metadata
from pathlib import Path

BUILDERS = ("pip", "setuptools")
NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "AUTHORS")
SUFFIXES = ("", ".txt", ".md", ".rst")


def main() -> int:
    """Fail if a package has no licence text and names none."""
    target = Path(sys.argv[1])
    target.mkdir(parents=True)
    missing = []
    for package in metadata.distributions():
        name = package.metadata["Name"]
        if name in BUILDERS:
            continue
        texts = [Path(str(file.locate())) for file in package.files or ()
                 if file.name.upper().startswith(NAMES) and file.suffix in SUFFIXES]  # fmt: skip
        named = package.metadata.get("License-Expression") or package.metadata.get("License") or "; ".join(
            each for each in package.metadata.get_all("Classifier") or () if each.startswith("License"))  # fmt: skip
        if not texts and not named:
            missing.append(name)
        parts = [f"{name} {package.version}\n{(named or '').strip()[:200]}\n"]
        parts += [text.read_text(encoding="utf-8", errors="replace") for text in sorted(texts) if text.is_file()]
        (target / f"{name}.txt").write_text("\n".join(parts), encoding="utf-8")
    python = Path(sysconfig.get_path("stdlib")) / "LICENSE.txt"
    (target / "python.txt").write_bytes(python.read_bytes())
    if missing:
        print(f"No licence is named by: {', '.join(missing)}", file=sys.stderr)
    return int(bool(missing))


if __name__ == "__main__":
    raise SystemExit(main())
