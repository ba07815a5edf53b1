# @summary Installs puppet-inspector, and lets its proxy run as a service if that is asked for.
#
# Without parameters the program is installed and nothing is started. The proxy presents the certificate that the node
# has of its own, so a node has to have one before the service starts.
#
# @example The program only, from a repository that the node has
#   include puppet_inspector
#
# @example The proxy in front of one node's agent, from a package on the file server
#   class { 'puppet_inspector':
#     package_source => 'puppet:///modules/profile/puppet-inspector_1.0.0_amd64.deb',
#     proxy          => 'node',
#     master         => 'puppet.example:8140',
#   }
#
# @example In front of a compiler, which believes the headers of this host only
#   class { 'puppet_inspector':
#     proxy    => 'compiler',
#     master   => 'compiler1.example:8140',
#     listen   => '0.0.0.0:8140',
#     identity => 'headers',
#     options  => { 'puppet_rotate_age' => '1d', 'puppet_keep' => '14d,20G' },
#   }
#
# @example Take everything away, also the captures
#   class { 'puppet_inspector':
#     ensure => absent,
#   }
#
# @param ensure
#   `absent` stops the service and removes package, configuration, captures, user, and what this module brought.
# @param package_source
#   The package as a file: a path on the node, or a source of `puppet://` or `https://`. Without it, the package comes
#   from a repository.
# @param package_checksum
#   The SHA-256 of a package that is fetched by `https://`.
# @param package_ensure
#   `installed`, a version, or, from a repository, `latest`.
# @param repository
#   The URL of a directory with packages for apt or dnf, to be added to the node's repositories.
# @param repository_key
#   The key that this repository is signed with, where `repository` is given.
# @param proxy
#   What the service is in front of: the agent of this `node`, or a `compiler` (also a whole server). Without it the
#   service is stopped.
# @param master
#   The master, `HOST[:PORT]`. Without it, the one of the node's `puppet.conf`, which a proxy in front of a compiler
#   cannot use.
# @param listen
#   Where agents connect, `ADDRESS[:PORT]`. Without it, on loopback.
# @param identity
#   The identity towards the master. Without it, the node's own key, which is right for its own agent only.
# @param ssldir
#   Where the node has its certificate, key, CA bundle and CRLs. Without it, where its packages of Puppet put it.
# @param copy_keys
#   Copy them to a directory of the service, with each run of Puppet, instead of reading them there: for nodes whose
#   keys only root can read, as where the agent's packages bring no group `puppet`.
# @param certname
#   The certname of the node, which is the name of the files to copy.
# @param options
#   More options of the proxy (`docs/proxy.md`). They may not contradict the parameters above.
class puppet_inspector (
  Enum['present', 'absent'] $ensure = 'present',
  Optional[Puppet_inspector::Source] $package_source = undef,
  Optional[Pattern[/\A[0-9a-f]{64}\z/]] $package_checksum = undef,
  String[1] $package_ensure = 'installed',
  Optional[Pattern[/\A(https?|file):\/\/\S+\z/]] $repository = undef,
  Optional[Puppet_inspector::Source] $repository_key = undef,
  Optional[Enum['node', 'compiler']] $proxy = undef,
  Optional[Pattern[/\A\S+\z/]] $master = undef,
  Optional[Pattern[/\A\S+\z/]] $listen = undef,
  Optional[Puppet_inspector::Identity] $identity = undef,
  Optional[Pattern[/\A\//]] $ssldir = undef,
  Boolean $copy_keys = false,
  Pattern[/\A[a-z0-9._-]+\z/] $certname = $facts['clientcert'],
  Puppet_inspector::Options $options = {},
) {
  $package_format = $facts['os']['family'] ? {
    'Debian' => 'deb',
    default  => 'rpm',
  }
  if $ensure == 'absent' {
    contain puppet_inspector::remove
  } else {
    if $proxy == 'compiler' {
      unless $master and $identity {
        fail('puppet_inspector: a proxy in front of a compiler needs the parameters master and identity.')
      }
    }
    contain puppet_inspector::package
    contain puppet_inspector::config
    contain puppet_inspector::service
    Class['puppet_inspector::package'] -> Class['puppet_inspector::config'] ~> Class['puppet_inspector::service']
    Class['puppet_inspector::package'] ~> Class['puppet_inspector::service']
  }
}
