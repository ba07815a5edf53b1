"""Messages about the agent's process, its settings, its files and its report."""

from __future__ import annotations

from inspector.analysis.known_errors.matching import KnownError
from inspector.model import Visible
from inspector.rules.fixes import advice, on_master, on_node

_W, _C = Visible.WIRE, Visible.CONSEQUENCE

_OF_PROCESS = '{} "$(cat "$(puppet config print agent_catalog_run_lockfile)")"'
_FIRST_ERROR = on_node("read the first error of the run", "puppet agent -t")
_PROCESSORS = on_master("see which processors there are", "puppet config print reports --section master")

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
        (
            on_node("read the reason", 'cat "$(puppet config print agent_disabled_lockfile)"'),
            on_node("see since when", 'ls -l "$(puppet config print agent_disabled_lockfile)"'),
        ),
        (
            on_node("enable it", "puppet agent --enable", only_if="the reason has gone"),
            on_node("run it", "puppet agent -t", only_if="the reason has gone"),
        ),
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
        (on_node("see which process it is, and since when", _OF_PROCESS.format("ps -o pid,etime,args -p")),),
        (
            advice("wait until it ends"),
            on_node("end it", _OF_PROCESS.format("kill"), only_if="it hangs"),
            on_node(
                "remove the lock",
                'rm "$(puppet config print agent_catalog_run_lockfile)"',
                only_if="the process is no agent",
                destroys="the lock",
            ),
            on_node("limit the time of later runs", "puppet config set runtimeout 1h --section agent"),
        ),
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
        (
            on_node("see the limit", "puppet config print runtimeout --section agent"),
            on_node("see what takes long", "puppet agent -t --evaltrace | tail"),
        ),
        (
            advice("correct what hangs"),
            on_node("raise the limit", "puppet config set runtimeout 2h --section agent", only_if="nothing hangs"),
        ),
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
        (_FIRST_ERROR,),
        (advice("explain the line before it"),),
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
        (_FIRST_ERROR,),
        (advice("explain what follows the colon"),),
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
        (advice("read the next line"),),
        (advice("explain the next line"),),
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
        (
            on_node(
                "look at the files of its state",
                'ls -l "$(puppet config print statedir)" "$(puppet config print client_datadir)/catalog"',
            ),
            on_node("see whether a disk is full", "df -h"),
        ),
        (
            on_node(
                "delete the catalog, which it stores again",
                'rm -rf "$(puppet config print client_datadir)/catalog"',
                destroys="the catalog of its last run",
            ),
            on_node(
                "delete the values, which it stores again",
                'rm -rf "$(puppet config print transactionstorefile)"',
                destroys="the values of its last run",
            ),
            on_node("run it", "puppet agent -t"),
        ),
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
        (
            on_node("see where it sends reports", "puppet config print report_server report_port --section agent"),
            _PROCESSORS,
        ),
        (advice("explain what follows the colon"),),
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
        (
            _PROCESSORS,
            on_master("read why one of them failed", "tail -n 50 /var/log/puppetlabs/puppetserver/puppetserver.log"),
        ),
        (
            advice("repair the service behind the processor that failed"),
            on_master(
                "leave the processor out",
                "puppet config set reports store --section master",
                only_if="it is not needed",
            ),
            on_master("restart the server", "systemctl restart puppetserver", only_if="it is not needed"),
        ),
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
        (on_node("see its settings", "puppet config print server certname ssldir --section agent"),),
        (advice("explain what follows the colon"),),
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
        (
            on_node("see which version it is", "puppet --version"),
            on_node("see which commands it has", "puppet help"),
        ),
        (
            advice(
                "use the command of your version, for example `puppetserver ca list --all` instead of "
                "`puppet cert list --all`"
            ),
        ),
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
        (on_node("read the file with the numbers of its lines", 'cat -n "$(puppet config print config)"'),),
        (advice("correct the line that the message names"),),
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
        (
            on_node("see whether it runs already", "systemctl status puppet"),
            on_node("see whether the directory is there", 'ls -ld "$(puppet config print rundir)"'),
        ),
        (on_node("restart it", "systemctl restart puppet"),),
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
        (on_node("see the commands", "puppet config print prerun_command postrun_command --section agent"),),
        (
            advice("correct the script"),
            on_node(
                "do without it",
                "puppet config delete prerun_command --section agent",
                only_if="it is not needed",
                destroys="the setting",
            ),
        ),
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
        (
            on_node("see how much is free", "free -m"),
            on_node("see whether the kernel ended processes for want of it", "dmesg | grep -i 'out of memory'"),
        ),
        (
            advice("free memory or add swap"),
            advice("replace it with a package or an archive", only_if="the catalog has a recursive `file`"),
        ),
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
        (on_node("read who stopped it", "journalctl -u puppet -n 30"),),
        (
            on_node("start it again", "systemctl start puppet"),
            advice("do not let the catalog restart the agent's service while it runs"),
        ),
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
        (on_node("run it with the place of the failure", "puppet agent -t --trace"),),
        (
            advice("update the module that the trace names"),
            on_node(
                "delete the plugins, which it downloads again",
                'rm -rf "$(puppet config print libdir)"',
                only_if="its plugins are old",
                destroys="the plugins",
            ),
            on_node("run it", "puppet agent -t", only_if="its plugins are old"),
        ),
        ("S01",),
        None,
        frame=True,
    ),
)
