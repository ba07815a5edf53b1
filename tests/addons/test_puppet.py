"""The file that mitmproxy loads: where it cannot, it says in one sentence why, and what helps."""

from __future__ import annotations

import ast
import runpy
import subprocess
import sys
import sysconfig
import tomllib
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from mitmproxy import version

from tests.support import places

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ADDON = places.ROOT / "addons/puppet.py"
MISSING = "packages that it needs are missing beside this mitmproxy, first the module re2: "


@pytest.fixture
def addon() -> dict[str, Any]:
    """What the file defines."""
    return runpy.run_path(str(ADDON))


@pytest.fixture
def reason(addon: dict[str, Any]) -> Callable[[], str]:
    """Returns why the addon cannot be loaded."""

    def load() -> None:
        addon["_check"]()
        addon["_addon"]()

    def of() -> str:
        with pytest.raises(addon["_Unfit"]) as found:
            load()
        return str(found.value).replace(sys.executable, "PYTHON").replace(str(places.ROOT), "HERE")

    return of


def test_it_is_loaded_here(addon: dict[str, Any]) -> None:
    assert [type(each).__name__ for each in addon["addons"]] == ["PuppetInspector"]


def test_an_old_python_can_read_it() -> None:
    ast.parse(ADDON.read_text(), feature_version=(3, 6))


def test_its_versions_are_those_of_the_package(addon: dict[str, Any]) -> None:
    project = tomllib.loads((places.ROOT / "pyproject.toml").read_text())["project"]
    python, (first, end) = (".".join(map(str, addon["_PYTHON"])), [".".join(map(str, v)) for v in addon["_MITMPROXY"]])
    assert project["requires-python"] == f">={python}"
    assert f"mitmproxy>={first},<{end}" in project["dependencies"]


def test_mitmproxy_takes_no_function_of_it_for_a_hook(addon: dict[str, Any]) -> None:
    tree = ast.parse(ADDON.read_text())
    named = [node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    assert all(name.startswith("_") for name in named)


# -- why, and what helps -------------------------------------------------------------------------------


class Version(NamedTuple):
    major: int
    minor: int
    micro: int


def test_an_old_python(reason: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", Version(3, 11, 2))
    assert reason() == (
        "this mitmproxy runs on Python 3.11, and 3.12 or newer is needed; the mitmdump of `pipx install "
        "--python python3.12 --include-deps HERE` can load it"
    )


def test_a_build_with_its_own_python(reason: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert reason() == (
        "this build of mitmproxy has a Python of its own, to which nothing can be added; the mitmdump of `pipx install "
        "--include-deps HERE` can load it"
    )


@pytest.mark.parametrize("found", ["8.1.1", "12.1.0", "12.2.0", "13.0.0", "14.0.0.dev"])
def test_another_version(reason: Callable[[], str], monkeypatch: pytest.MonkeyPatch, found: str) -> None:
    monkeypatch.setattr(version, "VERSION", found)
    assert reason().startswith(f"this is mitmproxy {found}, and 12.2.1 or newer, below 13, is needed: `")


@pytest.mark.parametrize(
    ("sign", "command"),
    [
        ("pipx_metadata.json", "`pipx inject mitmproxy HERE`"),
        ("uv-receipt.toml", "`uv tool install --with HERE mitmproxy`"),
        ("pyvenv.cfg", "`PYTHON -m pip install HERE`"),
    ],
)
def test_packages_that_are_missing(
    reason: Callable[[], str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sign: str, command: str
) -> None:
    environment = tmp_path / "mitmproxy"
    environment.mkdir()
    (environment / sign).touch()
    without_re2(monkeypatch)
    monkeypatch.setattr(sys, "prefix", str(environment))
    assert reason() == MISSING + command


def test_a_python_that_belongs_to_the_system(
    reason: Callable[[], str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """pip refuses to install there."""
    without_re2(monkeypatch)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path))
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    assert reason() == f"{MISSING}`PYTHON -m pip install HERE`"
    (tmp_path / "EXTERNALLY-MANAGED").touch()
    assert reason() == f"{MISSING}the mitmdump of `pipx install --include-deps HERE` can load it"


class Unimportable(ModuleType):
    """A module that imports a package that is missing."""

    def __getattr__(self, name: str) -> object:
        raise ModuleNotFoundError("No module named 're2'", name="re2")


def without_re2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "inspector.proxy.mitm.addon", Unimportable("addon"))


def test_a_module_of_ours_that_is_missing_is_a_bug(addon: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "inspector.proxy.mitm.addon", None)
    with pytest.raises(ModuleNotFoundError):
        addon["_addon"]()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lack", "sentence"),
    [
        ("sys.modules['re2'] = None", MISSING),
        ("sys.frozen = True", "this build of mitmproxy has a Python of its own"),
        (
            "import mitmproxy.version; mitmproxy.version.VERSION = '11.0.2'",
            "this is mitmproxy 11.0.2, and 12.2.1 or newer",
        ),
    ],
)
def test_mitmdump_ends_with_the_sentence(tmp_path: Path, lack: str, sentence: str) -> None:
    code = f"import sys; {lack}; from mitmproxy.tools.main import mitmdump; mitmdump()"
    place = ["--listen-host", "127.0.0.1", "-p", "0", "--set", f"confdir={tmp_path}"]
    done = subprocess.run(
        [sys.executable, "-c", code, "-s", str(ADDON), *place], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert f"puppet-inspector cannot be loaded: {sentence}" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
