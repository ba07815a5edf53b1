"""Which of mitmproxy's own addons a Puppet proxy does not need.

The certificates of its TLS addon are never used. ``puppet_lean`` also removes all addons that no option asks for.
"""

from __future__ import annotations

from typing import Any

NOT_NEEDED: dict[str, tuple[str, ...]] = {
    "anticache": ("anticache",),
    "anticomp": ("anticomp",),
    "blocklist": ("block_list",),
    "browser": (),
    "commandhistory": (),
    "comment": (),
    "cut": (),
    "dnsresolver": ("dns_name_servers", "dns_use_hosts_file"),
    "dumper": ("flow_detail",),
    "export": (),
    "maplocal": ("map_local",),
    "mapremote": ("map_remote",),
    "modifybody": ("modify_body",),
    "modifyheaders": ("modify_headers",),
    "onboarding": (),
    "readfilestdin": ("rfile",),
    "save": ("save_stream_file",),
    "savehar": ("hardump",),
    "serverplayback": ("server_replay",),
    "stickyauth": ("stickyauth",),
    "stickycookie": ("stickycookie",),
    "stripdnshttpsrecords": (),
    "updatealtsvc": (),
    "upstreamauth": ("upstream_auth",),
}
"""Names of addons, each with the options by which a user asks for it. Addons that serve and protect are not listed
(core, proxyserver, nextlayer, tlsconfig, block, disableh2c, proxyauth, errorcheck, scripts)."""


def prefer_ours(addons: Any) -> None:
    """Move mitmproxy's TLS addon to the end: it only makes a certificate if no other addon prepared the connection, and
    ours always does."""
    tlsconfig = addons.get("tlsconfig")
    if tlsconfig in addons.chain:
        addons.chain = [*(addon for addon in addons.chain if addon is not tlsconfig), tlsconfig]


def slim(master: Any) -> list[str]:
    """Remove the addons that are not needed and that no option asks for; return their names."""
    removed = []
    for name, requested_by in NOT_NEEDED.items():
        addon = master.addons.get(name)
        if addon is not None and not any(_is_set(master.options, option) for option in requested_by):
            master.addons.remove(addon)
            removed.append(name)
    return removed


def _is_set(options: Any, name: str) -> bool:
    if name not in options:
        return False
    # Our addon itself changes flow_detail, to turn off mitmdump's lines about each flow.
    return bool(getattr(options, name)) if name == "flow_detail" else bool(options.has_changed(name))
