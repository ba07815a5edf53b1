"""Messages about the agent's process, settings, files and report, as they are printed."""

from __future__ import annotations

import pytest

from inspector.analysis.known_errors import agents
from tests.support.printed import AGENT, LOG, Printed, assert_found, without_line

CONFIGURER = "puppet 7.23.0 lib/puppet/configurer.rb"
PROCESS = "puppet 7.23.0 lib/puppet/agent.rb"
DAEMON = "puppet 7.23.0 lib/puppet/daemon.rb"

LINES = [
    Printed(
        AGENT,
        "Notice: Skipping run of Puppet configuration client; administratively disabled (Reason: "
        "'maintenance until Monday');\nUse 'puppet agent --enable' to re-enable.",
        "administratively disabled",
    ),
    Printed(
        f"{LOG} of 2.7",
        "Notice: Skipping run of Puppet configuration client; administratively disabled; use 'puppet "
        "Puppet configuration client --enable' to re-enable.",
        "administratively disabled",
    ),
    Printed(
        PROCESS,
        "Notice: Run of Puppet configuration client already in progress; skipping  "
        "(/opt/puppetlabs/puppet/cache/state/agent_catalog_run.lock exists)",
        "already in progress; skipping",
    ),
    Printed(
        "puppet 7.23.0 lib/puppet/ssl/state_machine.rb",
        "Error: Another puppet instance is already running and the waitforlock setting is set to 0; exiting",
        "Another puppet instance is already running",
    ),
    Printed(
        PROCESS,
        "Error: Execution of Puppet::Configurer did not complete within 3600 seconds and was terminated.",
        "Execution of X did not complete within X seconds and was terminated",
    ),
    Printed(
        AGENT,
        "Error: Could not retrieve catalog; skipping run",
        "Could not retrieve catalog; skipping run",
    ),
    Printed(
        AGENT,
        "Warning: Not using cache on failed catalog",
        "Could not retrieve catalog; skipping run",
    ),
    Printed(
        CONFIGURER,
        "Error: Could not retrieve catalog from remote server: a reason of its own",
        "Could not retrieve catalog from remote server: X",
    ),
    Printed(
        CONFIGURER,
        "Warning: Unable to fetch my node definition, but the agent run will continue:",
        "Unable to fetch my node definition, but the agent run will continue",
    ),
    Printed(
        CONFIGURER,
        "Error: Removing corrupt state file /var/lib/puppet/state/state.yaml: a reason of its own",
        "Removing corrupt state file X",
    ),
    Printed(
        CONFIGURER,
        "Error: Could not send report: a reason of its own",
        "Could not send report: X",
    ),
    Printed(
        "puppet 7.23.0 lib/puppet/indirector/report/processor.rb",
        "Error: Report http failed: a reason of its own",
        "Report http failed: X",
    ),
    Printed(
        "puppet 3.8.7 lib/puppet/ssl/host.rb",
        "Error: Could not request certificate: a reason of its own",
        "Could not request certificate: X",
    ),
    Printed(
        AGENT,
        "Error: Could not parse application options: invalid option: --nosuchoption",
        "invalid option: X",
    ),
    Printed(
        AGENT,
        "Error: Unknown Puppet subcommand 'cert'",
        "Unknown Puppet subcommand 'X'",
    ),
    Printed(
        AGENT,
        "Error: Could not parse /etc/puppetlabs/puppet/puppet.conf: Could not match line server puppet\n (file: "
        "/etc/puppetlabs/puppet/puppet.conf, line: 2)",
        "Could not parse X: Could not match line X",
    ),
    Printed(
        DAEMON,
        "Error: Could not run: Could not create PID file: /run/puppetlabs/agent.pid",
        "Could not create PID file: X",
    ),
    Printed(
        CONFIGURER,
        "Error: Could not run command from prerun_command: Execution of '/usr/local/bin/may-run' returned 1:",
        "Could not run command from X",
    ),
    Printed(
        "Linux",
        "Error: Could not run Puppet configuration client: Cannot allocate memory - fork(2)",
        "Cannot allocate memory",
    ),
    Printed(
        DAEMON,
        "Notice: Caught TERM; exiting",
        "Caught TERM; exiting",
    ),
    Printed(
        LOG,
        "Error: Could not run: uninitialized constant Puppet::Util::Nosuch",
        "uninitialized constant X",
    ),
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.text[:50])
def test_what_is_printed_is_found(line: Printed) -> None:
    assert_found(line)


def test_each_message_has_a_line() -> None:
    assert without_line(agents.MESSAGES, LINES) == []
