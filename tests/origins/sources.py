"""The public repositories and versions that the origins of messages are made of."""

from __future__ import annotations

from typing import NamedTuple


class Source(NamedTuple):
    """A directory of a program's repository, in several versions."""

    program: str
    """A key of ``tests.origins.places.PLACES``."""
    repository: str
    """On GitHub."""
    tags: tuple[str, ...]
    folders: tuple[str, ...]
    translations: str = ""
    """The catalog of messages, if the repository has one."""


_CLOJURE = ("src",)
SOURCES = (
    Source(
        "Puppet", "puppetlabs/puppet",
        ("2.7.26", "3.8.7", "4.10.12", "5.5.22", "6.29.0", "7.23.0", "7.34.0", "8.10.0"), ("lib",),
        "locales/puppet.pot",
    ),
    Source("Puppet", "OpenVoxProject/openvox", ("7.37.2", "8.28.1", "9.0.0-beta2"), ("lib",), "locales/puppet.pot"),
    Source("Facter", "puppetlabs/facter", ("1.7.6", "2.5.7", "3.14.24", "4.3.0", "4.10.0"), ("lib",)),
    Source("Facter", "OpenVoxProject/openfact", ("5.7.0", "6.0.0"), ("lib",)),
    Source("Hiera", "puppetlabs/hiera", ("1.3.4", "3.12.0"), ("lib",)),
    Source("resource API", "puppetlabs/puppet-resource_api", ("v1.8.1", "v1.9.2", "v2.0.1"), ("lib",)),
    Source("versions", "puppetlabs/semantic_puppet", ("1.0.4", "1.1.1"), ("lib",)),
    Source(
        "Puppet Server", "puppetlabs/puppetserver",
        ("5.3.16", "6.20.0", "7.9.5", "7.17.3", "8.7.0"), _CLOJURE,
        "locales/puppetserver.pot",
    ),
    Source(
        "Puppet Server", "OpenVoxProject/openvox-server", ("8.15.2", "9.0.0-beta5"), _CLOJURE,
        "locales/puppetserver.pot",
    ),
    Source("puppetserver ca", "puppetlabs/puppetserver-ca-cli", ("1.11.7", "2.4.0", "2.7.0"), ("lib",)),
    Source("puppetserver ca", "OpenVoxProject/openvoxserver-ca", ("3.2.1",), ("lib",)),
    Source(
        "PuppetDB", "puppetlabs/puppetdb", ("5.2.19", "6.22.1", "7.12.1", "8.8.1"), _CLOJURE, "locales/puppetdb.pot",
    ),
    Source("PuppetDB", "OpenVoxProject/openvoxdb", ("8.15.0", "9.0.0-beta1"), ("src",), "locales/puppetdb.pot"),
    Source("terminus", "puppetlabs/puppetdb", ("2.3.8", "5.2.19", "6.22.1", "7.12.1", "8.8.1"), ("puppet/lib",)),
    Source("terminus", "OpenVoxProject/openvoxdb", ("8.15.0", "9.0.0-beta1"), ("puppet/lib",)),
    # Libraries of Puppet Server and PuppetDB.
    Source("trapperkeeper", "puppetlabs/trapperkeeper", ("1.5.6", "3.2.0", "4.0.0"), _CLOJURE),
    Source("authorization", "puppetlabs/trapperkeeper-authorization", ("1.0.0", "2.0.1"), _CLOJURE),
    Source("authorization", "OpenVoxProject/trapperkeeper-authorization", ("2.4.1",), _CLOJURE),
    Source("web server", "puppetlabs/trapperkeeper-webserver-jetty9", ("2.4.1", "4.4.1", "4.5.2"), _CLOJURE),
    Source("web server", "OpenVoxProject/trapperkeeper-webserver-jetty10", ("1.1.4",), _CLOJURE),
    Source("JRuby", "puppetlabs/jruby-utils", ("4.0.3", "5.2.0"), _CLOJURE),
    Source("JRuby", "OpenVoxProject/jruby-utils", ("7.0.3",), _CLOJURE),
    Source("HTTP client", "puppetlabs/clj-http-client", ("2.1.1", "2.1.4"), _CLOJURE),
    Source("ring", "puppetlabs/ring-middleware", ("1.3.1", "2.0.4"), _CLOJURE),
    Source("TLS", "puppetlabs/jvm-ssl-utils", ("3.1.0", "3.5.3"), _CLOJURE),
)  # fmt: skip
