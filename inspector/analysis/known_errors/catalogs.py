"""Messages about compiling a catalog: its environment, and failures of the server."""

from __future__ import annotations

from inspector.analysis.known_errors.matching import KnownError
from inspector.model import Visible
from inspector.rules.fixes import advice, on_master, on_node

_W = Visible.WIRE
_ENVIRONMENTS = on_master("see which ones it has", 'ls "$(puppet config print environmentpath --section master)"')
_ENVIRONMENT = on_node("see which environment it uses", "puppet config print environment --section agent")

MESSAGES: tuple[KnownError, ...] = (
    KnownError(
        (
            "Environment 'X' not found on server, aborting run",
            "Environment 'X' not found on server, skipping initial pluginsync",
            "Environment 'X' not found on server",
            "Could not find environment 'X'",
            "Could not find a directory environment named 'X'",
            "Error 404 on SERVER: Not Found: Could not find environment 'X'",
        ),
        "The master has no environment of this name.",
        (
            "The branch was deleted or never deployed.",
            "`environment` in the agent's puppet.conf is wrong.",
            "The classifier assigns a name that does not exist.",
            "With several compilers: this one has not got it yet.",
        ),
        (
            _ENVIRONMENTS,
            _ENVIRONMENT,
        ),
        (
            on_master("deploy it", "r10k deploy environment <environment> -m", only_if="it should exist"),
            on_master("flush the environment cache", "systemctl reload puppetserver", only_if="it should exist"),
            on_node(
                "use another one",
                "puppet config set environment production --section agent",
                only_if="it should not exist",
            ),
        ),
        ("R09", "S01"),
        _W,
    ),
    KnownError(
        (
            "Local environment: 'X' doesn't match server specified environment 'X', restarting agent run",
            "Local environment: 'X' doesn't match server specified node environment 'X', switching agent to",
            "Catalog environment didn't stabilize after X fetches, aborting run",
            "Not using catalog because its environment 'X' does not match agent specified environment 'X'",
            "Not using cached catalog because its environment 'X' does not match",
        ),
        "The classifier assigns a different environment than the agent requested; the agent gives up if "
        "the answer changes with each try.",
        (
            "`environment` in the agent's puppet.conf is not that of the classifier.",
            "A rule of the classifier depends on a fact that changes.",
            "`strict_environment_mode` is set.",
        ),
        (on_node("see its settings", "puppet config print environment strict_environment_mode --section agent"),),
        (
            on_node(
                "let the server decide", "puppet config delete environment --section agent", destroys="the setting"
            ),
            advice("correct rules of the classifier that depend on facts that change"),
        ),
        ("R06", "R08", "R07"),
        _W,
    ),
    KnownError(
        (
            "The environment must be purely alphanumeric, not 'puppet-ca'",
            "The environment must be purely alphanumeric, not X",
            "Error 404 on SERVER: Could not find environment 'puppet'",
            "Invalid environment name",
        ),
        "An agent of Puppet 4 or later connects to a master of Puppet 3, whose URLs begin with the "
        "environment; or the environment's name has other characters than letters, digits and `_`.",
        (
            "The agent was upgraded before the master.",
            "A branch name with `-` or `.` became an environment.",
        ),
        (
            on_node("see its version", "puppet --version"),
            on_master("see its version", "puppet --version"),
        ),
        (
            advice("upgrade the master first: it must never be older than its agents", only_if="the master is older"),
            advice("rename the branch: letters, digits and `_` are allowed", only_if="the name has other characters"),
        ),
        ("S03", "S16"),
        _W,
    ),
    KnownError(
        (
            "Attempt to borrow a JRuby instance from the pool timed out",
            "exceeded max-queued-requests",
            "Unable to borrow a JRuby instance",
            "OutOfMemoryError",
            "GC overhead limit exceeded",
        ),
        "puppetserver has no free JRuby for the request, or no memory.",
        (
            "Too many agents at once for its JRubies.",
            "Catalogs take too long.",
            "The heap is too small.",
        ),
        (
            on_master(
                "see how many JRubies and how much memory it has",
                "grep -e max-active -e Xmx -r /etc/puppetlabs/puppetserver /etc/default/puppetserver",
            ),
        ),
        (
            advice("raise `max-active-instances` and the heap (-Xmx in JAVA_ARGS, about 0.5 GB for each)"),
            on_master("restart the server", "systemctl restart puppetserver"),
            advice("spread the runs with `splay`"),
        ),
        ("S05", "S06"),
        _W,
    ),
    KnownError(
        (
            ("Could not retrieve catalog from remote server: Error 500 on SERVER: Server Error: Evaluation Error: X"),
            "Server Error: Evaluation Error",
            "Error 500 on SERVER: Server Error",
            "Error 400 on SERVER: X at X:X on node X",
            "Error 400 on SERVER",
            "Error 500 on SERVER",
            "Internal Server Error",
            "Evaluation Error: Error while evaluating",
        ),
        "The master could not compile the catalog, or failed with another error of its own. What follows "
        "names the reason.",
        (
            "An error in the code, the Hiera data or a template.",
            "`fail()` in a module stops on purpose.",
            "A service of the master failed: PuppetDB, the classifier.",
        ),
        (advice("look at the file, line and column that the message names"),),
        (
            on_master(
                "check the syntax there, and correct the code",
                "puppet parser validate <file>",
                only_if="it names a file",
            ),
            on_master(
                "read the master's log",
                "tail -n 50 /var/log/puppetlabs/puppetserver/puppetserver.log",
                only_if="it names none",
            ),
        ),
        ("S01", "R20"),
        _W,
        frame=True,
    ),
    KnownError(
        (
            "Find X resulted in 404 with the message: X",
            "Error 404 on SERVER",
            "Not Found: Could not find X",
        ),
        "The master has not got what was requested.",
        (
            "The environment does not exist there.",
            "A file or a node is missing.",
            "The master is too old for the agent's URLs.",
        ),
        (_ENVIRONMENTS,),
        (
            advice("deploy what the message names"),
            advice("upgrade the master first", only_if="it is older than the agent"),
        ),
        ("R09", "S03", "F02"),
        _W,
        frame=True,
    ),
)
