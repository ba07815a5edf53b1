# @summary The options of the proxy, and copies of the node's keys if they are asked for.
#
# @api private
class puppet_inspector::config {
  $captures = '/var/lib/puppet-inspector'
  $copies = "${captures}/ssl"

  if $puppet_inspector::copy_keys {
    # The vendor's packages of the agent bring this fact; Debian's do not.
    $ssldir = $puppet_inspector::ssldir ? {
      undef   => $facts['aio_agent_version'] ? {
        undef   => '/var/lib/puppet/ssl',
        default => '/etc/puppetlabs/puppet/ssl',
      },
      default => $puppet_inspector::ssldir,
    }
    $certname = $puppet_inspector::certname
    file {
      default:
        owner     => 'puppet-inspector',
        group     => 'puppet-inspector',
        mode      => '0400',
        show_diff => false,
        backup    => false;
      [$copies, "${copies}/certs", "${copies}/private_keys"]:
        ensure => directory,
        mode   => '0500';
      "${copies}/certs/ca.pem":
        source => "${ssldir}/certs/ca.pem";
      "${copies}/crl.pem":
        source => "${ssldir}/crl.pem";
      "${copies}/certs/${certname}.pem":
        source => "${ssldir}/certs/${certname}.pem";
      "${copies}/private_keys/${certname}.pem":
        source => "${ssldir}/private_keys/${certname}.pem";
    }
    $used_ssldir = $copies
  } else {
    $used_ssldir = $puppet_inspector::ssldir
  }

  $given = {
    'puppet_master'   => $puppet_inspector::master,
    'puppet_listen'   => $puppet_inspector::listen,
    'puppet_identity' => $puppet_inspector::identity,
    'puppet_ssldir'   => $used_ssldir,
    'puppet_capture'  => "${captures}/",
  }.filter |$name, $value| { $value =~ NotUndef }
  $twice = $given.keys.filter |$name| { $name in $puppet_inspector::options }
  unless $twice.empty {
    fail("puppet_inspector: ${twice.join(', ')} may not be among the options: the class sets it.")
  }

  file { '/etc/puppet-inspector.conf':
    ensure  => file,
    owner   => 'root',
    group   => 'root',
    mode    => '0644',
    content => epp('puppet_inspector/options.epp', { 'options' => $given + $puppet_inspector::options }),
  }
}
