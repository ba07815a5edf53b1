"""The table of what newer versions of Puppet and OpenVox removed or changed, as far as traffic shows who it concerns.

To add a change, add a row to ``CHANGES``: the version, what happens, what to do, public sources, and what shows it: a
sign (``signs``) or rules. What no traffic can show is a row of ``UNCHECKED``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from inspector.explain.readiness import signs
from inspector.rules.fixes import advice, on_ca, on_master, on_node

if TYPE_CHECKING:
    from inspector.explain.readiness.signs import Sign
    from inspector.rules.fixes import Fix

TARGETS = (8, 9)
"""Versions that a capture can be judged for: 8 is Puppet 8 and OpenVox 8, 9 is OpenVox 9 with all that came before."""


class Effect(StrEnum):
    """The effect of a version on something that older versions have."""

    REMOVED = "removed"
    DEFAULT = "changed default"
    REFUSED = "refused"
    CHANGED = "changed"


class Change(NamedTuple):
    """One removal or changed default."""

    key: str
    title: str
    since: int
    """The major version that brought it."""
    effect: Effect
    what: str
    """What happens, and whom it concerns."""
    fix: Fix
    sources: tuple[str, ...]
    sign: Sign | None = None
    rules: tuple[str, ...] = ()
    """Rules whose findings show it."""
    comes_with: Literal["agent", "master"] | None = None
    """Whose version decides; None if what shows it is in need of something whatever the versions are."""
    reverted: int | None = None
    """The major version that takes it back."""
    settled: Sign | None = None
    """What shows that a node met it and got on."""

    def concerns(self, version: int, target: int) -> bool:
        """Return whether it happens on the way from a major version (0 if unknown) to ``target``."""
        if not version or self.comes_with is None:
            return True
        return self._holds(version) != self._holds(target)

    def _holds(self, version: int) -> bool:
        return self.since <= version and (self.reverted is None or version < self.reverted)


class Unchecked(msgspec.Struct, frozen=True):
    """A removal or changed default that no traffic shows."""

    title: str
    since: int
    how: str
    """How to find out."""
    sources: tuple[str, ...]


_LINT = "puppet-lint's legacy_facts check finds and replaces them"

CHANGES = (
    Change(
        "legacy-url", "URLs of Puppet 2.7 and 3", 4, Effect.REMOVED,
        "An agent of version 3 or a tool asks for /ENVIRONMENT/... A master of version 4 or later answers 404, except "
        "a Puppet Server or OpenVox Server with its service for legacy routes, which is to go after OpenVox Server 9.",
        (
            on_node("upgrade the agent"),
            advice("replace the URL in the tool: /puppet/v3/... and /puppet-ca/v1/...", only_if="it is a tool"),
        ),
        ("docs/protocol.md#old-agents-and-new-masters", "github.com/OpenVoxProject/openvox-server/issues/212"),
        sign=signs.legacy_url,
    ),
    Change(
        "yaml", "facts or reports as YAML", 4, Effect.REFUSED,
        "Agents of 2.7 and early 3 send YAML. Masters since 4 refuse such facts (Unsupported facts format), and "
        "reports with status 415.",
        (on_node("upgrade the agent; where a current one is configured to use YAML, remove "
                 "preferred_serialization_format from its puppet.conf"),),
        ("docs/protocol.md#reports-as-yaml", "puppet 7.23.0 lib/puppet/indirector/catalog/compiler.rb"),
        rules=("R14", "P08"),
    ),
    Change(
        "removed-endpoint", "endpoints that are gone", 7, Effect.REMOVED,
        "A tool asks for something that newer masters do not have, and gets 404.",
        (advice("update the tool before the master: /status/v1/simple says whether a server is up, "
                "/puppet-ca/v1/certificate_statuses lists certificates, /puppet/v3/environments the environments"),),
        ("docs/protocol.md#removed-endpoints", "puppetserver 7.9.5 src/clj/puppetlabs/services/master/master_core.clj"),
        rules=("S19",),
    ),
    Change(
        "tls", "TLS older than 1.2", 7, Effect.REFUSED,
        "A server of version 7 or later offers TLS 1.2 and 1.3 only, and OpenSSL 3, which agents since 8 bring along, "
        "refuses older versions.",
        (on_node("upgrade the agent, or its Ruby and OpenSSL", only_if="the agent is the limit"),
         on_master("it is replaced with the upgrade: nothing to do", only_if="the master is")),
        ("trapperkeeper-webserver-jetty9 4.4.1 src/puppetlabs/trapperkeeper/services/webserver/jetty9_config.clj",),
        rules=("T01",),
    ),
    Change(
        "md5", "MD5 as the digest of files", 7, Effect.DEFAULT,
        "Agents since 7 compare and back up files by SHA-256. A filebucket of puppetserver 7.9.5 answers MD5 with 500, "
        "so an older agent cannot back up, and does not change the file.",
        (on_node("use SHA-256 already now: files are compared anew once, which changes nothing",
                 "puppet config set digest_algorithm sha256 --section main"),
         advice("remove `checksum => md5` from the manifest", only_if="a file resource sets it")),
        ("docs/protocol.md#digest-algorithms", "puppet 7.23.0 lib/puppet/defaults.rb"),
        rules=("F06",),
    ),
    Change(
        "legacy-facts", "legacy facts", 8, Effect.DEFAULT,
        "Agents since 8 do not send osfamily, ipaddress_eth0 and other flat facts. Code and Hiera files that use them "
        "fail to compile, since strict_variables is on as well. Traffic shows who sends them, not what uses them.",
        (advice(f"look for them in code, templates and Hiera: {_LINT}"),
         on_node("try it on one node before its upgrade (7.21 and later)",
                 "puppet config set include_legacy_facts false --section agent"),
         on_node("send them for a while after the upgrade",
                 "puppet config set include_legacy_facts true --section agent",
                 only_if="the code cannot be changed yet")),
        ("docs/protocol.md#legacy-facts", "puppet 8.10.0 lib/puppet/defaults.rb",
         "github.com/puppetlabs/puppet/pull/8974"),
        sign=signs.legacy_facts, comes_with="agent",
    ),
    Change(
        "pson", "PSON", 8, Effect.REMOVED,
        "Since 8 nothing is written as PSON unless the gem puppet-pson is installed: agents up to 4, which read "
        "nothing else, get no catalog, and a catalog with bytes that are not UTF-8 is an error. OpenVox plans to "
        "remove the rest.",
        (on_node("upgrade the agent", only_if="its version is 4 or earlier"),
         advice("give binary content as `Binary` (`binary_file()`) or with `source`",
                only_if="the master answered in PSON although the agent prefers JSON"),
         on_node("remove it", "puppet config delete preferred_serialization_format --section agent",
                 only_if="preferred_serialization_format is set to pson")),
        ("docs/protocol.md#pson", "puppet 8.10.0 lib/puppet/defaults.rb", "puppet 8.10.0 lib/puppet/feature/pson.rb",
         "github.com/OpenVoxProject/openvox/issues/333"),
        sign=signs.pson,
    ),
    Change(
        "revocation", "CRLs that do not cover the CA chain", 8, Effect.REFUSED,
        "Agents since 8.1 fetch the CRLs anew every day, and check the whole chain by default. An agent that never "
        "asked for CRLs, or that has them for part of the chain only, gets along because of its own settings; a node "
        "with default settings would refuse the master.",
        (on_ca("see which CRL is missing", "puppet-inspector doctor --cadir \"$(puppet config print cadir)\""),
         on_node("let the agent check revocation again",
                 "puppet config set certificate_revocation chain --section agent")),
        ("docs/protocol.md#revocation-modes", "puppet 8.10.0 lib/puppet/ssl/state_machine.rb"),
        rules=("B07", "B13"),
    ),
    Change(
        "weak-certificates", "weak keys and digests in certificates", 8, Effect.REFUSED,
        "Packages of agents since 8 bring OpenSSL 3, which refuses certificates that are signed over MD5 or SHA-1 and "
        "RSA keys below 2048 bits.",
        (on_ca("issue new certificates, and a new CA if it is the CA's own"),),
        ("docs/protocol.md#signature-digests", "docs/protocol.md#keys"),
        rules=("B31", "B32"),
    ),
    Change(
        "ca-tool", "tools that administer the CA", 8, Effect.REFUSED,
        "`puppetserver ca sign` of 8 asks for /puppet-ca/v1/sign. An auth.conf that a module or an older package wrote "
        "has no rule for it, and answers 403; with OpenVox Server it is there since 8.12.0.",
        (on_ca("add rules for /puppet-ca/v1/sign and /puppet-ca/v1/sign/all to auth.conf, as for "
               "/puppet-ca/v1/certificate_status"),),
        ("github.com/OpenVoxProject/openvox-server/issues/100", "docs/protocol.md#endpoint-sign"),
        sign=signs.ca_tool,
    ),
    Change(
        "deferred", "Deferred values before the run", 8, Effect.DEFAULT,
        "Agents of version 8 compute Deferred values when their resource is applied (preprocess_deferred=false); those "
        "of 7 and before, and again OpenVox 9, before the catalog is applied (true). When the resource is applied, a "
        "type that looks at its parameters earlier fails or compares the wrong value; before the catalog, a value that "
        "a resource of the same catalog makes possible is not there yet.",
        (on_node("try it before its upgrade to 8", "puppet config set preprocess_deferred false --section agent",
                 only_if="its agent is of version 7 or before"),
         on_node("try it before its upgrade to OpenVox 9",
                 "puppet config set preprocess_deferred true --section agent", only_if="its agent is of version 8"),
         advice("set preprocess_deferred in puppet.conf to what works", only_if="a type does not work with it")),
        ("puppet 8.10.0 lib/puppet/defaults.rb", "github.com/puppetlabs/puppet/pull/8983",
         "openvox 9.0.0-rc1 lib/puppet/defaults.rb", "github.com/OpenVoxProject/openvox/pull/462"),
        sign=signs.deferred, comes_with="agent", reverted=9,
    ),
    Change(
        "strict", "warnings that become errors", 8, Effect.DEFAULT,
        "With strict=error and strict_variables=true, which are the defaults since 8, such a warning fails the "
        "compile. The master's own warnings are in its log, not in traffic.",
        (on_master("look for WARN in its log (puppetserver.log)"),
         on_master("try it on a test master",
                   "puppet config set strict error --section server")),
        ("puppet 8.10.0 lib/puppet/defaults.rb", "github.com/puppetlabs/puppet/pull/9017"),
        sign=signs.strict_warning, comes_with="master",
    ),
    Change(
        "reports-shorter", "unchanged resources in reports", 8, Effect.DEFAULT,
        "Agents since 8 leave resources without a change out of their reports (exclude_unchanged_resources=true). "
        "Dashboards and queries that count them show less.",
        (on_node("keep sending them", "puppet config set exclude_unchanged_resources false --section agent",
                 only_if="something needs them"),),
        ("puppet 8.10.0 lib/puppet/defaults.rb", "docs/protocol.md#default-settings"),
        sign=signs.unchanged_resources, comes_with="agent",
    ),
    Change(
        "renewal", "renewal of certificates", 8, Effect.DEFAULT,
        "Agents since 8.2 ask for a new certificate 30 days before theirs ends. A CA where this is off answers 404, "
        "one behind a device that terminates TLS 400, one before version 8 403: the agents go on, and stop when it has "
        "ended.",
        (on_ca("turn it on, `allow-auto-renewal: true` in ca.conf, or plan to enrol the nodes anew"),),
        ("docs/protocol.md#renewal", "puppet 8.10.0 lib/puppet/ssl/state_machine.rb"),
        rules=("B36",), settled=signs.renewed,
    ),
    Change(
        "default-server", "the default name of the server", 9, Effect.DEFAULT,
        "OpenVox 9 no longer takes `puppet` where puppet.conf names no server: its agent stops. 9.0.0-rc1 does so even "
        "with server_list or ca_server; 9.0.0 does not. Traffic does not show whether the name is the default or is "
        "configured.",
        (on_node("see whether it is configured; nothing is printed if not",
                 "grep -n 'server' \"$(puppet config print config)\""),
         on_node("configure it", "puppet config set server puppet --section main", only_if="it is not")),
        ("github.com/OpenVoxProject/openvox/releases/tag/9.0.0", "openvox 9.0.0-rc1 lib/puppet/http/service.rb"),
        sign=signs.default_server, comes_with="agent",
    ),
    Change(
        "report-store", "reports stored as files", 9, Effect.DEFAULT,
        "OpenVox 9 sets `reports` to none instead of store: without it in puppet.conf the files in reportdir end.",
        (on_master("keep storing them", "puppet config set reports store --section server",
                   only_if="something reads them"),),
        ("github.com/OpenVoxProject/openvox/releases/tag/9.0.0",
         "github.com/OpenVoxProject/openvox/releases/tag/9.0.0-beta2"),
        sign=signs.stored_report, comes_with="master",
    ),
    Change(
        "bucket-read", "nodes that read the filebucket", 9, Effect.REFUSED,
        "OpenVox Server 9 lets nodes store in the filebucket; to read it needs a certificate with pp_cli_auth.",
        (on_master("restore there, with the server's own certificate"),
         on_master("add a rule to auth.conf for the certname that restores", only_if="that is not possible")),
        ("github.com/OpenVoxProject/openvox-server/pull/549", "docs/protocol.md#default-rules"),
        rules=("F13",),
    ),
    Change(
        "zone", "the type zone", 9, Effect.REMOVED,
        "The module zone_core is no longer part of the agent's package.",
        (advice("add the module to the environment: puppetlabs-zone_core"),),
        ("github.com/OpenVoxProject/openvox/releases/tag/9.0.0-beta2",),
        sign=signs.zones, comes_with="agent",
    ),
    Change(
        "checksum-content", "checksums as the content of files", 9, Effect.REMOVED,
        "Up to 8 a `content` such as {sha256}... is fetched from the filebucket. OpenVox 9 writes these characters "
        "into the file.",
        (advice("give the content itself, or `source`"),),
        ("github.com/OpenVoxProject/openvox/pull/170", "openvox 9.0.0-rc1 lib/puppet/type/file/content.rb"),
        sign=signs.checksum_content, comes_with="agent",
    ),
    Change(
        "filebucket-server", "filebuckets with a server of their own", 9, Effect.CHANGED,
        "Agents of 7 and 8 store in the filebucket of their master, whatever `server` of the filebucket says. Those of "
        "OpenVox 9 call that server, which must know their CA.",
        (advice("remove `server` and `port` from the filebucket", only_if="the master's own is meant"),
         on_node("see whether the server answers",
                 "puppet filebucket --remote --server SERVER backup FILE", only_if="another one is meant")),
        ("github.com/OpenVoxProject/openvox/pull/368",
         "openvox 9.0.0-rc1 lib/puppet/indirector/file_bucket_file/rest.rb"),
        sign=signs.filebucket_server, comes_with="agent",
    ),
    Change(
        "catalog-name", "catalogs with another name than the node's", 9, Effect.CHANGED,
        "The agent of OpenVox 9 logs an error if the catalog's name is not its own: Catalog name '...' does not match "
        "this node's certname.",
        (on_master("look for what renames nodes: an ENC, a node terminus, node_name_fact"),),
        ("github.com/OpenVoxProject/openvox/pull/568", "openvox 9.0.0-rc1 lib/puppet/configurer.rb"),
        sign=signs.other_name, comes_with="agent",
    ),
)  # fmt: skip

UNCHECKED = (
    Unchecked(
        "what code and Hiera use of legacy facts", 8, f"search them: {_LINT}",
        ("github.com/puppetlabs/puppet/pull/8974",),
    ),
    Unchecked(
        "warnings of the compiler that strict=error makes errors", 8,
        "compile in a test environment with `strict = error`, and read the master's log",
        ("github.com/puppetlabs/puppet/pull/9017",),
    ),
    Unchecked(
        "Hiera 3: hiera.yaml of version 3, its backends, the hiera() functions", 8,
        "look for `:backends:` in hiera.yaml and for hiera( in code",
        ("github.com/puppetlabs/puppet-agent/pull/2323",),
    ),
    Unchecked(
        "functions, types and facts in Ruby: 8 has Ruby 3.2, OpenVox 9 has Ruby 4.0 (server: JRuby 10.1)", 8,
        "run the modules' tests with that Ruby, and `puppetserver gem list` for gems of the server",
        ("github.com/OpenVoxProject/openvox/releases/tag/9.0.0", "openvox-server 9.0.0-beta2 CHANGELOG.md"),
    ),
    Unchecked(
        "custom facts that use what OpenFact 6 removed, such as `ldapname`", 9,
        "run `puppet facts show` on a test node of the new version, and read its warnings",
        ("openfact 6.0.0 CHANGELOG.md",),
    ),
    Unchecked(
        "what the compiler of OpenVox 9 no longer takes: regsubst() with an encoding, the fact pe_serverversion", 9,
        "look for regsubst( with five arguments and for pe_serverversion in code",
        ("github.com/OpenVoxProject/openvox/pull/391", "github.com/OpenVoxProject/openvox/pull/397"),
    ),
    Unchecked(
        "services on Debian and Ubuntu that only have a script in /etc/init.d: OpenVox 9 takes them for not enabled", 9,
        "`systemctl is-enabled SERVICE`, which is all that the agent asks",
        ("github.com/OpenVoxProject/openvox/pull/562",),
    ),
    Unchecked(
        "a CA directory below ssldir", 8, "`puppet config print cadir` on the CA; `puppetserver ca migrate` moves it",
        ("github.com/OpenVoxProject/openvox-server/issues/210",),
    ),
    Unchecked(
        "a device between agents and master that passes identities on in headers", 8,
        "look for allow-header-cert-info in auth.conf and master.conf",
        ("github.com/OpenVoxProject/openvox-server/issues/207", "docs/protocol.md#identity-in-headers"),
    ),
    Unchecked(
        "clients that call the master by a name that its certificate does not have: Jetty 12 may refuse them", 9,
        "compare the names that monitoring and load balancers use with the certificate's alternative names",
        ("github.com/OpenVoxProject/openvox-server/pull/217", "github.com/jetty/jetty.project/issues/13333"),
    ),
    Unchecked(
        "Java and operating systems: OpenVox Server 9 needs Java 21 or 25, and is not built for Debian 12 and older, "
        "the agent not for EL 7, SLES 12, Amazon Linux 2, AIX and Solaris 11", 9,
        "compare with the packages that your release offers",
        ("openvox-server 9.0.0-beta1 CHANGELOG.md", "openvox 9.0.0-beta2 packaging/configs/platforms"),
    ),
    Unchecked(
        "settings that OpenVox 9 removed: data_binding_terminus, environment_data_provider, pluginsync, configprint", 9,
        "look for them in puppet.conf, environment.conf and in what calls puppet",
        ("openvox 9.0.0-rc1 lib/puppet/defaults.rb",),
    ),
    Unchecked(
        "nodes that did not run while this was recorded, and what a node does on other days", 8,
        "record for as long as the longest interval between two runs", (),
    ),
)  # fmt: skip


def for_version(target: int) -> tuple[Change, ...]:
    """Return the changes that an upgrade to a version brings, the oldest first."""
    return tuple(change for change in CHANGES if change.since <= target)


def unchecked_for(target: int) -> tuple[Unchecked, ...]:
    """Return what concerns an upgrade to a version and cannot be seen in traffic."""
    return tuple(row for row in UNCHECKED if row.since <= target)
