"""What of mitmproxy's own addons a Puppet proxy does without: always of the certificates that its TLS addon makes, with
``puppet_lean`` of all that nobody asked for.
"""

from __future__ import annotations

from typing import Any

USELESS: dict[str, tuple[str, ...]] = {
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
"""Names of addons, each with the options by which a user asks for it. Not among them: what serves and protects (core,
proxyserver, nextlayer, tlsconfig, block, disableh2c, proxyauth, errorcheck, scripts)."""


def prefer_ours(addons: Any) -> None:
    """Ask mitmproxy's TLS addon last: it makes a certificate for a connection for which nobody else has one, and ours
    are made already."""
    theirs = addons.get("tlsconfig")
    if theirs in addons.chain:
        addons.chain = [*(each for each in addons.chain if each is not theirs), theirs]


def slim(master: Any) -> list[str]:
    """Take the useless addons out that no option asks for; returns their names."""
    gone = []
    for name, asked_by in USELESS.items():
        addon = master.addons.get(name)
        if addon is not None and not any(_asked(master.options, each) for each in asked_by):
            master.addons.remove(addon)
            gone.append(name)
    return gone


def _asked(options: Any, name: str) -> bool:
    if name not in options:
        return False
    # The addon itself has turned mitmdump's lines about each flow off.
    return bool(getattr(options, name)) if name == "flow_detail" else bool(options.has_changed(name))
