# @summary Takes away what the package, the service and this module put on the node.
#
# The scripts of the package end the service and disable it.
#
# @api private
class puppet_inspector::remove {
  package { 'puppet-inspector':
    ensure => purged,
  }
  -> file {
    default:
      ensure => absent,
      force  => true,
      backup => false;
    [
      '/etc/puppet-inspector.conf',
      '/etc/systemd/system/multi-user.target.wants/puppet-inspector.service',
      '/etc/systemd/system/puppet-inspector.service.d',
      '/etc/apt/keyrings/puppet-inspector.asc',
      '/etc/apt/sources.list.d/puppet-inspector.sources',
      '/etc/pki/rpm-gpg/RPM-GPG-KEY-puppet-inspector',
      '/etc/yum.repos.d/puppet-inspector.repo',
      '/var/cache/puppet-inspector.deb',
      '/var/cache/puppet-inspector.rpm',
      '/var/cache/puppet-inspector',
      '/var/lib/puppet-inspector',
    ]:
      ;
  }
  -> user { 'puppet-inspector':
    ensure => absent,
  }
  -> group { 'puppet-inspector':
    ensure => absent,
  }
}
