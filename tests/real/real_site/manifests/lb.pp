# A load balancer of all shops, with its firewall.
class { 'haproxy': global_options => { log => '/dev/log local0', user => 'haproxy', group => 'haproxy' } }
haproxy::listen { 'stats':
  collect_exported => false,
  ipaddress => '127.0.0.1',
  ports     => '9000',
  options   => { mode => 'http', stats => ['enable', "auth admin:${secrets['stats']}"] },
}
range(1, 120).each |$number| {
  $id = sprintf('%03d', $number)
  haproxy::frontend { "shop${id}":
    ipaddress => '127.0.0.1',
    ports     => String(10000 + $number),
    options   => { default_backend => "shop${id}", timeout => ['client 30s'] },
  }
  haproxy::backend { "shop${id}":
    collect_exported => false,
    options          => { option => ['httpchk GET /health'], balance => 'leastconn' },
  }
  ['a', 'b', 'c'].each |$rack| {
    haproxy::balancermember { "shop${id}${rack}":
      listening_service => "shop${id}",
      server_names      => "shop${id}${rack}",
      ipaddresses       => "192.0.2.${number}",
      ports             => '8080',
      options           => ['check', 'inter 2000'],
    }
  }
}
