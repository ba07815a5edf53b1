# @summary A repository of packages, for apt or dnf.
#
# @api private
class puppet_inspector::repository {
  $url = $puppet_inspector::repository
  $key = $puppet_inspector::package_format ? {
    'deb'   => '/etc/apt/keyrings/puppet-inspector.asc',
    default => '/etc/pki/rpm-gpg/RPM-GPG-KEY-puppet-inspector',
  }

  unless $puppet_inspector::repository_key {
    fail('puppet_inspector: a repository needs the parameter repository_key.')
  }
  file { $key:
    ensure => file,
    owner  => 'root',
    group  => 'root',
    mode   => '0644',
    source => $puppet_inspector::repository_key,
  }

  if $puppet_inspector::package_format == 'deb' {
    $only_this = '-o Dir::Etc::sourcelist=sources.list.d/puppet-inspector.sources -o Dir::Etc::sourceparts=- -o APT::Get::List-Cleanup=0'
    file { '/etc/apt/sources.list.d/puppet-inspector.sources':
      ensure  => file,
      owner   => 'root',
      group   => 'root',
      mode    => '0644',
      content => "Types: deb\nURIs: ${url}\nSuites: ./\nSigned-By: ${key}\n",
      require => File[$key],
    }
    ~> exec { 'puppet_inspector: read the index of the repository':
      command     => "apt-get update -q ${only_this}",
      path        => ['/usr/bin', '/bin'],
      refreshonly => true,
    }
  } else {
    $settings = "baseurl=${url}\nenabled=1\ngpgcheck=1\nrepo_gpgcheck=1\ngpgkey=file://${key}\n"
    file { '/etc/yum.repos.d/puppet-inspector.repo':
      ensure  => file,
      owner   => 'root',
      group   => 'root',
      mode    => '0644',
      content => "[puppet-inspector]\nname=puppet-inspector\n${settings}",
      require => File[$key],
    }
  }
}
