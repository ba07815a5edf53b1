"""What tests that rehearse at the real master have in common."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from inspector.rehearsal import roads
from tests.real.through import PROXY_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.puppet import RealMaster
    from tests.real.through import Stage


def target(stage: Stage) -> list[object]:
    """The words of a command that say which master."""
    return ["--master", f"{stage.master.name}:{stage.master.port}", "--ca", stage.master.ssldir / "certs/ca.pem"]


def by_v4(stage: Stage) -> list[object]:
    """The words of a command that takes the road v4."""
    ssl = stage.master.ssldir
    return [*target(stage), "--cert", ssl / f"certs/{PROXY_NAME}.pem",
            "--key", ssl / f"private_keys/{PROXY_NAME}.pem"]  # fmt: skip


def rule_in(text: str) -> str:
    """The rule for auth.conf at the end of what a command printed."""
    lines = text.splitlines()
    return "\n".join(lines[[line.strip() for line in lines].index("{") :])


def allow_v4(master: RealMaster, text: str = roads.RULE.format(certname=PROXY_NAME)) -> None:
    """Add the rule that a command printed to auth.conf."""
    conf = master.confdir / "conf.d/auth.conf"
    conf.write_text(conf.read_text().replace("rules: [", f"rules: [\n{rule_in(text)}", 1))
    master.reload()


@contextmanager
def without_changes(master: RealMaster) -> Iterator[None]:
    """Afterwards auth.conf is as it was."""
    conf = master.confdir / "conf.d/auth.conf"
    before = conf.read_text()
    try:
        yield
    finally:
        conf.write_text(before)
        master.reload()
