# Apache with 120 virtual hosts; what each is made of is concatenated from a dozen fragments.
class { 'apache':
  default_vhost    => false,
  default_mods     => ['alias', 'dir', 'mime', 'rewrite', 'headers', 'setenvif'],
  mpm_module       => 'event',
  server_signature => 'Off',
}
include apache::mod::proxy
include apache::mod::proxy_http
include apache::mod::status
range(1, 120).each |$number| {
  $id = sprintf('%03d', $number)
  apache::vhost { "shop${id}.site.example":
    port            => 80,
    docroot         => "/srv/www/shop${id}",
    serveraliases   => ["www.shop${id}.site.example"],
    headers         => ['set X-Frame-Options SAMEORIGIN'],
    rewrites        => [{ rewrite_rule => ['^/old/(.*)$ /new/$1 [R=301,L]'] }],
    proxy_pass      => [{ path => '/api', url => "http://app${id}.site.example:8080/" }],
    directories     => [{ path => "/srv/www/shop${id}", options => ['FollowSymLinks'], require => 'all granted' }],
    custom_fragment => "SetEnv SHOP ${id}\nSetEnv API_PASSWORD ${secrets['shop']}${id}",
  }
  logrotate::rule { "shop${id}":
    path         => "/var/log/apache2/shop${id}*.log",
    rotate       => '14',
    rotate_every => 'day',
    compress     => true,
  }
  cron { "sitemap of shop${id}":
    command => "/usr/bin/curl -s -u robot:${secrets['robot']} http://shop${id}.site.example/sitemap",
    user    => 'root',
    minute  => $number % 60,
    hour    => 3,
  }
}
