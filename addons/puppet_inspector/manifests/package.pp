# @summary The package, from a file or from a repository.
#
# @api private
class puppet_inspector::package {
  $source = $puppet_inspector::package_source
  $format = $puppet_inspector::package_format

  if $source {
    if $source[0] == '/' {
      $file = $source
    } else {
      $file = "/var/cache/puppet-inspector.${format}"
      file { $file:
        ensure         => file,
        owner          => 'root',
        group          => 'root',
        mode           => '0644',
        source         => $source,
        checksum       => 'sha256',
        checksum_value => $puppet_inspector::package_checksum,
        before         => Package['puppet-inspector'],
      }
    }
    if $puppet_inspector::package_ensure == 'latest' {
      fail('puppet_inspector: which version a file has is not known before: package_ensure is that version, or installed.')
    }
    # The provider of the system, which also installs what the package depends on.
    package { 'puppet-inspector':
      ensure => $puppet_inspector::package_ensure,
      source => $file,
    }
  } else {
    if $puppet_inspector::repository {
      contain puppet_inspector::repository
      Class['puppet_inspector::repository'] -> Package['puppet-inspector']
    }
    package { 'puppet-inspector':
      ensure => $puppet_inspector::package_ensure,
    }
  }
}
