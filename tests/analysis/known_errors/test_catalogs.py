"""Messages about compiling a catalog, as they are printed."""

from __future__ import annotations

import pytest

from inspector.analysis.known_errors import catalogs
from tests.support.printed import AGENT, LOG, Printed, assert_found, without_line

SERVER = "Error: Could not retrieve catalog from remote server: Error 500 on SERVER: Server Error: "
OLD = "Error: Could not retrieve catalog from remote server: Error 400 on SERVER: "
SITE = "(file: /etc/puppetlabs/code/environments/production/manifests/site.pp, line: 1, column: 1) on node web1.example"
ISSUES = "puppet 7.23.0 lib/puppet/pops/issues.rb"

LINES = [
    Printed(
        AGENT,
        f"{SERVER}Evaluation Error: Error while evaluating a Function Call, Could not find class "
        f"::nosuch::klass for web1.example {SITE}",
        "Could not find class",
    ),
    Printed(
        LOG + " of 3.7",
        f"{OLD}Could not find class check_run for web1.example on node web1.example",
        "Could not find class",
    ),
    Printed(
        f"{LOG} of 4.9",
        f"{SERVER}Evaluation Error: Error while evaluating a Resource Statement, Could not find "
        f"declared class nosuch {SITE}",
        "Could not find class",
    ),
    Printed(
        AGENT,
        f"{SERVER}Evaluation Error: Error while evaluating a Resource Statement, Duplicate "
        "declaration: Notify[a] is already declared at (file: "
        "/etc/puppetlabs/code/environments/production/manifests/site.pp, line: 1); cannot redeclare "
        f"{SITE}",
        "Duplicate declaration",
    ),
    Printed(
        "puppet 3.8.7 lib/puppet/resource/catalog.rb",
        f"{OLD}Duplicate declaration: Package[git] is already declared in file "
        "/etc/puppet/modules/a/manifests/init.pp:3; cannot redeclare at "
        "/etc/puppet/modules/b/manifests/init.pp:9 on node web1.example",
        "Duplicate declaration",
    ),
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
        "puppet 7.23.0 lib/puppet/parser/compiler.rb",
        f"{SERVER}Could not find node statement with name 'default' or 'web1.example, web1' on node web1.example",
        "Could not find node statement with name 'default' or 'X' on node X",
    ),
    Printed(
        "puppet 7.23.0 lib/puppet/indirector/catalog/compiler.rb",
        f"{SERVER}Could not find node 'web1.example'; cannot compile",
        "Could not find node 'NAME'; cannot compile",
    ),
    Printed(
        AGENT,
        f"{SERVER}Evaluation Error: Unknown function: 'notafunction'. {SITE}",
        "Unknown function: 'X'",
    ),
    Printed(
        LOG,
        "Error: Could not autoload puppet/provider/package/npm: "
        "/var/lib/puppet/lib/puppet/provider/package/npm.rb:3: syntax error, unexpected ':', "
        "expecting $end",
        "Could not autoload",
    ),
    Printed(
        LOG,
        "Error: Could not run: cannot load such file -- rbeapi/client",
        "cannot load such file -- X",
    ),
    Printed(
        AGENT,
        f"{SERVER}Evaluation Error: Error while evaluating a Resource Statement, Unknown resource "
        f"type: 'nosuchtype' {SITE}",
        "Unknown resource type: 'X'",
    ),
    Printed(
        AGENT,
        f"{SERVER}no parameter named 'ensuree' (file: "
        "/etc/puppetlabs/code/environments/production/manifests/site.pp, line: 1) on File[/tmp/x] "
        f"{SITE}",
        "no parameter named 'X'",
    ),
    Printed(
        AGENT,
        f"{SERVER}Evaluation Error: Error while evaluating a Resource Statement, Class[C]: expects a "
        f"value for parameter 'a' {SITE}",
        "expects a value for parameter 'X'",
    ),
    Printed(
        AGENT,
        f"{SERVER}Evaluation Error: Error while evaluating a Resource Statement, Class[C]: parameter "
        f"'a' expects an Integer value, got String {SITE}",
        "parameter 'X' expects an",
    ),
    Printed(
        LOG + " of 3.x",
        f"{OLD}Invalid parameter service on node web1.example",
        "Invalid parameter X",
    ),
    Printed(
        AGENT,
        f"{SERVER}Could not parse for environment production: Syntax error at end of input {SITE}",
        "Syntax error at X",
    ),
    Printed(
        LOG + " of 3.x",
        f"{OLD}Syntax error at '.'; expected '}}' at /etc/puppet/modules/aem/manifests/config.pp:65 on "
        "node web1.example",
        "Syntax error at X",
    ),
    Printed(
        ISSUES,
        f"{SERVER}Evaluation Error: Unknown variable: 'osfamily'. {SITE}",
        "Unknown variable: 'X'",
    ),
    Printed(
        AGENT,
        f"{SERVER}Evaluation Error: Error while evaluating a Function Call, Could not find template "
        f"'nomod/x.erb' {SITE}",
        "Could not find template 'X'",
    ),
    Printed(
        AGENT,
        f"{SERVER}Could not find resource 'Notify[zz]' in parameter 'require' {SITE}",
        "Could not find resource 'X' in parameter 'X'",
    ),
    Printed(
        "puppet 3.8.7 lib/puppet/type.rb",
        "Error: Failed to apply catalog: Could not find dependency Package[a] for File[/etc/a] at "
        "/etc/puppet/manifests/site.pp:3",
        "Could not find resource 'X' in parameter 'X'",
    ),
    Printed(
        AGENT,
        "Error: Found 1 dependency cycle:\n(Notify[a] => Notify[b] => Notify[a])\\nTry the '--graph' "
        "option and opening the resulting '.dot' file in OmniGraffle or GraphViz\nError: Failed to "
        "apply catalog: One or more resource dependency cycles detected in graph",
        "Found X dependency cycle",
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
        AGENT,
        "Error: Failed to apply catalog: Environment 'nosuch' not found on server, aborting run.",
        "Environment 'X' not found on server",
    ),
    Printed(
        AGENT,
        "Notice: Environment 'nosuch' not found on server, skipping initial pluginsync.",
        "Environment 'X' not found on server",
    ),
    Printed(
        "puppet 7.23.0 lib/puppet/network/http/api/indirected_routes.rb",
        "Error: Could not retrieve catalog from remote server: Error 404 on SERVER: Not Found: Could "
        "not find environment 'nosuch'",
        "Could not find environment 'X'",
    ),
    Printed(
        AGENT,
        "Notice: Local environment: 'nosuch' doesn't match server specified environment 'production', "
        "restarting agent run with environment 'production'",
        "Local environment: 'X' doesn't match server specified environment 'X', restarting agent run",
    ),
    Printed(
        "puppet 3.8.7 lib/puppet/network/http/api/v1.rb",
        "Error: Could not request certificate: Error 400 on SERVER: The environment must be purely "
        "alphanumeric, not 'puppet-ca'",
        "Invalid environment name",
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
    Printed(
        "puppetserver 7.9.5 src/clj/puppetlabs/puppetserver/jruby_request.clj",
        "Error: Could not retrieve catalog from remote server: Error 503 on SERVER: Attempt to borrow "
        "a JRuby instance from the pool timed out",
        "Attempt to borrow a JRuby instance from the pool timed out",
    ),
    Printed(
        AGENT,
        f"{SERVER}Evaluation Error: Error while evaluating a Function Call, stop here {SITE}",
        "Server Error: Evaluation Error",
    ),
    Printed(
        "puppet 7.23.0 lib/puppet/indirector/catalog/rest.rb",
        "Error: Could not retrieve catalog from remote server: Find /puppet/v3/catalog/web1.example "
        "resulted in 404 with the message: a text of its own",
        "Find X resulted in 404 with the message: X",
    ),
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.text[:50])
def test_what_is_printed_is_found(line: Printed) -> None:
    assert_found(line)


def test_each_message_has_a_line() -> None:
    assert without_line(catalogs.MESSAGES, LINES) == []
