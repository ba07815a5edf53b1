# The controller of a cloud: thousands of settings, each a resource of its own type.
$rabbit = "rabbit://openstack:${secrets['rabbit']}@mq.site.example:5672/"
$database = "${secrets['cloud']}@db.site.example"
$auth = { password => $secrets['service'], auth_url => 'http://cloud.site.example:5000' }
class { 'rabbitmq': default_user => 'openstack', default_pass => $secrets['rabbit'], delete_guest_user => true }
class { 'memcached': listen => '127.0.0.1', max_memory => '10%' }

class { 'apache': default_vhost => false }
class { 'keystone::db': database_connection => "mysql+pymysql://keystone:${database}/keystone" }
class { 'keystone': default_transport_url => $rabbit, service_name => 'httpd' }
class { 'keystone::bootstrap': password => $secrets['admin'], public_url => 'https://cloud.site.example:5000' }

class { 'glance::api::db': database_connection => "mysql+pymysql://glance:${database}/glance" }
class { 'glance::api::authtoken': * => $auth }
class { 'glance::api': enabled_backends => ['local:file'], default_backend => 'local' }
glance::backend::multistore::file { 'local': filesystem_store_datadir => '/var/lib/glance/images' }
class { 'glance::keystone::auth': password => $secrets['service'] }
class { 'glance::notify::rabbitmq': default_transport_url => $rabbit }

class { 'placement::db': database_connection => "mysql+pymysql://placement:${database}/placement" }
class { 'placement::keystone::authtoken': * => $auth }
class { 'placement::keystone::auth': password => $secrets['service'] }
include placement
include placement::api

class { 'nova::db': database_connection => "mysql+pymysql://nova:${database}/nova",
                    api_database_connection => "mysql+pymysql://nova:${database}/nova_api" }
class { 'nova': lock_path => '/var/lock/nova', default_transport_url => $rabbit }
class { 'nova::keystone::authtoken': * => $auth }
class { 'nova::keystone::auth': password => $secrets['service'] }
class { 'nova::placement': password => $secrets['service'], auth_url => 'http://cloud.site.example:5000' }
class { 'nova::metadata': neutron_metadata_proxy_shared_secret => $secrets['metadata'] }
class { 'nova::api': }
class { 'nova::scheduler': }
class { 'nova::scheduler::filter': }
class { 'nova::conductor': }
class { 'nova::vncproxy': }
class { 'nova::quota': }

class { 'neutron::db': database_connection => "mysql+pymysql://neutron:${database}/neutron" }
class { 'neutron': default_transport_url => $rabbit, service_plugins => ['router', 'trunk'] }
class { 'neutron::keystone::authtoken': * => $auth }
class { 'neutron::keystone::auth': password => $secrets['service'] }
class { 'neutron::server': sync_db => true }
class { 'neutron::server::notifications::nova': * => $auth }
class { 'neutron::plugins::ml2': tenant_network_types => ['vxlan'], type_drivers => ['flat', 'vlan', 'vxlan'] }
class { 'neutron::agents::dhcp': }
class { 'neutron::agents::l3': }
class { 'neutron::agents::metadata': shared_secret => $secrets['metadata'] }
class { 'neutron::quota': }

class { 'cinder::db': database_connection => "mysql+pymysql://cinder:${database}/cinder" }
class { 'cinder': default_transport_url => $rabbit }
class { 'cinder::keystone::authtoken': * => $auth }
class { 'cinder::keystone::auth': password => $secrets['service'] }
class { 'cinder::api': }
class { 'cinder::scheduler': }
class { 'cinder::volume': }
class { 'cinder::backends': enabled_backends => ['lvm'] }
cinder::backend::iscsi { 'lvm': }

class { 'heat::db': database_connection => "mysql+pymysql://heat:${database}/heat" }
class { 'heat::keystone::authtoken': * => $auth }
class { 'heat': default_transport_url => $rabbit }
class { 'heat::keystone::auth': password => $secrets['service'] }
class { 'heat::engine': auth_encryption_key => "${secrets['heat']}Kp" }
class { 'heat::api': }
class { 'heat::api_cfn': }
