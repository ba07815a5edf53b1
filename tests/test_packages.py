"""What is released: it is whole, installs, carries its licences, and its one-file build unpacks itself safely."""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from inspector import __version__
from inspector.cli import demo
from inspector.lab import Lab
from tests.support import packages, proxies
from tests.support.places import ROOT
from tests.support.programs import program

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

type Started = subprocess.CompletedProcess[str]

PROGRAM = packages.BUILD / "tree/puppet-inspector"


def _pythons() -> list[Path]:
    """The interpreters of this machine that are new enough, one of each version."""
    found = {sys.version_info[:2]: Path(sys.executable)}
    for path in Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/3.*/bin/python"):
        version = re.search(r"/3\.(\d+)\.", str(path))
        if version and int(version[1]) >= 12:
            found.setdefault((3, int(version[1])), path)
    return [found[version] for version in sorted(found)]


@pytest.fixture(scope="module")
def dist() -> Path:
    return packages.built()


def test_each_file_has_its_digest(dist: Path) -> None:
    done = subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=dist, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    suffixes = sorted(line.split(": ")[0].rpartition(__version__)[2] for line in done.stdout.splitlines())
    machine = os.uname().machine
    assert suffixes[:4] == sorted([f"-1.{machine}.rpm", f"-linux-{machine}", "-py3-none-any.whl", ".cdx.json"])
    assert len(suffixes) == 6


@pytest.mark.parametrize("python", _pythons(), ids=lambda path: path.parts[-3])
def test_pipx_installs_the_wheel(dist: Path, tmp_path: Path, python: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    homes = {f"PIPX_{what}": str(tmp_path / name)
             for what, name in {"HOME": "home", "BIN_DIR": "bin", "MAN_DIR": "man"}.items()}  # fmt: skip
    words = ["install", "--python", python, "--pip-args", f"-c {ROOT / 'constraints.txt'}", wheel]
    done = subprocess.run([packages.BUILD / "tools/bin/pipx", *map(str, words)], env=os.environ | homes,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    program = tmp_path / "bin/puppet-inspector"
    version = subprocess.run([program, "--version", "--verbose"], capture_output=True, text=True)
    assert version.stdout.startswith(f"puppet-inspector {__version__} (installed package)\n"), version.stderr
    assert (tmp_path / "man/man1/puppet-inspector.1").is_file()


def test_the_sbom_names_what_is_inside(dist: Path) -> None:
    (path,) = dist.glob("*.cdx.json")
    sbom = json.loads(path.read_text())
    assert (sbom["bomFormat"], sbom["metadata"]["component"]["name"]) == ("CycloneDX", "puppet-inspector")
    named = {each["name"]: each["version"] for each in sbom["components"]}
    assert {"cpython", "mitmproxy", "libssl3", "libsqlite3-0"} <= {name.removesuffix("t64") for name in named}
    assert not named.keys() & {"pip", "pyinstaller", "pytest"}
    inside = {info.name.split("-")[0].lower() for info in (PROGRAM / "_internal").glob("*-*.dist-info")}
    assert "flask" in inside
    assert inside - {"puppet_inspector"} <= {name.replace("-", "_").lower() for name in named}
    licences = {path.stem for path in (PROGRAM / "licenses").glob("*.txt")}
    assert {("python" if name == "cpython" else name) for name in named} <= licences
    assert "Apache License" in (PROGRAM / "licenses/puppet-inspector.txt").read_text()


def test_no_directory_of_this_machine_is_inside(dist: Path) -> None:
    inside = [path for path in PROGRAM.rglob("*") if path.is_file()]
    assert len(inside) > 100
    assert [str(path) for path in inside if str(ROOT).encode() in path.read_bytes()] == []


def test_lintian_finds_no_error(dist: Path) -> None:
    command = [program("lintian", "lintian"), "--fail-on", "error", str(packages.deb())]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_rpmlint_finds_no_error(dist: Path) -> None:
    command = [
        program("rpmlint", "rpmlint"),
        "--config",
        str(ROOT / ".ci/package/rpm/rpmlint.toml"),
        str(packages.rpm()),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert " 0 errors" in done.stdout, done.stdout + done.stderr


@pytest.fixture(scope="module")
def container(dist: Path) -> list[str]:
    """The command that runs it without a right, with a root that it cannot write. (Podman does as well, but wants more
    of the machine that tests run on.)"""
    subprocess.run([sys.executable, ROOT / ".ci/package/container.py"], check=True, capture_output=True)
    return [program("bwrap", "bubblewrap"), "--unshare-all", "--share-net", "--uid", "10001", "--gid", "10001",
            "--cap-drop", "ALL", "--ro-bind", f"{packages.BUILD}/container/root", "/", "--proc", "/proc",
            "--dev", "/dev", "--clearenv", "--setenv", "HOME", "/captures"]  # fmt: skip


def _mounted(path: Path, *, writable: bool = False) -> list[str]:
    """The option that puts a directory into the container; what is root's here is the user's there."""
    return ["--bind" if writable else "--ro-bind", f"{path}", f"/{path.name}"]


def test_the_container_has_no_shell(container: list[str]) -> None:
    root = packages.BUILD / "container/root"
    assert not [path for path in root.rglob("*") if path.name in {"sh", "bash", "dash", "busybox"}]


def test_the_container_runs(container: list[str], tmp_path: Path) -> None:
    captures, keys = tmp_path / "captures", tmp_path / "keys"
    captures.mkdir()
    keys.mkdir()
    shutil.copy(ROOT / "captures/samples/first-run.sqlite", captures)

    def start(*words: str) -> Started:
        mounts = [*_mounted(captures, writable=True), *_mounted(keys), "--chdir", "/captures"]
        alone = [*container, *mounts, "/usr/bin/puppet-inspector", *words]
        return subprocess.run(alone, capture_output=True, text=True, timeout=300)

    assert start("--version").stdout == f"puppet-inspector {__version__}\n"
    assert "catalog" in start("list", "first-run.sqlite").stdout
    proxy = start("proxy", "--options", "/etc/puppet-inspector.conf", "--set", "puppet_master=puppet.example")
    assert (proxy.returncode, proxy.stdout) == (2, "")
    assert proxy.stderr.startswith("puppet-inspector: Cannot read the CA bundle /keys/certs/ca.pem"), proxy.stderr


def test_an_agent_runs_through_the_container(container: list[str], tmp_path: Path) -> None:
    captures, keys = tmp_path / "captures", tmp_path / "keys"
    captures.mkdir()
    with Lab(answers=demo.recorded(), autosign=True, trust_headers=True) as lab:
        shutil.copytree(lab.proxy_ssldir, keys)
        lab.proxy_address = proxies.HOST, proxies.free_port()
        options = proxies.options(lab, captures) | {
            "puppet_listen": "{}:{}".format(*lab.proxy_address),
            "puppet_ssldir": "/keys",
            "puppet_identity": "headers",
            "puppet_capture": "/captures/",
        }
        words = [word for name, value in options.items() for word in ("--set", f"{name}={value}")]
        mounts = [*_mounted(captures, writable=True), *_mounted(keys), "--chdir", "/captures"]
        alone = [
            *container,
            *mounts,
            "/usr/bin/puppet-inspector",
            "proxy",
            "--options",
            "/etc/puppet-inspector.conf",
            *words,
        ]
        pipe, out = subprocess.PIPE, subprocess.STDOUT
        with subprocess.Popen(alone, stdout=pipe, stderr=out, text=True, start_new_session=True) as running:
            assert running.stdout
            try:
                begun = itertools.takewhile(lambda line: "listens on" not in line, running.stdout)
                printed = "".join(begun)
                assert lab.agent("agent.lab.example").run().status == 2, printed
            finally:
                os.killpg(running.pid, signal.SIGTERM)  # bubblewrap itself passes no signal on
                printed = running.stdout.read()
        assert "The capture is /captures/" in printed
    (capture,) = captures.glob("*.sqlite")
    (run,) = proxies.analyzed(capture).runs
    assert (run.certname, run.outcome) == ("agent.lab.example", "complete")


def test_a_repository_needs_a_key(dist: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / ".ci/package/repo.py")]
    for given, reason in ([], "."), (["0123"], ": gpg has none of '0123'."):
        done = subprocess.run([*command, *given], env=os.environ | {"GNUPGHOME": str(tmp_path)}, capture_output=True,
                              text=True)  # fmt: skip
        assert (done.returncode, done.stderr.splitlines()) == (2, [
            f"There is no key to sign with{reason}",
            "  make repo KEY=FINGERPRINT, one that `gpg --list-secret-keys` names.",
        ])  # fmt: skip


# -- the file that unpacks itself -----------------------------------------------------------------------------------


@pytest.fixture
def start(dist: Path, tmp_path: Path) -> Callable[..., Started]:
    """Starts a copy of the file as somebody who is not root."""
    place = tmp_path / "place"
    place.mkdir()
    program = place / "program"
    shutil.copy(packages.one_file(), program)
    user: dict[str, Any] = {}
    if os.geteuid() == 0:
        user = {"user": "nobody", "group": "nogroup", "extra_groups": []}
        shutil.chown(place, "nobody")
        for parent in (tmp_path, *tmp_path.parents):
            if parent != Path("/") and parent.stat().st_uid == 0 and parent.parent != Path("/"):
                parent.chmod(parent.stat().st_mode | 0o011)

    def call(*words: str, home: Path | None = place, **environment: str) -> Started:
        names = {"PATH": os.environ["PATH"], **({"HOME": str(home)} if home else {}), **environment}
        return subprocess.run(["/bin/sh", program, *(words or ("--version",))], env=names, cwd=place,
                              capture_output=True, text=True, **user)  # fmt: skip

    return call


def _unpacked(home: Path) -> list[str]:
    return sorted(path.name for path in (home / ".cache/puppet-inspector").iterdir())


def test_it_unpacks_once(start: Callable[..., Started], tmp_path: Path) -> None:
    first = start()
    assert (first.returncode, first.stdout, first.stderr) == (0, f"puppet-inspector {__version__}\n", "")
    (name,) = _unpacked(tmp_path / "place")
    assert re.fullmatch(re.escape(__version__) + "-[0-9a-f]{12}", name)
    before = (tmp_path / "place/.cache/puppet-inspector" / name).stat().st_ctime_ns
    assert "(one-file build)" in start("--version", "--verbose").stdout
    assert (tmp_path / "place/.cache/puppet-inspector" / name).stat().st_ctime_ns == before


def test_eight_first_starts_at_once(start: Callable[..., Started], tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda _: start(), range(8)))
    assert [(each.returncode, each.stderr) for each in done] == [(0, "")] * 8
    assert len(_unpacked(tmp_path / "place")) == 1


def test_without_a_home(start: Callable[..., Started]) -> None:
    done = start(home=None)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == ("puppet-inspector: HOME is not set, so there is no directory to unpack in.\n"
                           "  Set HOME or XDG_CACHE_HOME.\n")  # fmt: skip


def test_a_file_that_was_cut_unpacks_nothing(start: Callable[..., Started], tmp_path: Path) -> None:
    with (tmp_path / "place/program").open("r+b") as file:
        file.truncate(10_000_000)
    done = start()
    assert (done.returncode, done.stdout) == (2, "")
    assert "check that this file is whole" in done.stderr
    assert _unpacked(tmp_path / "place") == []


@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed")
def test_what_belongs_to_somebody_else_is_not_executed(start: Callable[..., Started], tmp_path: Path) -> None:
    """With XDG_CACHE_HOME=/tmp anybody could have made the directory first."""
    shared = tmp_path / "shared"
    (shared / "puppet-inspector").mkdir(parents=True)
    for path in (shared, shared / "puppet-inspector"):
        path.chmod(0o777)
    done = start(XDG_CACHE_HOME=str(shared))
    assert (done.returncode, done.stdout) == (2, "")
    assert "belongs to somebody else" in done.stderr
    assert list((shared / "puppet-inspector").iterdir()) == []
    # Nor a program that was put where this one unpacks.
    assert start().returncode == 0
    (name,) = _unpacked(tmp_path / "place")
    planted = tmp_path / "place/.cache/puppet-inspector" / name / "puppet-inspector"
    planted.unlink()
    planted.write_text("#!/bin/sh\necho planted\n")
    planted.chmod(0o755)
    done = start()
    assert (done.returncode, done.stdout) == (2, "")
    assert "belongs to somebody else" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="root is needed")
def test_root_unpacks_where_only_root_writes(dist: Path, tmp_path: Path) -> None:
    """sudo may leave HOME to the user."""
    names = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run([packages.one_file(), "--version"], env=names, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []


def test_the_same_tree_gives_the_same_file(dist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the times, the owner and the order of its files are."""
    build = _module("build")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(build._date()))
    shutil.copytree(PROGRAM, tmp_path / "copy", copy_function=shutil.copy, symlinks=True)
    packed = build._packed(tmp_path / "copy")
    assert packages.one_file().read_bytes().endswith(packed)


# -- before a release ------------------------------------------------------------------------------------------------


def _module(name: str) -> Any:
    """One of the scripts that make packages."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f".ci/package/{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def release() -> Any:
    return _module("release")


def _made_deb(path: Path, depends: str) -> None:
    with tempfile.TemporaryDirectory() as tree:
        (Path(tree) / "DEBIAN").mkdir(mode=0o755)
        fields = "Package: a\nVersion: 1\nArchitecture: all\nMaintainer: a <a@example>\nDescription: a\n"
        (Path(tree) / "DEBIAN/control").write_text(f"{fields}Depends: {depends}\n")
        subprocess.run(["dpkg-deb", "--build", tree, path], check=True, capture_output=True)


def test_what_stands_against_a_release(release: Any, tmp_path: Path) -> None:
    def git(*words: str) -> None:
        names = {f"GIT_{who}_{what}": "x@example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        subprocess.run(["git", *words], cwd=tmp_path, env=os.environ | names, check=True, capture_output=True)

    (tmp_path / "inspector").mkdir()
    (tmp_path / "dist").mkdir()
    (tmp_path / ".gitignore").write_text("dist/\n")
    (tmp_path / "inspector/__init__.py").write_text('__version__ = "1.2"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.3 (unreleased)\n")
    git("init", "-q")
    found = release.problems(tmp_path)
    assert [sentence.split()[0] for sentence in found] == ["The", "CHANGELOG.md", "3", "The", "dist/"]

    (tmp_path / "inspector/__init__.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.3 (2026-11-25)\n\n## 1.2.2 (2026-01-01)\n")
    git("add", "-A")
    git("commit", "-qm", "1.2.3")
    git("tag", "v1.2.3")
    for name in (
        "a-1.2.3.whl",
        "a-1.2.3.tar.gz",
        "a-1.2.3-linux-x",
        "a_1.2.3.deb",
        "a-1.2.3-1.x.rpm",
        "a-1.2.3.cdx.json",
    ):
        (tmp_path / "dist" / name).write_text(name)
    _made_deb(tmp_path / "dist/a_1.2.3.deb", "libc6 (>= 2.31)")
    names = sorted(path.name for path in (tmp_path / "dist").iterdir())
    sums = subprocess.run(["sha256sum", *names], cwd=tmp_path / "dist", check=True, capture_output=True)
    (tmp_path / "dist/SHA256SUMS").write_bytes(sums.stdout)
    assert release.problems(tmp_path) == []
    (tmp_path / "dist/a_1.2.3.deb").write_text("another")
    assert release.problems(tmp_path) == ["dist/a_1.2.3.deb is not the file that SHA256SUMS names: make package."]


@pytest.mark.parametrize(
    ("glibc", "found"),
    [
        ("libc6 (>= 2.31)", []),
        ("libc6 (>= 2.36)", ["needs glibc 2.36: make interpreter package."]),
        ("adduser", ["does not say which glibc it needs: make package."]),
    ],
)
def test_what_needs_a_newer_glibc_is_not_released(release: Any, tmp_path: Path, glibc: str, found: list[str]) -> None:
    deb = tmp_path / "a_1.deb"
    _made_deb(deb, glibc)
    digest = subprocess.run(["sha256sum", deb.name], cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "SHA256SUMS").write_bytes(digest.stdout)
    problems = release._wrong_files(tmp_path, "1")
    assert [each.partition("a_1.deb ")[2] for each in problems if "glibc" in each] == found
