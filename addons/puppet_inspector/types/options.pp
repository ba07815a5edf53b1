# @summary Options of the proxy: each is a line of `/etc/puppet-inspector.conf`.
type Puppet_inspector::Options = Hash[
  Pattern[/\Apuppet_[a-z_]+\z/],
  Variant[Boolean, Integer, Pattern[/\A[^\r\n]*\z/]]
]
