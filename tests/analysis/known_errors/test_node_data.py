"""Messages about compiling a catalog: Hiera's data, facts, the node classifier and PuppetDB, as they are printed."""

from __future__ import annotations

import pytest

from inspector.analysis.known_errors import node_data
from tests.support.printed import AGENT, LOG, Printed, assert_found, without_line

SERVER = "Error: Could not retrieve catalog from remote server: Error 500 on SERVER: Server Error: "
OLD = "Error: Could not retrieve catalog from remote server: Error 400 on SERVER: "

LINES = [
    Printed(
        AGENT,
        f"{SERVER}Function lookup() did not find a value for the name 'no::such' on node web1.example",
        "did not find a value for the name",
    ),
    Printed(
        "puppet 3.8.7 lib/hiera_puppet.rb",
        f"{OLD}Could not find data item ca_package in any Hiera data file and no default supplied at "
        "/etc/puppet/manifests/site.pp:4 on node web1.example",
        "did not find a value for the name",
    ),
    Printed(
        "puppet 7.23.0 lib/puppet/pops/lookup/lookup_adapter.rb",
        f"{SERVER}Lookup of key 'a::b' failed: (<unknown>): did not find expected key while parsing a "
        "block mapping at line 2 column 1 on node web1.example",
        "Lookup of key X failed: X",
    ),
    Printed(
        LOG + " of 3.x",
        f"{OLD}Failed when searching for node web1.example: Failed to find web1.example via exec: "
        "Execution of '/etc/puppet/node.rb web1.example' returned 1: --- false",
        "Failed to find NAME via exec",
    ),
    Printed(
        "puppet 7.23.0 lib/puppet/indirector/exec.rb",
        f"{SERVER}Failed when searching for node web1.example: Failed to find web1.example via exec: "
        "Execution of '/etc/puppetlabs/puppet/node.rb web1.example' returned 1:",
        "Failed to find NAME via exec",
    ),
    Printed(
        "puppet 7.23.0 lib/puppet/indirector/catalog/compiler.rb",
        f"{SERVER}Could not find node 'web1.example'; cannot compile",
        "Could not find node 'NAME'; cannot compile",
    ),
    Printed(
        LOG + " of 7.29",
        "Error: Could not call 'find' on 'catalog': Error 500 on SERVER: Server Error: Could not "
        "intern from json: undefined method `[]' for nil:NilClass",
        "Could not intern from",
    ),
    Printed(
        LOG + " of 3.0",
        "Error: Could not retrieve catalog from remote server: Could not intern from pson: Invalid "
        'tag "[\\"postgresql::config\\"]"',
        "Could not intern from",
    ),
    Printed(
        LOG + " of 8",
        f"{SERVER}Failed to serialize Puppet::Resource::Catalog for 'web1.example': source sequence is "
        "illegal/malformed utf-8",
        "source sequence is illegal/malformed utf-8",
    ),
    Printed(
        "puppet 7.23.0 lib/puppet/indirector/catalog/compiler.rb",
        f'{SERVER}Catalog for "web1.example" was requested with fact definition for the wrong node ("web2.example").',
        "Catalog for X was requested with fact definition for the wrong node",
    ),
    Printed(
        "puppet 7.23.0 lib/puppet/indirector/catalog/compiler.rb",
        f"{SERVER}Unable to find a common checksum type between agent 'md5' and master '[:sha256, :sha256lite]'.",
        "Unable to find a common checksum type between agent",
    ),
    Printed(
        LOG,
        f"{SERVER}Failed to submit 'replace facts' command for web1.example to PuppetDB at "
        "puppetdb:8081: Connection refused",
        "Failed to submit 'replace facts' command",
    ),
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.text[:50])
def test_what_is_printed_is_found(line: Printed) -> None:
    assert_found(line)


def test_each_message_has_a_line() -> None:
    assert without_line(node_data.MESSAGES, LINES) == []
