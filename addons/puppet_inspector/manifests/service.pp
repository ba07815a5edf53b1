# @summary The proxy as a service; the package brings its unit.
#
# @api private
class puppet_inspector::service {
  service { 'puppet-inspector':
    ensure => $puppet_inspector::proxy =~ NotUndef,
    enable => $puppet_inspector::proxy =~ NotUndef,
  }
}
