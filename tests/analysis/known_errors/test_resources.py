"""Messages about plugins, facts and resources, as they are printed."""

from __future__ import annotations

import pytest

from inspector.analysis.known_errors import resources
from tests.support.printed import AGENT, LOG, Printed, assert_found, without_line

CONFIGURER = "puppet 7.23.0 lib/puppet/configurer.rb"
FILE = "puppet 7.23.0 lib/puppet/type/file.rb"

LINES = [
    Printed(
        AGENT,
        "Error: /Stage[main]/Main/File[/tmp/y]: Could not evaluate: Could not retrieve information "
        "from environment production source(s) puppet:///modules/nomod/nofile",
        "Could not retrieve information from environment X source(s)",
    ),
    Printed(
        LOG + " of 2.7",
        "err: /Stage[main]/Hosts/File[/etc/hosts]: Could not evaluate: Error 400 on SERVER: Not "
        "authorized to call find on /file_metadata/hosts/etc/hosts Could not retrieve file metadata "
        "for puppet://master.example/hosts/etc/hosts: Error 400 on SERVER: Not authorized to call "
        "find on /file_metadata/hosts/etc/hosts",
        "Not authorized to call find on X",
    ),
    Printed(
        LOG + " of 4.x",
        "Error: /File[/var/lib/puppet/facts.d]: Could not evaluate: Could not retrieve file metadata "
        "for puppet:///pluginfacts: Error 400 on SERVER: Not authorized to call find on "
        '/file_metadata/pluginfacts with {:source_permissions=>"use", :links=>"manage"}',
        "Not authorized to call find on X",
    ),
    Printed(
        "puppetserver 7.9.5",
        "Error: Forbidden request: master.example(127.0.0.1) access to /puppet-ca/v1/sign (method "
        ":post) (authenticated: true) denied by rule 'puppetlabs deny all'.",
        "denied by rule 'puppetlabs deny all'",
    ),
    Printed(
        AGENT,
        "Error: Could not retrieve catalog from remote server: Error 403 on SERVER: Forbidden "
        "request: /puppet/v3/catalog/web2.example (method :post). Please see the server logs for "
        "details.",
        "Error 403 on SERVER: Forbidden request",
    ),
    Printed(
        f"{LOG} of 3.x",
        "Error: Could not retrieve catalog from remote server: Error 403 on SERVER: Forbidden "
        "request: web1.example(192.0.2.1) access to /catalog/web2.example [find] at :119",
        "Error 403 on SERVER: Forbidden request",
    ),
    Printed(
        LOG,
        "Error: /File[/var/lib/puppet/lib]: Could not evaluate: Could not retrieve file metadata for "
        "puppet:///plugins: a reason of its own",
        "Could not retrieve file metadata for X",
    ),
    Printed(
        LOG + " of 3.x",
        "Could not retrieve fact='ipaddress', resolution='<anonymous>': Could not execute 'host "
        "web1': command not found",
        "Could not retrieve fact",
    ),
    Printed(
        "facter 4 lib/facter/custom_facts/core/resolvable.rb",
        "Error: Facter: Error while resolving custom fact fact='mine', resolution='<anonymous>': "
        "undefined local variable",
        "Could not retrieve fact",
    ),
    Printed(
        "puppet 7.23.0 lib/puppet/configurer/fact_handler.rb",
        "Error: Failed to apply catalog: Could not retrieve local facts: uninitialized constant Mine",
        "Could not retrieve local facts: X",
    ),
    Printed(
        CONFIGURER,
        "Warning: The current total number of facts: 2300 exceeds the number of facts limit: 2048",
        "The current total number of facts: X exceeds the number of facts limit",
    ),
    Printed(
        AGENT,
        "Error: /Stage[main]/Main/Exec[nosuchcommand --x]/returns: change from 'notrun' to ['0'] "
        "failed: Could not find command 'nosuchcommand'",
        "Could not find command 'X'",
    ),
    Printed(
        AGENT,
        "Error: '/usr/bin/false' returned 1 instead of one of [0]\nError: "
        "/Stage[main]/Main/Exec[/usr/bin/false]/returns: change from 'notrun' to ['0'] failed: "
        "'/usr/bin/false' returned 1 instead of one of [0]",
        "returned X instead of one of",
    ),
    Printed(
        "puppet 3.8.7 lib/puppet/type/exec.rb",
        "Error: /usr/bin/false returned 1 instead of one of [0]",
        "returned X instead of one of",
    ),
    Printed(
        "puppet 7.23.0 lib/puppet/type/exec.rb",
        "Error: /Stage[main]/Main/Exec[a]/returns: change from 'notrun' to ['0'] failed: Command exceeded timeout",
        "Command exceeded timeout",
    ),
    Printed(
        AGENT,
        "Error: /Stage[main]/Main/Package[nosuchpackage-xyz]/ensure: change from 'purged' to "
        "'present' failed: Execution of '/usr/bin/apt-get -q -y -o DPkg::Options::=--force-confold "
        "install nosuchpackage-xyz' returned 100: Reading package lists...\nBuilding dependency "
        "tree...\nReading state information...\nE: Unable to locate package nosuchpackage-xyz",
        "Unable to locate package",
    ),
    Printed(
        AGENT,
        "Error: /Stage[main]/Main/Service[nosuchsvc-xyz]/ensure: change from 'stopped' to 'running' "
        "failed: Could not find init script for 'nosuchsvc-xyz'",
        "Could not find init script for 'X'",
    ),
    Printed(
        AGENT,
        "Error: Could not set 'file' on ensure: Could not find user nosuchuser (file: /etc/a.pp, line: 1)",
        "Could not find user X",
    ),
    Printed(
        AGENT,
        "Warning: /Stage[main]/Main/Notify[after]: Skipping because of failed dependencies",
        "Skipping because of failed dependencies",
    ),
    Printed(
        FILE,
        "Error: Could not back up /etc/motd: Error 500 on SERVER: Server Error: Unsupported checksum type md5",
        "Could not back up X",
    ),
    Printed(
        FILE,
        "Error: File written to disk did not match desired checksum; discarding changes ({sha256}aa vs {sha256}bb)",
        "File written to disk did not match desired checksum",
    ),
    Printed(
        "Linux",
        "Error: Could not retrieve catalog from remote server: Error 500 on SERVER: Server Error: No "
        "space left on device @ rb_sysopen - /opt/puppetlabs/server/data/x",
        "No space left on device",
    ),
    Printed(
        LOG + " of 4.x",
        "Error: /File[/opt/puppetlabs/puppet/cache/facts.d]: Failed to generate additional resources "
        "using 'eval_generate': Error 400 on SERVER: Permission denied - "
        "/etc/puppetlabs/code/environments/production/modules/php/metadata.json",
        "Permission denied - X",
    ),
    Printed(
        "openvox 9.0.0",
        "Error: Failed to apply catalog: undefined method 'name' for nil",
        "Failed to apply catalog: undefined method 'name' for nil",
    ),
    Printed(
        CONFIGURER,
        "Error: Failed to apply catalog: a reason of its own",
        "Failed to apply catalog: X",
    ),
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.text[:50])
def test_what_is_printed_is_found(line: Printed) -> None:
    assert_found(line)


def test_each_message_has_a_line() -> None:
    assert without_line(resources.MESSAGES, LINES) == []
