# Monitoring, time and mail.
class { 'collectd': manage_repo => false, purge => false, minimum_version => '5.12' }
['cpu', 'load', 'memory', 'swap', 'uptime', 'users', 'processes', 'df', 'disk', 'interface'].each |$plugin| {
  include "collectd::plugin::${plugin}"
}
class { 'postfix': }
range(1, 250).each |$number| {
  host { "node${number}.site.example":
    ip           => "198.51.100.${$number % 250}",
    host_aliases => ["node${number}"],
    target       => '/srv/monitored/hosts',
  }
  file { "/srv/monitored/node${number}.json":
    content => stdlib::to_json({ name => "node${number}", token => "${secrets['beats']}${number}", every => 60 }),
  }
}
file { '/srv/monitored': ensure => directory }
