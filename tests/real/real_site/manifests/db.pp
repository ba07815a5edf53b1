# MySQL and PostgreSQL with databases and users of all shops.
class { 'mysql::server':
  root_password           => $secrets['mysql_root'],
  remove_default_accounts => true,
  override_options        => { mysqld => { max_connections => '1024', innodb_buffer_pool_size => '1G' } },
}
class { 'mysql::server::backup':
  backupuser     => 'backup',
  backuppassword => Sensitive($secrets['backup']),
  backupdir      => '/srv/backup/mysql',
}
class { 'postgresql::server':
  postgres_password => $secrets['postgres'],
  listen_addresses  => '*',
}
range(1, 60).each |$number| {
  $id = sprintf('%03d', $number)
  mysql::db { "shop${id}":
    user     => "shop${id}",
    password => mysql::password("${secrets['database']}${id}"),
    host     => '%',
    grant    => ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  }
  postgresql::server::db { "ledger${id}":
    user     => "ledger${id}",
    password => postgresql::postgresql_password("ledger${id}", "${secrets['ledger']}${id}"),
  }
  postgresql::server::pg_hba_rule { "ledger${id} from the shops":
    type        => 'hostssl',
    database    => "ledger${id}",
    user        => "ledger${id}",
    address     => '192.0.2.0/24',
    auth_method => 'scram-sha-256',
  }
}
