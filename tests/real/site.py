"""What the real master manages: a module in which every way to fetch something occurs."""

from __future__ import annotations

DEMO_MODULE: dict[str, bytes] = {
    "lib/facter/demo_role.rb": b"Facter.add(:demo_role) { setcode { 'web' } }\n",
    "facts.d/demo_rack.yaml": b"demo_rack: A7\n",
    "files/tree/app.conf": b"workers = 2\n",
    "files/tree/conf.d/log.conf": b"level = info\n",
    "files/single.txt": b"one file\n",
    "files/fallback.txt": b"the second candidate\n",
    "files/logo.bin": bytes(range(256)),
    "manifests/init.pp": b"""class demo(String $target, Boolean $notice) {
  filebucket { 'main': path => false }
  File { backup => 'main' }
  if $notice { notify { "role ${facts['demo_role']}, rack ${facts['demo_rack']}": } }
  file { $target: ensure => directory }
  file { "${target}/tree": ensure => directory, recurse => true, source => 'puppet:///modules/demo/tree' }
  file { "${target}/single.txt": source => 'puppet:///modules/demo/single.txt' }
  file { "${target}/either.txt":
    source => ["puppet:///modules/demo/${facts['clientcert']}.txt", 'puppet:///modules/demo/fallback.txt'],
  }
  file { "${target}/logo.bin": source => 'puppet:///modules/demo/logo.bin' }
  file { "${target}/content.txt": content => "managed for ${facts['clientcert']}\\n" }
}
""",
}
"""Path below the module -> content: every way in which a catalog makes an agent fetch something."""
