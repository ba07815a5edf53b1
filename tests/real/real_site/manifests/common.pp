# What every node of the site has.
$secrets = lookup('secrets', Hash)
class { 'ntp': servers => ['192.0.2.123', '192.0.2.124'] }
ssh_authorized_key { 'deploy@site': user => 'deploy', type => 'ssh-ed25519', key => 'AAAAC3NzaC1lZDI1NTE5AAAAIKTw' }
class { 'apt': }
class { 'systemd': manage_journald => true }
include rsync
include stdlib
file { '/etc/site-files':
  source  => 'puppet:///modules/site/etc',
  recurse => remote,
}
file { '/etc/site-key': content => Sensitive($secrets['site_key']), mode => '0600' }
file { '/etc/os-name': content => "${facts['osfamily']} ${facts['os']['name']}\n" }
ini_setting { 'site owner': path => '/etc/site.ini', section => 'site', setting => 'owner', value => 'web team' }
user { 'deploy': ensure => present, managehome => true, password => $secrets['deploy'] }
