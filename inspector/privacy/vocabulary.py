"""Words that reveal nothing: those of the protocol, of the messages of agents, masters and OpenSSL, and of systems in
general. A text without other words can leave a capture.

A word belongs here if it occurs in what Puppet itself writes, or names something that thousands of sites have (an
operating system, a package, a directory). Names of people, companies and hosts do not.
"""

from __future__ import annotations

WORDS = frozenset(
    """
    a aarch abbreviated aborting about above absent absolute accept acceptable accepted accepts access accessible
    accessor account action actually add added adding additional addr address addrinfo adds adm admin adminfile
    administration aes af africa after again against agent agents ahead aix alert algorithm algorithms alias aliases
    alive all allow allowdupe allowed allows almalinux alone alphanumeric alpine alpn already also alt alternative
    although always amazon amd america among an ancestors anchor anchors and anew announced another answer answered
    answering answers any anybody anything anyway anywhere apache apart api apparmor appear appended application
    applied applies apply applying apr april apt arc arch architecture archlinux are aren argumenterror arguments
    arm armv array as asc ascii asia ask asked asking asks at atboot attempt attempting attr attribute attributes
    audit auditd aug augeas augeasversion augparse august australia auth authconfig authenticated authentication
    authority authorization authorized auto automatic automatically autorequire autorequires autorequiring autosign
    autosigning available averages aws azure b back backslash backtrace backup bad bak balancer bare base baseurl
    bash bashrc basic basicconstraints basis be because been before begin beginning begins behavior behind being
    belong belongs below benchmark berlin besides beta between bin binary bind binding bindings bionic bios bit bits
    blank blob block blockdevice blockdevices bodies body bookworm boolean boot bootstrap both bound bounds braces
    branch break breaks broken bt btrfs bucket builds bullseye bundle buster busy but by byte bytes bz c ca cache
    cached caching call called calls came can cannot capacity captures carried carries carry cas case cases cat
    catalog catalogs category cause centos cer cert certificate certificates certname certnames certs cest cet cfg
    cfkey cgroup cha chacha chain challenge challengepassword change changed changes changing character characters
    charset check checked checks checksum checksums chomp choose chrony chronyd chunked cipher ciphers claim claims
    class classes clean clear cli client clients clock clocks clone close closed closely closes closing cloud cmd cn
    code codename collect collectd column com combination come comes comma command commands comment comments commit
    common comparator compared compares compatibility compatible compilable compilation compile compiled compiler
    complete completed completely component compressed compresses compression computer computes computing concat
    conditions conf config configfiles configtimeout configuration configure configured configurer conflict connect
    connecting connection connections constraints consul contain container containerd contains content contents
    context continue continues control controlled converged convert converter cookie copied copies copy copyright
    core cores corrected corrective correspond corrupt could couldn count counts cover covers create created creates
    creating credential crit critical crl crls cron crontab crt crypto csr css cst csv ctime curl current currently
    custom cut cvs cwd d daemon daily darwin dat data datatype date dates day days db de dead deb debian debug dec
    december decided decides decode decoder decodes decompress decrypt decryption deep def default defaults
    defaultto deferred defined definition deflate deflated delay delete deleted delimiter demo denied deny
    dependencies dependency deprecate deprecated deprecation depth der desc descr described describes description
    desired destination destroy details detected dev development device devpts devtmpfs dh dhclient dhcp dhcpcd
    dhcpd dhe did didn diff differ different differs digest digests digital dir directions directly directories
    directory disable disabled disallowed discard discarded disconnected disk disks distcodename distid distributed
    distributions distro dll dn dnf dns dnsmasq do doc docker docs document documentation documents does doesn
    domain don done dot dots double dovecot down download downloaded downloader dpkg dragonfly drop drops ds dsa due
    dump duplicate during dynamically e eacces each early ec ecdhe ecdsa econnrefused econnreset edges edt
    ehostunreach either elasticsearch else elsif emacs emerg empty enable enabled enc encoded encoder encoding end
    ended endpoint endpoints ends enetunreach enforced enoent enrol ensurable ensure enterprise entity entries entry
    env envelope environ environment environments eof eoferror epipe epp epyc erb erofs err errno error errors
    escaped est etc etcd eth etimedout europe eval evaluate evaluated evaluating evaluation even event events every
    everybody everything evicting example exceed except exception excessive exclude exclusive exe exec executable
    execute executed executing execution exim exist existed existing exists exit exiting exits expect expected
    expiration expirations expired expires expiry explicitly export exported ext extended extendedkeyusage extension
    extensions external extra extreq eyaml ezbake f fact facter facterversion facts fail failed failing fails
    failure failures fall fallback falling false family fault faults feature feb february fedora fetch fetched
    fetches ffi fg field fields fifo file filebeat filebucket filebucketed files fileserver fileset filesystem
    filesystems filetype find finds fingerprint fingerprints finished finishing fips firewalld first fits five flags
    flat flatten fluentd flush focal follow following follows for forbid forbidden force foreign forever form format
    formats forwarded found four fqdn fragment frames freebsd freeze fresh fri friday from fromenc front fs fstab
    fstype full function functional functions g gateway gb gcc gce gcm gcp gem gen generate generated generation
    generations gentoo genuine get getaddrinfo gets getsetsebool ghz gib gid git give given gives glibc global gmt
    gnu go goes gone got gpg gpgcheck gpgkey grafana graph grep group groups grow gsub gzip h had hand handle
    handler handshake handshakes haproxy hardware hardwareisa hardwaremodel has hash hasn hasrestart hasstatus have
    haven hdd head header headers healthy healthz held hello here hg hiera hieradata hold holds home hook host
    hostcert hostname hosts hour hourly how hp html http httpd https hyperv hypervisor hypervisors hz i icinga id
    identical identify identity if ignore ignored ignores ignoring illegal img implemented import important in
    inappropriate include included includes index indirected indirection indirections indirector inference info
    information infrastructure ini iniparser init initial initialize inodes input insert inside inspect inspector
    install installed installs instance instead instrumentation insufficient insync integer intel interface
    interfaces intermediate internal interrupted interval into invalid inventory io ip ipaddress iphostnumber
    iptables ipv is isa isn isnamevar iso issue issued issuer issues it its itself j ja jammy jan january java jdk
    jessie jetty jks job join journald jre jrubies jruby js json jul july jun june just k kafka kali kb keep
    keepalive keeps kept kerberos kernel kernelmajversion kernelrelease kernelversion key keys keyusage kib kibana
    kick killed kind know known knows krb kubelet kubernetes kvm lab label lack lang language large last lastrunfile
    lastupdate later latest layer ldap lead leaf leases least leave leaves left legacy length less lets level levels
    lib library license lift like limit limitations limits line lines link links linux list listed listening listens
    listing lists lite literal ll lo load loaded loader loading local localca localdomain locales localhost locally
    localref location lock locker locks log logged logging loglevel logo logoutput logrotate logs logstash london
    long longer looked looking looks lookup lost lower ls lsb lsbdistcodename lsbdistdescription lsbdistid
    lsbdistrelease lsblk lsbmajdistrelease lsbminordistrelease lsbrelease lscpu lspci lua lxc m mac macaddress
    machine macos made mail mailalias maillist main major make makes malformed man manage managed managehome manager
    manages managing manifest manifests manually manufacturer many map maps mar march mariadb mark markdown marks
    mask masked master masterport masters match matched matches max maxwaitforcert maxwaitforlock may mb md meaning
    means meant media membership memcached memory memoryfree memorypointer memorysize message messages metadata
    metadatas method methods metric metrics mhz mib microsoft might milliseconds mime min minimum minor mint minute
    minutes mirrorlist mismatch miss missing mnt mode model models modern modes modification modified module modules
    mon monday mongodb monitoring month monthday monthly more most motd mount mounted mountpoints mounts move moved
    msg msgid msgpack mst mtab mtime mtu multi multiple munge must my mysql n na nagios name named names nano nearer
    need needcacerts needcert needcrls needed needkey needlock needrenewedcert needs needsubmitcsr neither nested
    net netbsd netif netmask netscape network networking never new newer newparam newproperty newtype newvalue
    newvalues next nextupdate nfs nftables nginx nil nilclass no noble nobody node nodename nodes nodev nomad non
    nonblock none nonexistent noop nor normal nosource nosuch nosuid not notably note nothing notice notify notrun
    nov november now npm nr nrpe nsswitch ntp ntpd null number numbers o object objects observed occurred ocsp oct
    octal octet october of off offers often oid oids ok old older on once one ones onetime only onlyif open openbsd
    opens openssh openssl openstack opensuse openvox openvz operatingsystem operatingsystemrelease operation opt
    option optional optionally options or oracle oraclelinux orchestration order ordered ordinary orig origin
    original os osfamily other others otherwise our out output outside over overflow override overrides overwrite
    own owner p package packages packet pacman padding page param parameter parameters params parent paris parse
    parsed parsedfile parser part partial partitions parts pass passed passes passwd password patch path paths
    pattern payload pdb pdt peer peeraddr pem pending percent perform perl permanent permanently permission
    permissions permits permitted persistence pfx phase phases php physical physicalcount physicalprocessorcount
    picture pid pip pipe place plain plan plans platform please plugin pluginfacts plugins pluginsync plural po
    podman point pointer policy policyversion poll polls pool pops port posix possible post postfix postgres
    postgresql pot pp pre precedes preference preferred prefetch prefix prepare prepares present presented preshared
    primary printable prints priority private privileged probe proc process processor processorcount processors
    product production profile profiles program progress project prometheus proof propagate propagated property
    protocol protocols provide provided provider providers proxy pruned pson pst ptmxmode pts ptype pub public
    puppet puppetdb puppetlabs puppetserver puppetversion purge purged purpose put puts pvalue python q qa qemu
    query queued quoted r ra rabbitmq rack raise random ranges raspbian raw rb rc re reach reached reaches read
    readers reading reads readtimeout real really realtime reason record recorded records recurse recursive redacted
    redacts redhat redirected redirector redirects redis ref references refresh refreshed refreshonly refusal refuse
    refused refuses regex regexp region registered reissue rejected relatime relationship relative release releases
    rely remote remount remounts remove removed removes removing rename renegotiation renew renewal renewed repeat
    repeated repeating repeats repetition replace repo report reported reports repositories repository
    representation req request requested requesting requests require required requires rescue reset resgid
    resolution resolv resolved resolver resolves resolving resource resources respond response responsefile rest
    restart restarted restarting restarts restriction restricts resubmit resuid result resv retries retrieval
    retrieve retrieved retrieving retry retrying return returned returns reuse reused reuses reveals revocation
    revoke revoked rewrites rhel rich right rm ro rocky role roles root route router routes routines rpm rsa rsc
    rspec rsync rsyslog rubies rubocop ruby rubyplatform rubysitedir rubyversion rule rules run runinterval running
    runs runtime rust rw ryzen s said samba same sandboxing sat saturday save saves saying says sbin scan schedule
    scheduled schedules scope scripts sd search searches searching sec second seconds secret section sections secure
    security see seen sees selboolean select selected self selinux selmodule sem semodule semver send sending sends
    sensitive sent sentence sep separated separator sept september sequence serial serialization serialize serials
    serve served server servers serves service services serving servname session set setcode sets setting settings
    several sh sha shadow shape shapes share shared shell shift shim shipped shm shorter should shouldn show shown
    shows sign signature signatures signed signer signing signs similar simple since single singular site sitedir
    size skel skip skipped skipping skips slapd slash slashes sleep sleeping sles slow small smb sni so sock socket
    solaris solutions some somebody something soon source sources space speak spec special specific specified
    specify speed split spool sprintf squashfs squid src srv ss ssh sshd sshdsakey sshecdsakey sshfp sshkey sshkeys
    sshrsakey ssl ssldir sslv sslverify sssd stabilize stack stacktrace staff stage staging standard stands start
    starting starts startup state statement states static status statuses stay stayed stays stderr still stop
    stopped stopping store stored stores storing stream stretch strict string stringify strings stringscanner strip
    struct structured style sub subject submit submitting subscribe success successful successfully successors such
    sudo sudoers suitable sum summary sun sunday super support supported supports sure suse svn switch switched
    switches switching sym symbol symbolic symbols symlink sync synchronize synchronized syntax sys syscall syslog
    sysopen system systemctl systemd systems t table tag tags take taken takes taking tar target task tasks tb tcp
    telegraf tells template templates temporarily temporary ten termination terminus test testing text texts tgz
    than that the their them themselves then there therefore these they things this thisupdate those thread threads
    three through thu thursday tib tidy time timed timeout timeouts timer times timespan timestamp timesyncd
    timezone title tl tls tlsv tmp tmpfs to tolerate tomcat toml too tool tools top total touch touches tr trace
    traces traffic trailer trailers trailing transaction transfer translate translators transport transports
    traverse treat tree tried tries triggered trixie true trust trusted trusts try ts ttl tue tuesday turn turns
    twice two txt type types u ubuntu udp uefi ufw uid umask umount unable uname unauthorized unavailable unbound
    uncaught unchanged undef undefined under unescaped unexpected uninstall unit unknown unless unlimited unmanaged
    unmounted unprintable unreachable unreadable unrecognized unsafe unscheduling unsigned unsuitable unsupported
    until untrusted unusable unverified unzip up update upgrade upgraded upload upper upto uri url urlencoded urls
    usable usage use usecacheonfailure used user userdata users uses using usr usual utc utf util uuid ux v valid
    validate validator value valuemethod values var variable variables varnish vary vault vda ve vendor ver verbose
    verification verified verifier verify version versions very via vim violation virt virtual virtualbox vlan vm
    vms vmware vnd vox w wait waitforcert waitforlock waiting waits want wants warn warning warnings warns was wasn
    way we weak web webrick webserver websocket wed wednesday weekday weekly well were weren wget what whatever
    wheel when where whether which while whit whitespace who whoever whole whose wildcard will windows wire with
    withheld within without withpath won words would wouldn wrap wrapped writable write writing written wrong wwn
    www x xed xen xenial xeon xfs xml xz y yaml years yes yet yml york you your yum yumrepo zabbix zfs zip zlib zone
    zonename zookeeper zpool zsh zypper
    """.split()  # noqa: SIM905 - words in a row are easier to read
)
"""In lower case, letters only."""
