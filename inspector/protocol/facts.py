"""The facts as an agent counts them before it sends them (docs/protocol.md#limits-of-facts)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

type FactPath = tuple[str | int, ...]

_WORDS = """
architecture augeasversion bios_release_date bios_vendor bios_version blockdevices chassistype domain fqdn gid
hardwareisa hardwaremodel hostname id interfaces ipaddress ipaddress6 lsbdistcodename lsbdistdescription lsbdistid
lsbdistrelease macaddress manufacturer memoryfree memorysize memoryfree_mb memorysize_mb netmask netmask6 network
network6 operatingsystem operatingsystemmajrelease operatingsystemrelease osfamily physicalprocessorcount
processorcount productname rubyplatform rubysitedir rubyversion selinux serialnumber swapfree swapsize system32
uptime uptime_days uptime_hours uptime_seconds uuid
"""
LEGACY = frozenset(_WORDS.split())
LEGACY_STARTS = ("ipaddress_", "ipaddress6_", "macaddress_", "mtu_", "netmask_", "network_", "processor0",
                 "blockdevice_", "sshfp_", "lsbmaj", "lsbmin", "sp_")  # fmt: skip


def leaves(value: Any, path: FactPath = (), *, empty: bool = False) -> Iterator[tuple[FactPath, Any]]:
    """Each value that is neither a mapping nor a list, with its path; ``empty``: and each of these without a value."""
    waiting: list[tuple[FactPath, Any]] = [(path, value)]
    while waiting:
        path, value = waiting.pop()
        if empty and value in ({}, []):
            yield path, value
        elif isinstance(value, dict):
            waiting += [((*path, key), item) for key, item in value.items()]
        elif isinstance(value, list):
            waiting += [((*path, at), item) for at, item in enumerate(value)]
        else:
            yield path, value


class FactLimits(msgspec.Struct, frozen=True):
    """The agent's soft limits. 7.x has 2048 values."""

    values: int = 10240
    top_level: int = 512
    name: int = 2560
    value: int = 4096
    payload: int = 16 * 2**20

    def exceeded_by(self, facts: dict[str, Any]) -> Iterator[str]:
        """Each exceeded limit, once, in words."""
        if len(facts) > self.top_level:
            yield f"{len(facts)} top-level facts, more than {self.top_level}"
        count, long_name, long_value = 0, "", ""
        for path, value in leaves(facts):
            count += 1
            # The size in an index of PostgreSQL: the agent's own estimate.
            if 8 + 2 * len(path) + len("".join(map(str, path)).encode("utf-8", "replace")) > self.name:
                long_name = long_name or str(path[0])
            if isinstance(value, str) and len(value.encode("utf-8", "replace")) > self.value:
                long_value = long_value or ".".join(map(str, path))
        if count > self.values:
            yield f"{count} values, more than {self.values}"
        if long_name:
            yield f"a name below {long_name[:80]!r} is longer than {self.name} bytes"
        if long_value:
            yield f"the value of {long_value[:80]!r} is longer than {self.value} bytes"
        size = len(msgspec.json.encode(facts, enc_hook=str))
        if size > self.payload:
            yield f"{size} bytes, more than {self.payload}"
