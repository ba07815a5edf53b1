"""Messages about plugins and facts, and about applying a catalog's resources."""

from __future__ import annotations

from inspector.analysis.known_errors.matching import KnownError
from inspector.model import Visible

_W, _H = Visible.WIRE, Visible.HANDSHAKE

MESSAGES: tuple[KnownError, ...] = (
    KnownError(
        (
            ("Could not evaluate: Could not retrieve information from environment X source(s) puppet:///modules/X"),
            "Could not retrieve information from environment X source(s)",
            "Could not retrieve information from source(s)",
            "Could not find file_metadata modules/X",
            "Could not find file_content",
        ),
        "The file of a `source` does not exist in that module and environment on the master that answered.",
        (
            "The path is wrong: `puppet:///modules/mod/a` is mod/files/a.",
            "The code is not deployed in this environment.",
            "With several compilers: this one has older code.",
        ),
        'On the master run `ls "$(puppet config print environmentpath --section '
        'master)"/<environment>/modules/<module>/files`.',
        "Deploy the code, or correct the `source`; with several compilers compare their code.",
        ("F02", "S20"),
        _W,
    ),
    KnownError(
        (
            "Not authorized to call find on X",
            "Not authorized to call search on X",
            "Not authorized to call save on X",
            "Denying access: Forbidden request",
            "Denying find request for X on fileserver mount",
        ),
        "The master's file server or an old auth.conf does not let this node have the file. Masters up "
        "to version 6 print this message.",
        (
            "A mount in fileserver.conf has no `allow *`.",
            "The path has no module: `puppet:///mod/a` instead of `puppet:///modules/mod/a`.",
            "The module or mount does not exist.",
            "auth.conf has no rule for the path.",
        ),
        'On the master run `cat "$(puppet config print fileserverconfig --section master)"`.',
        "Correct the `source` to `puppet:///modules/<module>/<file>`. For a mount of your own write "
        "`allow *` below its `path` in fileserver.conf, then `systemctl restart puppetserver`.",
        ("S02", "F02"),
        _W,
    ),
    KnownError(
        (
            ("Forbidden request: X access to /puppet-ca/v1/sign (method :post) denied by rule 'puppetlabs deny all'"),
            "Forbidden request: X access to X (method :get) (authenticated: true) denied by rule 'X'",
            "Forbidden request: X access to X",
            "denied by rule 'puppetlabs deny all'",
        ),
        "The master's auth.conf has no rule that allows the request.",
        (
            "auth.conf is managed by a module or template, and lacks newer endpoints.",
            "The certificate has not got the extension that the rule wants (`pp_cli_auth`).",
            "The request came with another certificate, or with none.",
        ),
        "On the master run `grep -n -A9 match-request /etc/puppetlabs/puppetserver/conf.d/auth.conf`.",
        "Add the rule to auth.conf (or update the module that manages it), and restart the server: "
        "`systemctl restart puppetserver`.",
        ("S02", "B09", "B43"),
        _W,
    ),
    KnownError(
        (
            "Error 403 on SERVER: Forbidden request: /puppet/v3/catalog/NAME. (method :post).",
            "Forbidden request: /puppet/v3/catalog/NAME (method",
            "Forbidden request: /puppet/v3/X/NAME (method",
            "Error 403 on SERVER: Forbidden request",
            "Error 403 on SERVER",
        ),
        "The certname in the path differs from the one in the certificate, or the certificate is missing.",
        (
            "`node_name_value` or `node_name_fact` is set.",
            "The certname has a trailing dot or capital letters.",
            "A load balancer ends TLS, so the master does not know who asks.",
        ),
        "On the node run `puppet config print certname node_name_value --section agent; openssl x509 "
        '-noout -subject -in "$(puppet config print hostcert)"`.',
        "If `node_name_value` is set, delete it: `puppet config delete node_name_value --section agent`. "
        "Otherwise make `certname` match the certificate: `puppet config set certname <name> "
        "--section main`, then {reset}.",
        ("T04", "S02", "T03"),
        _W,
    ),
    KnownError(
        (
            "Could not retrieve file metadata for puppet:///plugins: X",
            "Failed to generate additional resources using 'eval_generate': X",
            "Could not retrieve plugin: X",
            "Could not retrieve pluginfacts: X",
            "Failed to retrieve pluginfacts: X",
            "Failed to retrieve plugin: X",
            "Could not retrieve file metadata for X",
        ),
        "The agent could not fetch its plugins or a file. Nearly always a consequence: the first error "
        "of the run names the cause.",
        (
            "TLS with the master failed.",
            "The master cannot be reached.",
            "The master cannot read a file of a module.",
        ),
        "Read the first error of the run; {verify} on the node checks its certificates.",
        "Explain the first error of the run. For `Permission denied` on the master: `chmod -R a+rX <module>`.",
        ("T05", "T07", "T08", "B10", "B13"),
        _H,
        frame=True,
    ),
    KnownError(
        (
            "Could not retrieve fact='X', resolution='X'",
            "Could not retrieve fact X",
            "Could not retrieve fact",
            "Error while resolving custom fact fact='X'",
            "Error loading fact X",
            "Facter: error while resolving custom fact",
            'error while processing "X" for external facts',
        ),
        "A fact could not be found out. The run goes on without it, and code that uses it may fail.",
        (
            "A command that the fact calls is not installed or failed.",
            "The fact's code is for another version of Ruby or Facter.",
            "A file that it reads does not exist on this node.",
        ),
        "On the node run `puppet facts show <fact>` (up to version 5: `facter -p <fact>`) with `--debug`.",
        "Correct the fact in its module (lib/facter), or confine it to the nodes where it works. An "
        "external fact lies in `puppet config print pluginfactdest` or /etc/facter/facts.d.",
        (),
        _W,
    ),
    KnownError(
        (
            "Could not retrieve local facts: X",
            "Failed to submit facts: X",
            "Could not run: Could not retrieve facts for X",
        ),
        "The agent could not gather or send its facts, so there is no run.",
        (
            "A fact's code raises an error.",
            "Facter is not installed, or of a version that does not fit.",
            "A disk or a network mount hangs.",
        ),
        "On the node run `puppet facts show --debug | tail` (up to version 5: `facter -p --debug`).",
        "Correct the fact that it names.",
        ("R11",),
        None,
    ),
    KnownError(
        (
            "The current total number of facts: X exceeds the number of facts limit",
            "exceeds the top facts limit",
            "exceeds the value length limit",
            "exceeds the payload size limit",
            "with length: X exceeds the length limit",
        ),
        "The facts of this node are larger than the agent's own limits. It is a warning; the run goes on.",
        ("A fact lists something that grows: packages, mounts, containers.",),
        "On the node run `puppet facts show | wc -c`.",
        "Make the fact smaller, or raise the limit, for example `puppet config set "
        "number_of_facts_soft_limit 4096 --section agent`.",
        ("R11",),
        _W,
        old=False,
    ),
    KnownError(
        (
            "Could not find command 'X'",
            "is not qualified and no path was specified",
        ),
        "An exec resource calls a program that is not found on the node.",
        (
            "The package with the program is not installed yet: a `require` is missing.",
            "`path` of the exec does not name its directory.",
        ),
        "On the node run `command -v <program>`.",
        "Let the exec require the package, and set `path => ['/usr/bin', '/usr/sbin', '/bin', '/sbin']`.",
        ("P01",),
        _W,
    ),
    KnownError(
        (
            "returned X instead of one of [0]",
            "returned X instead of one of",
        ),
        "The command of an exec resource failed on the node.",
        (
            "The command is wrong for this system.",
            "It depends on something that is not there yet.",
            "It may run only once, and has no `unless`, `onlyif` or `creates`.",
        ),
        "On the node run the command by hand as root, without the environment of your shell: `env -i <command>`.",
        "Correct the command, or add `unless`, `onlyif` or `creates`. `returns => [0, 2]` allows other exit statuses.",
        ("P01",),
        _W,
    ),
    KnownError(
        (
            "Command exceeded timeout",
            "Execution of X timed out",
        ),
        "The command of an exec resource took longer than its `timeout` (300 seconds).",
        (
            "The command waits for an answer or a network.",
            "It really takes long.",
        ),
        "On the node run the command by hand: `time <command> </dev/null`.",
        "Raise its `timeout` (0: none), or let it not ask.",
        ("P01",),
        _W,
    ),
    KnownError(
        (
            "Unable to locate package",
            "No package X available",
            "Unable to find a match",
            "Could not get latest version",
            "Execution of 'X' returned 100",
            "No candidate version",
            "E: Unable to locate package",
        ),
        "The node's package manager does not know the package.",
        (
            "The repository that has it is not configured, or its list was not fetched (`apt-get update`).",
            "The name is that of another distribution.",
            "The repository cannot be reached.",
        ),
        "On the node run `apt-cache policy <package>` or `yum info <package>`.",
        "Add the repository and let the package require it: with apt `Class['apt::update'] -> Package <| |>`.",
        ("P01",),
        _W,
    ),
    KnownError(
        (
            "Could not find init script for 'X'",
            "Could not find init script or upstart conf file for",
            "Systemd start for X failed",
            "Could not start Service[X]",
            "Execution of '/usr/bin/systemctl X' returned",
        ),
        "A service could not be started or does not exist on the node.",
        (
            "The package that brings the service is not installed.",
            "Its configuration is wrong, so it stops at once.",
            "The name of the service is another one on this system.",
        ),
        "On the node run `systemctl status <service>; journalctl -u <service> -n 30`.",
        "Correct its configuration, or let the service require its package and files.",
        ("P01",),
        _W,
    ),
    KnownError(
        (
            "Could not find user X",
            "Could not find group X",
            "Could not set 'X' on ensure: X",
            "Could not find a suitable provider for X",
            "Provider X is not functional on this host",
        ),
        "A resource needs a user, group or tool that is not on the node.",
        (
            "The user or group is created later in the catalog: a `require` is missing.",
            "The tool of the provider is not installed (for example augeas, git).",
            "The name is misspelt.",
        ),
        "On the node run `getent passwd <user>; getent group <group>`.",
        "Let the resource require the user, the group or the package.",
        ("P01",),
        _W,
    ),
    KnownError(
        (
            "Skipping because of failed dependencies",
            "Dependency X has failures: true",
            "Skipping because of failed dependencies",
        ),
        "The resource was not touched, because one that it requires failed. It is a consequence.",
        ("The resource that the message names failed earlier in this run.",),
        "Read the first error of the run.",
        "Correct the resource that failed first; the others follow in the next run.",
        ("P01",),
        _W,
        frame=True,
    ),
    KnownError(
        (
            "Could not back up X",
            "Got passed new contents for sum",
            "Could not back up",
            "Existing backup and new file have different content but same checksum",
        ),
        "The old content of a file could not be sent to the master's filebucket, so the file was not changed.",
        (
            "The digest of agent and master differ (md5 or sha256).",
            "The file is too large.",
            "The master cannot write into its bucket.",
        ),
        "On both run `puppet config print digest_algorithm`.",
        "Set the same digest on both: `puppet config set digest_algorithm sha256 --section main`. Or "
        "turn the backup off: `backup => false`.",
        ("F12", "F14"),
        _W,
    ),
    KnownError(
        (
            "File written to disk did not match desired checksum",
            "did not match desired checksum",
            "File written to disk did not match checksum; discarding changes",
        ),
        "The content of a file is not what its metadata say, so the file was not changed.",
        (
            "The code was deployed while the agent was reading it.",
            "Metadata and content came from different compilers.",
            "The answer was cut off on its way.",
        ),
        "Run the agent once more: `puppet agent -t`.",
        "If it stays, compare the file on the compilers: `sha256sum <file>`; deploy to all of them at the same time.",
        ("F03", "S20", "S14"),
        _W,
    ),
    KnownError(
        (
            "No space left on device",
            "Disk quota exceeded",
        ),
        "A disk is full, on the node or on the master (then it follows `Error 500 on SERVER`).",
        (
            "Logs, reports or the filebucket have grown.",
            "All inodes are in use.",
        ),
        "Run `df -h; df -i` on both.",
        'Free space: on the master `find "$(puppet config print reportdir --section master)" -mtime +14 -delete`.',
        ("P01",),
        None,
    ),
    KnownError(
        (
            "Permission denied - X",
            "Permission denied @ X",
            "Permission denied",
            "Operation not permitted",
            "EACCES",
        ),
        "A process may not read or write a file.",
        (
            "The agent does not run as root.",
            "On the master: user puppet cannot read a module's file (it follows `Error 500 on SERVER`).",
            "SELinux or a read-only mount forbids it.",
        ),
        "Run `ls -lZ <file>` on the host that the message is about.",
        'On the master: `chmod -R a+rX "$(puppet config print environmentpath --section master)"`. On '
        "the node run the agent as root.",
        ("P01", "S01"),
        None,
    ),
    KnownError(
        ("Failed to apply catalog: undefined method 'name' for nil",),
        "A bug of OpenVox 9.0.0-rc1 that hides the real error, which is printed above it.",
        ("The run failed before there was a catalog.",),
        "Read the first error of the run.",
        "Correct what the first error of the run names, and upgrade OpenVox.",
        ("R20", "S01"),
        _W,
    ),
    KnownError(
        (
            "Failed to apply catalog: X",
            "Could not apply complete catalog: X",
            "Could not run Puppet configuration client: X",
            "Could not evaluate: X",
        ),
        "The agent stopped while it applied the catalog. What follows names the reason.",
        (
            "A resource's type or provider failed.",
            "Resources require each other in a circle.",
        ),
        "Run it with more detail: `puppet agent -t --debug --trace`.",
        "Correct what follows the colon.",
        ("P01", "P05"),
        _W,
        frame=True,
    ),
)
