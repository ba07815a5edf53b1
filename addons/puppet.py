"""The traffic inspector as a mitmproxy addon: ``mitmdump -s addons/puppet.py``.

A mitmproxy may be too old for it, have no room for packages, or lack those that it needs. It says so in one sentence,
so this file can be read by Python 3.6, and imports nothing of the inspector before it knows. All names but ``addons``
begin with an underscore: mitmproxy would call a function ``load`` of this module.
"""

import atexit
import logging
import shlex
import sys
import sysconfig
from pathlib import Path
from typing import Any

_PYTHON = (3, 12)
_MITMPROXY = ((12, 2, 1), (13,))
"""The first version that will do, and the first one after it that will not."""
_ROOT = Path(__file__).resolve().parent.parent
_CHECKOUT = (_ROOT / "inspector" / "proxy" / "mitm" / "addon.py").is_file()
_SOURCE = shlex.quote(str(_ROOT)) if _CHECKOUT else "puppet_inspector-*.whl"
"""What pip installs."""


class _Unfit(Exception):
    """This mitmproxy cannot load the addon: why, and the command that helps."""


def _check() -> None:
    """Raises _Unfit if mitmproxy, its build or its Python will not do."""
    if getattr(sys, "frozen", False):
        raise _Unfit(
            f"this build of mitmproxy has a Python of its own, to which nothing can be added; {_another()} can load it"
        )
    if sys.version_info < _PYTHON:
        found, needed = _text(sys.version_info[:2]), _text(_PYTHON)
        other = _another(f"--python python{needed} ")
        raise _Unfit(f"this mitmproxy runs on Python {found}, and {needed} or newer is needed; {other} can load it")
    from mitmproxy import version

    first, end = _MITMPROXY
    if not first <= tuple(int(part) for part in version.VERSION.split(".")[:3] if part.isdigit()) < end:
        needed = f"{_text(first)} or newer, below {_text(end)},"
        raise _Unfit(f"this is mitmproxy {version.VERSION}, and {needed} is needed: {_installation()}")


def _addon() -> object:
    """Return the addon. Raises _Unfit if packages are missing."""
    # In a checkout mitmproxy puts only this file's own directory on the path (and takes it off again).
    if _CHECKOUT and str(_ROOT) not in sys.path:
        sys.path.insert(0, str(_ROOT))
    try:
        from inspector.proxy.mitm.addon import PuppetInspector
    except ModuleNotFoundError as error:
        if _CHECKOUT and str(error.name).startswith("inspector"):
            raise
        reason = f"packages that it needs are missing beside this mitmproxy, first the module {error.name}"
        raise _Unfit(f"{reason}: {_installation()}") from error
    return PuppetInspector()


def _installation() -> str:
    """Return what installs all that is needed, where this mitmproxy is if that is possible."""
    prefix = Path(sys.prefix)
    if (prefix / "pipx_metadata.json").is_file():
        return f"`pipx inject {prefix.name} {_SOURCE}`"
    if (prefix / "uv-receipt.toml").is_file():
        return f"`uv tool install --with {_SOURCE} mitmproxy`"
    if sys.prefix == sys.base_prefix and Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED").is_file():
        return f"{_another()} can load it"
    return f"`{shlex.quote(sys.executable)} -m pip install {_SOURCE}`"


def _another(option: str = "") -> str:
    return f"the mitmdump of `pipx install {option}--include-deps {_SOURCE}`"


def _text(version: "tuple[int, ...]") -> str:
    return ".".join(map(str, version))


def _loaded() -> "list[object]":
    """Return what mitmproxy loads; nothing, with a sentence, if that is impossible."""
    try:
        _check()
        return [_addon()]
    except _Unfit as error:
        _report(f"puppet-inspector cannot be loaded: {error}.")
        return []


def _report(sentence: str) -> None:
    """Print a sentence; a mitmproxy that is starting takes it for the reason to end."""
    from mitmproxy import ctx as untyped
    from mitmproxy import version

    ctx: Any = untyped
    if int(version.VERSION.split(".")[0]) > 8:
        logging.error(sentence)
        return
    ctx.log.error(sentence)
    if ctx.master.addons.get("consoleaddon"):  # the error goes with its screen
        atexit.register(print, sentence, file=sys.stderr)


addons = _loaded()
