"""Messages about compiling a catalog: its code, and the modules that it uses, as they are printed."""

from __future__ import annotations

import pytest

from inspector.analysis.known_errors import manifests
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
        "puppet 7.23.0 lib/puppet/parser/compiler.rb",
        f"{SERVER}Could not find node statement with name 'default' or 'web1.example, web1' on node web1.example",
        "Could not find node statement with name 'default' or 'X' on node X",
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
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.text[:50])
def test_what_is_printed_is_found(line: Printed) -> None:
    assert_found(line)


def test_each_message_has_a_line() -> None:
    assert without_line(manifests.MESSAGES, LINES) == []
