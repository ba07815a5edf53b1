"""Messages about the agent's process, its settings, its files and its report."""

from __future__ import annotations

from inspector.analysis.known_errors.matching import KnownError
from inspector.model import Visible

_W, _C = Visible.WIRE, Visible.CONSEQUENCE
_LOCK = (
    'On the node run `pid=$(cat "$(puppet config print agent_catalog_run_lockfile)"); ps -o pid,etime,args -p "$pid"`.'
)

MESSAGES: tuple[KnownError, ...] = (
    KnownError(
        (
            "Skipping run of X; administratively disabled (Reason: 'X')",
            "administratively disabled",
            "Use 'puppet agent --enable' to re-enable",
            "Skipping run of Puppet configuration client; administratively disabled",
        ),
        "Somebody or something disabled the agent, so it does not run until it is enabled. The reason is "
        "in the message.",
        (
            "An administrator disabled it during maintenance, and forgot it.",
            "A tool disables it while it works: a deployment, an upgrade, a backup.",
        ),
        'On the node run `cat "$(puppet config print agent_disabled_lockfile)"; ls -l "$(puppet config '
        'print agent_disabled_lockfile)"`.',
        "If the reason has gone: `puppet agent --enable; puppet agent -t`.",
        ("R17",),
        _C,
    ),
    KnownError(
        (
            "Run of X already in progress; skipping (X exists)",
            "already in progress; skipping",
            "Another puppet instance is already running",
            "Another OpenVox instance is already running",
            "Exiting now because the maxwaitforlock timeout has been exceeded",
            "Failed to acquire lock",
        ),
        "An earlier run is still in progress, or hangs.",
        (
            "The service and a run by hand or by cron meet.",
            "The earlier run hangs in a command or on a network mount.",
            "A lock file of a crashed run names a process id that another process has now.",
        ),
        _LOCK,
        'Wait for it, or end it: `kill "$pid"`. If the process is no agent: `rm "$(puppet config print '
        'agent_catalog_run_lockfile)"`. `puppet config set runtimeout 1h --section agent` limits a run.',
        ("R17",),
        None,
    ),
    KnownError(
        ("Execution of X did not complete within X seconds and was terminated",),
        "The run took longer than `runtimeout`, and the agent ended it.",
        (
            "A command or a network mount hangs.",
            "The first run of a node really takes long.",
        ),
        "On the node run `puppet config print runtimeout --section agent; puppet agent -t --evaltrace | tail`.",
        "Correct what hangs, or `puppet config set runtimeout 2h --section agent`.",
        ("P10", "R03"),
        _C,
    ),
    KnownError(
        (
            "Could not retrieve catalog; skipping run",
            "Not using cache on failed catalog",
            "Using cached catalog from environment",
            "Using cached catalog",
        ),
        "There was no catalog, so nothing was applied, or an old one was. It is a consequence: the error "
        "before it names the cause.",
        (
            "The catalog does not compile.",
            "The master cannot be reached.",
        ),
        "Read the first error of the run: `puppet agent -t`.",
        "Explain the line before it.",
        ("R20", "R19"),
        _W,
        frame=True,
    ),
    KnownError(
        ("Could not retrieve catalog from remote server: X",),
        "The agent got no catalog. What follows names the reason.",
        (
            "The catalog does not compile.",
            "The master cannot be reached, or TLS with it failed.",
        ),
        "Read the first error of the run: `puppet agent -t`.",
        "Explain what follows the colon.",
        ("R20", "S01"),
        _W,
        frame=True,
    ),
    KnownError(
        ("Unable to fetch my node definition, but the agent run will continue",),
        "The agent asked for its environment and got no answer. The run goes on; the next line names the reason.",
        (
            "The node classifier failed.",
            "The master cannot be reached.",
        ),
        "Read the next line.",
        "Explain the next line.",
        ("R02", "R10"),
        _W,
        frame=True,
    ),
    KnownError(
        (
            "Could not retrieve catalog from cache: X",
            "Removing corrupt state file X",
            "Cannot remove X",
            "Could not load YAML file",
            "Transaction store file X is corrupt",
            "Checksumfile X is corrupt",
            "is corrupt (X); replacing",
        ),
        "A file in which the agent keeps its state is damaged.",
        (
            "The disk was full.",
            "The node was switched off during a run.",
        ),
        'On the node run `ls -l "$(puppet config print statedir)" "$(puppet config print '
        'client_datadir)/catalog"; df -h`.',
        'Delete it, the agent makes it again: `rm -rf "$(puppet config print client_datadir)/catalog" '
        '"$(puppet config print transactionstorefile)"; puppet agent -t`.',
    ),
    KnownError(
        (
            "Could not send report: X",
            "Could not save last run local report: X",
        ),
        "The run is over, and its report was lost. What follows names the reason.",
        (
            "The master's report processor failed.",
            "The master cannot be reached.",
            "The report is too large.",
        ),
        "On the node run `puppet config print report_server report_port --section agent`; on the master "
        "`puppet config print reports --section master`.",
        "Explain what follows the colon.",
        ("P03", "P04"),
        _W,
        frame=True,
    ),
    KnownError(
        (
            "Report puppetdb failed: X",
            "Report http failed: X",
            "Report foreman failed: X",
            "Report store failed: X",
            "Report processor failed",
            "No report named X",
            "To submit reports to a server running puppetserver X, set preferred_serialization_format to pson",
            "does not accept reports in X",
        ),
        "The master took the report, and could not process it.",
        (
            "A processor in `reports` (puppetdb, http, foreman) failed or is not installed.",
            "The agent's report has a format that an old master does not know.",
        ),
        "On the master run `puppet config print reports --section master; tail -n 50 "
        "/var/log/puppetlabs/puppetserver/puppetserver.log`.",
        "Repair the service behind the processor, or leave it out: `puppet config set reports store "
        "--section master; systemctl restart puppetserver`.",
        ("P03", "S04"),
        _W,
    ),
    KnownError(
        (
            "Could not request certificate: X",
            "Could not prepare for execution: X",
            "Could not run: X",
            "Could not start agent: X",
            "Could not initialize global default settings: X",
        ),
        "The command stopped before it did anything. What follows names the reason.",
        (
            "A setting is wrong.",
            "The CA cannot be reached, or refuses the request.",
        ),
        "On the node run `puppet config print server certname ssldir --section agent`.",
        "Explain what follows the colon.",
        ("B39", "B40"),
        None,
        frame=True,
    ),
    KnownError(
        (
            "Could not parse application options: invalid option: X",
            "invalid option: X",
            "Unknown Puppet subcommand 'X'",
            "The puppet agent command does not take parameters",
        ),
        "The command line has an option or a subcommand that this version does not have.",
        (
            "`puppet cert` is gone since version 6: it is `puppetserver ca` now.",
            "A script is for another version.",
            "The option is misspelt.",
        ),
        "Run `puppet --version; puppet help`.",
        "Use the command of your version, for example `puppetserver ca list --all` instead of `puppet "
        "cert list --all`.",
    ),
    KnownError(
        (
            "Could not parse X: Could not match line X",
            "Could not parse configuration file",
            "Could not match line X",
            "Illegal section X in config file",
            "Could not find setting",
        ),
        "puppet.conf has a line that Puppet cannot read. The command goes on without the whole file, with default "
        "settings.",
        (
            "A line lacks `=` or is in no section.",
            "The file was cut off or merged wrongly.",
        ),
        'On the node run `cat -n "$(puppet config print config)"`.',
        "Correct the line that the message names.",
    ),
    KnownError(
        (
            "Could not create PID file: X",
            "Could not create pidfile",
            "Failed to read PID file",
            "Could not daemonize",
        ),
        "The agent's service cannot start: it has no place for its process id, or already runs.",
        (
            "A service of it runs already.",
            "Its run directory is missing or not writable.",
        ),
        'On the node run `systemctl status puppet; ls -ld "$(puppet config print rundir)"`.',
        "`systemctl restart puppet`.",
    ),
    KnownError(
        (
            "Could not run command from prerun_command: X",
            "Could not run command from postrun_command: X",
            "Could not run command from X",
        ),
        "The command of `prerun_command` or `postrun_command` failed. After a failed prerun command there is no run.",
        (
            "The script exits with an error on purpose, to prevent a run.",
            "The script is missing or not executable.",
        ),
        "On the node run `puppet config print prerun_command postrun_command --section agent`.",
        "Correct the script, or delete the setting: `puppet config delete prerun_command --section agent`.",
        ("R03",),
        None,
    ),
    KnownError(
        (
            "Cannot allocate memory",
            "failed to allocate memory",
            "NoMemoryError",
            "fork: Cannot allocate memory",
        ),
        "The node has not enough memory for the agent.",
        (
            "A catalog or a recursive file resource is very large.",
            "Another process uses the memory.",
        ),
        "On the node run `free -m; dmesg | grep -i 'out of memory'`.",
        "Free memory or add swap; replace a recursive `file` with a package or an archive.",
        ("R03", "F10"),
        _C,
    ),
    KnownError(
        (
            "Caught TERM; exiting",
            "Caught INT; exiting",
            "Caught HUP; exiting",
            "Shutdown/restart in progress (X); skipping run",
            "Cancelling startup",
        ),
        "Somebody or something ended the agent.",
        (
            "The service was stopped or restarted, perhaps by the agent's own catalog.",
            "The host was shut down.",
        ),
        "On the node run `journalctl -u puppet -n 30`.",
        "Start it again: `systemctl start puppet`. Do not let the catalog restart the agent's service while it runs.",
        ("R03",),
        _C,
    ),
    KnownError(
        (
            "uninitialized constant X",
            "undefined method X for nil",
            "stack level too deep",
            "wrong number of arguments (given",
            "wrong number of arguments",
        ),
        "Ruby code of a module or of Puppet failed.",
        (
            "A module is for another version of Puppet or Ruby.",
            "Plugins of an older version are still on the node.",
            "A value that the code expects is missing.",
        ),
        "Run it with the place of the failure: `puppet agent -t --trace`.",
        'Update the module that the trace names. For old plugins: `rm -rf "$(puppet config print '
        'libdir)"; puppet agent -t`.',
        ("S01",),
        None,
        frame=True,
    ),
)
