# A hypervisor of the cloud.
$rabbit = "rabbit://openstack:${secrets['rabbit']}@mq.site.example:5672/"
$auth = { password => $secrets['service'], auth_url => 'http://cloud.site.example:5000' }
class { 'nova': lock_path => '/var/lock/nova', default_transport_url => $rabbit }
class { 'nova::keystone::authtoken': * => $auth }
class { 'nova::placement': * => $auth }
class { 'nova::network::neutron': password => $secrets['service'] }
class { 'nova::compute': vncserver_proxyclient_address => '192.0.2.20' }
class { 'nova::compute::libvirt': }
class { 'neutron': default_transport_url => $rabbit }
class { 'neutron::agents::metadata': shared_secret => $secrets['metadata'] }
kmod::load { ['br_netfilter', 'vhost_net']: }
kmod::option { 'kvm_intel nested': module => 'kvm_intel', option => 'nested', value => '1' }
sysctl::value { ['net.ipv4.ip_forward', 'net.bridge.bridge-nf-call-iptables']: value => '1' }
